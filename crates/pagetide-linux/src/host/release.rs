//! The release of a kernel, and the set of policies that describes it.
//!
//! Sources are /proc/sys/kernel/osrelease, /proc/version and the kernel's log. Invariant: a release
//! begins with a digit and is one word.

use super::note::{shown, ImportNote};
use pagetide_core::config::PolicySet;

/// The release in the text of osrelease.
pub(super) fn of_osrelease(text: &str) -> Option<String> {
    text.split_whitespace().next().filter(|word| is_release(word)).map(shown)
}

/// The release in text with the words `Linux version RELEASE`: /proc/version, the log of a boot.
pub(super) fn of_version(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("Linux version ")?;
    of_osrelease(rest)
}

/// Whether a word is the release of a kernel: `5.2.0-rc1`, `4.18.0-80.el8.x86_64`.
pub(super) fn is_release(word: &str) -> bool {
    let mut parts = word.splitn(3, '.');
    let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    parts.next().is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
        && is_number(word)
        && parts.next().is_some_and(is_number)
}

/// Whether a distribution's release names x86.
pub(super) fn is_x86(release: &str) -> bool {
    let mut parts = release.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    parts.any(|part| matches!(part, "x86_64" | "amd64" | "i386" | "i586" | "i686" | "686"))
}

/// The numbers at the beginning of a release, at most three.
pub(super) fn numbers(release: &str) -> Vec<u32> {
    let parts = release.split(|c: char| !c.is_ascii_digit()).take(3);
    parts.map_while(|part| part.parse().ok()).collect()
}

/// Whether the release is older than `other`, which may have fewer numbers.
pub(super) fn is_before(release: &str, other: &str) -> bool {
    let other = numbers(other);
    let release = numbers(release);
    release[..release.len().min(other.len())] < other[..]
}

/// The policies of a release, with a note if no set describes it. `newest` is the newest release
/// that is possible, if known.
pub(super) fn policy_set(
    release: Option<&str>,
    newest: Option<&str>,
) -> (PolicySet, Option<ImportNote>) {
    let note = |message: String| Some(ImportNote::new("release", message));
    let Some(release) = release else {
        let set = newest.map_or(PolicySet::default(), PolicySet::of_release);
        let why = newest.map_or(String::new(), |newest| {
            format!(" from the form of /proc/zoneinfo, which is that of {newest} or older")
        });
        let message = format!(
            "the release of the kernel is unknown (/proc/version does not say it, either): \
             `kernel = \"{set}\"` is a guess{why}"
        );
        return (set, note(message));
    };
    let set = PolicySet::of_release(release);
    let own = numbers(set.name().trim_start_matches("linux-"));
    if numbers(release).starts_with(&own) {
        return (set, None);
    }
    let than = match (set == PolicySet::ALL[0], PolicySet::ALL.last() == Some(&set)) {
        (true, _) if numbers(release) < own => "older than the oldest set of policies",
        (_, true) => "newer than the newest set of policies",
        _ => "between two sets of policies",
    };
    (set, note(format!("Linux {release} is {than}: the scenario has the policies of {set}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read() {
        let of = |text: &str| of_version(text);
        assert_eq!(of("Linux version 3.4.5 (x@y) #1 SMP").as_deref(), Some("3.4.5"));
        assert_eq!(of("[ 0.0] Linux version 6.6.0-rc1-next\n").as_deref(), Some("6.6.0-rc1-next"));
        assert_eq!(of("Linux 3.4.5"), None);
        assert_eq!(of("Linux version x"), None);
        assert_eq!(of_osrelease(" 6.1.0-41-amd64\n").as_deref(), Some("6.1.0-41-amd64"));
        for text in ["", "\n", "6", "x.y", "\u{0}\u{0}", "6.", ".5", "6x.1"] {
            assert_eq!(of_osrelease(text), None, "{text:?}");
        }
        assert_eq!(numbers("4.18.0-80.el8"), [4, 18, 0]);
        assert_eq!(numbers("99999999999.1"), Vec::<u32>::new());
        assert!(is_before("2.6.32", "2.6.37") && is_before("2.6.37", "3.3"));
        assert!(!is_before("6.1.0", "6.1") && !is_before("6.1", "6.1") && is_before("5.19", "6.1"));
    }

    #[test]
    fn a_release_without_a_set_is_noted() {
        let told = |release: Option<&str>| {
            policy_set(release, None).1.map_or(String::new(), |n| n.message)
        };
        assert!(told(None).contains("is a guess"));
        let (set, note) = policy_set(None, Some("3.8"));
        assert_eq!(set, PolicySet::of_release("3.8"));
        assert!(note.unwrap().message.ends_with("which is that of 3.8 or older"));
        assert!(told(Some("2.4.20")).contains("older than the oldest set"));
        assert!(told(Some("97.1")).contains("newer than the newest set"));
        for release in ["5.2.0-rc1", "4.18.0-80.el8", "5.15.0", "2.6.39", "6.11"] {
            assert!(told(Some(release)).contains("between two sets"), "{release}");
        }
        for set in PolicySet::ALL.iter().copied() {
            let release = set.name().replace("linux-", "") + ".99-generic";
            assert_eq!(policy_set(Some(&release), None), (set, None), "{release}");
        }
    }
}
