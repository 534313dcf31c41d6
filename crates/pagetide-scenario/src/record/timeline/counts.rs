//! Counters between two samples, of a group and of compaction.
//!
//! Invariant: names, values and fields have the same order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counters of /proc/vmstat, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompactionCounts {
    /// Scanned for pages to move.
    pub compact_migrate_scanned: u64,
    /// Scanned for free pages as targets.
    pub compact_free_scanned: u64,
    /// Moved.
    pub pgmigrate_success: u64,
}

impl CompactionCounts {
    pub const NAMES: [&'static str; 3] =
        ["compact_migrate_scanned", "compact_free_scanned", "pgmigrate_success"];

    /// In the order of [`CompactionCounts::NAMES`].
    pub const fn values(&self) -> [u64; 3] {
        [self.compact_migrate_scanned, self.compact_free_scanned, self.pgmigrate_success]
    }

    /// From values in the order of [`CompactionCounts::NAMES`].
    pub const fn of_values(values: [u64; 3]) -> CompactionCounts {
        let [compact_migrate_scanned, compact_free_scanned, pgmigrate_success] = values;
        CompactionCounts { compact_migrate_scanned, compact_free_scanned, pgmigrate_success }
    }

    /// The increase since `earlier`.
    pub fn since(&self, earlier: &CompactionCounts) -> CompactionCounts {
        let (now, then) = (self.values(), earlier.values());
        CompactionCounts::of_values(std::array::from_fn(|at| now[at].saturating_sub(then[at])))
    }

    pub fn plus(&self, other: &CompactionCounts) -> CompactionCounts {
        let (a, b) = (self.values(), other.values());
        CompactionCounts::of_values(std::array::from_fn(|at| a[at].saturating_add(b[at])))
    }
}

/// Counters with their names in memory.stat and memory.events; those of reclaim are in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupEvents {
    /// Inactive pages that kswapd scanned.
    pub pgscan_kswapd: u64,
    /// Inactive pages that tasks scanned.
    pub pgscan_direct: u64,
    /// Pages that kswapd freed.
    pub pgsteal_kswapd: u64,
    /// Pages that tasks freed.
    pub pgsteal_direct: u64,
    /// Faults that had to read.
    pub pgmajfault: u64,
    /// All faults.
    #[serde(default)]
    pub pgfault: u64,
    /// Tasks that the OOM killer killed.
    #[serde(default)]
    pub oom_kill: u64,
}

impl GroupEvents {
    pub const NR: usize = 7;

    pub const NAMES: [&'static str; GroupEvents::NR] = [
        "pgscan_kswapd",
        "pgscan_direct",
        "pgsteal_kswapd",
        "pgsteal_direct",
        "pgmajfault",
        "pgfault",
        "oom_kill",
    ];

    /// In the order of [`GroupEvents::NAMES`].
    pub const fn values(&self) -> [u64; GroupEvents::NR] {
        [
            self.pgscan_kswapd,
            self.pgscan_direct,
            self.pgsteal_kswapd,
            self.pgsteal_direct,
            self.pgmajfault,
            self.pgfault,
            self.oom_kill,
        ]
    }

    /// From values in the order of [`GroupEvents::NAMES`].
    pub const fn of_values(values: [u64; GroupEvents::NR]) -> GroupEvents {
        let [pgscan_kswapd, pgscan_direct, pgsteal_kswapd, pgsteal_direct, pgmajfault, pgfault, oom_kill] =
            values;
        GroupEvents {
            pgscan_kswapd,
            pgscan_direct,
            pgsteal_kswapd,
            pgsteal_direct,
            pgmajfault,
            pgfault,
            oom_kill,
        }
    }

    /// The increase since `earlier`. A group that was removed and created again counts from 0.
    pub fn since(&self, earlier: &GroupEvents) -> GroupEvents {
        let (now, then) = (self.values(), earlier.values());
        let began_anew = now.iter().zip(&then).any(|(now, then)| now < then);
        let difference = |at: usize| if began_anew { now[at] } else { now[at] - then[at] };
        GroupEvents::of_values(std::array::from_fn(difference))
    }

    pub fn plus(&self, other: &GroupEvents) -> GroupEvents {
        let (a, b) = (self.values(), other.values());
        GroupEvents::of_values(std::array::from_fn(|at| a[at].saturating_add(b[at])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recreated_group_counts_from_zero() {
        let counts = GroupEvents::of_values([5, 6, 7, 8, 9, 3, 0]);
        assert_eq!(
            counts.since(&GroupEvents::of_values([5, 4, 3, 2, 1, 3, 0])).values(),
            [0, 2, 4, 6, 8, 0, 0]
        );
        assert_eq!(
            counts.since(&GroupEvents::of_values([9, 4, 3, 2, 1, 0, 0])).values(),
            [5, 6, 7, 8, 9, 3, 0]
        );
    }
}
