//! The expectations of a scenario (`[[expect]]`), judged in its runs.
//!
//! Invariant: an expectation holds if it holds in every finished run of each of its selected
//! variants. A variant without a finished run does not meet it. An expectation without a selected
//! variant is not judged.

use crate::format::Scale;
use crate::heading::wrap;
use crate::report::Report;
use pagetide_scenario::metric::criterion::RunMetrics;
use pagetide_scenario::model::Expectation;
use pagetide_scenario::record::{Incomplete, Metric};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const LABEL_WIDTH: usize = 10;

#[derive(Clone, Debug)]
pub struct JudgedExpectation<'a> {
    pub expectation: &'a Expectation,
    /// One per selected variant of the expectation.
    pub variants: Vec<VariantJudgement>,
}

/// The runs of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct VariantJudgement {
    /// Name of the variant.
    pub variant: String,
    /// Number of finished runs.
    pub runs: usize,
    /// Seeds of the runs that do not meet it.
    #[serde(serialize_with = "seeds")]
    #[schemars(with = "Vec<u64>")]
    pub failed: Vec<FailedExpectation>,
}

/// A run that does not meet an expectation.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedExpectation {
    pub seed: u64,
    /// The values of the first failing comparison.
    pub seen: String,
}

fn seeds<S: Serializer>(failed: &[FailedExpectation], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(failed.iter().map(|failed| failed.seed))
}

impl VariantJudgement {
    /// Whether there are runs, and the expectation holds in all.
    pub fn holds(&self) -> bool {
        self.runs > 0 && self.failed.is_empty()
    }
}

impl JudgedExpectation<'_> {
    pub fn holds(&self) -> bool {
        !self.variants.is_empty() && self.variants.iter().all(VariantJudgement::holds)
    }

    /// The expectation, and the runs that do not meet it.
    pub fn sentence(&self) -> String {
        let Expectation { text, criterion: that, .. } = self.expectation;
        let mut sentence = format!("{text} ({that})");
        for VariantJudgement { variant, runs, failed } in &self.variants {
            if *runs == 0 {
                write!(sentence, "; {variant}: no run finished").expect("writing to a string");
            }
            if let Some(first) = failed.first() {
                let (nr, FailedExpectation { seed, seen }) = (failed.len(), first);
                write!(sentence, "; {variant}: fails in {nr} of {runs} runs (seed {seed}: {seen})")
                    .expect("writing to a string");
            }
        }
        sentence
    }
}

/// Judges what is expected of a variant, in its runs: their seeds and values.
pub fn judge<'a>(
    expectations: &'a [Expectation],
    variant: &str,
    runs: &[(u64, &RunMetrics)],
) -> Vec<(&'a Expectation, VariantJudgement)> {
    let of_variant = expectations.iter().filter(|expectation| expectation.applies_to(variant));
    let judged = of_variant.map(|expectation| {
        let failed = runs.iter().filter_map(|&(seed, run)| {
            let failing = expectation.criterion.terms.iter().find(|term| !term.holds(run, None))?;
            let mut metrics: Vec<&String> = failing.metrics().collect();
            metrics.dedup();
            let seen: Vec<String> = metrics
                .into_iter()
                .map(|key| match run.get(key) {
                    Some(Metric { ended: Some(ended), .. }) => format!("{key} {}", ended.word()),
                    Some(metric) => format!("{key} {}", amount(metric)),
                    None => format!("no {key}"),
                })
                .collect();
            Some(FailedExpectation { seed, seen: seen.join(", ") })
        });
        let of = VariantJudgement {
            variant: variant.to_owned(),
            runs: runs.len(),
            failed: failed.collect(),
        };
        (expectation, of)
    });
    judged.collect()
}

fn amount(metric: &Metric) -> String {
    let scale = Scale::new(metric.unit, &[(metric.value, 0.0)]);
    format!("{} {}", scale.print(metric.value, 0.0).0, scale.symbol).trim_end().to_owned()
}

pub fn of_report(report: &Report) -> Vec<JudgedExpectation<'_>> {
    let expectations = &report.plan.scenario.expectations;
    let planned = &report.plan.scenario.variants;
    let mut all: Vec<JudgedExpectation<'_>> = expectations
        .iter()
        .filter(|expectation| planned.iter().any(|variant| expectation.applies_to(&variant.name)))
        .map(|expectation| JudgedExpectation { expectation, variants: Vec::new() })
        .collect();
    if all.is_empty() {
        return all;
    }
    let wanted: BTreeSet<&String> =
        expectations.iter().flat_map(|expectation| expectation.criterion.metrics()).collect();
    for column in &report.columns {
        let mut runs: BTreeMap<u64, RunMetrics> = BTreeMap::new();
        for (key, series) in report.by_text(column) {
            for sample in &series.samples {
                let run = runs.entry(sample.seed).or_default();
                if wanted.contains(key) {
                    // A criterion is about the work of its metrics.
                    let ended = sample.ended.filter(|it| *it != Incomplete::IncompleteRun);
                    let metric = Metric { value: sample.value, unit: series.unit, ended };
                    run.insert(key.clone(), metric);
                }
            }
        }
        let runs: Vec<(u64, &RunMetrics)> = runs.iter().map(|(seed, run)| (*seed, run)).collect();
        let mut judged = judge(expectations, &column.name, &runs).into_iter().peekable();
        for place in &mut all {
            let next =
                judged.next_if(|(expectation, _)| std::ptr::eq(*expectation, place.expectation));
            place.variants.extend(next.map(|(_, of)| of));
        }
    }
    all
}

/// How many hold, and which do not, in lines of at most `width` characters; empty without
/// expectations.
pub fn render(judged: &[JudgedExpectation<'_>], width: usize) -> String {
    if judged.is_empty() {
        return String::new();
    }
    let failed: Vec<&JudgedExpectation<'_>> =
        judged.iter().filter(|judged| !judged.holds()).collect();
    let (holding, all) = (judged.len() - failed.len(), judged.len());
    let mut out = format!("\n{:<LABEL_WIDTH$}{holding} of {all} hold in every run\n", "expected");
    for judged in failed {
        for (index, line) in
            wrap(&judged.sentence(), width.saturating_sub(LABEL_WIDTH)).iter().enumerate()
        {
            let front = if index == 0 { "  no" } else { "" };
            writeln!(out, "{front:<LABEL_WIDTH$}{line}").expect("writing to a string");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::report_of;
    use pagetide_scenario::metric::criterion::Criterion;
    use pagetide_scenario::model::PageSize;

    fn expectation(that: &str, variants: &[&str]) -> Expectation {
        Expectation {
            text: "as it should be".to_owned(),
            criterion: Criterion::parse(that, PageSize::Kib4).unwrap(),
            variants: variants.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn every_run_of_every_variant_counts() {
        let mut report = report_of(&[
            ("a", vec![&[("x", 1.0), ("y", 2.0)], &[("x", 2.0), ("y", 2.0)]]),
            ("b", vec![&[("x", 5.0)], &[("x", 5.0)]]),
        ]);
        report.plan.scenario.expectations = vec![
            expectation("x >= 1", &[]),
            expectation("x < y", &["a"]),
            expectation("y == 2", &[]),
            expectation("x == 5", &["b"]),
            expectation("x == 5", &["c"]),
        ];
        let judged = of_report(&report);
        assert_eq!(
            judged.iter().map(JudgedExpectation::holds).collect::<Vec<_>>(),
            [true, false, false, true],
            "c is not selected"
        );
        assert_eq!(
            judged[1].variants[0].failed,
            [FailedExpectation { seed: 2, seen: "x 2, y 2".to_owned() }]
        );
        let text = render(&judged, 100);
        assert!(
            text.starts_with("\nexpected  2 of 4 hold in every run\n  no      as it should be"),
            "{text}"
        );
        assert!(text.contains("b: fails in 2 of 2 runs (seed 1: no y)"), "{text}");
        assert!(!text.contains("no run finished"), "{text}");
        assert_eq!(render(&[], 100), "");
    }

    #[test]
    fn a_variant_without_finished_runs_meets_no_expectation() {
        let mut report = report_of(&[("a", vec![&[("x", 1.0)]]), ("b", vec![])]);
        report.plan.scenario.expectations =
            vec![expectation("x >= 1", &[]), expectation("x >= 1", &["a"])];
        let judged = of_report(&report);
        assert_eq!(judged.iter().map(JudgedExpectation::holds).collect::<Vec<_>>(), [false, true]);
        let text = render(&judged, 100);
        assert!(text.contains("b: no run finished"), "{text}");
    }
}
