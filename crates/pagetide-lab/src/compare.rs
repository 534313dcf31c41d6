//! Compares two results: the JSON of `run` or `sweep`, as a table with the statistics of variants.
//!
//! Variants of the same name are compared, in the order of the first file. If no name is in both,
//! all variants are compared with the first one.

use crate::gather;
use crate::report::Report;
use crate::table;
use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::record::{Metric, RunRecord, Unit};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A result that was read from JSON.
#[derive(Clone, Debug)]
pub struct PrintedResult {
    /// The file.
    pub name: String,
    document: Document,
}

#[derive(Clone, Debug, Deserialize)]
struct Document {
    scenario: String,
    version: String,
    seed: u64,
    variants: Vec<Variant>,
}

#[derive(Clone, Debug, Deserialize)]
struct Variant {
    name: String,
    metrics: BTreeMap<String, Samples>,
}

#[derive(Clone, Debug, Deserialize)]
struct Samples {
    unit: Unit,
    samples: Vec<Option<f64>>,
    /// One per sample: the reason why its work ended early, or null.
    #[serde(default)]
    ended: Vec<serde_json::Value>,
}

/// Fails if the text is not the JSON of `run` or `sweep`.
pub fn read(name: &str, text: &str) -> Result<PrintedResult, Mistake> {
    let document: Document = serde_json::from_str(text).map_err(|error| {
        Mistake::new(
            format!("{name} is not a result: {error}"),
            "give the output of `pagetide run --format json` or `pagetide sweep --format json`",
        )
    })?;
    if document.variants.is_empty() {
        return Err(Mistake::new(format!("{name} has no variants"), "give a result with runs"));
    }
    Ok(PrintedResult { name: name.to_owned(), document })
}

/// The comparison, and warnings.
pub fn render(a: &PrintedResult, b: &PrintedResult) -> (String, Vec<String>) {
    let mut out = String::new();
    for (label, of) in [("A", a), ("B", b)] {
        let Document { scenario, version, variants, .. } = &of.document;
        writeln!(
            out,
            "{label}  {}: {scenario}, pagetide {version}, {} variant{}",
            of.name,
            variants.len(),
            if variants.len() == 1 { "" } else { "s" }
        )
        .expect("writing to a string");
    }
    let has = |of: &PrintedResult, name: &str| of.document.variants.iter().any(|v| v.name == name);
    let both: Vec<&Variant> =
        a.document.variants.iter().filter(|variant| has(b, &variant.name)).collect();
    if both.is_empty() {
        let all = |label: &str, of: &PrintedResult| -> Vec<(String, Vec<RunRecord>)> {
            of.document
                .variants
                .iter()
                .map(|variant| (format!("{label}: {}", variant.name), records(of, variant)))
                .collect()
        };
        let columns = [all("A", a), all("B", b)].concat();
        out.push('\n');
        out += &table::body(&gather::report(&a.document.scenario, columns));
    }
    for variant in &both {
        let same = b.document.variants.iter().find(|other| other.name == variant.name);
        let columns = [(a, Some(*variant)), (b, same)];
        let columns: Vec<(String, Vec<RunRecord>)> = ["A", "B"]
            .into_iter()
            .zip(columns)
            .filter_map(|(label, (of, variant))| Some((label.to_owned(), records(of, variant?))))
            .collect();
        out.push('\n');
        if both.len() > 1 || variant.name != "default" {
            writeln!(out, "{}", variant.name).expect("writing to a string");
        }
        let report: Report = gather::report(&a.document.scenario, columns);
        out += &table::body(&report);
    }
    (out, warnings(a, b, !both.is_empty()))
}

fn warnings(a: &PrintedResult, b: &PrintedResult, is_paired: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let (one, other) = (&a.document, &b.document);
    if one.scenario != other.scenario {
        warnings.push(format!("the scenarios differ: {} and {}", one.scenario, other.scenario));
    }
    if one.version != other.version {
        warnings.push(format!(
            "the versions differ: {} and {}; this may change the figures, too",
            one.version, other.version
        ));
    }
    if is_paired {
        let missing = |of: &Document, other: &Document| -> Vec<String> {
            let has = |name: &str| other.variants.iter().any(|variant| variant.name == name);
            let names = of.variants.iter().map(|variant| variant.name.clone());
            names.filter(|name| !has(name)).collect()
        };
        let only = [missing(one, other), missing(other, one)].concat();
        if !only.is_empty() {
            warnings.push(format!("only in one of the two: {}", only.join(", ")));
        }
    }
    warnings
}

/// The runs of a variant, from its samples: the n-th samples of all metrics are of one run.
fn records(of: &PrintedResult, variant: &Variant) -> Vec<RunRecord> {
    let nr_runs = variant.metrics.values().map(|metric| metric.samples.len()).max().unwrap_or(0);
    let record = |at: usize| RunRecord {
        version: of.document.version.clone(),
        metrics: variant
            .metrics
            .iter()
            .filter_map(|(key, metric)| {
                let value = metric.samples.get(at)?.unwrap_or(f64::NAN);
                let ended = metric.ended.get(at).cloned();
                let ended = ended.and_then(|ended| serde_json::from_value(ended).ok()).flatten();
                Some((key.clone(), Metric { ended, ..Metric::new(value, metric.unit) }))
            })
            .collect(),
        ..RunRecord::new(
            &of.document.scenario,
            &variant.name,
            of.document.seed.saturating_add(at as u64),
        )
    };
    (0..nr_runs).map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use crate::testing::report_of;

    fn result(name: &str, variant: &str, values: [f64; 3]) -> PrintedResult {
        let metrics = values.map(|value| [("t.walltime", value), ("pgfault", 7.0)]);
        let seeds = metrics.iter().map(|metrics| metrics.as_slice()).collect();
        read(name, &json::render(&report_of(&[(variant, seeds)]))).unwrap()
    }

    #[test]
    fn the_same_variant_of_two_files() {
        let (a, b) =
            (result("a.json", "x", [1.0, 1.1, 0.9]), result("b.json", "x", [2.0, 2.1, 1.9]));
        let (text, warnings) = render(&a, &b);
        assert!(
            text.contains("t.walltime s   1.000 \u{b1} 0.100   2.000 \u{b1} 0.100  +100.0%*"),
            "{text}"
        );
        assert!(warnings.is_empty(), "{warnings:?}");
    }

    #[test]
    fn variants_with_other_names_are_compared_with_the_first() {
        let (a, b) = (result("a.json", "x", [1.0; 3]), result("b.json", "y", [1.0; 3]));
        let (text, _) = render(&a, &b);
        assert!(text.contains("A: x") && text.contains("B: y"), "{text}");
    }

    #[test]
    fn other_files_are_refused() {
        for text in ["", "{}", "[]", "{\"scenario\":1}", "\u{0}"] {
            assert!(read("x", text).unwrap_err().hint.contains("--format json"), "{text}");
        }
        let empty = "{\"scenario\":\"s\",\"version\":\"1\",\"seed\":1,\"variants\":[]}";
        assert!(read("x", empty).is_err());
    }

    #[test]
    fn other_versions_and_scenarios_are_warnings() {
        let (a, mut b) = (result("a", "x", [1.0; 3]), result("b", "x", [1.0; 3]));
        b.document.version = "9".to_owned();
        b.document.scenario = "other".to_owned();
        assert_eq!(render(&a, &b).1.len(), 2);
    }
}
