//! Measures operation costs on a live machine: the machine performs a special scenario, and the
//! costs follow from its times.
//!
//! `scenario` is that scenario. It runs in a temporary directory (`directory`) and in temporary
//! groups (`own_group`), if there is enough free memory (`room`). `perform` starts the guest
//! program as an ordinary process. `pagetide-verify` computes the costs (`measure`), as for a
//! guest.
//!
//! Invariant: only our own files and groups are written, and they are removed in any case (after a
//! `kill -9` the next measurement removes the groups). Knobs of the machine are only read.

mod directory;
mod own_group;
mod perform;
mod room;
pub mod scenario;

use crate::error::LinuxError;
use crate::host::number::show_bytes;
use crate::host::snapshot::HostSnapshot;
use crate::reference::{KernelReference, ReferenceOrigin};
use crate::session::runnable_guest;
use own_group::OwnGroup;
use pagetide_scenario::load::{load, Overrides};
use pagetide_scenario::metric::KeyNames;
use pagetide_scenario::model::Setup;
use scenario::{HostAbilities, MIB_IN_ALL};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The name of the only variant.
const VARIANT: &str = "default";
/// Maximum number of repetitions; a median of fewer is not stable.
const RUNS: u64 = 15;
/// No repetition starts after this time, so that the measurement takes less than a minute.
const ENOUGH: Duration = Duration::from_secs(25);
/// The free memory must be this many times the memory used.
const SPARE: u64 = 2;
/// Possible sizes of a MiB of the scenario, in KiB.
const SCALES: [u64; 3] = [1024, 512, 256];

/// Times of the scenario's phases on this machine.
#[derive(Clone, Debug)]
pub struct LiveMeasurement {
    /// The scenario as performed, with this machine.
    pub setup: Setup,
    /// The measurements, a value for each repetition.
    pub reference: KernelReference,
    /// Sentences: which parts were not performed, and why.
    pub left_out: Vec<String>,
}

/// The files, groups and programs of a measurement.
#[derive(Debug)]
pub struct LiveBench {
    program: PathBuf,
    able: HostAbilities,
    left_out: Vec<String>,
    // Dropped first: the groups are charged for pages of these files.
    dir: TempDir,
    group: Option<OwnGroup>,
}

/// KiB for a MiB of the scenario, if `free` bytes are free.
fn scale(free: u64) -> Option<u64> {
    SCALES.into_iter().find(|kib| (MIB_IN_ALL * kib) << 10 <= free / SPARE)
}

/// The scale for this much memory, or the reason why there is none.
fn scale_for(free: Option<u64>, limit: Option<u64>) -> Result<u64, LinuxError> {
    let refuse = |why: String| LinuxError::NotHere(why);
    let free = free.ok_or_else(|| {
        refuse("/proc/zoneinfo does not show the free memory above the high watermarks".into())
    })?;
    let needed = (MIB_IN_ALL * SCALES[SCALES.len() - 1]) << 10;
    let too_little = |has: u64, what: &str| {
        refuse(format!(
            "{} {what}; measuring takes {} and needs {SPARE} times as much, so that it does not cause \
             reclaim elsewhere",
            show_bytes(has),
            show_bytes(needed)
        ))
    };
    scale(free).ok_or_else(|| too_little(free, "are free above the high watermarks"))?;
    let both = limit.map_or(free, |limit| limit.min(free));
    scale(both)
        .ok_or_else(|| too_little(both, "are left below the limits of this process's groups"))
}

impl LiveBench {
    /// Determines which parts can be performed on this machine, described by `host`, and prepares
    /// them.
    /// [`LinuxError::NotHere`] if nothing can be measured.
    pub fn prepare(host: &HostSnapshot, guest: Option<&Path>) -> Result<LiveBench, LinuxError> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            let why = "measuring needs Linux on x86-64";
            return Err(LinuxError::NotHere(why.to_owned()));
        }
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let (mountinfo, cgroup) = (read("/proc/self/mountinfo"), read("/proc/self/cgroup"));
        let hierarchy = own_group::hierarchy(&mountinfo, &cgroup);
        let first = room::groups_of_version_1(&mountinfo, &cgroup);
        let own = hierarchy.iter().flat_map(|it| &it.own).chain(&first).map(PathBuf::as_path);
        let kib = scale_for(room::free_above_watermarks(host), room::free_below_limits(own))?;
        let program = runnable_guest(guest)?;

        let mut left_out = Vec::new();
        let (dir, no_disk) = directory::make(&mountinfo)?;
        if let Some(why) = &no_disk {
            left_out.push(format!("file reads, file writes and reclaim of files: {why}"));
        }
        let group = match OwnGroup::make(hierarchy.as_ref(), (MIB_IN_ALL * kib) << 10) {
            Ok(group) => Some(group),
            Err(why) => {
                left_out.push(format!("reclaim, and charging to a group: {why}"));
                None
            }
        };
        let reclaim = group.as_ref().is_some_and(OwnGroup::has_reclaim);
        if group.is_some() && !reclaim {
            let what = "reclaim without allocation: memory.reclaim needs Linux 5.19";
            left_out.push(what.to_owned());
        }
        let able =
            HostAbilities { kib, groups: group.is_some(), reclaim, files: no_disk.is_none() };
        Ok(LiveBench { program, able, left_out, dir, group })
    }

    /// Performs the scenario repeatedly on the machine that `imported` describes. Calls `tell` at
    /// the start of each repetition, with its number.
    pub fn measure(
        self,
        imported: &Setup,
        host: &HostSnapshot,
        cancel: &AtomicBool,
        mut tell: impl FnMut(u64),
    ) -> Result<LiveMeasurement, LinuxError> {
        let begun = Instant::now();
        let setup = self.write_all()?;
        let mut records = Vec::new();
        while (records.len() as u64) < RUNS && begun.elapsed() < ENOUGH {
            let number = records.len() as u64 + 1;
            tell(number);
            let record = perform::perform(&self.program, self.dir.path(), &setup, number, cancel);
            if let Some(group) = &self.group {
                group.clear().map_err(|error| LinuxError::file(group.path(), error))?;
            }
            records.push(record?);
        }
        let release = host.release.as_deref();
        let origin = ReferenceOrigin {
            kernel: format!("Linux {}", release.unwrap_or("(unknown release)")),
            how: "this machine".to_owned(),
            ..ReferenceOrigin::default()
        };
        let setup = self.able.setup(imported, release);
        let names = KeyNames::of(&setup);
        let reference = KernelReference::new(scenario::NAME, VARIANT, origin, &names, &records);
        Ok(LiveMeasurement { setup, reference, left_out: self.left_out.clone() })
    }

    /// Writes the scenario, its files, and the wanted counters. Returns the setup as the guest
    /// program reads it.
    fn write_all(&self) -> Result<Setup, LinuxError> {
        let put = |name: &str, text: &str| {
            let path = self.dir.path().join(name);
            std::fs::write(&path, text).map_err(|error| LinuxError::file(&path, error))?;
            Ok::<PathBuf, LinuxError>(path)
        };
        let file = put(&format!("{}.toml", scenario::NAME), &self.able.text())?;
        let mut wishes = format!("scenario {}\nvariant {VARIANT}\n", file.display());
        if let Some(group) = &self.group {
            wishes += &format!("groups {}\n", group.path().display());
        }
        put("pagetide.conf", &wishes)?;
        let scenario = load(&file, &Overrides::default());
        let mut scenario = scenario.map_err(|errors| LinuxError::Scenario(errors.to_string()))?;
        let setup = scenario.variants.remove(0).setup;
        directory::fill(self.dir.path(), &setup)?;
        Ok(setup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_follows_what_is_free() {
        let mib = 1 << 20;
        let of =
            |free: u64, limit: Option<u64>| scale_for(Some(free * mib), limit.map(|it| it * mib));
        assert_eq!(of(10_000, None).unwrap(), 1024);
        assert_eq!(of(304, None).unwrap(), 1024);
        assert_eq!(of(303, None).unwrap(), 512);
        assert_eq!(of(10_000, Some(80)).unwrap(), 256);
        let said = |result: Result<u64, LinuxError>| result.unwrap_err().to_string();
        let few = said(of(70, Some(9)));
        assert!(
            few.contains("70.0 MiB are free above the high watermarks; measuring takes 38.0 MiB"),
            "{few}"
        );
        let limited = said(of(1000, Some(9)));
        assert!(limited.contains("9.0 MiB are left below the limits"), "{limited}");
        assert!(said(scale_for(None, None)).contains("/proc/zoneinfo does not show"));
    }
}
