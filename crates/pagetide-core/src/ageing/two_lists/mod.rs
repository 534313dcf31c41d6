//! The two lists: an active and an inactive list for anonymous memory, and two for page cache.
//!
//! Linux: mm/vmscan.c without `CONFIG_LRU_GEN` (6.1). New pages enter the inactive list at the
//! head, and reclaim takes pages from its tail. A page that is used again there goes to the active
//! list. [`scan_count`] decides how many pages of each list are scanned, [`scan`] in which order,
//! [`isolate`] takes a batch, and [`refill`] moves pages from an active list to its inactive list.
//!
//! Invariant: every entry of list `l` has the list's [`Place`](crate::frames::page::Place) and the
//! flags that name `l`.

pub(crate) mod findings;
mod isolate;
mod refill;
mod rotation_balance;
pub(crate) mod scan;
pub(crate) mod scan_count;

use crate::ageing::lruvec::{Lru, NR_EVICTABLE_LISTS};
use crate::frames::list::List;
use crate::units::digest::State;

/// Recent reclaim results of one group's lists, as [anonymous, file].
#[derive(Clone, Copy, Debug, Default, State)]
pub struct ZoneReclaimStat {
    /// Pages scanned.
    pub recent_scanned: [u64; 2],
    /// Pages found in use.
    pub recent_rotated: [u64; 2],
}

/// The four lists, with reclaim's statistics about them.
#[derive(Clone, Debug, State)]
pub struct TwoLists {
    /// The lists, indexed by [`Lru`].
    pub lists: [List; NR_EVICTABLE_LISTS],
    /// Cost of reclaiming anonymous pages and file pages, decayed (Linux `anon_cost`, `file_cost`).
    pub costs: [u64; 2],
    /// Statistics that kernels before 5.8 keep instead of the costs.
    pub recent: ZoneReclaimStat,
    /// Value of `workingset_activate_{anon,file}` at the last check by reclaim.
    pub refaults: [u64; 2],
}

impl TwoLists {
    pub(crate) const fn new() -> TwoLists {
        TwoLists {
            lists: [List::new(); NR_EVICTABLE_LISTS],
            costs: [0; 2],
            recent: ZoneReclaimStat { recent_scanned: [0; 2], recent_rotated: [0; 2] },
            refaults: [0; 2],
        }
    }
}

impl Lru {
    /// The four lists that reclaim scans, in its order.
    pub(crate) const EVICTABLE: [Lru; NR_EVICTABLE_LISTS] =
        [Lru::InactiveAnon, Lru::ActiveAnon, Lru::InactiveFile, Lru::ActiveFile];

    /// Whether it holds file pages.
    #[inline]
    pub(crate) const fn is_file(self) -> bool {
        matches!(self, Lru::InactiveFile | Lru::ActiveFile)
    }

    /// Whether it is an active list.
    #[inline]
    pub(crate) const fn is_active(self) -> bool {
        matches!(self, Lru::ActiveAnon | Lru::ActiveFile)
    }
}
