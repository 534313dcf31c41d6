//! Approximate name search for hints, and patterns with `*`.

/// Longer names are not compared.
const NAME_MAX: usize = 128;

/// The known name that was probably meant. Ignores case, and treats `-`, `.` and `_` as equal.
///
/// ```
/// use pagetide_scenario::names::near::nearest;
/// assert_eq!(nearest("soft-limt", ["soft-limit", "slab-boot"]), Some("soft-limit"));
/// assert_eq!(nearest("banana", ["soft-limit", "slab-boot"]), None);
/// ```
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near =
        near(name, known).into_iter().find(|(kind, _)| matches!(kind, Nearness::Misspelt(_)));
    near.map(|(_, candidate)| candidate)
}

/// Up to `most` similar names, nearest first: misspelled ones, then those that contain `name`.
///
/// ```
/// use pagetide_scenario::names::near::nearest_few;
/// let known = ["pgscan_direct", "web.latency_p99", "web.latency_p999"];
/// assert_eq!(nearest_few("latency_p99", known, 3), ["web.latency_p99", "web.latency_p999"]);
/// ```
pub fn nearest_few<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    near(name, known).into_iter().take(most).map(|(_, candidate)| candidate).collect()
}

/// How a known name resembles the given one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    /// Edit distance.
    Misspelt(usize),
    /// The known name contains the given one.
    Part,
}

/// The similar names, each once: nearest first, then in the order of `known`.
fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<(Nearness, &'a str)> {
    let mut found: Vec<(Nearness, &str)> = Vec::new();
    if name.len() > NAME_MAX {
        return found;
    }
    let plain = |text: &str| text.to_lowercase().replace(['-', '.'], "_");
    let wanted = plain(name);
    for candidate in known {
        if candidate.len() > NAME_MAX || found.iter().any(|(_, seen)| *seen == candidate) {
            continue;
        }
        let other = plain(candidate);
        // The kernel's name without its directory: `swappiness` for `vm.swappiness`.
        let head = other.strip_suffix(wanted.as_str());
        let distance = if wanted.len() > 3 && head.is_some_and(|head| head.ends_with('_')) {
            1
        } else {
            let whole = strsim::osa_distance(&wanted, &other);
            // The last part of the name, misspelled: `swapiness`.
            match candidate.rsplit_once('.') {
                Some((_, last)) if wanted.len() > 3 => {
                    whole.min(strsim::osa_distance(&wanted, &plain(last)) + 1)
                }
                _ => whole,
            }
        };
        if distance <= wanted.chars().count() / 3 {
            found.push((Nearness::Misspelt(distance), candidate));
        } else if wanted.len() > 3 && other.contains(&wanted) {
            found.push((Nearness::Part, candidate));
        }
    }
    found.sort_by_key(|(kind, _)| *kind);
    found
}

/// Shell-like match; `*` stands for any sequence of characters.
///
/// ```
/// use pagetide_scenario::names::near::matches;
/// assert!(matches("workingset_refault_*", "workingset_refault_anon"));
/// assert!(matches("a*b*c", "abbc") && matches("*", "") && !matches("a*b", "abc"));
/// ```
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    // Match each part at its first occurrence: that leaves the most text for the next parts.
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered() {
        let known = ["allocstall", "web.latency_p99", "web.latency_p999", "pgscan_direct"];
        assert_eq!(nearest_few("alocstall", known, 3), ["allocstall"]);
        assert_eq!(nearest_few("web.latency_p9", known, 3)[0], "web.latency_p99");
        assert_eq!(nearest_few("latency_p99", known, 3), ["web.latency_p99", "web.latency_p999"]);
        assert!(nearest_few("banana", known, 3).is_empty());
        assert_eq!(nearest_few("swapiness", ["vm.swappiness", "sda.reads"], 3), ["vm.swappiness"]);
        assert_eq!(nearest("latency_p99", known), Some("web.latency_p99"));
        assert_eq!(nearest("scan_dir", known), None, "a part of a name is no misspelling");
        assert_eq!(nearest(&"x".repeat(500), known), None);
    }
}
