//! The kernel's selftests of memory as scenarios (experiments/selftests): their assertions hold.
//!
//! The short form runs each once on the scenario's machine. With `PAGETIDE_SELFTESTS=long` each
//! runs with 1, 2 and 8 CPUs and 5 seeds: 15 runs.

use pagetide_lab::execute::execute;
use pagetide_lab::expect;
use pagetide_lab::plan::RunPlan;
use pagetide_lab::report::Report;
use pagetide_lab::world::Simulator;
use pagetide_scenario::load::{load, Overrides};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Expectations that do not hold yet: scenario, text of the expectation, and reason.
const OPEN: [(&str, &str, &str); 0] = [];

fn selftests() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(pagetide_testing::root().join("experiments/selftests"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|it| it == "toml")).collect();
    found.sort();
    assert!(found.len() >= 15, "{found:?}");
    found
}

/// Runs a scenario; returns the number of expectations, and those that fail.
fn failures(file: &Path, cpus: Option<u32>, repeats: u32) -> (usize, Vec<(String, String)>) {
    let sets = cpus.map(|cpus| ("machine.cpus".to_owned(), cpus.to_string()));
    let overrides = Overrides {
        sets: sets.into_iter().collect(),
        repeats: Some(repeats),
        ..Overrides::default()
    };
    let scenario = load(file, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(!scenario.expectations.is_empty(), "{} expects nothing", file.display());
    let plan = RunPlan::new(scenario).unwrap();
    let jobs = NonZeroUsize::new(2).unwrap();
    let runs = execute(&plan, &Simulator::default(), jobs, &Arc::default(), &|_| {});
    let report = Report::new(plan, &runs);
    assert!(report.failures.is_empty(), "{}: {:?}", file.display(), report.failures);
    let judged = expect::of_report(&report);
    let failed = judged.iter().filter(|judged| !judged.holds());
    let failed = failed.map(|judged| (judged.expectation.text.clone(), judged.sentence()));
    (judged.len(), failed.collect())
}

#[test]
fn the_assertions_of_the_kernels_selftests_hold() {
    let long = std::env::var("PAGETIDE_SELFTESTS").is_ok_and(|form| form == "long");
    let machines: &[(Option<u32>, u32)] =
        if long { &[(Some(1), 5), (Some(2), 5), (Some(8), 5)] } else { &[(None, 1)] };
    let (mut all, mut wrong) = (0, Vec::new());
    let mut met: Vec<bool> = vec![true; OPEN.len()];
    for file in selftests() {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        for &(cpus, repeats) in machines {
            let (expected, failed) = failures(&file, cpus, repeats);
            all += expected;
            for (text, sentence) in failed {
                match OPEN.iter().position(|open| open.0 == name && open.1 == text) {
                    Some(open) => met[open] = false,
                    None => wrong.push(format!("{name}, {cpus:?} CPUs: {sentence}")),
                }
            }
        }
    }
    println!("{all} expectations, {} do not hold", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Some fail only with several CPUs.
    let done: Vec<_> = OPEN.iter().zip(met).filter(|(_, met)| *met).map(|(open, _)| open).collect();
    assert!(!long || done.is_empty(), "these hold now; remove them: {done:?}");
}
