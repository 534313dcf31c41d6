//! Comparisons without runs, for the tests of this module.

use super::VariantComparison;
use pagetide_lab::testing::{record, scenario, task};
use pagetide_scenario::model::Setup;

/// A setup with these phases (`TASK.PHASE`), one task per phase.
pub fn setup(phases: &[&str]) -> Setup {
    let mut setup = scenario(&["v"]).variants.remove(0).setup;
    setup.tasks = phases
        .iter()
        .map(|key| key.rsplit_once('.').unwrap())
        .map(|(name, phase)| task(name, &[phase]))
        .collect();
    setup
}

/// One run on each side of the phases `t.p` and `a.late`: key, Linux, Pagetide.
pub fn compared(values: &[(&str, f64, f64)]) -> VariantComparison {
    let linux: Vec<(&str, f64)> = values.iter().map(|(key, value, _)| (*key, *value)).collect();
    let pagetide: Vec<(&str, f64)> = values.iter().map(|(key, _, value)| (*key, *value)).collect();
    let setup = setup(&["t.p", "a.late"]);
    VariantComparison::new(
        "v",
        &setup,
        false,
        &[record("v", 1, &linux)],
        &[record("v", 1, &pagetide)],
    )
}
