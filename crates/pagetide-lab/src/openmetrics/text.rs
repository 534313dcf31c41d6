//! Lines of OpenMetrics 1.0: what is said of a family, and its samples.
//!
//! Invariant: names are letters, digits and `_`; values of labels are escaped; a counter's samples end in `_total`,
//! an info's in `_info`; a unit is the end of its family's name.

use std::fmt::Write;

/// The type of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// A level.
    Gauge,
    /// A sum that only grows, until its owner is made anew.
    Counter,
    /// Neither is said: node_exporter's `untyped`.
    Unknown,
    /// Labels, and the value 1.
    Info,
}

/// Writes the samples of one family.
#[derive(Debug)]
pub(super) struct Family<'a> {
    out: &'a mut String,
    sample_name: String,
    start_s: u64,
}

impl<'a> Family<'a> {
    /// Opens the family called `name`, without the ending of its samples.
    pub fn new(
        out: &'a mut String,
        start_s: u64,
        name: &str,
        kind: Type,
        help: &str,
    ) -> Family<'a> {
        let (word, ending) = match kind {
            Type::Gauge => ("gauge", ""),
            Type::Counter => ("counter", "_total"),
            Type::Unknown => ("unknown", ""),
            Type::Info => ("info", "_info"),
        };
        writeln!(out, "# TYPE {name} {word}").expect("writing to a string");
        for unit in ["bytes", "seconds"] {
            if name.ends_with(&format!("_{unit}")) {
                writeln!(out, "# UNIT {name} {unit}").expect("writing to a string");
            }
        }
        writeln!(out, "# HELP {name} {}", escaped(help)).expect("writing to a string");
        Family { out, sample_name: format!("{name}{ending}"), start_s }
    }

    /// A sample: its labels as [`labels`] makes them, the text of its value, the virtual time.
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

/// A part of a metric's name: other characters become `_`, those at the end go.
pub(super) fn name(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    text.trim_end_matches(')').chars().map(plain).collect()
}

/// Seconds with as many digits as nanoseconds need.
pub(super) fn seconds(ns: u64) -> String {
    let text = format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
