//! The page of `pagetide find`: the answer, the evidence per value, the costs, and the setting to
//! copy.
//!
//! Invariant: notes and facts are the sentences of the text output. An answer with one value has
//! the same figures in other sentences.

use crate::knob_axis::along;
use crate::lines::{
    ChartAxis, ChartChoice, ChartFigure, ChartLine, ChartMark, ChartPanel, LineShape,
};
use crate::page::{anchor, HtmlPage, PageBlock, PageSection};
use crate::run::{self, PageSource};
use maud::{html, Markup};
use pagetide_lab::find::answer::{AnswerKind, AnswerPoint, FindAnswer, CONFIDENCE};
use pagetide_lab::find::emit::{self, DeployFormat};
use pagetide_lab::find::question::Find;
use pagetide_lab::find::search::SeedCount;
use pagetide_lab::find::text;
use pagetide_lab::stats::lower_bound;
use pagetide_scenario::metric::MetricKey;
use pagetide_scenario::record::Unit;
use std::collections::BTreeSet;

/// Metrics that are drawn over the values: `--price` metrics and those of the criterion.
const MOST_METRICS: usize = 12;

/// The page of an answer. `provenance`: first lines of a file to deploy.
pub fn page(
    find: &Find,
    answer: &FindAnswer,
    provenance: &[String],
    source: &PageSource,
) -> HtmlPage {
    let scenario = &find.question().scenario;
    let title = match scenario.title.is_empty() {
        true => scenario.name.clone(),
        false => scenario.title.clone(),
    };
    HtmlPage {
        title,
        kind: "pagetide find",
        lead: run::facts(&text::entries(find)),
        sections: vec![
            PageSection::new("answer", "Answer", vec![result(find, answer).into()]),
            PageSection::new("values", "Seeds in which it holds", values(find, answer)),
            PageSection::new("price", "Changes with the value", prices(find, answer)),
            PageSection::new("costs", "Costs", costs(find, answer)),
            PageSection::new("deploy", "To deploy", deploy(find, answer, provenance)),
            PageSection::new("scenario", "The scenario", run::scenario_blocks(source)),
        ],
        foot: run::foot(pagetide_lab::VERSION, source),
    }
}

fn result(find: &Find, answer: &FindAnswer) -> Markup {
    html! {
        p.answer.none[!answer.is_answer()] { (sentences(find, answer)) }
        @if !answer.is_answer() { p.warning { "Nothing to deploy." } }
        ul {
            @for remark in text::remarks(find, answer) { li { (remark) } }
            @if let Some(remark) = proof(find, answer) { li { (remark) } }
        }
    }
}

/// The answer in sentences; without one value, the line of the text output.
fn sentences(find: &Find, answer: &FindAnswer) -> Markup {
    let question = find.question();
    let (Some(point), AnswerKind::Threshold | AnswerKind::Everything) =
        (&answer.point, answer.kind)
    else {
        let line = text::result(find, answer);
        let line = line.strip_prefix("Result: ").unwrap_or(&line);
        let mut letters = line.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        // A metric keeps its name.
        let first = if answer.point.is_none() { first + letters.as_str() } else { line.to_owned() };
        return html! { strong { (first) "." } };
    };
    let now = answer.now.as_ref().map(|now| format!(" (now {now})"));
    let sets = find.setting(point.place) + &now.unwrap_or_default();
    let (fresh, bound) = (point.fresh, percent((point.bound * 100.0).floor() / 100.0));
    html! {
        strong {
            @if point.is_confirmed { "Set " (sets) "." } @else { "Not confirmed: " (sets) "." }
        }
        " Then " (question.criterion) " holds in " (fresh.held) " of " (fresh.of) " fresh seeds: in at least "
        (bound) " of all seeds with " (percent(CONFIDENCE)) " confidence."
        @match &point.failing {
            Some((at, of)) => {
                " With the next value, " (find.value(*at)) ", it holds in " (of.held) " of " (of.of) "."
            }
            None if answer.kind == AnswerKind::Everything => { " Every value tried meets it." }
            None => {}
        }
        " Tried: " (answer.nr_values) " values in " (answer.nr_runs) " runs."
    }
}

/// How many seeds prove the wanted share, if those of the confirmation do not.
fn proof(find: &Find, answer: &FindAnswer) -> Option<String> {
    let share = find.question().share;
    let point = answer.to_deploy().filter(|point| point.bound < share)?;
    let wanted = text::percent(share);
    if share >= 1.0 {
        return Some(format!("No number of seeds proves that it holds in {wanted} of all seeds."));
    }
    let seeds = seeds_that_prove(share);
    let of = point.fresh.of;
    let cannot = match of < seeds {
        true => {
            format!("{of} fresh seeds are too few to prove that it holds in {wanted} of all seeds")
        }
        false => format!("It is not proven that it holds in {wanted} of all seeds"),
    };
    Some(format!("{cannot}. Use --seeds {seeds}: they prove it if it holds in each of them."))
}

/// The fewest seeds whose lower bound is the share, if the criterion holds in each.
fn seeds_that_prove(share: f64) -> u32 {
    // The lower bound of n of n is the n-th root of 1 - CONFIDENCE.
    let seeds = ((1.0 - CONFIDENCE).ln() / share.ln() - 1e-9).ceil();
    seeds.max(1.0) as u32
}

// --- Seeds in which it holds ---

/// Confidence interval of the share of all seeds (Clopper and Pearson).
fn between(count: SeedCount) -> (f64, f64) {
    let each = f64::midpoint(1.0, CONFIDENCE);
    let low = lower_bound(count.held, count.of, each);
    let high = 1.0 - lower_bound(count.of.saturating_sub(count.held), count.of, each);
    (low, high)
}

fn share(count: SeedCount) -> f64 {
    match count.of {
        0 => 0.0,
        of => f64::from(count.held) / f64::from(of),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn values(find: &Find, answer: &FindAnswer) -> Vec<PageBlock> {
    let confidence = percent(CONFIDENCE);
    let note = html! {
        p.note {
            "All values run with the same seeds. A value that fails on the first seeds gets no more. "
            "Candidates for the answer also run with fresh seeds. In parentheses: " (confidence)
            " confidence interval of the share of all seeds (Clopper and Pearson)."
        }
    };
    let mut blocks: Vec<PageBlock> = vec![note.into()];
    blocks.extend(threshold(find, answer).map(PageBlock::from));
    blocks.push(bars(find, answer).into());
    blocks
}

/// The x axis with the values tried, and the mark of the answer.
fn axis(find: &Find, answer: &FindAnswer) -> Option<(ChartAxis, Vec<f64>, Vec<ChartMark>)> {
    let texts: Vec<&str> = answer.looked_at.iter().map(|(at, _)| find.value(*at)).collect();
    if texts.is_empty() {
        return None;
    }
    let page_size = find.question().scenario.variants[0].setup.machine.page_size;
    let along = along(&find.question().knob.path, &texts, page_size);
    let place = |point: &AnswerPoint| answer.looked_at.iter().position(|it| it.0 == point.place);
    let mark = answer.point.as_ref().and_then(place).map(|at| {
        let word = if answer.is_answer() { "answer" } else { "not confirmed" };
        ChartMark { x: along.x[at], text: format!("{word}: {}", texts[at]) }
    });
    Some((along.axis, along.x, mark.into_iter().collect()))
}

fn threshold(find: &Find, answer: &FindAnswer) -> Option<ChartFigure> {
    let (x_axis, x, marks) = axis(find, answer)?;
    let counts = || answer.looked_at.iter().map(|(_, count)| *count);
    let percent = |value: f64| Some(value * 100.0);
    let held = counts().map(|count| percent(share(count))).collect();
    let (low, high) =
        counts().map(between).map(|(low, high)| (percent(low), percent(high))).unzip();
    let wanted = vec![percent(find.question().share); x.len()];
    let criterion = find.question().criterion.to_string();
    let lines = vec![
        ChartLine::new(0, criterion.clone(), LineShape::LineAndPoints, held).between(low, high),
        ChartLine::new(1, "wanted", LineShape::Line, wanted),
    ];
    Some(ChartFigure {
        id: "values-held".to_owned(),
        title: format!("Seeds with {criterion}"),
        about: "Share of the seeds in which it holds, by value, with its confidence interval."
            .to_owned(),
        x: x_axis,
        y: ChartAxis::new("seeds", Unit::Percent),
        over: Some("values"),
        choices: one(ChartPanel { name: String::new(), x, lines, marks }),
    })
}

fn one(panel: ChartPanel) -> Vec<ChartChoice> {
    vec![ChartChoice { name: String::new(), clip: None, panels: vec![panel] }]
}

/// The shares as bars in a table, readable without colour, without a script, and aloud.
fn bars(find: &Find, answer: &FindAnswer) -> Markup {
    let row = |name: &str, count: SeedCount| {
        let ((low, high), share) = (between(count), share(count));
        html! {
            tr {
                th scope="row" { (name) }
                td.number {
                    (count.held) " of " (count.of) " (" (percent(low)) " to " (percent(high)) ")"
                }
                td aria-hidden="true" {
                    div.bar {
                        span style={ "width:" (format!("{:.1}", share * 100.0)) "%" } title=(percent(share)) {}
                    }
                }
            }
        }
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="All runs of each value" {
            table.bars {
                caption { span.hold { "All runs of each value" } }
                thead {
                    tr {
                        th scope="col" { "value" }
                        th scope="col" { "seeds in which it holds" }
                        th aria-hidden="true" {}
                    }
                }
                tbody {
                    (row("unchanged", answer.before))
                    @for &(at, count) in &answer.looked_at {
                        @if answer.point.as_ref().is_some_and(|point| point.place == at) {
                            (row(&format!("{} \u{2190} answer", find.value(at)), count))
                        } @else {
                            (row(find.value(at), count))
                        }
                    }
                }
            }
        }
    }
}

// --- Changes with the value ---

fn prices(find: &Find, answer: &FindAnswer) -> Vec<PageBlock> {
    let question = find.question();
    let mut seen = BTreeSet::new();
    let of_criterion = question.criterion.metrics();
    let metrics =
        question.prices.iter().chain(of_criterion).filter(|it| seen.insert((*it).clone()));
    let metrics: Vec<&String> = metrics.take(MOST_METRICS).collect();
    if metrics.is_empty() || answer.looked_at.is_empty() {
        return Vec::new();
    }
    let reports: Vec<_> = answer.looked_at.iter().map(|(at, _)| find.side_by_side(*at)).collect();
    let summary = |metric: &MetricKey, at: usize| {
        let report = reports.get(at)?.as_ref()?;
        report.summary(1, metric).copied().filter(|it| it.mean.is_finite())
    };
    let unit = |metric: &MetricKey| {
        let mut found = reports.iter().flatten().filter_map(|report| report.unit(metric));
        found.next().unwrap_or(Unit::Ratio)
    };
    let places = 0..answer.looked_at.len();
    let mut blocks: Vec<PageBlock> = Vec::new();
    for metric in metrics {
        let key = find.names().key(metric);
        let of: Vec<_> = places.clone().map(|at| summary(&key, at)).collect();
        if of.iter().all(Option::is_none) {
            continue;
        }
        let Some((x_axis, x, marks)) = axis(find, answer) else { continue };
        let y = of.iter().map(|it| it.map(|it| it.mean)).collect();
        let end = |sign: f64| of.iter().map(|it| it.map(|it| it.mean + sign * it.stddev)).collect();
        let line = ChartLine::new(0, metric.clone(), LineShape::LineAndPoints, y)
            .between(end(-1.0), end(1.0));
        blocks.push(
            ChartFigure {
                id: anchor("price", metric),
                title: metric.clone(),
                about: "Mean over the seeds. The band is \u{b1} one standard deviation.".to_owned(),
                x: x_axis,
                y: ChartAxis::new(metric.clone(), unit(&key)),
                over: Some("values"),
                choices: one(ChartPanel { name: String::new(), x, lines: vec![line], marks }),
            }
            .into(),
        );
    }
    blocks
}

// --- Costs, and the setting ---

fn costs(find: &Find, answer: &FindAnswer) -> Vec<PageBlock> {
    let Some(point) = &answer.point else { return Vec::new() };
    let Some(report) = text::costs_report(find, point) else { return Vec::new() };
    if report.plan.scenario.rows.is_empty() {
        return vec![html! { p { (text::NO_COSTS) } }.into()];
    }
    let what = match point.prices.is_empty() {
        true => "Rows that got significantly worse.",
        false => "The --price metrics, and rows that got significantly worse.",
    };
    let mut blocks: Vec<PageBlock> = vec![html! { p.note { (what) } }.into()];
    blocks.extend(run::table_and_seeds(&report));
    blocks
}

fn deploy(find: &Find, answer: &FindAnswer, provenance: &[String]) -> Vec<PageBlock> {
    let Some(point) = answer.to_deploy() else { return Vec::new() };
    let setup = &find.question().scenario.variants[0].setup;
    let files = DeployFormat::ALL.into_iter().filter_map(|form| {
        let (path, value) = (&find.question().knob.path, find.value(point.place));
        let text = emit::render(form, path, value, setup, provenance).ok()?;
        Some((text, form.name(), form.about()))
    });
    let mut files: Vec<(String, &str, &str)> = files.collect();
    if files.is_empty() {
        files.push((format!("{}\n", find.setting(point.place)), "setting", "For --set"));
    }
    files
        .into_iter()
        .map(|(text, name, about)| {
            html! {
                h3 { (name) }
                p.note { (about) "." }
                p { button type="button" data-copy=(format!("deploy-{name}")) hidden { "Copy" } }
                pre.scenario tabindex="0" { code id=(format!("deploy-{name}")) { (text) } }
            }
            .into()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_seeds_that_proves_a_share() {
        for (share, seeds) in [(0.95, 59), (0.9, 29), (0.5, 5)] {
            assert_eq!(seeds_that_prove(share), seeds);
            assert!(lower_bound(seeds, seeds, CONFIDENCE) >= share - 1e-9);
            assert!(lower_bound(seeds - 1, seeds - 1, CONFIDENCE) < share);
        }
        assert_eq!(text::percent(0.995), "99.5 %");
    }
}
