//! What the kernel says of memory groups, under one set of names.
//!
//! Levels are what they are at the end of a phase, in bytes; events are differences. Both are of a
//! group with all groups in it, as version 2 of cgroups counts; version 1 has the same as
//! `total_...`, and fewer of them. Invariant: what a kernel does not say is not in the record,
//! rather than zero.

use crate::console::Snapshot;
use pagetide_scenario::model::Group;
use pagetide_scenario::record::{Metric, Unit};
use std::collections::BTreeMap;

/// Levels: our name, which is version 2's, and version 1's.
pub const LEVELS: &[(&str, &str)] = &[
    ("memory.current", "memory.usage_in_bytes"),
    ("memory.swap.current", "total_swap"),
    ("anon", "total_rss"),
    ("file", "total_cache"),
    ("inactive_anon", "total_inactive_anon"),
    ("active_anon", "total_active_anon"),
    ("inactive_file", "total_inactive_file"),
    ("active_file", "total_active_file"),
    // Memory of the kernel, of which version 1 has only the sum.
    ("kernel", "memory.kmem.usage_in_bytes"),
    ("pagetables", ""),
    // Kernel objects: each with its size and the eight bytes that say whose it is, whatever else is
    // in its slab.
    ("slab", ""),
    ("slab_reclaimable", ""),
    ("slab_unreclaimable", ""),
];

/// Events, the same way.
pub const EVENTS: &[(&str, &str)] = &[
    ("pgfault", "total_pgfault"),
    ("pgmajfault", "total_pgmajfault"),
    ("pgscan_kswapd", ""),
    ("pgscan_direct", ""),
    ("pgsteal_kswapd", ""),
    ("pgsteal_direct", ""),
    ("pgrefill", ""),
    ("pgactivate", ""),
    ("pgdeactivate", ""),
    ("workingset_refault_anon", "total_workingset_refault_anon"),
    ("workingset_refault_file", "total_workingset_refault_file"),
    ("workingset_activate_anon", ""),
    ("workingset_activate_file", ""),
    ("workingset_restore_anon", ""),
    ("workingset_restore_file", ""),
    ("memory.events.low", ""),
    ("memory.events.high", ""),
    ("memory.events.max", ""),
    ("memory.events.oom", ""),
    ("memory.events.oom_kill", ""),
];

/// Adds `PREFIX.GROUP.NAME` of every group that was there at `end`; `prefix` ends with its dot.
/// What another part of the setup already has under that name stays.
pub fn put_groups(
    metrics: &mut BTreeMap<String, Metric>,
    prefix: &str,
    groups: &[Group],
    begin: &Snapshot,
    end: &Snapshot,
) {
    for (id, group) in groups.iter().enumerate() {
        let Some(ended) = end.groups.get(&id) else { continue };
        let began = begin.groups.get(&id).map_or(&[][..], Vec::as_slice);
        let mut put = |name: &str, value: u64, unit| {
            let key = format!("{prefix}{}.{name}", group.name);
            metrics.entry(key).or_insert(Metric { value: value as f64, unit });
        };
        for (name, first) in LEVELS {
            if let Some(value) = find(ended, name, first) {
                put(name, value, Unit::Bytes);
            }
        }
        for (name, first) in EVENTS {
            if let Some(value) = find(ended, name, first) {
                // A group made in between has counted from zero.
                let before = find(began, name, first).unwrap_or(0);
                put(name, value.saturating_sub(before), Unit::Count);
            }
        }
    }
}

/// The value of this name, or else, in version 1, of the other. Version 1 has the plain names, too,
/// with another meaning: without the groups within.
fn find(said: &[(String, u64)], name: &str, first: &str) -> Option<u64> {
    let of = |wanted: &str| said.iter().find(|(name, _)| name == wanted).map(|(_, value)| *value);
    let is_first = of("total_rss").is_some();
    of(if is_first { first } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(group: usize, said: &[(&str, u64)]) -> Snapshot {
        let said = said.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Snapshot { groups: BTreeMap::from([(group, said)]), ..Snapshot::default() }
    }

    fn groups() -> Vec<Group> {
        let group = |name: &str| Group {
            name: name.to_owned(),
            parent: None,
            controls: Vec::new(),
            at_start: true,
        };
        vec![group("a"), group("b")]
    }

    fn of(begin: &Snapshot, end: &Snapshot) -> Vec<(String, f64, Unit)> {
        let mut metrics = BTreeMap::new();
        metrics.insert("t.p.b.file".to_owned(), Metric { value: 5.0, unit: Unit::Count });
        put_groups(&mut metrics, "t.p.", &groups(), begin, end);
        let other = metrics.remove("t.p.b.file");
        assert_eq!(other.map(|metric| metric.value), Some(5.0), "what is there stays");
        metrics.into_iter().map(|(key, metric)| (key, metric.value, metric.unit)).collect()
    }

    #[test]
    fn levels_are_those_of_the_end_and_events_are_differences() {
        let begin = snapshot(1, &[("anon", 1), ("pgfault", 10), ("memory.events.low", 1)]);
        let said = [("anon", 8192), ("file", 1), ("pgfault", 30), ("memory.events.low", 4)];
        let end = snapshot(1, &said);
        let wanted = [
            ("t.p.b.anon".to_owned(), 8192.0, Unit::Bytes),
            ("t.p.b.memory.events.low".to_owned(), 3.0, Unit::Count),
            ("t.p.b.pgfault".to_owned(), 20.0, Unit::Count),
        ];
        assert_eq!(of(&begin, &end), wanted);
        let made_later = of(&Snapshot::default(), &end);
        assert_eq!(made_later[2].1, 30.0);
        assert_eq!(of(&end, &Snapshot::default()), [], "removed, or never made");
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
            ("t.p.a.anon".to_owned(), 8192.0, Unit::Bytes),
            ("t.p.a.memory.current".to_owned(), 40960.0, Unit::Bytes),
            ("t.p.a.memory.swap.current".to_owned(), 12288.0, Unit::Bytes),
        ];
        assert_eq!(of(&Snapshot::default(), &snapshot(0, &said)), wanted);
    }
}
