//! A small scenario and records without a simulator, for this crate's tests.

use crate::execute::{JobOutcome, RunResult};
use crate::plan::{RunJob, RunPlan};
use crate::report::{MetricSeries, Report};
use crate::world::{Failure, FailureCause};
use pagetide_scenario::build::Builder;
use pagetide_scenario::metric::KeyNames;
use pagetide_scenario::model::{Phase, Scenario, Setup, SleepWorkload, Task, Variant, Workload};
use pagetide_scenario::record::{Metric, RunRecord, Unit};

/// Metric keys with their values.
pub type TestMetrics<'a> = &'a [(&'a str, f64)];

/// A scenario named `fake`, seed 1, three repeats, with these variants and nothing to do.
pub fn scenario(variants: &[&str]) -> Scenario {
    let task = Builder::new().set("name", "main").set("workload", "sleep").set("duration", "1ms");
    let machine = Builder::new().set("machine.memory", "2GiB").set("machine.cpus", 2);
    let mut setup = machine.push("task", task).setup().expect("it is sound");
    setup.tasks.clear();
    setup.machine.disks.clear();
    Scenario {
        name: "fake".to_owned(),
        bases: Vec::new(),
        title: "A world that is not there".to_owned(),
        description: String::new(),
        repeats: 3,
        seed: 1,
        variants: variants
            .iter()
            .map(|&name| Variant { name: name.to_owned(), sets: Vec::new(), setup: setup.clone() })
            .collect(),
        rows: vec![],
        reference: None,
        expectations: Vec::new(),
        fuzz_knobs: Vec::new(),
    }
}

/// A task that sleeps in these phases.
pub fn task(name: &str, phases: &[&str]) -> Task {
    let workload = Workload::Sleep(SleepWorkload { ns: 1 });
    let phase = |name: &&str| Phase { name: (*name).to_owned(), workload: workload.clone() };
    Task::new(name, phases.iter().map(phase).collect())
}

/// A record of `fake`; the unit follows the metric's name.
pub fn record(variant: &str, seed: u64, metrics: TestMetrics<'_>) -> RunRecord {
    let unit = |key: &str| match key.rsplit('.').next().unwrap_or(key) {
        "walltime" | "alloc_latency_p99" => Unit::Seconds,
        "throughput" => Unit::BytesPerSecond,
        "rss" => Unit::Bytes,
        _ => Unit::Count,
    };
    RunRecord {
        version: crate::VERSION.to_owned(),
        metrics: metrics
            .iter()
            .map(|&(key, value)| (key.to_owned(), Metric::new(value, unit(key))))
            .collect(),
        digest: seed,
        ..RunRecord::new("fake", variant, seed)
    }
}

/// A report with one run (seed 1) for each variant.
pub fn report(runs: &[(&str, TestMetrics<'_>)]) -> Report {
    let seeds: Vec<(&str, Vec<TestMetrics<'_>>)> =
        runs.iter().map(|(name, metrics)| (*name, vec![*metrics])).collect();
    report_of(&seeds)
}

/// A report with one run for each seed, from 1.
pub fn report_of(variants: &[(&str, Vec<TestMetrics<'_>>)]) -> Report {
    let names: Vec<&str> = variants.iter().map(|(name, _)| *name).collect();
    let repeats = variants.iter().map(|(_, seeds)| seeds.len()).max().unwrap_or(1) as u32;
    let mut scenario = scenario(&names);
    scenario.repeats = repeats;
    let plan = RunPlan::new(scenario).unwrap();
    let all = variants.iter().flat_map(|(_, seeds)| seeds.iter().copied().flatten());
    let names = KeyNames::of_walltimes(all.map(|(key, _)| *key));
    let mut runs = Vec::new();
    for (variant, (name, seeds)) in variants.iter().enumerate() {
        for (seed, metrics) in (1..).zip(seeds) {
            let outcome = JobOutcome::Finished(Box::new(record(name, seed, metrics)));
            runs.push(RunResult { job: RunJob { variant, seed }, outcome });
        }
    }
    Report::with_names(plan, names, &runs)
}

/// The report with this setup in all variants.
pub fn with_setup(mut report: Report, setup: &Setup) -> Report {
    let names = KeyNames::of(setup);
    for variant in &mut report.plan.scenario.variants {
        variant.setup = setup.clone();
    }
    for column in &mut report.columns {
        let all = std::mem::take(&mut column.series).into_iter();
        column.series = all.map(|(key, of)| (names.key(&report.names.text(&key)), of)).collect();
    }
    report.keys.iter_mut().for_each(|(text, key)| *key = names.key(text));
    report.names = names;
    report
}

/// The series of the key with this text.
pub fn series_mut<'a>(report: &'a mut Report, column: usize, text: &str) -> &'a mut MetricSeries {
    report.columns[column].series.get_mut(&report.keys[text]).expect("the column has it")
}

/// A failure of the run.
pub fn failure(message: &str) -> Failure {
    Failure { message: message.to_owned(), hint: None, cause: FailureCause::Run }
}
