//! Measures operation costs on the guest's kernel with a special scenario, for a given number of
//! CPUs.
//!
//! A phase of that scenario performs mostly one operation, or several in varying proportions. The
//! record has the CPU time of the task and of kswapd in each phase. The simulator counts the
//! operations in the same scenario (`pagetide-verify`, `costs`). The file keeps the record and
//! not the costs: costs depend on which operations the simulator counts, and can be recomputed.
//!
//! Invariant: a recording belongs to one kernel, one way to run it, and one number of CPUs.

use crate::error::LinuxError;
use crate::reference::{file_name, scenario_hash, KernelReference, ReferenceOrigin};
use crate::session::{KernelSession, SessionJob, SessionOptions};
use pagetide_scenario::load::{load_str, Overrides};
use pagetide_scenario::metric::KeyNames;
use pagetide_scenario::model::Setup;
use std::path::Path;

const TEXT: &str = include_str!("machine-costs.toml");
/// Name of the scenario and of the recordings.
pub const NAME: &str = "machine-costs";
/// Seeds: one run suffices with one CPU; with several CPUs time is the host's, so more runs are
/// needed.
const SEEDS: [u64; 3] = [1, 2, 3];

/// Names of the recordings, in place of variants.
pub fn variant_name(cpus: u16) -> String {
    if cpus == 1 {
        "1cpu".to_owned()
    } else {
        format!("{cpus}cpus")
    }
}

fn overrides(cpus: u16) -> Overrides {
    let cpus = ("machine.cpus".to_owned(), cpus.to_string());
    Overrides { sets: vec![cpus], ..Overrides::default() }
}

/// The scenario's setup on a machine with `cpus` CPUs.
pub fn setup(cpus: u16) -> Setup {
    let loaded = load_str(NAME, TEXT, Path::new(""), &overrides(cpus));
    let mut scenario = loaded.expect("the built-in scenario is valid");
    scenario.variants.remove(0).setup
}

/// The key that determines costs: the kernel and the way to run it, but not its memory.
pub fn recording_key(origin: &ReferenceOrigin) -> (String, String) {
    let way = origin.how.rsplit_once(", ").map_or(origin.how.as_str(), |(way, _memory)| way);
    (origin.kernel.clone(), way.to_owned())
}

/// The recording in `dir` for this number of CPUs, if there is one of the same kernel, run in the
/// same way, with the current scenario. Times of other phases would be misinterpreted.
pub fn recorded(
    dir: &Path,
    cpus: u16,
    origin: &ReferenceOrigin,
) -> Result<Option<KernelReference>, LinuxError> {
    let variant = variant_name(cpus);
    if !dir.join(file_name(NAME, &variant)).exists() {
        return Ok(None);
    }
    let reference = KernelReference::load(dir, NAME, &variant)?;
    let now = scenario_hash(TEXT.as_bytes(), &overrides(cpus).sets, None);
    let is_of_this = |it: &KernelReference| {
        let hash = &it.origin.scenario_hash;
        recording_key(&it.origin) == recording_key(origin) && (hash.is_empty() || *hash == now)
    };
    Ok(Some(reference).filter(is_of_this))
}

/// Performs the scenario on a kernel in QEMU: once with one CPU, a few times with several.
pub fn measure(cpus: u16, options: &SessionOptions) -> Result<KernelReference, LinuxError> {
    let dir = tempfile::Builder::new()
        .prefix("pagetide-costs-")
        .tempdir()
        .map_err(|error| LinuxError::file(&std::env::temp_dir(), error))?;
    let file = dir.path().join(format!("{NAME}.toml"));
    std::fs::write(&file, TEXT).map_err(|error| LinuxError::file(&file, error))?;
    let overrides = overrides(cpus);
    let loaded = load_str(NAME, TEXT, Path::new(""), &overrides);
    let scenario = loaded.map_err(|errors| LinuxError::Scenario(errors.to_string()))?;
    let sets = overrides.sets.as_slice();
    let variant = &scenario.variants[0];
    let job = SessionJob { file: &file, bases: &[], scenario: NAME, variant, sets, added: None };
    let session = KernelSession::boot(job, options)?;
    let seeds = if cpus == 1 { &SEEDS[..1] } else { &SEEDS };
    let records = seeds.iter().map(|seed| session.run(*seed)).collect::<Result<Vec<_>, _>>()?;
    let (origin, names) = (session.origin.clone(), KeyNames::of(&variant.setup));
    Ok(KernelReference::new(NAME, &variant_name(cpus), origin, &names, &records))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::start::{StartMemory, StartZone};

    #[test]
    fn the_scenario_is_sound_on_any_number_of_cpus() {
        for cpus in [1, 2, 16] {
            assert_eq!(setup(cpus).machine.cpus, cpus);
        }
        assert_eq!((variant_name(1), variant_name(2)), ("1cpu".to_owned(), "2cpus".to_owned()));
        let none = recorded(Path::new("/nowhere at all"), 1, &ReferenceOrigin::default());
        assert!(none.is_ok_and(|none| none.is_none()));
    }

    #[test]
    fn a_recording_is_of_one_kernel_and_one_way_to_run_it() {
        let origin = |kernel: &str, accelerator: &str, mib: u32| ReferenceOrigin {
            kernel: kernel.to_owned(),
            how: format!("QEMU 7.2.22, {accelerator}, 1 CPU, {mib} MiB"),
            start: StartMemory {
                zones: vec![StartZone::default()],
                min_free_kbytes: 7,
                ..StartMemory::default()
            },
            ..ReferenceOrigin::default()
        };
        let dir = tempfile::tempdir().unwrap();
        let mut made = KernelReference::new(
            NAME,
            "1cpu",
            origin("Linux 6.1", "KVM", 256),
            &KeyNames::default(),
            &[],
        );
        made.seeds.push(SEEDS[0]);
        made.save(dir.path()).unwrap();
        let is_found = |of: &ReferenceOrigin| recorded(dir.path(), 1, of).unwrap().is_some();
        assert!(is_found(&origin("Linux 6.1", "KVM", 512)), "memory does not matter");
        assert!(!is_found(&origin("Linux 6.1", "emulation, 1 instruction = 1 ns", 256)));
        assert!(!is_found(&origin("Linux 6.12", "KVM", 256)));
    }
}
