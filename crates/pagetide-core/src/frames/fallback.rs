//! Fallback: allocation when the request's migrate type has no free block.
//!
//! Linux: `__rmqueue`, `__rmqueue_fallback`, `steal_suitable_fallback`, `boost_watermark`,
//! `reserve_highatomic_pageblock`, `unreserve_highatomic_pageblock` (mm/page_alloc.c, 6.1). A
//! request first uses free blocks of its own migrate type. If there are none, it takes the largest
//! block of another type. It claims the whole pageblock if at least half of it is free or has pages
//! of a compatible type. Each pageblock with mixed types raises the zone's watermarks for a while
//! (the boost), so that kswapd frees memory and the next mix is avoided.
//!
//! Since 6.10 (policy `fallback`) a free list holds only blocks of pageblocks of its type. A
//! request that cannot claim a pageblock takes only the pages it needs, from the smallest block,
//! and leaves the others on their list. So the next request falls back again, and so do the other
//! pages of a refill, without another try to claim. Each pageblock that a request tries to claim
//! boosts the watermarks (stable updates of 6.12, from 6.14 and 6.15).
//!
//! CMA memory is only lent: a movable request takes free CMA blocks if its own lists are empty, and
//! since 5.7 also while more than half of the zone's free pages are CMA. No request claims a
//! pageblock of CMA. Up to 4.0 CMA was an ordinary fallback of movable requests, so the largest
//! free block was split instead of the smallest.
//!
//! Invariant: fallback takes only blocks of the three ordinary types, so the high-atomic reserve
//! shrinks only in `unreserve` and `nr_reserved_highatomic` stays exact.

use crate::config::FallbackPolicy;
use crate::frames::buddy::MovedBlock;
use crate::frames::gfp::{AllocFlags, MigrateType};
use crate::frames::page_array::PageArray;
use crate::frames::zone::Zone;
use crate::stats::event::{EventLog, TraceEvent};
use crate::stats::vmstat::{Event, Vmstat};
use crate::units::{Order, Pfn, MAX_PAGE_ORDER, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER};

/// A free block of another type that a request may take.
struct FallbackCandidate {
    order: Order,
    /// Type of the list that the block is on.
    mt: MigrateType,
    /// Whether the request may claim the whole pageblock.
    whole_block: bool,
}

/// The sources that a refill of several blocks still tries (Linux `enum rmqueue_mode`, 6.12).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RefillMode {
    /// The lists of its type, then to claim a pageblock, then to take single blocks.
    Lists,
    /// It has taken a single block, so only that: the lists do not change during a refill.
    Steals,
}

pub(crate) enum FallbackResult {
    /// The request's own lists now have free blocks.
    OnLists,
    /// The request got this block.
    Taken(Pfn),
}

/// Counters and event log for fallbacks.
pub(crate) struct FallbackLog<'a> {
    pub(crate) vmstat: &'a mut Vmstat,
    pub(crate) events: &'a mut EventLog,
}

/// Whether a request of type `mt` that falls back to a block of `order` may claim the whole
/// pageblock. Movable requests claim only for large blocks: their pages can be moved out again.
/// Unmovable pages always claim, because otherwise they would spread over many pageblocks and make
/// all of them useless for large blocks.
pub(crate) const fn may_steal(order: Order, mt: MigrateType) -> bool {
    order >= PAGEBLOCK_ORDER / 2 || matches!(mt, MigrateType::Unmovable | MigrateType::Reclaimable)
}

impl Zone {
    /// Takes a block of `order` for a request of type `mt`, falling back to other types
    /// (Linux `__rmqueue`). The head keeps [`crate::frames::page::Place::Buddy`].
    pub(crate) fn take_block(
        &mut self,
        pages: &mut PageArray,
        notes: &mut FallbackLog<'_>,
        order: Order,
        mt: MigrateType,
        flags: AllocFlags,
    ) -> Option<Pfn> {
        if self.cma_surplus(&flags) > 0 {
            if let Some(pfn) = self.take_smallest(pages, order, MigrateType::Cma) {
                return Some(pfn);
            }
        }
        loop {
            if let Some(pfn) = self.take_smallest(pages, order, mt) {
                return Some(pfn);
            }
            if flags.cma {
                if let Some(pfn) = self.take_smallest(pages, order, MigrateType::Cma) {
                    return Some(pfn);
                }
            }
            let fallen = self.steal(pages, notes, (order, mt), flags, RefillMode::Lists)?;
            if let FallbackResult::Taken(pfn) = fallen {
                self.stat.add(-(1i64 << order));
                return Some(pfn);
            }
        }
    }

    /// Number of CMA pages that a movable request takes before pages of other types: those above
    /// half of the zone's free pages.
    pub(crate) fn cma_surplus(&self, flags: &AllocFlags) -> u64 {
        if !flags.cma || self.fallback == FallbackPolicy::Linux54 {
            return 0;
        }
        self.free_cma_pages().saturating_sub(self.free_pages_counted() / 2)
    }

    /// Moves a free block of at least `order` and of another type to the lists of `mt`, or takes
    /// only the needed part of it (Linux `__rmqueue_fallback`). `None` if there is no such block.
    pub(crate) fn steal(
        &mut self,
        pages: &mut PageArray,
        notes: &mut FallbackLog<'_>,
        (order, mt): (Order, MigrateType),
        flags: AllocFlags,
        mode: RefillMode,
    ) -> Option<FallbackResult> {
        let boost = self.watermark_boost;
        let (candidate, pfn, fallen) = match self.fallback {
            FallbackPolicy::Linux54 | FallbackPolicy::Linux61 => {
                let candidate = self.find_fallback(order, mt, flags)?;
                let pfn = self.first_block(candidate.order, candidate.mt)?;
                self.steal_block(pages, pfn, mt, &candidate, flags);
                (candidate, pfn, FallbackResult::OnLists)
            }
            FallbackPolicy::Linux612 => self.claim_or_take(pages, (order, mt), flags, mode)?,
        };
        notes.vmstat.count(Event::MmPageAllocExtfrag);
        notes.events.record(TraceEvent::MmPageAllocExtfrag {
            pfn: u64::from(pfn.0),
            alloc_order: order,
            fallback_order: candidate.order,
            pageblock_order: PAGEBLOCK_ORDER,
            alloc_migratetype: mt,
            fallback_migratetype: candidate.mt,
            fragmenting: candidate.order < PAGEBLOCK_ORDER,
            change_ownership: self.block_type(pfn) == mt,
        });
        if self.watermark_boost != boost {
            let watermark_boost = self.watermark_boost;
            notes.events.record(TraceEvent::BoostWatermark {
                nid: self.node,
                zid: self.index as u8,
                watermark_boost,
            });
        }
        Some(fallen)
    }

    /// Claims the pageblock of a free block for `mt`, the largest first; else takes a block of
    /// `order` from the smallest one and leaves its other pages on their list (Linux
    /// `__rmqueue_claim`, `__rmqueue_steal`, 6.12).
    fn claim_or_take(
        &mut self,
        pages: &mut PageArray,
        (order, mt): (Order, MigrateType),
        flags: AllocFlags,
        mode: RefillMode,
    ) -> Option<(FallbackCandidate, Pfn, FallbackResult)> {
        let min_order = if flags.nofragment { order.max(PAGEBLOCK_ORDER) } else { order };
        let tries = (mode == RefillMode::Lists).then(|| (min_order..=MAX_PAGE_ORDER).rev());
        for at in tries.into_iter().flatten() {
            let Some(candidate) = self.fallback_of_order(at, mt) else { continue };
            if !candidate.whole_block {
                break;
            }
            let pfn = self.first_block(at, candidate.mt)?;
            if self.claim_block(pages, pfn, mt, at, flags) {
                return Some((candidate, pfn, FallbackResult::OnLists));
            }
        }
        if flags.nofragment {
            return None;
        }
        let candidate = (order..=MAX_PAGE_ORDER).find_map(|at| self.fallback_of_order(at, mt))?;
        let pfn = self.take_of_block(pages, candidate.order, candidate.mt, order)?;
        Some((candidate, pfn, FallbackResult::Taken(pfn)))
    }

    /// Claims the pageblock of a free block, or the pageblocks in it, for `mt`. Returns whether it
    /// could (Linux `try_to_steal_block`, 6.12).
    fn claim_block(
        &mut self,
        pages: &mut PageArray,
        pfn: Pfn,
        mt: MigrateType,
        order: Order,
        flags: AllocFlags,
    ) -> bool {
        let old_mt = self.block_type(pfn);
        if !old_mt.is_mergeable() {
            return false;
        }
        if order >= PAGEBLOCK_ORDER {
            for at in (0..1u32 << order).step_by(PAGEBLOCK_NR_PAGES as usize) {
                self.set_block_type(Pfn(pfn.0 + at), mt);
            }
            self.move_block(pages, pfn, mt);
            return true;
        }
        if self.boost_watermark() && flags.kswapd {
            self.boosted = true;
        }
        let found = self.count_pageblock(pages, pfn);
        let alike = found.free + compatible_pages(found, mt, old_mt);
        let claims = found.free > 0 && alike >= PAGEBLOCK_NR_PAGES / 2;
        if claims {
            self.move_pageblock(pages, pfn, mt);
            self.set_block_type(pfn, mt);
        }
        claims
    }

    /// Chooses the block to take. The search goes from the largest order down. But a movable
    /// request that may not claim the pageblock takes the smallest block, because it splits the
    /// block.
    fn find_fallback(
        &self,
        order: Order,
        mt: MigrateType,
        flags: AllocFlags,
    ) -> Option<FallbackCandidate> {
        let min_order = if flags.nofragment { order.max(PAGEBLOCK_ORDER) } else { order };
        let largest =
            (min_order..=MAX_PAGE_ORDER).rev().find_map(|o| self.fallback_of_order(o, mt))?;
        if largest.whole_block || mt != MigrateType::Movable || largest.order == order {
            return Some(largest);
        }
        (order..=MAX_PAGE_ORDER).find_map(|o| self.fallback_of_order(o, mt))
    }

    fn fallback_of_order(&self, order: Order, mt: MigrateType) -> Option<FallbackCandidate> {
        let area = &self.free_area[usize::from(order)];
        let from = mt.fallbacks().iter().find(|&&from| !area.lists[from].is_empty())?;
        Some(FallbackCandidate { order, mt: *from, whole_block: may_steal(order, mt) })
    }

    /// Moves the block to the lists of `mt`. If the request may claim the pageblock, moves all free
    /// blocks of the pageblock (Linux `steal_suitable_fallback`).
    fn steal_block(
        &mut self,
        pages: &mut PageArray,
        pfn: Pfn,
        mt: MigrateType,
        candidate: &FallbackCandidate,
        flags: AllocFlags,
    ) {
        let old_mt = self.block_type(pfn);
        if !old_mt.is_mergeable() {
            self.move_block(pages, pfn, mt);
            return;
        }
        if candidate.order >= PAGEBLOCK_ORDER {
            let nr_pages = 1u32 << candidate.order;
            for at in (0..nr_pages).step_by(PAGEBLOCK_NR_PAGES as usize) {
                self.set_block_type(Pfn(pfn.0 + at), mt);
            }
            self.move_block(pages, pfn, mt);
            return;
        }
        if self.boost_watermark() && flags.kswapd {
            self.boosted = true;
        }
        if !candidate.whole_block {
            self.move_block(pages, pfn, mt);
            return;
        }
        let moved = self.move_pageblock(pages, pfn, mt);
        if moved.free == 0 {
            self.move_block(pages, pfn, mt);
            return;
        }
        if moved.free + compatible_pages(moved, mt, old_mt) >= PAGEBLOCK_NR_PAGES / 2 {
            self.set_block_type(pfn, mt);
        }
    }

    /// Raises the watermarks by one pageblock, up to the limit. Returns whether it raised them
    /// (Linux `boost_watermark`). Zones with fewer than four pageblocks are not boosted.
    fn boost_watermark(&mut self) -> bool {
        let block = u64::from(PAGEBLOCK_NR_PAGES);
        if self.watermark_boost_factor == 0 || block * 4 > self.managed {
            return false;
        }
        let cap =
            self.watermark_high.saturating_mul(u64::from(self.watermark_boost_factor)) / 10_000;
        if cap == 0 {
            return false;
        }
        self.watermark_boost = (self.watermark_boost + block).min(cap.max(block));
        true
    }

    /// Reserves the pageblock of `pfn` for atomic requests of order > 0. Up to one pageblock more
    /// than 1 % of the zone can be reserved; since 6.8 the pageblocks of that 1 %, rounded up, and
    /// none if it is less than one (Linux `reserve_highatomic_pageblock`). Never reserves a
    /// pageblock that the zone has only in part; Linux would count it without moving its pages.
    pub(crate) fn reserve_highatomic(&mut self, pages: &mut PageArray, pfn: Pfn) {
        let block = u64::from(PAGEBLOCK_NR_PAGES);
        let hundredth = self.managed / 100;
        let most = match self.fallback {
            FallbackPolicy::Linux612 if hundredth < block => 0,
            FallbackPolicy::Linux612 => hundredth.next_multiple_of(block),
            FallbackPolicy::Linux54 | FallbackPolicy::Linux61 => hundredth + block,
        };
        if self.nr_reserved_highatomic >= most {
            return;
        }
        if self.whole_block(pfn).is_none() || !self.block_type(pfn).is_mergeable() {
            return;
        }
        self.nr_reserved_highatomic += block;
        self.set_block_type(pfn, MigrateType::HighAtomic);
        self.move_pageblock(pages, pfn, MigrateType::HighAtomic);
    }

    /// Converts one reserved pageblock with a free page to type `mt` (Linux
    /// `unreserve_highatomic_pageblock`, for one zone). Returns whether pages became available.
    /// Keeps the last reserved pageblock unless `force` says otherwise.
    pub(crate) fn unreserve_highatomic(
        &mut self,
        pages: &mut PageArray,
        mt: MigrateType,
        force: HighAtomicRelease,
    ) -> bool {
        let block = u64::from(PAGEBLOCK_NR_PAGES);
        if force == HighAtomicRelease::No && self.nr_reserved_highatomic <= block {
            return false;
        }
        let head =
            (0..=MAX_PAGE_ORDER).find_map(|order| self.first_block(order, MigrateType::HighAtomic));
        let Some(pfn) = head else {
            return false;
        };
        // Convert one pageblock, even if two have merged. Linux moves the pages of both but changes
        // the type of one.
        self.split_to_pageblock(pages, pfn);
        if self.block_type(pfn) == MigrateType::HighAtomic {
            self.nr_reserved_highatomic = self.nr_reserved_highatomic.saturating_sub(block);
        }
        self.set_block_type(pfn, mt);
        let moved = self.move_pageblock(pages, pfn, mt).free;
        if moved == PAGEBLOCK_NR_PAGES {
            // The pageblock may now merge with its neighbour. Linux leaves the two unmerged.
            self.merge_again(pages, pfn);
        }
        moved > 0
    }
}

/// Whether even the last reserved pageblock may be given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HighAtomicRelease {
    /// At least one pageblock stays reserved.
    No,
    /// Memory is very short: all pageblocks may be given up.
    Yes,
}

/// Number of pages in use in a newly claimed pageblock that suit type `mt`. For a movable request
/// these are the movable pages. For a kernel request in a movable pageblock these are all other
/// pages. The pages of the two kernel types cannot be distinguished, so between these types no page
/// counts.
const fn compatible_pages(moved: MovedBlock, mt: MigrateType, old_mt: MigrateType) -> u32 {
    if matches!(mt, MigrateType::Movable) {
        moved.movable
    } else if matches!(old_mt, MigrateType::Movable) {
        PAGEBLOCK_NR_PAGES - (moved.free + moved.movable)
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_requests_claim_at_any_order_and_movable_ones_from_order_four() {
        assert!(may_steal(0, MigrateType::Unmovable));
        assert!(may_steal(0, MigrateType::Reclaimable));
        assert!(!may_steal(3, MigrateType::Movable));
        assert!(may_steal(4, MigrateType::Movable));
    }

    #[test]
    fn what_counts_as_compatible_depends_on_both_kinds() {
        let moved = MovedBlock { free: 100, movable: 50 };
        use MigrateType::{Movable, Reclaimable, Unmovable};
        assert_eq!(compatible_pages(moved, Movable, Unmovable), 50);
        assert_eq!(compatible_pages(moved, Unmovable, Movable), 362);
        assert_eq!(compatible_pages(moved, Unmovable, Reclaimable), 0);
    }
}
