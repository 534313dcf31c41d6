//! The report as JSON, and the schemas of all JSON output.
//!
//! [`RunOutput`] is the output of `run` and `sweep` with `--format json`; its schema and every key's
//! description follow from the type, as for all outputs (`pagetide schema --of run`). It has all
//! metrics, not only the table's rows. Times are in seconds. A NaN or infinite value is `null`.

use crate::expect::{self, JudgedExpectation, VariantJudgement};
use crate::facts::verdict::VariantVerdict;
use crate::facts::{sentences, verdicts};
use crate::report::{MetricSeries, Report};
use crate::report_format::ReportFormat;
use pagetide_core::config::PolicySet;
use pagetide_scenario::model::costs::MachineCosts;
use pagetide_scenario::model::Setup;
use pagetide_scenario::record::timeline::Timeline;
use pagetide_scenario::record::{Incomplete, RunRecord, Unit};
use schemars::generate::SchemaSettings;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

pub const FORMAT: ReportFormat = ReportFormat {
    name: "json",
    about: "All metrics, for programs",
    render: render_some,
    join: |texts| format!("[\n{}]\n", texts.join(",\n")),
};

/// Renders `report` with its verdicts, indented.
pub fn render(report: &Report) -> String {
    render_some(report, report)
}

/// Renders `some` metrics of a report with the verdicts of the `whole`: verdicts do not depend on
/// which metrics are printed.
pub fn render_some(some: &Report, whole: &Report) -> String {
    pretty(&RunOutput {
        verdict: Some(verdicts(whole)),
        why: Some(sentences(whole)),
        expectations: expect::of_report(whole).into_iter().map(expected).collect(),
        ..of_values(some)
    })
}

/// Without verdicts: the first point of a grid is no base for comparisons.
pub fn of_values(report: &Report) -> RunOutput<'_> {
    let scenario = &report.plan.scenario;
    RunOutput {
        scenario: &scenario.name,
        version: &report.version,
        scenario_digest: None,
        seed: scenario.seed,
        repeats: scenario.repeats,
        variants: report
            .columns
            .iter()
            .map(|column| VariantOutput {
                name: &column.name,
                variant: None,
                knobs: None,
                kernel: kernel(report, &column.name),
                costs_ns: stated(report, &column.name),
                metrics: report.by_text(column).map(|(key, s)| (key.as_str(), metric(s))).collect(),
            })
            .collect(),
        notes: &report.notes,
        verdict: None,
        why: None,
        expectations: Vec::new(),
    }
}

/// Indented, with a newline at the end.
pub fn pretty(output: &impl Serialize) -> String {
    serde_json::to_string_pretty(output).expect("strings and numbers always serialise") + "\n"
}

/// The JSON Schema of an output.
pub fn schema<T: JsonSchema>(title: &str) -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    schema.to_value()
}

fn expected(judged: JudgedExpectation<'_>) -> ExpectationOutput<'_> {
    ExpectationOutput {
        text: &judged.expectation.text,
        that: judged.expectation.criterion.to_string(),
        holds: judged.holds(),
        variants: judged.variants,
    }
}

fn setup_of<'r>(report: &'r Report, name: &str) -> Option<&'r Setup> {
    let variants = &report.plan.scenario.variants;
    variants.iter().find(|it| it.name == name).map(|it| &it.setup)
}

fn kernel(report: &Report, name: &str) -> Option<&'static str> {
    setup_of(report, name)?.policies.kernel().map(PolicySet::name)
}

/// The costs that the variant of this name states.
fn stated(report: &Report, name: &str) -> BTreeMap<&'static str, u64> {
    let costs = setup_of(report, name).map(|setup| &setup.machine.costs);
    costs.into_iter().flat_map(MachineCosts::iter).map(|(price, ns)| (price.name(), ns)).collect()
}

fn metric(series: &MetricSeries) -> MetricOutput {
    MetricOutput {
        mean: Number(series.summary.mean),
        stddev: Number(series.summary.stddev),
        unit: series.unit,
        samples: series.samples.iter().map(|sample| Number(sample.value)).collect(),
        ended: series.ended().map(|_| series.samples.iter().map(|sample| sample.ended).collect()),
    }
}

/// Runs of the variants of a scenario, or of the points of a grid.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RunOutput<'a> {
    /// Name of the scenario.
    scenario: &'a str,
    /// Version of Pagetide.
    version: &'a str,
    /// Digest of what is run; of sweeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario_digest: Option<&'a str>,
    /// Seed of the first run of each variant.
    seed: u64,
    /// Seeds of each variant.
    repeats: u32,
    /// In the order of the scenario, or of the grid.
    pub variants: Vec<VariantOutput<'a>>,
    /// Remarks of the runs, each once.
    notes: &'a [String],
    /// A verdict on each variant but the first; not of sweeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Vec<VariantVerdict>>,
    /// Sentences: which tasks waited and for what, what kswapd did, which group lost memory; not of
    /// sweeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Vec<String>>,
    /// If the scenario has any (`[[expect]]`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expectations: Vec<ExpectationOutput<'a>>,
}

/// One run: the kernel's files, or its timeline.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct InspectOutput<'a> {
    /// Name of the scenario.
    scenario: &'a str,
    /// The variant.
    variant: &'a str,
    /// Seed of the run.
    seed: u64,
    /// Version of Pagetide.
    version: &'a str,
    /// Virtual nanoseconds from the start to the moment that is shown.
    elapsed_ns: u64,
    /// Bytes in a page.
    page_size: u64,
    /// Remarks of the run.
    notes: &'a [String],
    /// Texts by path, in the kernel's format; empty with a timeline.
    files: BTreeMap<String, &'a str>,
    /// With `--timeline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<&'a Timeline>,
}

impl<'a> InspectOutput<'a> {
    pub fn new(record: &'a RunRecord, files: BTreeMap<String, &'a str>) -> InspectOutput<'a> {
        InspectOutput {
            scenario: &record.scenario,
            variant: &record.variant,
            seed: record.seed,
            version: &record.version,
            elapsed_ns: record.elapsed_ns,
            page_size: record.page_size,
            notes: &record.notes,
            files,
            timeline: record.timeline.as_ref(),
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VariantOutput<'a> {
    /// The variant, or the point of a sweep.
    name: &'a str,
    /// The variant of the scenario; of sweeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<&'a str>,
    /// The values of the point; of sweeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knobs: Option<&'a BTreeMap<String, String>>,
    /// The kernel (`[policy] kernel`). Missing if the scenario names none: Linux 6.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'static str>,
    /// Costs of operations that the variant states (`[machine.costs]`). Missing if it states none:
    /// the runs used the sourced table. Not of sweeps.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    costs_ns: BTreeMap<&'static str, u64>,
    /// By key.
    metrics: BTreeMap<&'a str, MetricOutput>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct MetricOutput {
    /// Mean of the samples of complete work; null without any.
    mean: Number,
    /// Sample standard deviation of these samples; 0 for a single one.
    stddev: Number,
    unit: Unit,
    /// In seed order; a failed run has none.
    samples: Vec<Number>,
    /// One entry per sample: why its work ended early, or null. Missing if all work is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<Vec<Option<Incomplete>>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ExpectationOutput<'a> {
    /// The expectation in words.
    text: &'a str,
    /// Its criterion.
    that: String,
    /// Whether it holds in every run of its variants.
    holds: bool,
    /// The variants that it is about.
    variants: Vec<VariantJudgement>,
}

/// A float that is written without a fraction when it has none: 5, not 5.0. NaN and infinity are
/// null.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

impl JsonSchema for Number {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "null"] })
    }
}

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
    use crate::testing::{report_of, series_mut};
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
            r#"not significant."}],"why":[]}"#,
        );
        let compact: String = render(&report).lines().map(str::trim_start).collect();
        assert_eq!(compact.replace("\": ", "\":"), head + rest);
    }

    #[test]
    fn samples_of_incomplete_work_are_marked() {
        let mut report = report_of(&[("a", vec![&[("x", 2.0)], &[("x", 8.0)]])]);
        let series = series_mut(&mut report, 0, "x");
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
