//! Latency distributions: the share that takes longer than a given time, per variant, on
//! logarithmic axes (CCDF). It shows the tail beyond the percentiles of the table.
//!
//! Invariant: each point is exact; some are left out if there are too many.

use super::words::with_dagger;
use crate::lines::{ChartAxis, ChartChoice, ChartFigure, ChartLine, ChartPanel, LineShape};
use pagetide_lab::report::Report;
use pagetide_lab::table::RenderedTable;
use pagetide_scenario::metric::{declared, MetricKey};
use pagetide_scenario::record::{Latencies, Unit};

/// Distributions that can be chosen.
const MOST_CHOICES: usize = 8;
/// About this many points along a line.
const MOST_POINTS: usize = 300;

/// The figure, if the report has distributions. Those with a row in the table come first.
pub fn figure(report: &Report, table: &RenderedTable) -> Option<ChartFigure> {
    let mut names: Vec<&str> = Vec::new();
    for latencies in report.columns.iter().flat_map(|column| &column.latencies) {
        if !names.contains(&latencies.of.as_str()) {
            names.push(&latencies.of);
        }
    }
    let order = |name: &&str| {
        let MetricKey { scope, name } = report.names.key(&format!("{name}_p99"));
        let kind = name.trim_end_matches("p99");
        let is_it = |row: &MetricKey| row.scope == scope && row.name.starts_with(kind);
        let row = table.rows.iter().position(|row| is_it(&row.key)).unwrap_or(usize::MAX);
        (row, name == declared::ALLOC_LATENCY_P99.name)
    };
    names.sort_by_key(order);
    names.truncate(MOST_CHOICES);
    let choices: Vec<ChartChoice> = names.iter().map(|name| choice(report, name)).collect();
    (!choices.is_empty()).then(|| ChartFigure {
        id: "latency-ccdf".to_owned(),
        title: "Share that takes longer".to_owned(),
        about: "Share of a service's requests, or of a task's allocations, that takes longer than the time on the x \
                axis; all seeds together. Lower is better. A line ends at the longest. \u{2020}: some runs of \
                the variant are incomplete."
            .to_owned(),
        x: ChartAxis::new("latency", Unit::Seconds).times(1e-9).log(),
        y: ChartAxis::new("take longer", Unit::Percent).log(),
        over: None,
        choices,
    })
}

fn choice(report: &Report, name: &str) -> ChartChoice {
    let of = report.columns.iter().enumerate().filter_map(|(number, column)| {
        let latencies = column.latencies.iter().find(|it| it.of == name)?;
        Some((number, column.name.as_str(), latencies))
    });
    let all: Vec<(usize, &str, &Latencies)> = of.collect();
    let bounds =
        thinned(all.iter().flat_map(|(.., it)| it.buckets.iter().map(|(bound, _)| *bound)));
    let lines = all.iter().map(|(number, variant, latencies)| {
        let name = with_dagger((*variant).to_owned(), report.incomplete(*number).is_some());
        ChartLine::new(*number, name, LineShape::After, longer(latencies, &bounds))
    });
    let lines = lines.collect();
    let x = bounds.iter().map(|bound| *bound as f64).collect();
    let panel = ChartPanel { name: String::new(), x, lines, marks: Vec::new() };
    ChartChoice { name: name.to_owned(), clip: None, panels: vec![panel] }
}

/// The bounds in ascending order, each once, some left out if there are too many, after a place
/// that everything takes longer than.
fn thinned(bounds: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut all: Vec<u64> = bounds.collect();
    all.sort_unstable();
    all.dedup();
    let step = all.len().div_ceil(MOST_POINTS).max(1);
    let last = all.len().saturating_sub(1);
    let is_kept = |at: usize| at.is_multiple_of(step) || at == last;
    let before = all.first().and_then(|first| first.checked_sub(first / 128 + 1));
    let kept = all.into_iter().enumerate().filter(|(at, _)| is_kept(*at));
    before.into_iter().chain(kept.map(|(_, bound)| bound)).collect()
}

/// Per cent that takes longer than each bound. The line ends at the longest.
fn longer(latencies: &Latencies, bounds: &[u64]) -> Vec<Option<f64>> {
    let total: u64 = latencies.buckets.iter().map(|(_, count)| count).sum();
    let mut left = total;
    let mut buckets = latencies.buckets.iter().peekable();
    let mut shares = Vec::with_capacity(bounds.len());
    let mut last = None;
    for bound in bounds {
        while let Some((_, count)) = buckets.next_if(|(of, _)| of <= bound) {
            left -= count;
        }
        let share = (left > 0).then(|| left as f64 * 100.0 / total as f64);
        // The last share holds up to the longest.
        shares.push(share.or_else(|| last.take()));
        if share.is_some() {
            last = share;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all() {
        let latencies = Latencies { of: "x".to_owned(), buckets: vec![(10, 90), (20, 9), (40, 1)] };
        let shares = longer(&latencies, &[5, 10, 15, 20, 40, 80]);
        assert_eq!(shares, [Some(100.0), Some(10.0), Some(10.0), Some(1.0), Some(1.0), None]);
        let one = Latencies { of: "x".to_owned(), buckets: vec![(10, 3)] };
        assert_eq!(longer(&one, &[10, 20]), [None, None]);
        assert_eq!(longer(&Latencies::default(), &[10]), [None]);
    }

    #[test]
    fn bounds_are_thinned_to_the_last() {
        let bounds = thinned((0..5000).rev());
        assert!(bounds.len() <= MOST_POINTS + 2, "{}", bounds.len());
        assert_eq!((bounds[0], bounds[bounds.len() - 1]), (0, 4999));
        assert_eq!(thinned([1280, 2000].into_iter()), [1269, 1280, 2000]);
        assert!(thinned([].into_iter()).is_empty());
    }
}
