//! Decides whether compacting a zone can help.
//!
//! Linux: `compaction_suitable`, `__compaction_suitable` (mm/compaction.c, 6.1). Migration needs
//! free target frames. A zone without enough free memory needs reclaim instead.

use super::compaction_4_5::suitable_4_5;
use super::fragmentation::fragmentation_index;
use super::CompactResult;
use crate::config::era::Era;
use crate::config::Config;
use crate::frames::gfp::{AllocFlags, Watermark};
use crate::frames::watermark::{zone_watermark_ok, zone_watermark_ok_free};
use crate::frames::zone::Zone;
use crate::units::{Order, PAGE_ALLOC_COSTLY_ORDER};

/// Free pages that a run needs above a watermark (Linux `compact_gap`).
pub(crate) const fn compact_gap(order: Order) -> u64 {
    2 << order
}

/// `Continue` if a run for a block of `order` can help, `Success` if a block is free, else
/// `Skipped`. `flags` names the watermark that the allocation must respect.
pub(crate) fn compaction_suitable(
    zone: &Zone,
    config: &Config,
    era: &Era,
    order: Order,
    flags: AllocFlags,
    highest_zoneidx: usize,
) -> CompactResult {
    suitable_with(zone, config, era, order, flags, highest_zoneidx, zone.free_pages_counted())
}

/// Like [`compaction_suitable`], but assumes that `free` pages are free.
pub(crate) fn suitable_with(
    zone: &Zone,
    config: &Config,
    era: &Era,
    order: Order,
    flags: AllocFlags,
    highest_zoneidx: usize,
    free: u64,
) -> CompactResult {
    if era.compacts_to_low_mark {
        return suitable_4_5(zone, config, order, flags, highest_zoneidx, free);
    }
    let mark = zone.wmark(flags.watermark);
    if zone_watermark_ok(zone, order, mark, highest_zoneidx, flags) {
        return CompactResult::Success;
    }
    let costly = order > PAGE_ALLOC_COSTLY_ORDER;
    let base = if costly { Watermark::Low } else { Watermark::Min };
    let needed = zone.wmark(base) + compact_gap(order);
    let order_0 = AllocFlags::movable_at(base);
    if !zone_watermark_ok_free(zone, 0, needed, highest_zoneidx, order_0, free) {
        return CompactResult::Skipped;
    }
    if costly {
        let index = fragmentation_index(zone, order);
        if index >= 0 && index <= config.extfrag_threshold as i32 {
            return CompactResult::Skipped;
        }
    }
    CompactResult::Continue
}
