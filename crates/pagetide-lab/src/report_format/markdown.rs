//! The rows of the table as a table in Markdown, for issues and wikis.

use super::ReportFormat;
use crate::layout::TextCell;
use crate::report::Report;
use crate::table::{tabulate, RenderedTable, TableRow};
use std::fmt::Write;

pub const FORMAT: ReportFormat = ReportFormat {
    name: "markdown",
    about: "The table's rows in Markdown",
    render: |_, whole| render(whole),
    join: |texts| texts.join("\n"),
};

fn render(report: &Report) -> String {
    let RenderedTable { rows, legend } = tabulate(report);
    let mut out = String::from("| metric |");
    for column in &report.columns {
        write!(out, " {} |", escaped(&column.name)).expect("writing to a string");
    }
    out = format!("{out}\n|---|{}\n", "--:|".repeat(report.columns.len()));
    for TableRow { label, scale, ours, published, .. } in &rows {
        let label = format!("{} {}", escaped(label), scale.symbol);
        out += &line(label.trim_end(), ours);
        out += &published.as_ref().map_or_else(String::new, |cells| line("published", cells));
    }
    match legend.as_str() {
        "" => out,
        legend => format!("{out}\n{legend}\n"),
    }
}

fn line(label: &str, cells: &[TextCell]) -> String {
    let mut out = format!("| {label} |");
    for TextCell { value, spread, change } in cells {
        let spread = if spread.is_empty() { "" } else { &format!(" ± {spread}") };
        let cell = format!("{value}{spread} {}", change.trim());
        // A star or a dagger after a number is text, not emphasis.
        write!(out, " {} |", escaped(cell.trim_end())).expect("writing to a string");
    }
    out + "\n"
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*").replace('_', "\\_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::report_of;

    #[test]
    fn one_row_per_metric_and_one_column_per_variant() {
        let report =
            report_of(&[("a|b", vec![&[("pswpin", 4.0)]]), ("c", vec![&[("pswpin", 2.0)]])]);
        let head = "| metric | a\\|b | c |\n|---|--:|--:|\n| pswpin | 4 | 2 -50.0% |\n";
        let text = render(&report);
        assert!(text.starts_with(head), "{text}");
    }
}
