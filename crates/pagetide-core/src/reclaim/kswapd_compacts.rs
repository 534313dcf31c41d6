//! kswapd as a compactor, as it was until kcompactd came.
//!
//! Linux: `compact_pgdat` and what called it in `balance_pgdat` (mm/vmscan.c, until 4.5). With
//! [`BackgroundCompaction::Kswapd`](crate::config::BackgroundCompaction) kswapd compacts the node at the end of
//! a round that has reclaimed more pages than it set out to, if no zone has a block. With kswapd of 6.1 that is
//! patch 0004 of kernels/linux-6.1, with which it is compared: zones with pages enough for compaction to work
//! with are not reclaimed from, and a descent that had nothing to reclaim is no failure.
//!
//! Invariant: `of_4_5.compacting` is set exactly while a run of kswapd's is open.

mod compact_pgdat;

use crate::compaction::RunId;
use crate::digest::State;
use crate::gfp::Watermark;
use crate::units::Order;
use crate::zone::Zone;

/// A zone may be above its high mark by its hundredth before pressure on it ends.
const KSWAPD_ZONE_BALANCE_GAP_RATIO: u64 = 100;

/// Compacting a node: the zone, and its run.
#[derive(Clone, Debug, State)]
pub(in crate::reclaim) struct CompactZones {
    order: Order,
    zone: usize,
    run: Option<RunId>,
}

/// By how much more than its high mark a zone has what kswapd wants, when it compacts.
pub(in crate::reclaim) fn balance_gap(zone: &Zone) -> u64 {
    zone.wmark(Watermark::Low).min(zone.managed.div_ceil(KSWAPD_ZONE_BALANCE_GAP_RATIO))
}
