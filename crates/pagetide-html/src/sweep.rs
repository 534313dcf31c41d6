//! The page of `pagetide sweep`: each metric over the values of the knob, as a curve with its
//! spread (two knobs: as a grid), and all points in a table.
//!
//! Invariant: a point with an incomplete run is a gap in curves and has a dagger in tables, as in
//! the text output.

use crate::heat::{HeatCell, HeatMap};
use crate::knob_axis::along;
use crate::lines::{
    ChartAxis, ChartChoice, ChartFigure, ChartLine, ChartPanel, LineShape, MOST_LINES,
};
use crate::page::{anchor, HtmlPage, PageBlock, PageSection};
use crate::run::{self, PageSource};
use maud::html;
use pagetide_lab::dagger::{self, Daggers, DAGGER};
use pagetide_lab::format::{counted, Scale};
use pagetide_lab::report::Report;
use pagetide_lab::rows;
use pagetide_lab::stats::Statistics;
use pagetide_lab::sweep::output::{points, report};
use pagetide_lab::sweep::store::{SweepKey, SweepRow};
use pagetide_lab::table::{our_cell, to_scale};
use pagetide_scenario::metric::MetricKey;
use pagetide_scenario::model::PageSize;
use pagetide_scenario::record::{Incomplete, Unit};
use std::collections::BTreeSet;

/// Metrics that are drawn; the table has all.
const MOST_METRICS: usize = 40;
/// Grids of a metric, one for each combination of variants and further knobs.
const MOST_GRIDS: usize = 12;
/// Lines of the table.
const MOST_POINTS: usize = 2000;

/// The page of these rows. `wanted`: the metrics to show; if empty, the rows of a report.
pub fn page(all: &[&SweepRow], wanted: &[String], source: &PageSource) -> HtmlPage {
    let mut report = report(all.iter().copied());
    if !wanted.is_empty() {
        report.plan.scenario.rows = wanted.to_vec();
    }
    let metrics = rows::rows(&report);
    let (points, daggers) = (points(all.iter().copied()), Daggers::new(&report));
    let sweep = Sweep { points, metrics, daggers, report: &report };
    let name = all.first().map_or("nothing", |row| row.record.scenario.as_str());
    let axes = sweep.axes();
    let title = match axes.as_slice() {
        [] => name.to_owned(),
        axes => format!("{name}, by {}", axes.join(" and ")),
    };
    HtmlPage {
        title,
        kind: "pagetide sweep",
        lead: run::facts(&sweep.facts(&axes)),
        sections: vec![
            PageSection::new("metrics", "By the values of the knobs", sweep.metrics(&axes)),
            PageSection::new("points", "All points", sweep.table()),
            PageSection::new("notes", "Notes", sweep.notes()),
            PageSection::new("scenario", "The scenario", run::scenario_blocks(source)),
        ],
        foot: run::foot(pagetide_lab::VERSION, source),
    }
}

struct Sweep<'a> {
    report: &'a Report,
    daggers: Daggers<'a>,
    /// One per column of the report.
    points: Vec<SweepKey>,
    metrics: Vec<MetricKey>,
}

/// Points that differ only in the axes: a name for what they share, and their columns.
type Slice = (String, Vec<usize>);

impl Sweep<'_> {
    /// Knobs that have several values, with most values first.
    fn axes(&self) -> Vec<String> {
        let knobs: BTreeSet<&String> =
            self.points.iter().flat_map(|key| key.knobs.keys()).collect();
        let mut axes: Vec<(usize, String)> =
            knobs.into_iter().map(|knob| (self.values(knob).len(), knob.clone())).collect();
        axes.retain(|(values, _)| *values > 1);
        axes.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        axes.into_iter().map(|(_, knob)| knob).collect()
    }

    /// The values of a knob, in the order of the points.
    fn values(&self, knob: &str) -> Vec<&str> {
        let mut values: Vec<&str> = Vec::new();
        for value in self.points.iter().filter_map(|key| key.knobs.get(knob)) {
            if !values.contains(&value.as_str()) {
                values.push(value);
            }
        }
        values
    }

    fn facts(&self, axes: &[String]) -> Vec<(&'static str, String)> {
        let variants: BTreeSet<&str> = self.points.iter().map(|key| key.variant.as_str()).collect();
        let runs = self.report.columns.iter().map(|column| column.finished);
        let (least, runs_most) = (runs.clone().min().unwrap_or(0), runs.max().unwrap_or(0));
        let most = counted(runs_most, "seed");
        let same = least == runs_most;
        let seeds = if same { most } else { format!("{least} to {most}") };
        let knobs: Vec<String> =
            axes.iter().map(|knob| format!("{knob}: {}", self.values(knob).join(", "))).collect();
        let mut facts = vec![("scenario", self.report.plan.scenario.name.clone())];
        if !knobs.is_empty() {
            facts.push(("knobs", knobs.join("; ")));
        }
        if variants.len() > 1 {
            facts.push(("variants", variants.into_iter().collect::<Vec<_>>().join(", ")));
        }
        facts.push(("points", format!("{}, {seeds} each", self.points.len())));
        facts
    }

    /// Points grouped by everything but the axes.
    fn slices(&self, axes: &[&String]) -> Vec<Slice> {
        let mut slices: Vec<Slice> = Vec::new();
        let has_variants = self.points.iter().any(|key| key.variant != self.points[0].variant);
        for (column, key) in self.points.iter().enumerate() {
            let others = key
                .knobs
                .iter()
                .filter(|(knob, _)| !axes.contains(knob) && self.values(knob).len() > 1);
            let mut parts: Vec<String> =
                others.map(|(knob, value)| format!("{knob}={value}")).collect();
            if has_variants {
                parts.insert(0, key.variant.clone());
            }
            let name = parts.join(" ");
            match slices.iter_mut().find(|(known, _)| *known == name) {
                Some((_, columns)) => columns.push(column),
                None => slices.push((name, vec![column])),
            }
        }
        slices
    }

    /// Mean and spread of a metric; `None` if it has a dagger.
    fn measured(&self, column: usize, metric: &MetricKey) -> Option<(f64, f64)> {
        let summary = self.report.summary(column, metric)?;
        let is_incomplete = self.daggers.of(column, metric).is_some();
        (!is_incomplete && summary.mean.is_finite()).then_some((summary.mean, summary.stddev))
    }

    fn scale(&self, metric: &MetricKey) -> Scale {
        let shown = (0..self.points.len()).filter_map(|it| self.report.shown_summary(it, metric));
        let shown: Vec<Statistics> = shown.collect();
        Scale::new(self.unit(metric), &to_scale(&metric.name, shown.iter()))
    }

    fn unit(&self, metric: &MetricKey) -> Unit {
        self.report.unit(metric).unwrap_or(Unit::Ratio)
    }

    fn metrics(&self, axes: &[String]) -> Vec<PageBlock> {
        if axes.is_empty() {
            return Vec::new();
        }
        let shown: Vec<&MetricKey> = self.metrics.iter().take(MOST_METRICS).collect();
        let mut ids = Vec::new();
        let mut blocks: Vec<PageBlock> = Vec::new();
        for metric in &shown {
            let id = anchor("metric", &self.report.text(metric));
            blocks.push(match axes {
                [axis] => self.curve(&id, metric, axis).into(),
                [first, second, ..] => self.grid(&id, metric, [first, second]),
                [] => continue,
            });
            ids.push(id);
        }
        let intro = html! {
            p.note {
                @if axes.len() == 1 {
                    "Means over the seeds. The band behind a line is \u{b1} one standard deviation. "
                } @else {
                    "Means over the seeds. The larger a value, the more its cell stands out. "
                }
                @if self.metrics.len() > shown.len() {
                    "Only the first " (shown.len()) " of " (self.metrics.len()) " metrics are drawn. "
                }
            }
            @if ids.len() > 1 { div.pick data-of=(ids.join(" ")) data-label="Metric:" {} }
        };
        blocks.insert(0, intro.into());
        blocks
    }

    fn curve(&self, id: &str, metric: &MetricKey, axis: &String) -> ChartFigure {
        let values = self.values(axis);
        let along = along(axis, &values, PageSize::default());
        let slices = self.slices(&[axis]);
        let line = |(number, (name, columns)): (usize, &Slice)| {
            let at = |value: &&str| {
                let is_it = |column: &&usize| {
                    self.points[**column].knobs.get(axis).map(String::as_str) == Some(*value)
                };
                columns.iter().find(is_it).and_then(|column| self.measured(*column, metric))
            };
            let of: Vec<Option<(f64, f64)>> = values.iter().map(at).collect();
            let end = |sign: f64| of.iter().map(|it| it.map(|it| it.0 + sign * it.1)).collect();
            let name = if name.is_empty() { "mean" } else { name.as_str() };
            let y = of.iter().map(|it| it.map(|it| it.0)).collect();
            ChartLine::new(number, name, LineShape::LineAndPoints, y).between(end(-1.0), end(1.0))
        };
        let lines: Vec<ChartLine> = slices.iter().enumerate().take(MOST_LINES).map(line).collect();
        let about = match slices.len() {
            many if many > MOST_LINES => format!("Only the first {MOST_LINES} of {many} lines."),
            _ => String::new(),
        };
        let panel = ChartPanel { name: String::new(), x: along.x, lines, marks: Vec::new() };
        ChartFigure {
            id: id.to_owned(),
            title: self.report.text(metric),
            about,
            x: along.axis,
            y: ChartAxis::new(self.report.text(metric), self.unit(metric)),
            over: Some("knob"),
            choices: vec![ChartChoice { name: String::new(), clip: None, panels: vec![panel] }],
        }
    }

    fn grid(&self, id: &str, metric: &MetricKey, [across, down]: [&String; 2]) -> PageBlock {
        let scale = self.scale(metric);
        let unit = match scale.symbol {
            "" => String::new(),
            symbol => format!(", {symbol}"),
        };
        let columns: Vec<String> = self.values(across).iter().map(|it| (*it).to_owned()).collect();
        let slices = self.slices(&[across, down]);
        let heat = |(name, of): &Slice| {
            let cell = |row: &str, value: &str| {
                let is_it = |column: &&usize| {
                    let knobs = &self.points[**column].knobs;
                    let of = |knob: &String| knobs.get(knob).map(String::as_str);
                    of(across) == Some(value) && of(down) == Some(row)
                };
                let column = of.iter().find(is_it);
                let value = column.and_then(|column| self.measured(*column, metric));
                let text = match column {
                    Some(column) => self.text(*column, metric, &scale),
                    None => "-".to_owned(),
                };
                HeatCell { value: value.map(|it| it.0), text }
            };
            let row = |row: &&str| {
                (row.to_string(), columns.iter().map(|value| cell(row, value)).collect())
            };
            HeatMap {
                caption: if name.is_empty() { "Means".to_owned() } else { name.clone() },
                axes: [across.clone(), down.clone()],
                columns: columns.clone(),
                rows: self.values(down).iter().map(row).collect(),
            }
        };
        html! {
            figure.grid id=(id) {
                figcaption {
                    h3 { (self.report.text(metric)) @if !unit.is_empty() { span.unit { (unit) } } }
                    @if slices.len() > MOST_GRIDS {
                        p { "Only the first " (MOST_GRIDS) " of " (slices.len()) " grids." }
                    }
                }
                @for slice in slices.iter().take(MOST_GRIDS) { (heat(slice).markup()) }
            }
        }
        .into()
    }

    /// The mean as the table prints it, with its dagger.
    fn text(&self, column: usize, metric: &MetricKey, scale: &Scale) -> String {
        let summary = self.report.shown_summary(column, metric);
        let cell = our_cell(&metric.name, summary.as_ref(), scale);
        match (summary, self.daggers.of(column, metric)) {
            (Some(_), Some(_)) => format!("{} {DAGGER}", cell.value),
            _ => cell.value,
        }
    }

    fn table(&self) -> Vec<PageBlock> {
        if self.metrics.is_empty() {
            return vec![html! { p { "No metric to show." } }.into()];
        }
        let scales: Vec<Scale> = self.metrics.iter().map(|metric| self.scale(metric)).collect();
        let spread = |column: usize, metric: &MetricKey, scale: &Scale| {
            let cell =
                our_cell(&metric.name, self.report.shown_summary(column, metric).as_ref(), scale);
            if cell.spread.is_empty() {
                String::new()
            } else {
                format!(" \u{b1} {}", cell.spread)
            }
        };
        let shown = self.points.len().min(MOST_POINTS);
        let cells = (0..shown).flat_map(|it| self.metrics.iter().map(move |of| (it, of)));
        let incomplete: BTreeSet<Incomplete> =
            cells.filter_map(|(column, metric)| self.daggers.of(column, metric)).collect();
        vec![html! {
            p.filter data-of="table-points" data-label="Only points with" {}
            div.scroll tabindex="0" role="region" aria-label="All points" {
                table id="table-points" {
                    thead {
                        tr {
                            th scope="col" { "point" }
                            @for (metric, scale) in self.metrics.iter().zip(&scales) {
                                th.number scope="col" {
                                    (self.report.text(metric))
                                    @if !scale.symbol.is_empty() { ", " (scale.symbol) }
                                }
                            }
                        }
                    }
                    tbody {
                        @for column in 0..shown {
                            tr {
                                th scope="row" { (self.report.columns[column].name) }
                                @for (metric, scale) in self.metrics.iter().zip(&scales) {
                                    td.number {
                                        (self.text(column, metric, scale))
                                        span.unit { (spread(column, metric, scale)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            p.note {
                "Mean \u{b1} sample standard deviation over the seeds. "
                @if shown < self.points.len() {
                    "Only the first " (shown) " of " (self.points.len()) " points; "
                    code { "--format csv" } " has all. "
                }
                @if !incomplete.is_empty() {
                    (dagger::legend(&incomplete)) "."
                }
            }
        }
        .into()]
    }

    fn notes(&self) -> Vec<PageBlock> {
        match self.report.notes.is_empty() {
            true => Vec::new(),
            false => {
                vec![html! { ul { @for note in &self.report.notes { li { (note) } } } }.into()]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_lab::testing::record;
    use pagetide_scenario::record::Incomplete;

    fn row(variant: &str, knobs: &[(&str, &str)], seed: u64, walltime: f64) -> SweepRow {
        let metrics = [("web.walltime", walltime), ("pgmajfault", walltime * 100.0)];
        let text = |it: &(&str, &str)| (it.0.to_owned(), it.1.to_owned());
        SweepRow {
            scenario_digest: "0".to_owned(),
            knobs: knobs.iter().map(text).collect(),
            record: record(variant, seed, &metrics),
        }
    }

    fn render(rows: &[SweepRow]) -> String {
        let mut rows: Vec<&SweepRow> = rows.iter().collect();
        rows.sort_by_key(|row| row.key());
        page(&rows, &[], &PageSource::default()).render()
    }

    #[test]
    fn one_knob_is_a_curve_for_each_metric_and_variant() {
        let mut rows = Vec::new();
        for (at, value) in ["1", "10", "200"].into_iter().enumerate() {
            for seed in [1, 2] {
                let walltime = at as f64 + seed as f64 / 8.0;
                rows.push(row("calm", &[("vm.swappiness", value)], seed, walltime));
                rows.push(row("busy", &[("vm.swappiness", value)], seed, 2.0 * walltime));
            }
        }
        rows[0].record.metrics.get_mut("web.walltime").unwrap().ended = Some(Incomplete::OomKilled);
        let text = render(&rows);
        assert_eq!(text.matches("<figure class=\"lines\"").count(), 2);
        for wanted in
            ["data-of=\"metric-web.walltime metric-pgmajfault\"", "calm vm.swappiness=10", DAGGER]
        {
            assert!(text.contains(wanted), "{wanted}");
        }
        assert!(text.contains("vm.swappiness: 1, 10, 200"));
        assert!(text.contains("\"log\":true"));
    }

    #[test]
    fn two_knobs_are_a_grid_and_more_are_several() {
        let mut rows = Vec::new();
        for (a, b, c) in
            [("1", "x", "p"), ("2", "x", "p"), ("1", "y", "p"), ("1", "x", "q"), ("3", "x", "q")]
        {
            rows.push(row("v", &[("a", a), ("b", b), ("c", c)], 1, 1.5));
        }
        let text = render(&rows);
        assert_eq!(
            text.matches("<table class=\"heat\"").count(),
            2 * 2,
            "of both metrics, for p and q"
        );
        assert!(text.contains(">c=p<"));
    }

    #[test]
    fn one_point_and_odd_values_make_a_page() {
        let odd = "<a \" & '\u{2028}";
        let text = render(&[row(odd, &[("k", odd)], 1, f64::NAN)]);
        assert!(!text.contains("<a \"") && text.contains("&lt;a"));
        let text =
            render(&[row("v", &[("k", odd)], 1, 1.0), row("v", &[("k", "</script>")], 1, 2.0)]);
        assert!(!text.contains("</script> ") && text.contains("&lt;/script&gt;"));
        page(&[], &[], &PageSource::default()).render();
    }
}
