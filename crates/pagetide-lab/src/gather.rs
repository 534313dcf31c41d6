//! A report from existing records, of a store or of files.

use crate::execute::{JobOutcome, RunResult};
use crate::plan::{RunJob, RunPlan};
use crate::report::Report;
use crate::rows;
use pagetide_scenario::build::Builder;
use pagetide_scenario::metric::declared::WALLTIME;
use pagetide_scenario::metric::{KeyNames, MetricKey, Scope};
use pagetide_scenario::model::{Scenario, Setup, Variant};
use pagetide_scenario::record::RunRecord;
use std::collections::BTreeSet;

/// A report with one column per name. `scenario` is the title. The setups of the plan are empty,
/// because records do not have them.
pub fn report(scenario: &str, columns: Vec<(String, Vec<RunRecord>)>) -> Report {
    let seeds = || columns.iter().flat_map(|(_, records)| records.iter().map(|record| record.seed));
    let seed = seeds().min().unwrap_or(1);
    let repeats = columns.iter().map(|(_, records)| records.len()).max().unwrap_or(1);
    let setup = empty_setup();
    let scenario = Scenario {
        name: scenario.to_owned(),
        bases: Vec::new(),
        title: scenario.to_owned(),
        description: String::new(),
        repeats: u32::try_from(repeats).unwrap_or(u32::MAX),
        seed,
        variants: columns
            .iter()
            .map(|(name, _)| Variant { name: name.clone(), sets: Vec::new(), setup: setup.clone() })
            .collect(),
        rows: Vec::new(),
        reference: None,
        expectations: Vec::new(),
        fuzz_knobs: Vec::new(),
    };
    let mut runs = Vec::new();
    for (variant, (_, mut records)) in columns.into_iter().enumerate() {
        records.sort_by_key(|record| record.seed);
        runs.extend(records.into_iter().map(|record| RunResult {
            job: RunJob { variant, seed: record.seed },
            outcome: JobOutcome::Finished(Box::new(record)),
        }));
    }
    let records = runs.iter().filter_map(|run| match &run.outcome {
        JobOutcome::Finished(record) => Some(record),
        JobOutcome::Failed(_) | JobOutcome::Cancelled => None,
    });
    let texts = records.flat_map(|record| record.metrics.keys().map(String::as_str));
    let names = KeyNames::of_walltimes(texts);
    let plan = RunPlan { scenario, overrides: Vec::new(), added: Vec::new() };
    let mut report = Report::with_names(plan, names, &runs);
    report.plan.scenario.rows = rows(&report).iter().map(|key| report.text(key)).collect();
    report
}

/// The default rows, without redundant walltimes: of the only phase of a task, and of each of
/// several copies.
fn rows(report: &Report) -> Vec<MetricKey> {
    let mut shown = rows::rows(report);
    let walltimes = shown.iter().filter(|key| key.name == WALLTIME.name);
    let measured: BTreeSet<Scope> = walltimes.map(|key| key.scope.clone()).collect();
    let says_more = |scope: &Scope| match scope {
        Scope::Phase { task, .. } => {
            let is_its = |it: &&Scope| matches!(it, Scope::Phase { task: of, .. } if of == task);
            let is_alone = !measured.contains(&Scope::Task(task.clone()));
            is_alone || measured.iter().filter(is_its).count() > 1
        }
        scope => scope.family().is_none_or(|family| !measured.contains(&family)),
    };
    shown.retain(|key| key.name != WALLTIME.name || says_more(&key.scope));
    shown
}

/// An empty setup.
fn empty_setup() -> Setup {
    let task = Builder::new().set("name", "main").set("workload", "sleep").set("duration", "1ms");
    let machine = Builder::new().set("machine.memory", "1GiB");
    let mut setup = machine.push("task", task).setup().expect("a machine that sleeps is sound");
    setup.tasks.clear();
    setup
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;

    #[test]
    fn redundant_walltimes_are_no_rows() {
        let walltimes = [
            "a.walltime",
            "a.main.walltime",
            "b.walltime",
            "b.load.walltime",
            "b.serve.walltime",
            "c.walltime",
            "c.0.walltime",
            "c.0.main.walltime",
            "c.1.walltime",
            "c.main.walltime",
        ];
        let metrics: Vec<(&str, f64)> = walltimes.iter().map(|key| (*key, 1.0)).collect();
        let report = report("s", vec![("x".to_owned(), vec![record("x", 3, &metrics)])]);
        let expected =
            ["a.walltime", "b.load.walltime", "b.serve.walltime", "b.walltime", "c.walltime"];
        assert_eq!(report.plan.scenario.rows, expected);
        assert_eq!((report.plan.scenario.seed, report.columns[0].finished), (3, 1));
    }
}
