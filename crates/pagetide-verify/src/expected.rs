//! The expectations of a scenario (`[[expect]]`), judged in the runs of Linux and Pagetide.
//!
//! A kernel's record has no events that did not happen in a phase. So an event that the simulator
//! counts and the record lacks is 0 on Linux. A missing level stays unknown. So does an event that
//! the kernel cannot report: the counters of the whole machine are complete, so an event that is
//! missing there is not filled in with zeros.

use pagetide_lab::expect::{self, VariantJudgement};
use pagetide_scenario::metric::criterion::RunMetrics;
use pagetide_scenario::metric::KeyNames;
use pagetide_scenario::model::Expectation;
use pagetide_scenario::record::{Metric, RunRecord, Unit};
use std::collections::BTreeSet;

/// An expectation, judged on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedExpectation {
    pub text: String,
    /// The criterion.
    pub that: String,
    pub linux: VariantJudgement,
    pub pagetide: VariantJudgement,
}

/// Judges the expectations of a variant in the runs of both sides.
pub fn judge(
    expectations: &[Expectation],
    variant: &str,
    names: &KeyNames,
    linux: &[RunRecord],
    pagetide: &[RunRecord],
) -> Vec<ComparedExpectation> {
    let events: BTreeSet<&String> = pagetide
        .iter()
        .flat_map(|record| &record.metrics)
        .filter(|(_, metric)| metric.unit == Unit::Count)
        .map(|(key, _)| key)
        .collect();
    let known: BTreeSet<&String> = linux.iter().flat_map(|record| record.metrics.keys()).collect();
    let is_reported = |key: &str| {
        let of_machine = names.key(key).name.into_owned();
        !events.contains(&of_machine) || known.contains(&of_machine)
    };
    let filled: Vec<(u64, RunMetrics)> = linux
        .iter()
        .map(|record| {
            let mut run = record.metrics.clone();
            for key in events.iter().filter(|key| is_reported(key)) {
                run.entry((*key).clone()).or_insert(Metric::new(0.0, Unit::Count));
            }
            (record.seed, run)
        })
        .collect();
    let theirs: Vec<(u64, &RunMetrics)> = filled.iter().map(|(seed, run)| (*seed, run)).collect();
    let ours: Vec<(u64, &RunMetrics)> =
        pagetide.iter().map(|record| (record.seed, &record.metrics)).collect();
    let linux = expect::judge(expectations, variant, &theirs);
    let pagetide = expect::judge(expectations, variant, &ours);
    let both = linux.into_iter().zip(pagetide);
    both.map(|((expectation, linux), (_, pagetide))| ComparedExpectation {
        text: expectation.text.clone(),
        that: expectation.criterion.to_string(),
        linux,
        pagetide,
    })
    .collect()
}

/// How many hold on each side, and which do not: pairs of label and text.
pub fn sentences(variant: &str, expected: &[ComparedExpectation]) -> Vec<(&'static str, String)> {
    if expected.is_empty() {
        return Vec::new();
    }
    let holding = |side: fn(&ComparedExpectation) -> &VariantJudgement| {
        expected.iter().filter(|expected| side(expected).holds()).count()
    };
    let of = if variant.is_empty() { String::new() } else { format!("{variant}: ") };
    let (linux, pagetide) = (holding(|it| &it.linux), holding(|it| &it.pagetide));
    let mut sentences = vec![(
        "expected",
        format!(
            "{of}met in every run: Linux {linux} of {0}, Pagetide {pagetide} of {0}",
            expected.len()
        ),
    )];
    for ComparedExpectation { text, that, linux, pagetide } in expected {
        for (world, side) in [("Linux", linux), ("Pagetide", pagetide)] {
            if let Some(first) = side.failed.first() {
                let (failed, runs) = (side.failed.len(), side.runs);
                sentences.push((
                    "  no",
                    format!(
                        "{text} ({that}): fails in {failed} of {runs} runs of {world} (seed {}: {})",
                        first.seed, first.seen
                    ),
                ));
            }
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_lab::testing::record;
    use pagetide_scenario::build::Builder;
    use pagetide_scenario::metric::criterion::Criterion;
    use pagetide_scenario::model::PageSize;

    #[test]
    fn missing_events_are_zero_and_unreported_ones_unknown() {
        let expectation = |that: &str| Expectation {
            text: String::new(),
            criterion: Criterion::parse(that, PageSize::Kib4).unwrap(),
            variants: Vec::new(),
        };
        let all = [
            expectation("t.p.pgfault == 0"),
            expectation("t.p.g.oom == 0"),
            expectation("t.p.mm_page_alloc_extfrag == 0"),
            expectation("mm_page_alloc_extfrag == 0"),
        ];
        let linux = record("v", 1, &[("pgfault", 5.0)]);
        let ours = record(
            "v",
            1,
            &[
                ("pgfault", 5.0),
                ("t.p.pgfault", 0.0),
                ("t.p.g.oom", 0.0),
                ("mm_page_alloc_extfrag", 0.0),
                ("t.p.mm_page_alloc_extfrag", 0.0),
            ],
        );
        let phase = Builder::new().set("name", "p").set("workload", "sleep").set("duration", "1ms");
        let task = Builder::new().set("name", "t").push("phase", phase);
        let machine = Builder::new().set("machine.memory", "2GiB").push("task", task);
        let setup = machine.push("group", Builder::new().set("name", "g")).setup().unwrap();
        let judged = judge(&all, "v", &KeyNames::of(&setup), &[linux], &[ours]);
        let failed: Vec<usize> = judged.iter().map(|it| it.linux.failed.len()).collect();
        assert_eq!(failed, [0, 0, 1, 1]);
        assert!(judged.iter().all(|it| it.pagetide.failed.is_empty()));
        assert_eq!(judged[3].linux.failed[0].seen, "no mm_page_alloc_extfrag");
    }
}
