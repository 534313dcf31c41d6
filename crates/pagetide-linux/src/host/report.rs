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
/// The part of such a machine that the kernel has, page tables among it.
const KERNEL_PART: u64 = 32;
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

/// The usage of a group, and its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReportedLimit {
    pub usage_kb: u64,
    pub limit_kb: u64,
}

/// A group at its limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedGroup {
    pub path: String,
    /// `None` if the report does not say it.
    pub memory: Option<ReportedLimit>,
    /// `memory+swap`, which only version 1 has.
    pub memory_and_swap: Option<ReportedLimit>,
    /// Its statistics in bytes, with those of the groups below it.
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
    let read = |at: usize| {
        let end = starts.get(at + 1).copied().unwrap_or(lines.len());
        whole(lines::read(&lines[starts[at]..end])?)
    };
    let first = read(wanted - 1);
    // A CPU can begin a report within that of another, which has no lines then.
    let next = || (wanted..starts.len()).find_map(|at| Some((at, read(at).ok()?)));
    let found = match number {
        None if first.is_err() => next(),
        _ => None,
    };
    let (at, mut report) = match found {
        Some(found) => found,
        None => (wanted - 1, first?),
    };
    if at >= wanted {
        let message = format!(
            "the report in line {} is not complete; this is report {} of the log, the first that is",
            lines[start].number,
            at + 1
        );
        report.notes.push(ImportNote::new(PLACE, message));
    }
    if number.is_none() && starts.len() > 1 {
        let others = starts.iter().enumerate().filter(|(other, _)| *other != at);
        let others = others.take(8).map(|(_, at)| lines[*at].number.to_string());
        let others: Vec<String> = others.collect();
        let message = format!(
            "the log has {} reports; this is number {}, others are in lines {} (--report N)",
            starts.len(),
            at + 1,
            others.join(", ")
        );
        report.notes.push(ImportNote::new(PLACE, message));
    }
    let booted = lines.iter().find_map(|line| release::of_version(&line.text));
    report.release = report.release.take().or(booted);
    Ok(report)
}

/// Refuses a report that describes neither the machine nor a group.
fn whole(report: KernelReport) -> Result<KernelReport, HostError> {
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
            let limit = self.limit_kb(group, &mut host.notes);
            host.groups = groups_of(group, limit);
        }
        host
    }

    /// The limit of the group in a run; `None`: it has none, or the report does not say it.
    fn limit_kb(&self, group: &ReportedGroup, notes: &mut Vec<ImportNote>) -> Option<u64> {
        let mut note = |message: String| notes.push(ImportNote::new(PLACE, message));
        let memory = group.memory.unwrap_or_default();
        let mut limit = group.memory.and_then(ReportedLimit::limit);
        if let Some((both, both_kb)) = group.memory_and_swap.and_then(|it| Some((it, it.limit()?)))
        {
            // Swapped pages have their part of the limit; a run without swap has none.
            let swapped = both.usage_kb.saturating_sub(memory.usage_kb);
            let of_memory = both_kb.saturating_sub(swapped);
            if self.swap_kb.is_none_or(|kb| kb == 0) {
                limit = Some(limit.map_or(of_memory, |kb| kb.min(of_memory)));
            } else if limit.is_none_or(|kb| kb > of_memory) {
                note(format!("the limit of memory and swap ({both_kb} kB) is left out"));
            }
        }
        let Some(kb) = limit else {
            note("the limit of the group is unknown, or it has none: it has none here".into());
            return None;
        };
        if group.stat.is_empty() {
            note("the report has no statistics of the group, which starts without memory".into());
            return limit;
        }
        let lists_kb = LISTS.iter().fold(0u64, |sum, name| sum.saturating_add(group.kb(name)));
        let anon_kb = group.kb("active_anon").saturating_add(group.kb("inactive_anon"));
        // A page table has an entry of 8 bytes for each page; a run has page tables as well.
        let page_kb = self.page_kb.max(4);
        let tables = anon_kb / (page_kb * page_kb * 128);
        let held = memory.usage_kb.saturating_sub(lists_kb).saturating_sub(tables * page_kb);
        if held > 0 {
            note(format!(
                "{held} kB of the group's usage are on no list (kernel memory, locked pages) and not \
                 in the run: its limit is less by them"
            ));
        }
        Some(kb.saturating_sub(held))
    }
}

/// The lists of a group in its statistics.
const LISTS: [&str; 4] = ["active_anon", "inactive_anon", "active_file", "inactive_file"];

impl ReportedGroup {
    /// A statistic in kB.
    fn kb(&self, name: &str) -> u64 {
        let entry = self.stat.iter().find(|(entry, _)| entry == name);
        entry.map_or(0, |(_, bytes)| bytes >> 10)
    }
}

impl ReportedLimit {
    /// `None`: no limit.
    fn limit(self) -> Option<u64> {
        Some(self.limit_kb).filter(|kb| *kb < UNLIMITED_KB)
    }
}

/// /proc/meminfo of a machine of which only a group is known.
fn machine_of(group: &ReportedGroup) -> MemInfo {
    let memory = group.memory.unwrap_or_default();
    let limit = memory.limit().unwrap_or(0);
    let total = limit.max(memory.usage_kb).max(64 << 10).saturating_mul(LIMITS_OF_A_MACHINE);
    let free = total.saturating_sub(memory.usage_kb).saturating_sub(total / KERNEL_PART);
    let entries = [
        ("MemTotal", total),
        ("MemFree", free),
        ("Active(anon)", group.kb("active_anon")),
        ("Inactive(anon)", group.kb("inactive_anon")),
        ("Active(file)", group.kb("active_file")),
        ("Inactive(file)", group.kb("inactive_file")),
    ];
    MemInfo { entries: entries.map(|(name, kb)| (name.to_owned(), kb)).into() }
}

/// The root, and the group below it with a limit in kB.
fn groups_of(group: &ReportedGroup, limit: Option<u64>) -> Vec<HostGroup> {
    let (version, prefix, control) = match group.memory_and_swap {
        Some(_) => (CgroupVersion::V1, "total_", GroupControl::LimitInBytes),
        None => (CgroupVersion::V2, "", GroupControl::Max),
    };
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
        usage: group.memory.map(|memory| memory.usage_kb.saturating_mul(1024)),
        stat: stat.collect(),
        ..make(path, Some(0))
    };
    vec![make("/", None), limited]
}

#[cfg(test)]
mod tests;
