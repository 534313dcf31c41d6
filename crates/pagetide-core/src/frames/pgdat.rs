//! State of reclaim and compaction that a node has in addition to the state of its zones.
//!
//! Linux: the fields of `pg_data_t` (include/linux/mmzone.h) used by mm/vmscan.c, mm/compaction.c.

use crate::ageing::lruvec::NR_LRU_LISTS;
use crate::compaction::kcompactd::Kcompactd;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::reclaim::kswapd::Kswapd;
use crate::stats::vmstat::NodeStat;
use crate::units::digest::State;

/// State of reclaim and writeback for a node.
#[derive(Clone, Debug, State)]
pub struct NodeState {
    /// Counters, indexed by [`NodeStat`].
    pub stats: [u64; NodeStat::COUNT],
    /// Pages of each LRU list by zone, all groups together.
    pub zone_lru: [[u64; NR_LRU_LISTS]; MAX_NR_ZONES],
    /// Locked pages by zone (`nr_mlock`).
    pub nr_mlock: [u64; MAX_NR_ZONES],
    /// kswapd's state.
    pub kswapd: Kswapd,
    /// kcompactd's state.
    pub kcompactd: Kcompactd,
    /// All pages at the tail of the lists are dirty: kswapd may write file pages (Linux
    /// `PGDAT_DIRTY`).
    pub dirty: bool,
    /// All pages at the tail are under writeback: kswapd should wait (Linux `PGDAT_WRITEBACK`).
    pub writeback: bool,
    /// Direct reclaimers should wait (Linux `LRUVEC_CONGESTED` of the root).
    pub congested: bool,
    /// kswapd's last walk over page tables looked at anonymous pages, too (Linux `pgdat->mm_walk`).
    pub mm_walk_can_swap: bool,
    /// Number of tasks that sleep until writes complete.
    pub nr_writeback_throttled: u32,
    /// Pages written since the first of these tasks fell asleep.
    pub nr_written_while_throttled: u64,
    /// Number of tasks that sleep until reserves recover.
    pub nr_reserve_throttled: u32,
}

impl NodeState {
    pub(crate) fn new() -> NodeState {
        NodeState {
            stats: [0; NodeStat::COUNT],
            zone_lru: [[0; NR_LRU_LISTS]; MAX_NR_ZONES],
            nr_mlock: [0; MAX_NR_ZONES],
            kswapd: Kswapd::new(),
            kcompactd: Kcompactd::new(),
            dirty: false,
            writeback: false,
            congested: false,
            mm_walk_can_swap: false,
            nr_writeback_throttled: 0,
            nr_written_while_throttled: 0,
            nr_reserve_throttled: 0,
        }
    }
}
