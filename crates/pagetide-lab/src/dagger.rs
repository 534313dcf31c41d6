//! Which values of a table are marked with a dagger and not compared: values of incomplete runs.
//!
//! Invariant: all rows of a variant are marked if one of its runs is incomplete. A run whose task
//! was killed did less work, so every counter of it looks better.

use crate::report::Report;
use pagetide_scenario::metric::declared::WALLTIME;
use pagetide_scenario::metric::Owner;
use pagetide_scenario::model::Task;
use pagetide_scenario::record::Incomplete;
use std::collections::BTreeSet;

/// Marks a value that is not compared.
pub(crate) const DAGGER: &str = "\u{2020}";

/// Why a value is not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DaggerReason {
    /// A run of the variant did not finish its work.
    Run(Incomplete),
    /// The walltime of a background task that still ran when the run ended.
    Background,
}

impl DaggerReason {
    fn reason(self) -> &'static str {
        match self {
            DaggerReason::Run(Incomplete::OomKilled) => "killed by the OOM killer",
            DaggerReason::Run(Incomplete::IoError) => "killed by a read error",
            DaggerReason::Run(Incomplete::Cut) => "cut by the time limit",
            DaggerReason::Background => "background task cut by the end of the run",
        }
    }
}

/// `† incomplete (killed by the OOM killer): not compared`.
pub(crate) fn legend(reasons: &BTreeSet<DaggerReason>) -> String {
    let reasons: Vec<&str> = reasons.iter().map(|it| it.reason()).collect();
    format!("{DAGGER} incomplete ({}): not compared", reasons.join(", "))
}

/// Decides for each value of a report whether it is compared.
pub(crate) struct Daggers<'a> {
    report: &'a Report,
    /// One per column.
    incomplete: Vec<Option<Incomplete>>,
}

impl<'a> Daggers<'a> {
    pub(crate) fn new(report: &'a Report) -> Daggers<'a> {
        let columns = 0..report.columns.len();
        Daggers { report, incomplete: columns.map(|it| report.incomplete(it)).collect() }
    }

    /// Why `key` of `column` is not compared; `None`: it is.
    pub(crate) fn of(&self, column: usize, key: &str) -> Option<DaggerReason> {
        let run = self.incomplete[column].map(DaggerReason::Run);
        run.or_else(|| self.is_of_stopped_task(column, key).then_some(DaggerReason::Background))
    }

    /// Whether `key` is the walltime of a background task that still ran at the end of a run: then
    /// the record has no walltime of its last phase. (A task with `loops` that stops in a later
    /// loop has one, and is not found; a task with `until` ends when it is meant to.)
    fn is_of_stopped_task(&self, column: usize, key: &str) -> bool {
        let Some(name) = key.strip_suffix(WALLTIME.name).and_then(|it| it.strip_suffix('.')) else {
            return false;
        };
        let series = &self.report.columns[column].series;
        let seeds = |owner: &str| -> BTreeSet<u64> {
            let series = series.get(&format!("{owner}.{}", WALLTIME.name));
            series.into_iter().flat_map(|it| &it.samples).map(|sample| sample.seed).collect()
        };
        let is_it =
            |task: &&Task| task.name == name || Owner::new(&task.name).family().name == name;
        let tasks = &self.report.plan.scenario.variants[column].setup.tasks;
        tasks.iter().filter(|task| task.background && task.until.is_none()).filter(is_it).any(
            |task| {
                let Some(last) = task.phases.last() else { return false };
                !seeds(&task.name).is_subset(&seeds(&format!("{}.{}", task.name, last.name)))
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{report_of, TestMetrics};
    use pagetide_scenario::build::Builder;

    #[test]
    fn one_killed_task_marks_all_rows_of_its_variant() {
        let run: TestMetrics<'_> =
            &[("batch.walltime", 8.0), ("web.walltime", 4.0), ("pswpin", 7.0)];
        let mut report = report_of(&[("a", vec![run, run]), ("b", vec![run, run])]);
        report.columns[1].series.get_mut("batch.walltime").unwrap().samples[1].ended =
            Some(Incomplete::OomKilled);
        let daggers = Daggers::new(&report);
        for key in ["batch.walltime", "web.walltime", "pswpin"] {
            assert_eq!(daggers.of(0, key), None, "{key}");
            assert_eq!(daggers.of(1, key), Some(DaggerReason::Run(Incomplete::OomKilled)), "{key}");
        }
        let reasons = [DaggerReason::Run(Incomplete::OomKilled), DaggerReason::Background];
        assert_eq!(
            legend(&reasons.into()),
            "\u{2020} incomplete (killed by the OOM killer, background task cut by the end of the run): not compared"
        );
    }

    #[test]
    fn a_background_task_that_the_end_of_the_run_stops_has_no_walltime() {
        const STOPPED: TestMetrics<'_> =
            &[("log.walltime", 9.0), ("log.fill.walltime", 1.0), ("web.walltime", 9.0)];
        const DONE: TestMetrics<'_> =
            &[("log.walltime", 3.0), ("log.rest.walltime", 2.0), ("web.walltime", 9.0)];
        let mut report = report_of(&[("a", vec![DONE, DONE]), ("b", vec![DONE, STOPPED])]);
        let sleep = |name: &str| {
            Builder::new().set("name", name).set("workload", "sleep").set("duration", "1ms")
        };
        let log = Builder::new().set("name", "log").set("background", true);
        let log = log.push("phase", sleep("fill")).push("phase", sleep("rest"));
        let machine = Builder::new().set("machine.memory", "2GiB");
        let setup = machine.push("task", log).push("task", sleep("web")).setup().unwrap();
        for variant in &mut report.plan.scenario.variants {
            variant.setup = setup.clone();
        }
        let daggers = Daggers::new(&report);
        assert_eq!(daggers.of(0, "log.walltime"), None, "it finished in all runs");
        assert_eq!(daggers.of(1, "log.walltime"), Some(DaggerReason::Background));
        assert_eq!(daggers.of(1, "web.walltime"), None);
    }
}
