//! Checks `[[expect]]`: the criterion must parse, and its metrics and variants must exist.
//!
//! Variants may have different tasks and groups. The metrics must exist in the first variant that
//! the expectation applies to.

use super::report::{as_recorded, check_row, ReportKeys};
use crate::load::decode::Label;
use crate::load::raw;
use crate::load::span::{clip, list_names, ProblemSink, Spanned};
use crate::metric::criterion::Criterion;
use crate::model::{Expectation, Setup};

const EXPECTATIONS_MAX: usize = 1000;

pub(super) fn expectations(
    raw: &raw::ScenarioTable,
    setups: &[(&str, &Setup)],
    variants: &[&str],
    sink: &mut ProblemSink,
) -> Vec<Expectation> {
    let list = raw.expect.as_deref().unwrap_or_default();
    if list.is_empty() {
        return Vec::new();
    }
    if let Some(beyond) = list.get(EXPECTATIONS_MAX) {
        sink.error(beyond.at, format!("a scenario has at most {EXPECTATIONS_MAX} expectations"));
        return Vec::new();
    }
    let mut known: Vec<Option<ReportKeys>> = setups.iter().map(|_| None).collect();
    let checked = list.iter().filter_map(|expect| {
        let of: Vec<&str> = expect.variants.iter().flatten().map(|at| &*at.value.0).collect();
        // Unknown variants are reported elsewhere; then check against the first setup.
        let first = setups.iter().position(|(name, _)| of.contains(name)).unwrap_or(0);
        let (_, setup) = setups[first];
        let known = known[first].get_or_insert_with(|| ReportKeys::of_read(raw, setup));
        expectation(expect, known, setup, variants, sink)
    });
    checked.collect()
}

fn expectation(
    expect: &raw::ExpectTable,
    known: &ReportKeys,
    setup: &Setup,
    variants: &[&str],
    sink: &mut ProblemSink,
) -> Option<Expectation> {
    for (key, value, example) in [
        ("text", &expect.text, "text = \"all of it is anonymous\""),
        ("that", &expect.that, "that = \"allocstall == 0\""),
    ] {
        if value.is_none() && !expect.bad.contains(&key) {
            sink.hinted(
                expect.at,
                format!("the expectation has no `{key}`"),
                format!("add {example}"),
            );
        }
    }
    let (text, that) = (expect.text.as_ref()?, expect.that.as_ref()?);
    let criterion = criterion(that, known, setup, sink)?;
    if criterion.is_relative() {
        let hint = "only `pagetide find` knows `before`: compare two metrics by name";
        sink.hinted(that.span, "an expectation cannot use `before`", hint);
        return None;
    }
    let of: Vec<&Spanned<Label>> = expect.variants.iter().flatten().collect();
    for variant in &of {
        if !variants.contains(&variant.value.0.as_str()) {
            let hint = match sink.suggest(&variant.value.0, variants.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known: {}", list_names(variants.iter().copied())),
            };
            let message = format!("there is no variant `{}`", clip(&variant.value.0));
            sink.hinted(variant.span, message, hint);
        }
    }
    let variants = of.into_iter().map(|variant| variant.value.0.clone()).collect();
    Some(Expectation { text: text.value.clone(), criterion, variants })
}

/// Parses a criterion, and checks its metrics and units. Its metrics are keys of records.
pub(super) fn criterion(
    that: &Spanned<String>,
    known: &ReportKeys,
    setup: &Setup,
    sink: &mut ProblemSink,
) -> Option<Criterion> {
    let mut criterion = match Criterion::parse(&that.value, setup.machine.page_size) {
        Ok(criterion) => criterion,
        Err(mistake) => {
            sink.hinted(that.span, mistake.message, mistake.hint);
            return None;
        }
    };
    if let Some(pattern) = criterion.metrics().find(|metric| metric.contains('*')) {
        let message = format!("a criterion names one metric, and `{}` is a pattern", clip(pattern));
        sink.hinted(that.span, message, "write a criterion for each metric, joined by `and`");
        return None;
    }
    for metric in criterion.metrics() {
        check_row(&Spanned { value: metric.clone(), span: that.span }, known, setup, sink);
    }
    let unit_of = |metric: &str| {
        let key = known.names.read(metric)?;
        let found = known
            .metrics
            .iter()
            .find(|entry| entry.name == key.name && entry.of.contains(&key.scope.kind()));
        found.map(|entry| entry.unit)
    };
    if let Err(mistake) = criterion.check_units(unit_of) {
        sink.hinted(that.span, mistake.message, mistake.hint);
    }
    criterion.rename(|metric| as_recorded(metric, &known.names));
    Some(criterion)
}
