//! Facts of a report, as typed values: the task that waited for memory or for disks, or was
//! throttled for dirty pages; the time of kswapd; the group that lost memory, and the task that
//! allocated then; the slab of a group; and the metrics that differ between variants
//! ([`verdicts`]).
//!
//! [`words`] puts facts into sentences. The command, JSON, HTML pages and Python print these.
//!
//! Invariant: each figure of a [`RunFact`] is the mean of a metric over the seeds, or a sum or share
//! of such means. It has those of the first variant, and of the one that differs most from it.

mod candidates;
mod groups;
mod times;
pub mod verdict;
#[cfg(test)]
mod verdict_tests;
pub mod words;

use crate::report::Report;
use groups::GroupLoss;
use pagetide_scenario::metric::declared::MetricDecl;
use pagetide_scenario::metric::{MetricKey, Owner, Scope};
use std::collections::BTreeSet;
pub use times::summed_over_threads;
use times::{KswapdTime, TaskWaits};
pub use verdict::verdicts;
pub use words::render;

/// Smaller shares are not told.
const LITTLE: f64 = 0.001;
/// A part is named if it is at least this share of the whole.
const WORTH_NAMING: f64 = 0.1;

/// A fact, with its figures by column.
enum RunFact {
    /// No task waited for memory for more than [`LITTLE`] of the run.
    NoWaits,
    Waits(TaskWaits),
    Kswapd(Vec<(usize, KswapdTime)>),
    /// No group lost memory; bytes of khugepaged, if it allocated most.
    NoLoss(Option<(usize, f64)>),
    Loss(Owner, Vec<(usize, GroupLoss)>),
    /// Bytes of slab, and of all memory of the group, at the end.
    Slab(Owner, Vec<(usize, (f64, f64))>),
}

/// The sentences of all facts but the verdicts; empty without runs.
pub fn sentences(report: &Report) -> Vec<String> {
    if report.columns.is_empty() || !report.has_data() {
        return Vec::new();
    }
    let finder = FactFinder { report };
    let others = [finder.kswapd(), finder.groups(), finder.slab()].into_iter().flatten();
    finder.waits().into_iter().chain(others).map(|fact| words::of_run(report, &fact)).collect()
}

struct FactFinder<'a> {
    report: &'a Report,
}

impl FactFinder<'_> {
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

    /// The largest value of a variant.
    fn most(&self, value: impl Fn(usize) -> f64) -> f64 {
        (0..self.report.columns.len()).map(value).fold(0.0, f64::max)
    }

    /// The tasks or groups of all variants, copies together.
    fn owners(&self, is_task: bool) -> Vec<Owner> {
        let setups = self.report.plan.scenario.variants.iter().map(|variant| &variant.setup);
        let names = setups.flat_map(|setup| -> Vec<&String> {
            match is_task {
                true => setup.tasks.iter().map(|task| &task.name).collect(),
                false => setup.groups.iter().map(|group| &group.name).collect(),
            }
        });
        let mut seen = BTreeSet::new();
        let families = names.map(|name| Owner::new(name).family());
        families.filter(|family| seen.insert(family.clone())).collect()
    }

    /// A fact about the first variant and about the one that differs most from it in `value`.
    fn compared<T>(
        &self,
        value: impl Fn(usize) -> f64,
        fact: impl Fn(usize) -> T,
    ) -> Vec<(usize, T)> {
        let first = value(0);
        let far = |column: &usize| (value(*column) - first).abs();
        let mut furthest: Option<usize> = None;
        for column in 1..self.report.columns.len() {
            let is_further = furthest.is_none_or(|best| far(&column) > far(&best));
            if is_further && self.report.columns[column].finished > 0 {
                furthest = Some(column);
            }
        }
        [0].into_iter().chain(furthest).map(|column| (column, fact(column))).collect()
    }
}

/// The last of those with the largest value.
fn largest<T>(all: &[T], value: impl Fn(&T) -> f64) -> Option<&T> {
    all.iter().max_by(|a, b| value(a).total_cmp(&value(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{report, with_setup, TestMetrics};
    use pagetide_scenario::build::Builder;

    /// The sentences about such a service.
    fn of_service(threads: i64, metrics: TestMetrics<'_>) -> Vec<String> {
        sentences(&service(threads, &[("a", metrics)]))
    }

    /// A service with these threads, and its metrics by variant.
    fn service(threads: i64, variants: &[(&str, TestMetrics<'_>)]) -> Report {
        let task = Builder::new().set("name", "web").set("workload", "service").set("rate", 10);
        let task = task.set("threads", threads).set("duration", "1s").set("cpu", "1ms");
        let machine = Builder::new().set("machine.memory", "2GiB").push("task", task);
        with_setup(report(variants), &machine.setup().unwrap())
    }

    #[test]
    fn waits_of_threads_are_means_because_the_walltime_is_no_sum() {
        let of = [("elapsed", 10.0), ("web.walltime", 10.0), ("web.stall_reclaim", 4.0)];
        let waited = "waited for memory 1.000 s of 10.00 s (1.000 s reclaiming).";
        assert_eq!(of_service(4, &of)[0], format!("web (mean of 4 threads): {waited}"));
        // The row of the metric is a sum.
        let mut report = service(4, &[("a", &of)]);
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
        assert_eq!(
            sentences(&report(&[("a", &of)]))[0],
            "kswapd: awake 50 % of the run (mostly idle for up to 0.1 s before it goes to sleep, or \
             waiting for a CPU)."
        );
    }

    #[test]
    fn a_little_waiting_is_not_none() {
        let of =
            |stall: f64| [("elapsed", 1.0), ("web.walltime", 1.0), ("web.stall_reclaim", stall)];
        let said = |before: f64| {
            sentences(&service(1, &[("a", &of(before)), ("b", &of(0.5))])).swap_remove(0)
        };
        let none = "web: waited for memory not at all in a; 500.0 ms of 1.000 s in b";
        assert!(said(0.0).starts_with(none));
        let little = said(0.000_235);
        assert!(little.starts_with("web: waited for memory hardly at all in a; 500.0 ms"));
    }
}
