//! Compaction by kswapd, as before kcompactd.
//!
//! Linux: `compact_pgdat` and its call in `balance_pgdat` (mm/vmscan.c, until 4.5). With
//! [`BackgroundCompaction::Kswapd`](crate::config::BackgroundCompaction) kswapd compacts the node
//! at the end of a round that reclaimed more pages than it attempted, if no zone has a block. With
//! the kswapd of 6.1 this models patch 0004 of kernels/linux-6.1. That kernel does not reclaim from
//! zones with enough pages for compaction, and a descent with nothing to reclaim is not a failure.
//!
//! Invariant: `by_zone.compacting` is set exactly while a compaction run of kswapd is open.

mod compact_pgdat;

use crate::compaction::CompactRunId;
use crate::frames::gfp::Watermark;
use crate::frames::zone::Zone;
use crate::units::digest::State;
use crate::units::Order;

/// Divisor: pressure on a zone ends at its high watermark plus 1/100 of its pages.
const KSWAPD_ZONE_BALANCE_GAP_RATIO: u64 = 100;

/// Compaction of a node by kswapd: the present zone and its run.
#[derive(Clone, Debug, State)]
pub(in crate::reclaim) struct CompactZones {
    order: Order,
    zone: usize,
    run: Option<CompactRunId>,
}

/// Pages above the high watermark that kswapd aims for when it compacts.
pub(in crate::reclaim) fn balance_gap(zone: &Zone) -> u64 {
    zone.wmark(Watermark::Low).min(zone.managed.div_ceil(KSWAPD_ZONE_BALANCE_GAP_RATIO))
}
