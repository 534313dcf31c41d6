//! The table of the text output, as an HTML table.
//!
//! Invariant: every value, spread and change is printed as in the text table.

use super::{anchor_of_dots, anchor_of_row};
use crate::page::PageBlock;
use maud::{html, Markup};
use pagetide_lab::layout::TextCell;
use pagetide_lab::report::Report;
use pagetide_lab::table::{RenderedTable, TableRow, NOTHING};
use pagetide_scenario::metric::MetricKey;

/// With more variants the table is printed in landscape.
const MANY: usize = 3;

pub fn blocks(report: &Report, table: &RenderedTable, charts: &[&str]) -> Vec<PageBlock> {
    if table.rows.is_empty() {
        return vec![html! { p { (NOTHING) } }.into()];
    }
    let markup = html! {
        div.scroll.many[report.columns.len() > MANY] tabindex="0" role="region"
            aria-label="Results by variant" {
            table.result {
                thead {
                    tr {
                        th scope="col" { "metric" }
                        th scope="col" { "unit" }
                        @for column in &report.columns { th scope="col" colspan="3" { (column.name) } }
                    }
                }
                tbody { @for row in &table.rows { (lines(row, charts)) } }
            }
        }
        p.note { (table.legend) }
    };
    vec![markup.into()]
}

fn lines(row: &TableRow, charts: &[&str]) -> Markup {
    let has_dots = row.ours.iter().any(|cell| cell.value != "-");
    html! {
        tr.has-published[row.published.is_some()] id=(anchor_of_row(&row.label)) {
            th scope="row" {
                @if has_dots {
                    a href={ "#" (anchor_of_dots(&row.label)) } { (row.label) }
                } @else {
                    (row.label)
                }
                @if let Some(chart) = chart_of(&row.key, charts) {
                    a.over href={ "#" (chart) } aria-label={ (row.label) ": chart" } { "chart" }
                }
            }
            td { (row.scale.symbol) }
            @for cell in &row.ours { (cells(cell)) }
        }
        @if let Some(published) = &row.published {
            tr.published {
                th scope="row" { "published" }
                td {}
                @for cell in published { (cells(cell)) }
            }
        }
    }
}

fn cells(cell: &TextCell) -> Markup {
    html! {
        td.value { (cell.value) }
        td.spread { @if !cell.spread.is_empty() { "\u{b1} " (cell.spread) } }
        td.change.sure[cell.change.ends_with('*')] { (cell.change.trim()) }
    }
}

/// The chart of the page that shows the metric over time.
fn chart_of<'a>(key: &MetricKey, charts: &[&'a str]) -> Option<&'a str> {
    let name = &*key.name;
    let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    let wanted: &[&str] = match name {
        _ if begins(&["psi.", "memory.pressure."]) => &["time-pressure"],
        _ if begins(&["latency_", "alloc_latency_", "request"]) => &["latency-ccdf"],
        _ if begins(&["late", "dropped"]) => &["time-services"],
        _ if begins(&["pgscan", "pgsteal", "mm_vmscan", "allocstall", "pageoutrun"]) => {
            &["time-reclaim"]
        }
        _ if begins(&["walltime", "stall_"]) => &["time-stalls"],
        _ if begins(&["pgmajfault", "pswp", "workingset_refault"]) => &["time-faults"],
        _ if begins(&["usage", "memory.current", "nr_", "buddyinfo."]) => {
            &["time-groups", "time-machine"]
        }
        _ => &[],
    };
    wanted.iter().find_map(|id| charts.iter().copied().find(|chart| chart == id))
}
