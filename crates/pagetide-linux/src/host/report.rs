//! A report in the kernel's log: a failed allocation, or memory that ran out.
//!
//! Linux: `warn_alloc` and `show_free_areas` (mm/page_alloc.c, mm/show_mem.c), `dump_header`
//! (mm/oom_kill.c), `mem_cgroup_print_oom_meminfo` (mm/memcontrol.c), 2.6.30 to 6.18. Data flow:
//! `log` removes the prefixes of dmesg and syslog and joins wrapped lines; `lines` reads them into a
//! [`KernelReport`]; [`KernelReport::snapshot`] is the machine as its own files would describe it.
//! Messages of others between the lines are ignored.
//!
//! Invariant: a report is read completely or not at all; an error has the number of the line.

mod gfp;
mod lines;
mod log;

use super::buddyinfo::BuddyInfo;
use super::cgroup::{CgroupVersion, HostGroup};
use super::error::HostError;
use super::meminfo::MemInfo;
use super::note::ImportNote;
use super::release;
use super::snapshot::HostSnapshot;
use super::swaps::HostSwap;
use super::zoneinfo::{HostPageSet, HostZoneInfo};
pub use gfp::RequestFlags;
use pagetide_core::control::GroupControl;

/// The name of the report in notes.
pub(super) const PLACE: &str = "report";
/// Memory of a machine of which only a group is known, as a multiple of the group's limit.
const LIMITS_OF_A_MACHINE: u64 = 4;
/// Limits from here on mean none, in kB.
const UNLIMITED_KB: u64 = 1 << 50;

/// A process in the report's table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedProcess {
    pub name: String,
    /// Resident pages.
    pub rss: u64,
    /// -1000 to 1000.
    pub oom_score_adj: i16,
}

/// A group at its limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedGroup {
    pub path: String,
    pub usage_kb: u64,
    pub limit_kb: u64,
    /// `memory+swap`, which only version 1 has.
    pub memory_and_swap_kb: Option<u64>,
    /// Its statistics in bytes.
    pub stat: Vec<(String, u64)>,
}

/// The request that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailedRequest {
    /// The program that made it.
    pub comm: String,
    /// Whether the OOM killer was invoked; otherwise the request just failed.
    pub is_oom: bool,
    pub order: u32,
    pub flags: RequestFlags,
    /// Its line in the file, from 1.
    pub line: usize,
    /// Whether it met the limit of a group.
    pub is_of_group: bool,
}

/// A report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelReport {
    pub request: FailedRequest,
    pub release: Option<String>,
    /// Size of a page in kB; 0 if the report does not say it.
    pub page_kb: u64,
    /// Zones in pages.
    pub zones: HostZoneInfo,
    pub free_blocks: Vec<BuddyInfo>,
    /// Highest number of a CPU that it names.
    pub last_cpu: Option<u32>,
    /// `None` if the report does not say it.
    pub swap_kb: Option<u64>,
    pub group: Option<ReportedGroup>,
    pub processes: Vec<ReportedProcess>,
    pub notes: Vec<ImportNote>,
}

/// Reads report `number`, from 1, of a kernel log; `None`: the first.
///
/// # Errors
/// The log has no such report, or the report is cut.
pub fn parse(text: &str, number: Option<usize>) -> Result<KernelReport, HostError> {
    let lines = log::lines(text);
    let starts: Vec<usize> =
        (0..lines.len()).filter(|at| lines::is_start(&lines[*at].text)).collect();
    let wanted = number.unwrap_or(1);
    let Some(&start) = wanted.checked_sub(1).and_then(|at| starts.get(at)) else {
        return Err(HostError::NoReport { wanted, found: starts.len() });
    };
    let end = starts.get(wanted).copied().unwrap_or(lines.len());
    let mut report = lines::read(&lines[start..end])?;
    if number.is_none() && starts.len() > 1 {
        let others = starts[1..].iter().take(8).map(|at| lines[*at].number.to_string());
        let others: Vec<String> = others.collect();
        let message = format!(
            "the log has {} reports; this is the first, others are in lines {} (--report N)",
            starts.len(),
            others.join(", ")
        );
        report.notes.push(ImportNote::new(PLACE, message));
    }
    let booted = lines.iter().find_map(|line| release::of_version(&line.text));
    report.release = report.release.take().or(booted);
    if report.zones.zones.is_empty() && report.group.is_none() {
        return Err(HostError::BadReport {
            line: report.request.line,
            message: "the report has no zones and no group (is it cut, or the log level too low?)"
                .into(),
        });
    }
    Ok(report)
}

impl KernelReport {
    /// The machine, as its files would describe it.
    pub fn snapshot(&self) -> HostSnapshot {
        let mut host = HostSnapshot {
            release: self.release.clone(),
            kernel_page_kb: Some(self.page_kb).filter(|kb| *kb > 0),
            zones: self.zones.clone(),
            free_blocks: self.free_blocks.clone(),
            notes: self.notes.clone(),
            ..HostSnapshot::default()
        };
        let mut note = |message: &str| host.notes.push(ImportNote::new(PLACE, message));
        if let Some(zone) = host.zones.zones.first_mut() {
            let cpus = 0..=self.last_cpu.unwrap_or(0).min(1023);
            zone.pagesets = cpus.map(|cpu| HostPageSet { cpu, ..HostPageSet::default() }).collect();
            note("the number of CPUs is that of the highest CPU that the report names");
        }
        if self.swap_kb.is_none() && !self.zones.zones.is_empty() {
            note("the report has no line `Total swap = `: the machine is given no swap");
        }
        if let Some(size_kb) = self.swap_kb.filter(|kb| *kb > 0) {
            host.swaps = vec![HostSwap {
                name: "swap".into(),
                kind: "partition".into(),
                size_kb,
                ..HostSwap::default()
            }];
        }
        if let Some(group) = &self.group {
            if host.zones.zones.is_empty() {
                note("the report is about a group and does not describe the machine, which is assumed");
                host.memory = machine_of(group);
            }
            host.groups = groups_of(group);
        }
        host
    }
}

/// /proc/meminfo of a machine of which only a group is known.
fn machine_of(group: &ReportedGroup) -> MemInfo {
    let limit = Some(group.limit_kb).filter(|kb| *kb < UNLIMITED_KB).unwrap_or(group.usage_kb);
    let total = limit.max(group.usage_kb).max(64 << 10).saturating_mul(LIMITS_OF_A_MACHINE);
    let stat = |name: &str| {
        let entry = group.stat.iter().find(|(entry, _)| entry == name);
        entry.map_or(0, |(_, bytes)| bytes >> 10)
    };
    let entries = [
        ("MemTotal", total),
        ("MemFree", total.saturating_sub(group.usage_kb)),
        ("Active(anon)", stat("active_anon")),
        ("Inactive(anon)", stat("inactive_anon")),
        ("Active(file)", stat("active_file")),
        ("Inactive(file)", stat("inactive_file")),
    ];
    MemInfo { entries: entries.map(|(name, kb)| (name.to_owned(), kb)).into() }
}

/// The root, and the group below it.
fn groups_of(group: &ReportedGroup) -> Vec<HostGroup> {
    let (version, prefix, control) = match group.memory_and_swap_kb {
        Some(_) => (CgroupVersion::V1, "total_", GroupControl::LimitInBytes),
        None => (CgroupVersion::V2, "", GroupControl::Max),
    };
    let limit = Some(group.limit_kb).filter(|kb| *kb < UNLIMITED_KB);
    let make = |path: &str, parent| HostGroup {
        path: path.to_owned(),
        parent,
        version,
        controls: Vec::new(),
        cpu_max: None,
        swappiness: None,
        usage: None,
        stat: Vec::new(),
    };
    let path = match group.path.as_str() {
        "" | "/" => "/group",
        path => path,
    };
    let stat = group.stat.iter().map(|(name, bytes)| (format!("{prefix}{name}"), *bytes));
    let limited = HostGroup {
        controls: limit.map(|kb| (control, Some(kb.saturating_mul(1024)))).into_iter().collect(),
        usage: Some(group.usage_kb.saturating_mul(1024)),
        stat: stat.collect(),
        ..make(path, Some(0))
    };
    vec![make("/", None), limited]
}

#[cfg(test)]
mod tests;
