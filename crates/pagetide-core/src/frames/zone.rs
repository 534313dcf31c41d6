//! A zone: a range of frames with its own free lists, watermarks and per-CPU sets.
//!
//! Linux: `struct zone`, `struct free_area` and the pageblock bits (include/linux/mmzone.h, 6.1).
//! This file has the type and its accessors. The operations on it are in [`crate::frames::buddy`] (split
//! and merge), [`crate::frames::fallback`] (pageblocks of other types), [`crate::frames::pcp`] (per-CPU lists) and
//! [`crate::frames::watermark`] (watermarks).
//!
//! Invariant: `nr_free_pages` is the number of pages on the buddy lists, without those of type
//! Isolate. Pages on per-CPU lists do not count as free here. `nr_reserved_highatomic` is 512 for
//! each pageblock of type HighAtomic.

use crate::compaction::ZoneCompaction;
use crate::config::FallbackPolicy;
use crate::frames::gfp::{AllocFlags, MigrateType, Watermark};
use crate::frames::list::List;
use crate::frames::pcp::Pcp;
use crate::frames::zone_type::{MAX_NR_ZONES, ZONE_NAMES};
use crate::stats::zone_stat::{StatMarks, ZoneStat};
use crate::units::digest::State;
use crate::units::{
    Cpu, IdVec, NodeId, Order, Pfn, NR_PAGE_ORDERS, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER,
};
use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Free blocks of one order.
#[derive(Clone, Debug, Default, State)]
pub struct FreeArea {
    /// Heads of the free blocks, by migrate type of the list (the type of a block's pageblock may
    /// differ).
    pub lists: [List; MigrateType::COUNT],
    /// Blocks on all lists together.
    pub nr_free: u64,
}

/// One list for each type.
impl Index<MigrateType> for [List] {
    type Output = List;

    #[inline]
    fn index(&self, mt: MigrateType) -> &List {
        &self[mt as usize]
    }
}

impl IndexMut<MigrateType> for [List] {
    #[inline]
    fn index_mut(&mut self, mt: MigrateType) -> &mut List {
        &mut self[mt as usize]
    }
}

/// One zone of one node.
#[derive(Clone, Debug, State)]
pub struct Zone {
    /// Position among the node's zones: [`ZONE_DMA`] .. [`ZONE_MOVABLE`].
    pub index: usize,
    /// The node.
    pub node: NodeId,
    /// First frame.
    pub start_pfn: Pfn,
    /// Frames from first to last, holes included.
    pub spanned: u64,
    /// Frames that exist.
    pub present: u64,
    /// Frames that belong to the allocator, free or allocated.
    pub managed: u64,
    /// Managed pages that were added after boot had set the watermarks (initial RAM disk and the
    /// kernel's init sections). Figures computed at boot do not count them.
    pub late: u64,
    /// Free blocks by order.
    pub free_area: [FreeArea; NR_PAGE_ORDERS],
    pub(crate) nr_free_pages: u64,
    /// The counter of free pages that watermark checks read.
    pub(crate) stat: ZoneStat,
    /// Min watermark in pages, without boost.
    pub watermark_min: u64,
    /// Low watermark in pages, without boost.
    pub watermark_low: u64,
    /// High watermark in pages, without boost.
    pub watermark_high: u64,
    /// Pages added to all three watermarks until kswapd has reclaimed them.
    pub watermark_boost: u64,
    /// Largest boost in 1/10000 of the high watermark; 0 turns boosting off.
    pub watermark_boost_factor: u32,
    /// Rule for taking pages from a pageblock of another type.
    pub fallback: FallbackPolicy,
    /// Pages that a request must leave free, by the highest zone index that it may use.
    pub lowmem_reserve: [u64; MAX_NR_ZONES],
    /// Pages in pageblocks reserved for atomic requests of order > 0.
    pub nr_reserved_highatomic: u64,
    /// Whether the kernel has no addresses for the zone's memory (Linux `is_highmem`).
    pub is_highmem: bool,
    /// Pages in pageblocks of type CMA. Never changes after boot.
    pub cma_pages: u64,
    pub(crate) pageblocks: Vec<MigrateType>,
    /// State of compaction.
    pub compaction: ZoneCompaction,
    /// Per-CPU free lists, one for each CPU of the machine.
    pub pcps: IdVec<Cpu, Pcp>,
    /// Pages of this zone that are still to be allocated before others get their turn, where
    /// requests are spread over zones (Linux `NR_ALLOC_BATCH`, 3.12 to 4.7).
    pub alloc_batch: i64,
    /// Pages of pools of compressed pages (Linux `NR_ZSPAGES`).
    pub nr_zspages: u64,
    /// A fallback has boosted the watermarks, and kswapd has not been woken yet
    /// (`ZONE_BOOSTED_WATERMARK`).
    pub boosted: bool,
    /// Reclaim is active, so per-CPU lists are kept short (Linux `ZONE_RECLAIM_ACTIVE`).
    pub reclaim_active: bool,
    /// Free pages have fallen below the high watermark, so per-CPU sets shrink. Used since 6.7
    /// (Linux `ZONE_BELOW_HIGH`).
    pub below_high: bool,
}

impl Zone {
    /// A zone without free pages. All its pageblocks are movable, as in Linux at the start.
    pub(crate) fn new(
        index: usize,
        node: NodeId,
        start_pfn: Pfn,
        spanned: u64,
        nr_cpus: u16,
    ) -> Zone {
        let first_block = u64::from(start_pfn.0) >> PAGEBLOCK_ORDER;
        let end_block = (u64::from(start_pfn.0) + spanned).div_ceil(PAGEBLOCK_NR_PAGES.into());
        let nr_blocks = if spanned == 0 { 0 } else { (end_block - first_block) as usize };
        Zone {
            index,
            node,
            start_pfn,
            spanned,
            present: 0,
            managed: 0,
            late: 0,
            free_area: Default::default(),
            nr_free_pages: 0,
            stat: ZoneStat::new(nr_cpus),
            watermark_min: 0,
            watermark_low: 0,
            watermark_high: 0,
            watermark_boost: 0,
            watermark_boost_factor: 0,
            fallback: FallbackPolicy::default(),
            lowmem_reserve: [0; MAX_NR_ZONES],
            nr_reserved_highatomic: 0,
            is_highmem: false,
            cma_pages: 0,
            pageblocks: vec![MigrateType::Movable; nr_blocks],
            compaction: ZoneCompaction::new(start_pfn.0, spanned, nr_blocks),
            pcps: vec![Pcp::new(); nr_cpus.into()].into(),
            alloc_batch: 0,
            nr_zspages: 0,
            boosted: false,
            reclaim_active: false,
            below_high: false,
        }
    }

    /// Name as in /proc/zoneinfo.
    pub fn name(&self) -> &'static str {
        if self.is_highmem {
            return "HighMem";
        }
        ZONE_NAMES.get(self.index).copied().unwrap_or("?")
    }

    /// Number of pages on the buddy lists (Linux `zone_page_state_snapshot` of `NR_FREE_PAGES`).
    /// Pages on per-CPU lists are not included.
    #[inline]
    pub const fn free_pages(&self) -> u64 {
        self.nr_free_pages
    }

    /// [`Self::free_pages`] according to the zone's counter, which lags behind (Linux
    /// `zone_page_state`).
    #[inline]
    pub const fn free_pages_counted(&self) -> u64 {
        self.stat.counted()
    }

    /// Free pages that only movable requests may take (Linux `NR_FREE_CMA_PAGES`; exact here).
    #[inline]
    pub fn free_cma_pages(&self) -> u64 {
        if self.cma_pages == 0 {
            return 0;
        }
        self.pagetypeinfo(MigrateType::Cma).iter().enumerate().map(|(order, nr)| nr << order).sum()
    }

    /// Free pages that a request with `flags` may not take: the high-atomic reserve and CMA memory
    /// (Linux `__zone_watermark_unusable_free`, for order 0).
    #[inline]
    pub(crate) fn unusable_free(&self, flags: &AllocFlags) -> u64 {
        let reserved = if flags.may_use_highatomic() { 0 } else { self.nr_reserved_highatomic };
        reserved + if flags.cma { 0 } else { self.free_cma_pages() }
    }

    /// Counts `nr` more pages on the buddy lists.
    #[inline]
    pub(crate) fn add_free(&mut self, nr: u64) {
        self.nr_free_pages += nr;
        self.stat.add(nr as i64);
    }

    /// Counts `nr` fewer pages on the buddy lists.
    #[inline]
    pub(crate) fn remove_free(&mut self, nr: u64) {
        self.nr_free_pages -= nr;
        self.stat.add(-(nr as i64));
    }

    /// Inputs of the counter's thresholds; the watermarks are without boost.
    pub(crate) const fn stat_marks(&self) -> StatMarks {
        StatMarks {
            managed: self.managed,
            min: self.watermark_min,
            low: self.watermark_low,
            high: self.watermark_high,
        }
    }

    /// Pages on per-CPU lists.
    pub fn pcp_pages(&self) -> u64 {
        self.pcps.iter().map(|pcp| u64::from(pcp.count)).sum()
    }

    /// Gives the zone a new share of allocations.
    pub(crate) fn reset_alloc_batch(&mut self) {
        self.alloc_batch = (self.watermark_high - self.watermark_low) as i64;
    }

    /// Whether the zone has memory (Linux `managed_zone`).
    #[inline]
    pub const fn is_populated(&self) -> bool {
        self.managed > 0
    }

    /// A watermark in pages, boost included; 0 for [`Watermark::None`].
    #[inline]
    pub const fn wmark(&self, watermark: Watermark) -> u64 {
        match watermark {
            Watermark::Min => self.watermark_min + self.watermark_boost,
            Watermark::Low => self.watermark_low + self.watermark_boost,
            Watermark::High => self.watermark_high + self.watermark_boost,
            Watermark::None => 0,
        }
    }

    /// One past the last frame of the zone.
    #[inline]
    pub const fn end_pfn(&self) -> u64 {
        self.start_pfn.0 as u64 + self.spanned
    }

    /// Whether the frame is in the zone's span.
    #[inline]
    pub const fn spans(&self, pfn: u32) -> bool {
        (pfn.wrapping_sub(self.start_pfn.0) as u64) < self.spanned
    }

    #[inline]
    pub(crate) const fn block_index(&self, pfn: Pfn) -> usize {
        ((pfn.0 >> PAGEBLOCK_ORDER).wrapping_sub(self.start_pfn.0 >> PAGEBLOCK_ORDER)) as usize
    }

    /// Migrate type of the pageblock of `pfn`, which must be in the zone.
    #[inline]
    pub fn block_type(&self, pfn: Pfn) -> MigrateType {
        self.pageblocks[self.block_index(pfn)]
    }

    pub(crate) fn set_block_type(&mut self, pfn: Pfn, mt: MigrateType) {
        let at = self.block_index(pfn);
        self.pageblocks[at] = mt;
    }

    /// First frame of the pageblock of `pfn`, if the zone has the whole block; otherwise `None`. A
    /// zone may share its first and last block with a neighbour.
    pub(crate) fn whole_block(&self, pfn: Pfn) -> Option<Pfn> {
        let first = pfn.0 & !(PAGEBLOCK_NR_PAGES - 1);
        let last = first | (PAGEBLOCK_NR_PAGES - 1);
        (self.spans(first) && self.spans(last)).then_some(Pfn(first))
    }

    /// Free blocks of each order, as in /proc/buddyinfo.
    pub fn buddyinfo(&self) -> [u64; NR_PAGE_ORDERS] {
        core::array::from_fn(|order| self.free_area[order].nr_free)
    }

    /// Free blocks of each order on the lists of one type, as in /proc/pagetypeinfo.
    pub fn pagetypeinfo(&self, mt: MigrateType) -> [u64; NR_PAGE_ORDERS] {
        core::array::from_fn(|order| self.free_area[order].lists[mt].len)
    }

    /// Number of pageblocks of each type, by [`MigrateType::idx`], as in the last table of
    /// /proc/pagetypeinfo. Partial pageblocks count too.
    pub fn block_counts(&self) -> [u64; MigrateType::COUNT] {
        let mut counts = [0; MigrateType::COUNT];
        for mt in &self.pageblocks {
            counts[*mt as usize] += 1;
        }
        counts
    }

    /// Whether a block of at least `order` is free on a list for ordinary requests, or on the
    /// high-atomic or CMA list if `flags` permit it.
    #[inline]
    pub fn has_free_block(&self, order: Order, flags: &AllocFlags) -> bool {
        let reserve = usize::from(flags.may_use_highatomic());
        let last = MigrateType::PCP_COUNT + reserve;
        self.free_area.iter().skip(order.into()).any(|area| {
            area.nr_free > 0
                && (area.lists[..last].iter().any(|list| !list.is_empty())
                    || flags.cma && !area.lists[MigrateType::Cma].is_empty())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::zone_type::ZONE_NORMAL;

    #[test]
    fn every_mark_carries_the_boost() {
        let mut zone = Zone::new(ZONE_NORMAL, NodeId(0), Pfn(0), 4096, 1);
        (zone.watermark_min, zone.watermark_low, zone.watermark_high) = (10, 20, 30);
        zone.watermark_boost = 512;
        assert_eq!(zone.wmark(Watermark::Min), 522);
        assert_eq!(zone.wmark(Watermark::Low), 532);
        assert_eq!(zone.wmark(Watermark::High), 542);
        assert_eq!(zone.wmark(Watermark::None), 0);
    }

    #[test]
    fn a_partial_pageblock_is_not_whole() {
        // Frames 256 to 1535: half a block, one whole block, and a whole one up to the end.
        let zone = Zone::new(ZONE_NORMAL, NodeId(0), Pfn(256), 1280, 1);
        assert_eq!(zone.block_counts()[MigrateType::Movable as usize], 3);
        assert_eq!(zone.whole_block(Pfn(300)), None);
        assert_eq!(zone.whole_block(Pfn(513)), Some(Pfn(512)));
        assert_eq!(zone.whole_block(Pfn(1535)), Some(Pfn(1024)));
        assert!(!zone.spans(255) && zone.spans(256) && zone.spans(1535) && !zone.spans(1536));
    }
}
