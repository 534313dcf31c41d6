//! Names that are nearly right, and patterns that stand for many.

/// Longer names are not compared.
const NAME_MAX: usize = 64;

/// The known name that was probably meant. Upper and lower case, `-`, `.` and `_` count as the same.
///
/// ```
/// use pagetide_scenario::near::nearest;
/// assert_eq!(nearest("soft-limt", ["soft-limit", "slab-boot"]), Some("soft-limit"));
/// assert_eq!(nearest("banana", ["soft-limit", "slab-boot"]), None);
/// ```
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > NAME_MAX {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace(['-', '.'], "_");
    let wanted = plain(name);
    let mut best: Option<(usize, &'a str)> = None;
    for candidate in known {
        if candidate.len() > NAME_MAX {
            continue;
        }
        let plain_candidate = plain(candidate);
        // The kernel's name without its directory: `swappiness` for `vm.swappiness`.
        let head = plain_candidate.strip_suffix(wanted.as_str());
        let distance = if wanted.len() > 3 && head.is_some_and(|head| head.ends_with('_')) {
            1
        } else {
            strsim::osa_distance(&wanted, &plain_candidate)
        };
        let is_near = distance <= wanted.chars().count() / 3;
        if is_near && best.is_none_or(|(nearest, _)| distance < nearest) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Shell-like match where `*` stands for any characters.
///
/// ```
/// use pagetide_scenario::near::matches;
/// assert!(matches("workingset_refault_*", "workingset_refault_anon"));
/// assert!(matches("a*b*c", "abbc") && matches("*", "") && !matches("a*b", "abc"));
/// ```
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    // Each part where it comes first: what follows has the most room then.
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}
