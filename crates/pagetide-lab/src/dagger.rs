//! Which values of a table are marked with a dagger and not compared: values of incomplete runs.
//!
//! Invariant: all rows of a variant are marked if one of its runs is incomplete. A run whose task
//! was killed did less work, so every counter of it looks better. A run that stopped a background
//! task is complete; only the task's walltime is marked.

use crate::report::Report;
use pagetide_scenario::metric::MetricKey;
use pagetide_scenario::record::Incomplete;
use std::collections::BTreeSet;

/// Marks a value that is not compared.
pub const DAGGER: &str = "\u{2020}";

pub fn reason(ended: Incomplete) -> &'static str {
    match ended {
        Incomplete::OomKilled => "killed by the OOM killer",
        Incomplete::Refused => "out of memory, and no task to kill",
        Incomplete::Signalled => "killed by a watcher",
        Incomplete::IoError => "killed by a read error",
        Incomplete::Cut => "cut by the time limit",
        Incomplete::IncompleteRun => "other work of the run was not done",
        Incomplete::Stopped => "background task stopped by the end of the run",
    }
}

/// `† incomplete (killed by the OOM killer): not compared`.
pub fn legend(reasons: &BTreeSet<Incomplete>) -> String {
    let reasons: Vec<&str> = reasons.iter().map(|it| reason(*it)).collect();
    format!("{DAGGER} incomplete ({}): not compared", reasons.join(", "))
}

/// Decides for each value of a report whether it is compared.
pub struct Daggers<'a> {
    report: &'a Report,
    /// One per column.
    incomplete: Vec<Option<Incomplete>>,
}

impl<'a> Daggers<'a> {
    pub fn new(report: &'a Report) -> Daggers<'a> {
        let columns = 0..report.columns.len();
        Daggers { report, incomplete: columns.map(|it| report.incomplete(it)).collect() }
    }

    /// Why `key` of `column` is not compared; `None`: it is.
    pub fn of(&self, column: usize, key: &MetricKey) -> Option<Incomplete> {
        self.incomplete[column].or_else(|| self.report.ended(column, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{report_of, series_mut, TestMetrics};

    #[test]
    fn one_killed_task_marks_all_rows_of_its_variant() {
        let run: TestMetrics<'_> =
            &[("batch.walltime", 8.0), ("web.walltime", 4.0), ("pswpin", 7.0)];
        let mut report = report_of(&[("a", vec![run, run]), ("b", vec![run, run])]);
        series_mut(&mut report, 1, "batch.walltime").samples[1].ended = Some(Incomplete::OomKilled);
        let daggers = Daggers::new(&report);
        for key in ["batch.walltime", "web.walltime", "pswpin"] {
            assert_eq!(daggers.of(0, &report.keys[key]), None, "{key}");
            assert_eq!(daggers.of(1, &report.keys[key]), Some(Incomplete::OomKilled), "{key}");
        }
        let reasons = [Incomplete::OomKilled, Incomplete::Stopped];
        assert_eq!(
            legend(&reasons.into()),
            "\u{2020} incomplete (killed by the OOM killer, background task stopped by the end of the \
             run): not compared"
        );
    }

    #[test]
    fn a_stopped_background_task_marks_its_own_walltime() {
        let run: TestMetrics<'_> = &[("log.walltime", 9.0), ("web.walltime", 9.0)];
        let mut report = report_of(&[("a", vec![run, run]), ("b", vec![run, run])]);
        series_mut(&mut report, 1, "log.walltime").samples[0].ended = Some(Incomplete::Stopped);
        let daggers = Daggers::new(&report);
        assert_eq!(daggers.of(0, &report.keys["log.walltime"]), None, "it finished in all runs");
        assert_eq!(daggers.of(1, &report.keys["log.walltime"]), Some(Incomplete::Stopped));
        assert_eq!(daggers.of(1, &report.keys["web.walltime"]), None);
        assert!(report.ended_runs().is_empty(), "its runs are complete");
    }
}
