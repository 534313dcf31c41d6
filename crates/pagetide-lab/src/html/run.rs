//! The page of `pagetide run`: the question, what the runs say, in the words and figures of the text output, and what
//! it looked like over time.

mod latency;
mod over_time;
mod table;
mod verdict;
mod words;

use super::dots::{Dot, DotLine, Dots};
use super::lines::Lines;
use super::page::{anchor, Block, Page, Section};
use crate::report::Report;
use crate::table::{tabulate, Row, Table};
use crate::{heading, why};
use maud::{html, Markup};
use pagetide_scenario::metric::catalogue;

/// Figures of dots on a page: a row may stand for hundreds of metrics.
const MOST_DOTS: usize = 60;
/// Bytes of a scenario's text on a page.
const MOST_TEXT: usize = 256 << 10;

/// What a page says of where its figures come from.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The text of the scenario.
    pub scenario: String,
    /// The command that repeats the runs.
    pub command: String,
}

pub fn page(report: &Report, source: &Source) -> Page {
    let scenario = &report.plan.scenario;
    let table = tabulate(report);
    let over_time = over_time::figures(report);
    let latency = latency::figure(report, &table);
    let charts: Vec<&str> = over_time.iter().chain(&latency).map(|it| it.id.as_str()).collect();
    let verdict = verdict::blocks(report, &table);
    let results = table::blocks(report, &table, &charts);
    let title = match scenario.title.is_empty() {
        true => scenario.name.clone(),
        false => scenario.title.clone(),
    };
    Page {
        title,
        kind: "pagetide run",
        lead: lead(report),
        sections: vec![
            Section::new("verdict", "Verdict", verdict),
            Section::new("why", "Why", why_blocks(report)),
            Section::new("results", "Results", results),
            Section::new("seeds", "Seed by seed", seeds(report, &table)),
            Section::new("time", "Over time", time(report, over_time)),
            Section::new("latency", "Latency", latency.into_iter().map(Block::from).collect()),
            Section::new("notes", "Notes", notes(report)),
            Section::new("scenario", "The scenario", scenario_blocks(source)),
        ],
        foot: foot(&report.version, source),
    }
}

/// The question: what the scenario is about, the machine, and what runs on it.
fn lead(report: &Report) -> Markup {
    let scenario = &report.plan.scenario;
    let facts = heading::entries(report);
    html! {
        @for paragraph in words::paragraphs(&scenario.description) { p { (paragraph) } }
        dl.facts {
            @for (label, items) in &facts {
                @if !matches!(*label, "version") {
                    dt { (label) }
                    dd {
                        @for item in items { div { (item) } }
                    }
                }
                @if *label == "machine" {
                    dt { "load" }
                    dd {
                        @for line in words::load(&scenario.variants[0].setup) { div { (line) } }
                    }
                }
            }
        }
    }
}

/// Labels with what they label, without the version, which the foot has.
pub(super) fn facts(entries: &[(&'static str, String)]) -> Markup {
    html! {
        dl.facts {
            @for (label, text) in entries.iter().filter(|(label, _)| *label != "version") {
                dt { (label) } dd { (text) }
            }
        }
    }
}

/// The table of a report, and its dots.
pub(super) fn table_and_seeds(report: &Report) -> Vec<Block> {
    let table = tabulate(report);
    let mut blocks = table::blocks(report, &table, &[]);
    blocks.extend(seeds(report, &table));
    blocks
}

fn why_blocks(report: &Report) -> Vec<Block> {
    let sentences = why::sentences(report);
    if sentences.is_empty() {
        return Vec::new();
    }
    vec![html! { ul.why { @for sentence in &sentences { li { (sentence) } } } }.into()]
}

/// The anchor of a metric's dots.
fn anchor_of_dots(key: &str) -> String {
    anchor("seeds", key)
}

/// The anchor of a metric's row in the table.
fn anchor_of_row(key: &str) -> String {
    anchor("row", key)
}

fn seeds(report: &Report, table: &Table) -> Vec<Block> {
    let catalogue = catalogue::all();
    let about = |key: &str| {
        let name = key.rsplit('.').next().unwrap_or(key);
        let entry = catalogue.iter().find(|entry| entry.name == key || entry.name == name);
        entry.map(|entry| entry.about.to_string()).unwrap_or_default()
    };
    let has_samples = |row: &&Row| report.columns.iter().any(|it| it.series.contains_key(&row.key));
    let rows: Vec<&Row> = table.rows.iter().filter(has_samples).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let shown = rows.len().min(MOST_DOTS);
    vec![html! {
        p.note {
            "A dot is a run. The upright line is the mean, the band one standard deviation to each side. A hollow dot is "
            "of work that was not done to its end, and not counted."
            @if shown < rows.len() { " Of " (rows.len()) " rows of the table the first " (shown) " are here." }
        }
        div.all-dots {
            @for row in &rows[..shown] {
                (dots(report, row, about(&row.key)).markup())
            }
        }
    }
    .into()]
}

fn dots(report: &Report, row: &Row, about: String) -> Dots {
    let line = |number: usize| {
        let column = &report.columns[number];
        let series = column.series.get(&row.key);
        let samples = series.map(|series| series.samples.as_slice()).unwrap_or_default();
        let cell = &row.ours[number];
        let text = match cell.spread.is_empty() {
            true => cell.value.clone(),
            false => format!("{} \u{b1} {}", cell.value, cell.spread),
        };
        // The mean of what was not done: of all of it, and none of it counts.
        let is_none_done = !samples.is_empty() && samples.iter().all(|it| it.ended.is_some());
        let text = if is_none_done { format!("{text} of all, none of them done") } else { text };
        let dots = samples.iter().map(|sample| Dot {
            seed: sample.seed,
            value: sample.value,
            text: words::with_dagger(row.scale.print(sample.value, 0.0).0, sample.ended.is_some()),
            is_ended: sample.ended.is_some(),
        });
        let measured = series.map(|series| series.summary).filter(|it| it.n > 0);
        DotLine {
            name: column.name.clone(),
            text,
            mean: measured.map(|it| (it.mean, if it.n > 1 { it.stddev } else { 0.0 })),
            dots: dots.collect(),
        }
    };
    Dots {
        id: anchor_of_dots(&row.key),
        title: html! { a href={ "#" (anchor_of_row(&row.key)) } { (row.key) } },
        about,
        scale: row.scale,
        lines: (0..report.columns.len()).map(line).collect(),
    }
}

fn time(report: &Report, charts: Vec<Lines>) -> Vec<Block> {
    if charts.is_empty() {
        if report.cancelled == 0 {
            return Vec::new();
        }
        return vec![html! { p.note { "Interrupted before a run with the first seed had ended: there is nothing to draw." } }.into()];
    }
    let seeds = report.columns.iter().filter_map(|column| Some(column.timeline.as_ref()?.seed));
    let first = seeds.min().unwrap_or_default();
    let intro: Markup = html! {
        p.note {
            "The run with seed " (first) " of each variant, all on one axis of virtual time. Point at a chart to read the "
            "values of all of them at that time; with the keyboard, arrow keys move the cursor, "
            kbd { "+" } " and " kbd { "-" } " zoom, " kbd { "0" } " shows the whole time."
        }
    };
    std::iter::once(intro.into()).chain(charts.into_iter().map(Block::from)).collect()
}

fn notes(report: &Report) -> Vec<Block> {
    if report.notes.is_empty() && report.failures.is_empty() && report.cancelled == 0 {
        return Vec::new();
    }
    vec![html! {
        @for it in report.ended_runs() {
            p.warning {
                (it.variant) ": " (it.runs) " of " (it.finished) " runs have values of work that was not done to its end, "
                "marked \u{2020}: " (it.ended.word()) "."
            }
        }
        @if report.cancelled > 0 {
            p.warning { "Interrupted: " (report.cancelled) " runs are missing." }
        }
        @for run in &report.failures {
            p.warning {
                (run.variant) ", seed " (run.seed) " failed: " (run.failure.message)
                @if let Some(hint) = &run.failure.hint { " (" (hint) ")" }
            }
        }
        ul { @for note in &report.notes { li { (note) } } }
    }
    .into()]
}

/// The section with the scenario's text.
pub(super) fn scenario_blocks(source: &Source) -> Vec<Block> {
    if source.scenario.is_empty() {
        return Vec::new();
    }
    let (text, is_cut) = words::at_most(&source.scenario, MOST_TEXT);
    vec![html! {
        p { button type="button" data-copy="scenario-text" hidden { "Copy" } }
        pre.scenario tabindex="0" { code id="scenario-text" { (text) } }
        @if is_cut { p.note { "It goes on: this is its beginning." } }
    }
    .into()]
}

/// What stands at the end of a page.
pub(super) fn foot(version: &str, source: &Source) -> Markup {
    html! {
        p { "pagetide " (version) ". A run depends on the scenario, the seed and the version alone." }
        @if !source.command.is_empty() {
            p { "Again: " code { (source.command) } }
        }
    }
}

#[cfg(test)]
mod tests;
