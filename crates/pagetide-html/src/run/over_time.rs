//! Timelines as charts over virtual time, one panel per variant.
//!
//! Invariant: levels are drawn at the ends of samples with the extremes between, counts as rates
//! over their sample, waits as running sums (a wait counts when it ends).

mod activity;
mod load;
mod memory;

use crate::lines::{
    ChartAxis, ChartChoice, ChartFigure, ChartLine, ChartMark, ChartPanel, LineShape,
};
use pagetide_lab::report::{Report, RunTimeline};
use pagetide_scenario::record::timeline::{GroupRow, Timeline, TimelineDeed, TimelineSample};
use pagetide_scenario::record::Unit;
use std::collections::BTreeSet;

/// The shared x axis.
const OVER: &str = "time";
/// About this many numbers on a page; with more, neighbouring samples are merged.
const MOST_NUMBERS: usize = 200_000;
/// Most signals that a panel shows.
const MOST_MARKS: usize = 8;
/// Samples are not merged below this number.
const LEAST_SAMPLES: usize = 128;

/// The charts of the first seed of each variant; none without timelines.
pub fn figures(report: &Report) -> Vec<ChartFigure> {
    let of = report.columns.iter().filter_map(|column| Some((column, column.timeline.as_ref()?)));
    let mut all: Vec<Variant> = of
        .filter(|(_, of)| !of.timeline.samples.is_empty())
        .map(|(column, of)| Variant { name: column.name.clone(), of: of.clone() })
        .collect();
    if all.is_empty() {
        return Vec::new();
    }
    let numbers = |variant: &Variant| numbers_of_a_sample(&variant.of.timeline);
    while all.iter().map(|it| numbers(it) * it.samples().len()).sum::<usize>() > MOST_NUMBERS
        && all.iter().any(|it| it.samples().len() >= 2 * LEAST_SAMPLES)
    {
        all.iter_mut().for_each(|variant| halve(&mut variant.of.timeline));
    }
    let figures = [
        memory::zones(&all),
        memory::groups(&all),
        memory::holds(&all),
        activity::reclaim(&all),
        activity::pressure(&all),
        activity::faults(&all),
        load::services(&all),
        load::stalls(&all),
    ];
    figures.into_iter().flatten().collect()
}

/// About how many numbers of a sample are drawn.
fn numbers_of_a_sample(timeline: &Timeline) -> usize {
    let most = crate::lines::MOST_LINES;
    let groups = timeline.groups.len().min(most);
    12 + timeline.zones.len() * 6 + groups * 8 + timeline.tasks.len().min(most) * 3
}

/// Merges pairs of neighbours.
fn halve(timeline: &mut Timeline) {
    if timeline.samples.len() < 2 * LEAST_SAMPLES {
        return;
    }
    let mut samples = std::mem::take(&mut timeline.samples).into_iter();
    while let Some(mut sample) = samples.next() {
        if let Some(later) = samples.next() {
            sample.merge(later);
        }
        timeline.samples.push(sample);
    }
}

/// A variant that has samples.
struct Variant {
    name: String,
    of: RunTimeline,
}

impl Variant {
    fn timeline(&self) -> &Timeline {
        &self.of.timeline
    }

    fn samples(&self) -> &[TimelineSample] {
        &self.of.timeline.samples
    }

    fn panel(&self, lines: Vec<ChartLine>) -> ChartPanel {
        let x = self.samples().iter().map(|sample| sample.end_ns as f64).collect();
        ChartPanel { name: self.name.clone(), x, lines, marks: self.signals() }
    }

    /// The first signals of watchers. (Their writes may be one each second.)
    fn signals(&self) -> Vec<ChartMark> {
        let signals = self.timeline().deeds.iter().filter(|deed| deed.is_signal());
        let mark = |deed: &TimelineDeed| {
            let TimelineDeed { ns, act, target, .. } = deed;
            ChartMark { x: *ns as f64, text: format!("{act} {target}") }
        };
        signals.take(MOST_MARKS).map(mark).collect()
    }

    fn each(&self, value: impl Fn(&TimelineSample) -> Option<f64>) -> Vec<Option<f64>> {
        self.samples().iter().map(value).collect()
    }

    /// A count per sample, as a rate per second.
    fn rate(&self, count: impl Fn(&TimelineSample) -> Option<u64>) -> Vec<Option<f64>> {
        self.by_second(self.samples().iter().map(count))
    }

    /// Counts, one per sample, as rates per second.
    fn by_second(&self, counts: impl Iterator<Item = Option<u64>>) -> Vec<Option<f64>> {
        let mut before = 0;
        let rate = |(sample, count): (&TimelineSample, Option<u64>)| {
            let ns = sample.end_ns.saturating_sub(before);
            before = sample.end_ns;
            count.filter(|_| ns > 0).map(|count| count as f64 * 1e9 / ns as f64)
        };
        self.samples().iter().zip(counts).map(rate).collect()
    }

    /// The sum up to each sample.
    fn so_far(&self, count: impl Fn(&TimelineSample) -> u64) -> Vec<Option<f64>> {
        let mut sum = 0u64;
        let add = |sample: &TimelineSample| {
            sum = sum.saturating_add(count(sample));
            Some(sum as f64)
        };
        self.samples().iter().map(add).collect()
    }

    /// A running count of /proc/vmstat, as a rate per second.
    fn vmstat_rate(&self, name: &str) -> Option<Vec<Option<f64>>> {
        let at = self.timeline().vmstat.iter().position(|it| it == name)?;
        let mut before = None;
        let counts = self.samples().iter().map(|sample| {
            let now = sample.vmstat.get(at).copied()?;
            let earlier = before.replace(now)?;
            Some(now.saturating_sub(earlier))
        });
        Some(self.by_second(counts))
    }
}

fn figure(
    id: &str,
    title: &str,
    about: &str,
    y: ChartAxis,
    choices: Vec<ChartChoice>,
) -> Option<ChartFigure> {
    let has_lines =
        |choice: &ChartChoice| choice.panels.iter().any(|panel| !panel.lines.is_empty());
    let choices: Vec<ChartChoice> = choices.into_iter().filter(has_lines).collect();
    let [id, title, about] = [id, title, about].map(str::to_owned);
    let (x, over) = (ChartAxis::new("virtual time", Unit::Seconds).times(1e-9), Some(OVER));
    (!choices.is_empty()).then_some(ChartFigure { id, title, about, x, y, over, choices })
}

/// One choice, with a panel per variant.
fn choice(
    name: impl Into<String>,
    all: &[Variant],
    lines: impl Fn(&Variant) -> Vec<ChartLine>,
) -> ChartChoice {
    let panels = all.iter().map(|variant| variant.panel(lines(variant))).collect();
    ChartChoice { name: name.into(), clip: None, panels }
}

fn row(sample: &TimelineSample, group: usize) -> Option<&GroupRow> {
    sample.rows.get(group).and_then(Option::as_ref)
}

/// The `indices` with the largest `size`, as many as get lines, in ascending order.
fn largest(indices: std::ops::Range<usize>, size: impl Fn(usize) -> u64) -> Vec<usize> {
    let mut list: Vec<usize> = indices.collect();
    list.sort_by_key(|index| std::cmp::Reverse(size(*index)));
    list.truncate(crate::lines::MOST_LINES);
    list.sort_unstable();
    list
}

/// Whether a line has anything but zeros.
fn has_nonzero(line: &ChartLine) -> bool {
    line.y.iter().flatten().any(|value| *value != 0.0)
}

/// Drops lines that are zero in every panel, and choices without other lines.
fn drop_zeros(choices: &mut Vec<ChartChoice>) {
    for choice in choices.iter_mut() {
        let all = choice.panels.iter().flat_map(|panel| &panel.lines);
        let kept: BTreeSet<String> =
            all.filter(|line| has_nonzero(line)).map(|line| line.name.clone()).collect();
        for panel in &mut choice.panels {
            panel.lines.retain(|line| kept.contains(&line.name));
        }
    }
    choices.retain(|choice| choice.panels.iter().any(|panel| !panel.lines.is_empty()));
}

/// A line of rates or sums.
fn before(number: usize, name: &str, y: Vec<Option<f64>>) -> ChartLine {
    ChartLine::new(number, name, LineShape::Before, y)
}
