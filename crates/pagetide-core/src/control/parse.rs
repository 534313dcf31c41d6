//! Parses numbers and words like the kernel. No other file of the core parses text.
//!
//! Linux 6.1 has these parsers. Sysctls use `proc_get_long` (kernel/sysctl.c): it allows blanks
//! around the numbers and an optional minus; numbers are decimal or have the prefix 0x or 0, and
//! end at a blank, a tab, a newline or the end. Files in sysfs and debugfs use `kstrtoull`
//! (lib/kstrtox.c): it allows an optional plus and one newline at the end, but no blanks; words are
//! compared by `sysfs_streq` (lib/string.c). Texts for files of groups are stripped of blanks. Then
//! `memparse` (lib/cmdline.c) parses sizes, and `kstrtoull` and `kstrtos8` parse other numbers.
//!
//! Two differences, both stricter. A write with more numbers than the file has is refused, where
//! Linux takes the first numbers and reports a short write. An empty write is refused, where Linux
//! ignores it.

use crate::config::{ControlForm, ControlValue};
use crate::units::page_size::PageSize;
use crate::units::MAX_NR_ZONES;

/// Largest number of characters of a number, with sign and prefix (Linux `TMPBUFLEN` - 2).
const MAX_NUMBER_LEN: usize = 20;

/// Why a control file refuses a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Not a number, or other text around it.
    NotANumber,
    /// Too large for any integer type of the kernel.
    TooLarge,
    /// More numbers than the file has.
    TooMany,
    /// Below the minimum or above the maximum.
    OutOfRange,
    /// None of the accepted words.
    NoWord,
    /// Not a size in bytes.
    NoSize,
    /// Unknown text after the size.
    UnknownKey,
}

impl Refusal {
    pub(super) const fn what(self) -> &'static str {
        match self {
            Refusal::NotANumber => "is not a number",
            Refusal::TooLarge => "is too large a number",
            Refusal::TooMany => "has too many numbers",
            Refusal::OutOfRange => "is out of range",
            Refusal::NoWord => "is not a valid value",
            Refusal::NoSize => "is not a size",
            Refusal::UnknownKey => "has an unknown key",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Literal {
    value: u64,
    len: usize,
}

const fn is_kernel_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

fn skip_spaces(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&byte| !is_kernel_space(byte)).unwrap_or(text.len());
    &text[end..]
}

/// Base and length of the prefix (Linux `_parse_integer_fixup_radix`).
fn radix(text: &[u8]) -> (u32, usize) {
    match text {
        [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit() => (16, 2),
        [b'0', ..] => (8, 0),
        _ => (10, 0),
    }
}

/// The longest run of digits at the start of `text` (Linux `_parse_integer`).
fn digits(text: &[u8], base: u32) -> Result<Literal, Refusal> {
    let mut value = Some(0u64);
    let mut len = 0;
    for &byte in text {
        let Some(digit) = char::from(byte).to_digit(base) else { break };
        value = value
            .and_then(|value| value.checked_mul(base.into()))
            .and_then(|value| value.checked_add(digit.into()));
        len += 1;
    }
    match value {
        _ if len == 0 => Err(Refusal::NotANumber),
        Some(value) => Ok(Literal { value, len }),
        None => Err(Refusal::TooLarge),
    }
}

fn literal(text: &[u8]) -> Result<Literal, Refusal> {
    let (base, prefix) = radix(text);
    let number = digits(&text[prefix..], base)?;
    Ok(Literal { len: number.len + prefix, ..number })
}

/// One number of a sysctl and the text after it (Linux `proc_get_long`).
fn sysctl_number(text: &[u8]) -> Result<(i128, &[u8]), Refusal> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let number = literal(&text[sign..])?;
    let len = number.len + sign;
    if len > MAX_NUMBER_LEN {
        return Err(Refusal::TooLarge);
    }
    let rest = &text[len..];
    if rest.first().is_some_and(|byte| !matches!(byte, b' ' | b'\t' | b'\n')) {
        return Err(Refusal::NotANumber);
    }
    let value = i128::from(number.value);
    Ok((if sign == 1 { -value } else { value }, rest))
}

/// Parses the numbers of a sysctl: at least one, at most `numbers.len()`. Returns their count.
pub(super) fn sysctl(text: &str, numbers: &mut [i128]) -> Result<usize, Refusal> {
    let mut rest = skip_spaces(text.as_bytes());
    let mut count = 0;
    while !rest.is_empty() {
        let (number, after) = sysctl_number(rest)?;
        *numbers.get_mut(count).ok_or(Refusal::TooMany)? = number;
        count += 1;
        rest = skip_spaces(after);
    }
    if count == 0 {
        return Err(Refusal::NotANumber);
    }
    Ok(count)
}

/// Parses the number of a file in sysfs or debugfs (Linux `kstrtoull`). With `base` 0 the prefix
/// gives the base.
pub(super) fn kstrtoull(text: &str, base: u32) -> Result<u64, Refusal> {
    let text = text.as_bytes();
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let number = if base == 0 { literal(text)? } else { digits(text, base)? };
    match &text[number.len..] {
        b"" | b"\n" => Ok(number.value),
        _ => Err(Refusal::NotANumber),
    }
}

/// Parses a signed number of a stripped text (Linux `kstrtoll`), in the base of its prefix.
fn kstrtoll(text: &str) -> Result<i128, Refusal> {
    match text.strip_prefix('-') {
        Some(digits) if digits.starts_with('+') => Err(Refusal::NotANumber),
        Some(digits) => Ok(-i128::from(kstrtoull(digits, 0)?)),
        None => Ok(kstrtoull(text, 0)?.into()),
    }
}

/// The number of a text, if a sysctl accepts the text as one number; bounds are not checked.
pub fn kernel_number(text: &str) -> Option<i128> {
    let mut number = [0];
    sysctl(text, &mut number).ok().map(|_| number[0])
}

/// Parses a size like `memparse`: a number, decimal or with a prefix, and a suffix.
fn memparse(text: &str) -> Result<u64, Refusal> {
    // A number above 64 bits exceeds every limit.
    let (base, prefix) = radix(text.as_bytes());
    let digits_end = |c: char| !c.is_digit(base);
    let end = text[prefix..].find(digits_end).map_or(text.len(), |end| prefix + end);
    let number = match literal(&text.as_bytes()[..end]) {
        Ok(number) => number.value,
        Err(Refusal::TooLarge) => u64::MAX,
        Err(_) => return Err(Refusal::NoSize),
    };
    let shift = match &text[end..] {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        "p" | "P" => 50,
        "e" | "E" => 60,
        _ => return Err(Refusal::NoSize),
    };
    Ok(number.saturating_mul(1 << shift))
}

/// Bytes, and an optional swappiness (Linux 6.9 `memory_reclaim`).
fn reclaim(text: &str) -> Result<ControlValue, Refusal> {
    let mut words = text.split_ascii_whitespace();
    let bytes = memparse(words.next().unwrap_or_default())?;
    let mut swappiness = None;
    for word in words {
        let value = word.strip_prefix("swappiness=").map(|value| kstrtoull(value, 0));
        match value {
            Some(Ok(value @ 0..=200)) => swappiness = Some(value as u32),
            _ => return Err(Refusal::UnknownKey),
        }
    }
    Ok(ControlValue::Reclaim(bytes, swappiness))
}

/// A quota and an optional period in us (`cpu_period_quota_parse`, `tg_set_cfs_bandwidth`).
fn bandwidth(text: &str) -> Result<ControlValue, Refusal> {
    let mut words = text.split_ascii_whitespace();
    let number = |word: &str| kstrtoull(word, 10).map_err(|_| Refusal::NotANumber);
    let quota = match words.next().unwrap_or_default() {
        "max" => None,
        word => Some(number(word)?),
    };
    let period = words.next().map(number).transpose()?;
    let least = |value: u64| value >= BANDWIDTH_MIN_US;
    let is_in_range = quota.is_none_or(|quota| least(quota) && quota <= BANDWIDTH_MAX_US)
        && period.is_none_or(|period| least(period) && period <= PERIOD_MAX_US);
    match (is_in_range, words.next()) {
        (true, None) => Ok(ControlValue::Bandwidth { quota, period }),
        (false, None) => Err(Refusal::OutOfRange),
        (_, Some(_)) => Err(Refusal::UnknownKey),
    }
}

/// Minimum of quota and of period (`min_cfs_quota_period`, `min_cfs_quota`), maximum of the period,
/// and the largest quota that does not overflow in nanoseconds (`max_cfs_runtime`).
const BANDWIDTH_MIN_US: u64 = 1_000;
const PERIOD_MAX_US: u64 = 1_000_000;
const BANDWIDTH_MAX_US: u64 = (1 << 44) / 1_000;

impl ControlForm {
    /// Parses and checks a text, on a machine with pages of this size.
    ///
    /// # Errors
    /// Why the kernel refuses the text.
    pub fn read(self, text: &str, page_size: PageSize) -> Result<ControlValue, Refusal> {
        let mut numbers = [0; MAX_NR_ZONES];
        let number = match self {
            ControlForm::Integer { .. }
            | ControlForm::Bytes { .. }
            | ControlForm::Action { .. } => {
                sysctl(text, &mut numbers[..1])?;
                numbers[0]
            }
            ControlForm::Sysfs { .. } => kstrtoull(text, 10)?.into(),
            ControlForm::Bits { all } => {
                match text.bytes().next().map(|it| it.to_ascii_lowercase()) {
                    Some(b'y') => all.into(),
                    Some(b'n') => 0,
                    _ => kstrtoull(text, 0)?.into(),
                }
            }
            ControlForm::Debugfs => kstrtoull(text, 0)?.into(),
            ControlForm::Signed { .. } => kstrtoll(text.trim())?,
            ControlForm::Zones => {
                let count = sysctl(text, &mut numbers)?;
                let mut zones = [0; MAX_NR_ZONES];
                for (zone, number) in zones.iter_mut().zip(&numbers[..count]) {
                    *zone = i32::try_from(*number).map_err(|_| Refusal::OutOfRange)?;
                }
                return Ok(ControlValue::Zones(zones, count));
            }
            ControlForm::Policy(policy) => {
                let choice = policy.choice(text.strip_suffix('\n').unwrap_or(text));
                return choice.map(ControlValue::Choice).ok_or(Refusal::NoWord);
            }
            ControlForm::Anything => return Ok(ControlValue::Anything),
            ControlForm::ReadOnly => return Err(Refusal::NoWord),
            ControlForm::Size { unlimited } if text.trim() == unlimited => {
                return Ok(ControlValue::Unlimited(unlimited));
            }
            ControlForm::Size { .. } => return memparse(text.trim()).map(ControlValue::Size),
            ControlForm::Reclaim => return reclaim(text),
            ControlForm::Bandwidth => return bandwidth(text),
        };
        match self.bounds(page_size) {
            Some((min, max)) if (min..=max).contains(&number) => Ok(ControlValue::Number(number)),
            _ => Err(Refusal::OutOfRange),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Policy, Thp};
    use alloc::string::ToString;

    fn one(text: &str) -> Result<i128, Refusal> {
        let mut numbers = [0];
        sysctl(text, &mut numbers).map(|_| numbers[0])
    }

    #[test]
    fn sysctls_take_what_proc_get_long_takes() {
        for (text, value) in [
            ("60", 60),
            ("60\n", 60),
            (" \t60 \n\n", 60),
            ("0x3c", 60),
            ("0X3C\n", 60),
            ("074", 60),
            ("0", 0),
            ("-0x10", -16),
            ("-1\n", -1),
            ("18446744073709551615", u64::MAX.into()),
            ("00000000000000000060", 48),
        ] {
            assert_eq!(one(text), Ok(value), "{text:?}");
        }
    }

    #[test]
    fn sysctls_refuse_what_proc_get_long_refuses() {
        for text in [
            "", "\n", "x", "-", "--1", "+1", "60x", "60,", "0x", "0xg", "08", "6 0x", "1.5",
            "60\r\n", "60\0", "\u{a0}60", "1e3", "20M", "max",
        ] {
            assert_eq!(one(text), Err(Refusal::NotANumber), "{text:?}");
        }
        // At most 20 characters and 64 bits.
        assert_eq!(one("18446744073709551616"), Err(Refusal::TooLarge));
        assert_eq!(one("000000000000000000060"), Err(Refusal::TooLarge));
        assert_eq!(one("60 60"), Err(Refusal::TooMany));
    }

    #[test]
    fn a_vector_may_be_short() {
        let mut numbers = [7; 4];
        assert_eq!(sysctl("1 2\t3\n", &mut numbers), Ok(3));
        assert_eq!(numbers, [1, 2, 3, 7]);
        assert_eq!(sysctl("1 2 3 4 5", &mut numbers), Err(Refusal::TooMany));
    }

    #[test]
    fn bits_take_y_and_n() {
        let read = |text| ControlForm::Bits { all: 7 }.read(text, PageSize::Kib4);
        for (text, bits) in [("y", 7), ("Yes\n", 7), ("n", 0), ("0x3\n", 3), ("+7", 7)] {
            assert_eq!(read(text), Ok(ControlValue::Number(bits)), "{text:?}");
        }
        for text in ["", " y", "on", "7 "] {
            assert_eq!(read(text), Err(Refusal::NotANumber), "{text:?}");
        }
        assert_eq!(read("8"), Err(Refusal::OutOfRange));
    }

    #[test]
    fn kstrtoull_takes_no_blanks() {
        for (text, base, value) in [
            ("128", 10, 128),
            ("+128\n", 10, 128),
            ("0128", 10, 128),
            ("0x1000", 0, 4096),
            ("010", 0, 8),
        ] {
            assert_eq!(kstrtoull(text, base), Ok(value), "{text:?}");
        }
        for text in ["", "\n", "+", "-1", " 1", "1 ", "1\n\n", "0x10", "64k"] {
            assert_eq!(kstrtoull(text, 10), Err(Refusal::NotANumber), "{text:?}");
        }
        assert_eq!(kstrtoull("18446744073709551616", 10), Err(Refusal::TooLarge));
    }

    #[test]
    fn words_are_compared_as_sysfs_does() {
        let read = |text| ControlForm::Policy(Policy::Thp).read(text, PageSize::Kib4);
        assert_eq!(read("always"), Ok(ControlValue::Choice(Thp::Always.into())));
        assert_eq!(read("never\n"), Ok(ControlValue::Choice(Thp::Never.into())));
        for text in ["never\n\n", " never", "Never", "", "[never]"] {
            assert_eq!(read(text), Err(Refusal::NoWord), "{text:?}");
        }
    }

    #[test]
    fn sizes_are_read_as_memparse_reads_them() {
        let read = |text| ControlForm::Size { unlimited: "max" }.read(text, PageSize::Kib4);
        for (text, bytes) in [
            ("0", 0),
            ("300M", 300 << 20),
            (" 2g\n", 2 << 30),
            ("0x1e", 30),
            ("0x1000", 4096),
            ("010", 8),
            ("1E", 1 << 60),
            ("99E", u64::MAX),
            ("99999999999999999999", u64::MAX),
        ] {
            assert_eq!(read(text), Ok(ControlValue::Size(bytes)), "{text:?}");
        }
        assert_eq!(read("max\n"), Ok(ControlValue::Unlimited("max")));
        for text in ["", "M", "300MB", "300MiB", "-1", "1.5G", "3 M", "0x", "08", "\u{e9}"] {
            assert_eq!(read(text), Err(Refusal::NoSize), "{text:?}");
        }
        let reclaim = |text| ControlForm::Reclaim.read(text, PageSize::Kib4);
        assert_eq!(reclaim(" 1G swappiness=0\n"), Ok(ControlValue::Reclaim(1 << 30, Some(0))));
        assert_eq!(reclaim("64M"), Ok(ControlValue::Reclaim(64 << 20, None)));
        for (text, refusal) in [
            ("", Refusal::NoSize),
            ("max", Refusal::NoSize),
            ("swappiness=60", Refusal::NoSize),
            ("1G swappiness=201", Refusal::UnknownKey),
            ("1G swap", Refusal::UnknownKey),
            ("1G 1G", Refusal::UnknownKey),
        ] {
            assert_eq!(reclaim(text), Err(refusal), "{text:?}");
        }
    }

    #[test]
    fn signed_numbers_are_stripped_first() {
        let read = |text| ControlForm::Signed { min: -128, max: 12 }.read(text, PageSize::Kib4);
        for (text, number) in [(" 8\n", 8), ("0xc", 12), ("010", 8), ("-0x10", -16), ("+3", 3)] {
            assert_eq!(read(text), Ok(ControlValue::Number(number)), "{text:?}");
        }
        assert_eq!(read("13"), Err(Refusal::OutOfRange));
        assert_eq!(read("99999999999999999999"), Err(Refusal::TooLarge));
        for text in ["", "-", "--1", "-+1", "high", "1 2"] {
            assert_eq!(read(text), Err(Refusal::NotANumber), "{text:?}");
        }
    }

    /// A value printed and parsed is the same value.
    #[test]
    fn printed_values_parse_to_the_same_value() {
        for (form, text, printed) in [
            (ControlForm::Integer { min: -9, max: 99 }, " 0x3c\n", "60"),
            (ControlForm::Zones, "1 -2\t3\n", "1 -2 3"),
            (ControlForm::Policy(Policy::ThpDefrag), "defer+madvise\n", "defer+madvise"),
            (ControlForm::Size { unlimited: "-1" }, "-1", "-1"),
            (ControlForm::Size { unlimited: "max" }, "314572800", "300M"),
            (ControlForm::Size { unlimited: "max" }, "0x1001", "4097"),
            (ControlForm::Size { unlimited: "max" }, "0k", "0"),
            (ControlForm::Reclaim, "1024M  swappiness=7", "1G swappiness=7"),
            (ControlForm::Bandwidth, "max\n", "max"),
            (ControlForm::Bandwidth, " 20000  100000", "20000 100000"),
        ] {
            let value = form.read(text, PageSize::Kib4).unwrap();
            assert_eq!(value.to_string(), printed);
            assert_eq!(form.read(printed, PageSize::Kib4), Ok(value));
        }
    }
}
