//! The page of `pagetide run`: the question, the results with the sentences and figures of the text
//! output, and charts over time.

mod latency;
mod over_time;
mod table;
mod verdict;
mod words;

use crate::dots::{Dot, DotFigure, DotLine};
use crate::lines::ChartFigure;
use crate::page::{anchor, HtmlPage, PageBlock, PageSection};
use maud::{html, Markup};
use pagetide_lab::report::Report;
use pagetide_lab::table::{tabulate, RenderedTable, TableRow};
use pagetide_lab::{facts, heading};
use pagetide_scenario::metric::catalogue;

/// Dot figures on a page: there may be hundreds of rows.
const MOST_DOTS: usize = 60;
/// Bytes of the scenario's text on a page.
const MOST_TEXT: usize = 256 << 10;

/// Source of the figures of a page.
#[derive(Clone, Debug, Default)]
pub struct PageSource {
    /// Text of the scenario.
    pub scenario: String,
    /// The command that repeats the runs.
    pub command: String,
}

pub fn page(report: &Report, source: &PageSource) -> HtmlPage {
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
    HtmlPage {
        title,
        kind: "pagetide run",
        lead: lead(report),
        sections: vec![
            PageSection::new("verdict", "Verdict", verdict),
            PageSection::new("why", "Why", why_blocks(report)),
            PageSection::new("results", "Results", results),
            PageSection::new("seeds", "Seed by seed", seeds(report, &table)),
            PageSection::new("time", "Over time", time(report, over_time)),
            PageSection::new(
                "latency",
                "Latency",
                latency.into_iter().map(PageBlock::from).collect(),
            ),
            PageSection::new("notes", "Notes", notes(report)),
            PageSection::new("scenario", "The scenario", scenario_blocks(source)),
        ],
        foot: foot(&report.version, source),
    }
}

/// The top of the page: description, machine and load.
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

/// Pairs of label and text, without the version, which the foot has.
pub(super) fn facts(entries: &[(&'static str, String)]) -> Markup {
    html! {
        dl.facts {
            @for (label, text) in entries.iter().filter(|(label, _)| *label != "version") {
                dt { (label) } dd { (text) }
            }
        }
    }
}

pub(super) fn table_and_seeds(report: &Report) -> Vec<PageBlock> {
    let table = tabulate(report);
    let mut blocks = table::blocks(report, &table, &[]);
    blocks.extend(seeds(report, &table));
    blocks
}

fn why_blocks(report: &Report) -> Vec<PageBlock> {
    let sentences = facts::sentences(report);
    if sentences.is_empty() {
        return Vec::new();
    }
    vec![html! { ul.why { @for sentence in &sentences { li { (sentence) } } } }.into()]
}

fn anchor_of_dots(key: &str) -> String {
    anchor("seeds", key)
}

fn anchor_of_row(key: &str) -> String {
    anchor("row", key)
}

fn seeds(report: &Report, table: &RenderedTable) -> Vec<PageBlock> {
    let catalogue = catalogue::all();
    let about = |row: &TableRow| {
        let found = catalogue::find(&catalogue, row.key.scope.kind(), &row.key.name);
        found.map(|entry| entry.about.to_string()).unwrap_or_default()
    };
    let has_samples =
        |row: &&TableRow| report.columns.iter().any(|it| it.series.contains_key(&row.key));
    let rows: Vec<&TableRow> = table.rows.iter().filter(has_samples).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let shown = rows.len().min(MOST_DOTS);
    vec![html! {
        p.note {
            "Each dot is a run. The vertical line is the mean, the band is \u{b1} one standard deviation. "
            "Hollow dots are values of incomplete work; they are not in the mean."
            @if shown < rows.len() { " Only the first " (shown) " of " (rows.len()) " rows are shown." }
        }
        div.all-dots {
            @for row in &rows[..shown] {
                (dots(report, row, about(row)).markup())
            }
        }
    }
    .into()]
}

fn dots(report: &Report, row: &TableRow, about: String) -> DotFigure {
    let line = |number: usize| {
        let column = &report.columns[number];
        let series = column.series.get(&row.key);
        let samples = series.map(|series| series.samples.as_slice()).unwrap_or_default();
        let cell = &row.ours[number];
        let text = match cell.spread.is_empty() {
            true => cell.value.clone(),
            false => format!("{} \u{b1} {}", cell.value, cell.spread),
        };
        let is_none_done = !samples.is_empty() && samples.iter().all(|it| it.ended.is_some());
        let text = if is_none_done { format!("{text} (all incomplete)") } else { text };
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
    DotFigure {
        id: anchor_of_dots(&row.label),
        title: html! { a href={ "#" (anchor_of_row(&row.label)) } { (row.label) } },
        about,
        scale: row.scale,
        lines: (0..report.columns.len()).map(line).collect(),
    }
}

fn time(report: &Report, charts: Vec<ChartFigure>) -> Vec<PageBlock> {
    if charts.is_empty() {
        if report.cancelled == 0 {
            return Vec::new();
        }
        let note = "Nothing to draw: interrupted before a run with the first seed ended.";
        return vec![html! { p.note { (note) } }.into()];
    }
    let seeds = report.columns.iter().filter_map(|column| Some(column.timeline.as_ref()?.seed));
    let first = seeds.min().unwrap_or_default();
    let intro: Markup = html! {
        p.note {
            "The run with seed " (first) " of each variant, over virtual time. Point at a chart to read the "
            "values of all charts at that time. Keys: arrows move the cursor, "
            kbd { "+" } " and " kbd { "-" } " zoom, "
            kbd { "0" } " shows the whole run."
        }
    };
    std::iter::once(intro.into()).chain(charts.into_iter().map(PageBlock::from)).collect()
}

fn notes(report: &Report) -> Vec<PageBlock> {
    if report.notes.is_empty() && report.failures.is_empty() && report.cancelled == 0 {
        return Vec::new();
    }
    vec![html! {
        @for it in report.ended_runs() {
            p.warning {
                (it.variant) ": " (it.runs) " of " (it.finished) " runs are incomplete (" (it.ended.word()) "). "
                "Values of this variant are marked \u{2020} and not compared."
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

pub(super) fn scenario_blocks(source: &PageSource) -> Vec<PageBlock> {
    if source.scenario.is_empty() {
        return Vec::new();
    }
    let (text, is_cut) = words::at_most(&source.scenario, MOST_TEXT);
    vec![html! {
        p { button type="button" data-copy="scenario-text" hidden { "Copy" } }
        pre.scenario tabindex="0" { code id="scenario-text" { (text) } }
        @if is_cut { p.note { "The rest of the scenario is cut off." } }
    }
    .into()]
}

/// The end of a page.
pub(super) fn foot(version: &str, source: &PageSource) -> Markup {
    html! {
        p { "pagetide " (version) ". A run depends only on the scenario, the seed and the version." }
        @if !source.command.is_empty() {
            p { "Command: " code { (source.command) } }
        }
    }
}

#[cfg(test)]
mod tests;
