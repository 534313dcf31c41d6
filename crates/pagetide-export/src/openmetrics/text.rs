//! Lines of OpenMetrics 1.0: metadata of a family, and its samples.
//!
//! Invariant: names are letters, digits and `_`; label values are escaped; names of counter samples
//! end in `_total`, those of info samples in `_info`; a family's name ends in its unit.

use std::fmt::Write;

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricType {
    /// A level.
    Gauge,
    /// A sum that only grows until its owner is created again.
    Counter,
    /// node_exporter's `untyped`.
    Unknown,
    /// Labels with the value 1.
    Info,
}

/// Writes the samples of one family.
#[derive(Debug)]
pub(super) struct MetricFamily<'a> {
    out: &'a mut String,
    sample_name: String,
    start_s: u64,
}

impl<'a> MetricFamily<'a> {
    /// Opens the family `name` (without the suffix of its samples).
    pub fn new(
        out: &'a mut String,
        start_s: u64,
        name: &str,
        kind: MetricType,
        help: &str,
    ) -> MetricFamily<'a> {
        let (word, ending) = match kind {
            MetricType::Gauge => ("gauge", ""),
            MetricType::Counter => ("counter", "_total"),
            MetricType::Unknown => ("unknown", ""),
            MetricType::Info => ("info", "_info"),
        };
        writeln!(out, "# TYPE {name} {word}").expect("writing to a string");
        for unit in ["bytes", "seconds"] {
            if name.ends_with(&format!("_{unit}")) {
                writeln!(out, "# UNIT {name} {unit}").expect("writing to a string");
            }
        }
        writeln!(out, "# HELP {name} {}", escaped(help)).expect("writing to a string");
        MetricFamily { out, sample_name: format!("{name}{ending}"), start_s }
    }

    /// Writes a sample: labels from [`labels`], value, virtual time.
    pub fn sample(&mut self, labels: &str, value: &str, milliseconds: u64) {
        let seconds = self.start_s + milliseconds / 1000;
        let part = milliseconds % 1000;
        writeln!(self.out, "{}{{{labels}}} {value} {seconds}.{part:03}", self.sample_name)
            .expect("writing to a string");
    }
}

/// `name="value",...`
pub(super) fn labels(pairs: &[(&str, &str)]) -> String {
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    pairs.join(",")
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Part of a metric's name: other characters become `_`, a trailing `)` is dropped.
pub(super) fn name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    text.trim_end_matches(')').chars().map(plain).collect()
}

/// Seconds with up to nine decimals.
pub(super) fn seconds(ns: u64) -> String {
    let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
