//! The answer of a search: the value, its confidence and costs, the state before, the distance to
//! the next failing value, and the machine and load.
//!
//! Invariant: every figure is of runs that were made. How often the criterion holds is counted on
//! fresh seeds, which did not choose the value. Costs are means over the shared seeds, on which
//! both sides were run.

use super::question::Find;
use super::search::{SearchOutcome, SearchPlace, SearchResult, SeedCount, WantedEnd};
use crate::heading;
use crate::report::Report;
use crate::rows;
use crate::stats::{change, differs, lower_bound, MeanChange, Statistics};
use pagetide_scenario::metric::better::{self, MetricDirection};
use pagetide_scenario::metric::declared::WALLTIME;
use pagetide_scenario::metric::{MetricKey, Owner};
use pagetide_scenario::model::{Setup, Task};
use pagetide_scenario::names::NameSet;
use pagetide_scenario::record::{Incomplete, Unit};

/// Confidence of the lower bound.
pub const CONFIDENCE: f64 = 0.95;

/// An answer, in words and figures.
#[derive(Clone, Debug)]
pub struct FindAnswer {
    pub kind: AnswerKind,
    /// The value that meets the criterion.
    pub point: Option<AnswerPoint>,
    /// How often the criterion holds in the unchanged scenario.
    pub before: SeedCount,
    /// The values tried, by index, ascending, with the counts of all their runs.
    pub looked_at: Vec<(usize, SeedCount)>,
    /// The nearest value, if none meets the criterion.
    pub best: Option<(usize, SeedCount)>,
    /// The present value of the knob, if known.
    pub now: Option<String>,
    pub machine: String,
    pub load: String,
    /// Values tried, including the unchanged scenario.
    pub nr_values: usize,
    pub nr_runs: usize,
    /// Runs that cannot meet the criterion: a task was killed, the run was cut, a metric is
    /// missing.
    pub nr_unfinished: usize,
    /// Failures with their number of runs.
    pub failures: Vec<(String, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerKind {
    /// A value meets the criterion, and those beyond it do not.
    Threshold,
    /// Every value of the grid meets it.
    Everything,
    /// No value does.
    Nothing,
    /// Along the knob the criterion holds, fails and holds again.
    NotMonotone,
}

/// A value that meets the criterion.
#[derive(Clone, Debug)]
pub struct AnswerPoint {
    /// Index of the value.
    pub place: usize,
    /// Shared seeds.
    pub shared: SeedCount,
    /// Fresh seeds.
    pub fresh: SeedCount,
    /// Whether the criterion is met on the fresh seeds.
    pub is_confirmed: bool,
    /// Lower bound of the share of all seeds in which it holds, with [`CONFIDENCE`].
    pub bound: f64,
    /// The next value that does not meet it.
    pub failing: Option<(usize, SeedCount)>,
    /// The `--price` metrics.
    pub prices: Vec<MetricCost>,
    /// Other rows that got significantly worse.
    pub worse: Vec<MetricCost>,
}

/// A metric in the unchanged scenario and at the point.
#[derive(Clone, Debug)]
pub struct MetricCost {
    pub metric: String,
    pub better: MetricDirection,
    pub unit: Unit,
    /// In the unchanged scenario.
    pub before: Statistics,
    /// At the point.
    pub after: Statistics,
    /// Of the means.
    pub change: MeanChange,
    /// Whether the means differ (Welch's t-test).
    pub differs: bool,
    /// Reasons why work of some runs ended early, in the unchanged scenario and at the point. If
    /// there is a reason, the values are not compared.
    pub ended: [Option<Incomplete>; 2],
}

impl FindAnswer {
    /// The answer of a finished search.
    pub fn of(find: &Find) -> Option<FindAnswer> {
        let question = find.question();
        let setup = &question.scenario.variants.first()?.setup;
        let (kind, found, best) = match find.verdict()? {
            SearchOutcome::Found(found) => {
                let kind = if found.all { AnswerKind::Everything } else { AnswerKind::Threshold };
                (kind, Some(found), None)
            }
            SearchOutcome::Nothing { best } => (AnswerKind::Nothing, None, Some(best)),
            SearchOutcome::NotMonotone { found } => (AnswerKind::NotMonotone, found, None),
        };
        let failures = find.failures().into_iter();
        Some(FindAnswer {
            kind,
            point: found.map(|found| point(find, found)),
            before: find.count(SearchPlace::Before),
            looked_at: find.search().tried(),
            best: best.map(|at| (at, find.search().count_all(SearchPlace::At(at)))),
            now: question.knob.now(setup),
            machine: heading::machine(&setup.machine),
            load: load(setup),
            nr_values: find.nr_places(),
            nr_runs: find.nr_runs(),
            nr_unfinished: find.nr_unfinished(),
            failures: failures.map(|(message, number)| (message.to_owned(), number)).collect(),
        })
    }

    /// Whether there is a value to deploy.
    pub fn is_answer(&self) -> bool {
        self.to_deploy().is_some()
    }

    /// The value to deploy: confirmed on fresh seeds, and values beyond it meet the criterion, too.
    pub fn to_deploy(&self) -> Option<&AnswerPoint> {
        let point = self.point.as_ref().filter(|_| self.kind != AnswerKind::NotMonotone);
        point.filter(|point| point.is_confirmed)
    }
}

fn point(find: &Find, found: SearchResult) -> AnswerPoint {
    let report = find.side_by_side(found.place);
    let prices = &find.question().prices;
    let cost = |key: &MetricKey| report.as_ref().and_then(|report| cost(report, key));
    let shown = report.as_ref().map(rows::rows).unwrap_or_default();
    // A background task runs as long as the others: its walltime says nothing.
    let setup = &find.question().scenario.variants[0].setup;
    let is_in_background = |key: &MetricKey| {
        let mut tasks = setup.tasks.iter().filter(|task| task.background);
        let is_its = |task: &Task| key.scope.owner() == Some(&Owner::new(&task.name));
        key.name == WALLTIME.name && tasks.any(is_its)
    };
    let prices: Vec<MetricKey> = prices.iter().map(|price| find.names().key(price)).collect();
    let others = shown.iter().filter(|key| !prices.contains(key) && !is_in_background(key));
    let failing = found.failing.map(|at| (at, find.search().count_all(SearchPlace::At(at))));
    AnswerPoint {
        place: found.place,
        shared: found.shared,
        fresh: found.fresh,
        is_confirmed: found.is_confirmed,
        bound: lower_bound(found.fresh.held, found.fresh.of, CONFIDENCE),
        failing,
        prices: prices.iter().filter_map(cost).collect(),
        worse: others.filter_map(cost).filter(is_worse).collect(),
    }
}

fn cost(report: &Report, key: &MetricKey) -> Option<MetricCost> {
    let (before, after) = (*report.summary(0, key)?, *report.summary(1, key)?);
    let ended = [0, 1].map(|column| report.ended(column, key));
    // A run that was killed or cut is no measurement in any of its metrics.
    let is_compared = [0, 1].iter().all(|&column| report.incomplete(column).is_none());
    Some(MetricCost {
        metric: report.text(key),
        better: better::of(key),
        unit: report.unit(key)?,
        before,
        after,
        change: if is_compared { change(before.mean, after.mean) } else { MeanChange::Unknown },
        differs: is_compared && differs(&before, &after),
        ended,
    })
}

/// Significantly worse, or incomplete in some runs but not before.
fn is_worse(cost: &MetricCost) -> bool {
    if let [before, Some(after)] = cost.ended {
        return before.is_none() && after != Incomplete::IncompleteRun;
    }
    let is_more = cost.after.mean > cost.before.mean;
    cost.differs
        && match cost.better {
            MetricDirection::Less | MetricDirection::Work => is_more,
            MetricDirection::More => !is_more,
            MetricDirection::Neither => false,
        }
}

/// `writer: file-write in the background; reader: mapped-read`.
pub fn load(setup: &Setup) -> String {
    let mut shown: Vec<(String, usize)> = Vec::new();
    for task in &setup.tasks {
        let family = Owner::new(&task.name).family();
        let mut kinds: Vec<&str> = Vec::new();
        for phase in &task.phases {
            let kind = phase.workload.kind().name();
            if kinds.last() != Some(&kind) {
                kinds.push(kind);
            }
        }
        let background = if task.background { " in the background" } else { "" };
        let text = format!("{family}: {}{background}", kinds.join(", "));
        match shown.last_mut() {
            Some((last, copies)) if *last == text => *copies += 1,
            _ => shown.push((text, 1)),
        }
    }
    const MOST: usize = 8;
    let more = shown.len().saturating_sub(MOST);
    let mut parts: Vec<String> = shown
        .into_iter()
        .take(MOST)
        .map(|(text, copies)| if copies > 1 { format!("{copies} x {text}") } else { text })
        .collect();
    if more > 0 {
        parts.push(format!("{more} more"));
    }
    parts.join("; ")
}

/// `the smallest`, `the largest`.
pub fn wanted_word(wanted: WantedEnd) -> &'static str {
    match wanted {
        WantedEnd::Smallest => "smallest",
        WantedEnd::Largest => "largest",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{report, series_mut, with_setup};
    use pagetide_scenario::build::Builder;
    use pagetide_scenario::metric::KeyNames;

    #[test]
    fn more_is_better_for_work_done_and_less_for_the_rest() {
        let task = Builder::new().set("name", "t").set("workload", "touch").set("size", "1MiB");
        let group = Builder::new().set("name", "g");
        let machine = Builder::new().set("machine.memory", "64MiB").push("group", group);
        let setup = machine.push("task", task).setup().unwrap();
        let more =
            ["t.request_rate", "t.success", "t.attempts", "slab_utilisation", "t.throughput"];
        let less = ["t.walltime", "t.late", "pgscan_kswapd", "g.memory.events.max", "elapsed"];
        for (keys, worse) in [(more, [4.0, 2.0]), (less, [2.0, 4.0])] {
            for key in keys {
                let of = |[before, after]: [f64; 2]| {
                    let both = [("before", &[(key, before)][..]), ("after", &[(key, after)][..])];
                    let report = with_setup(report(&both), &setup);
                    let cost = cost(&report, &report.keys[key]).unwrap();
                    is_worse(&MetricCost { differs: true, ..cost })
                };
                assert!(of(worse), "{key}");
                assert!(!of([worse[1], worse[0]]), "{key}");
            }
        }
        let current = KeyNames::of(&setup).key("g.memory.current");
        assert_eq!(better::of(&current), MetricDirection::Neither);
    }

    #[test]
    fn incomplete_work_is_not_compared() {
        let both: [(&str, &[(&str, f64)]); 2] =
            [("before", &[("t.walltime", 4.0)]), ("after", &[("t.walltime", 1.0)])];
        let mut report = report(&both);
        let series = series_mut(&mut report, 1, "t.walltime");
        series.samples[0].ended = Some(Incomplete::OomKilled);
        let cost = cost(&report, &report.keys["t.walltime"]).unwrap();
        assert_eq!(cost.ended, [None, Some(Incomplete::OomKilled)]);
        assert!(!cost.differs && cost.change == MeanChange::Unknown);
        assert!(is_worse(&cost), "it is among what got worse");
        let other_work = MetricCost { ended: [None, Some(Incomplete::IncompleteRun)], ..cost };
        assert!(!is_worse(&other_work), "the work of this metric is complete");
    }
}
