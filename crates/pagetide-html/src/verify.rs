//! The page of `pagetide verify`: a real kernel and the simulator side by side, worst counters
//! first.
//!
//! Invariant: figures, verdicts and notes are those of the text table; each counter is in it once.

use crate::page::{HtmlPage, PageBlock, PageSection};
use crate::run::{self, PageSource};
use maud::{html, Markup};
use pagetide_verify::compare::{factor, Agreement, ComparedSides, Comparison, CounterComparison};
use pagetide_verify::summary::times;
use pagetide_verify::table;

/// Lines of the table: a scenario of many phases and groups has tens of thousands of counters.
const MOST_ROWS: usize = 4000;
/// The bar of a ratio ends at 1/`ENDS` and `ENDS`.
const ENDS: f64 = 2.0;
/// Metrics that say how long something took.
const TIMES: [&str; 4] = ["walltime", "elapsed", "user", "system"];

/// The page of a comparison: with `all` every counter, else those of the text table.
pub fn page(
    comparison: &Comparison,
    sides: &ComparedSides,
    all: bool,
    source: &PageSource,
) -> HtmlPage {
    let entries: Vec<(&'static str, String)> = table::entries(comparison, sides)
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .collect();
    let rows = rows(comparison, all);
    let times: Vec<&Row<'_>> =
        rows.iter().filter(|row| TIMES.contains(&row.counter.name.as_str())).collect();
    let summary = comparison.summary();
    let mut worst: Vec<&Row<'_>> = rows.iter().collect();
    worst.sort_by(|a, b| rank(b.counter).total_cmp(&rank(a.counter)));
    HtmlPage {
        title: format!("{} in Linux and in Pagetide", comparison.scenario),
        kind: "pagetide verify",
        lead: html! {
            (run::facts(&entries))
            @if !sides.not_comparable.is_empty() {
                p { "Not comparable:" }
                ul { @for text in &sides.not_comparable { li { (text) } } }
            }
        },
        sections: vec![
            PageSection::new(
                "summary",
                "In short",
                vec![in_short(comparison, &summary.to_string())],
            ),
            PageSection::new("counters", "Counters, the worst first", counters(&worst)),
            PageSection::new("time", "Time", time(&times)),
            PageSection::new(
                "remarks",
                "Notes",
                remarks(&table::remarks(comparison, sides, &summary)),
            ),
            PageSection::new("scenario", "The scenario", run::scenario_blocks(source)),
        ],
        foot: run::foot(pagetide_lab::VERSION, source),
    }
}

/// A counter of a variant, during a phase or over the whole run.
struct Row<'a> {
    variant: &'a str,
    place: String,
    counter: &'a CounterComparison,
}

fn rows(comparison: &Comparison, all: bool) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for variant in &comparison.variants {
        let parts = variant.phases.iter().map(|phase| (table::heading(phase), &phase.counters));
        for (place, counters) in parts.chain([("whole run".to_owned(), &variant.others)]) {
            let is_time = |counter: &&CounterComparison| TIMES.contains(&counter.name.as_str());
            let is_shown = |counter: &&CounterComparison| {
                all || table::shown(counter) || is_time(counter) && !one_sided(counter)
            };
            rows.extend(counters.iter().filter(is_shown).map(|counter| Row {
                variant: &variant.name,
                place: place.clone(),
                counter,
            }));
        }
    }
    rows
}

fn one_sided(counter: &CounterComparison) -> bool {
    counter.only_linux() || counter.only_pagetide()
}

/// How bad a counter is: by its verdict, then by the factor between the two sides.
fn rank(counter: &CounterComparison) -> f64 {
    let by_verdict = match counter.verdict {
        Agreement::Off => 3e9,
        Agreement::Close => 2e9,
        Agreement::WithinNoise => 1e9,
        Agreement::NotJudged => 0.0,
    };
    // Infinite if one side has zero.
    let by_factor = counter.ratio.map_or(1.0, |ratio| factor(ratio).min(1e6));
    by_verdict + by_factor
}

fn in_short(comparison: &Comparison, summary: &str) -> PageBlock {
    let counters = || {
        let of_phases = comparison.variants.iter().flat_map(|variant| &variant.phases);
        of_phases.flat_map(|phase| &phase.counters)
    };
    let number = |verdict: Agreement| counters().filter(|it| it.verdict == verdict).count();
    html! {
        p.answer { strong { (summary) } }
        p {
            "Judged counters: " (number(Agreement::WithinNoise)) " within the kernel's noise, "
            (number(Agreement::Close)) " close, " (number(Agreement::Off)) " off."
        }
    }
    .into()
}

fn counters(rows: &[&Row<'_>]) -> Vec<PageBlock> {
    if rows.is_empty() {
        return vec![html! { p { (table::NO_COUNTER) } }.into()];
    }
    let shown = &rows[..rows.len().min(MOST_ROWS)];
    vec![html! {
        p.filter data-of="table-counters" data-label="Only rows with" {}
        (side_by_side("table-counters", "Counters of Linux and Pagetide", shown))
        p.note {
            (table::LEGEND) ". The bar starts at ratio 1; its ends are 0.5 and 2."
            @if shown.len() < rows.len() {
                " Only the worst " (shown.len()) " of " (rows.len()) " counters; " code { "--format csv" } " has all."
            }
        }
    }
    .into()]
}

fn time(rows: &[&Row<'_>]) -> Vec<PageBlock> {
    if rows.is_empty() {
        return Vec::new();
    }
    vec![html! {
        p.note { "Times are not judged here: an emulated CPU is not the simulated one." }
        (side_by_side("table-times", "Times of Linux and Pagetide", rows))
    }
    .into()]
}

fn side_by_side(id: &str, label: &str, rows: &[&Row<'_>]) -> Markup {
    let has_variants = rows.iter().any(|row| row.variant != rows[0].variant);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table.worlds id=(id) {
                thead {
                    tr {
                        th scope="col" { "counter" }
                        th scope="col" { "where" }
                        @if has_variants { th scope="col" { "variant" } }
                        th scope="col" { "unit" }
                        th.number scope="col" { "Linux" }
                        th.number scope="col" { "Pagetide" }
                        th.number scope="col" { "ratio" }
                        th aria-hidden="true" {}
                        th scope="col" { "verdict" }
                    }
                }
                tbody {
                    @for row in rows { (line(row, has_variants)) }
                }
            }
        }
    }
}

fn line(row: &Row<'_>, has_variants: bool) -> Markup {
    let counter = row.counter;
    let cells = table::row(counter);
    let [linux, pagetide] = [0, 1].map(|side| &cells.cells[side]);
    let value = |cell: &pagetide_lab::layout::TextCell| match cell.spread.is_empty() {
        true => cell.value.clone(),
        false => format!("{} \u{b1} {}", cell.value, cell.spread),
    };
    html! {
        tr.off[counter.verdict == Agreement::Off] {
            th scope="row" { (counter.name) }
            td { (row.place) }
            @if has_variants { td { (row.variant) } }
            td { (cells.unit) }
            td.number { (value(linux)) }
            td.number { (value(pagetide)) }
            td.number { (counter.ratio.map_or("-".to_owned(), |ratio| times(ratio, 3))) }
            td aria-hidden="true" { (bar(counter.ratio)) }
            td { (cells.cells[3].value) }
        }
    }
}

/// A bar from the middle, on a logarithmic scale.
fn bar(ratio: Option<f64>) -> Markup {
    let Some(ratio) = ratio else { return html! {} };
    let by = match ratio > 0.0 {
        true => (ratio.ln() / ENDS.ln()).clamp(-1.0, 1.0) * 50.0,
        false => -50.0,
    };
    let (from, width) = if by < 0.0 { (50.0 + by, -by) } else { (50.0, by) };
    html! {
        div.ratio {
            span style=(format!("left:{from:.1}%;width:{:.1}%", width.max(0.6))) {}
        }
    }
}

fn remarks(remarks: &[String]) -> Vec<PageBlock> {
    match remarks.is_empty() {
        true => Vec::new(),
        false => vec![html! { ul { @for remark in remarks { li { (remark) } } } }.into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_verify::testing::compared;

    fn render(values: &[(&str, f64, f64)], all: bool) -> String {
        let comparison = Comparison::new("a <b>", vec![compared(values)]);
        let sides =
            ComparedSides { notes: vec!["</script>".to_owned()], ..ComparedSides::default() };
        page(&comparison, &sides, all, &PageSource::default()).render()
    }

    #[test]
    fn the_worst_counter_is_first_and_figures_are_those_of_the_table() {
        let values = [
            ("t.p.pgmajfault", 2000.0, 2000.0),
            ("t.p.pgscan_kswapd", 1e6, 2e6),
            ("t.p.pswpout", 4000.0, 40_000.0),
            ("t.p.walltime", 1.0, 2.0),
        ];
        let text = render(&values, false);
        let place = |text: &str, of: &str| {
            text.find(&format!("<th scope=\"row\">{of}</th>")).unwrap_or(usize::MAX)
        };
        assert!(place(&text, "pswpout") < place(&text, "pgmajfault"), "{text}");
        assert!(text.contains(">10.0<") || text.contains(">10.00<") || text.contains(">10.000<"));
        assert!(text.contains("id=\"table-times\"") && text.contains("id=\"time\""));
        assert!(text.contains("a &lt;b&gt;") && text.contains("&lt;/script&gt;"));
    }

    #[test]
    fn odd_ratios_have_bars_and_an_empty_page_says_so() {
        let wild = [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e300];
        for (linux, ours) in wild.iter().flat_map(|a| wild.map(|b| (*a, b))) {
            let text =
                render(&[("t.p.pgmajfault", linux, ours), ("t.p.walltime", ours, linux)], true);
            assert!(!text.contains("NaN") && !text.contains("inf%"), "{linux} {ours}");
        }
        assert!(render(&[], false).contains("No counter to show"));
    }
}
