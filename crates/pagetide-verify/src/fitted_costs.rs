//! The costs fitted to a recording of `machine-costs`, kept in a file next to it. A fit takes
//! seconds, longer than a case.
//!
//! The fit depends on the recording and on the counters of the simulator. The file names both by a
//! hash of the recording and the version of Pagetide. With another recording or another version the
//! file is ignored and the costs are fitted again.
//!
//! After a change of the simulator's counts within one version, delete the file or record again.
//!
//! Invariant: a file that is used holds what [`super::costs::of_reference`] would return. A test checks this for each
//! shipped file.

use crate::costs::FittedCosts;
use pagetide_linux::error::LinuxError;
use pagetide_linux::machine_costs::variant_name;
use pagetide_linux::reference::{scenario_hash, KernelReference};
use pagetide_scenario::model::costs::{MachineCosts, Price};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
struct FittedCostsFile {
    /// Version of Pagetide that fitted the costs.
    fitted_by: String,
    /// Hash of the recording.
    recording: String,
    /// Nanoseconds for one operation.
    costs: BTreeMap<String, u64>,
    /// Each equation and the ratio of the explained time to the measured one.
    explained: Vec<(String, f64)>,
}

/// The file in `dir` for a number of CPUs.
pub fn path(dir: &Path, cpus: u16) -> PathBuf {
    dir.join(format!("fitted-costs.{}.json", variant_name(cpus)))
}

fn hash(recording: &KernelReference) -> Option<String> {
    Some(scenario_hash(&serde_json::to_vec(recording).ok()?, &[], None))
}

/// The costs that were fitted to `recording` by this version, if they are in `dir`.
pub fn load(dir: &Path, cpus: u16, recording: &KernelReference) -> Option<FittedCosts> {
    let text = std::fs::read(path(dir, cpus)).ok()?;
    let file: FittedCostsFile = serde_json::from_slice(&text).ok()?;
    if file.fitted_by != env!("CARGO_PKG_VERSION") || file.recording != hash(recording)? {
        return None;
    }
    let mut costs = MachineCosts::default();
    for (name, ns) in file.costs {
        costs.set(Price::ALL.into_iter().find(|price| price.name() == name)?, ns);
    }
    Some(FittedCosts { costs, rows: file.explained })
}

/// Writes the costs fitted to `recording` into `dir`.
pub fn save(
    dir: &Path,
    cpus: u16,
    recording: &KernelReference,
    fitted: &FittedCosts,
) -> Result<(), LinuxError> {
    let path = path(dir, cpus);
    let file = FittedCostsFile {
        fitted_by: env!("CARGO_PKG_VERSION").to_owned(),
        recording: hash(recording).unwrap_or_default(),
        costs: fitted.costs.iter().map(|(price, ns)| (price.name().to_owned(), ns)).collect(),
        explained: fitted.rows.clone(),
    };
    let text = serde_json::to_string_pretty(&file).expect("numbers and names") + "\n";
    std::fs::write(&path, text).map_err(|error| LinuxError::file(&path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_testing::directory::TestDir;

    fn recording(seed: u64) -> KernelReference {
        let mut made = KernelReference::new(
            "machine-costs",
            "1cpu",
            Default::default(),
            &Default::default(),
            &[],
        );
        made.seeds.push(seed);
        made
    }

    #[test]
    fn kept_costs_are_used_only_for_their_recording() {
        let place = TestDir::new();
        let dir = place.directory.as_path();
        let mut fitted =
            FittedCosts { rows: vec![("t.fill".to_owned(), 1.03)], ..FittedCosts::default() };
        fitted.costs.set(Price::Fault, 417);
        assert_eq!(load(dir, 1, &recording(1)), None);
        save(dir, 1, &recording(1), &fitted).unwrap();
        assert_eq!(load(dir, 1, &recording(1)), Some(fitted));
        assert_eq!(load(dir, 1, &recording(2)), None, "another recording");
        assert_eq!(load(dir, 2, &recording(1)), None, "another number of CPUs");
        let file = path(dir, 1);
        let old = std::fs::read_to_string(&file).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        for new in [old.replace(version, "0.0.1"), old.replace("fault", "default"), "{".to_owned()]
        {
            std::fs::write(&file, new).unwrap();
            assert_eq!(load(dir, 1, &recording(1)), None);
        }
    }
}
