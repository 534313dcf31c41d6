//! The verdicts of `pagetide_lab::verdict` as lists.
//!
//! Invariant: the figures are those of the sentences; a verdict without figures is its sentence.

use super::anchor_of_row;
use crate::page::PageBlock;
use maud::{html, Markup};
use pagetide_lab::facts::verdict::{verdicts, Difference, VariantVerdict};
use pagetide_lab::facts::words::{figures, ONE_RUN};
use pagetide_lab::format::Scale;
use pagetide_lab::report::Report;
use pagetide_lab::table::RenderedTable;

pub fn blocks(report: &Report, table: &RenderedTable) -> Vec<PageBlock> {
    let verdicts = verdicts(report);
    if verdicts.is_empty() {
        return Vec::new();
    }
    let first = &report.columns[0].name;
    let mut finished = report.columns.iter().filter(|column| column.finished > 0);
    if let (Some(one), None) = (finished.next(), finished.next()) {
        let note = html! { p.note { "Nothing to compare: only " strong { (one.name) } " has finished runs." } };
        return vec![note.into()];
    }
    vec![html! {
        p.note { "Each variant is compared with " strong { (first) } ", the first one." }
        div.verdicts {
            @for verdict in &verdicts { (of_variant(verdict, table)) }
        }
    }
    .into()]
}

fn of_variant(verdict: &VariantVerdict, table: &RenderedTable) -> Markup {
    let lists = [
        ("better", "\u{25b2}", "Better", &verdict.gains),
        ("worse", "\u{25bc}", "Worse", &verdict.costs),
        ("work", "\u{25cb}", "Less work", &verdict.work),
    ];
    let has_figures = lists.iter().any(|(.., differences)| !differences.is_empty());
    html! {
        article.verdict {
            h3 { (verdict.variant) }
            @if has_figures {
                @for ended in &verdict.ended { p.warning { (ended) } }
                @for (class, sign, word, differences) in lists {
                    @if !differences.is_empty() {
                        p.{ "word " (class) } { span aria-hidden="true" { (sign) " " } (word) }
                        ul.{ (class) } { @for it in differences { li { (difference(it, table)) } } }
                    }
                }
                @if verdict.gains.is_empty() {
                    p.note {
                        @if verdict.is_one_run() {
                            "No outcome is better."
                        } @else {
                            "No outcome is significantly better."
                        }
                    }
                }
                @if verdict.costs.is_empty() && verdict.ended.is_empty() {
                    p.note { "None of the compared metrics is worse." }
                }
                p.note {
                    @match verdict.comparisons {
                        0 => { (ONE_RUN) "." }
                        1 => "p: Welch's t-test, one comparison. Intervals: 95 % confidence.",
                        number => {
                            "p: Welch's t-test with Holm's correction, separately for the rows of the table and for "
                            "other metrics (" (number) " comparisons together). Intervals: 95 % confidence."
                        }
                    }
                }
            } @else {
                p { (verdict.without_name()) }
            }
        }
    }
}

fn difference(it: &Difference, table: &RenderedTable) -> Markup {
    let has_row = table.rows.iter().any(|row| row.key == it.of.key);
    html! {
        @if has_row {
            a href={ "#" (anchor_of_row(&it.metric)) } { (it.metric) }
        } @else {
            (it.metric)
        }
        " " (figures(it, true))
        @if let Some([from, to]) = it.interval {
            span.interval { ", a difference of " (between(it, from.0, to.0)) }
        }
    }
}

/// An interval in one unit.
fn between(it: &Difference, from: f64, to: f64) -> String {
    let (from, to) = if from <= to { (from, to) } else { (to, from) };
    let scale = Scale::new(it.unit, &[(from, 0.0), (to, 0.0)]);
    let [from, to] = scale.print_apart([from, to]);
    format!("{from} to {to} {}", scale.symbol).trim_end().to_owned()
}
