//! The language of criteria: `METRIC OP VALUE`, several joined by `and`.
//!
//! ```text
//! allocstall == 0
//! web.latency_p99 <= 10ms and pswpout < 1000
//! web.latency_p99 <= 1.1 * before
//! ```
//!
//! A value has the unit that a scenario would give it. `before` is the value of the same metric in the scenario
//! as it stands, in the run with the same seed.
//!
//! A run that lacks a metric does not meet a criterion on it; neither does a run whose value is that of a task
//! that was killed or cut ([`Sample`]).

use pagetide_scenario::model::PageSize;
use pagetide_scenario::near::nearest_few;
use pagetide_scenario::quantity::Quantity;
use pagetide_scenario::record::{Metric, Unit};
use std::collections::BTreeMap;
use std::fmt;

/// Something wrong with what was asked, with advice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Mistake {
    /// One sentence.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl Mistake {
    /// A mistake with advice.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Mistake {
        Mistake { message: message.into(), hint: hint.into() }
    }
}

/// The values of one run.
pub type Sample = BTreeMap<String, Metric>;

/// What is wanted of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// All of them must hold.
    pub terms: Vec<Term>,
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Key of the metric, as in records.
    pub metric: String,
    /// How it is compared.
    pub operator: Operator,
    /// With what.
    pub with: With,
}

/// What a metric is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum With {
    /// A quantity.
    Value(Quantity),
    /// The value before, times this.
    Before(f64),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
    /// `>=`
    AtLeast,
    /// `>`
    More,
}

impl Operator {
    /// Longer texts first: `<=` begins with `<`.
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

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.metric, self.operator)?;
        match self.with {
            With::Value(quantity) => write!(f, "{quantity}"),
            With::Before(1.0) => f.write_str("before"),
            With::Before(factor) => write!(f, "{factor} * before"),
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
    /// Reads a criterion; sizes may be said in pages of `page_size`.
    ///
    /// # Errors
    /// It is not of this language.
    pub fn parse(text: &str, page_size: PageSize) -> Result<Criterion, Mistake> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let terms: Result<Vec<Term>, Mistake> = words
            .split(|word| word.eq_ignore_ascii_case("and") || *word == "&&")
            .map(|words| term(&words.join(" "), page_size))
            .collect();
        Ok(Criterion { terms: terms? })
    }

    /// Whether a run meets it. `before` is the run of the scenario as it stands, with the same seed.
    pub fn holds(&self, run: &Sample, before: Option<&Sample>) -> bool {
        self.terms.iter().all(|term| term.holds(run, before))
    }

    /// Whether some of it is relative to the scenario as it stands.
    pub fn is_relative(&self) -> bool {
        self.terms.iter().any(|term| matches!(term.with, With::Before(_)))
    }

    /// Checks names and units against the metrics of a run.
    ///
    /// # Errors
    /// A metric that the run does not have, or a quantity of another kind than the metric.
    pub fn check(&self, run: &Sample) -> Result<(), Mistake> {
        for term in &self.terms {
            check_name(&term.metric, run)?;
            let (Some(metric), With::Value(quantity)) = (run.get(&term.metric), term.with) else {
                continue;
            };
            if in_unit(quantity, metric.unit).is_none() {
                let name = &term.metric;
                return Err(Mistake::new(
                    format!("`{term}` mixes units: {name} is {}", counts(metric.unit)),
                    format!("{quantity} is {}; write {}", quantity.kind(), form(metric.unit)),
                ));
            }
        }
        Ok(())
    }

    /// What the reader should know of the metrics it is made of.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for Term { metric, .. } in &self.terms {
            if metric.ends_with("_max") || metric.ends_with(".max") {
                warnings.push(format!(
                    "{metric} is a maximum: one event decides it, and longer runs have larger ones\n\
                     hint: a percentile up to p99 gives a threshold that repeats"
                ));
            } else if metric.ends_with("_p999") || metric.ends_with("_p9999") {
                warnings.push(format!(
                    "{metric} is decided by one event in a thousand or fewer\n\
                     hint: a percentile up to p99 gives a threshold that repeats"
                ));
            }
        }
        warnings
    }
}

/// Whether the run has the metric.
///
/// # Errors
/// It has not; the nearest names are offered.
pub fn check_name(name: &str, run: &Sample) -> Result<(), Mistake> {
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

impl Term {
    fn holds(&self, run: &Sample, before: Option<&Sample>) -> bool {
        let whole = |sample: &Sample| sample.get(&self.metric).copied().filter(is_whole);
        let Some(metric) = whole(run) else { return false };
        let with = match self.with {
            With::Value(quantity) => in_unit(quantity, metric.unit),
            With::Before(factor) => before.and_then(whole).map(|metric| metric.value * factor),
        };
        with.is_some_and(|with| self.operator.holds(metric.value, with))
    }
}

/// The value is that of a task that came to its own end, in a run that did.
pub fn is_whole(metric: &Metric) -> bool {
    metric.ended.is_none() && metric.value.is_finite()
}

fn term(text: &str, page_size: PageSize) -> Result<Term, Mistake> {
    const FORM: &str = "a criterion is METRIC OP VALUE, for example 'allocstall == 0' or \
                        'web.latency_p99 <= 1.1 * before'; several are joined by `and`";
    let find = |(sign, operator): &(&'static str, Operator)| {
        text.find(sign).map(|at| (at, *sign, *operator))
    };
    // The first sign in the text; of two at the same place the longer one, which the list has first.
    let found = Operator::ALL.iter().filter_map(find).min_by_key(|(at, _, _)| *at);
    let Some((at, sign, operator)) = found else {
        return Err(Mistake::new(format!("`{text}` compares nothing"), FORM));
    };
    let (metric, with) = (text[..at].trim(), text[at + sign.len()..].trim());
    if metric.is_empty() || metric.contains(' ') || with.is_empty() {
        return Err(Mistake::new(format!("`{text}` is no criterion"), FORM));
    }
    let with = match with.strip_suffix("before").map(str::trim_end) {
        Some("") => With::Before(1.0),
        Some(factor) => {
            let number = factor.strip_suffix(['*', '\u{d7}']).or(factor.strip_suffix(" of"));
            With::Before(factor_of(number.unwrap_or(factor), page_size).ok_or_else(|| {
                Mistake::new(
                    format!("`{with}` is no value"),
                    "write 1.1 * before, or 110 % of before",
                )
            })?)
        }
        None => match with.strip_prefix("before").map(str::trim) {
            Some(rest) => {
                let factor = rest.strip_prefix('*').and_then(|rest| factor_of(rest, page_size));
                With::Before(factor.ok_or_else(|| {
                    Mistake::new(format!("`{with}` is no value"), "write 1.1 * before")
                })?)
            }
            None => With::Value(
                Quantity::read(with, page_size)
                    .map_err(|error| Mistake::new(format!("`{text}`: {error}"), error.hint))?,
            ),
        },
    };
    Ok(Term { metric: metric.to_owned(), operator, with })
}

fn factor_of(text: &str, page_size: PageSize) -> Option<f64> {
    match Quantity::read(text, page_size).ok()? {
        Quantity::Integer(integer) => Some(integer as f64),
        Quantity::Decimal(decimal) => Some(decimal),
        Quantity::Percent(percent) => Some(percent / 100.0),
        _ => None,
    }
}

/// The quantity as a value of a metric of this unit; `None`: it is of another kind.
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
        Unit::PerSecond => "a number a second",
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

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_scenario::record::Ended;

    fn parse(text: &str) -> Criterion {
        Criterion::parse(text, PageSize::Kib4).unwrap()
    }

    fn sample(values: &[(&str, f64, Unit)]) -> Sample {
        let metric =
            |&(key, value, unit): &(&str, f64, Unit)| (key.to_owned(), Metric::new(value, unit));
        values.iter().map(metric).collect()
    }

    #[test]
    fn the_language() {
        for (text, shown) in [
            ("allocstall == 0", "allocstall == 0"),
            ("allocstall=0", "allocstall == 0"),
            ("a.walltime<=10ms and b >= 0.5", "a.walltime <= 10ms and b >= 0.5"),
            ("x < 5 %  AND y > 1GiB", "x < 5 % and y > 1G"),
            ("x <= 1.1 * before", "x <= 1.1 * before"),
            ("x <= before*1.1", "x <= 1.1 * before"),
            ("x <= 110 % of before", "x <= 1.1 * before"),
            ("x < before", "x < before"),
            ("x != 500MiB/s", "x != 500M/s"),
        ] {
            assert_eq!(parse(text).to_string(), shown);
            assert_eq!(parse(shown).to_string(), shown);
        }
        for bad in [
            "",
            "and",
            "a",
            "a ==",
            "== 0",
            "a b == 0",
            "a == 0 and",
            "a <= 2GB",
            "a <= 10ms * before",
            "a <= before + 1",
            "a => 1",
            "a == x",
        ] {
            assert!(Criterion::parse(bad, PageSize::Kib4).is_err(), "{bad}");
        }
    }

    #[test]
    fn all_terms_must_hold() {
        let run = sample(&[("a", 5.0, Unit::Count), ("b.walltime", 0.010, Unit::Seconds)]);
        for (text, holds) in [
            ("a == 5", true),
            ("a != 5", false),
            ("a < 5 and b.walltime <= 10ms", false),
            ("a <= 5 and b.walltime <= 10ms", true),
            ("b.walltime < 10ms", false),
            ("absent == 0", false),
        ] {
            assert_eq!(parse(text).holds(&run, None), holds, "{text}");
        }
    }

    #[test]
    fn before_is_of_the_same_seed() {
        let (run, before) =
            (sample(&[("a", 11.0, Unit::Count)]), sample(&[("a", 10.0, Unit::Count)]));
        let criterion = parse("a <= 1.1 * before");
        assert!(criterion.is_relative());
        assert!(criterion.holds(&run, Some(&before)));
        assert!(!parse("a <= before").holds(&run, Some(&before)));
        assert!(!criterion.holds(&run, None));
    }

    #[test]
    fn a_value_that_is_none_meets_nothing() {
        let run = sample(&[("a", f64::NAN, Unit::Count)]);
        assert!(!parse("a != 1").holds(&run, None));
        let mut killed = sample(&[("t.walltime", 0.1, Unit::Seconds)]);
        let fast = parse("t.walltime < 1s");
        assert!(fast.holds(&killed, None));
        killed.get_mut("t.walltime").unwrap().ended = Some(Ended::OomKilled);
        assert!(!fast.holds(&killed, None));
    }

    #[test]
    fn names_and_units_are_checked() {
        let run = sample(&[("allocstall", 5.0, Unit::Count), ("b.walltime", 1.0, Unit::Seconds)]);
        let refused = |text: &str| parse(text).check(&run).unwrap_err();
        assert_eq!(refused("alocstall == 0").hint, "did you mean `allocstall`?");
        assert!(refused("allocstall == 0ms").message.contains("mixes units"));
        assert!(refused("b.walltime < 5").hint.contains("10ms"));
        assert!(refused("b.walltime < 5 %").message.contains("is a time"));
        assert!(parse("b.walltime > 0 and allocstall <= 1.5 * before").check(&run).is_ok());
    }

    #[test]
    fn maxima_are_warned_of() {
        assert_eq!(parse("w.latency_max < 1s and x == 0").warnings().len(), 1);
        assert_eq!(parse("w.latency_p999 < 1s").warnings().len(), 1);
        assert!(parse("w.latency_p99 < 1s").warnings().is_empty());
    }
}
