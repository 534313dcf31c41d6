//! Sizes of the lists, read by the kernel's names.
//!
//! Linux: `lruvec_page_state`, `zone_reclaimable_pages`, the lines of /proc/meminfo and zoneinfo
//! about the lists (6.1).

use super::lruvec::{Lru, LruSizes, NR_LRU_LISTS};
use crate::frames::page_alloc::Memory;
use crate::groups::memcg::ROOT;
use crate::interface::kernel::Kernel;
use crate::units::{MemcgId, NodeId};

/// Names of the sizes in memory.stat, by [`Lru`].
pub(crate) const MEMORY_STAT_NAMES: [&str; NR_LRU_LISTS] =
    ["inactive_anon", "active_anon", "inactive_file", "active_file", "unevictable"];

/// Names of the sizes by zone, by [`Lru`].
pub(crate) const ZONE_LIST_NAMES: [&str; NR_LRU_LISTS] = [
    "nr_zone_inactive_anon",
    "nr_zone_active_anon",
    "nr_zone_inactive_file",
    "nr_zone_active_file",
    "nr_zone_unevictable",
];

/// The lines of /proc/meminfo about the lists, with the lists that each line adds up.
pub(crate) const MEMINFO_LINES: [(&str, &[Lru]); 7] = [
    ("Active:", &[Lru::ActiveAnon, Lru::ActiveFile]),
    ("Inactive:", &[Lru::InactiveAnon, Lru::InactiveFile]),
    ("Active(anon):", &[Lru::ActiveAnon]),
    ("Inactive(anon):", &[Lru::InactiveAnon]),
    ("Active(file):", &[Lru::ActiveFile]),
    ("Inactive(file):", &[Lru::InactiveFile]),
    ("Unevictable:", &[Lru::Unevictable]),
];

impl Memory {
    /// Sizes of the lists of a node.
    pub fn node_lru_sizes(&self, node: NodeId) -> LruSizes {
        LruSizes(Lru::ALL.map(|lru| self.node_stat(node, lru.stat())))
    }

    /// Sizes of the lists of the machine.
    pub fn global_lru_sizes(&self) -> LruSizes {
        LruSizes(Lru::ALL.map(|lru| self.global_node_stat(lru.stat())))
    }
}

impl Kernel {
    /// Sizes of the lists of a group and its descendants on one node.
    pub(crate) fn lru_sizes_below(&self, memcg: MemcgId, node: NodeId) -> LruSizes {
        match memcg == ROOT {
            true => self.mem.node_lru_sizes(node),
            false => LruSizes(self.groups.lruvec(memcg, node).subtree),
        }
    }

    /// Sizes of the lists of a group and its descendants on all nodes; 0 for a removed group.
    /// O(nodes), while the other sizes in memory.stat are O(pages of the machine).
    pub fn memcg_lru_sizes(&self, memcg: MemcgId) -> LruSizes {
        let mut sums = LruSizes::default();
        if self.groups.memcgs.get(memcg.idx()).is_none_or(|group| group.lruvecs.is_empty()) {
            return sums;
        }
        for node in 0..self.mem.pgdat.len() {
            let here = self.lru_sizes_below(memcg, NodeId(node as u8));
            sums.0.iter_mut().zip(here.0).for_each(|(sum, size)| *sum += size);
        }
        sums
    }

    /// Pages of a zone that reclaim could free (Linux `zone_reclaimable_pages`).
    pub(crate) fn zone_reclaimable_pages(&self, node: NodeId, zone: usize) -> u64 {
        self.reclaimable(LruSizes(self.mem.pgdat[node].zone_lru[zone]))
    }

    /// Pages of these lists that reclaim could free: anonymous pages count only if there is swap.
    pub(crate) fn reclaimable(&self, sizes: LruSizes) -> u64 {
        sizes.file() + if self.swap.free() > 0 { sizes.anon() } else { 0 }
    }
}
