//! The rows of a sweep as a table (one line per point), as CSV (one line per run) and as JSON (the
//! format of `run`, with the points as variants).

use super::store::{SweepKey, SweepRow};
use crate::csv::{number, quoted};
use crate::dagger::{self, Daggers, DAGGER};
use crate::format::Scale;
use crate::gather;
use crate::heading;
use crate::json;
use crate::layout::{self, TextLine};
use crate::report::Report;
use crate::rows;
use crate::stats::Statistics;
use crate::table::{our_cell, to_scale, NOTHING, TEXT_WIDTH, WIDTH};
use pagetide_scenario::metric::MetricKey;
use pagetide_scenario::record::RunRecord;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The rows as a report: one column per point and variant.
pub fn report<'a>(rows: impl Iterator<Item = &'a SweepRow>) -> Report {
    let rows: Vec<&SweepRow> = rows.collect();
    let mut columns: Vec<(String, Vec<RunRecord>)> = Vec::new();
    let has_variants =
        rows.iter().map(|row| &row.record.variant).collect::<BTreeSet<_>>().len() > 1;
    let mut last: Option<SweepKey> = None;
    for row in &rows {
        let key = SweepKey { seed: 0, ..row.key() };
        if last.as_ref() != Some(&key) {
            columns.push((label(&key, has_variants), Vec::new()));
            last = Some(key);
        }
        if let Some((_, records)) = columns.last_mut() {
            records.push(row.record.clone());
        }
    }
    let scenario = rows.first().map_or("", |row| row.record.scenario.as_str());
    gather::report(scenario, columns)
}

/// The point and variant of each column of [`report`]; their seeds are 0.
pub fn points<'a>(rows: impl Iterator<Item = &'a SweepRow>) -> Vec<SweepKey> {
    let mut points: Vec<SweepKey> = Vec::new();
    for row in rows {
        let key = SweepKey { seed: 0, ..row.key() };
        if points.last() != Some(&key) {
            points.push(key);
        }
    }
    points
}

/// `calm vm.swappiness=10 machine.memory=2G`.
fn label(key: &SweepKey, has_variants: bool) -> String {
    let mut parts: Vec<String> = Vec::new();
    if has_variants || key.knobs.is_empty() {
        parts.push(key.variant.clone());
    }
    parts.extend(key.knobs.iter().map(|(knob, value)| format!("{knob}={value}")));
    parts.join(" ")
}

/// One line per point, one column per metric of `wanted` (if empty: the rows of a report).
pub fn table<'a>(all: impl Iterator<Item = &'a SweepRow>, wanted: &[String]) -> String {
    let mut report = report(all);
    if !wanted.is_empty() {
        report.plan.scenario.rows = wanted.to_vec();
    }
    let keys = rows::rows(&report);
    let mut names = Vec::new();
    let mut scales = Vec::new();
    for key in &keys {
        let shown =
            (0..report.columns.len()).filter_map(|column| report.shown_summary(column, key));
        let shown: Vec<Statistics> = shown.collect();
        let unit = report.unit(key).unwrap_or(pagetide_scenario::record::Unit::Ratio);
        let scale = Scale::new(unit, &to_scale(&key.name, shown.iter()));
        let symbol =
            if scale.symbol.is_empty() { String::new() } else { format!(", {}", scale.symbol) };
        names.push(format!("{}{symbol}", report.text(key)));
        scales.push(scale);
    }
    let daggers = Daggers::new(&report);
    let mut reasons = BTreeSet::new();
    let mut cell = |column: usize, key: &MetricKey, scale: &Scale| {
        let summary = report.shown_summary(column, key);
        let mut cell = our_cell(&key.name, summary.as_ref(), scale);
        if let (Some(_), Some(reason)) = (summary, daggers.of(column, key)) {
            cell.change = DAGGER.to_owned();
            reasons.insert(reason);
        }
        cell
    };
    let lines: Vec<TextLine> = report
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| TextLine {
            label: column.name.clone(),
            unit: String::new(),
            cells: keys.iter().zip(&scales).map(|(key, scale)| cell(at, key, scale)).collect(),
        })
        .collect();
    if keys.is_empty() {
        return format!("{NOTHING}\n");
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut out = layout::render(&names, &lines, WIDTH);
    let runs = report.columns.iter().map(|column| column.finished).max().unwrap_or(0);
    let legend = match runs {
        0 | 1 => "one seed each: no standard deviation".to_owned(),
        runs => format!("mean \u{b1} sample standard deviation over {runs} seeds"),
    };
    writeln!(out, "\n{legend}").expect("writing to a string");
    if !reasons.is_empty() {
        for line in heading::wrap(&dagger::legend(&reasons), TEXT_WIDTH) {
            writeln!(out, "{line}").expect("writing to a string");
        }
    }
    for note in &report.notes {
        writeln!(out, "note: {note}").expect("writing to a string");
    }
    out
}

/// One line per run: scenario, digest, version, variant, knobs, seed, then every metric. Missing
/// values and values of incomplete work are empty; `ended` names the latter.
pub fn csv<'a>(rows: impl Iterator<Item = &'a SweepRow> + Clone) -> String {
    let knobs: BTreeSet<&str> =
        rows.clone().flat_map(|row| row.knobs.keys().map(String::as_str)).collect();
    let metrics: BTreeSet<&str> =
        rows.clone().flat_map(|row| row.record.metrics.keys().map(String::as_str)).collect();
    let mut head = vec!["scenario", "scenario_digest", "version", "variant", "seed"];
    head.extend(&knobs);
    head.push("ended");
    head.extend(&metrics);
    let mut out = join(head.into_iter());
    for row in rows {
        let record = &row.record;
        let mark = record.mark();
        let seed = record.seed.to_string();
        let mut ended: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (key, metric) in &record.metrics {
            if let Some(why) = metric.ended {
                ended.entry(why.word().to_owned()).or_default().push(key);
            }
        }
        let mut ended: Vec<String> =
            ended.iter().map(|(why, keys)| format!("{why}: {}", keys.join(" "))).collect();
        ended.extend(mark.map(|mark| format!("{}: all others", mark.word())));
        let ended = ended.join("; ");
        let values: Vec<String> = metrics
            .iter()
            .map(|key| match record.metrics.get(*key) {
                Some(metric) if metric.ended.or(mark).is_none() => number(metric.value),
                _ => String::new(),
            })
            .collect();
        let front =
            [&record.scenario, &row.scenario_digest, &record.version, &record.variant, &seed];
        let fields = front.into_iter().map(String::as_str);
        let knobs = knobs.iter().map(|knob| row.knobs.get(*knob).map_or("", String::as_str));
        let values = values.iter().map(String::as_str);
        out += &join(fields.chain(knobs).chain([ended.as_str()]).chain(values));
    }
    out
}

fn join<'a>(fields: impl Iterator<Item = &'a str>) -> String {
    let fields: Vec<String> = fields.map(|field| quoted(field).into_owned()).collect();
    fields.join(",") + "\n"
}

/// As `pagetide run --format json`, each point a variant, with its knobs and the digest of the
/// scenario.
pub fn json<'a>(rows: impl Iterator<Item = &'a SweepRow> + Clone) -> String {
    let (report, points) = (report(rows.clone()), points(rows.clone()));
    let mut output = json::of_values(&report);
    output.scenario_digest = rows.clone().next().map(|row| row.scenario_digest.as_str());
    for (variant, key) in output.variants.iter_mut().zip(&points) {
        variant.variant = Some(&key.variant);
        variant.knobs = Some(&key.knobs);
    }
    json::pretty(&output)
}
