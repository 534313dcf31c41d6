//! Knobs: their paths on the system, and the conversion of their values for a scenario.
//!
//! Linux: /proc/sys/vm, debugfs for `fault_around_bytes`, /sys/kernel/mm for transparent huge
//! pages; `block.read_ahead_kb` is a file of each disk, see [`super::block`]. Invariant: the loader
//! accepts every text that [`parse`] returns.

use super::note::{shown, ImportNote};
use pagetide_core::config::{ControlForm, Sysctl};
use pagetide_core::units::page_size::PageSize;

/// The value for a scenario of a control file with this text; `None` if it is not set.
/// The error is a note, if a scenario does not accept the value.
pub fn parse(sysctl: Sysctl, text: &str) -> Result<Option<String>, ImportNote> {
    let form = sysctl.file().form;
    let place = sysctl.path().unwrap_or_else(|| sysctl.name().to_owned());
    let refuse =
        |message: String| ImportNote { text: shown(text), ..ImportNote::new(&place, message) };
    if form.is_action() {
        return Err(refuse("left out: it has no value".to_owned()));
    }
    let words: Vec<&str> = text.split_whitespace().take(64).collect();
    if let ControlForm::Policy(policy) = form {
        // The file lists all words, with the current one in brackets.
        let bare = words.iter().map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        let known = bare.flatten().next().filter(|word| policy.choice(word).is_some());
        let names: Vec<&str> = policy.variants().iter().map(|choice| choice.name()).collect();
        let known =
            known.ok_or_else(|| refuse(format!("left out: not one of {}", names.join(", "))));
        return known.map(|word| Some(word.to_owned()));
    }
    let numbers: Option<Vec<i64>> = words.iter().map(|word| number(sysctl, word)).collect();
    let numbers = numbers.filter(|numbers| !numbers.is_empty());
    let numbers = numbers.ok_or_else(|| refuse("left out: not a number".to_owned()))?;
    let Some((min, max)) = form.bounds(PageSize::default()) else {
        if numbers.iter().any(|value| !(0..=i64::from(i32::MAX)).contains(value)) {
            return Err(refuse("left out: not a list of ratios".to_owned()));
        }
        let texts: Vec<String> = numbers.iter().map(i64::to_string).collect();
        return Ok(Some(texts.join(" ")));
    };
    match numbers.as_slice() {
        // 0 means that the ratio is effective; the kernel does not accept it in a write.
        [0] if sysctl.name().ends_with("_bytes") && min > 0 => Ok(None),
        [value] if (min..=max).contains(&(*value).into()) => Ok(Some(value.to_string())),
        [_] => Err(refuse(format!("left out: a scenario accepts {min} to {max}"))),
        _ => Err(refuse("left out, several numbers".to_owned())),
    }
}

/// The number of a word. The bits of the multi-generational LRU are printed in hexadecimal.
fn number(sysctl: Sysctl, word: &str) -> Option<i64> {
    match (sysctl, word.strip_prefix("0x")) {
        (Sysctl::LruGenEnabled, Some(digits)) => i64::from_str_radix(digits, 16).ok(),
        _ => decimal(word),
    }
}

/// A decimal integer. A leading 0 is rejected, because a reader may take it for octal.
fn decimal(word: &str) -> Option<i64> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain {
        word.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<Option<String>, ImportNote> {
        parse(Sysctl::find(name).unwrap(), text)
    }

    #[test]
    fn values_are_kept_as_the_loader_takes_them() {
        assert_eq!(read("vm.swappiness", "60\n"), Ok(Some("60".into())));
        assert_eq!(read("vm.min_free_kbytes", "067584\r\n"), Ok(Some("67584".into())));
        assert_eq!(read("vm.laptop_mode", "-5"), Ok(Some("-5".into())));
        let ratios = read("vm.lowmem_reserve_ratio", "256\t256\t32\t0\t0\n");
        assert_eq!(ratios, Ok(Some("256 256 32 0 0".into())));
        assert_eq!(read("vm.dirty_bytes", "0"), Ok(None));
        let words = "always defer [defer+madvise] madvise never\n";
        let word = read("transparent_hugepage.defrag", words);
        assert_eq!(word, Ok(Some("defer+madvise".into())));
        assert_eq!(read("vm.dirty_writeback_centisecs", "0"), Ok(Some("0".into())));
    }

    #[test]
    fn others_are_noted() {
        let note = read("vm.swappiness", "201\n").unwrap_err();
        let wanted = "/proc/sys/vm/swappiness: left out: a scenario accepts 0 to 200: `201`";
        assert_eq!(note.to_string(), wanted);
        for (name, text) in [
            ("vm.swappiness", ""),
            ("vm.swappiness", "1 2"),
            ("vm.swappiness", "0x10"),
            ("vm.dirty_bytes", "99999999999999999999"),
            ("vm.dirty_bytes", "4096"),
            ("vm.lowmem_reserve_ratio", "256 -1"),
            ("vm.lowmem_reserve_ratio", "256 \u{1b}"),
            ("transparent_hugepage.enabled", "always madvise never"),
            ("transparent_hugepage.enabled", "always [sometimes] never"),
            ("vm.compact_memory", "1"),
        ] {
            assert!(read(name, text).is_err(), "{name} {text:?}");
        }
    }

    #[test]
    fn places_are_the_kernel_s() {
        assert_eq!(Sysctl::PageCluster.path().unwrap(), "/proc/sys/vm/page-cluster");
        assert!(Sysctl::FaultAroundBytes.path().unwrap().starts_with("/sys/kernel/debug/"));
        let max = Sysctl::KhugepagedMaxPtesNone.path().unwrap();
        assert_eq!(max, "/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none");
        assert_eq!(Sysctl::ReadAheadKb.path(), None);
    }
}
