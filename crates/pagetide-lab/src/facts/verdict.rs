//! The verdict on each variant: the metrics that are better or worse than in the first variant, by
//! how much, and how significant that is.
//!
//! [`verdicts`] compares the rows of the table, which are what the scenario asks about, then the
//! metrics of `candidates` that the table does not show. The direction of a metric
//! ([`pagetide_scenario::metric::better`]) decides: an outcome (waiting, work done) is a gain or a
//! cost; machine work (scans, wakes, CPU time) is a cost if it grows and "less work" if it shrinks,
//! never a gain. [`super::words`] makes the sentences.
//!
//! Totals of a task (bytes, requests; of a background task also faults and waiting) grow with its
//! run time, so they are compared per second of it.
//!
//! p values are corrected for the number of tests over all variants, in two families: rows of the
//! table that are not work, and everything else.
//!
//! Invariant: a gain, a cost or less work differs by at least [`LEAST`] and is significant after
//! the correction. With one run per variant nothing is significant, and the sentence says so. A
//! variant with an incomplete run is not compared.

use super::candidates::{candidates, MetricCandidate};
use super::words;
use crate::report::{Report, ReportColumn, ReportSample};
use crate::stats::{change, difference, holm, welch, MeanChange, Statistics, SIGNIFICANCE};
use pagetide_scenario::metric::{declared, MetricDirection, MetricKey, Scope};
use pagetide_scenario::record::{Incomplete, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// Most gains, and most costs, of a verdict.
const MOST: usize = 3;
/// Most entries of less work.
const MOST_WORK: usize = 2;
/// A smaller difference, as a share of the larger value, is not reported, even if significant.
pub const LEAST: f64 = 0.01;
/// Waiting that differs by less than this share of the run is not reported.
const LITTLE: f64 = 0.001;
/// A smaller difference in allocation latency (seconds) is reported only if the walltime shows it.
const LONG_ALLOCATION: f64 = 0.001;
/// Confidence of the intervals.
pub const CONFIDENCE: f64 = 0.95;

/// The comparison of one variant with the first.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantVerdict {
    /// Column of the variant in the report. The first has a verdict only if `ended` is not empty.
    pub column: usize,
    pub variant: String,
    /// Why its work ended early, or why runs did not finish. Printed first.
    pub ended: Vec<String>,
    /// Metrics that are better than in the first variant; at most [`MOST`].
    pub gains: Vec<Difference>,
    /// Metrics that are worse: rows, then rows of machine work, then metrics without a row; at most
    /// [`MOST`].
    pub costs: Vec<Difference>,
    /// Machine work that shrank; at most [`MOST_WORK`].
    pub work: Vec<Difference>,
    /// If there are no gains and costs: the difference that is nearest to significant.
    pub unsure: Option<Difference>,
    /// Number of tests of all variants together; 0: one side has a single run.
    pub comparisons: usize,
    /// Number of metrics that were compared.
    pub(super) compared: usize,
    /// The verdict in words, after the variant's name.
    pub sentence: String,
}

/// A metric in the first and in another variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub key: MetricKey,
    /// The text of the key.
    pub metric: String,
    pub unit: Unit,
    /// Whether the values are per second of the owner's run time (of times: per cent of it).
    pub is_rate: bool,
    /// In the first variant.
    pub before: Statistics,
    pub after: Statistics,
    /// Of the means.
    pub change: MeanChange,
    /// 95 % confidence interval of the difference of the means; `None`: a single run.
    pub interval: Option<(f64, f64)>,
    /// p value of Welch's t-test after Holm's correction; `None`: a single run.
    pub p: Option<f64>,
    /// Number of tests that `p` is corrected for.
    pub comparisons: usize,
    pub better: MetricDirection,
    /// Order of importance: small is first.
    rank: usize,
    /// Whether it is a row of the table and not work.
    is_asked: bool,
    /// Owner and kind: metrics of one family say nearly the same, so one is reported.
    family: (Scope, String),
}

impl Difference {
    /// Whether the difference is significant; `None`: a single run.
    pub fn is_sure(&self) -> Option<bool> {
        self.p.map(|p| p < SIGNIFICANCE)
    }

    /// Whether the value grew.
    fn is_more(&self) -> bool {
        self.after.mean > self.before.mean
    }

    /// The difference as a share of the larger value.
    fn size(&self) -> f64 {
        let (before, after) = (self.before.mean.abs(), self.after.mean.abs());
        match before.max(after) {
            0.0 => 0.0,
            larger => (self.after.mean - self.before.mean).abs() / larger,
        }
    }

    fn kind(&self) -> DifferenceKind {
        match (self.better, self.is_more()) {
            (MetricDirection::Less, false) | (MetricDirection::More, true) => DifferenceKind::Gain,
            (MetricDirection::Less, true) | (MetricDirection::More, false) => DifferenceKind::Cost,
            (MetricDirection::Work, true) => DifferenceKind::MoreWork,
            (MetricDirection::Work, false) => DifferenceKind::LessWork,
            (MetricDirection::Neither, _) => DifferenceKind::Nothing,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DifferenceKind {
    Gain,
    Cost,
    MoreWork,
    LessWork,
    Nothing,
}

/// The verdict on each variant, in the order of the columns; empty without runs.
pub fn verdicts(report: &Report) -> Vec<VariantVerdict> {
    if !report.has_data() {
        return Vec::new();
    }
    let looked_at = candidates(report);
    let is_complete = |column: usize| report.incomplete(column).is_none();
    let differences = |column: usize| match is_complete(0) && is_complete(column) {
        true => looked_at.iter().filter_map(|it| compared(report, column, it)).collect(),
        false => Vec::new(),
    };
    let mut found: Vec<Vec<Difference>> = (1..report.columns.len()).map(differences).collect();
    let mut comparisons = 0;
    for is_asked in [true, false] {
        let tested = |it: &&mut Difference| it.is_asked == is_asked && it.p.is_some();
        let mut family: Vec<&mut Difference> = found.iter_mut().flatten().filter(tested).collect();
        let p: Vec<f64> = family.iter().filter_map(|it| it.p).collect();
        for (difference, p) in family.iter_mut().zip(holm(&p)) {
            difference.p = Some(p);
        }
        comparisons += p.len();
        let len = p.len();
        family.into_iter().for_each(|it| it.comparisons = len);
    }
    let mut verdicts = vec![VariantVerdict::new(report, 0, Vec::new(), comparisons)];
    verdicts.retain(|verdict| !verdict.ended.is_empty());
    for (differences, column) in found.into_iter().zip(1..) {
        verdicts.push(VariantVerdict::new(report, column, differences, comparisons));
    }
    verdicts
}

impl VariantVerdict {
    fn new(
        report: &Report,
        column: usize,
        differences: Vec<Difference>,
        comparisons: usize,
    ) -> VariantVerdict {
        // With one run on a side nothing is significant, however many runs others have.
        let is_one_run = [0, column].iter().any(|&column| report.columns[column].finished < 2);
        let comparisons = if is_one_run { 0 } else { comparisons };
        let compared = differences.len();
        let elapsed = Scope::Machine.metric(declared::ELAPSED);
        let elapsed = report.shown_summary(0, &elapsed).map_or(0.0, |summary| summary.mean);
        let large = differences
            .into_iter()
            .filter(|it| is_worth_telling(it, elapsed) && shows_in_walltime(report, column, it));
        let (told, unsure): (Vec<Difference>, Vec<Difference>) =
            large.partition(|it| it.is_sure().unwrap_or(is_one_run));
        let of =
            |kind: DifferenceKind| first_of_families(told.iter().filter(|it| it.kind() == kind));
        let mut work = of(DifferenceKind::LessWork);
        work.truncate(MOST_WORK);
        // Rows of the table come before metrics without a row.
        let (mut costs, beyond): (Vec<Difference>, Vec<Difference>) =
            of(DifferenceKind::Cost).into_iter().partition(|it| it.is_asked);
        costs.extend(of(DifferenceKind::MoreWork));
        costs.extend(beyond);
        costs.truncate(MOST);
        let is_effect =
            |it: &&Difference| matches!(it.kind(), DifferenceKind::Gain | DifferenceKind::Cost);
        let unsure = unsure.iter().filter(is_effect);
        let unsure = unsure.min_by(|a, b| a.p.unwrap_or(1.0).total_cmp(&b.p.unwrap_or(1.0)));
        let mut verdict = VariantVerdict {
            column,
            variant: report.columns[column].name.clone(),
            ended: words::incomplete_sentences(report, column),
            gains: of(DifferenceKind::Gain),
            costs,
            work,
            unsure: None,
            comparisons,
            compared,
            sentence: String::new(),
        };
        if verdict.gains.is_empty() && verdict.costs.is_empty() {
            verdict.unsure = unsure.cloned();
        }
        verdict.sentence = words::sentence(report, &verdict);
        verdict
    }

    /// Whether a side has one run, so that nothing is significant.
    pub fn is_one_run(&self) -> bool {
        self.comparisons == 0
    }
}

/// Whether the difference is large enough; for waiting, also as a share of the run.
fn is_worth_telling(difference: &Difference, elapsed: f64) -> bool {
    let is_waiting = ["pressure", "stall", "dirty"].contains(&difference.family.1.as_str());
    let by = (difference.after.mean - difference.before.mean).abs();
    let whole = if difference.is_rate { 100.0 } else { elapsed };
    difference.size() >= LEAST && !(is_waiting && by < LITTLE * whole)
}

/// Whether a change of allocation latency matters: it is large, is a row of the table, or the
/// walltime of the task changed in the same direction.
fn shows_in_walltime(report: &Report, column: usize, difference: &Difference) -> bool {
    let by = (difference.after.mean - difference.before.mean).abs();
    if difference.family.1 != "alloc_latency" || difference.is_asked || by >= LONG_ALLOCATION {
        return true;
    }
    let walltime = difference.key.scope.metric(declared::WALLTIME);
    let (Some(before), Some(after)) =
        (report.summary(0, &walltime), report.summary(column, &walltime))
    else {
        return false;
    };
    let by = (after.mean - before.mean) / before.mean.max(after.mean).max(f64::MIN_POSITIVE);
    let is_sure = welch(before, after).is_none_or(|test| test.p < SIGNIFICANCE);
    is_sure && by.abs() >= LEAST && (by > 0.0) == difference.is_more()
}

/// One difference per family, in order of importance: the largest one, rows of the table first.
fn first_of_families<'a>(told: impl Iterator<Item = &'a Difference>) -> Vec<Difference> {
    let mut families: BTreeMap<(Scope, String), (usize, &Difference)> = BTreeMap::new();
    for difference in told {
        let rank = difference.rank;
        let best = families.entry(difference.family.clone()).or_insert((rank, difference));
        best.0 = best.0.min(rank);
        let size = |it: &Difference| (it.is_asked, it.size());
        if size(difference) > size(best.1) {
            best.1 = difference;
        }
    }
    let mut order: Vec<(usize, &Difference)> = families.into_values().collect();
    order.sort_by(|a, b| {
        let by_size = b.1.size().total_cmp(&a.1.size());
        a.0.cmp(&b.0).then(by_size).then_with(|| a.1.metric.cmp(&b.1.metric))
    });
    order.into_iter().take(MOST).map(|(_, difference)| difference.clone()).collect()
}

/// Unit and values of a candidate in a column; `None` if it is missing.
fn values(column: &ReportColumn, candidate: &MetricCandidate) -> Option<(Unit, Statistics)> {
    let series = column.series.get(&candidate.key)?;
    let Some(time) = &candidate.time else { return Some((series.unit, series.summary)) };
    let (unit, factor) = match series.unit {
        Unit::Bytes => (Unit::BytesPerSecond, 1.0),
        Unit::Seconds => (Unit::Percent, 100.0),
        _ => (Unit::PerSecond, 1.0),
    };
    let times: BTreeMap<u64, f64> =
        column.series.get(time)?.samples.iter().map(|sample| (sample.seed, sample.value)).collect();
    let rate = |sample: &ReportSample| {
        let time = times.get(&sample.seed).copied().filter(|time| *time > 0.0)?;
        Some(sample.value * factor / time)
    };
    let rates: Vec<f64> = series.samples.iter().filter_map(rate).collect();
    (!rates.is_empty()).then(|| (unit, Statistics::of(&rates)))
}

/// The metric in a column against the first column; `None` if one of the two is missing.
fn compared(report: &Report, column: usize, candidate: &MetricCandidate) -> Option<Difference> {
    let (unit, before) = values(&report.columns[0], candidate)?;
    let (_, after) = values(&report.columns[column], candidate)?;
    let change = change(before.mean, after.mean);
    if change == MeanChange::Unknown {
        return None;
    }
    let is_constant =
        [&before, &after].iter().all(|it| it.stddev == 0.0) && before.mean == after.mean;
    Some(Difference {
        key: candidate.key.clone(),
        metric: report.text(&candidate.key),
        unit,
        is_rate: candidate.time.is_some(),
        before,
        after,
        change,
        interval: difference(&before, &after, CONFIDENCE),
        // A value that is equal in all runs of both sides needs no test.
        p: welch(&before, &after).filter(|_| !is_constant).map(|test| test.p),
        comparisons: 0,
        better: candidate.better,
        rank: candidate.rank,
        is_asked: candidate.is_asked,
        family: candidate.family.clone(),
    })
}

/// The tasks of a column that `ended` ended early (copies together), each with its number of runs.
pub(super) fn ended_tasks(
    report: &Report,
    column: usize,
    ended: Incomplete,
) -> BTreeMap<String, usize> {
    let mut runs: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for (key, series) in &report.columns[column].series {
        let Scope::Task(owner) = &key.scope else { continue };
        let of_end = series.samples.iter().filter(|it| it.ended == Some(ended));
        let seeds: Vec<u64> = of_end.map(|it| it.seed).collect();
        if !seeds.is_empty() {
            runs.entry(owner.family().name).or_default().extend(seeds);
        }
    }
    runs.into_iter().map(|(task, seeds)| (task, seeds.len())).collect()
}
