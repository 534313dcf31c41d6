//! Comparisons without runs, for the tests of this module.

use super::VariantComparison;
use pagetide_lab::testing::{record, scenario};
use pagetide_scenario::model::{Phase, Setup, SleepWorkload, Task, TaskStart, Workload};

/// A setup with these phases (`TASK.PHASE`), one task per phase.
pub fn setup(phases: &[&str]) -> Setup {
    let mut setup = scenario(&["v"]).variants.remove(0).setup;
    setup.tasks = phases
        .iter()
        .map(|key| key.rsplit_once('.').unwrap())
        .map(|(task, phase)| Task {
            name: task.to_owned(),
            group: None,
            start: TaskStart { delay_ns: 0, after: None },
            background: false,
            until: None,
            nice: 0,
            oom_score_adj: 0,
            loops: 1,
            phases: vec![Phase {
                name: phase.to_owned(),
                workload: Workload::Sleep(SleepWorkload { ns: 1 }),
            }],
        })
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
