//! A knob with the values to try: `PATH`, `PATH=LOW..HIGH`, `PATH=LOW..HIGH/N`, `PATH=A,B,C`.
//!
//! The path is one of `--set`. Without bounds, the range is the kernel's own for that file. Steps
//! of a range are two digits (100, 110, 120), or sixteenths of a power of two for sizes (64M, 68M,
//! 72M), so a step is 1 to 10 per cent. `/N` gives N values: at equal ratios if the range starts
//! above 0 and spans a factor of 10 or more, else at equal distances.
//!
//! Invariant: values ascend (`max` last; a list with words, or for a grid, keeps its order), each
//! once, within the bounds that the core declares for the file. The loader checks them further.

mod path;

pub(crate) use path::group_and_file;

use pagetide_core::config::{ControlFile, ControlForm};
use pagetide_scenario::metric::criterion::Mistake;
use pagetide_scenario::metric::quantity::Quantity;
use pagetide_scenario::model::{PageSize, Setup};
use path::{file, now};

/// A knob and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Knob {
    /// Without `sysctl.` before the kernel's name.
    pub path: String,
    pub values: Vec<KnobValue>,
    /// How the values were chosen, in words.
    pub how: String,
    /// Whether the values were given as a list, and may be words that the loader has not checked.
    pub is_list: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct KnobValue {
    pub text: String,
    /// Its number; infinite for `max`, the place in the list for other words.
    pub number: f64,
}

/// A range with at most this many integers has all of them.
const ALL_UP_TO: i128 = 256;
/// Most values of a knob.
pub const VALUES_MAX: usize = 10_000;
/// Largest number: kernels take 64 bits.
const NUMBER_MAX: f64 = u64::MAX as f64;
/// From this factor on `/N` means equal ratios.
const LOG_FROM: f64 = 10.0;

impl Knob {
    /// Reads a knob of `setup`. With `coarse`, a range needs `/N`.
    /// Fails for an unknown path, a bad range, or a value outside the bounds of the file.
    pub fn parse(text: &str, setup: &Setup, coarse: bool) -> Result<Knob, Mistake> {
        let (path, range) = match text.split_once('=') {
            Some((path, range)) => (path.trim(), Some(range.trim())),
            None => (text.trim(), None),
        };
        let path = path.strip_prefix("sysctl.").unwrap_or(path);
        if path.is_empty() {
            return Err(Mistake::new("a knob has no name", "give it like vm.swappiness=0..200"));
        }
        let file = file(path, setup)?;
        let reader = Reader { path, file, page_size: setup.machine.page_size };
        let (values, how) = match range {
            None | Some("") => reader.own_range(setup, coarse)?,
            Some(range) => reader.range(range, coarse)?,
        };
        let is_list = range.is_some_and(|range| !range.is_empty() && !range.contains(".."));
        Ok(Knob { path: path.to_owned(), values, how, is_list })
    }

    /// The settings to check before a search: all values of a list, the ends of a range.
    pub fn checked(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let last = self.values.len() - 1;
        let checked = self.values.iter().enumerate();
        let checked = checked.filter(move |(at, _)| self.is_list || [0, last].contains(at));
        checked.map(|(_, value)| (self.path.clone(), value.text.clone()))
    }

    /// The present value: set in the setup, or the kernel's default.
    pub fn now(&self, setup: &Setup) -> Option<String> {
        now(&self.path, setup)
    }
}

/// `n` places from 0 to `last` at about equal distances.
pub fn spread(last: usize, n: usize) -> Vec<usize> {
    if last < n {
        return (0..=last).collect();
    }
    (0..n).map(|i| (i * last + (n - 1) / 2) / (n - 1).max(1)).collect()
}

/// Reads ranges of one knob.
struct Reader<'a> {
    path: &'a str,
    file: Option<ControlFile>,
    page_size: PageSize,
}

type KnobValues = (Vec<KnobValue>, String);

impl Reader<'_> {
    /// The range of the kernel.
    fn own_range(&self, setup: &Setup, coarse: bool) -> Result<KnobValues, Mistake> {
        let path = self.path;
        let give = |message: String| {
            Mistake::new(message, format!("give a range, like {path}=LOW..HIGH or {path}=A,B,C"))
        };
        let Some(file) = &self.file else {
            return Err(give(format!("{path} has no bounds of its own")));
        };
        if coarse {
            return Err(give(format!("{path} has no values")));
        }
        if let ControlForm::Policy(policy) = file.form {
            return self
                .list(&policy.variant_list().replace(" or ", ",").replace(", ", ","), coarse);
        }
        let memory: u64 = setup.machine.nodes.iter().map(|node| node.memory).sum();
        if let ControlForm::Size { .. } = file.form {
            let (low, high) =
                (Quantity::Bytes((memory / 64).max(1 << 20)), Quantity::Bytes(memory));
            let (values, how) = self.span(low, high, None)?;
            return Ok((
                values,
                format!("{how}; a size has no bounds, so up to the machine's memory"),
            ));
        }
        let Some((low, high)) = file.form.bounds(self.page_size).filter(|_| !file.form.is_action())
        else {
            return Err(give(format!("{path} takes no single number")));
        };
        // A negative value of a file never means more than 0 or a positive value.
        let low = low.max(0);
        let all = i128::from(match file.unit {
            "bytes" => memory,
            "kB" => memory >> 10,
            _ => u64::MAX,
        });
        let (most, whose) = match low < all && all < high {
            true => (all, "the kernel's own range, up to the machine's memory"),
            false => (high, "the kernel's own range"),
        };
        let (values, how) = self.span(Quantity::Integer(low), Quantity::Integer(most), None)?;
        Ok((values, format!("{how}; {whose}")))
    }

    fn range(&self, text: &str, coarse: bool) -> Result<KnobValues, Mistake> {
        let Some((low, rest)) = text.split_once("..") else { return self.list(text, coarse) };
        let (high, count) = match rest.rsplit_once('/') {
            // In `1MB/s` the slash is part of the rate.
            Some((high, count)) if count != "s" => (high, Some(count)),
            _ => (rest, None),
        };
        let count = count.map(|count| match count.trim().parse::<usize>() {
            Ok(count) if (2..=VALUES_MAX).contains(&count) => Ok(count),
            _ => Err(Mistake::new(
                format!("`{}` is no number of values", clip(count)),
                format!("write LOW..HIGH/N with N from 2 to {VALUES_MAX}"),
            )),
        });
        let count = count.transpose()?;
        if coarse && count.is_none() {
            return Err(Mistake::new(
                format!("{} does not say how many values of {} to take", clip(text), self.path),
                format!("write {}={}/5, or a list of values", self.path, clip(text)),
            ));
        }
        self.span(self.read(low)?, self.read(high)?, count)
    }

    /// A quantity in the unit of the file: sizes become kB if the file counts kB.
    fn read(&self, text: &str) -> Result<Quantity, Mistake> {
        let read = Quantity::read(text, self.page_size)
            .map_err(|error| Mistake::new(format!("{}: {error}", self.path), error.hint))?;
        let unit = self.file.map_or("", |file| file.unit);
        let is_size = self.file.is_some_and(|file| matches!(file.form, ControlForm::Size { .. }));
        Ok(match read {
            Quantity::Bytes(bytes) if unit == "kB" => Quantity::Integer((bytes / 1024).into()),
            Quantity::Bytes(bytes) if unit == "bytes" && !is_size => {
                Quantity::Integer(bytes.into())
            }
            Quantity::Integer(bytes @ 0..) if is_size => {
                Quantity::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
            }
            read => read,
        })
    }

    /// The values of a list, sorted for a search; a grid (`coarse`) keeps the order.
    fn list(&self, text: &str, coarse: bool) -> Result<KnobValues, Mistake> {
        let mut values: Vec<KnobValue> = Vec::new();
        let mut is_ordered = !coarse;
        for (place, word) in text.split(',').map(str::trim).enumerate() {
            if word.is_empty() {
                return Err(Mistake::new(
                    format!("`{}` has an empty value", clip(text)),
                    "a list is like 0,60,100; a range is like 0..100",
                ));
            }
            let value = match self.read(word) {
                Ok(quantity) => {
                    self.check(quantity)?;
                    KnobValue { text: quantity.to_string(), number: number(quantity) }
                }
                Err(_) => {
                    is_ordered &= word == "max";
                    let number = if word == "max" { f64::INFINITY } else { place as f64 };
                    KnobValue { text: word.to_owned(), number }
                }
            };
            if values.iter().any(|known| known.text == value.text) {
                return Err(Mistake::new(
                    format!("{} has the value {} twice", self.path, clip(word)),
                    "give each value once",
                ));
            }
            values.push(value);
        }
        if values.len() > VALUES_MAX {
            return Err(Mistake::new("too many values", format!("give at most {VALUES_MAX}")));
        }
        if is_ordered {
            values.sort_by(|a, b| a.number.total_cmp(&b.number));
        }
        let count = values.len();
        Ok((values, format!("{count} given values")))
    }

    fn span(&self, low: Quantity, high: Quantity, n: Option<usize>) -> Result<KnobValues, Mistake> {
        let (low, high) = same_kind(low, high).ok_or_else(|| {
            Mistake::new(
                format!("{}: {low}..{high} mixes {} with {}", self.path, low.kind(), high.kind()),
                "write both ends in the same unit",
            )
        })?;
        for end in [low, high] {
            // A decimal with too many digits is infinite.
            if !number(end).abs().le(&NUMBER_MAX) {
                return Err(Mistake::new(
                    format!("{}: an end of the range is too large", self.path),
                    "no number that a kernel takes is above 2^64",
                ));
            }
        }
        if number(low) >= number(high) {
            return Err(Mistake::new(
                format!("{}: the range {low}..{high} has no values", self.path),
                "write the smaller end first",
            ));
        }
        self.check(low)?;
        self.check(high)?;
        let ends = format!("{low} to {high}");
        let (quantities, how) = match n {
            Some(n) => {
                let (a, b) = (number(low), number(high));
                let is_log = a > 0.0 && b / a >= LOG_FROM;
                let at = |i: usize| {
                    let part = i as f64 / (n - 1) as f64;
                    let value = if is_log { a * (b / a).powf(part) } else { a + (b - a) * part };
                    with_number(low, value, self.page_size)
                };
                let mut all: Vec<Quantity> = (1..n - 1).map(at).collect();
                all.insert(0, low);
                all.push(high);
                let by = if is_log { "equal ratios" } else { "equal distances" };
                (all, format!("{n} values from {ends} at {by}"))
            }
            None => {
                (steps(low, high, self.page_size), format!("from {ends} in steps of two digits"))
            }
        };
        let mut values: Vec<KnobValue> = Vec::new();
        for quantity in quantities {
            let value = KnobValue { text: quantity.to_string(), number: number(quantity) };
            if values.last().is_none_or(|last| last.number < value.number) {
                values.push(value);
            }
        }
        Ok((values, how))
    }

    /// Refuses a number that is outside the bounds of the file.
    fn check(&self, quantity: Quantity) -> Result<(), Mistake> {
        let Some(file) = &self.file else { return Ok(()) };
        let Some((min, max)) = file.form.bounds(self.page_size) else { return Ok(()) };
        match quantity {
            Quantity::Integer(integer) if (min..=max).contains(&integer) => Ok(()),
            Quantity::Integer(integer) => Err(Mistake::new(
                format!("{integer} is outside the range of {}", self.path),
                format!("the kernel takes {min} to {max}"),
            )),
            other => {
                let unit =
                    if file.unit.is_empty() { String::new() } else { format!(" ({})", file.unit) };
                Err(Mistake::new(
                    format!("{} takes an integer{unit}, not {}", self.path, other.kind()),
                    format!("the kernel takes {min} to {max}"),
                ))
            }
        }
    }
}

fn clip(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}

/// Both ends as the same kind; 0 is of every kind.
fn same_kind(low: Quantity, high: Quantity) -> Option<(Quantity, Quantity)> {
    use std::mem::discriminant;
    match (low, high) {
        _ if discriminant(&low) == discriminant(&high) => Some((low, high)),
        (Quantity::Integer(0), Quantity::Bytes(_)) => Some((Quantity::Bytes(0), high)),
        (Quantity::Integer(0), Quantity::Nanoseconds(_)) => Some((Quantity::Nanoseconds(0), high)),
        (Quantity::Integer(0), Quantity::Percent(_)) => Some((Quantity::Percent(0.0), high)),
        (Quantity::Integer(a), Quantity::Decimal(_)) => Some((Quantity::Decimal(a as f64), high)),
        (Quantity::Decimal(_), Quantity::Integer(b)) => Some((low, Quantity::Decimal(b as f64))),
        _ => None,
    }
}

/// The number of a quantity in its smallest unit.
fn number(quantity: Quantity) -> f64 {
    match quantity {
        Quantity::Integer(integer) => integer as f64,
        Quantity::Decimal(number) | Quantity::Percent(number) => number,
        Quantity::Bytes(n) | Quantity::Nanoseconds(n) | Quantity::BytesPerSecond(n) => n as f64,
    }
}

/// A quantity of the kind of `like`; sizes are whole pages.
fn with_number(like: Quantity, value: f64, page_size: PageSize) -> Quantity {
    let page = page_size.bytes() as f64;
    match like {
        Quantity::Integer(_) => Quantity::Integer(value.round() as i128),
        Quantity::Decimal(_) => Quantity::Decimal((value * 1e3).round() / 1e3),
        Quantity::Percent(_) => Quantity::Percent(value.round()),
        Quantity::Bytes(_) => Quantity::Bytes(((value / page).round() * page) as u64),
        Quantity::Nanoseconds(_) => Quantity::Nanoseconds(value.round() as u64),
        Quantity::BytesPerSecond(_) => Quantity::BytesPerSecond(value.round() as u64),
    }
}

/// All values between two ends, in steps of two digits or sixteenths of a power of two.
fn steps(low: Quantity, high: Quantity, page_size: PageSize) -> Vec<Quantity> {
    let scale = if matches!(low, Quantity::Decimal(_)) { 1e3 } else { 1.0 };
    let (a, b) = ((number(low) * scale) as i128, (number(high) * scale) as i128);
    let of = |value: i128| with_number(low, value as f64 / scale, page_size);
    let mut all = vec![low];
    let is_binary = matches!(low, Quantity::Bytes(_) | Quantity::BytesPerSecond(_));
    let mut value = a;
    loop {
        let step = match is_binary {
            true => (1i128 << value.max(1).ilog2().saturating_sub(4)).max(page_size.bytes().into()),
            false if b.saturating_sub(a) <= ALL_UP_TO => 1,
            false => {
                // Towards 0 from below the next value has fewer digits.
                let size = if value < 0 { value.unsigned_abs() - 1 } else { value.unsigned_abs() };
                10i128.pow(size.max(1).ilog10().saturating_sub(1))
            }
        };
        value = (value.div_euclid(step).saturating_add(1)).saturating_mul(step);
        if value >= b || all.len() >= VALUES_MAX {
            break;
        }
        all.push(of(value));
    }
    all.push(high);
    all
}

#[cfg(test)]
mod tests;
