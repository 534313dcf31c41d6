//! The language of criteria: `METRIC OP VALUE`, several joined by `and`. `pagetide find` takes one,
//! and `[[expect]]` tables of a scenario contain them.
//!
//! ```text
//! allocstall == 0
//! web.latency_p99 <= 10ms and pswpout < 1000
//! web.latency_p99 <= 1.1 * before
//! web.memory.current within 5 % of 30M
//! web.slab < 0.5 * web.fill.web.slab
//! web.memory.current within 256K of web.anon + web.file + web.kernel
//! web.fill.batch.memory.high == max
//! ```
//!
//! A value has a unit as in a scenario. `before` is the value of the same metric in the unchanged
//! scenario, in the run with the same seed. Metrics may be added, subtracted and multiplied by a
//! number, on both sides, and quantities may be added to them. `max` is the value of a control file
//! without a limit. `within A of B` means that the left side differs from B by at most A, or by at
//! most that share of B.
//! A run that lacks a metric does not meet a criterion on it. Neither does a run in which the task
//! of the metric was killed or cut ([`Metric::ended`]).

mod parse;
#[cfg(test)]
mod tests;

use crate::metric::quantity::Quantity;
use crate::names::near::nearest_few;
use crate::record::{Metric, Unit};
use pagetide_core::units::page_size::PageSize;
use std::collections::BTreeMap;
use std::fmt;

/// A mistake in a criterion or another request, with a hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Mistake {
    /// One sentence.
    pub message: String,
    /// How to mend it.
    pub hint: String,
}

impl Mistake {
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Mistake {
        Mistake { message: message.into(), hint: hint.into() }
    }
}

pub type RunMetrics = BTreeMap<String, Metric>;

/// A condition on runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// All of them must hold.
    pub terms: Vec<Term>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    pub left: Sum,
    pub relation: Relation,
    pub with: CriterionRhs,
}

/// A sum of metrics with factors, at least one, and of quantities.
#[derive(Clone, Debug, PartialEq)]
pub struct Sum {
    metrics: Vec<(f64, String)>,
    /// Quantities with their signs.
    quantities: Vec<(f64, Quantity)>,
}

/// The right side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum CriterionRhs {
    Value(Quantity),
    /// Value of the same metric in the unchanged scenario, times this factor.
    Before(f64),
    /// Other metrics of the same run.
    Sum(Sum),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relation {
    Is(Operator),
    /// Both sides differ by at most this quantity, or by this share of the right side.
    Within(Quantity),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Less,
    AtMost,
    Equal,
    Unequal,
    AtLeast,
    More,
}

impl Operator {
    /// Longer texts first: `<=` starts with `<`.
    const ALL: [(&'static str, Operator); 7] = [
        ("<=", Operator::AtMost),
        (">=", Operator::AtLeast),
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<", Operator::Less),
        (">", Operator::More),
        ("=", Operator::Equal),
    ];

    fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Operator::Less => left < right,
            Operator::AtMost => left <= right,
            Operator::Equal => left == right,
            Operator::Unequal => left != right,
            Operator::AtLeast => left >= right,
            Operator::More => left > right,
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Operator::ALL.iter().find(|(_, operator)| operator == self);
        f.write_str(text.map_or("", |(text, _)| text))
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (factor, metric)) in self.metrics.iter().enumerate() {
            let sign = match (index, *factor < 0.0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            };
            match factor.abs() {
                1.0 if index > 0 || *factor > 0.0 => write!(f, "{sign}{metric}")?,
                size => write!(f, "{sign}{size} * {metric}")?,
            }
        }
        for (sign, quantity) in &self.quantities {
            write!(f, " {} {quantity}", if *sign < 0.0 { "-" } else { "+" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.relation {
            Relation::Is(operator) => write!(f, "{} {operator} ", self.left)?,
            Relation::Within(tolerance) => write!(f, "{} within {tolerance} of ", self.left)?,
        }
        match &self.with {
            CriterionRhs::Value(quantity) => write!(f, "{quantity}"),
            CriterionRhs::Before(1.0) => f.write_str("before"),
            CriterionRhs::Before(factor) => write!(f, "{factor} * before"),
            CriterionRhs::Sum(sum) => write!(f, "{sum}"),
        }
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<String> = self.terms.iter().map(Term::to_string).collect();
        f.write_str(&terms.join(" and "))
    }
}

impl Criterion {
    /// Parses a criterion; sizes may be in pages of `page_size`.
    pub fn parse(text: &str, page_size: PageSize) -> Result<Criterion, Mistake> {
        parse::criterion(text, page_size)
    }

    /// Whether a run meets it. `before`: the run of the unchanged scenario with the same seed.
    pub fn holds(&self, run: &RunMetrics, before: Option<&RunMetrics>) -> bool {
        self.terms.iter().all(|term| term.holds(run, before))
    }

    /// The metrics of the criterion, in its order; a metric may occur twice.
    pub fn metrics(&self) -> impl Iterator<Item = &String> {
        self.terms.iter().flat_map(Term::metrics)
    }

    /// Renames the metrics.
    pub(crate) fn rename(&mut self, name: impl Fn(&str) -> String) {
        for term in &mut self.terms {
            let right = match &mut term.with {
                CriterionRhs::Sum(sum) => sum.metrics.as_mut_slice(),
                CriterionRhs::Value(_) | CriterionRhs::Before(_) => &mut [],
            };
            term.left
                .metrics
                .iter_mut()
                .chain(right)
                .for_each(|(_, metric)| *metric = name(metric));
        }
    }

    /// Whether some term uses `before`.
    pub fn is_relative(&self) -> bool {
        self.terms.iter().any(|term| matches!(term.with, CriterionRhs::Before(_)))
    }

    /// Checks names and units against the metrics of a run.
    pub fn check(&self, run: &RunMetrics) -> Result<(), Mistake> {
        self.metrics().try_for_each(|metric| check_name(metric, run))?;
        self.check_units(|metric| run.get(metric).map(|metric| metric.unit))
    }

    /// Checks that each term compares quantities of one kind, as far as the units are known.
    pub fn check_units(&self, unit_of: impl Fn(&str) -> Option<Unit>) -> Result<(), Mistake> {
        for term in &self.terms {
            let first = &term.left.metrics[0].1;
            let Some(unit) = unit_of(first) else { continue };
            let mixed = |other: &str, hint: String| {
                Mistake::new(
                    format!("`{term}` mixes units: {first} is {}", counts(unit)),
                    hint + other,
                )
            };
            for metric in term.metrics().skip(1) {
                if let Some(other) = unit_of(metric).filter(|other| *other != unit) {
                    return Err(mixed("", format!("{metric} is {}", counts(other))));
                }
            }
            let tolerance = match term.relation {
                Relation::Within(Quantity::Percent(_)) | Relation::Is(_) => None,
                Relation::Within(tolerance) => Some(tolerance),
            };
            let (value, added) = match &term.with {
                CriterionRhs::Value(quantity) => (Some(*quantity), &[][..]),
                CriterionRhs::Before(_) => (None, &[][..]),
                CriterionRhs::Sum(sum) => (None, sum.quantities.as_slice()),
            };
            let added = term.left.quantities.iter().chain(added).map(|(_, quantity)| *quantity);
            for quantity in value.into_iter().chain(tolerance).chain(added) {
                if in_unit(quantity, unit).is_none() {
                    let hint = format!("{quantity} is {}; write ", quantity.kind());
                    return Err(mixed(form(unit), hint));
                }
            }
        }
        Ok(())
    }

    /// Warnings about metrics that depend on few events.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for metric in self.metrics() {
            if metric.ends_with("_max") || metric.ends_with(".max") {
                warnings.push(format!(
                    "{metric} is a maximum: one event decides it, and it grows with the length of the run\n\
                     hint: use a percentile up to p99 for a repeatable threshold"
                ));
            } else if metric.ends_with("_p999") || metric.ends_with("_p9999") {
                warnings.push(format!(
                    "{metric} depends on one event in a thousand or fewer\n\
                     hint: use a percentile up to p99 for a repeatable threshold"
                ));
            }
        }
        warnings
    }
}

/// Checks that the run has the metric.
/// The error's hint names the nearest metrics.
pub fn check_name(name: &str, run: &RunMetrics) -> Result<(), Mistake> {
    if run.contains_key(name) {
        return Ok(());
    }
    let near = nearest_few(name, run.keys().map(String::as_str), 3);
    let hint = match near.as_slice() {
        [] => "`pagetide run FILE --repeats 1 --format csv` lists the metrics of a scenario".into(),
        near => format!("did you mean `{}`?", near.join("` or `")),
    };
    let name: String = name.chars().filter(|c| !c.is_control()).take(80).collect();
    Err(Mistake::new(format!("no run has a metric `{name}`"), hint))
}

impl Sum {
    /// The value and its unit, if the run has all metrics of the sum and all are complete.
    fn value(&self, run: &RunMetrics) -> Option<(f64, Unit)> {
        let mut sum = 0.0;
        let mut unit = None;
        for (factor, key) in &self.metrics {
            let metric = run.get(key).filter(|metric| is_complete(metric))?;
            unit = unit.or(Some(metric.unit));
            sum += factor * metric.value;
        }
        let unit = unit?;
        for (sign, quantity) in &self.quantities {
            sum += sign * in_unit(*quantity, unit)?;
        }
        Some((sum, unit))
    }
}

impl Term {
    /// Its metrics, those of the left side first.
    pub fn metrics(&self) -> impl Iterator<Item = &String> {
        let right = match &self.with {
            CriterionRhs::Sum(sum) => sum.metrics.as_slice(),
            CriterionRhs::Value(_) | CriterionRhs::Before(_) => &[],
        };
        self.left.metrics.iter().chain(right).map(|(_, metric)| metric)
    }

    /// Whether a run meets the term, like [`Criterion::holds`].
    pub fn holds(&self, run: &RunMetrics, before: Option<&RunMetrics>) -> bool {
        let Some((left, unit)) = self.left.value(run) else { return false };
        let right = match &self.with {
            CriterionRhs::Value(quantity) => in_unit(*quantity, unit),
            CriterionRhs::Before(factor) => {
                before.and_then(|run| self.left.value(run)).map(|(value, _)| value * factor)
            }
            CriterionRhs::Sum(sum) => sum.value(run).map(|(value, _)| value),
        };
        right.is_some_and(|right| match self.relation {
            Relation::Is(operator) => operator.holds(left, right),
            Relation::Within(Quantity::Percent(share)) => {
                (left - right).abs() <= right.abs() * share / 100.0
            }
            Relation::Within(tolerance) => {
                in_unit(tolerance, unit).is_some_and(|most| (left - right).abs() <= most)
            }
        })
    }
}

/// Whether the task of the metric, and the run, ended normally.
pub fn is_complete(metric: &Metric) -> bool {
    metric.ended.is_none() && metric.value.is_finite()
}

/// Converts a quantity to the unit of a metric; `None`: it is of another kind.
pub fn in_unit(quantity: Quantity, unit: Unit) -> Option<f64> {
    let plain = match quantity {
        Quantity::Integer(integer) => Some(integer as f64),
        Quantity::Decimal(decimal) => Some(decimal),
        _ => None,
    };
    match (unit, quantity) {
        (Unit::Seconds, Quantity::Nanoseconds(ns)) => Some(ns as f64 / 1e9),
        (Unit::Seconds, Quantity::Integer(0)) => Some(0.0),
        (Unit::Seconds, _) => None,
        (Unit::Bytes, Quantity::Bytes(bytes)) => Some(bytes as f64),
        (Unit::Bytes, _) => plain,
        (Unit::Kilobytes, Quantity::Bytes(bytes)) => Some(bytes as f64 / 1024.0),
        (Unit::Kilobytes, _) => plain,
        (Unit::BytesPerSecond, Quantity::BytesPerSecond(rate)) => Some(rate as f64),
        (Unit::BytesPerSecond, _) => plain,
        (Unit::Percent, Quantity::Percent(percent)) => Some(percent),
        (Unit::Percent, _) => plain,
        (Unit::Ratio, Quantity::Percent(percent)) => Some(percent / 100.0),
        (Unit::Ratio | Unit::Count | Unit::Pages | Unit::PerSecond, _) => plain,
    }
}

fn counts(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "a number of events",
        Unit::Pages => "a number of pages",
        Unit::Bytes | Unit::Kilobytes => "a size",
        Unit::Seconds => "a time",
        Unit::BytesPerSecond => "a rate",
        Unit::PerSecond => "a number per second",
        Unit::Percent => "a share in per cent",
        Unit::Ratio => "a ratio",
    }
}

fn form(unit: Unit) -> &'static str {
    match unit {
        Unit::Count | Unit::Pages | Unit::PerSecond => "a number, like 100",
        Unit::Bytes | Unit::Kilobytes => "a size, like 64MiB",
        Unit::Seconds => "a time, like 10ms",
        Unit::BytesPerSecond => "a rate, like 500MiB/s",
        Unit::Percent => "a share, like 5 %",
        Unit::Ratio => "a number, like 0.5",
    }
}
