//! Facts in words.
//!
//! Invariant: each sentence of a verdict has the figures of both sides, in one unit, as the table
//! prints them.

use super::groups::{GroupLoss, ReclaimCause, LITTLE_MEMORY};
use super::times::{KswapdTime, TaskWaits, WaitTimes, MEMORY};
use super::verdict::{Difference, VariantVerdict};
use super::{RunFact, LITTLE, WORTH_NAMING};
use crate::format::{counted, shown, Scale};
use crate::heading::wrap;
use crate::report::{IncompleteRuns, Report, ReportColumn};
use crate::stats::MeanChange;
use pagetide_scenario::metric::Scope;
use pagetide_scenario::record::{Incomplete, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// The waits of [`MEMORY`].
const MEMORY_WAITS: [&str; MEMORY.len()] = [
    "for evicted pages",
    "re-reading evicted file pages",
    "reclaiming",
    "throttled in reclaim",
    "throttled above memory.high",
];
/// Tasks that are named if their work ended early.
const MOST_TASKS: usize = 3;

/// The sentences in lines of at most `width` characters; each starts a line. Empty without runs.
pub fn render(report: &Report, width: usize) -> String {
    let mut out = String::new();
    let mut label = "\nwhy  ";
    for sentence in super::sentences(report) {
        for line in wrap(&sentence, width.saturating_sub(5).max(20)) {
            out += &format!("{label}{line}\n");
            label = "     ";
        }
    }
    out
}

/// The sentence of a fact.
pub(super) fn of_run(report: &Report, fact: &RunFact) -> String {
    let within = |column: usize| match report.columns.len() {
        1 => String::new(),
        _ => format!(" in {}", report.columns[column].name),
    };
    // A phrase that is said once, with the first figure.
    let mut once = String::new();
    match fact {
        RunFact::NoWaits => "No task waited for memory for more than 0.1 % of the run.".to_owned(),
        RunFact::Waits(of) => {
            let said = of.by_column.iter().map(|(at, it)| waits(it, &within(*at)));
            format!("{}{}: waited for memory {}.", of.task, means(of), joined(said, "; "))
        }
        RunFact::Kswapd(of) => {
            once += " of the run";
            let said = of.iter().map(|(at, it)| kswapd(it, &mut once, &within(*at)));
            format!("kswapd: awake {}.", joined(said, ", "))
        }
        RunFact::NoLoss(khugepaged) => {
            let grew = khugepaged.map_or(String::new(), |(at, of)| {
                format!("; khugepaged allocated {}{}", bytes(of), within(at))
            });
            format!("No group lost memory to reclaim{grew}.")
        }
        RunFact::Loss(group, of) => {
            once += " to reclaim";
            let said = of.iter().map(|(at, it)| loss(it, &mut once, &within(*at)));
            format!("group {group}: lost {}.", joined(said, "; "))
        }
        RunFact::Slab(group, of) => {
            once = format!(" of group {group}");
            let said = of.iter().map(|(at, (slab, whole))| {
                let of = std::mem::take(&mut once);
                format!("{} of the {}{of}{}", bytes(*slab), bytes(*whole), within(*at))
            });
            format!("slab: at the end {}.", joined(said, "; "))
        }
    }
}

fn joined(texts: impl Iterator<Item = String>, between: &str) -> String {
    texts.collect::<Vec<String>>().join(between)
}

/// ` (mean of the copies and of 8 threads)`.
fn means(of: &TaskWaits) -> String {
    let threads = match (of.threads.first(), of.threads.last()) {
        (_, None | Some(1)) => None,
        (Some(few), Some(many)) if few == many => Some(format!("{many} threads")),
        _ => Some("the threads".to_owned()),
    };
    let copies = of.has_copies.then(|| "the copies".to_owned());
    match copies.into_iter().chain(threads).collect::<Vec<String>>().as_slice() {
        [] => String::new(),
        over => format!(" (mean of {})", over.join(" and of ")),
    }
}

/// `7.4 s of 60 s in none (7.4 s for evicted pages), for disks 20 s (its throughput 1.5 MiB/s), was
/// throttled for dirty pages 9 s (by its group's limits)`.
fn waits(of: &WaitTimes, within: &str) -> String {
    let waited = of.for_memory();
    let mut whole = format!(" of {}", seconds(of.walltime));
    let mut text = if waited <= LITTLE * of.walltime {
        let little = if waited == 0.0 { "not at all" } else { "hardly at all" };
        format!("{little}{within}")
    } else {
        let mut parts: Vec<(&f64, &str)> = of.memory.iter().zip(MEMORY_WAITS).collect();
        parts.retain(|(part, _)| **part >= WORTH_NAMING * waited);
        parts.sort_by(|a, b| b.0.total_cmp(a.0));
        let parts = parts.iter().map(|(part, words)| format!("{} {words}", seconds(**part)));
        let whole = std::mem::take(&mut whole);
        format!("{}{whole}{within} ({})", seconds(waited), joined(parts, ", "))
    };
    if let Some(disks) = of.for_disks() {
        text += &format!(", for disks {}{}", seconds(disks), std::mem::take(&mut whole));
        if of.throughput > 0.0 {
            let rate = shown(Unit::BytesPerSecond, of.throughput);
            text += &format!(" (its throughput {rate})");
        }
    }
    if let Some(throttled) = of.throttled() {
        let limits = of.dirty.iter().zip(["the machine's", "its group's"]);
        let limits = limits.filter(|(by, _)| **by >= WORTH_NAMING * throttled);
        let by = joined(limits.map(|(_, whose)| whose.to_owned()), " and ");
        let throttled = seconds(throttled);
        text += &format!(", was throttled for dirty pages {throttled}{whole} (by {by} limits)");
    }
    text
}

/// `57 % of the run in none (mostly working)`.
fn kswapd(of: &KswapdTime, whole: &mut String, within: &str) -> String {
    if of.busy < LITTLE {
        return format!("hardly ever{within}");
    }
    let [working, disk, writeback] = of.parts;
    let mut parts = [
        (working, "working"),
        (disk, "waiting for the disk"),
        (writeback, "waiting for writeback"),
        // Linux: the nap of HZ/10 in kswapd_try_to_sleep().
        (
            of.awake - working - disk - writeback,
            "idle for up to 0.1 s before it goes to sleep, or waiting for a CPU",
        ),
    ];
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let [(most, doing), (second, other), ..] = parts;
    let share = |part: f64| percent(part / of.awake);
    let doing = match most > of.awake / 2.0 {
        true => format!("mostly {doing}"),
        false => format!("{} {doing}, {} {other}", share(most), share(second)),
    };
    format!("{}{}{within} ({doing})", percent(of.busy), std::mem::take(whole))
}

/// `38 MiB to reclaim in none (mostly by tasks: a group was at its limit) while job allocated 1
/// GiB`.
fn loss(of: &GroupLoss, to: &mut String, within: &str) -> String {
    if of.bytes < LITTLE_MEMORY {
        return format!("next to nothing{within}");
    }
    let causes = of.causes.iter().map(|cause| match cause {
        ReclaimCause::Limit => "a group was at its limit".to_owned(),
        ReclaimCause::LoweredLimit => "its limit was lowered".to_owned(),
        ReclaimCause::Machine => "the machine was short of memory".to_owned(),
        ReclaimCause::Request => "memory.reclaim was written".to_owned(),
    });
    let by = match of.by_kswapd > 0.5 {
        true => format!("{} by kswapd: the machine was short of memory", percent(of.by_kswapd)),
        false => format!("mostly by tasks: {}", joined(causes, ", and ")),
    };
    let mut text = format!("{}{}{within} ({by})", bytes(of.bytes), std::mem::take(to));
    for (group, too) in &of.others {
        text += &format!(", group {group} {}", bytes(*too));
    }
    if let Some((task, allocated)) = &of.allocator {
        text += &format!(" while {task} allocated {}", bytes(*allocated));
    }
    text
}

fn seconds(value: f64) -> String {
    shown(Unit::Seconds, value)
}

fn bytes(value: f64) -> String {
    shown(Unit::Bytes, value)
}

/// A share in whole per cent.
fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 1.0 => "less than 1 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// Sentences on failed runs of a column, and on what ended its work early.
pub(super) fn incomplete_sentences(report: &Report, column: usize) -> Vec<String> {
    let column = &report.columns[column];
    let failed = report.failures.iter().filter(|failure| failure.variant == column.name).count();
    let runs = report.plan.scenario.repeats as usize;
    let missing = match (failed, column.finished) {
        (0, 0) => Some("no run was made".to_owned()),
        (0, made) if made >= runs => None,
        (0, made) => Some(format!("{made} of {} were made", counted(runs, "run"))),
        _ => Some(format!("{failed} of {} failed", counted(runs.max(failed), "run"))),
    };
    let ended = report.ended_runs().into_iter().filter(|found| found.variant == column.name);
    missing.into_iter().chain(ended.map(|found| early_end(column, &found))).collect()
}

fn early_end(column: &ReportColumn, found: &IncompleteRuns) -> String {
    let in_runs = |runs: usize| format!("in {runs} of {}", counted(found.finished, "run"));
    let (killer, nameless) = match found.ended {
        Incomplete::Cut => {
            let of = counted(found.finished, "run");
            return format!("the time limit cut {} of {of}: not compared", found.runs);
        }
        Incomplete::OomKilled => ("the OOM killer killed", "the OOM killer killed a task"),
        Incomplete::Signalled => ("a watcher killed", "a watcher killed a task"),
        Incomplete::Refused => {
            ("out of memory with no task to kill ended", "a task ended for lack of memory")
        }
        Incomplete::IoError | Incomplete::Stopped | Incomplete::IncompleteRun => {
            ("a read error killed", "a read error killed a task")
        }
    };
    // The runs of each task that ended early, copies together.
    let mut tasks: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for (key, series) in &column.series {
        let Scope::Task(owner) = &key.scope else { continue };
        let of_end = series.samples.iter().filter(|it| it.ended == Some(found.ended));
        of_end.for_each(|it| _ = tasks.entry(&owner.name).or_default().insert(it.seed));
    }
    if tasks.is_empty() {
        return format!("{nameless} {}: not compared", in_runs(found.runs));
    }
    let named = tasks.iter().take(MOST_TASKS);
    let mut named: Vec<String> =
        named.map(|(task, seeds)| format!("{task} {}", in_runs(seeds.len()))).collect();
    if tasks.len() > MOST_TASKS {
        named.push(format!("{} more tasks", tasks.len() - MOST_TASKS));
    }
    format!("{killer} {}: not compared", named.join(", "))
}

/// The sentences of a verdict, after the variant's name.
pub(super) fn sentence(report: &Report, verdict: &VariantVerdict) -> String {
    let findings = match verdict.column > 0 && report.columns[verdict.column].finished > 0 {
        true => findings(report, verdict).join(". "),
        false => String::new(),
    };
    let said = verdict.ended.iter().cloned().chain([findings]);
    format!("{}: {}.", verdict.variant, joined(said.filter(|it| !it.is_empty()), "; "))
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
    let in_words = |it: &Difference| format!("{} {}", it.metric, figures(it, false));
    let list = |of: &[Difference]| joined(of.iter().map(in_words), ", ");
    let significantly = if is_one_run { "" } else { "significantly " };
    let mut said = Vec::new();
    if verdict.gains.is_empty() && verdict.costs.is_empty() {
        said.push(format!("no outcome differs {significantly}from {first} (by 1 % or more)"));
        if let Some(unsure) = &verdict.unsure {
            said.push(format!("Closest: {}, not significant", in_words(unsure)));
        }
    } else if verdict.gains.is_empty() {
        said.push(format!("no outcome is {significantly}better than in {first}"));
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
        let exceptions = told().any(|it| it.p.is_some_and(|p| p.0 >= VERY_SURE));
        let unless = if exceptions { " unless stated" } else { "" };
        said.push(format!("p < {VERY_SURE}{unless}, corrected for {number}"));
    }
    said
}

/// Printed if a side has a single run.
pub const ONE_RUN: &str = "One run per variant: significance unknown";
/// A smaller p is not printed as a figure.
const VERY_SURE: f64 = 0.001;

/// `1.035 s instead of 17.18 s (-94 %)`, after the name of the metric; with p if it is not very small, or if
/// `every_p`.
pub fn figures(difference: &Difference, every_p: bool) -> String {
    let (before, after) = (&difference.before, &difference.after);
    let values = [(before.mean, before.stddev), (after.mean, after.stddev)];
    let scale = Scale::new(difference.unit, &values);
    let print = |(mean, spread): (f64, f64)| scale.print(mean, spread).0;
    let unit = if scale.symbol.is_empty() { String::new() } else { format!(" {}", scale.symbol) };
    let mut about: Vec<String> = by_how_much(difference.change).into_iter().collect();
    match difference.p.map(|p| p.0) {
        Some(p) if p >= VERY_SURE => about.push(format!("p = {p:.3}")),
        Some(_) if every_p => about.push(format!("p < {VERY_SURE}")),
        Some(_) | None => {}
    }
    let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
    let [before, after] = values.map(print);
    // A time as a share of the run time of its task.
    let of = if difference.of.time.is_some() && difference.unit == Unit::Percent {
        " of its time"
    } else {
        ""
    };
    format!("{after}{unit} instead of {before}{unit}{of}{about}")
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
