//! Reading numbers the way the kernel reads them.
//!
//! Linux 6.1 has two readers that matter here. Sysctls go through `proc_get_long`
//! (kernel/sysctl.c): blanks around the numbers, an optional minus, decimal or with the prefix 0x
//! or 0, each number ended by a blank, a tab, a newline or the end. Files in sysfs and debugfs go
//! through `kstrtoull` (lib/kstrtox.c): an optional plus, no blanks, at most one newline.
//!
//! Two differences, both stricter. A write with more numbers than the file holds is refused;
//! Linux takes the first ones and reports a short write. A write of nothing is refused; Linux
//! accepts it and does nothing.

/// Longest number in characters, sign and prefix included (Linux `TMPBUFLEN` - 2).
const MAX_NUMBER_LEN: usize = 20;

/// Why a text is not what a control file takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Malformed {
    /// Not a number, or something else around it.
    NotANumber,
    /// A number too large for any integer type of the kernel's.
    TooLarge,
    /// More numbers than the file holds.
    TooMany,
}

/// A number as written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Literal {
    value: u64,
    /// Characters it took.
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
fn digits(text: &[u8], base: u32) -> Result<Literal, Malformed> {
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
        _ if len == 0 => Err(Malformed::NotANumber),
        Some(value) => Ok(Literal { value, len }),
        None => Err(Malformed::TooLarge),
    }
}

fn literal(text: &[u8]) -> Result<Literal, Malformed> {
    let (base, prefix) = radix(text);
    let number = digits(&text[prefix..], base)?;
    Ok(Literal { len: number.len + prefix, ..number })
}

/// One number of a sysctl and the text after it (Linux `proc_get_long`).
fn sysctl_number(text: &[u8]) -> Result<(i128, &[u8]), Malformed> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let number = literal(&text[sign..])?;
    let len = number.len + sign;
    if len > MAX_NUMBER_LEN {
        return Err(Malformed::TooLarge);
    }
    let rest = &text[len..];
    if rest.first().is_some_and(|byte| !matches!(byte, b' ' | b'\t' | b'\n')) {
        return Err(Malformed::NotANumber);
    }
    let value = i128::from(number.value);
    Ok((if sign == 1 { -value } else { value }, rest))
}

/// The numbers of a sysctl: at least one, at most `numbers.len()`. Says how many there are.
pub(super) fn sysctl(text: &str, numbers: &mut [i128]) -> Result<usize, Malformed> {
    let mut rest = skip_spaces(text.as_bytes());
    let mut count = 0;
    while !rest.is_empty() {
        let (number, after) = sysctl_number(rest)?;
        *numbers.get_mut(count).ok_or(Malformed::TooMany)? = number;
        count += 1;
        rest = skip_spaces(after);
    }
    if count == 0 {
        return Err(Malformed::NotANumber);
    }
    Ok(count)
}

/// The number of a file in sysfs or debugfs (Linux `kstrtoull`); `base` 0 goes by the prefix.
pub(super) fn kstrtoull(text: &str, base: u32) -> Result<u64, Malformed> {
    let text = text.as_bytes();
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let number = if base == 0 { literal(text)? } else { digits(text, base)? };
    match &text[number.len..] {
        b"" | b"\n" => Ok(number.value),
        _ => Err(Malformed::NotANumber),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<i128, Malformed> {
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
            assert_eq!(one(text), Err(Malformed::NotANumber), "{text:?}");
        }
        // 20 characters are the most, and 64 bits.
        assert_eq!(one("18446744073709551616"), Err(Malformed::TooLarge));
        assert_eq!(one("000000000000000000060"), Err(Malformed::TooLarge));
        assert_eq!(one("60 60"), Err(Malformed::TooMany));
    }

    #[test]
    fn a_vector_may_be_short() {
        let mut numbers = [7; 4];
        assert_eq!(sysctl("1 2\t3\n", &mut numbers), Ok(3));
        assert_eq!(numbers, [1, 2, 3, 7]);
        assert_eq!(sysctl("1 2 3 4 5", &mut numbers), Err(Malformed::TooMany));
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
            assert_eq!(kstrtoull(text, 10), Err(Malformed::NotANumber), "{text:?}");
        }
        assert_eq!(kstrtoull("18446744073709551616", 10), Err(Malformed::TooLarge));
    }
}
