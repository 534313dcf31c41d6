//! The time that the guest's program needs to generate its operations, without performing them.
//!
//! This is user time of the program, not of the kernel: drawing the next page of a working set
//! takes longer than counting. Like disk times ([`crate::disk_times`]) it is transferred to the
//! simulator, so that its tasks are as busy between two accesses as the guest's, and costs of
//! kernel operations do not include it.
//!
//! Invariant: a phase without a measurement has no such time.

use pagetide_scenario::metric::declared::{self, MetricDecl};
use pagetide_scenario::metric::{KeyNames, MetricKey, Owner, Scope};
use pagetide_scenario::model::Setup;
use pagetide_scenario::record::Unit;
use std::collections::BTreeMap;

/// Sets the mean time of an operation in each phase of `setup`, over all runs.
pub fn apply(metrics: &BTreeMap<String, (Unit, Vec<Option<f64>>)>, setup: &mut Setup) {
    let names = KeyNames::of(setup);
    let mut found = Vec::new();
    for (task, model) in setup.tasks.iter().enumerate() {
        for (phase, of) in model.phases.iter().enumerate() {
            let scope = Scope::Phase { task: Owner::new(&model.name), phase: of.name.clone() };
            let sum = |metric: &MetricDecl| -> f64 {
                let key = MetricKey { scope: scope.clone(), name: metric.name.into() };
                let values = metrics.get(&names.text(&key)).map(|(_, values)| values);
                values.into_iter().flatten().flatten().sum()
            };
            let (seconds, operations) = (sum(declared::PROGRAM_TIME), sum(declared::OPERATIONS));
            if operations >= 1.0 && seconds > 0.0 {
                found.push((task, phase, (seconds / operations * 1e9) as u64));
            }
        }
    }
    setup.machine.program_times.of_phases = found;
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_testing::setup;

    #[test]
    fn a_phase_gets_the_mean_of_its_runs() {
        let text = "[machine]\nmemory = \"1GiB\"\n[[task]]\nname = \"t\"\n\
                    [[task.phase]]\nname = \"a\"\nworkload = \"touch\"\nsize = \"1MiB\"\n\
                    [[task.phase]]\nname = \"b\"\nworkload = \"touch\"\nsize = \"1MiB\"\n";
        let mut setup = setup(text);
        let mut metrics = BTreeMap::new();
        metrics
            .insert("t.b.program_time".to_owned(), (Unit::Seconds, vec![Some(3e-6), Some(5e-6)]));
        metrics.insert("t.b.operations".to_owned(), (Unit::Count, vec![Some(100.0); 2]));
        apply(&metrics, &mut setup);
        let times = &setup.machine.program_times;
        assert_eq!((times.of(0, 0), times.of(0, 1)), (0, 40));
    }
}
