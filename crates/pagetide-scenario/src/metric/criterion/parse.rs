//! Parses criteria: splits each term at its relation.

use super::{Criterion, CriterionRhs, Mistake, Operator, Relation, Sum, Term};
use crate::metric::declared::NO_LIMIT;
use crate::metric::quantity::Quantity;
use pagetide_core::units::page_size::PageSize;

const FORM: &str =
    "write METRIC OP VALUE, for example 'allocstall == 0', 'web.latency_p99 <= 1.1 * before' \
                    or 'web.memory.current within 5 % of 30M'; several are joined by `and`";

pub(super) fn criterion(text: &str, page_size: PageSize) -> Result<Criterion, Mistake> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let terms: Result<Vec<Term>, Mistake> = words
        .split(|word| word.eq_ignore_ascii_case("and") || *word == "&&")
        .map(|words| term(&words.join(" "), page_size))
        .collect();
    Ok(Criterion { terms: terms? })
}

/// `text` has single blanks only.
fn term(text: &str, page_size: PageSize) -> Result<Term, Mistake> {
    let refused = || Mistake::new(format!("`{text}` is not a criterion"), FORM);
    let (left, relation, with) = match text.split_once(" within ") {
        Some((left, rest)) => {
            let (tolerance, with) = rest.split_once(" of ").ok_or_else(refused)?;
            let tolerance = quantity(tolerance, text, page_size)?;
            (left, Relation::Within(tolerance), with)
        }
        None => {
            let find = |(sign, operator): &(&'static str, Operator)| {
                text.find(sign).map(|at| (at, *sign, *operator))
            };
            // Find the first operator in the text; of two at the same position the longer one,
            // which the list has first.
            let found = Operator::ALL.iter().filter_map(find).min_by_key(|(at, _, _)| *at);
            let Some((at, sign, operator)) = found else {
                return Err(Mistake::new(format!("`{text}` has no comparison"), FORM));
            };
            (&text[..at], Relation::Is(operator), &text[at + sign.len()..])
        }
    };
    let (left, with) = (left.trim(), with.trim());
    let left = sum(left, page_size).ok_or_else(refused)?;
    if with.is_empty() {
        return Err(refused());
    }
    Ok(Term { left, relation, with: right(with, text, page_size)? })
}

/// The right side of a term.
fn right(with: &str, text: &str, page_size: PageSize) -> Result<CriterionRhs, Mistake> {
    let no_value = |hint: &str| Mistake::new(format!("`{with}` is not a value"), hint.to_owned());
    if let Some(factor) = with.strip_suffix("before").filter(|rest| !rest.ends_with(is_of_name)) {
        let factor = factor.trim_end();
        if factor.is_empty() {
            return Ok(CriterionRhs::Before(1.0));
        }
        let number = factor.strip_suffix(['*', '\u{d7}']).or(factor.strip_suffix(" of"));
        let factor = factor_of(number.unwrap_or(factor), page_size);
        return factor
            .map(CriterionRhs::Before)
            .ok_or_else(|| no_value("write 1.1 * before, or 110 % of before"));
    }
    if let Some(rest) = with.strip_prefix("before").filter(|rest| !rest.starts_with(is_of_name)) {
        let factor = rest.trim().strip_prefix('*').and_then(|rest| factor_of(rest, page_size));
        return factor.map(CriterionRhs::Before).ok_or_else(|| no_value("write 1.1 * before"));
    }
    if with == "max" {
        return Ok(CriterionRhs::Value(Quantity::Bytes(NO_LIMIT)));
    }
    if with.starts_with(|c: char| c.is_ascii_alphabetic())
        || [" * ", " + ", " - "].iter().any(|sign| with.contains(sign))
    {
        return sum(with, page_size)
            .map(CriterionRhs::Sum)
            .ok_or_else(|| Mistake::new(format!("`{text}` is not a criterion"), FORM));
    }
    quantity(with, text, page_size).map(CriterionRhs::Value)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-:".contains(c)
}

fn quantity(part: &str, text: &str, page_size: PageSize) -> Result<Quantity, Mistake> {
    Quantity::read(part, page_size)
        .map_err(|error| Mistake::new(format!("`{text}`: {error}"), error.hint))
}

/// Metrics with factors, and quantities. Blanks must surround a sign, because names may contain
/// `-`.
fn sum(text: &str, page_size: PageSize) -> Option<Sum> {
    let mut sum = Sum { metrics: Vec::new(), quantities: Vec::new() };
    let mut words: Vec<&str> = Vec::new();
    let mut sign = 1.0;
    for word in text.split(' ').chain(["+"]) {
        if word != "+" && word != "-" {
            words.push(word);
            continue;
        }
        match product(&words, page_size) {
            Some((factor, metric)) => sum.metrics.push((sign * factor, metric)),
            None => {
                let quantity = Quantity::read(&words.join(" "), page_size).ok()?;
                sum.quantities.push((sign, quantity));
            }
        }
        words.clear();
        sign = if word == "+" { 1.0 } else { -1.0 };
    }
    (!sum.metrics.is_empty()).then_some(sum)
}

fn product(words: &[&str], page_size: PageSize) -> Option<(f64, String)> {
    let (factor, metric) = match words {
        [metric] => (1.0, *metric),
        [factor @ .., "*", metric] if is_metric(metric) => {
            (factor_of(&factor.join(" "), page_size)?, *metric)
        }
        [metric, "*", factor @ ..] => (factor_of(&factor.join(" "), page_size)?, *metric),
        _ => return None,
    };
    is_metric(metric).then(|| (factor, metric.to_owned()))
}

fn is_metric(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        || (word.contains(['.', ':']) && word.contains(|c: char| c.is_ascii_alphabetic()))
}

fn factor_of(text: &str, page_size: PageSize) -> Option<f64> {
    match Quantity::read(text, page_size).ok()? {
        Quantity::Integer(integer) => Some(integer as f64),
        Quantity::Decimal(decimal) => Some(decimal),
        Quantity::Percent(percent) => Some(percent / 100.0),
        _ => None,
    }
}
