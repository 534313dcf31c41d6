//! Compaction state of a zone: scanner positions, skip bits of pageblocks, and deferral.
//!
//! Linux: the `compact_*` fields of `struct zone` and the pageblock bit `PB_migrate_skip` (6.1).
//!
//! Invariant: cached positions lie in the zone's span; `defer_shift` is at most
//! [`COMPACT_MAX_DEFER_SHIFT`](super::defer::COMPACT_MAX_DEFER_SHIFT).

use crate::config::era::Era;
use crate::frames::page::Place;
use crate::frames::page_array::PageArray;
use crate::frames::zone::Zone;
use crate::units::digest::State;
use crate::units::{Order, Pfn, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER};
use alloc::vec;
use alloc::vec::Vec;

/// State that compaction keeps for one zone.
#[derive(Clone, Debug, State)]
pub struct ZoneCompaction {
    /// Where the migrate scanner starts, as [asynchronous runs, synchronous runs].
    pub(super) cached_migrate: [u32; 2],
    /// Where the free scanner starts.
    pub(super) cached_free: u32,
    /// Lowest suitable block when the skip bits were last cleared. Before that it is 0, as in
    /// Linux, so that no run counts as a run over the whole zone.
    pub(super) init_migrate: u32,
    /// Highest suitable block for free frames. It is 0 at first, so that the free scanner treats
    /// every position as the start of its scan.
    pub(super) init_free: u32,
    /// Requests of order `order_failed` or higher since the last failure.
    pub(super) considered: u32,
    /// log2 of the number of requests to defer.
    pub(super) defer_shift: u32,
    /// Lowest order that has failed.
    pub(super) order_failed: Order,
    /// A direct run has finished: kswapd clears the skip bits before it sleeps.
    pub(crate) blockskip_flush: bool,
    first_block: u32,
    pub(super) skip: Vec<u64>,
}

/// First frame of a pageblock.
pub(super) const fn pageblock_start(pfn: u32) -> u32 {
    pfn & !(PAGEBLOCK_NR_PAGES - 1)
}

/// First frame after the pageblock of `pfn`, which is below 2^29.
pub(super) const fn pageblock_end(pfn: u32) -> u32 {
    pageblock_start(pfn) + PAGEBLOCK_NR_PAGES
}

impl ZoneCompaction {
    pub(crate) fn new(start: u32, spanned: u64, nr_blocks: usize) -> ZoneCompaction {
        let mut state = ZoneCompaction {
            cached_migrate: [start; 2],
            cached_free: start,
            init_migrate: 0,
            init_free: 0,
            considered: 0,
            defer_shift: 0,
            order_failed: 0,
            blockskip_flush: false,
            first_block: start >> PAGEBLOCK_ORDER,
            skip: vec![0; nr_blocks.div_ceil(64)],
        };
        state.reset_positions(start, u64::from(start) + spanned);
        state
    }

    /// Moves both scanners to the ends of the zone (Linux `reset_cached_positions`).
    pub(super) fn reset_positions(&mut self, start: u32, end: u64) {
        self.cached_migrate = [start; 2];
        self.cached_free = pageblock_start((end.max(1) - 1) as u32).max(start);
    }

    fn bit(&self, pfn: u32) -> (usize, u64) {
        let block = (pfn >> PAGEBLOCK_ORDER).wrapping_sub(self.first_block) as usize;
        (block / 64, 1 << (block % 64))
    }

    pub(super) fn is_skipped(&self, pfn: u32) -> bool {
        let (word, bit) = self.bit(pfn);
        self.skip[word] & bit != 0
    }

    /// Makes runs skip the pageblock of `pfn`.
    pub(super) fn set_skip(&mut self, pfn: u32) {
        let (word, bit) = self.bit(pfn);
        self.skip[word] |= bit;
    }

    /// Number of pageblocks with a skip bit.
    pub fn nr_skipped(&self) -> u32 {
        self.skip.iter().map(|word| word.count_ones()).sum()
    }

    fn clear_skip(&mut self, pfn: u32) {
        let (word, bit) = self.bit(pfn);
        self.skip[word] &= !bit;
    }
}

impl Zone {
    /// Clears skip bits if a direct run has finished since the last call (Linux
    /// `__reset_isolation_suitable`). Goes through the blocks from both ends of the zone and checks
    /// every eighth frame. A block keeps its bit if it has neither movable nor free pages. The
    /// scanners then start at the outermost suitable blocks.
    pub(crate) fn reset_isolation_suitable(&mut self, pages: &PageArray, era: &Era) {
        if era.scans_linearly {
            return self.reset_isolation_suitable_4_5();
        }
        let (start, end) = (self.start_pfn.0, self.end_pfn());
        let flush = core::mem::take(&mut self.compaction.blockskip_flush);
        if !flush {
            return;
        }
        let (mut up, mut down) = (start, pageblock_start((end.max(1) - 1) as u32).max(start));
        let (mut lowest, mut highest) = (down, up);
        let (mut has_source, mut has_target) = (false, false);
        while up < down {
            if self.is_scan_start(pages, up, true, has_source) && up < lowest {
                has_source = true;
                lowest = up;
                self.compaction.init_migrate = up;
                self.compaction.cached_migrate = [up; 2];
            }
            if self.is_scan_start(pages, down, has_target, true) && down > highest {
                has_target = true;
                highest = down;
                self.compaction.init_free = down;
                self.compaction.cached_free = down;
            }
            up = pageblock_start(up) + PAGEBLOCK_NR_PAGES;
            down -= PAGEBLOCK_NR_PAGES;
        }
        if lowest >= highest {
            // No suitable block was found: let the scanners start where they meet.
            self.compaction.cached_migrate = [up; 2];
            self.compaction.cached_free = down;
        }
    }

    /// Whether a scanner can start at `pfn`. If so, clears the block's skip bit (Linux
    /// `__reset_isolation_pfn`).
    fn is_scan_start(&mut self, pages: &PageArray, pfn: u32, source: bool, target: bool) -> bool {
        if source && target && !self.compaction.is_skipped(pfn) {
            return true;
        }
        if !source && target && !self.block_type(Pfn(pfn)).is_movable() {
            return false;
        }
        let end = u64::from(pageblock_end(pfn)).min(self.end_pfn()) as u32;
        let found = (pageblock_start(pfn).max(self.start_pfn.0)..end).step_by(8).any(|at| {
            let place = pages.peek(at as usize).place;
            source && place.is_lru() || target && place == Place::Buddy
        });
        if found {
            self.compaction.clear_skip(pfn);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::node::{NodeSpec, ZoneSpec};
    use crate::frames::page_alloc::Memory;

    /// 32 pageblocks: the kernel uses the first four, the others are free.
    fn memory() -> Memory {
        let pages = 32 * u64::from(PAGEBLOCK_NR_PAGES);
        let mut spec = NodeSpec::x86_64(pages << 12, 0, 0);
        for zone in &mut spec.zones {
            *zone = ZoneSpec { free: zone.managed.saturating_sub(4 * 512), ..*zone };
        }
        Memory::new(&[spec], 1).unwrap()
    }

    #[test]
    fn blocks_with_nothing_in_them_for_either_scanner_stay_marked() {
        let mut memory = memory();
        let Memory { pages, nodes, .. } = &mut memory;
        let zone = nodes[0].zones.iter_mut().find(|zone| zone.managed > 8192).unwrap();
        let (start, blocks) = (zone.start_pfn.0, zone.managed.div_ceil(512) as u32);
        for block in 0..blocks {
            zone.compaction.set_skip(start + block * PAGEBLOCK_NR_PAGES);
        }
        let marked = zone.compaction.nr_skipped();
        zone.reset_isolation_suitable(pages, &Era::default());
        assert_eq!(zone.compaction.nr_skipped(), marked, "no direct run has finished");
        zone.compaction.blockskip_flush = true;
        zone.reset_isolation_suitable(pages, &Era::default());
        let left = zone.compaction.nr_skipped();
        assert!(0 < left && left < marked, "{left} of {marked}");
        let linear = Era { scans_linearly: true, ..Era::default() };
        zone.reset_isolation_suitable(pages, &linear);
        assert_eq!(zone.compaction.nr_skipped(), 0);
        assert_eq!(zone.compaction.cached_migrate, [start; 2]);
    }
}
