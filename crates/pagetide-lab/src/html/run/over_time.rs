//! Timelines as charts: a panel for each variant, all over one axis of virtual time.

use super::super::lines::{Axis, Choice, Line, Lines, Panel, Shape, MOST_LINES};
use crate::report::{OverTime, Report};
use pagetide_scenario::record::Unit;
use pagetide_scenario::timeline::{Row, Sample};

/// What the axes of all these charts are.
const OVER: &str = "time";

/// The charts of the first seed of each variant; none without timelines.
pub fn figures(report: &Report) -> Vec<Lines> {
    let all: Vec<Variant> = report
        .columns
        .iter()
        .filter_map(|column| {
            let of = column.timeline.as_ref().filter(|of| !of.timeline.samples.is_empty())?;
            Some(Variant { name: &column.name, of })
        })
        .collect();
    if all.is_empty() {
        return Vec::new();
    }
    let figures = [groups(&all), reclaim(&all)];
    figures.into_iter().flatten().collect()
}

/// A variant that has samples.
struct Variant<'a> {
    name: &'a str,
    of: &'a OverTime,
}

impl Variant<'_> {
    fn samples(&self) -> &[Sample] {
        &self.of.timeline.samples
    }

    fn page_size(&self) -> f64 {
        self.of.page_size as f64
    }

    fn panel(&self, lines: Vec<Line>) -> Panel {
        let x = self.samples().iter().map(|sample| sample.end_ns as f64).collect();
        Panel { name: self.name.to_owned(), x, lines, marks: Vec::new() }
    }

    /// A value for each sample.
    fn each(&self, value: impl Fn(&Sample) -> Option<f64>) -> Vec<Option<f64>> {
        self.samples().iter().map(value).collect()
    }

    /// A count for each sample, by the second.
    fn rate(&self, count: impl Fn(&Sample) -> Option<f64>) -> Vec<Option<f64>> {
        let mut before = 0;
        let rate = |sample: &Sample| {
            let ns = sample.end_ns.saturating_sub(before);
            before = sample.end_ns;
            count(sample).filter(|_| ns > 0).map(|count| count * 1e9 / ns as f64)
        };
        self.samples().iter().map(rate).collect()
    }
}

fn time() -> Axis {
    Axis::new("virtual time", Unit::Seconds).times(1e-9)
}

fn figure(id: &str, title: &str, about: &str, y: Axis, choices: Vec<Choice>) -> Option<Lines> {
    let has_lines = |choice: &Choice| choice.panels.iter().any(|panel| !panel.lines.is_empty());
    let choices: Vec<Choice> = choices.into_iter().filter(has_lines).collect();
    let [id, title, about] = [id, title, about].map(str::to_owned);
    let over = Some(OVER);
    (!choices.is_empty()).then(|| Lines { id, title, about, x: time(), y, over, choices })
}

fn row(sample: &Sample, group: usize) -> Option<&Row> {
    sample.rows.get(group).and_then(Option::as_ref)
}

/// The groups that have lines: those that had most memory.
fn largest(variant: &Variant<'_>) -> Vec<usize> {
    let most = |group: usize| {
        let rows = variant.samples().iter().filter_map(|sample| row(sample, group));
        rows.map(|row| row.usage_max_pages).max().unwrap_or(0)
    };
    let mut groups: Vec<usize> = (1..variant.of.timeline.groups.len()).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(most(*group)));
    groups.truncate(MOST_LINES);
    groups.sort_unstable();
    groups
}

/// How much memory groups have.
fn groups(all: &[Variant<'_>]) -> Option<Lines> {
    let panel = |variant: &Variant<'_>| {
        let lines = largest(variant).into_iter().enumerate().map(|(number, group)| {
            let name = variant.of.timeline.groups[group].trim_start_matches('/');
            let level = |pages: fn(&Row) -> u64| {
                variant.each(|sample| row(sample, group).map(|row| pages(row) as f64))
            };
            Line::new(number, name, Shape::Line, level(|row| row.usage_pages))
                .between(level(|row| row.usage_min_pages), level(|row| row.usage_max_pages))
        });
        variant.panel(lines.collect())
    };
    let page = all[0].page_size();
    let panels = all.iter().map(panel).collect();
    figure(
        "time-groups",
        "Memory of groups",
        "memory.current. The ground is the least and the most between two samples.",
        Axis::new("memory", Unit::Bytes).times(page),
        vec![Choice { name: "in use".to_owned(), clip: None, panels }],
    )
}

/// Who reclaims, and how fast.
fn reclaim(all: &[Variant<'_>]) -> Option<Lines> {
    let choice = |name: &str, counts: [fn(&Row) -> u64; 2]| {
        let panel = |variant: &Variant<'_>| {
            let line = |(number, who): (usize, &str)| {
                let count = counts[number];
                let y = variant.rate(|sample| row(sample, 0).map(|row| count(row) as f64));
                Line::new(number, who, Shape::Before, y)
            };
            variant.panel(["kswapd", "tasks (direct)"].into_iter().enumerate().map(line).collect())
        };
        Choice { name: name.to_owned(), clip: None, panels: all.iter().map(panel).collect() }
    };
    figure(
        "time-reclaim",
        "Who reclaims",
        "Pages that kswapd and tasks reclaim (pgsteal), or look at (pgscan).",
        Axis::new("pages a second", Unit::Count),
        vec![
            choice("reclaimed", [|row| row.counts.pgsteal_kswapd, |row| row.counts.pgsteal_direct]),
            choice("scanned", [|row| row.counts.pgscan_kswapd, |row| row.counts.pgscan_direct]),
        ],
    )
}
