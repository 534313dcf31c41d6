//! The answer as JSON ([`FindOutput`]).

use super::answer::{wanted_word, AnswerKind, AnswerPoint, FindAnswer, MetricCost};
use super::question::Find;
use super::search::{SearchPlace, SeedCount};
use super::text;
use crate::json::{pretty, Number};
use crate::stats::{MeanChange, Statistics};
use pagetide_scenario::record::{Incomplete, Unit};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The answer of a search.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FindOutput<'a> {
    /// Name of the scenario.
    scenario: &'a str,
    /// Version of Pagetide.
    version: &'a str,
    /// The command line.
    command: &'a str,
    /// The machine in words.
    machine: &'a str,
    /// The tasks in words.
    load: &'a str,
    /// The knob that is searched.
    knobs: [KnobOutput<'a>; 1],
    /// The criterion that is wanted.
    criterion: String,
    /// The wanted value: least or most.
    wanted: &'static str,
    /// Share of the seeds in which the criterion must hold.
    share: f64,
    verdict: AnswerKind,
    /// The value that meets the criterion, if any.
    points: Vec<PointOutput<'a>>,
    /// In the unchanged scenario.
    before: SeedCount,
    /// Metrics of the criterion in the unchanged scenario.
    before_measured: BTreeMap<String, MeasuredOutput>,
    /// The values tried, ascending.
    looked_at: Vec<TriedOutput<'a>>,
    /// Number of values tried, including the unchanged scenario.
    values: usize,
    /// Number of runs.
    runs: usize,
    /// Runs that cannot meet the criterion: a task was killed, the run was cut, a metric is missing.
    unfinished: usize,
    /// The answer in one line.
    result: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct KnobOutput<'a> {
    /// Path of the knob.
    path: &'a str,
    /// The grid, as it was asked for.
    values: &'a str,
    /// The present value, if known.
    now: Option<&'a str>,
}

type SettingOutput<'a> = BTreeMap<&'a str, &'a str>;

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct PointOutput<'a> {
    /// The value of the knob.
    set: SettingOutput<'a>,
    /// On the shared seeds.
    shared: SeedCount,
    /// On fresh seeds.
    fresh: SeedCount,
    /// 95 % lower bound of the share of all seeds in which the criterion holds.
    lower_bound: f64,
    /// Whether the criterion is met on the fresh seeds.
    confirmed: bool,
    /// The next value that does not meet it.
    failing: Option<FailingOutput<'a>>,
    /// The metrics of `--price`.
    prices: Vec<CostOutput<'a>>,
    /// Other rows that got significantly worse.
    worse: Vec<CostOutput<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct FailingOutput<'a> {
    /// The value of the knob.
    value: &'a str,
    seeds: SeedCount,
}

/// A metric in the unchanged scenario and at the point.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct CostOutput<'a> {
    /// Key of the metric.
    metric: &'a str,
    unit: Unit,
    /// In the unchanged scenario.
    before: MeanOutput,
    /// At the point.
    after: MeanOutput,
    /// Change of the means; null if the first is zero.
    change_percent: Option<f64>,
    /// Whether the means differ (Welch's t-test).
    differs: bool,
    /// Why work of some runs ended early; such values are not compared.
    ended: EndedOutput,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct EndedOutput {
    /// In the unchanged scenario.
    before: Option<Incomplete>,
    /// At the point.
    after: Option<Incomplete>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct MeanOutput {
    /// Mean over the seeds.
    mean: Number,
    /// Sample standard deviation over the seeds.
    stddev: Number,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct MeasuredOutput {
    /// Mean over the seeds.
    mean: Number,
    /// Sample standard deviation over the seeds.
    stddev: Number,
    unit: Unit,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct TriedOutput<'a> {
    /// The value of the knob.
    set: SettingOutput<'a>,
    seeds: SeedCount,
    /// The metrics of the criterion.
    measured: BTreeMap<String, MeasuredOutput>,
}

/// Renders the answer, indented. `command`: the command line.
pub fn render(find: &Find, answer: &FindAnswer, command: &str) -> String {
    let question = find.question();
    let knob = &question.knob;
    let tried = |&(at, seeds): &(usize, SeedCount)| TriedOutput {
        set: set(find, at),
        seeds,
        measured: measured(find, SearchPlace::At(at)),
    };
    pretty(&FindOutput {
        scenario: &question.scenario.name,
        version: crate::VERSION,
        command,
        machine: &answer.machine,
        load: &answer.load,
        knobs: [KnobOutput { path: &knob.path, values: &knob.how, now: answer.now.as_deref() }],
        criterion: question.criterion.to_string(),
        wanted: wanted_word(question.wanted),
        share: question.share,
        verdict: answer.kind,
        points: answer.point.iter().map(|it| point(find, it)).collect(),
        before: answer.before,
        before_measured: measured(find, SearchPlace::Before),
        looked_at: answer.looked_at.iter().map(tried).collect(),
        values: answer.nr_values,
        runs: answer.nr_runs,
        unfinished: answer.nr_unfinished,
        result: text::result(find, answer),
    })
}

fn point<'a>(find: &'a Find, point: &'a AnswerPoint) -> PointOutput<'a> {
    PointOutput {
        set: set(find, point.place),
        shared: point.shared,
        fresh: point.fresh,
        lower_bound: point.bound,
        confirmed: point.is_confirmed,
        failing: point.failing.map(|(at, seeds)| FailingOutput { value: find.value(at), seeds }),
        prices: point.prices.iter().map(cost).collect(),
        worse: point.worse.iter().map(cost).collect(),
    }
}

fn cost(cost: &MetricCost) -> CostOutput<'_> {
    let side = |it: &Statistics| MeanOutput { mean: Number(it.mean), stddev: Number(it.stddev) };
    let [before, after] = cost.ended;
    CostOutput {
        metric: &cost.metric,
        unit: cost.unit,
        before: side(&cost.before),
        after: side(&cost.after),
        change_percent: match cost.change {
            MeanChange::Percent(percent) => Some(percent),
            MeanChange::New | MeanChange::Unknown => None,
        },
        differs: cost.differs,
        ended: EndedOutput { before, after },
    }
}

/// Mean, deviation and unit of each metric of the criterion at a place.
fn measured(find: &Find, place: SearchPlace) -> BTreeMap<String, MeasuredOutput> {
    let of = |metric: &&String| {
        let (unit, it) = find.measured(place, metric)?;
        let (mean, stddev) = (Number(it.mean), Number(it.stddev));
        Some(((*metric).clone(), MeasuredOutput { mean, stddev, unit }))
    };
    find.measured_metrics().iter().filter_map(of).collect()
}

fn set(find: &Find, at: usize) -> SettingOutput<'_> {
    BTreeMap::from([(find.question().knob.path.as_str(), find.value(at))])
}
