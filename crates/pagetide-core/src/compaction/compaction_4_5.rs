//! The parts of Linux 4.5's compaction that are another algorithm than today's.
//!
//! Linux: `__compaction_suitable`, `__reset_isolation_suitable` (mm/compaction.c). Where the same
//! algorithm differs in a detail, the [era](crate::era) answers in today's file.
//!
//! Invariant: called only where the era says so.

use super::fragmentation::fragmentation_index;
use super::suitable::compact_gap;
use super::CompactResult;
use crate::config::Config;
use crate::gfp::{AllocFlags, Watermark};
use crate::units::Order;
use crate::watermark::{zone_watermark_ok, zone_watermark_ok_free};
use crate::zone::Zone;

/// Whether a run may help, if `free` pages were free: held against the low mark, and the fragmentation
/// index is asked for every order.
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

/// Whether a zone has a block of `order` and its low mark beside it: what compaction is for.
pub(super) fn has_low_mark(
    zone: &Zone,
    order: Order,
    flags: AllocFlags,
    highest_zoneidx: usize,
) -> bool {
    zone_watermark_ok(zone, order, zone.wmark(Watermark::Low), highest_zoneidx, flags)
}

impl Zone {
    /// Forgets every skip bit, and the scanners begin at the zone's ends.
    pub(super) fn reset_isolation_suitable_4_5(&mut self) {
        let (start, end) = (self.start_pfn.0, self.end_pfn());
        self.compaction.blockskip_flush = false;
        self.compaction.skip.fill(0);
        self.compaction.reset_positions(start, end);
    }
}
