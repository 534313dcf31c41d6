//! Matching of patterns on the command line: one rule for `metrics`, `explain` and `run --metrics`.
//!
//! Invariant: an exact name matches only itself, so `pgscan` does not match `pgscan_direct` if both
//! are names.

use pagetide_scenario::names::near::matches;

/// The matches of `pattern` in `all`: the exact name or the names that fit `*`; else the names that
/// the first successful one of `ways` accepts; else the names that contain the pattern. The empty
/// pattern matches nothing.
pub fn matching<'a, T>(
    all: &'a [T],
    name: impl Fn(&T) -> &str,
    pattern: &str,
    ways: &[&dyn Fn(&str) -> bool],
) -> Vec<&'a T> {
    let fits = |name: &str| matches(pattern, name);
    let is_part =
        |name: &str| !(pattern.is_empty() || pattern.contains('*')) && name.contains(pattern);
    let mut all_ways: Vec<&dyn Fn(&str) -> bool> = vec![&fits];
    all_ways.extend_from_slice(ways);
    all_ways.push(&is_part);
    for way in all_ways {
        let found: Vec<&T> = all.iter().filter(|one| way(name(one))).collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// Whether `text` is `name` after its owner: `stream.walltime` for `walltime`.
pub fn ends_with_name(text: &str, name: &str) -> bool {
    text.strip_suffix(name).is_some_and(|owner| owner.ends_with(['.', ':']))
}
