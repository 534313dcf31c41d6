//! The report as JSON.
//!
//! Exactly `{"scenario","version","seed","repeats","variants":[{"name","metrics":{KEY:{"mean",
//! "stddev","unit","samples":[...]}}}],"notes":[...],"verdict":[...]}` with all metrics, not only
//! the table's rows. Times are in seconds. `samples` is in seed order; a run that failed has none.
//! `stddev` is the sample standard deviation, 0 for a single sample. A NaN or infinite value is
//! `null`.
//!
//! A metric with samples of incomplete work has `"ended":[...]`, one entry per sample: `null`,
//! `"oom-killed"`, `"refused"`, `"io-error"`, `"cut"`, `"stopped"` (the walltime of a background
//! task) or `"incomplete-run"` (a value of a run in which other work ended early). `mean` and
//! `stddev` leave these samples out, and are `null` without others. Costs that a variant states
//! (`[machine.costs]`) are in `costs_ns`; without it, the run used the sourced table. (A sweep has
//! no `costs_ns`.) `verdict` has the verdict of [`crate::verdict`] on each variant but the first. A
//! scenario with `[[expect]]` adds
//! `"expectations":[{"text","that","holds","variants":[{"variant","runs","failed":[SEED...]}]}]`.
//! `pagetide schema --of run` prints the schema.

use crate::expect;
use crate::report::{MetricSeries, Report};
use crate::stats::MeanChange;
use crate::verdict::{verdicts, Difference, VariantVerdict};
use pagetide_scenario::model::costs::MachineCosts;
use pagetide_scenario::record::{Incomplete, Unit};
use serde::{Serialize, Serializer};
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// Renders `report` with its verdicts, indented.
pub fn render(report: &Report) -> String {
    render_some(report, report)
}

/// Renders `some` metrics of a report with the verdicts of the `whole`: verdicts do not depend on
/// which metrics are printed.
pub fn render_some(some: &Report, whole: &Report) -> String {
    let verdicts = verdicts(whole);
    write(some, whole, Some(verdicts.iter().map(verdict).collect()))
}

/// Without verdicts: the first point of a grid is no base for comparisons.
pub fn render_values(report: &Report) -> String {
    write(report, report, None)
}

fn write(report: &Report, whole: &Report, verdict: Option<Vec<Judged<'_>>>) -> String {
    let scenario = &report.plan.scenario;
    let document = Document {
        scenario: &scenario.name,
        version: &report.version,
        seed: scenario.seed,
        repeats: scenario.repeats,
        variants: report
            .columns
            .iter()
            .map(|column| Variant {
                name: &column.name,
                costs_ns: stated(report, &column.name),
                metrics: column.series.iter().map(|(key, s)| (key.as_str(), metric(s))).collect(),
            })
            .collect(),
        notes: &report.notes,
        verdict,
        expectations: expect::of_report(whole).iter().map(expected).collect(),
    };
    let mut text =
        serde_json::to_string_pretty(&document).expect("strings and numbers always serialise");
    text.push('\n');
    text
}

/// An expectation, and the runs of each variant that do not meet it.
pub fn expected(judged: &expect::JudgedExpectation<'_>) -> Value {
    let of = |of: &expect::VariantJudgement| {
        json!({
            "variant": of.variant,
            "runs": of.runs,
            "failed": of.failed.iter().map(|failed| failed.seed).collect::<Vec<u64>>(),
        })
    };
    json!({
        "text": judged.expectation.text,
        "that": judged.expectation.criterion.to_string(),
        "holds": judged.holds(),
        "variants": judged.variants.iter().map(of).collect::<Vec<Value>>(),
    })
}

/// The costs that the variant of this name states.
fn stated(report: &Report, name: &str) -> BTreeMap<&'static str, u64> {
    let variants = &report.plan.scenario.variants;
    let costs = variants.iter().find(|it| it.name == name).map(|it| &it.setup.machine.costs);
    costs.into_iter().flat_map(MachineCosts::iter).map(|(price, ns)| (price.name(), ns)).collect()
}

fn metric(series: &MetricSeries) -> Metric {
    Metric {
        mean: Number(series.summary.mean),
        stddev: Number(series.summary.stddev),
        unit: series.unit,
        samples: series.samples.iter().map(|sample| Number(sample.value)).collect(),
        ended: series.ended().map(|_| series.samples.iter().map(|sample| sample.ended).collect()),
    }
}

fn verdict(verdict: &VariantVerdict) -> Judged<'_> {
    let list = |differences: &[Difference]| differences.iter().map(difference).collect();
    Judged {
        variant: &verdict.variant,
        ended: &verdict.ended,
        gains: list(&verdict.gains),
        costs: list(&verdict.costs),
        less_work: list(&verdict.work),
        comparisons: verdict.comparisons,
        sentence: &verdict.sentence,
    }
}

fn difference(difference: &Difference) -> Compared {
    let percent = match difference.change {
        MeanChange::Percent(percent) => percent,
        MeanChange::New | MeanChange::Unknown => f64::NAN,
    };
    Compared {
        metric: difference.metric.clone(),
        unit: difference.unit,
        before: Number(difference.before.mean),
        after: Number(difference.after.mean),
        change_percent: Number(percent),
        interval: difference.interval.map(|(low, high)| [Number(low), Number(high)]),
        p: difference.p.map(Number),
    }
}

#[derive(Serialize)]
struct Document<'a> {
    scenario: &'a str,
    version: &'a str,
    seed: u64,
    repeats: u32,
    variants: Vec<Variant<'a>>,
    notes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Vec<Judged<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expectations: Vec<Value>,
}

#[derive(Serialize)]
struct Judged<'a> {
    variant: &'a str,
    ended: &'a [String],
    gains: Vec<Compared>,
    costs: Vec<Compared>,
    less_work: Vec<Compared>,
    comparisons: usize,
    sentence: &'a str,
}

#[derive(Serialize)]
struct Compared {
    metric: String,
    unit: Unit,
    before: Number,
    after: Number,
    change_percent: Number,
    interval: Option<[Number; 2]>,
    p: Option<Number>,
}

#[derive(Serialize)]
struct Variant<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    costs_ns: BTreeMap<&'static str, u64>,
    metrics: BTreeMap<&'a str, Metric>,
}

#[derive(Serialize)]
struct Metric {
    mean: Number,
    stddev: Number,
    unit: Unit,
    samples: Vec<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<Vec<Option<Incomplete>>>,
}

/// A float that is written without a fraction when it has none: 5, not 5.0.
pub struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match as_integer(self.0) {
            Some(integer) => serializer.serialize_i64(integer),
            None => serializer.serialize_f64(self.0), // NaN and infinities become null
        }
    }
}

/// `value` as an integer, if that is exact.
pub fn as_integer(value: f64) -> Option<i64> {
    const EXACT: f64 = (1u64 << 53) as f64;
    (value.trunc() == value && value.abs() <= EXACT).then_some(value as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::report_of;
    use pagetide_scenario::model::costs::Price;

    #[test]
    fn the_promised_shape() {
        let report = report_of(&[
            (
                "default",
                vec![&[("allocstall", 5.0), ("stream.walltime", 0.5)], &[("allocstall", 8.0)]],
            ),
            ("case1", vec![&[("allocstall", 0.0)], &[("allocstall", 0.0)]]),
        ]);
        let version = crate::VERSION;
        let head = format!(
            r#"{{"scenario":"fake","version":"{version}","seed":1,"repeats":2,"variants":["#
        );
        let rest = concat!(
            r#"{"name":"default","metrics":{"#,
            r#""allocstall":{"mean":6.5,"stddev":2.1213203435596424,"unit":"count","samples":[5,8]},"#,
            r#""stream.walltime":{"mean":0.5,"stddev":0,"unit":"seconds","samples":[0.5]}}},"#,
            r#"{"name":"case1","metrics":{"#,
            r#""allocstall":{"mean":0,"stddev":0,"unit":"count","samples":[0,0]}}}],"notes":[],"#,
            r#""verdict":[{"variant":"case1","ended":[],"gains":[],"costs":[],"less_work":[],"#,
            r#""comparisons":1,"sentence":"case1: no outcome differs significantly from default "#,
            r#"(by 1 % or more). Closest: allocstall 0 instead of 6.5 (p = 0.144), "#,
            r#"not significant."}]}"#,
        );
        let compact: String = render(&report).lines().map(str::trim_start).collect();
        assert_eq!(compact.replace("\": ", "\":"), head + rest);
    }

    #[test]
    fn samples_of_incomplete_work_are_marked() {
        let mut report = report_of(&[("a", vec![&[("x", 2.0)], &[("x", 8.0)]])]);
        let series = report.columns[0].series.get_mut("x").unwrap();
        series.samples[1].ended = Some(Incomplete::OomKilled);
        report.notes = vec!["a, seed 2: task `x` was killed".to_owned()];
        let value: serde_json::Value = serde_json::from_str(&render(&report)).unwrap();
        let x = &value["variants"][0]["metrics"]["x"];
        assert_eq!(x["samples"], serde_json::json!([2, 8]));
        assert_eq!(x["ended"], serde_json::json!([null, "oom-killed"]));
        assert_eq!(value["notes"], serde_json::json!(["a, seed 2: task `x` was killed"]));
    }

    #[test]
    fn stated_costs_are_printed() {
        let mut report = report_of(&[("a", vec![&[("x", 2.0)]])]);
        report.plan.scenario.variants[0].setup.machine.costs.set(Price::Fault, 900);
        let value: serde_json::Value = serde_json::from_str(&render(&report)).unwrap();
        assert_eq!(value["variants"][0]["costs_ns"], serde_json::json!({ "fault": 900 }));
    }

    #[test]
    fn not_a_number_is_null() {
        let text = render(&report_of(&[("a", vec![&[("x", f64::NAN)]])]));
        assert!(text.contains(r#""mean": null"#), "{text}");
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }
}
