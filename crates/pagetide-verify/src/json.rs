//! A comparison as JSON ([`VerifyOutput`]), with all metrics. NaN and infinity are `null`.

use crate::compare::{ComparedSides, Comparison, CounterComparison, VariantComparison};
use crate::expected::ComparedExpectation;
use crate::summary::GradeScore;
use pagetide_lab::expect::VariantJudgement;
use pagetide_lab::json::{pretty, Number};
use pagetide_lab::stats;
use pagetide_scenario::record::Unit;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Renders `comparison`, indented.
pub fn render(comparison: &Comparison, sides: &ComparedSides) -> String {
    let summary = comparison.summary();
    let surplus = |(key, linux, pagetide): &(String, f64, f64)| SurplusOutput {
        key: key.clone(),
        linux: Number(*linux),
        pagetide: Number(*pagetide),
    };
    pretty(&VerifyOutput {
        scenario: &comparison.scenario,
        version: pagetide_lab::VERSION,
        kernel: &sides.kernel,
        policies: &sides.policies,
        how: &sides.how,
        costs: &sides.costs,
        costs_ns: &sides.prices,
        not_comparable: &sides.not_comparable,
        notes: &sides.notes,
        summary: SummaryOutput {
            repeats: score(&summary.repeats),
            varies: score(&summary.varies),
            timed: score(&summary.timed),
            surplus: summary.surplus.iter().map(surplus).collect(),
        },
        variants: comparison.variants.iter().map(variant).collect(),
    })
}

/// A scenario on Linux and in Pagetide.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VerifyOutput<'a> {
    /// Name of the scenario.
    scenario: &'a str,
    /// Version of Pagetide.
    version: &'a str,
    /// The kernel, as it names itself.
    kernel: &'a str,
    /// Kernel version of the simulator's policies.
    policies: &'a str,
    /// Emulator and accelerator.
    how: &'a str,
    /// The simulator's costs; empty: the sourced table.
    costs: &'a str,
    /// Measured or stated costs of operations, in nanoseconds.
    costs_ns: &'a BTreeMap<&'static str, u64>,
    /// Parts of the scenario that Linux and Pagetide cannot do alike.
    not_comparable: &'a [String],
    /// Remarks on the comparison.
    notes: &'a [String],
    /// Of the variants that are alike.
    summary: SummaryOutput,
    /// In the order of the scenario.
    variants: Vec<ComparedVariantOutput<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct SummaryOutput {
    /// Counters that the kernel repeats.
    repeats: ScoreOutput,
    /// Counters that vary from run to run of the kernel.
    varies: ScoreOutput,
    timed: ScoreOutput,
    /// Counters that only one side has.
    surplus: Vec<SurplusOutput>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ScoreOutput {
    /// Number of counters.
    counters: usize,
    /// 0.05 is 5 %.
    median_error: Option<Number>,
    /// The counter that is off by the largest factor.
    worst: Option<RatioOutput>,
    /// Counters that are off by a large factor, worst first.
    beyond: Vec<RatioOutput>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct RatioOutput {
    /// Key of the metric.
    key: String,
    /// Pagetide divided by Linux.
    ratio: Number,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct SurplusOutput {
    /// Key of the metric.
    key: String,
    /// Value on Linux.
    linux: Number,
    /// Value in Pagetide.
    pagetide: Number,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ComparedVariantOutput<'a> {
    /// Name of the variant.
    name: &'a str,
    /// Whether it is in the summary: the kernel behaves as the simulated one.
    alike: bool,
    /// Number of runs on Linux.
    linux_runs: usize,
    /// Number of runs in Pagetide.
    pagetide_runs: usize,
    /// Remarks on the variant.
    notes: &'a [String],
    /// By key.
    metrics: BTreeMap<&'a str, CounterOutput>,
    /// If the scenario has any (`[[expect]]`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expectations: Vec<ComparedExpectationOutput<'a>>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct CounterOutput {
    unit: Unit,
    /// How the counter is judged, for example `repeats`.
    judgement: &'static str,
    /// null if the side does not have the metric.
    linux: Option<SideOutput>,
    /// null if the side does not have the metric.
    pagetide: Option<SideOutput>,
    /// Pagetide divided by Linux; null if there is none.
    ratio: Option<Number>,
    /// Result of the comparison, for example `off`.
    verdict: &'static str,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct SideOutput {
    /// Mean over the runs.
    mean: Number,
    /// Sample standard deviation over the runs.
    stddev: Number,
    /// Number of runs that have the metric.
    n: usize,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ComparedExpectationOutput<'a> {
    /// The expectation in words.
    text: &'a str,
    /// Its criterion.
    that: &'a str,
    /// Runs on Linux.
    linux: JudgedRunsOutput,
    /// Runs in Pagetide.
    pagetide: JudgedRunsOutput,
}

#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct JudgedRunsOutput {
    /// Number of runs.
    runs: usize,
    /// Seeds of the runs that do not meet it.
    failed: Vec<u64>,
}

fn variant(variant: &VariantComparison) -> ComparedVariantOutput<'_> {
    let metrics = variant.counters().map(|counter| (counter.key.as_str(), metric(counter)));
    ComparedVariantOutput {
        name: &variant.name,
        alike: variant.is_alike,
        linux_runs: variant.linux_runs,
        pagetide_runs: variant.pagetide_runs,
        notes: &variant.notes,
        metrics: metrics.collect(),
        expectations: variant.expected.iter().map(expectation).collect(),
    }
}

fn metric(counter: &CounterComparison) -> CounterOutput {
    CounterOutput {
        unit: counter.unit,
        judgement: counter.judgement.name(),
        linux: side(&counter.linux),
        pagetide: side(&counter.pagetide),
        ratio: counter.ratio.map(Number),
        verdict: counter.verdict.name(),
    }
}

fn side(of: &stats::Statistics) -> Option<SideOutput> {
    (of.n > 0).then_some(SideOutput { mean: Number(of.mean), stddev: Number(of.stddev), n: of.n })
}

fn expectation(of: &ComparedExpectation) -> ComparedExpectationOutput<'_> {
    let side = |side: &VariantJudgement| JudgedRunsOutput {
        runs: side.runs,
        failed: side.failed.iter().map(|failed| failed.seed).collect(),
    };
    ComparedExpectationOutput {
        text: &of.text,
        that: &of.that,
        linux: side(&of.linux),
        pagetide: side(&of.pagetide),
    }
}

fn score(score: &GradeScore) -> ScoreOutput {
    let entry = |key: &String, ratio: f64| RatioOutput { key: key.clone(), ratio: Number(ratio) };
    ScoreOutput {
        counters: score.counters,
        median_error: score.median_error.map(Number),
        worst: score.worst.as_ref().map(|(ratio, key)| entry(key, *ratio)),
        beyond: score.beyond.iter().map(|(key, ratio)| entry(key, *ratio)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{compared, setup};
    use pagetide_lab::testing::record;
    use serde_json::{json, Value};

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
