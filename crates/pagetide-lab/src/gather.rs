//! Records that were made elsewhere or earlier, as a report: those of a store, those of files.

use crate::execute::{Outcome, Run};
use crate::plan::{Job, Plan};
use crate::report::Report;
use pagetide_scenario::build::Builder;
use pagetide_scenario::model::{Scenario, Setup, Variant};
use pagetide_scenario::record::RunRecord;

/// A report with a column for each name. `scenario` is what it is called; what was run is not known here, so that
/// the report's plan has setups without anything in them.
pub fn report(scenario: &str, columns: Vec<(String, Vec<RunRecord>)>) -> Report {
    let seeds = || columns.iter().flat_map(|(_, records)| records.iter().map(|record| record.seed));
    let seed = seeds().min().unwrap_or(1);
    let repeats = columns.iter().map(|(_, records)| records.len()).max().unwrap_or(1);
    let setup = nothing();
    let scenario = Scenario {
        name: scenario.to_owned(),
        title: scenario.to_owned(),
        description: String::new(),
        repeats: u32::try_from(repeats).unwrap_or(u32::MAX),
        seed,
        variants: columns
            .iter()
            .map(|(name, _)| Variant { name: name.clone(), setup: setup.clone() })
            .collect(),
        rows: Vec::new(),
        reference: None,
    };
    let mut runs = Vec::new();
    for (variant, (_, mut records)) in columns.into_iter().enumerate() {
        records.sort_by_key(|record| record.seed);
        runs.extend(records.into_iter().map(|record| Run {
            job: Job { variant, seed: record.seed },
            outcome: Outcome::Finished(Box::new(record)),
        }));
    }
    Report::new(Plan { scenario, overrides: Vec::new() }, &runs)
}

/// A setup of next to nothing: who reads a report of gathered records does not look at it.
fn nothing() -> Setup {
    let task = Builder::new().set("name", "main").set("workload", "sleep").set("duration", "1ms");
    let machine = Builder::new().set("machine.memory", "1GiB");
    let mut setup = machine.push("task", task).setup().expect("a machine that sleeps is sound");
    setup.tasks.clear();
    setup
}
