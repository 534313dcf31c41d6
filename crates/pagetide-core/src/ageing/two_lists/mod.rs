//! The two lists: an active and an inactive list for anonymous memory, and two for page cache.
//!
//! Linux: mm/vmscan.c without `CONFIG_LRU_GEN` (6.1). New pages enter the inactive list at the
//! head, and reclaim takes pages from its tail. A page that is used again there goes to the active
//! list. [`scan_count`] decides how many pages of each list are scanned, [`scan`] in which order,
//! [`isolate`] takes a batch, and [`refill`] moves pages from an active list to its inactive list.
//!
//! Up to 4.7 every zone has lists of its own ([`TwoLists::upper`]), and reclaim works zone by zone.
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
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::units::digest::State;
use alloc::vec;
use alloc::vec::Vec;

/// Recent reclaim results of one group's lists, as [anonymous, file].
#[derive(Clone, Copy, Debug, Default, State)]
pub struct ZoneReclaimStat {
    /// Pages scanned.
    pub recent_scanned: [u64; 2],
    /// Pages found in use.
    pub recent_rotated: [u64; 2],
}

/// The four lists of a node or of a zone.
#[derive(Clone, Copy, Debug, State)]
pub struct ListSet {
    /// The lists, indexed by [`Lru`].
    pub lists: [List; NR_EVICTABLE_LISTS],
    /// Statistics that kernels before 5.8 keep instead of the costs.
    pub recent: ZoneReclaimStat,
    /// Pages of each list that reclaim still owes, because batches are never smaller than 32 pages
    /// (Linux `nr_saved_scan`, up to 2.6.39).
    pub saved_scan: [u64; NR_EVICTABLE_LISTS],
}

/// The lists of a group on a node, with reclaim's statistics about them.
#[derive(Clone, Debug, State)]
pub struct TwoLists {
    /// The lists; where lists belong to zones, those of the lowest zone.
    pub first: ListSet,
    /// The lists of the other zones; empty where lists belong to nodes (since 4.8).
    pub upper: Vec<ListSet>,
    /// Cost of reclaiming anonymous pages and file pages, decayed (Linux `anon_cost`, `file_cost`).
    pub costs: [u64; 2],
    /// Value of `workingset_activate_{anon,file}` at the last check by reclaim.
    pub refaults: [u64; 2],
}

impl ListSet {
    const EMPTY: ListSet = ListSet {
        lists: [List::new(); NR_EVICTABLE_LISTS],
        recent: ZoneReclaimStat { recent_scanned: [0; 2], recent_rotated: [0; 2] },
        saved_scan: [0; NR_EVICTABLE_LISTS],
    };
}

impl TwoLists {
    pub(crate) fn new(by_zone: bool) -> TwoLists {
        let nr_upper = if by_zone { MAX_NR_ZONES - 1 } else { 0 };
        TwoLists {
            first: ListSet::EMPTY,
            upper: vec![ListSet::EMPTY; nr_upper],
            costs: [0; 2],
            refaults: [0; 2],
        }
    }

    /// The lists with the pages of a zone.
    #[inline]
    pub(crate) fn of_zone(&self, zone: usize) -> &ListSet {
        self.upper.get(zone.wrapping_sub(1)).unwrap_or(&self.first)
    }

    /// The lists of the node, or of each zone.
    pub(crate) fn sets(&self) -> impl Iterator<Item = &ListSet> {
        [&self.first].into_iter().chain(&self.upper)
    }

    /// As [`TwoLists::of_zone`].
    #[inline]
    pub(crate) fn of_zone_mut(&mut self, zone: usize) -> &mut ListSet {
        self.upper.get_mut(zone.wrapping_sub(1)).unwrap_or(&mut self.first)
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
