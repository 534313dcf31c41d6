//! Sizes, times and other quantities with units, as scenario files write them.
//!
//! Sizes use powers of two only. `GB` may mean 10^9 or 2^30, so it is refused with a hint.

use pagetide_core::units::page_size::PageSize;

/// Why a quantity is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnitError {
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl UnitError {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }
}

/// Forms of sizes, for messages.
pub(crate) const SIZE_FORMS: &str =
    "sizes are written like \"2GiB\", \"64MiB\", \"512KiB\", \"20M\" or \"16384 pages\"; \
     a plain integer counts bytes";
/// Forms of times, for messages.
pub(crate) const TIME_FORMS: &str =
    "times are written like \"100ms\", \"2s\", \"5us\", \"250ns\", \"1min\" or \"1h\"";
/// Forms of rates, for messages.
pub(crate) const RATE_FORMS: &str =
    "rates are written like \"500MiB/s\", \"2GiB/s\" or \"2000 pages/s\"";

/// Forms of shares, for messages.
pub(crate) const SHARE_FORMS: &str =
    "shares are written like \"10 %\" or \"1 in 8\", from \"0 %\" to \"100 %\"";

/// Forms of shares in per cent, for messages.
pub(crate) const PERCENT_FORMS: &str =
    "shares are written like \"10 %\", from \"0 %\" to \"100 %\"";

/// The factor of a unit, or the unit to write instead.
enum UnitFactor {
    Factor(u64),
    Instead(&'static str),
    Unknown,
}

/// Parses a size, which may be in pages; returns bytes.
pub(crate) fn parse_size(text: &str, page_size: PageSize) -> Result<u64, UnitError> {
    parse(text, "size", SIZE_FORMS, |unit| size_unit(unit, page_size))
}

/// A size in a unit that may mean a power of ten or of two, such as `64MB`: the bytes of both, and
/// the text of the second.
pub(crate) fn ambiguous_size(text: &str) -> Option<(u64, u64, String)> {
    let text = text.trim();
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(number_end);
    let power = match unit.trim().to_ascii_lowercase().as_str() {
        "kb" => 1,
        "mb" => 2,
        "gb" => 3,
        "tb" => 4,
        _ => return None,
    };
    let binary = ["KiB", "MiB", "GiB", "TiB"][power as usize - 1];
    let ten = scale(number, 1000u64.pow(power)).ok()?;
    let two = scale(number, 1024u64.pow(power)).ok()?;
    Some((ten, two, format!("{number}{binary}")))
}

/// Parses a time; returns nanoseconds.
pub(crate) fn parse_time(text: &str, _: PageSize) -> Result<u64, UnitError> {
    parse(text, "time", TIME_FORMS, time_unit)
}

/// Parses a rate; returns bytes per second.
pub(crate) fn parse_rate(text: &str, page_size: PageSize) -> Result<u64, UnitError> {
    let Some(size) = text.trim().strip_suffix("/s") else {
        let hint = match parse_size(text, page_size) {
            Ok(_) => format!("did you mean `{}/s`?", text.trim()),
            Err(_) => RATE_FORMS.to_owned(),
        };
        return Err(UnitError::new("not a rate", hint));
    };
    parse(size, "rate", RATE_FORMS, |unit| size_unit(unit, page_size))
        .map_err(|error| UnitError { hint: error.hint.replace("`?", "/s`?"), ..error })
}

fn size_unit(unit: &str, page_size: PageSize) -> UnitFactor {
    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    const TIB: u64 = 1 << 40;
    match unit {
        "" | "B" => UnitFactor::Factor(1),
        "K" | "k" | "KiB" => UnitFactor::Factor(KIB),
        "M" | "m" | "MiB" => UnitFactor::Factor(MIB),
        "G" | "g" | "GiB" => UnitFactor::Factor(GIB),
        "T" | "t" | "TiB" => UnitFactor::Factor(TIB),
        "p" | "page" | "pages" => UnitFactor::Factor(page_size.bytes()),
        _ => match unit.to_ascii_lowercase().as_str() {
            "b" | "byte" | "bytes" => UnitFactor::Instead("B"),
            "kb" | "ki" | "kib" | "kbyte" | "kbytes" => UnitFactor::Instead("KiB"),
            "mb" | "mi" | "mib" | "meg" | "mbyte" | "mbytes" => UnitFactor::Instead("MiB"),
            "gb" | "gi" | "gib" | "gig" | "gigs" | "gbyte" | "gbytes" => UnitFactor::Instead("GiB"),
            "tb" | "ti" | "tib" | "tbyte" | "tbytes" => UnitFactor::Instead("TiB"),
            "pg" | "pgs" => UnitFactor::Instead(" pages"),
            lower if lower.starts_with("page") => UnitFactor::Instead(" pages"),
            _ => UnitFactor::Unknown,
        },
    }
}

fn time_unit(unit: &str) -> UnitFactor {
    match unit {
        "ns" => UnitFactor::Factor(1),
        "us" | "\u{b5}s" | "\u{3bc}s" => UnitFactor::Factor(1_000),
        "ms" => UnitFactor::Factor(1_000_000),
        "s" => UnitFactor::Factor(1_000_000_000),
        "min" => UnitFactor::Factor(60 * 1_000_000_000),
        "h" => UnitFactor::Factor(3600 * 1_000_000_000),
        _ => match unit.to_lowercase().as_str() {
            "nsec" | "nanoseconds" => UnitFactor::Instead("ns"),
            "usec" | "microseconds" => UnitFactor::Instead("us"),
            "msec" | "millis" | "milliseconds" | "ms" => UnitFactor::Instead("ms"),
            "sec" | "secs" | "second" | "seconds" | "s" => UnitFactor::Instead("s"),
            "m" | "mins" | "minute" | "minutes" | "min" => UnitFactor::Instead("min"),
            "hr" | "hrs" | "hour" | "hours" | "h" => UnitFactor::Instead("h"),
            _ => UnitFactor::Unknown,
        },
    }
}

fn parse(
    text: &str,
    what: &str,
    forms: &str,
    unit_of: impl Fn(&str) -> UnitFactor,
) -> Result<u64, UnitError> {
    let text = text.trim();
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(number_end);
    let unit = unit.trim();
    if number.is_empty() || !number.starts_with(|c: char| c.is_ascii_digit()) {
        let message = match text.starts_with('-') {
            true => format!("a {what} cannot be negative"),
            false => format!("not a {what}"),
        };
        return Err(UnitError::new(message, forms));
    }
    let factor = match unit_of(unit) {
        UnitFactor::Factor(factor) => factor,
        UnitFactor::Instead(instead) => {
            let message = format!("unit `{unit}` is not used here");
            return Err(UnitError::new(message, format!("did you mean `{number}{instead}`?")));
        }
        UnitFactor::Unknown if unit.is_empty() => {
            return Err(UnitError::new(format!("a {what} needs a unit"), forms));
        }
        UnitFactor::Unknown => {
            let unit: String = unit.chars().take(20).collect();
            return Err(UnitError::new(format!("unknown unit `{unit}`"), forms));
        }
    };
    scale(number, factor).map_err(|problem| UnitError::new(format!("this {what} {problem}"), forms))
}

/// Parses a share in whole per cent, up to 100.
pub(crate) fn parse_percent(text: &str, _: PageSize) -> Result<u64, UnitError> {
    let number = text.trim().strip_suffix('%').map(str::trim_end);
    let Some(number) = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    else {
        return Err(UnitError::new("not a whole number of per cent", PERCENT_FORMS));
    };
    match number.parse() {
        Ok(percent) if percent <= 100 => Ok(percent),
        Ok(_) => Err(UnitError::new("more than 100 %", PERCENT_FORMS)),
        Err(_) if number.is_empty() => {
            Err(UnitError::new("not a whole number of per cent", PERCENT_FORMS))
        }
        Err(_) => Err(UnitError::new("more than 100 %", PERCENT_FORMS)),
    }
}

/// Parses a share `N in M` with M from 1 to a million, or in per cent. Returns N and M.
pub(crate) fn parse_share(text: &str) -> Result<(u32, u32), UnitError> {
    const OF_MAX: u32 = 1_000_000;
    let Some((part, of)) = text.split_once(" in ") else {
        return match parse_percent(text, PageSize::default()) {
            Ok(percent) => Ok((percent as u32, 100)),
            Err(UnitError { message, .. }) => Err(UnitError::new(message, SHARE_FORMS)),
        };
    };
    let number = |text: &str| {
        let text = text.trim();
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u32>().ok())?
    };
    match number(part).zip(number(of)) {
        Some((part, of)) if part <= of && (1..=OF_MAX).contains(&of) => Ok((part, of)),
        Some((part, of)) if part > of && of > 0 => {
            Err(UnitError::new("N in M must have N <= M", SHARE_FORMS))
        }
        _ => Err(UnitError::new(format!("N in M must have M from 1 to {OF_MAX}"), SHARE_FORMS)),
    }
}

/// `number * factor`. `number` may have a fraction; the product must be a whole number.
fn scale(number: &str, factor: u64) -> Result<u64, &'static str> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
        return Err("is not a number");
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 15 {
        return Err("has too many digits");
    }
    let too_large = "is too large";
    let whole: u64 = whole.parse().map_err(|_| too_large)?;
    let product = u128::from(whole) * u128::from(factor);
    let mut part = u128::from(fraction.parse::<u64>().unwrap_or(0)) * u128::from(factor);
    for _ in 0..fraction.len() {
        if part % 10 != 0 {
            return Err("is not a whole number of its smallest unit");
        }
        part /= 10;
    }
    u64::try_from(product + part).map_err(|_| too_large)
}

/// Parses a decimal number; returns hundredths: `0.99` is 99.
pub(crate) fn parse_hundredths(text: &str) -> Option<u32> {
    u32::try_from(parse_parts(text, 100)?).ok()
}

/// Parses a decimal number; returns multiples of `1 / factor`.
pub(crate) fn parse_parts(text: &str, factor: u64) -> Option<u64> {
    scale(text.strip_prefix('+').unwrap_or(text), factor).ok()
}

/// `parts / factor` as a decimal number. `factor` is a power of ten.
pub(crate) fn show_parts(parts: u64, factor: u64) -> String {
    let digits = factor.ilog10() as usize;
    let shown = format!("{}.{:0digits$}", parts / factor, parts % factor);
    shown.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Bytes in the largest unit that divides them, in the syntax of scenario files.
pub(crate) fn show_size(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (unit, shift) in UNITS {
        if bytes > 0 && bytes.trailing_zeros() >= shift {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("1B", 1),
            ("2GiB", 2 << 30),
            ("64 MiB", 64 << 20),
            ("512KiB", 512 << 10),
            ("20M", 20 << 20),
            ("20m", 20 << 20),
            ("1.5GiB", 3 << 29),
            ("0.5KiB", 512),
            ("1.50G", 3 << 29),
            ("1TiB", 1 << 40),
            ("16384 pages", 64 << 20),
            ("1 page", 4096),
            ("3p", 3 * 4096),
            (" 7K ", 7168),
        ] {
            assert_eq!(parse_size(text, PageSize::Kib4), Ok(bytes), "{text}");
        }
        assert_eq!(parse_size("3 pages", PageSize::Kib64), Ok(3 << 16));
        assert_eq!(parse_size("3 KiB", PageSize::Kib64), Ok(3 << 10));
    }

    #[test]
    fn wrong_sizes_say_how_to_write_them() {
        let hint = |text| parse_size(text, PageSize::Kib4).unwrap_err().hint;
        assert_eq!(hint("2 gb"), "did you mean `2GiB`?");
        assert_eq!(hint("2GB"), "did you mean `2GiB`?");
        assert_eq!(hint("64mb"), "did you mean `64MiB`?");
        assert_eq!(hint("2Gi"), "did you mean `2GiB`?");
        assert_eq!(hint("1.5 Gib"), "did you mean `1.5GiB`?");
        assert_eq!(hint("512kB"), "did you mean `512KiB`?");
        assert_eq!(hint("5 Pages"), "did you mean `5 pages`?");
        let message = |text| parse_size(text, PageSize::Kib4).unwrap_err().message;
        assert_eq!(message("2 parsecs"), "unknown unit `parsecs`");
        assert_eq!(message("-1"), "a size cannot be negative");
        assert_eq!(message(""), "not a size");
        assert_eq!(message("GiB"), "not a size");
        assert_eq!(message(".5GiB"), "not a size");
        assert_eq!(message("1.GiB"), "this size is not a number");
        assert_eq!(message("1..5"), "this size is not a number");
        assert_eq!(message("99999999999999999999"), "this size is too large");
        assert_eq!(message("99999999T"), "this size is too large");
        assert_eq!(message("0.5"), "this size is not a whole number of its smallest unit");
        assert_eq!(message("0.1234567890123456G"), "this size has too many digits");
    }

    #[test]
    fn times() {
        for (text, ns) in [
            ("100ms", 100_000_000),
            ("2s", 2_000_000_000),
            ("5us", 5_000),
            ("5\u{b5}s", 5_000),
            ("250ns", 250),
            ("1.5s", 1_500_000_000),
            ("1min", 60_000_000_000),
            ("2 h", 7_200_000_000_000),
            ("517.762us", 517_762),
        ] {
            assert_eq!(parse_time(text, PageSize::Kib4), Ok(ns), "{text}");
        }
        let error = |text| parse_time(text, PageSize::Kib4).unwrap_err();
        assert_eq!(error("5").message, "a time needs a unit");
        assert_eq!(error("5sec").hint, "did you mean `5s`?");
        assert_eq!(error("5m").hint, "did you mean `5min`?");
        assert_eq!(error("5 MS").hint, "did you mean `5ms`?");
        assert_eq!(error("5 lightyears").message, "unknown unit `lightyears`");
    }

    #[test]
    fn rates() {
        assert_eq!(parse_rate("500MiB/s", PageSize::Kib4), Ok(500 << 20));
        assert_eq!(parse_rate("2 GiB/s", PageSize::Kib4), Ok(2 << 30));
        assert_eq!(
            parse_rate("500MiB", PageSize::Kib4).unwrap_err().hint,
            "did you mean `500MiB/s`?"
        );
        assert_eq!(
            parse_rate("500MB/s", PageSize::Kib4).unwrap_err().hint,
            "did you mean `500MiB/s`?"
        );
        assert_eq!(parse_rate("fast", PageSize::Kib4).unwrap_err().hint, RATE_FORMS);
    }

    #[test]
    fn hundredths() {
        assert_eq!(parse_hundredths("1"), Some(100));
        assert_eq!(parse_hundredths("0.99"), Some(99));
        assert_eq!(parse_hundredths("1.10"), Some(110));
        assert_eq!(parse_hundredths("0.999"), None);
        assert_eq!(parse_hundredths("1e3"), None);
        assert_eq!(parse_hundredths("nan"), None);
        assert_eq!(parse_hundredths("-1"), None);
    }

    #[test]
    fn sizes_are_shown_in_their_largest_unit() {
        assert_eq!(show_size(3 << 30), "3GiB");
        assert_eq!(show_size(1536 << 20), "1536MiB");
        assert_eq!(show_size(5), "5 bytes");
        assert_eq!(show_size(0), "0 bytes");
    }
}
