//! A timeline as charts in plain text.
//!
//! Each group has a chart of its memory over time. A column is several samples: their minimum (`#`)
//! and, above it, their maximum (`:`), so that a short dip has its full depth. Below are the
//! scanned and reclaimed pages, on one scale for all groups. The machine comes first, with free
//! memory and compaction; then the nodes with their fragmentation, the services, and the watchers with
//! what they did.
//!
//! Invariant: only a group's name can make a line longer than the width. No sample is left out.

mod csv;
mod nodes;
mod services;
mod watchers;

use crate::format::Scale;
use crate::heading::wrap;
pub use csv::{render_csv, HEADER};
use pagetide_scenario::record::timeline::{
    CompactionCounts, GroupEvents, GroupRow, Timeline, TimelineSample,
};
use pagetide_scenario::record::Unit;
use std::fmt::Write;

/// Default width in characters.
pub const WIDTH: usize = 100;
/// Narrower pages are treated as this wide.
pub const LEAST_WIDTH: usize = 60;

/// Lines of a chart.
const HEIGHT: u64 = 8;
/// Characters before the columns.
const FRONT: usize = 16;
/// Characters after the columns.
const BACK: usize = 12;
/// The first `DRAWN` counts of [`GroupEvents::values`] are drawn.
const DRAWN: usize = 4;
/// Shades from 0 to the maximum.
const RAMP: [char; 10] = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];
/// Short names of the counts of compaction.
const COMPACTION_LABELS: [&str; 3] = ["migrate_scan", "free_scan", "migrated"];

/// Charts of at most `width` characters. `page_size`: bytes per page.
pub fn render(timeline: &Timeline, page_size: u64, width: usize) -> String {
    let width = width.max(LEAST_WIDTH);
    let nr_columns = (width - FRONT - BACK).min(timeline.samples.len());
    let charts: Vec<Chart> =
        (0..timeline.groups.len()).map(|group| Chart::new(timeline, group, nr_columns)).collect();
    let most =
        [0, 2].map(|kind| charts.iter().flat_map(|chart| chart.drawn(kind)).max().unwrap_or(0));
    let [scanned, stolen] = most;
    let mut out = String::new();
    for chart in &charts {
        chart.draw(timeline, most, page_size, &mut out);
        out.push('\n');
        if chart.group == 0 {
            nodes::draw(timeline, nr_columns, &mut out);
            services::draw(timeline, nr_columns, &mut out);
            watchers::draw(timeline, nr_columns, &mut out);
        }
    }
    let end_ns = timeline.samples.last().map_or(0, |sample| sample.end_ns);
    let column_ns = end_ns / nr_columns.max(1) as u64;
    let legend = format!(
        "A column is {}. Memory: `#` minimum, `:` maximum. pgscan from `.` (any) to `@` ({scanned} \
         pages), pgsteal to `@` ({stolen} pages); totals on the right. {}{}{}",
        time(column_ns),
        nodes::LEGEND,
        if timeline.services.is_empty() { String::new() } else { format!(" {}", services::LEGEND) },
        if timeline.deeds.is_empty() { String::new() } else { format!(" {}", watchers::LEGEND) },
    );
    out + &wrap(&legend, width).join("\n") + "\n"
}

/// The columns of a group.
struct Chart {
    group: usize,
    columns: Vec<Option<GroupRow>>,
}

impl Chart {
    fn new(timeline: &Timeline, group: usize, nr_columns: usize) -> Chart {
        let column = |at: usize| {
            column_of(timeline, nr_columns, at)
                .iter()
                .map(|sample| sample.rows.get(group).copied().flatten())
                .fold(None, GroupRow::merged_option)
        };
        Chart { group, columns: (0..nr_columns).map(column).collect() }
    }

    /// Two counts of all columns, from count `first` on.
    fn drawn(&self, first: usize) -> impl Iterator<Item = u64> + '_ {
        let counts = move |row: &GroupRow| row.counts.values().into_iter().skip(first).take(2);
        self.columns.iter().flatten().flat_map(counts)
    }

    fn draw(&self, timeline: &Timeline, most: [u64; 2], page_size: u64, out: &mut String) {
        let size = |pages: u64| size(pages, page_size);
        let is_machine = self.group == 0;
        // Minimum and maximum in pages: free memory of the machine, used memory of a group.
        let levels: Vec<Option<(u64, u64)>> = self
            .columns
            .iter()
            .map(|row| {
                row.as_ref().map(|row| {
                    let (least, most) = (row.usage_min_pages, row.usage_max_pages);
                    let free = |used: u64| timeline.machine_pages.saturating_sub(used);
                    if is_machine {
                        (free(most), free(least))
                    } else {
                        (least, most)
                    }
                })
            })
            .collect();
        let peak = levels.iter().flatten().map(|level| level.1).max().unwrap_or(0);
        // Free memory of an empty machine would dwarf the watermarks.
        let top =
            if is_machine { peak.min(4 * timeline.high_watermarks_pages).max(1) } else { peak };
        let name = if is_machine { "machine, free memory" } else { &timeline.groups[self.group] };
        let clipped = if top < peak { ", clipped" } else { "" };
        let _ = writeln!(out, "{name} (0 to {}{clipped})", size(top));
        bars(&levels, HEIGHT, top, size, out);
        for (at, label) in GroupEvents::NAMES.iter().enumerate().take(DRAWN) {
            let counts =
                || self.columns.iter().map(|row| row.map_or(0, |row| row.counts.values()[at]));
            let total: u64 = counts().sum();
            if total > 0 {
                row_of(
                    label,
                    counts().map(|count| shade(count, most[at / 2])),
                    &total.to_string(),
                    out,
                );
            }
        }
        if is_machine {
            draw_compaction(timeline, self.columns.len(), out);
        }
        axis(timeline, self.columns.len(), out);
    }
}

fn column_of(timeline: &Timeline, nr_columns: usize, at: usize) -> &[TimelineSample] {
    let nr_samples = timeline.samples.len();
    &timeline.samples[at * nr_samples / nr_columns..(at + 1) * nr_samples / nr_columns]
}

/// Minimum and maximum of each column, as bars of `height` lines.
fn bars(
    levels: &[Option<(u64, u64)>],
    height: u64,
    top: u64,
    label: impl Fn(u64) -> String,
    out: &mut String,
) {
    for line in (0..height).rev() {
        let label = match line {
            line if line == height - 1 => label(top),
            line if line == height / 2 - 1 => label(top / 2),
            0 => "0".to_owned(),
            _ => String::new(),
        };
        // A line is filled if the level reaches its middle.
        let reaches = |level: u64| top > 0 && level * 2 * height >= top * (2 * line + 1);
        let bars = levels.iter().map(|level| match level {
            Some((least, _)) if reaches(*least) => '#',
            Some((_, most)) if reaches(*most) => ':',
            _ => ' ',
        });
        row_of(&label, bars, "", out);
    }
}

/// Counts of compaction, one line each, with separate scales.
fn draw_compaction(timeline: &Timeline, nr_columns: usize, out: &mut String) {
    let columns: Vec<[u64; 3]> = (0..nr_columns)
        .map(|at| column_of(timeline, nr_columns, at))
        .map(|samples| {
            let sums = samples.iter().map(|sample| sample.compaction);
            sums.fold(CompactionCounts::default(), |sum, counts| sum.plus(&counts)).values()
        })
        .collect();
    for (at, label) in COMPACTION_LABELS.iter().enumerate() {
        let counts = || columns.iter().map(|counts| counts[at]);
        let total: u64 = counts().sum();
        if total > 0 {
            let most = counts().max().unwrap_or(0);
            row_of(label, counts().map(|count| shade(count, most)), &total.to_string(), out);
        }
    }
}

/// The time axis below a chart.
fn axis(timeline: &Timeline, nr_columns: usize, out: &mut String) {
    let end = time(timeline.samples.last().map_or(0, |sample| sample.end_ns));
    let gap = nr_columns.saturating_sub(1 + end.len());
    let _ = writeln!(out, "{:FRONT$}0{:gap$}{end}", "", "");
}

fn row_of(label: &str, columns: impl Iterator<Item = char>, total: &str, out: &mut String) {
    let columns: String = columns.collect();
    let line = format!("{label:>width$} |{columns}| {total}", width = FRONT - 2);
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Shade of a count: any count is darker than 0.
fn shade(count: u64, most: u64) -> char {
    if count == 0 || most == 0 {
        return RAMP[0];
    }
    let steps = RAMP.len() as u128 - 2;
    let at = 1 + u128::from(count.min(most)) * steps / u128::from(most);
    RAMP[at as usize]
}

fn size(pages: u64, page_size: u64) -> String {
    let bytes = pages as f64 * page_size as f64;
    if pages == 0 {
        return "0".to_owned();
    }
    let scale = Scale::new(Unit::Bytes, &[(bytes, 0.0)]);
    format!("{} {}", scale.print(bytes, 0.0).0, scale.symbol)
}

fn time(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    let scale = Scale::new(Unit::Seconds, &[(seconds, 0.0)]);
    format!("{} {}", scale.print(seconds, 0.0).0, scale.symbol)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use pagetide_scenario::record::timeline::NodeRow;

    /// A group of 1000 pages that has only 100 during one of `nr_samples` samples.
    pub(super) fn with_a_cut(nr_samples: u64, at: u64) -> Timeline {
        let row = |least: u64, scanned: u64| {
            let counts = GroupEvents { pgscan_kswapd: scanned, ..GroupEvents::default() };
            let usage = 1000;
            Some(GroupRow {
                usage_pages: usage,
                usage_min_pages: least,
                usage_max_pages: usage,
                counts,
                ..GroupRow::default()
            })
        };
        let sample = |index: u64| {
            let (least, scanned) = if index == at { (100, 900) } else { (1000, 1) };
            let group = if index < 2 { None } else { row(least, scanned) };
            let node = NodeRow {
                free_pages: 1000,
                large_blocks: u64::from(index != at),
                unusable_index: if index == at { 1000 } else { 488 },
                unusable_index_min: 488,
                unusable_index_max: if index == at { 1000 } else { 488 },
            };
            let moved = if index == at { [1000, 70_000, 300] } else { [0; 3] };
            TimelineSample {
                end_ns: (index + 1) * 1_000_000,
                rows: vec![row(least, scanned), group],
                nodes: vec![node],
                compaction: CompactionCounts::of_values(moved),
                ..TimelineSample::default()
            }
        };
        Timeline {
            groups: vec![String::new(), "/a, b".to_owned()],
            machine_pages: 2000,
            high_watermarks_pages: 100,
            nr_nodes: 1,
            samples: (0..nr_samples).map(sample).collect(),
            ..Timeline::default()
        }
    }

    #[test]
    fn a_cut_of_one_sample_survives_any_width() {
        for width in [0, 60, 72, 100, 200] {
            let text = render(&with_a_cut(512, 300), 4096, width);
            let group = text.split("/a, b (0 to 3.906 MiB)\n").nth(1).unwrap();
            let chart: Vec<&str> = group.lines().take(HEIGHT as usize).collect();
            // One column has only its lowest line filled.
            assert_eq!(
                chart.iter().map(|line| line.matches(':').count()).sum::<usize>(),
                7,
                "{text}"
            );
            assert!(!chart[HEIGHT as usize - 1].contains(':'), "{text}");
            let width = width.max(LEAST_WIDTH);
            assert!(
                text.lines().all(|line| line.len() <= width && line == line.trim_end()),
                "{text}"
            );
            assert!(text.is_ascii());
        }
    }

    #[test]
    fn counts_are_shaded_and_summed() {
        let text = render(&with_a_cut(512, 300), 4096, 100);
        let rows: Vec<&str> =
            text.lines().filter(|line| line.trim_start().starts_with("pgscan_kswapd")).collect();
        assert!(rows[0].ends_with("| 1411"), "{text}");
        assert!(rows[1].ends_with("| 1409"), "{text}");
        assert_eq!(rows[1].matches('@').count(), 1);
        assert!(!text.contains("pgsteal_direct"), "empty rows are left out:\n{text}");
        let legend = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            legend.contains("pgscan from `.` (any) to `@` (906 pages), pgsteal to `@` (0 pages);")
        );
        assert_eq!([shade(0, 9), shade(1, 1000), shade(9, 9)], [' ', '.', '@']);
    }

    #[test]
    fn nodes_are_drawn_below_the_machine() {
        let text = render(&with_a_cut(100, 50), 4096, 128);
        let machine = text.split("\n\n").next().unwrap();
        for (label, total) in [("migrate_scan", 1000), ("free_scan", 70_000), ("migrated", 300)] {
            let row = machine.lines().find(|line| line.trim_start().starts_with(label)).unwrap();
            assert!(
                row.matches('@').count() == 1 && row.ends_with(&format!("| {total}")),
                "{text}"
            );
        }
        let node = text.split("\n\n").nth(1).unwrap();
        let wanted = format!(
            "node 0, free memory unusable at order 9 (0 to 1.000)\n\
             \x20        1.000 |{half}:{rest}|\n\
             \x20              |{half}:{rest}|\n\
             \x20        0.500 |{bar}|\n\
             \x20            0 |{bar}|\n\
             \x20     free MiB |{full}| 3\n\
             \x20  blocks >= 9 |{most} {more}| 1\n\
             \x20               0{gap}100.0 ms",
            half = " ".repeat(50),
            rest = " ".repeat(49),
            bar = "#".repeat(100),
            full = "@".repeat(100),
            most = "@".repeat(50),
            more = "@".repeat(49),
            gap = " ".repeat(91),
        );
        assert_eq!(node, wanted);
    }

    #[test]
    fn empty_timelines_are_drawn() {
        let mut timeline = with_a_cut(1, 0);
        assert!(render(&timeline, 4096, 100).contains("machine, free memory"));
        timeline.samples.clear();
        assert!(render(&timeline, 4096, 100).contains("/a, b"));
        assert_eq!(render_csv(&timeline), format!("{}\n", HEADER.join(",")));
        assert!(!render(&Timeline::default(), 4096, 100).is_empty());
    }
}
