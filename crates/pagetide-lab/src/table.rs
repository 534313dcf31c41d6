//! The report as a table, as memory-management mails have it: one row per metric, one column per
//! variant, with mean, standard deviation, and change against the first variant in per cent.
//!
//! Published figures of the scenario are a second line under the row, with their own change:
//!
//! ```text
//!                          default                  case1
//! -------------------------------------------------------
//! stream.walltime ms   502.1 ± 3.2   361.0 ± 2.0  -28.1%*
//!   published            503           364        -27.6%
//! ```

use crate::dagger::{self, Daggers, DAGGER};
use crate::format::Scale;
use crate::layout::{self, TextCell, TextLine};
use crate::report::Report;
use crate::stats::{change, differs, MeanChange, Statistics};
use crate::{facts, heading, rows};
use pagetide_scenario::metric::declared::is_state;
use pagetide_scenario::metric::MetricKey;
use pagetide_scenario::record::{Incomplete, Unit};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Longest line of a table. A wider table continues below, so that it survives a mail.
pub const WIDTH: usize = 120;
/// Sentences wrap here, or earlier in a narrow terminal.
pub const TEXT_WIDTH: usize = 100;
/// A narrower terminal is treated as this wide.
const LEAST_WIDTH: usize = 40;
/// Printed instead of rows.
pub const NOTHING: &str = "No metric to show: all default rows are zero; name some in `rows`.";
/// With more blocks than this, spreads are dropped if that saves a block.
const BLOCKS_MAX: usize = 2;

/// Renders heading, table, legend and notes, for a mail.
pub fn render(report: &Report) -> String {
    render_within(report, WIDTH)
}

/// Like [`render`], in lines of at most `width` characters unless one column alone is wider.
pub fn render_within(report: &Report, width: usize) -> String {
    let width = width.max(LEAST_WIDTH);
    let text_width = width.min(TEXT_WIDTH);
    let mut out = heading::render(report, text_width);
    out.push('\n');
    out += &body_within(report, width);
    out
}

/// Renders table, legend and notes, for a mail.
pub fn body(report: &Report) -> String {
    body_within(report, WIDTH)
}

/// Like [`body`], in lines of at most `width` characters.
pub fn body_within(report: &Report, width: usize) -> String {
    let width = width.max(LEAST_WIDTH);
    let text_width = width.min(TEXT_WIDTH);
    let mut out = String::new();
    let names: Vec<&str> = report.columns.iter().map(|column| column.name.as_str()).collect();
    let (rows, mut legend) = rows_and_legend(report);
    if rows.is_empty() {
        writeln!(out, "{NOTHING}").expect("writing to a string");
    } else {
        let mut lines: Vec<TextLine> = rows.into_iter().flat_map(TableRow::lines).collect();
        legend.without_spread(&names, &mut lines, width);
        let legend = legend.text(report);
        out.push_str(&layout::render(&names, &lines, width));
        if !legend.is_empty() {
            out.push('\n');
        }
        for line in heading::wrap(&legend, text_width) {
            writeln!(out, "{line}").expect("writing to a string");
        }
    }
    for note in &report.notes {
        for line in heading::wrap(&format!("note: {note}"), text_width) {
            writeln!(out, "{line}").expect("writing to a string");
        }
    }
    out
}

/// Contents of a table, without a layout.
pub struct RenderedTable {
    pub rows: Vec<TableRow>,
    /// Explains the signs; may be empty.
    pub legend: String,
}

/// The values of one metric, one cell per variant.
pub struct TableRow {
    pub key: MetricKey,
    /// The text of the key.
    pub label: String,
    pub scale: Scale,
    pub ours: Vec<TextCell>,
    /// Published values, if any.
    pub published: Option<Vec<TextCell>>,
}

impl TableRow {
    fn lines(self) -> impl Iterator<Item = TextLine> {
        let unit = self.scale.symbol.to_owned();
        let ours = TextLine { label: self.label, unit, cells: self.ours };
        let published =
            |cells| TextLine { label: "  published".to_owned(), unit: String::new(), cells };
        std::iter::once(ours).chain(self.published.map(published))
    }
}

/// The rows of `report`, and the legend.
pub fn tabulate(report: &Report) -> RenderedTable {
    let (rows, legend) = rows_and_legend(report);
    RenderedTable { rows, legend: legend.text(report) }
}

fn rows_and_legend(report: &Report) -> (Vec<TableRow>, Legend) {
    let mut legend = Legend::default();
    let daggers = Daggers::new(report);
    let rows = rows::rows(report).into_iter();
    let rows: Vec<TableRow> = rows.map(|key| row(report, key, &daggers, &mut legend)).collect();
    legend.summed =
        rows.iter().filter_map(|row| facts::summed_over_threads(report, &row.key)).collect();
    (rows, legend)
}

pub fn row(
    report: &Report,
    key: MetricKey,
    daggers: &Daggers<'_>,
    legend: &mut Legend,
) -> TableRow {
    let columns = 0..report.columns.len();
    let incomplete: Vec<Option<Incomplete>> =
        columns.clone().map(|column| daggers.of(column, &key)).collect();
    let ours: Vec<Option<Statistics>> =
        columns.clone().map(|column| report.shown_summary(column, &key)).collect();
    let published: Vec<Option<f64>> =
        columns.map(|column| report.published(column, &key)).collect();

    let mut values = to_scale(&key.name, ours.iter().flatten());
    values.extend(published.iter().flatten().map(|&value| (value, 0.0)));
    let scale = Scale::new(report.unit(&key).unwrap_or(Unit::Ratio), &values);

    let is_state = is_state(&key.name);
    let mut cells: Vec<TextCell> =
        ours.iter().map(|it| our_cell(&key.name, it.as_ref(), &scale)).collect();
    legend.spread |= cells.iter().any(|cell| !cell.spread.is_empty());
    for ((cell, summary), reason) in cells.iter_mut().zip(&ours).zip(&incomplete) {
        if let (Some(_), Some(reason)) = (summary, reason) {
            cell.change = DAGGER.to_owned();
            legend.incomplete.insert(*reason);
        }
    }
    if incomplete[0].is_some() {
        // An incomplete first variant is no base for a comparison.
    } else if let (&[Some(ours)], &[Some(published)]) = (&ours[..], &published[..]) {
        // A single variant is compared with its published value.
        legend.from_published = true;
        cells[0].change = legend.change(change(published, ours.mean), "");
    } else if let Some(base) = &ours[0] {
        for ((cell, summary), reason) in cells.iter_mut().zip(&ours).zip(&incomplete).skip(1) {
            let (Some(summary), None) = (summary, reason) else { continue };
            if is_state {
                // Error numbers and limits have no percentage.
                continue;
            }
            let star = differs(base, summary);
            legend.star |= star;
            legend.from_first = true;
            cell.change =
                legend.change(change(base.mean, summary.mean), if star { "*" } else { " " });
        }
    }

    let has_published = published.iter().any(Option::is_some);
    let label = report.text(&key);
    let mut row = TableRow { key, label, scale, ours: cells, published: None };
    if has_published {
        let mut cells: Vec<TextCell> =
            published.iter().map(|p| published_cell(*p, &row.scale)).collect();
        if let Some(base) = published[0] {
            for (cell, value) in cells.iter_mut().zip(&published).skip(1) {
                let Some(value) = value else { continue };
                cell.change = legend.change(change(base, *value), " ");
            }
        }
        row.published = Some(cells);
    }
    row
}

/// A value with its spread; a state (error number, limit) has no mean and is printed as a range.
pub fn our_cell(name: &str, summary: Option<&Statistics>, scale: &Scale) -> TextCell {
    let Some(summary) = summary else { return absent() };
    if is_state(name) && summary.mean.is_finite() {
        return TextCell { value: state(summary, scale), ..TextCell::default() };
    }
    let (value, mut spread) = scale.print(summary.mean, summary.stddev);
    if summary.n < 2 || !summary.mean.is_finite() {
        spread.clear();
    }
    TextCell { value, spread, change: String::new() }
}

/// The values that a scale must suit, each with its spread.
pub fn to_scale<'a>(
    name: &str,
    summaries: impl Iterator<Item = &'a Statistics>,
) -> Vec<(f64, f64)> {
    if is_state(name) {
        summaries.flat_map(|summary| [(summary.min, 0.0), (summary.max, 0.0)]).collect()
    } else {
        summaries.map(|summary| (summary.mean, summary.stddev)).collect()
    }
}

/// A state over several runs: the value, or `MIN to MAX` if runs differ.
pub fn state(summary: &Statistics, scale: &Scale) -> String {
    let [min, max] = [summary.min, summary.max].map(|value| scale.print(value, 0.0).0);
    if summary.min == summary.max {
        min
    } else {
        format!("{min} to {max}")
    }
}

fn published_cell(value: Option<f64>, scale: &Scale) -> TextCell {
    let Some(value) = value else { return absent() };
    TextCell { value: scale.print_as_given(value), ..TextCell::default() }
}

fn absent() -> TextCell {
    TextCell { value: "-".to_owned(), ..TextCell::default() }
}

/// The signs that the table uses and must explain.
#[derive(Default)]
pub struct Legend {
    spread: bool,
    /// The terminal is too narrow for the spreads.
    no_room: bool,
    from_first: bool,
    from_published: bool,
    star: bool,
    new: bool,
    /// Tasks with a row of waits that is a sum over several threads.
    summed: BTreeSet<String>,
    incomplete: BTreeSet<Incomplete>,
}

impl Legend {
    /// Drops the spreads on a narrow terminal if the table then has fewer blocks.
    fn without_spread(&mut self, names: &[&str], lines: &mut Vec<TextLine>, width: usize) {
        let nr_blocks = layout::blocks(names, lines, width).len();
        if width >= layout::NARROW || nr_blocks <= BLOCKS_MAX || !self.spread {
            return;
        }
        let mut bare = lines.clone();
        bare.iter_mut().flat_map(|line| &mut line.cells).for_each(|cell| cell.spread.clear());
        if layout::blocks(names, &bare, width).len() < nr_blocks {
            *lines = bare;
            self.spread = false;
            self.no_room = true;
        }
    }

    fn change(&mut self, change: MeanChange, mark: &str) -> String {
        match change {
            MeanChange::Percent(0.0) => format!("0.0%{mark}"),
            MeanChange::Percent(percent) if percent.abs() >= 1000.0 => {
                format!("{percent:+.0}%{mark}")
            }
            MeanChange::Percent(percent) => format!("{percent:+.1}%{mark}"),
            MeanChange::New => {
                self.new = true;
                format!("new{mark}")
            }
            MeanChange::Unknown => format!("-{mark}"),
        }
    }

    pub fn text(&self, report: &Report) -> String {
        let mut parts = Vec::new();
        if self.spread {
            parts.push("mean \u{b1} sample standard deviation over the seeds".to_owned());
        }
        if self.no_room {
            parts.push(
                "means over the seeds (standard deviations: in a wider terminal or by --format json)"
                    .to_owned(),
            );
        }
        if self.from_first {
            parts.push(format!("change against {} in per cent", report.columns[0].name));
        }
        if self.from_published {
            parts.push("difference from the published value in per cent".to_owned());
        }
        if self.star {
            parts.push("* means differ (Welch's t-test, p < 0.05)".to_owned());
        }
        if self.new {
            parts.push("new: the first variant has 0".to_owned());
        }
        if !self.summed.is_empty() {
            let tasks: Vec<&str> = self.summed.iter().map(String::as_str).collect();
            parts.push(format!("waits: sums over the threads of {}", tasks.join(", ")));
        }
        if !self.incomplete.is_empty() {
            parts.push(dagger::legend(&self.incomplete));
        }
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{report, report_of, series_mut, with_setup};
    use pagetide_scenario::build::Builder;
    use pagetide_scenario::model::Reference;

    type Metrics = &'static [(&'static str, f64)];

    /// The table without its heading.
    fn body(report: &Report) -> String {
        render(report).split_once("\n\n").unwrap().1.to_owned()
    }

    #[test]
    fn the_table_of_the_mail() {
        const D: [Metrics; 3] = [
            &[("stream.walltime", 0.503), ("pgmajfault", 16384.0), ("allocstall", 5.0)],
            &[("stream.walltime", 0.511), ("pgmajfault", 16384.0), ("allocstall", 7.0)],
            &[("stream.walltime", 0.489), ("pgmajfault", 16384.0), ("allocstall", 4.0)],
        ];
        const C: [Metrics; 3] = [
            &[("stream.walltime", 0.364), ("pgmajfault", 16384.0), ("allocstall", 0.0)],
            &[("stream.walltime", 0.360), ("pgmajfault", 16384.0), ("allocstall", 0.0)],
            &[("stream.walltime", 0.366), ("pgmajfault", 16384.0), ("allocstall", 0.0)],
        ];
        let mut report = report_of(&[("default", D.to_vec()), ("case1", C.to_vec())]);
        let published = |walltime, stalls| {
            [("stream.walltime".to_owned(), walltime), ("allocstall".to_owned(), stalls)].into()
        };
        report.plan.scenario.reference = Some(Reference {
            source: "the mail".to_owned(),
            values: [
                ("default".to_owned(), published(0.503, 5.0)),
                ("case1".to_owned(), published(0.364, 0.0)),
            ]
            .into(),
        });
        assert_eq!(
            body(&report),
            "\x20                         default                   case1
---------------------------------------------------------
stream.walltime ms   501.0 ± 11.1   363.3 ± 3.1   -27.5%*
  published            503            364         -27.6%
pgmajfault           16384 ±    0   16384 ±   0     0.0%
allocstall             5.3 ±  1.5       0 ±   0  -100.0%*
  published              5              0        -100.0%

mean ± sample standard deviation over the seeds; change against default in per cent; * means differ
(Welch's t-test, p < 0.05)
"
        );
    }

    #[test]
    fn missing_values_new_ones_and_notes() {
        let mut report =
            report(&[("a", &[("pswpin", 0.0), ("x", 1.0)]), ("b", &[("pswpin", 12.0)])]);
        report.plan.scenario.rows = vec!["pswpin".to_owned(), "x".to_owned(), "y".to_owned()];
        report.notes = vec!["b, seed 1: time limit reached".to_owned()];
        assert_eq!(
            body(&report),
            "\x20        a          b
---------------------
pswpin   0   12  new
x        1    -
y        -    -

change against a in per cent; new: the first variant has 0
note: b, seed 1: time limit reached
"
        );
    }

    #[test]
    fn errors_and_limits_have_no_mean() {
        const MAX: f64 = pagetide_scenario::metric::declared::NO_LIMIT as f64;
        const A: [Metrics; 2] = [
            &[("t.p.errno", 0.0), ("g.memory.max", MAX)],
            &[("t.p.errno", 0.0), ("g.memory.max", MAX)],
        ];
        const B: [Metrics; 2] = [
            &[("t.p.errno", 0.0), ("g.memory.max", 2048.0)],
            &[("t.p.errno", 11.0), ("g.memory.max", 2048.0)],
        ];
        let phase = Builder::new().set("name", "p").set("workload", "sleep").set("duration", "1ms");
        let task = Builder::new().set("name", "t").push("phase", phase);
        let machine = Builder::new().set("machine.memory", "2GiB").push("task", task);
        let setup = machine.push("group", Builder::new().set("name", "g")).setup().unwrap();
        let report = report_of(&[("a", A.to_vec()), ("b", B.to_vec())]);
        let mut report = with_setup(report, &setup);
        let rows = ["t.p.errno", "g.memory.max"];
        report.plan.scenario.rows = rows.map(str::to_owned).to_vec();
        for column in 0..2 {
            series_mut(&mut report, column, "g.memory.max").unit = Unit::Bytes;
        }
        let text = body(&report);
        let lines: Vec<&str> = text.lines().skip(2).take(2).collect();
        assert_eq!(
            lines,
            ["t.p.errno            0   0 to 11", "g.memory.max KiB   max     2.000"],
            "{text}"
        );
    }

    #[test]
    fn a_single_variant_is_held_against_what_was_published() {
        let mut report = report(&[("default", &[("pswpin", 110.0), ("pswpout", 7.0)])]);
        let values = [("default".to_owned(), [("pswpin".to_owned(), 100.0)].into())].into();
        report.plan.scenario.reference = Some(Reference { source: "a kernel".to_owned(), values });
        assert_eq!(
            body(&report),
            "\x20                 default
-------------------------
pswpin        110  +10.0%
  published   100
pswpout         7

difference from the published value in per cent
"
        );
    }

    #[test]
    fn no_row_of_an_incomplete_run_is_compared() {
        const D: [Metrics; 2] = [
            &[("batch.walltime", 8.0), ("web.walltime", 4.0)],
            &[("batch.walltime", 8.2), ("web.walltime", 4.2)],
        ];
        const C: [Metrics; 2] = [
            &[("batch.walltime", 3.0), ("web.walltime", 2.0)],
            &[("batch.walltime", 3.2), ("web.walltime", 2.2)],
        ];
        let mut report = report_of(&[("a", D.to_vec()), ("b", C.to_vec()), ("c", C.to_vec())]);
        let end = |report: &mut Report, column: usize, sample: usize| {
            let series = series_mut(report, column, "batch.walltime");
            series.samples[sample].ended = Some(Incomplete::OomKilled);
            let measured = series.samples.iter().filter(|sample| sample.ended.is_none());
            series.summary = Statistics::of(&measured.map(|it| it.value).collect::<Vec<_>>());
        };
        end(&mut report, 1, 0);
        end(&mut report, 1, 1);
        end(&mut report, 2, 1);
        assert_eq!(
            body(&report),
            "\x20                              a                  b                  c
----------------------------------------------------------------------
batch.walltime s   8.100 ± 0.141   3.100 ± 0.141  †   3.000          †
web.walltime   s   4.100 ± 0.141   2.100 ± 0.141  †   2.100 ± 0.141  †

mean ± sample standard deviation over the seeds; † incomplete (killed by the OOM killer): not
compared
"
        );
        // Nor is anything compared with an incomplete first column.
        end(&mut report, 0, 0);
        let text = body(&report);
        assert_eq!(text.lines().nth(2).unwrap().matches(['%', '*']).count(), 0, "{text}");
        let ended = report.ended_runs();
        let runs: Vec<_> = ended.iter().map(|it| (it.variant.as_str(), it.runs)).collect();
        assert_eq!(runs, [("a", 1), ("b", 2), ("c", 1)]);
    }

    #[test]
    fn tables_fit_where_they_are_shown() {
        let metrics: Metrics = &[("web.walltime", 4.0), ("pswpin", 123_456.0)];
        let names = ["default", "protected", "limited", "throttled"];
        let runs: Vec<_> = names.iter().map(|name| (*name, metrics)).collect();
        let mut report = report(&runs);
        report.notes = vec!["word ".repeat(40)];
        for width in [50, 80, 120] {
            let text = render_within(&report, width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
        }
        assert!(render_within(&report, 0).contains("throttled"));
    }

    #[test]
    fn five_variants_are_readable_at_80() {
        const A: [Metrics; 2] = [
            &[("service.alloc_latency_p999", 4.0), ("pswpin", 123_456.0)],
            &[("service.alloc_latency_p999", 5.0), ("pswpin", 123_400.0)],
        ];
        let names =
            ["none", "memory.low=128M", "memory.low=256M", "memory.low=512M", "memory.low=1G"];
        let runs: Vec<_> = names.iter().map(|name| (*name, A.to_vec())).collect();
        let mut report = report_of(&runs);
        report.plan.scenario.rows = vec!["service.alloc_latency_p999".into(), "pswpin".into()];
        let text = body_within(&report, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("---")).count(), 2, "{text}");
        assert!(!text.contains('\u{b1}') && text.contains("wider terminal"), "{text}");
        assert!(body_within(&report, 120).contains('\u{b1}'));
    }

    #[test]
    fn an_empty_table_says_so() {
        assert!(render(&report(&[("a", &[("pswpin", 0.0)])])).contains("No metric to show"));
    }
}
