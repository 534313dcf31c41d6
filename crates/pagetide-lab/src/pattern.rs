//! What a pattern on the command line means among names: one rule for `metrics`, `explain` and `run --metrics`.
//!
//! Invariant: a name that is there is found by itself alone, so that `pgscan` can be had without `pgscan_direct`
//! where both are names.

use pagetide_scenario::near::matches;

/// Those of `all` that the pattern means: the name itself or what a pattern with `*` fits; else what one of `ways`
/// takes, the first that takes any; else the names with the pattern in them. The empty pattern means nothing.
pub fn meant<'a, T>(
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

/// Whether `text` is a name in full, owners in front of it: `stream.walltime` of `walltime`.
pub fn ends_with_name(text: &str, name: &str) -> bool {
    text.strip_suffix(name).is_some_and(|owner| owner.ends_with(['.', ':']))
}
