//! The kernel's counters of memory groups, under one set of names.
//!
//! Levels are values at the end of a phase, in bytes; events are differences. Both include all
//! descendants, as in cgroup v2; v1 has such values as `total_...`, and fewer of them. Invariant: a
//! value that the kernel does not report is absent from the record, not zero.

use crate::console::GuestSnapshot;
use pagetide_scenario::metric::{declared, Owner, RunMetricSet, Scope, COUNTED};
use pagetide_scenario::model::Group;
use pagetide_scenario::record::Unit;

/// Adds the counters of each group that existed at `end`, for the whole run in scope `of` the
/// machine, for a phase in the scope of the phase.
pub fn put_groups(
    metrics: &mut RunMetricSet,
    of: &Scope,
    groups: &[Group],
    begin: &GuestSnapshot,
    end: &GuestSnapshot,
) {
    for (id, group) in groups.iter().enumerate() {
        let Some(ended) = end.groups.get(&id) else { continue };
        let began = begin.groups.get(&id).map_or(&[][..], Vec::as_slice);
        let mut put = metrics.of(of.with_group(Owner::new(&group.name)));
        for level in declared::levels_of_groups() {
            if let Some(value) = find(ended, level.name, level.v1_name) {
                put.put(level, value as f64);
            }
        }
        for metric in [declared::PRESSURE_SOME, declared::PRESSURE_FULL] {
            if let Some(total) = find(ended, metric.name, metric.name) {
                let before = find(began, metric.name, metric.name).unwrap_or(0);
                put.put(metric, total.saturating_sub(before) as f64 / 1e6);
            }
        }
        let counted = COUNTED.iter().map(|event| event.name());
        for name in counted.chain(declared::events_of_groups().map(|metric| metric.name)) {
            // v1 has sums over descendants under names with a prefix, if at all.
            let first = format!("total_{name}");
            if let Some(value) = find(ended, name, &first) {
                // A group that was created in between has counted from zero.
                let before = find(began, name, &first).unwrap_or(0);
                put.put_named(name, value.saturating_sub(before) as f64, Unit::Count);
            }
        }
    }
}

/// The value of this name, or in v1 of the other name. v1 also has the plain names, but without
/// descendants.
fn find(said: &[(String, u64)], name: &str, first: &str) -> Option<u64> {
    let of = |wanted: &str| said.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value);
    let is_first = of("total_rss").is_some();
    of(if is_first { first } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_scenario::metric::KeyNames;
    use std::collections::BTreeMap;

    fn snapshot(group: usize, said: &[(&str, u64)]) -> GuestSnapshot {
        let said = said.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        GuestSnapshot { groups: BTreeMap::from([(group, said)]), ..GuestSnapshot::default() }
    }

    fn groups() -> Vec<Group> {
        ["a", "b"].map(Group::new).into()
    }

    fn of(begin: &GuestSnapshot, end: &GuestSnapshot) -> Vec<(String, f64, Unit)> {
        let phase = Scope::Phase { task: Owner::new("t"), phase: "p".to_owned() };
        let mut metrics = RunMetricSet::new();
        put_groups(&mut metrics, &phase, &groups(), begin, end);
        metrics
            .into_texts(&KeyNames::default())
            .into_iter()
            .map(|(key, metric)| (key, metric.value, metric.unit))
            .collect()
    }

    #[test]
    fn levels_are_those_of_the_end_and_events_are_differences() {
        let begin = snapshot(1, &[("anon", 1), ("pgfault", 10), ("memory.events.low", 1)]);
        let said = [("anon", 8192), ("pgfault", 30), ("memory.events.low", 4)];
        let end = snapshot(1, &said);
        let wanted = [
            ("phase-group:t:p:b:anon".to_owned(), 8192.0, Unit::Bytes),
            ("phase-group:t:p:b:memory.events.low".to_owned(), 3.0, Unit::Count),
            ("phase-group:t:p:b:pgfault".to_owned(), 20.0, Unit::Count),
        ];
        assert_eq!(of(&begin, &end), wanted);
        let made_later = of(&GuestSnapshot::default(), &end);
        assert_eq!(made_later[2].1, 30.0);
        assert_eq!(of(&end, &GuestSnapshot::default()), [], "removed, or never made");
        assert_eq!(of(&begin, &snapshot(7, &said)), [], "no such group");
    }

    #[test]
    fn version_1_counts_the_groups_within_under_other_names() {
        let said = [
            ("rss", 4096),
            ("total_rss", 8192),
            ("inactive_anon", 1),
            ("pgfault", 1),
            ("total_swap", 12288),
            ("memory.usage_in_bytes", 40960),
        ];
        let wanted = [
            ("phase-group:t:p:a:anon".to_owned(), 8192.0, Unit::Bytes),
            ("phase-group:t:p:a:memory.current".to_owned(), 40960.0, Unit::Bytes),
            ("phase-group:t:p:a:memory.swap.current".to_owned(), 12288.0, Unit::Bytes),
        ];
        assert_eq!(of(&GuestSnapshot::default(), &snapshot(0, &said)), wanted);
    }
}
