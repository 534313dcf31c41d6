//! The sentences under the table: which task waited for memory or for disks, or was throttled for
//! dirty pages, how busy kswapd was, which group lost memory and which task allocated then, what
//! slab holds. They compare the first variant with the one that differs most from it.
//!
//! Invariant: each figure is the mean of a metric over the seeds, or a sum or share of such means.

mod candidates;
mod groups;
pub mod verdict;
#[cfg(test)]
mod verdict_tests;
pub mod words;

use crate::format::shown;
use crate::heading::wrap;
use crate::report::Report;
use crate::rows;
use pagetide_scenario::metric::declared::{self, MetricDecl};
use pagetide_scenario::metric::{MetricKey, Owner, Scope};
use pagetide_scenario::record::Unit;
use std::collections::BTreeSet;

/// Smaller shares get no sentence.
const LITTLE: f64 = 0.001;
/// A part is named if it is at least this share of the whole.
const WORTH_NAMING: f64 = 0.1;

/// A task is slowed down if its rate differs by this factor.
const SLOWED: f64 = 2.0;

/// Reasons to wait for memory: the metric of a task, in words. A writer that is throttled because
/// too many pages are dirty waits for a disk ([`DIRTY`]).
const WAITS: [(&MetricDecl, &str); 5] = [
    (declared::STALL_REFAULT, "for evicted pages"),
    (declared::STALL_REREAD, "re-reading evicted file pages"),
    (declared::STALL_RECLAIM, "reclaiming"),
    (declared::STALL_THROTTLED, "throttled in reclaim"),
    (declared::STALL_HIGH, "throttled above memory.high"),
];

const DIRTY: [(&MetricDecl, &str); 2] =
    [(declared::STALL_DIRTY, "the machine's"), (declared::STALL_DIRTY_GROUP, "its group's")];

/// The sentences in lines of at most `width` characters; each starts a line. Empty without runs.
pub fn render(report: &Report, width: usize) -> String {
    let mut out = String::new();
    for (number, sentence) in sentences(report).iter().enumerate() {
        let label = if number == 0 { "why  " } else { "     " };
        let lines = wrap(sentence, width.saturating_sub(label.len()).max(20));
        for (line, text) in lines.iter().enumerate() {
            let label = if line == 0 { label } else { "     " };
            out += &format!("{label}{text}\n");
        }
    }
    match out.is_empty() {
        true => out,
        false => format!("\n{out}"),
    }
}

/// The task of a wait that is a sum over several threads, and not the mean that the sentences have.
pub fn summed_over_threads(report: &Report, key: &MetricKey) -> Option<String> {
    let Scope::Task(task) = &key.scope else { return None };
    let is_wait = key.name.starts_with("stall_") || key.name == declared::DISK_WAIT.name;
    let facts = Facts { report };
    let threads = |column| facts.threads(column, &task.family());
    let is_sum = is_wait && (0..report.columns.len()).any(|column| threads(column) > 1);
    is_sum.then(|| task.to_string())
}

pub fn sentences(report: &Report) -> Vec<String> {
    if report.columns.is_empty() || !report.has_data() {
        return Vec::new();
    }
    let facts = Facts { report };
    let others = facts.kswapd().into_iter().chain(facts.groups()).chain(facts.slab());
    facts.stalls().into_iter().chain(others).collect()
}

struct Facts<'a> {
    report: &'a Report,
}

impl Facts<'_> {
    fn value(&self, column: usize, key: &MetricKey) -> f64 {
        let summary = self.report.shown_summary(column, key);
        summary.map_or(0.0, |summary| summary.mean).max(0.0)
    }

    fn of_machine(&self, column: usize, metric: &MetricDecl) -> f64 {
        self.value(column, &Scope::Machine.metric(metric))
    }

    /// The metric of a task, or of all its copies.
    fn of_task(&self, column: usize, task: &Owner, metric: &MetricDecl) -> f64 {
        self.value(column, &Scope::Task(task.clone()).metric(metric))
    }

    /// The tasks or groups of all variants, copies together.
    fn owners(&self, is_task: bool) -> Vec<Owner> {
        let mut seen = BTreeSet::new();
        let mut owners = Vec::new();
        for variant in &self.report.plan.scenario.variants {
            let names: Vec<&str> = match is_task {
                true => variant.setup.tasks.iter().map(|task| task.name.as_str()).collect(),
                false => variant.setup.groups.iter().map(|group| group.name.as_str()).collect(),
            };
            for name in names {
                let family = Owner::new(name).family();
                if seen.insert(family.clone()) {
                    owners.push(family);
                }
            }
        }
        owners
    }

    fn has_copies(&self, task: &Owner) -> bool {
        let tasks = self.report.plan.scenario.variants.iter().flat_map(|it| &it.setup.tasks);
        let mut owners = tasks.map(|task| Owner::new(&task.name));
        owners.any(|owner| owner.family() == *task && owner.copy.is_some())
    }

    /// Threads of the task, or of each copy, in a variant.
    fn threads(&self, column: usize, task: &Owner) -> u32 {
        let tasks = self.report.plan.scenario.variants[column].setup.tasks.iter();
        let of_family = tasks.filter(|it| Owner::new(&it.name).family() == *task);
        let phases = of_family.flat_map(|task| &task.phases);
        phases.map(|phase| phase.workload.threads()).max().unwrap_or(1)
    }

    /// The first variant, and the one that differs most from it in `value`.
    fn compared(&self, value: impl Fn(usize) -> f64) -> Vec<usize> {
        let first = value(0);
        let far = |column: &usize| (value(*column) - first).abs();
        let others = 1..self.report.columns.len();
        let mut furthest: Option<usize> = None;
        for column in others.filter(|column| self.report.columns[*column].finished > 0) {
            if furthest.is_none_or(|best| far(&column) > far(&best)) {
                furthest = Some(column);
            }
        }
        std::iter::once(0).chain(furthest).collect()
    }

    fn in_variant(&self, column: usize) -> String {
        match self.report.columns.len() {
            1 => String::new(),
            _ => format!(" in {}", self.report.columns[column].name),
        }
    }

    /// A wait of a task. The metric is a sum over threads, and its walltime is not: the mean.
    fn wait(&self, column: usize, task: &Owner, metric: &MetricDecl) -> f64 {
        let sum = self.of_task(column, task, metric);
        sum / f64::from(self.threads(column, task))
    }

    fn waited(&self, column: usize, task: &Owner) -> f64 {
        WAITS.iter().map(|(metric, _)| self.wait(column, task, metric)).sum()
    }

    /// The task that the table is about: the measured one, that of the first row of a task, or the
    /// first service.
    fn subject(&self, tasks: &[Owner]) -> Option<Owner> {
        let rows = rows::rows(self.report);
        let family = |row: &MetricKey| row.scope.owner().map(Owner::family);
        let task = |row: &MetricKey| family(row).filter(|family| tasks.contains(family));
        let measured = self.report.plan.scenario.variants.iter().find_map(|variant| {
            let task = variant.setup.measure?;
            Some(Owner::new(&variant.setup.tasks[task].name).family())
        });
        let named = !self.report.plan.scenario.rows.is_empty();
        let serves = |task: &&Owner| {
            (0..self.report.columns.len())
                .any(|it| self.of_task(it, task, declared::REQUESTS) > 0.0)
        };
        measured
            .or_else(|| rows.iter().find_map(task).filter(|_| named))
            .or_else(|| tasks.iter().find(serves).cloned())
    }

    /// Waits of the task that the table is about, of the one that waited longest for memory, of the
    /// one that was throttled longest for dirty pages, and of the one that disks slowed down most.
    fn stalls(&self) -> Vec<String> {
        let tasks = self.owners(true);
        let columns = || 0..self.report.columns.len();
        let most =
            |task: &Owner| columns().map(|column| self.waited(column, task)).fold(0.0, f64::max);
        let Some(longest) = tasks.iter().max_by(|a, b| most(a).total_cmp(&most(b))) else {
            return Vec::new();
        };
        let elapsed =
            columns().map(|it| self.of_machine(it, declared::ELAPSED)).fold(0.0, f64::max);
        let is_short = most(longest) > LITTLE * elapsed;
        let other = |task: &&Owner| {
            columns().any(|it| self.reading(it, task).or(self.dirtying(it, task)).is_some())
        };
        let subject = self.subject(&tasks);
        let subject = subject.as_ref().filter(|task| is_short || other(task));
        let waiting = Some(longest).filter(|_| is_short);
        let throttled =
            |task: &Owner| columns().filter_map(|it| self.dirtying(it, task)).fold(0.0, f64::max);
        let writer = tasks.iter().max_by(|a, b| throttled(a).total_cmp(&throttled(b)));
        let writer = writer.filter(|task| throttled(task) > 0.0);
        let mut told: Vec<&Owner> = Vec::new();
        let others = writer.into_iter().chain(self.slowed(&tasks));
        for task in subject.into_iter().chain(waiting).chain(others) {
            if !told.contains(&task) {
                told.push(task);
            }
        }
        let none = "No task waited for memory for more than 0.1 % of the run.".to_owned();
        let none = Some(none).filter(|_| !is_short);
        none.into_iter().chain(told.into_iter().map(|task| self.stall(task))).collect()
    }

    /// The task whose rate differs most between the first variant and another, if it waits for
    /// disks in the slower one.
    fn slowed<'t>(&self, tasks: &'t [Owner]) -> Option<&'t Owner> {
        let factor = |task: &Owner| {
            let rate = |column: usize| self.of_task(column, task, declared::THROUGHPUT);
            let of = |column: usize| {
                let (slow, fast) = if rate(0) < rate(column) { (0, column) } else { (column, 0) };
                let waits = rate(slow) > 0.0 && self.reading(slow, task).is_some();
                if waits {
                    rate(fast) / rate(slow)
                } else {
                    0.0
                }
            };
            (1..self.report.columns.len()).map(of).fold(0.0, f64::max)
        };
        let most = tasks.iter().max_by(|a, b| factor(a).total_cmp(&factor(b)));
        most.filter(|task| factor(task) >= SLOWED)
    }

    /// `web (mean of 8 threads): waited for memory 7.4 s of 60 s in none (7.4 s for evicted pages).`
    fn stall(&self, longest: &Owner) -> String {
        let threads: BTreeSet<u32> =
            (0..self.report.columns.len()).map(|it| self.threads(it, longest)).collect();
        let mut over = Vec::new();
        if self.has_copies(longest) {
            over.push("the copies".to_owned());
        }
        match (threads.first(), threads.last()) {
            (_, None | Some(1)) => {}
            (Some(few), Some(many)) if few == many => over.push(format!("{many} threads")),
            _ => over.push("the threads".to_owned()),
        }
        let about = match over.is_empty() {
            true => String::new(),
            false => format!(" (mean of {})", over.join(" and of ")),
        };
        let all = |column| {
            let dirty = self.throttled(column, longest);
            self.waited(column, longest) + dirty + self.disk_wait(column, longest)
        };
        let waits = self.compared(all).into_iter().map(|column| self.waits(column, longest));
        let waits: Vec<String> = waits.collect();
        format!("{longest}{about}: waited for memory {}.", waits.join("; "))
    }

    /// `7.4 s of 60 s in none (7.4 s for evicted pages), for disks 20 s (its throughput 1.5 MiB/s), was
    /// throttled for dirty pages 9 s (by its group's limits)`.
    fn waits(&self, column: usize, task: &Owner) -> String {
        let waited = self.waited(column, task);
        let walltime = self.of_task(column, task, declared::WALLTIME);
        let in_variant = self.in_variant(column);
        let of = format!(" of {}", seconds(walltime));
        let mut text = if waited <= LITTLE * walltime {
            let little = if waited == 0.0 { "not at all" } else { "hardly at all" };
            format!("{little}{in_variant}")
        } else {
            let wait = |metric: &MetricDecl| self.wait(column, task, metric);
            let mut parts: Vec<(f64, &str)> =
                WAITS.iter().map(|(metric, words)| (wait(metric), *words)).collect();
            parts.retain(|(part, _)| *part >= WORTH_NAMING * waited);
            parts.sort_by(|a, b| b.0.total_cmp(&a.0));
            let parts: Vec<String> =
                parts.iter().map(|(part, words)| format!("{} {words}", seconds(*part))).collect();
            format!("{}{of}{in_variant} ({})", seconds(waited), parts.join(", "))
        };
        if let Some(reading) = self.reading(column, task) {
            let of = if text.contains(&of) { "" } else { &of };
            text += &format!(", for disks {}{of}", seconds(reading));
            let rate = self.of_task(column, task, declared::THROUGHPUT);
            if rate > 0.0 {
                text += &format!(" (its throughput {})", shown(Unit::BytesPerSecond, rate));
            }
        }
        if let Some(throttled) = self.dirtying(column, task) {
            let of = if text.contains(&of) { "" } else { &of };
            let limits = DIRTY
                .iter()
                .filter(|(metric, _)| self.wait(column, task, metric) >= WORTH_NAMING * throttled);
            let limits: Vec<&str> = limits.map(|(_, whose)| *whose).collect();
            let by = format!("by {} limits", limits.join(" and "));
            text += &format!(", was throttled for dirty pages {}{of} ({by})", seconds(throttled));
        }
        text
    }

    /// Pauses because too many pages were dirty.
    fn throttled(&self, column: usize, task: &Owner) -> f64 {
        DIRTY.iter().map(|(metric, _)| self.wait(column, task, metric)).sum()
    }

    /// [`Facts::throttled`], if it is worth naming.
    fn dirtying(&self, column: usize, task: &Owner) -> Option<f64> {
        let walltime = self.of_task(column, task, declared::WALLTIME);
        let throttled = self.throttled(column, task);
        Some(throttled).filter(|it| *it > 0.0 && *it >= WORTH_NAMING * walltime)
    }

    /// Waits for disks that are not due to a lack of memory.
    fn disk_wait(&self, column: usize, task: &Owner) -> f64 {
        self.wait(column, task, declared::DISK_WAIT)
    }

    /// [`Facts::disk_wait`], if it is worth naming.
    fn reading(&self, column: usize, task: &Owner) -> Option<f64> {
        let walltime = self.of_task(column, task, declared::WALLTIME);
        Some(self.disk_wait(column, task)).filter(|it| *it > 0.0 && *it >= WORTH_NAMING * walltime)
    }

    /// `kswapd: awake 57 % of the run in none (mostly working), 36 % in low (mostly working).`
    fn kswapd(&self) -> Option<String> {
        let busy = |column: usize| {
            let elapsed = self.of_machine(column, declared::ELAPSED);
            let nodes = self.report.plan.scenario.variants[column].setup.machine.nodes.len();
            match elapsed > 0.0 {
                true => {
                    self.of_machine(column, declared::TIME_KSWAPD) / elapsed / nodes.max(1) as f64
                }
                false => 0.0,
            }
        };
        if (0..self.report.columns.len()).all(|column| busy(column) < LITTLE) {
            return None;
        }
        let mut of = " of the run";
        let mut shares: Vec<String> = Vec::new();
        for column in self.compared(busy) {
            let in_variant = self.in_variant(column);
            if busy(column) < LITTLE {
                shares.push(format!("hardly ever{in_variant}"));
                continue;
            }
            let awake = self.of_machine(column, declared::TIME_KSWAPD);
            let cpu = self.of_machine(column, declared::CPU_KSWAPD);
            let disk = self.of_machine(column, declared::TIME_KSWAPD_DISK);
            let throttled = self.of_machine(column, declared::TIME_KSWAPD_THROTTLED);
            let rest = awake - cpu - disk - throttled;
            let parts = [
                (cpu, "working"),
                (disk, "waiting for the disk"),
                (throttled, "waiting for writeback"),
                // Linux: the nap of HZ/10 in kswapd_try_to_sleep().
                (rest, "idle for up to 0.1 s before it goes to sleep, or waiting for a CPU"),
            ];
            let doing = mostly(&parts, awake);
            shares.push(format!("{}{of}{in_variant} ({doing})", percent(busy(column))));
            of = "";
        }
        Some(format!("kswapd: awake {}.", shares.join(", ")))
    }
}

/// `mostly X` if one part is more than half of `whole`, else the two largest parts.
fn mostly(parts: &[(f64, &str)], whole: f64) -> String {
    let mut parts = parts.to_vec();
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let share = |part: f64| percent(part / whole);
    match parts.as_slice() {
        [(most, doing), ..] if *most > whole / 2.0 => format!("mostly {doing}"),
        [(first, one), (second, other), ..] => {
            format!("{} {one}, {} {other}", share(*first), share(*second))
        }
        _ => String::new(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{report, with_setup, TestMetrics};
    use pagetide_scenario::build::Builder;

    /// The sentences about such a service.
    fn of_service(threads: i64, metrics: TestMetrics<'_>) -> Vec<String> {
        sentences(&service(threads, metrics))
    }

    /// A service with these threads and metrics, in one variant.
    fn service(threads: i64, metrics: TestMetrics<'_>) -> Report {
        let task = Builder::new().set("name", "web").set("workload", "service").set("rate", 10);
        let task = task.set("threads", threads).set("duration", "1s").set("cpu", "1ms");
        let machine = Builder::new().set("machine.memory", "2GiB").push("task", task);
        with_setup(report(&[("a", metrics)]), &machine.setup().unwrap())
    }

    #[test]
    fn waits_of_threads_are_means_because_the_walltime_is_no_sum() {
        let of = [("elapsed", 10.0), ("web.walltime", 10.0), ("web.stall_reclaim", 4.0)];
        let waited = "waited for memory 1.000 s of 10.00 s (1.000 s reclaiming).";
        assert_eq!(of_service(4, &of)[0], format!("web (mean of 4 threads): {waited}"));
        // The row of the metric is a sum.
        let mut report = service(4, &of);
        report.plan.scenario.rows = vec!["web.stall_reclaim".to_owned()];
        assert!(crate::table::body(&report).contains("waits: sums over the threads of web"));
    }

    #[test]
    fn a_writer_that_is_throttled_for_dirty_pages_does_not_wait_for_memory() {
        let of = [("elapsed", 10.0), ("web.walltime", 10.0), ("web.stall_dirty", 4.0)];
        let said = of_service(1, &of);
        assert_eq!(said[0], "No task waited for memory for more than 0.1 % of the run.");
        let throttled =
            "was throttled for dirty pages 4.000 s of 10.00 s (by the machine's limits).";
        assert_eq!(said[1], format!("web: waited for memory not at all, {throttled}"));
    }

    #[test]
    fn a_kswapd_that_waits_for_more_work_says_so() {
        let of = [("elapsed", 10.0), ("time_kswapd_awake", 5.0), ("cpu_kswapd", 0.5)];
        let sides: [(&str, TestMetrics<'_>); 1] = [("a", &of)];
        assert_eq!(
            sentences(&report(&sides))[0],
            "kswapd: awake 50 % of the run (mostly idle for up to 0.1 s before it goes to sleep, or \
             waiting for a CPU)."
        );
    }

    #[test]
    fn a_little_waiting_is_not_none() {
        let of = |stall: f64| {
            [("elapsed", 1.0), ("batch.walltime", 1.0), ("batch.stall_reclaim", stall)]
        };
        let said = |before: f64| {
            let (before, after) = (of(before), of(0.5));
            let sides: [(&str, TestMetrics<'_>); 2] = [("a", &before), ("b", &after)];
            let task =
                Builder::new().set("name", "batch").set("workload", "sleep").set("duration", "1ms");
            let machine = Builder::new().set("machine.memory", "2GiB").push("task", task);
            sentences(&with_setup(report(&sides), &machine.setup().unwrap())).remove(0)
        };
        assert!(said(0.0)
            .starts_with("batch: waited for memory not at all in a; 500.0 ms of 1.000 s in b"));
        assert!(
            said(0.000_235).starts_with("batch: waited for memory hardly at all in a; 500.0 ms")
        );
    }
}
