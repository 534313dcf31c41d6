//! A comparison as JSON.
//!
//! Exactly
//! `{"scenario","version","kernel","policies","how","costs","costs_ns":{},"not_comparable":[],
//! "notes":[],"summary":{"repeats":SCORE,"varies":SCORE,"timed":SCORE,
//! "surplus":[{"key","linux","pagetide"}]},"variants":[{"name","alike","linux_runs","pagetide_runs",
//! "notes":[],"metrics":{KEY:{"unit","judgement","linux":SIDE,"pagetide":SIDE,"ratio",
//! "verdict"}}}]}` with all metrics. SCORE is `{"counters",
//! "median_error","worst","beyond":[{"key","ratio"}]}`, where `worst` is `{"key","ratio"}` or
//! `null`. A variant with expectations also has `"expectations":[{"text","that","linux":RUNS,
//! "pagetide":RUNS}]`, where RUNS is `{"runs","failed":[SEED...]}`. A variant
//! that is not `alike`, because the kernel behaves otherwise, is in no summary. SIDE is
//! `{"mean","stddev","n"}`, or `null` if that side does not have the metric. NaN and infinity are
//! `null`.

use crate::compare::{ComparedSides, Comparison, CounterComparison, VariantComparison};
use crate::expected::ComparedExpectation;
use crate::summary::GradeScore;
use pagetide_lab::json::as_integer;
use pagetide_lab::stats;
use pagetide_scenario::record::Unit;
use serde::Serialize;
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// Renders `comparison`, indented.
pub fn render(comparison: &Comparison, sides: &ComparedSides) -> String {
    let summary = comparison.summary();
    let document = Document {
        scenario: &comparison.scenario,
        version: pagetide_lab::VERSION,
        kernel: &sides.kernel,
        policies: &sides.policies,
        how: &sides.how,
        costs: &sides.costs,
        costs_ns: &sides.prices,
        not_comparable: &sides.not_comparable,
        notes: &sides.notes,
        summary: json!({
            "repeats": score(&summary.repeats),
            "varies": score(&summary.varies),
            "timed": score(&summary.timed),
            "surplus": summary.surplus.iter().map(|(key, linux, pagetide)| {
                json!({"key": key, "linux": number(*linux), "pagetide": number(*pagetide)})
            }).collect::<Vec<_>>(),
        }),
        variants: comparison.variants.iter().map(variant).collect(),
    };
    let mut text =
        serde_json::to_string_pretty(&document).expect("strings and numbers always serialise");
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Document<'a> {
    scenario: &'a str,
    version: &'a str,
    kernel: &'a str,
    policies: &'a str,
    how: &'a str,
    costs: &'a str,
    costs_ns: &'a BTreeMap<&'static str, u64>,
    not_comparable: &'a [String],
    notes: &'a [String],
    summary: Value,
    variants: Vec<Variant<'a>>,
}

#[derive(Serialize)]
struct Variant<'a> {
    name: &'a str,
    /// In the summary.
    alike: bool,
    linux_runs: usize,
    pagetide_runs: usize,
    notes: &'a [String],
    metrics: BTreeMap<&'a str, Metric>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expectations: Vec<Value>,
}

#[derive(Serialize)]
struct Metric {
    unit: Unit,
    judgement: &'static str,
    linux: Option<Side>,
    pagetide: Option<Side>,
    ratio: Value,
    verdict: &'static str,
}

#[derive(Serialize)]
struct Side {
    mean: Value,
    stddev: Value,
    n: usize,
}

fn variant(variant: &VariantComparison) -> Variant<'_> {
    Variant {
        name: &variant.name,
        alike: variant.is_alike,
        linux_runs: variant.linux_runs,
        pagetide_runs: variant.pagetide_runs,
        notes: &variant.notes,
        metrics: variant
            .counters()
            .map(|counter| (counter.key.as_str(), metric(counter)))
            .collect(),
        expectations: variant.expected.iter().map(ComparedExpectation::json).collect(),
    }
}

fn metric(counter: &CounterComparison) -> Metric {
    Metric {
        unit: counter.unit,
        judgement: counter.judgement.name(),
        linux: side(&counter.linux),
        pagetide: side(&counter.pagetide),
        ratio: counter.ratio.map_or(Value::Null, number),
        verdict: counter.verdict.name(),
    }
}

fn side(of: &stats::Statistics) -> Option<Side> {
    (of.n > 0).then(|| Side { mean: number(of.mean), stddev: number(of.stddev), n: of.n })
}

fn score(score: &GradeScore) -> Value {
    let entry = |key: &str, ratio: f64| json!({"key": key, "ratio": number(ratio)});
    json!({
        "counters": score.counters,
        "median_error": score.median_error.map(number),
        "worst": score.worst.as_ref().map(|(ratio, key)| entry(key, *ratio)),
        "beyond": score.beyond.iter().map(|(key, ratio)| entry(key, *ratio)).collect::<Vec<_>>(),
    })
}

/// 5, not 5.0; NaN and infinity are null.
fn number(value: f64) -> Value {
    as_integer(value).map_or_else(|| Value::from(value), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{compared, setup};
    use pagetide_lab::testing::record;

    fn parsed(values: &[(&str, f64, f64)]) -> Value {
        let comparison = Comparison::new("mix \"x\"", vec![compared(values)]);
        let text = render(
            &comparison,
            &ComparedSides { kernel: "6.1".to_owned(), ..ComparedSides::default() },
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn the_promised_shape() {
        let found = parsed(&[("t.p.pgmajfault", 2000.0, 2500.0), ("elapsed", 0.5, 0.25)]);
        let side = |mean: Value| json!({"mean": mean, "stddev": 0, "n": 1});
        let worst = json!({"key": "t.p.pgmajfault", "ratio": 1.25});
        let none = json!({"counters": 0, "median_error": null, "worst": null, "beyond": []});
        assert_eq!(
            found,
            json!({
                "scenario": "mix \"x\"", "version": pagetide_lab::VERSION, "kernel": "6.1", "policies": "", "how": "",
                "costs": "", "costs_ns": {},
                "not_comparable": [], "notes": [],
                "summary": {
                    "repeats": {"counters": 1, "median_error": 0.25, "worst": worst, "beyond": []},
                    "varies": none.clone(), "timed": none, "surplus": []
                },
                "variants": [{
                    "name": "v", "alike": true, "linux_runs": 1, "pagetide_runs": 1, "notes": [],
                    "metrics": {
                        "t.p.pgmajfault": {
                            "unit": "count", "judgement": "repeats", "linux": side(json!(2000)),
                            "pagetide": side(json!(2500)), "ratio": 1.25, "verdict": "off"
                        },
                        "elapsed": {
                            "unit": "count", "judgement": "shown", "linux": side(json!(0.5)),
                            "pagetide": side(json!(0.25)), "ratio": 0.5, "verdict": "not-judged"
                        }
                    }
                }]
            })
        );
    }

    #[test]
    fn what_is_no_number_is_null() {
        let found = parsed(&[("t.p.pgmajfault", 2000.0, 0.0), ("t.p.pswpin", f64::NAN, 1.0)]);
        assert_eq!(found["summary"]["repeats"]["median_error"], Value::Null);
        assert_eq!(found["summary"]["repeats"]["worst"]["ratio"], json!(0));
        let metrics = &found["variants"][0]["metrics"];
        assert_eq!(metrics["t.p.pswpin"]["linux"]["mean"], Value::Null);
        assert_eq!(metrics["t.p.pswpin"]["ratio"], Value::Null);
        let ours = [record("v", 1, &[("t.p.pswpin", 5.0)])];
        let found = VariantComparison::new("v", &setup(&["t.p"]), false, &[], &ours);
        let text = render(&Comparison::new("x", vec![found]), &ComparedSides::default());
        let found: Value = serde_json::from_str(&text).unwrap();
        let metric = &found["variants"][0]["metrics"]["t.p.pswpin"];
        assert_eq!((&metric["linux"], &metric["pagetide"]["n"]), (&Value::Null, &json!(1)));
    }
}
