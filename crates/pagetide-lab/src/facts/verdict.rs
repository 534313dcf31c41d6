//! The verdict on each variant: the metrics that are better or worse than in the first variant, by
//! how much, and how significant that is.
//!
//! [`verdicts`] compares the rows of the table, which are what the scenario asks about, then the
//! metrics of `candidates` that the table does not show. The direction of a metric
//! ([`pagetide_scenario::metric::better`]) decides: an outcome (waiting, work done) is a gain or a
//! cost; machine work (scans, wakes, CPU time) is a cost if it grows and "less work" if it shrinks,
//! never a gain. [`words`] makes the sentences.
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
use super::{words, LITTLE};
use crate::json::Number;
use crate::report::{Report, ReportColumn, ReportSample};
use crate::stats::{change, difference, holm, welch, MeanChange, Statistics, SIGNIFICANCE};
use pagetide_scenario::metric::{declared, MetricDirection, Scope};
use pagetide_scenario::record::Unit;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// Most gains, and most costs, of a verdict.
const MOST: usize = 3;
/// Most entries of less work.
const MOST_WORK: usize = 2;
/// A smaller difference, as a share of the larger value, is not reported, even if significant.
pub const LEAST: f64 = 0.01;
/// A smaller difference in allocation latency (seconds) is reported only if the walltime shows it.
const LONG_ALLOCATION: f64 = 0.001;
/// Confidence of the intervals.
pub const CONFIDENCE: f64 = 0.95;

/// The comparison of one variant with the first.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VariantVerdict {
    /// Column of the variant in the report. The first has a verdict only if `ended` is not empty.
    #[serde(skip)]
    pub column: usize,
    /// The variant that is compared.
    pub variant: String,
    /// Why work ended early, or why runs did not finish.
    pub ended: Vec<String>,
    /// Metrics that are better than in the first variant, the most important first; at most three.
    pub gains: Vec<Difference>,
    /// Metrics that are worse: rows, then rows of machine work, then metrics without a row; at most
    /// three.
    pub costs: Vec<Difference>,
    /// Machine work that shrank; at most two metrics.
    #[serde(rename = "less_work")]
    pub work: Vec<Difference>,
    /// If there are no gains and costs: the difference that is nearest to significant.
    #[serde(skip)]
    pub unsure: Option<Difference>,
    /// Number of comparisons that p is corrected for, of all variants together; 0: one side has a
    /// single run.
    pub comparisons: usize,
    /// Number of metrics that were compared.
    #[serde(skip)]
    pub(super) compared: usize,
    /// The verdict in words.
    pub sentence: String,
}

/// A metric in the first and in another variant.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Difference {
    #[serde(skip)]
    pub of: MetricCandidate,
    /// Key of the metric.
    pub metric: String,
    pub unit: Unit,
    /// Mean of the first variant.
    #[serde(serialize_with = "mean")]
    #[schemars(with = "Number")]
    pub before: Statistics,
    /// Mean of this one.
    #[serde(serialize_with = "mean")]
    #[schemars(with = "Number")]
    pub after: Statistics,
    /// Change of the means; null if the first is zero.
    #[serde(rename = "change_percent", serialize_with = "per_cent")]
    #[schemars(with = "Number")]
    pub change: MeanChange,
    /// 95 % confidence interval of the difference of the means; null for a single run.
    pub interval: Option<[Number; 2]>,
    /// Welch's t-test with Holm's correction for all comparisons; null for a single run.
    pub p: Option<Number>,
    /// Number of tests that `p` is corrected for.
    #[serde(skip)]
    pub comparisons: usize,
}

fn mean<S: Serializer>(of: &Statistics, serializer: S) -> Result<S::Ok, S::Error> {
    Number(of.mean).serialize(serializer)
}

fn per_cent<S: Serializer>(change: &MeanChange, serializer: S) -> Result<S::Ok, S::Error> {
    let percent = match change {
        MeanChange::Percent(percent) => *percent,
        MeanChange::New | MeanChange::Unknown => f64::NAN,
    };
    Number(percent).serialize(serializer)
}

impl Difference {
    /// Whether the difference is significant; `None`: a single run.
    pub fn is_sure(&self) -> Option<bool> {
        self.p.map(|p| p.0 < SIGNIFICANCE)
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
        match (self.of.better, self.is_more()) {
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
        let tested = |it: &&mut Difference| it.of.is_asked == is_asked && it.p.is_some();
        let mut family: Vec<&mut Difference> = found.iter_mut().flatten().filter(tested).collect();
        let p: Vec<f64> = family.iter().filter_map(|it| it.p).map(|p| p.0).collect();
        for (difference, p) in family.iter_mut().zip(holm(&p)) {
            difference.p = Some(Number(p));
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
            of(DifferenceKind::Cost).into_iter().partition(|it| it.of.is_asked);
        costs.extend(of(DifferenceKind::MoreWork));
        costs.extend(beyond);
        costs.truncate(MOST);
        let is_effect =
            |it: &&Difference| matches!(it.kind(), DifferenceKind::Gain | DifferenceKind::Cost);
        let p = |it: &Difference| it.p.map_or(1.0, |p| p.0);
        let unsure = unsure.iter().filter(is_effect).min_by(|a, b| p(a).total_cmp(&p(b)));
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
        let differs = !verdict.gains.is_empty() || !verdict.costs.is_empty();
        verdict.unsure = unsure.cloned().filter(|_| !differs);
        verdict.sentence = words::sentence(report, &verdict);
        verdict
    }

    /// The sentence without the variant's name.
    pub fn without_name(&self) -> &str {
        self.sentence[self.variant.len()..].trim_start_matches(": ")
    }

    /// Whether a side has one run, so that nothing is significant.
    pub fn is_one_run(&self) -> bool {
        self.comparisons == 0
    }
}

/// Whether the difference is large enough; for waiting, also as a share of the run.
fn is_worth_telling(difference: &Difference, elapsed: f64) -> bool {
    let is_waiting = ["pressure", "stall", "dirty"].contains(&difference.of.family.1.as_str());
    let by = (difference.after.mean - difference.before.mean).abs();
    let whole = if difference.of.time.is_some() { 100.0 } else { elapsed };
    difference.size() >= LEAST && !(is_waiting && by < LITTLE * whole)
}

/// Whether a change of allocation latency matters: it is large, is a row of the table, or the
/// walltime of the task changed in the same direction.
fn shows_in_walltime(report: &Report, column: usize, difference: &Difference) -> bool {
    let by = (difference.after.mean - difference.before.mean).abs();
    if difference.of.family.1 != "alloc_latency" || difference.of.is_asked || by >= LONG_ALLOCATION
    {
        return true;
    }
    let walltime = difference.of.key.scope.metric(declared::WALLTIME);
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
        let rank = difference.of.rank;
        let best = families.entry(difference.of.family.clone()).or_insert((rank, difference));
        best.0 = best.0.min(rank);
        let size = |it: &Difference| (it.of.is_asked, it.size());
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
        of: candidate.clone(),
        metric: report.text(&candidate.key),
        unit,
        before,
        after,
        change,
        interval: difference(&before, &after, CONFIDENCE)
            .map(|(low, high)| [low, high].map(Number)),
        // A value that is equal in all runs of both sides needs no test.
        p: welch(&before, &after).filter(|_| !is_constant).map(|test| Number(test.p)),
        comparisons: 0,
    })
}
