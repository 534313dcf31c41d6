//! Which variant is better at what than the first one, by how much, how sure, and what it costs.
//!
//! [`verdicts`] looks at the rows of the table, which are what the scenario asks about, and then at the metrics of
//! `candidates` that the table does not show. It goes by the direction of each metric
//! ([`pagetide_scenario::metric::better`]): what somebody waits for or gets done is a gain or a cost; work of the
//! machine (scans, wakes, CPU time) that grows is a cost, that shrinks is told as work and never as a gain.
//! [`words`] makes the sentences.
//!
//! What a task adds up while it runs (bytes, requests; of a background task also faults and waiting) grows with its time:
//! it is compared per second of that.
//!
//! The tests are corrected for their number in two families, over all variants: rows of the table that are no work,
//! which is what was asked; and everything else.
//!
//! Invariant: a gain, a cost or less work is a difference of at least [`LEAST`] that is sure after that correction;
//! with one run a side, where nothing is sure, it says so. What was not done to its end is not compared, and
//! what the machine or a group had less of is no gain of a variant whose task was ended.

mod candidates;
pub mod words;

use self::candidates::{candidates, Candidate};
use crate::report::{Column, Report, Sample};
use crate::stats::{change, difference, holm, welch, Change, Summary, SIGNIFICANCE};
use pagetide_scenario::metric::{Better, Names, Scope};
use pagetide_scenario::record::{Ended, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// So many gains and so many costs are told of a variant.
const MOST: usize = 3;
/// Of work.
const MOST_WORK: usize = 2;
/// A smaller difference, as a share of the larger value, is not told, however sure: nobody would notice.
pub const LEAST: f64 = 0.01;
/// Waiting that differs by less of the run's time than this is not told.
const LITTLE: f64 = 0.001;
/// Seconds: what page allocations differ by less than is not told if nothing else shows it.
const LONG_ALLOCATION: f64 = 0.001;
/// Of the intervals.
pub const CONFIDENCE: f64 = 0.95;

/// What is to be said of one variant.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The variant: its column in the report. The first one has a verdict only if there is something in `ended`.
    pub column: usize,
    /// Its name.
    pub variant: String,
    /// What ended its work before it was done, or kept runs from finishing: said first.
    pub ended: Vec<String>,
    /// What it is better at than the first variant; at most three.
    pub gains: Vec<Difference>,
    /// What got worse: rows of the table, work of the machine that is a row, and what has no row; at most three.
    pub costs: Vec<Difference>,
    /// Work that the machine has less of; at most two.
    pub work: Vec<Difference>,
    /// If nothing is told: what differs most without being sure.
    pub unsure: Option<Difference>,
    /// Number of tests that were made, of all variants together; 0: one run
    /// on a side.
    pub comparisons: usize,
    /// Number of metrics that both sides have as measurements.
    compared: usize,
    /// All of it in words, with the variant's name in front.
    pub sentence: String,
}

/// A metric of two variants.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its key.
    pub metric: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Whether the values are the metric per second of its owner's time; of times, in per cent of it.
    pub is_rate: bool,
    /// In the first variant.
    pub before: Summary,
    pub after: Summary,
    /// From the one mean to the other.
    pub change: Change,
    /// Where the difference of the means lies, in the unit, with a confidence of 95 %; none of a single run.
    pub interval: Option<(f64, f64)>,
    /// Probability of such a difference between equal means, after Holm's correction; none of a single run.
    pub p: Option<f64>,
    /// The number of tests that it is corrected for.
    pub comparisons: usize,
    /// Which way the metric is better.
    pub better: Better,
    /// Place in the order of telling.
    rank: usize,
    /// Whether it is what was asked: a row of the table that is no work.
    is_asked: bool,
    /// Those of one owner and family say nearly the same.
    family: (Scope, String),
}

impl Difference {
    /// Whether the means differ surely; `None`: one run, nobody knows.
    pub fn is_sure(&self) -> Option<bool> {
        self.p.map(|p| p < SIGNIFICANCE)
    }

    /// Whether it is more than it was.
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

    fn kind(&self) -> Told {
        match (self.better, self.is_more()) {
            (Better::Less, false) | (Better::More, true) => Told::Gain,
            (Better::Less, true) | (Better::More, false) => Told::Cost,
            (Better::Work, true) => Told::MoreWork,
            (Better::Work, false) => Told::LessWork,
            (Better::Neither, _) => Told::Nothing,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Gain,
    Cost,
    MoreWork,
    LessWork,
    Nothing,
}

/// What to say of each variant against the first one, in the order of the columns; nothing without runs.
pub fn verdicts(report: &Report) -> Vec<Verdict> {
    if !report.has_data() {
        return Vec::new();
    }
    let looked_at = candidates(report);
    let mut found: Vec<Vec<Difference>> = (1..report.columns.len())
        .map(|column| looked_at.iter().filter_map(|it| compared(report, column, it)).collect())
        .collect();
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
    let mut verdicts = vec![Verdict::new(report, 0, Vec::new(), comparisons)];
    verdicts.retain(|verdict| !verdict.ended.is_empty());
    for (differences, column) in found.into_iter().zip(1..) {
        verdicts.push(Verdict::new(report, column, differences, comparisons));
    }
    verdicts
}

impl Verdict {
    fn new(
        report: &Report,
        column: usize,
        differences: Vec<Difference>,
        comparisons: usize,
    ) -> Verdict {
        // With one run on a side nothing is sure, however many runs others have.
        let is_one_run = [0, column].iter().any(|&column| report.columns[column].finished < 2);
        let comparisons = if is_one_run { 0 } else { comparisons };
        let compared = differences.len();
        let elapsed = report.to_show(0, "elapsed").map_or(0.0, |summary| summary.mean);
        let large = differences
            .into_iter()
            .filter(|it| is_worth_telling(it, elapsed) && shows_in_walltime(report, column, it));
        let large = large.filter(|it| !is_of_less_work(report, column, it));
        let (told, unsure): (Vec<Difference>, Vec<Difference>) =
            large.partition(|it| it.is_sure().unwrap_or(is_one_run));
        let of = |kind: Told| first_of_families(told.iter().filter(|it| it.kind() == kind));
        let mut work = of(Told::LessWork);
        work.truncate(MOST_WORK);
        // Whatever is a row of the table comes before what has none.
        let (mut costs, beyond): (Vec<Difference>, Vec<Difference>) =
            of(Told::Cost).into_iter().partition(|it| it.is_asked);
        costs.extend(of(Told::MoreWork));
        costs.extend(beyond);
        costs.truncate(MOST);
        let is_effect = |it: &&Difference| matches!(it.kind(), Told::Gain | Told::Cost);
        let unsure = unsure.iter().filter(is_effect);
        let unsure = unsure.min_by(|a, b| a.p.unwrap_or(1.0).total_cmp(&b.p.unwrap_or(1.0)));
        let mut verdict = Verdict {
            column,
            variant: report.columns[column].name.clone(),
            ended: words::ended(report, column),
            gains: of(Told::Gain),
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

    /// Whether a side has one run: nothing is sure then.
    pub fn is_one_run(&self) -> bool {
        self.comparisons == 0
    }
}

/// The size of the difference; of waiting, also that it is some share of the run.
fn is_worth_telling(difference: &Difference, elapsed: f64) -> bool {
    let is_waiting = ["pressure", "stall"].contains(&difference.family.1.as_str());
    let by = (difference.after.mean - difference.before.mean).abs();
    let whole = if difference.is_rate { 100.0 } else { elapsed };
    difference.size() >= LEAST && !(is_waiting && by < LITTLE * whole)
}

/// Whether it says of the machine or of a group no more than that one side did less: with a task gone nobody waits for
/// its memory. Kills are told all the same.
fn is_of_less_work(report: &Report, column: usize, difference: &Difference) -> bool {
    let is_of_all = matches!(difference.family.0, Scope::Machine | Scope::Group(_));
    if !is_of_all || difference.metric.ends_with("oom_kill") {
        return false;
    }
    let is_short = |column: usize| {
        let name = &report.columns[column].name;
        report.ended_runs().iter().any(|ended| ended.variant == *name)
    };
    match difference.kind() {
        Told::Gain | Told::LessWork => is_short(column),
        Told::Cost | Told::MoreWork => is_short(0),
        Told::Nothing => false,
    }
}

/// A page allocation that takes some microseconds longer matters to nobody, unless somebody chose it as a row, or the
/// task took longer as well.
fn shows_in_walltime(report: &Report, column: usize, difference: &Difference) -> bool {
    let by = (difference.after.mean - difference.before.mean).abs();
    if difference.family.1 != "alloc_latency" || difference.is_asked || by >= LONG_ALLOCATION {
        return true;
    }
    let Some((owner, _)) = difference.metric.rsplit_once('.') else { return true };
    let walltime = format!("{owner}.walltime");
    let measured = |column: usize| {
        let series = report.columns[column].series.get(&walltime)?;
        series.ended().is_none().then_some(series.summary)
    };
    let (Some(before), Some(after)) = (measured(0), measured(column)) else { return false };
    let by = (after.mean - before.mean) / before.mean.max(after.mean).max(f64::MIN_POSITIVE);
    let is_sure = welch(&before, &after).is_none_or(|test| test.p < SIGNIFICANCE);
    is_sure && by.abs() >= LEAST && (by > 0.0) == difference.is_more()
}

/// One of each family, in the order of telling: of the rows of the table, or else of all, the one that differs most.
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

/// Unit and values of a candidate in a column; `None` if it is missing or no measurement.
fn values(column: &Column, candidate: &Candidate) -> Option<(Unit, Summary)> {
    let measured = |key: &str| column.series.get(key).filter(|series| series.ended().is_none());
    let series = measured(&candidate.metric)?;
    let Some(time) = &candidate.time else { return Some((series.unit, series.summary)) };
    let (unit, factor) = match series.unit {
        Unit::Bytes => (Unit::BytesPerSecond, 1.0),
        Unit::Seconds => (Unit::Percent, 100.0),
        _ => (Unit::PerSecond, 1.0),
    };
    let times: BTreeMap<u64, f64> =
        measured(time)?.samples.iter().map(|sample| (sample.seed, sample.value)).collect();
    let rate = |sample: &Sample| {
        let time = times.get(&sample.seed).copied().filter(|time| *time > 0.0)?;
        Some(sample.value * factor / time)
    };
    let rates: Vec<f64> = series.samples.iter().filter_map(rate).collect();
    (!rates.is_empty()).then(|| (unit, Summary::of(&rates)))
}

/// The metric of a column against the first one's; `None` if either is missing or no measurement.
fn compared(report: &Report, column: usize, candidate: &Candidate) -> Option<Difference> {
    let (unit, before) = values(&report.columns[0], candidate)?;
    let (_, after) = values(&report.columns[column], candidate)?;
    let change = change(before.mean, after.mean);
    if change == Change::Unknown {
        return None;
    }
    let is_constant =
        [&before, &after].iter().all(|it| it.stddev == 0.0) && before.mean == after.mean;
    Some(Difference {
        metric: candidate.metric.clone(),
        unit,
        is_rate: candidate.time.is_some(),
        before,
        after,
        change,
        interval: difference(&before, &after, CONFIDENCE),
        // What is the same in every run of both sides cannot raise a false alarm: no test.
        p: welch(&before, &after).filter(|_| !is_constant).map(|test| test.p),
        comparisons: 0,
        better: candidate.better,
        rank: candidate.rank,
        is_asked: candidate.is_asked,
        family: candidate.family.clone(),
    })
}

/// The tasks of a column that something ended, copies together, each with the number of runs in which it did.
fn ended_tasks(report: &Report, column: usize, ended: Ended) -> BTreeMap<String, usize> {
    let names = Names::of(&report.plan.scenario.variants[column].setup);
    let mut runs: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for (metric, series) in &report.columns[column].series {
        let seeds = || series.samples.iter().filter(|it| it.ended == Some(ended)).map(|it| it.seed);
        if seeds().next().is_none() {
            continue;
        }
        if let Some(Scope::Task(owner)) = names.read(metric).map(|key| key.scope) {
            runs.entry(owner.family().name).or_default().extend(seeds());
        }
    }
    runs.into_iter().map(|(task, seeds)| (task, seeds.len())).collect()
}

#[cfg(test)]
mod tests;
