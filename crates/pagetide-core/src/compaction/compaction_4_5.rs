//! Compaction of Linux 4.5, where its algorithm differs from the algorithm of 6.1.
//!
//! Linux: `__compaction_suitable`, `__reset_isolation_suitable` (mm/compaction.c). Smaller
//! differences between the versions are in the other files, which ask the [era](crate::config::era).
//!
//! Invariant: these functions run only if the chosen policies use the algorithms of 4.5.

use super::fragmentation::fragmentation_index;
use super::suitable::compact_gap;
use super::CompactResult;
use crate::config::Config;
use crate::frames::gfp::{AllocFlags, Watermark};
use crate::frames::watermark::{zone_watermark_ok, zone_watermark_ok_free};
use crate::frames::zone::Zone;
use crate::units::Order;

/// Whether a run can help if `free` pages are free. Compares `free` with the low watermark, and
/// applies the fragmentation index to every order.
pub(super) fn suitable_4_5(
    zone: &Zone,
    config: &Config,
    order: Order,
    flags: AllocFlags,
    highest_zoneidx: usize,
    free: u64,
) -> CompactResult {
    if has_low_mark(zone, order, flags, highest_zoneidx) {
        return CompactResult::Success;
    }
    let needed = zone.wmark(Watermark::Low) + compact_gap(order);
    if !zone_watermark_ok_free(zone, 0, needed, highest_zoneidx, flags, free) {
        return CompactResult::Skipped;
    }
    let index = fragmentation_index(zone, order);
    if index >= 0 && index <= config.extfrag_threshold as i32 {
        return CompactResult::Skipped;
    }
    CompactResult::Continue
}

/// Whether a block of `order` is free and the zone is above its low watermark: the goal of
/// compaction in 4.5.
pub(super) fn has_low_mark(
    zone: &Zone,
    order: Order,
    flags: AllocFlags,
    highest_zoneidx: usize,
) -> bool {
    zone_watermark_ok(zone, order, zone.wmark(Watermark::Low), highest_zoneidx, flags)
}

impl Zone {
    /// Clears all skip bits and moves both scanners to the ends of the zone.
    pub(super) fn reset_isolation_suitable_4_5(&mut self) {
        let (start, end) = (self.start_pfn.0, self.end_pfn());
        self.compaction.blockskip_flush = false;
        self.compaction.skip.fill(0);
        self.compaction.reset_positions(start, end);
    }
}
