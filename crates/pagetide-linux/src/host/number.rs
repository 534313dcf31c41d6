//! Numbers in /proc, and numbers formatted for people.
//!
//! Linux: `seq_put_decimal_ull` and `%lu`. Invariant: text that is not a number of 64 bits is
//! rejected; nothing wraps.

use pagetide_core::units::page_size::PageSize;

/// Parses a count: decimal digits only.
pub(crate) fn count(word: &str) -> Option<u64> {
    let is_plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain {
        word.parse().ok()
    } else {
        None
    }
}

/// `value * part / whole`, rounded down, without overflow; 0 if `whole` is 0.
pub(crate) fn scale(value: u64, part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 0;
    }
    let product = u128::from(value) * u128::from(part) / u128::from(whole);
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// Formats a size: `512 KiB`, `96.5 MiB`, `18.3 GiB`.
pub(crate) fn show_bytes(bytes: u64) -> String {
    let (unit, shift) = match bytes {
        0..0x10_0000 => return format!("{} KiB", bytes.div_ceil(1024)),
        0x10_0000..0x4000_0000 => ("MiB", 20),
        0x4000_0000..0x100_0000_0000 => ("GiB", 30),
        _ => ("TiB", 40),
    };
    let tenths = (u128::from(bytes) * 10 + (1 << (shift - 1))) >> shift;
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// Formats pages like [`show_bytes`].
pub(crate) fn show_pages(pages: u64, size: PageSize) -> String {
    show_bytes(size.bytes_of(pages))
}

/// `1 zone`, `2 zones`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_digits() {
        assert_eq!(count("0"), Some(0));
        assert_eq!(count("18446744073709551615"), Some(u64::MAX));
        for word in ["", "-1", "+1", "1kB", "0x1", "18446744073709551616", "\u{661}"] {
            assert_eq!(count(word), None, "{word:?}");
        }
    }

    #[test]
    fn sizes_are_rounded() {
        assert_eq!(show_bytes(0), "0 KiB");
        assert_eq!(show_bytes(4096), "4 KiB");
        assert_eq!(show_bytes(96 << 20), "96.0 MiB");
        assert_eq!(show_bytes((18 << 30) + (300 << 20)), "18.3 GiB");
        assert_eq!(show_bytes(u64::MAX), "16777216.0 TiB");
        assert_eq!(show_pages(u64::MAX, PageSize::Kib4), "16777216.0 TiB");
    }

    #[test]
    fn scaling_does_not_wrap() {
        assert_eq!(scale(u64::MAX, u64::MAX, 1), u64::MAX);
        assert_eq!(scale(u64::MAX, 1, 2), u64::MAX / 2);
        assert_eq!(scale(1, 1, 0), 0);
    }
}
