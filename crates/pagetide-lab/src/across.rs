//! Several scenarios in one table: a line for each metric of each scenario, and the geometric mean
//! of the changes.
//!
//! Invariant: a mean has only lines in which both variants have measurements above 0.

use crate::dagger::Daggers;
use crate::layout::{self, TextCell, TextLine};
use crate::report::Report;
use crate::rows::rows;
use crate::select;
use crate::table::{row, Legend};
use crate::{heading, table};
use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::metric::declared::WALLTIME;
use pagetide_scenario::metric::MetricKey;
use pagetide_scenario::model::Scenario;
use pagetide_scenario::names::near::nearest;
use std::slice;

/// Moves the variant that others are compared with to the front.
pub fn put_first(scenario: &mut Scenario, variant: &str) -> Result<(), Mistake> {
    let names = || scenario.variants.iter().map(|variant| variant.name.as_str());
    let Some(at) = names().position(|name| name == variant) else {
        let hint = match nearest(variant, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("its variants are {}", names().collect::<Vec<_>>().join(", ")),
        };
        let message = format!("scenario `{}` has no variant `{variant}`", scenario.name);
        return Err(Mistake::new(message, hint));
    };
    scenario.variants[..=at].rotate_right(1);
    Ok(())
}

/// The table of reports with the same first variant, for metrics that match the patterns; without
/// patterns, for the walltimes of the tasks.
pub fn render(reports: &[Report], patterns: &[String], width: usize) -> Result<String, Mistake> {
    let mut names: Vec<&str> = Vec::new();
    for column in reports.iter().flat_map(|report| &report.columns) {
        if !names.contains(&column.name.as_str()) {
            names.push(&column.name);
        }
    }
    let mut out = String::new();
    for report in reports {
        let scenario = &report.plan.scenario;
        out += &format!("scenario   {}: {}\n", scenario.name, scenario.title);
    }
    let mut legend = Legend::default();
    for keys in chosen(reports, patterns)? {
        let mut lines = Vec::new();
        let mut means = vec![LogMean::default(); names.len()];
        for (report, keys) in reports.iter().zip(keys) {
            for key in keys {
                lines.push(line(report, key, &names, &mut means, &mut legend));
            }
        }
        let nr_lines = lines.len();
        let cells = means.iter().enumerate().map(|(at, mean)| match at {
            0 => TextCell::default(),
            _ => mean.cell(nr_lines),
        });
        let label = "geometric mean".to_owned();
        lines.push(TextLine { label, unit: String::new(), cells: cells.collect() });
        out += &format!("\n{}", layout::render(&names, &lines, width));
    }
    if let Some(first) = reports.first() {
        let legend = legend.text(first) + "; geometric mean: of the ratios to its means";
        out.push('\n');
        for line in heading::wrap(legend.trim_start_matches("; "), width.min(table::TEXT_WIDTH)) {
            out += &format!("{line}\n");
        }
    }
    Ok(out)
}

/// For each pattern, the keys of each report.
fn chosen(reports: &[Report], patterns: &[String]) -> Result<Vec<Vec<Vec<MetricKey>>>, Mistake> {
    if patterns.is_empty() {
        let is_walltime = |key: &MetricKey| key.name == WALLTIME.name;
        let keys = |report: &Report| rows(report).into_iter().filter(is_walltime).collect();
        return Ok(vec![reports.iter().map(keys).collect()]);
    }
    let of = |pattern: &String| {
        let chosen = |report: &Report| select::keys(report, slice::from_ref(pattern));
        let (keys, mistakes): (Vec<_>, Vec<_>) = reports.iter().map(chosen).unzip();
        let mut mistakes = mistakes.into_iter().flatten();
        match keys.iter().all(Vec::is_empty) {
            true => mistakes.next().map_or(Ok(keys), Err),
            false => Ok(keys),
        }
    };
    patterns.iter().map(of).collect()
}

/// The line of a metric; adds its ratios to the means.
fn line(
    report: &Report,
    key: MetricKey,
    names: &[&str],
    means: &mut [LogMean],
    legend: &mut Legend,
) -> TextLine {
    let daggers = Daggers::new(report);
    let measured = |column: usize| {
        let mean = report.summary(column, &key)?.mean;
        (daggers.of(column, &key).is_none() && mean > 0.0 && mean.is_finite()).then_some(mean)
    };
    let base = measured(0);
    let mut cells = vec![TextCell { value: "-".to_owned(), ..TextCell::default() }; names.len()];
    let label = format!("{}: {}", report.plan.scenario.name, report.text(&key));
    let place = |column: usize| names.iter().position(|name| *name == report.columns[column].name);
    for column in 0..report.columns.len() {
        let ratio = measured(column).zip(base).map(|(mean, base)| mean / base);
        if let (Some(at), Some(ratio)) = (place(column), ratio) {
            means[at].add(ratio);
        }
    }
    let row = row(report, key.clone(), &daggers, legend);
    for (column, cell) in row.ours.into_iter().enumerate() {
        if let Some(at) = place(column) {
            cells[at] = cell;
        }
    }
    TextLine { label, unit: row.scale.symbol.to_owned(), cells }
}

/// The geometric mean of ratios.
#[derive(Clone, Copy, Debug, Default)]
struct LogMean {
    sum: f64,
    count: usize,
}

impl LogMean {
    fn add(&mut self, ratio: f64) {
        self.sum += ratio.ln();
        self.count += 1;
    }

    /// The mean as a change in per cent, with the number of ratios if lines are missing.
    fn cell(self, nr_lines: usize) -> TextCell {
        let percent = ((self.sum / self.count as f64).exp() - 1.0) * 100.0;
        TextCell {
            value: match self.count == nr_lines {
                true => String::new(),
                false => format!("{} of {nr_lines}", self.count),
            },
            spread: String::new(),
            change: if self.count == 0 { String::new() } else { format!("{percent:+.1}% ") },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::report_of;

    fn report(name: &str, columns: &[(&str, f64)]) -> Report {
        let metrics: Vec<[(&str, f64); 1]> =
            columns.iter().map(|(_, seconds)| [("web.walltime", *seconds)]).collect();
        let columns = columns.iter().zip(&metrics);
        let columns = columns.map(|((variant, _), metrics)| (*variant, vec![&metrics[..]]));
        let mut report = report_of(&columns.collect::<Vec<_>>());
        report.plan.scenario.name = name.to_owned();
        report
    }

    #[test]
    fn the_mean_is_geometric_and_of_lines_with_both_variants() {
        let reports = [
            report("a", &[("old", 2.0), ("new", 1.0)]),
            report("b", &[("old", 1.0), ("new", 8.0)]),
            report("c", &[("old", 1.0), ("other", 0.5)]),
        ];
        let text = render(&reports, &[], 120).unwrap();
        let mean = text.lines().find(|line| line.starts_with("geometric mean")).unwrap();
        // The root of 1/2 * 8 is 2.
        let words: Vec<&str> = mean.split_whitespace().collect();
        assert_eq!(words[2..], ["2", "of", "3", "+100.0%", "1", "of", "3", "-50.0%"], "{text}");
        assert!(text.contains("\nb: web.walltime"), "{text}");
        let refused = render(&reports, &["web.waltime".to_owned()], 120).unwrap_err();
        assert_eq!(refused.hint, "did you mean `web.walltime`?");
    }

    #[test]
    fn the_variant_to_compare_with_comes_first() {
        let mut scenario = report("a", &[("x", 1.0), ("y", 1.0), ("z", 1.0)]).plan.scenario;
        put_first(&mut scenario, "z").unwrap();
        let names: Vec<&str> = scenario.variants.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["z", "x", "y"]);
        assert!(put_first(&mut scenario, "w").unwrap_err().message.contains("no variant `w`"));
    }
}
