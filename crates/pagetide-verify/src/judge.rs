//! Which counters of a phase are compared with the kernel, and how strictly.
//!
//! A simulator can only reproduce what the kernel itself repeats. The grades come from the
//! kernel alone: the same workloads, several times on one machine (experiments/truth), standard
//! deviation over mean of every counter of a phase that reaches [`LEAST_JUDGED`]:
//!
//! | grade | counters | median phase | worst phase |
//! |---|---|---|---|
//! | [`CounterGrade::Repeats`] | major faults, refaults, pages stolen, residency | below 1 % | 6 % |
//! | [`CounterGrade::Varies`] | pages scanned, by kind, activations, swap | 0.6 to 10 % | 32 % |
//! | [`CounterGrade::Timed`] | who reclaims, kswapd or direct; time with I/O | 27 to 61 % | any |
//!
//! (Of kswapd's own part the median is 1 %, but only because there it does nearly all the work.)
//! [`CounterGrade::Timed`] counters follow from how long operations take. They are judged only if
//! the costs were measured on the kernel ([`super::costs`]) and its runs repeat the counter to
//! [`STEADY`], which they do with counted instructions and without waits for a disk. Sizes of LRU
//! lists at the end of a phase were not measured; they are assumed to vary.
//!
//! Invariant: a name has one grade, whatever its value.

use pagetide_scenario::metric::declared::{self, is_state, slabinfo_names};
use pagetide_scenario::metric::COUNTED;
use pagetide_scenario::model::kernel_objects::reported_caches;
use pagetide_scenario::record::Unit;
use std::sync::LazyLock;

/// How strictly a counter is compared with the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CounterGrade {
    /// The kernel repeats it to 1 %.
    Repeats,
    /// The kernel repeats it to 5 to 15 %.
    Varies,
    /// Depends on time: judged if costs were measured and the kernel repeats it to [`STEADY`].
    Timed,
    /// Printed, never judged.
    Shown,
}

/// A timed counter repeats if its standard deviation is at most this share of the mean.
pub const STEADY: f64 = 0.1;

/// Least value on Linux of a judged timed counter: 10 ms, or 50 of any other unit.
pub fn least_timed(unit: Unit) -> f64 {
    match unit {
        Unit::Seconds => 0.01,
        Unit::Percent
        | Unit::Ratio
        | Unit::Count
        | Unit::Pages
        | Unit::Bytes
        | Unit::Kilobytes
        | Unit::BytesPerSecond
        | Unit::PerSecond => 50.0,
    }
}

/// A counter that is lower than this on the kernel is not judged: chance decides its value.
pub const LEAST_JUDGED: f64 = 1000.0;

/// A group's kernel objects below this many bytes are not judged: 1000 of the smallest.
const LEAST_JUDGED_BYTES: f64 = 64.0 * LEAST_JUDGED;

/// Least value on Linux of a judged counter; shares are always judged.
pub fn least_judged(unit: Unit) -> f64 {
    match unit {
        Unit::Percent | Unit::Ratio => 0.0,
        Unit::Bytes => LEAST_JUDGED_BYTES,
        Unit::Count
        | Unit::Pages
        | Unit::Kilobytes
        | Unit::Seconds
        | Unit::BytesPerSecond
        | Unit::PerSecond => LEAST_JUDGED,
    }
}

/// Whether a level of a group is compared in bytes: objects are charged to the byte, and limits are
/// written values. All other levels are compared in pages.
pub fn is_in_bytes(name: &str) -> bool {
    name.starts_with("slab") || is_state(name)
}

/// The counters of a phase that are judged or always shown, in the order of the rows.
const COUNTERS: &[(&str, CounterGrade)] = &[
    ("walltime", CounterGrade::Timed),
    ("cpu", CounterGrade::Timed),
    ("cpu_kswapd", CounterGrade::Timed),
    ("cpu_writeback", CounterGrade::Timed),
    ("psi.memory.some", CounterGrade::Timed),
    ("psi.memory.full", CounterGrade::Timed),
    ("pgmajfault", CounterGrade::Repeats),
    ("workingset_refault_anon", CounterGrade::Repeats),
    ("workingset_refault_file", CounterGrade::Repeats),
    ("workingset_activate_anon", CounterGrade::Varies),
    ("workingset_activate_file", CounterGrade::Varies),
    ("workingset_restore_anon", CounterGrade::Varies),
    ("workingset_restore_file", CounterGrade::Varies),
    ("workingset_nodereclaim", CounterGrade::Varies),
    ("pswpin", CounterGrade::Varies),
    ("pswpout", CounterGrade::Varies),
    ("zswpin", CounterGrade::Varies),
    ("zswpout", CounterGrade::Varies),
    ("zswpwb", CounterGrade::Varies),
    ("zram.orig_data_size", CounterGrade::Repeats),
    ("zram.compr_data_size", CounterGrade::Repeats),
    ("zram.mem_used_total", CounterGrade::Repeats),
    ("zram.same_pages", CounterGrade::Repeats),
    ("zram.huge_pages", CounterGrade::Repeats),
    ("zswap.stored_pages", CounterGrade::Varies),
    ("zswap.same_filled_pages", CounterGrade::Varies),
    ("zswap.pool_total_size", CounterGrade::Varies),
    ("mm_vmscan_kswapd_wake", CounterGrade::Varies),
    ("allocstall", CounterGrade::Timed),
    ("pgscan_total", CounterGrade::Varies),
    ("pgscan_kswapd", CounterGrade::Timed),
    ("pgscan_direct", CounterGrade::Timed),
    ("pgscan_anon", CounterGrade::Varies),
    ("pgscan_file", CounterGrade::Varies),
    ("pgsteal_total", CounterGrade::Repeats),
    ("pgsteal_kswapd", CounterGrade::Timed),
    ("pgsteal_direct", CounterGrade::Timed),
    ("pgsteal_anon", CounterGrade::Varies),
    ("pgsteal_file", CounterGrade::Varies),
    ("pgactivate", CounterGrade::Varies),
    ("pgdeactivate", CounterGrade::Varies),
    ("thp_fault_alloc", CounterGrade::Repeats),
    ("thp_fault_fallback", CounterGrade::Repeats),
    ("compact_stall", CounterGrade::Varies),
    ("compact_success", CounterGrade::Varies),
    ("compact_fail", CounterGrade::Varies),
    ("compact_migrate_scanned", CounterGrade::Varies),
    ("compact_free_scanned", CounterGrade::Varies),
    ("compact_isolated", CounterGrade::Varies),
    ("compact_daemon_wake", CounterGrade::Varies),
    ("compact_daemon_migrate_scanned", CounterGrade::Varies),
    ("compact_daemon_free_scanned", CounterGrade::Varies),
    ("pgmigrate_success", CounterGrade::Varies),
    ("pgmigrate_fail", CounterGrade::Shown),
    ("anon_hot_resident", CounterGrade::Repeats),
    ("anon_cold_resident", CounterGrade::Repeats),
    ("file_hot_resident", CounterGrade::Repeats),
    ("file_cold_resident", CounterGrade::Repeats),
    ("nr_active_anon", CounterGrade::Varies),
    ("nr_inactive_anon", CounterGrade::Varies),
    ("nr_active_file", CounterGrade::Varies),
    ("nr_inactive_file", CounterGrade::Varies),
    ("nr_free_blocks_0", CounterGrade::Varies),
    ("nr_free_blocks_1", CounterGrade::Varies),
    ("nr_free_blocks_2", CounterGrade::Varies),
    ("nr_free_blocks_3", CounterGrade::Varies),
    ("slab", CounterGrade::Varies),
    ("slab_reclaimable", CounterGrade::Varies),
    ("slab_unreclaimable", CounterGrade::Varies),
    ("slab_utilisation", CounterGrade::Varies),
];

/// The columns of the caches that names and pipes are made of, of kernels with accounting and
/// without; their rows come after the [`COUNTERS`].
static OF_CACHES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut names = Vec::new();
    for cache in [true, false].into_iter().flat_map(reported_caches) {
        let of_cache = slabinfo_names(cache.name);
        if cache.holds_objects && !names.contains(&of_cache[0]) {
            names.extend(of_cache);
        }
    }
    names
});

/// Counters of a group that are not judged: the split of reclaim between kswapd and tasks, which is
/// chance; faults, which the task's own counters have; small amounts of kernel memory; limits met.
const SHOWN_OF_GROUPS: [&str; 5] =
    ["pgscan_kswapd", "pgscan_direct", "pgsteal_kswapd", "pgsteal_direct", "memory.events."];
const NOT_JUDGED_OF_GROUPS: [&str; 5] =
    ["pgfault", "kernel", "pagetables", "thp_fault_alloc", "thp_collapse_alloc"];

/// The counters of a group during a phase, the same way: its levels, what memory.stat counts, with
/// the totals of scanned and stolen pages before their parts, and memory.events. Levels are in
/// pages, except the counters of [`is_in_bytes`]. A counter that is new there varies, unless it is
/// named above.
static OF_GROUPS: LazyLock<Vec<(&str, CounterGrade)>> = LazyLock::new(|| {
    let levels = declared::levels_of_groups().map(|level| level.name);
    let counted = COUNTED.iter().flat_map(|event| match event.name() {
        "pgscan_kswapd" => vec!["pgscan_total", "pgscan_kswapd"],
        "pgsteal_kswapd" => vec!["pgsteal_total", "pgsteal_kswapd"],
        name => vec![name],
    });
    let events = declared::events_of_groups().map(|event| event.name);
    let is_shown =
        |name: &str| is_state(name) || SHOWN_OF_GROUPS.iter().any(|shown| name.starts_with(shown));
    let all = levels.chain(counted).chain(events);
    all.filter(|name| !NOT_JUDGED_OF_GROUPS.contains(name))
        .map(|name| (name, if is_shown(name) { CounterGrade::Shown } else { CounterGrade::Varies }))
        .collect()
});

/// How the counter of this name, the last part of its key, is judged.
///
/// ```
/// use pagetide_verify::{judge, CounterGrade};
/// assert_eq!(judge("pgmajfault"), CounterGrade::Repeats);
/// assert_eq!(judge("pgscan_total"), CounterGrade::Varies);
/// assert_eq!(judge("pgscan_direct"), CounterGrade::Timed);
/// ```
pub fn judge(name: &str) -> CounterGrade {
    match COUNTERS.iter().find(|(counter, _)| *counter == name) {
        Some((_, judgement)) => *judgement,
        None if OF_CACHES.iter().any(|of_cache| of_cache == name) => CounterGrade::Varies,
        None => CounterGrade::Shown,
    }
}

/// Whether the counter is of compaction. The kernel also compacts for stacks and slabs that are not
/// modelled, so these counters are judged only if the scenario has huge pages.
pub fn is_of_compaction(name: &str) -> bool {
    name.starts_with("compact_") || name.starts_with("pgmigrate_")
}

/// Place of this name among the rows of a phase; unknown names come last.
pub fn place(name: &str) -> usize {
    let names = COUNTERS.iter().map(|(counter, _)| *counter);
    let of_caches = OF_CACHES.iter().map(String::as_str);
    let all = COUNTERS.len() + OF_CACHES.len();
    names.chain(of_caches).position(|counter| counter == name).unwrap_or(all)
}

/// How the counter of a group with this name is judged.
pub fn judge_of_group(name: &str) -> CounterGrade {
    OF_GROUPS.get(place_of_group(name)).map_or(CounterGrade::Shown, |(_, judgement)| *judgement)
}

/// Place of this name among the rows of a group.
pub fn place_of_group(name: &str) -> usize {
    OF_GROUPS.iter().position(|(counter, _)| *counter == name).unwrap_or(OF_GROUPS.len())
}

/// Whether the table shows this counter if it is not zero, although it is not judged.
pub fn is_shown_unjudged(name: &str) -> bool {
    let (shown, timed) = ((name, CounterGrade::Shown), (name, CounterGrade::Timed));
    COUNTERS.contains(&shown) || COUNTERS.contains(&timed) || OF_GROUPS.contains(&shown)
}

impl CounterGrade {
    /// The name that JSON and CSV use.
    pub fn name(self) -> &'static str {
        match self {
            CounterGrade::Repeats => "repeats",
            CounterGrade::Varies => "varies",
            CounterGrade::Timed => "timed",
            CounterGrade::Shown => "shown",
        }
    }

    /// Largest factor between the two sides that is still close; `None`: not judged.
    pub fn close(self) -> Option<f64> {
        match self {
            CounterGrade::Repeats => Some(1.05),
            CounterGrade::Varies => Some(1.15),
            CounterGrade::Timed => Some(1.1),
            CounterGrade::Shown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_name_has_one_grade_and_one_place() {
        let names: BTreeSet<&str> = COUNTERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), COUNTERS.len());
        for (i, (name, judgement)) in COUNTERS.iter().enumerate() {
            assert_eq!((place(name), judge(name)), (i, *judgement));
        }
    }

    #[test]
    fn what_the_kernel_does_not_repeat_is_never_judged() {
        for name in ["pgfault", "", "x"] {
            assert_eq!(judge(name), CounterGrade::Shown, "{name}");
        }
        for name in ["pgscan_kswapd", "pgsteal_direct", "allocstall", "walltime", "cpu_kswapd"] {
            assert_eq!(judge(name), CounterGrade::Timed, "{name}");
        }
        assert!(is_shown_unjudged("pgscan_kswapd") && is_shown_unjudged("walltime"));
        assert!(!is_shown_unjudged("pgmajfault") && !is_shown_unjudged("pgfault"));
    }
}
