//! Quantities outside scenario files, in the same syntax: `10ms`, `1GiB`, `5 %`, `120`, `0.5`.
//!
//! A key of a scenario accepts one kind of quantity; a criterion or the range of a search accepts
//! any kind. Here the unit decides the kind, and the caller compares the kinds.

use crate::load::units;
use crate::metric::declared::NO_LIMIT;
use pagetide_core::units::page_size::PageSize;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A whole number without a unit.
    Integer(i128),
    /// A decimal number without a unit.
    Decimal(f64),
    Bytes(u64),
    Nanoseconds(u64),
    /// Per cent.
    Percent(f64),
    BytesPerSecond(u64),
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct QuantityError {
    pub message: String,
    /// How to mend it.
    pub hint: String,
}

impl Quantity {
    /// Parses a quantity; sizes may be in pages of `page_size`.
    pub fn read(text: &str, page_size: PageSize) -> Result<Quantity, QuantityError> {
        let text = text.trim();
        if let Ok(integer) = text.replace('_', "").parse::<i128>() {
            return Ok(Quantity::Integer(integer));
        }
        let is_plain = !text.is_empty() && text.bytes().all(|b| b"0123456789.-+".contains(&b));
        if let Some(decimal) = text.parse::<f64>().ok().filter(|_| is_plain) {
            return Ok(Quantity::Decimal(decimal));
        }
        if let Some(number) = text.strip_suffix('%') {
            let number = number.trim();
            let is_number = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            return match number.parse().ok().filter(|_| is_number) {
                Some(percent) => Ok(Quantity::Percent(percent)),
                None => Err(error("not a percentage", "shares are written like \"5 %\"")),
            };
        }
        if text.ends_with("/s") {
            return units::parse_rate(text, page_size)
                .map(Quantity::BytesPerSecond)
                .map_err(|e| error(e.message, e.hint));
        }
        if let Ok(nanoseconds) = units::parse_time(text, page_size) {
            return Ok(Quantity::Nanoseconds(nanoseconds));
        }
        units::parse_size(text, page_size).map(Quantity::Bytes).map_err(|size| {
            let forms = "write a quantity like 120, 0.5, 10ms, 64MiB, 5 % or 500MiB/s";
            // A unit that is of no kind says nothing about the kind.
            let is_size = size.hint != units::SIZE_FORMS;
            match text.starts_with(|c: char| c.is_ascii_digit()) {
                true if is_size => error(size.message, size.hint),
                true => error(size.message, forms),
                false => error(format!("`{}` is not a quantity", clip(text)), forms),
            }
        })
    }

    /// The kind with its article, for messages.
    pub const fn kind(self) -> &'static str {
        match self {
            Quantity::Integer(_) => "an integer",
            Quantity::Decimal(_) => "a number",
            Quantity::Bytes(_) => "a size",
            Quantity::Nanoseconds(_) => "a time",
            Quantity::Percent(_) => "a share",
            Quantity::BytesPerSecond(_) => "a rate",
        }
    }
}

fn error(message: impl Into<String>, hint: impl Into<String>) -> QuantityError {
    QuantityError { message: message.into(), hint: hint.into() }
}

fn clip(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}

/// In the syntax of scenario files, in the largest unit that leaves a whole number. Sizes are in
/// the kernel's form (`64M`), which scenario keys and control files both accept.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SIZES: [(&str, u64); 4] =
            [("T", 1 << 40), ("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];
        const TIMES: [(&str, u64); 4] =
            [("h", 3_600_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
        let scaled = |value: u64, units: [(&'static str, u64); 4], least: &'static str| {
            let whole = |(_, size): &(&str, u64)| value > 0 && value.is_multiple_of(*size);
            let (unit, size) = units.into_iter().find(whole).unwrap_or((least, 1));
            format!("{}{unit}", value / size)
        };
        match *self {
            Quantity::Integer(integer) => write!(f, "{integer}"),
            Quantity::Decimal(decimal) => write!(f, "{decimal}"),
            Quantity::Bytes(NO_LIMIT) => f.write_str("max"),
            Quantity::Bytes(bytes) => f.write_str(&scaled(bytes, SIZES, "")),
            Quantity::Nanoseconds(ns) => f.write_str(&scaled(ns, TIMES, "ns")),
            Quantity::Percent(percent) => write!(f, "{percent} %"),
            Quantity::BytesPerSecond(rate) => write!(f, "{}/s", scaled(rate, SIZES, "B")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Quantity {
        Quantity::read(text, PageSize::Kib4).unwrap()
    }

    #[test]
    fn the_unit_says_what_it_is() {
        for (text, quantity, shown) in [
            ("120", Quantity::Integer(120), "120"),
            ("-5", Quantity::Integer(-5), "-5"),
            ("0.5", Quantity::Decimal(0.5), "0.5"),
            ("10ms", Quantity::Nanoseconds(10_000_000), "10ms"),
            ("1.5s", Quantity::Nanoseconds(1_500_000_000), "1500ms"),
            ("1GiB", Quantity::Bytes(1 << 30), "1G"),
            ("64M", Quantity::Bytes(64 << 20), "64M"),
            ("2 pages", Quantity::Bytes(8192), "8K"),
            ("5 %", Quantity::Percent(5.0), "5 %"),
            ("99.9%", Quantity::Percent(99.9), "99.9 %"),
            ("500MiB/s", Quantity::BytesPerSecond(500 << 20), "500M/s"),
        ] {
            assert_eq!(read(text), quantity, "{text}");
            assert_eq!(quantity.to_string(), shown);
        }
    }

    #[test]
    fn what_it_writes_it_reads() {
        for text in ["120", "10ms", "1G", "1025", "7K", "5 %", "512M/s", "0s", "3ns"] {
            let quantity = read(text);
            assert_eq!(read(&quantity.to_string()), quantity, "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_says_why() {
        let refused = |text: &str| Quantity::read(text, PageSize::Kib4).unwrap_err();
        assert!(refused("2GB").hint.contains("2GiB"));
        assert!(refused("fast").message.contains("`fast` is not a quantity"));
        for text in ["", "%", "x %", "1..2", "e5", "/s", "\u{1b}[1m", "--1", "inf", "NaN"] {
            let _ = refused(text);
        }
    }
}
