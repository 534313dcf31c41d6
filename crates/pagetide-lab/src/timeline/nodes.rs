//! Charts of the nodes: the share of free memory that is unusable for huge pages.
//!
//! Linux: unusable_index of debugfs at order 9, all zones of the node together, and sums of
//! buddyinfo.

use super::{axis, bars, column_of, row_of, shade};
use pagetide_scenario::record::timeline::{NodeRow, Timeline};
use std::fmt::Write;

/// Part of the legend.
pub(super) const LEGEND: &str = "Node: share of free memory in blocks of order 8 and less; free memory \
    and free blocks of order 9 and more, each with its own scale to `@`; value at the end on the right.";

/// Lines of a chart.
const HEIGHT: u64 = 4;

/// An index as the kernel prints it.
pub(super) fn index(thousandths: u32) -> String {
    format!("{}.{:03}", thousandths / 1000, thousandths % 1000)
}

/// One chart per node.
pub(super) fn draw(timeline: &Timeline, nr_columns: usize, out: &mut String) {
    for node in 0..timeline.nr_nodes {
        let columns: Vec<Option<NodeRow>> = (0..nr_columns)
            .map(|at| {
                let samples = column_of(timeline, nr_columns, at).iter();
                let rows = samples.filter_map(|sample| sample.nodes.get(node).copied());
                rows.reduce(|earlier, later| earlier.merged(&later))
            })
            .collect();
        let level = |row: &NodeRow| (row.unusable_index_min.into(), row.unusable_index_max.into());
        let levels: Vec<Option<(u64, u64)>> =
            columns.iter().map(|row| row.as_ref().map(level)).collect();
        let _ = writeln!(out, "node {node}, free memory unusable at order 9 (0 to 1.000)");
        bars(&levels, HEIGHT, 1000, |level| index(level as u32), out);
        let shaded = |label: &str, of: fn(&NodeRow) -> u64, out: &mut String| {
            let values = || columns.iter().map(|row| row.as_ref().map_or(0, of));
            let most = values().max().unwrap_or(0);
            let end = values().next_back().unwrap_or(0);
            row_of(label, values().map(|value| shade(value, most)), &end.to_string(), out);
        };
        shaded("free MiB", |row| row.free_pages >> 8, out);
        shaded("blocks >= 9", |row| row.large_blocks, out);
        axis(timeline, nr_columns, out);
        out.push('\n');
    }
}
