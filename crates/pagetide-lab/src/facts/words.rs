//! The sentences of a verdict.
//!
//! Invariant: each sentence has the figures of both sides, in one unit, as the table prints them.

use super::verdict::{ended_tasks, Difference, VariantVerdict};
use crate::format::{counted, Scale};
use crate::report::Report;
use crate::stats::MeanChange;
use pagetide_scenario::record::{Incomplete, Unit};

/// Tasks that are named if their work ended early.
const MOST_TASKS: usize = 3;

/// Sentences on failed runs of a column, and on what ended its work early.
pub(super) fn incomplete_sentences(report: &Report, column: usize) -> Vec<String> {
    let mut said = Vec::new();
    let of = &report.columns[column];
    let failed = report.failures.iter().filter(|failure| failure.variant == of.name).count();
    let runs = report.plan.scenario.repeats as usize;
    if failed > 0 {
        said.push(format!("{failed} of {} failed", counted(runs.max(failed), "run")));
    } else if of.finished < runs && of.finished > 0 {
        said.push(format!("{} of {} were made", of.finished, counted(runs, "run")));
    } else if of.finished == 0 {
        said.push("no run was made".to_owned());
    }
    for found in report.ended_runs().iter().filter(|found| found.variant == of.name) {
        let tasks = ended_tasks(report, column, found.ended);
        let in_runs = |runs: usize| format!("in {runs} of {}", counted(found.finished, "run"));
        if found.ended == Incomplete::Cut {
            said.push(format!(
                "the time limit cut {} of {}: not compared",
                found.runs,
                counted(found.finished, "run")
            ));
            continue;
        }
        let (killer, nameless) = match found.ended {
            Incomplete::OomKilled => ("the OOM killer killed", "the OOM killer killed a task"),
            Incomplete::Refused => {
                ("out of memory with no task to kill ended", "a task ended for lack of memory")
            }
            Incomplete::IoError
            | Incomplete::Cut
            | Incomplete::Stopped
            | Incomplete::IncompleteRun => ("a read error killed", "a read error killed a task"),
        };
        if tasks.is_empty() {
            said.push(format!("{nameless} {}: not compared", in_runs(found.runs)));
            continue;
        }
        let mut named: Vec<String> = tasks
            .iter()
            .take(MOST_TASKS)
            .map(|(task, runs)| format!("{task} {}", in_runs(*runs)))
            .collect();
        if tasks.len() > MOST_TASKS {
            named.push(format!("{} more tasks", tasks.len() - MOST_TASKS));
        }
        said.push(format!("{killer} {}: not compared", named.join(", ")));
    }
    said
}

/// The sentences of a verdict, after the variant's name.
pub(super) fn sentence(report: &Report, verdict: &VariantVerdict) -> String {
    let findings = match verdict.column > 0 && report.columns[verdict.column].finished > 0 {
        true => findings(report, verdict).join(". "),
        false => String::new(),
    };
    let ended = verdict.ended.iter().map(String::as_str);
    let said: Vec<&str> = ended.chain([findings.as_str()]).filter(|it| !it.is_empty()).collect();
    format!("{}: {}.", verdict.variant, said.join("; "))
}

fn findings(report: &Report, verdict: &VariantVerdict) -> Vec<String> {
    let first = &report.columns[0].name;
    if report.columns[0].finished == 0 {
        return vec![format!("nothing to compare with: no run of {first} was made")];
    }
    let is_complete = |column: usize| report.incomplete(column).is_none();
    if is_complete(verdict.column) && !is_complete(0) {
        return vec![format!("nothing to compare with: {first} has incomplete runs")];
    }
    if verdict.compared == 0 {
        return Vec::new();
    }
    let is_one_run = verdict.is_one_run();
    let told = || verdict.gains.iter().chain(&verdict.costs).chain(&verdict.work);
    let list = |differences: &[Difference]| -> String {
        differences.iter().map(|it| in_words(it, false)).collect::<Vec<String>>().join(", ")
    };
    let mut said = Vec::new();
    if verdict.gains.is_empty() && verdict.costs.is_empty() {
        let significantly = if is_one_run { "" } else { "significantly " };
        said.push(format!("no outcome differs {significantly}from {first} (by 1 % or more)"));
        if let Some(unsure) = &verdict.unsure {
            said.push(format!("Closest: {}, not significant", in_words(unsure, false)));
        }
    } else if verdict.gains.is_empty() {
        said.push(format!(
            "no outcome is {}better than in {first}",
            if is_one_run { "" } else { "significantly " }
        ));
    } else {
        said.push(list(&verdict.gains));
    }
    if !verdict.costs.is_empty() {
        said.push(format!("Worse: {}", list(&verdict.costs)));
    } else if !verdict.gains.is_empty() && verdict.ended.is_empty() {
        said.push("Worse: none of the compared metrics".to_owned());
    }
    if !verdict.work.is_empty() {
        said.push(format!("Less work: {}", list(&verdict.work)));
    }
    if is_one_run {
        said.push(ONE_RUN.to_owned());
    } else if told().next().is_some() {
        let numbers = || told().map(|it| it.comparisons);
        let (least, most) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
        let most = counted(most, "comparison");
        let number =
            if numbers().all(|it| it == least) { most } else { format!("{least} to {most}") };
        let exceptions = told().any(|it| it.p.is_some_and(|p| p >= VERY_SURE));
        let unless = if exceptions { " unless stated" } else { "" };
        said.push(format!("p < {VERY_SURE}{unless}, corrected for {number}"));
    }
    said
}

/// Printed if a side has a single run.
pub const ONE_RUN: &str = "One run per variant: significance unknown";
/// A smaller p is not printed as a figure.
const VERY_SURE: f64 = 0.001;

/// `service.walltime 1.035 s instead of 17.18 s (-94 %)`; with p if it is not very small, or if
/// `every_p`.
pub fn in_words(difference: &Difference, every_p: bool) -> String {
    let (before, after) = (&difference.before, &difference.after);
    let values = [(before.mean, before.stddev), (after.mean, after.stddev)];
    let scale = Scale::new(difference.unit, &values);
    let print = |(mean, spread): (f64, f64)| scale.print(mean, spread).0;
    let unit = if scale.symbol.is_empty() { String::new() } else { format!(" {}", scale.symbol) };
    let mut about: Vec<String> = by_how_much(difference.change).into_iter().collect();
    match difference.p {
        Some(p) if p >= VERY_SURE => about.push(format!("p = {p:.3}")),
        Some(_) if every_p => about.push(format!("p < {VERY_SURE}")),
        Some(_) | None => {}
    }
    let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
    let [before, after] = values.map(print);
    // A time as a share of the run time of its task.
    let of =
        if difference.is_rate && difference.unit == Unit::Percent { " of its time" } else { "" };
    format!("{} {after}{unit} instead of {before}{unit}{of}{about}", difference.metric)
}

/// `-94 %`, `17 times as much`; nothing if one of the two values is zero.
fn by_how_much(change: MeanChange) -> Option<String> {
    match change {
        MeanChange::Percent(percent) if percent <= -100.0 => None,
        MeanChange::Percent(percent) if percent >= 900.0 => {
            Some(format!("{:.0} times as much", percent / 100.0 + 1.0))
        }
        MeanChange::Percent(percent) if percent < -99.9 => Some("by more than 99.9 %".to_owned()),
        MeanChange::Percent(percent) if percent.abs() < 10.0 || percent < -99.0 => {
            Some(format!("{percent:+.1} %"))
        }
        MeanChange::Percent(percent) => Some(format!("{percent:+.0} %")),
        MeanChange::New | MeanChange::Unknown => None,
    }
}
