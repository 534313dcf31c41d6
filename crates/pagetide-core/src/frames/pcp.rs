//! Per-CPU lists of free pages: the fast path of the allocator.
//!
//! Linux: `struct per_cpu_pages`, `rmqueue_pcplist`, `free_unref_page_commit`,
//! `free_pcppages_bulk`, `zone_batchsize`, `zone_highsize` (mm/page_alloc.c, 6.1). Each CPU keeps
//! freed pages of orders 0 to 3 in lists by order and migrate type, and blocks of pageblock order
//! in one list (`NR_PCP_THP`). The page that was freed last is allocated first. An empty list is
//! refilled with a batch from the buddy lists. A set that has grown to `high` pages returns its
//! oldest pages. While a CPU only frees, the number of pages returned at a time grows.
//!
//! A list is an array of frame numbers and is not linked through the page array. So taking or
//! freeing a page touches no other page's descriptor, which halves the cost of the two operations.
//! Returning the oldest pages shifts the other entries down, once per batch.
//!
//! Invariant: `count` is the number of pages on the lists. The head of a block on a list has
//! [`Place::Pcp`] and empty links; `private` is the migrate type of the list to which it returns.
//! The other frames of a larger block have [`Place::BuddyTail`].

use crate::config::FallbackPolicy;
pub use crate::config::PcpPolicy;

use crate::frames::buddy::clear_page;
use crate::frames::fallback::{FallbackLog, FallbackResult, RefillMode};
use crate::frames::gfp::{AllocFlags, MigrateType};
use crate::frames::page::Place;
use crate::frames::page_array::PageArray;
use crate::frames::zone::Zone;
use crate::units::digest::State;
use crate::units::page_size::PageSize;
use crate::units::{Cpu, Order, Pfn, PAGEBLOCK_ORDER, PAGE_ALLOC_COSTLY_ORDER};
use alloc::vec::Vec;

/// Number of the lists of orders 0 to 3, by migrate type (Linux `NR_LOWORDER_PCP_LISTS`).
const NR_LOWORDER_PCP_LISTS: usize =
    (PAGE_ALLOC_COSTLY_ORDER as usize + 1) * MigrateType::PCP_COUNT;
/// Number of lists of one set: the lists above, and one for huge pages of any type.
pub const NR_PCP_LISTS: usize = NR_LOWORDER_PCP_LISTS + 1;

/// One CPU's free pages of one zone.
#[derive(Clone, Debug, State)]
pub struct Pcp {
    /// Pages on all lists.
    pub count: u32,
    /// A set that has this many pages returns some of them to the buddy lists.
    pub high: u32,
    /// Number of pages moved at a time.
    pub batch: u32,
    /// How much frees have enlarged the batch, halved by each allocation: the number of doublings,
    /// or of pages freed in a row (since 6.7).
    pub frees: u32,
    /// The policy that determines the size of the set.
    pub policy: PcpPolicy,
    pub(super) tuning: PcpTuning,
    /// Heads of blocks, oldest first.
    pub(crate) lists: [Vec<Pfn>; NR_PCP_LISTS],
}

/// Part of the zone that all sets together may hold (Linux `MIN_PERCPU_PAGELIST_HIGH_FRACTION`).
const HIGH_FRACTION: u64 = 8;

/// How a set adapts to its CPU ([`super::pcp_tuning`]).
#[derive(Clone, Copy, Debug, Default, State)]
pub struct PcpTuning {
    /// Smallest limit of the set.
    pub high_min: u32,
    /// Largest limit.
    pub high_max: u32,
    /// How often refills have doubled the next one; each free halves it.
    pub(super) alloc_factor: u8,
    /// The last free was of a block of order 1 to 3.
    pub(super) freed_larger: bool,
}

impl Pcp {
    /// An empty set that keeps no pages: its state until boot sets its size.
    pub(crate) fn new() -> Pcp {
        Pcp {
            count: 0,
            high: 0,
            batch: 1,
            frees: 0,
            policy: PcpPolicy::default(),
            tuning: PcpTuning::default(),
            lists: Default::default(),
        }
    }

    /// List of blocks of `order` and type `mt`. Types without a list share the movable one.
    #[inline]
    pub(crate) const fn list_index(order: Order, mt: MigrateType) -> usize {
        if order > PAGE_ALLOC_COSTLY_ORDER {
            return NR_LOWORDER_PCP_LISTS;
        }
        let mt = if mt.is_mergeable() { mt } else { MigrateType::Movable };
        order as usize * MigrateType::PCP_COUNT + mt as usize
    }

    /// Order of the blocks on a list.
    #[inline]
    pub(crate) const fn list_order(index: usize) -> Order {
        if index == NR_LOWORDER_PCP_LISTS {
            PAGEBLOCK_ORDER
        } else {
            (index / MigrateType::PCP_COUNT) as Order
        }
    }

    /// Whether the set keeps blocks of `order` (Linux `pcp_allowed_order`, with huge pages).
    #[inline]
    pub(crate) const fn keeps(&self, order: Order) -> bool {
        order <= PAGE_ALLOC_COSTLY_ORDER
            || order == PAGEBLOCK_ORDER && !matches!(self.policy, PcpPolicy::Linux2637)
    }

    /// The current limit of `count`; 0 for `free_high`, and where each free tunes the set (Linux
    /// `nr_pcp_high`).
    #[inline]
    pub(crate) const fn high_now(&self, reclaim_active: bool, free_high: bool) -> u32 {
        if matches!(self.policy, PcpPolicy::Linux612) {
            return 0;
        }
        if (free_high || reclaim_active) && matches!(self.policy, PcpPolicy::Linux61) {
            let short = if free_high { 0 } else { self.batch << 2 };
            if short < self.high {
                return short;
            }
        }
        self.high
    }

    /// Number of pages to return after a free that has filled the set (Linux `nr_pcp_free`).
    fn pages_to_free(&mut self, high: u32, free_high: bool) -> u32 {
        if self.policy == PcpPolicy::Linux2637 {
            return self.batch;
        }
        if free_high {
            return self.count;
        }
        if high < self.batch {
            return 1;
        }
        let most = u64::from(high - self.batch);
        let scaled = u64::from(self.batch) << self.frees;
        if scaled < most {
            self.frees += 1;
        }
        // `most` is below `batch` only when `high` is below twice the batch.
        scaled.min(most).max(self.batch.into()) as u32
    }

    /// Number of blocks with which to refill the list of `order`. With a batch of one the set is
    /// too small to keep any pages.
    const fn refill_blocks(&self, order: Order) -> u32 {
        if self.batch <= 1 {
            return self.batch;
        }
        let blocks = self.batch >> order;
        if blocks < 2 {
            2
        } else {
            blocks
        }
    }
}

/// Number of pages moved at a time between a zone and its per-CPU sets (Linux `zone_batchsize`). It
/// is a quarter of a thousandth of the zone, at most a quarter of 1 MiB, reduced to one less than a
/// power of two, so that sets do not align with power-of-two strides of pages.
pub const fn zone_batchsize(managed: u64, page_size: PageSize) -> u32 {
    let mib = page_size.pages_in(1 << 20);
    let thousandth = managed >> 10;
    let batch = if thousandth < mib { thousandth } else { mib } / 4;
    let batch = if batch < 1 { 1 } else { batch };
    let power = (batch + batch / 2).ilog2();
    let batch = (1 << power) - 1;
    if batch < 1 {
        1
    } else {
        batch
    }
}

/// Number of pages that a per-CPU set may hold (Linux `zone_highsize`). The CPUs share the low
/// watermark, so that full sets alone do not wake kswapd. But each CPU gets at least four batches.
pub fn zone_highsize(watermark_low: u64, batch: u32, nr_cpus: u16) -> u32 {
    let share = watermark_low / u64::from(nr_cpus.max(1));
    let share = u32::try_from(share).unwrap_or(u32::MAX);
    share.max(batch << 2)
}

impl Zone {
    /// Sets batch and high of all per-CPU sets (Linux `zone_pcp_update`). Lists that are now too
    /// long shrink at the next free.
    pub(crate) fn size_pcps(
        &mut self,
        managed: u64,
        nr_cpus: u16,
        policy: PcpPolicy,
        page_size: PageSize,
    ) {
        let low = self.watermark_low + self.watermark_boost;
        let mut tuning = PcpTuning::default();
        let (batch, high) = match policy {
            PcpPolicy::Linux61 | PcpPolicy::Linux612 => {
                let batch = zone_batchsize(managed, page_size);
                let high = zone_highsize(low, batch, nr_cpus);
                tuning.high_min = high;
                tuning.high_max = zone_highsize(managed / HIGH_FRACTION, batch, nr_cpus).max(high);
                (batch, high)
            }
            PcpPolicy::Linux2637 => {
                let batch = zone_batchsize(managed, page_size).min(31);
                (batch, 6 * batch)
            }
        };
        for pcp in &mut self.pcps {
            pcp.batch = batch;
            if pcp.policy == policy && policy == PcpPolicy::Linux612 {
                // Only the limits change; the set stays as its CPU has made it.
                (pcp.tuning.high_min, pcp.tuning.high_max) = (tuning.high_min, tuning.high_max);
                continue;
            }
            pcp.high = high;
            if pcp.policy != policy {
                pcp.frees = 0;
            }
            pcp.policy = policy;
            pcp.tuning = tuning;
        }
    }

    /// Takes a block from the CPU's set, and refills the list if it is empty (Linux
    /// `rmqueue_pcplist` without its accounting). The head keeps [`Place::Pcp`]. Also returns the
    /// number of buddy operations, one per refilled block.
    pub(crate) fn pcp_take(
        &mut self,
        pages: &mut PageArray,
        notes: &mut FallbackLog<'_>,
        cpu: Cpu,
        request: PcpRequest,
    ) -> (Option<Pfn>, u32) {
        let index = Pcp::list_index(request.order, request.mt);
        let mut buddy_ops = 0;
        if self.pcps[cpu].lists[index].is_empty() {
            buddy_ops = self.pcp_refill(pages, notes, cpu, request);
        }
        let pcp = &mut self.pcps[cpu];
        let pfn = pcp.lists[index].pop();
        if pfn.is_some() {
            pcp.count -= 1 << request.order;
        }
        (pfn, buddy_ops)
    }

    /// Whether the sets keep blocks of `order`. A zone with CMA keeps no huge pages there: their
    /// list has no types, so an unmovable request could get a CMA block (as in Linux 6.0 to 6.10).
    #[inline]
    pub(crate) fn pcp_keeps(&self, cpu: Cpu, order: Order) -> bool {
        order <= PAGE_ALLOC_COSTLY_ORDER || self.cma_pages == 0 && self.pcps[cpu].keeps(order)
    }

    /// Takes a run of up to `count` blocks for a refill, from the lists of the request's type or of
    /// CMA. Also returns the type.
    fn take_run_for(
        &mut self,
        pages: &mut PageArray,
        request: &PcpRequest,
        count: u32,
    ) -> Option<(Pfn, u32, MigrateType)> {
        let PcpRequest { order, mt, flags } = *request;
        if self.cma_pages > 0 && flags.cma {
            return self.take_run_beside_cma(pages, request, count);
        }
        self.take_run(pages, order, mt, count).map(|(first, nr)| (first, nr, mt))
    }

    #[inline(never)]
    fn take_run_beside_cma(
        &mut self,
        pages: &mut PageArray,
        request: &PcpRequest,
        count: u32,
    ) -> Option<(Pfn, u32, MigrateType)> {
        let PcpRequest { order, mt, flags } = *request;
        let surplus = self.cma_surplus(&flags).div_ceil(1 << order);
        let from_cma = u64::from(count).min(surplus) as u32;
        let runs = [(MigrateType::Cma, from_cma), (mt, count), (MigrateType::Cma, count)];
        runs.iter().filter(|(_, count)| *count > 0).find_map(|&(mt, count)| {
            self.take_run(pages, order, mt, count).map(|(first, nr)| (first, nr, mt))
        })
    }

    /// Takes a batch for an empty list, in runs of neighbouring blocks, to be used in address
    /// order.
    fn pcp_refill(
        &mut self,
        pages: &mut PageArray,
        notes: &mut FallbackLog<'_>,
        cpu: Cpu,
        request: PcpRequest,
    ) -> u32 {
        let PcpRequest { order, mt, flags } = request;
        let want = match self.pcps[cpu].policy {
            PcpPolicy::Linux612 => self.tuned_refill(cpu, order),
            PcpPolicy::Linux61 | PcpPolicy::Linux2637 => self.pcps[cpu].refill_blocks(order),
        };
        let (mut got, mut single) = (0, None);
        self.stat.this_cpu = cpu;
        let mut list = core::mem::take(&mut self.pcps[cpu].lists[Pcp::list_index(order, mt)]);
        while got < want {
            if let Some((first, nr, mt)) = self.take_run_for(pages, &request, want - got) {
                let frames = first.idx()..first.idx() + ((nr as usize) << order);
                for page in pages[frames].iter_mut().step_by(1 << order) {
                    page.place = Place::Pcp;
                    page.private = mt as u32;
                    page.index = 0;
                }
                list.extend((0..nr).map(|i| Pfn(first.0 + (i << order))));
                got += nr;
                continue;
            }
            match self.steal(pages, notes, (order, mt), flags, RefillMode::Lists) {
                Some(FallbackResult::OnLists) => {}
                Some(FallbackResult::Taken(pfn)) => {
                    single = Some(pfn);
                    break;
                }
                None => break,
            }
        }
        let index = Pcp::list_index(order, mt);
        self.pcps[cpu].lists[index] = list;
        if let Some(pfn) = single {
            got += self.refill_singly(pages, notes, cpu, request, pfn, want - got);
        }
        self.stat.add(-(i64::from(got) << order));
        let pcp = &mut self.pcps[cpu];
        // The block that was taken first is allocated first.
        pcp.lists[index].reverse();
        pcp.count += got << order;
        if pcp.policy == PcpPolicy::Linux612 {
            self.note_below_high();
        }
        got
    }

    /// Goes on with a refill that had to take a single block, `pfn`: up to `count` blocks are taken
    /// one by one. Returns their number.
    #[inline(never)]
    fn refill_singly(
        &mut self,
        pages: &mut PageArray,
        notes: &mut FallbackLog<'_>,
        cpu: Cpu,
        request: PcpRequest,
        pfn: Pfn,
        count: u32,
    ) -> u32 {
        let PcpRequest { order, mt, flags } = request;
        let mut next = Some(FallbackResult::Taken(pfn));
        let mut got = 0;
        while let Some(FallbackResult::Taken(pfn)) = next {
            let page = &mut pages[pfn];
            page.place = Place::Pcp;
            page.private = mt as u32;
            page.index = 0;
            self.pcps[cpu].lists[Pcp::list_index(order, mt)].push(pfn);
            got += 1;
            if got == count {
                break;
            }
            next = self.steal(pages, notes, (order, mt), flags, RefillMode::Steals);
        }
        got
    }

    /// Frees a block to the CPU's set (Linux `free_unref_page_commit`). Returns how many blocks
    /// moved on to the buddy lists.
    #[inline]
    pub(crate) fn pcp_give(
        &mut self,
        pages: &mut PageArray,
        cpu: Cpu,
        pfn: Pfn,
        order: Order,
        mt: MigrateType,
    ) -> u32 {
        let page = &mut pages[pfn];
        clear_page(page, Place::Pcp);
        page.private = mt as u32;
        let index = Pcp::list_index(order, mt);
        let pcp = &mut self.pcps[cpu];
        pcp.lists[index].push(pfn);
        pcp.count += 1 << order;
        if pcp.policy == PcpPolicy::Linux612 {
            return self.tuned_shrink(pages, cpu, order, index);
        }
        // Larger blocks that a set keeps cause fragmentation, but whole pageblocks do not. So keep
        // no larger blocks while a CPU frees many.
        let free_high = order > 0 && order <= PAGE_ALLOC_COSTLY_ORDER && pcp.frees > 0;
        let high = pcp.high_now(self.reclaim_active, free_high);
        if pcp.count < high {
            return 0;
        }
        let nr = pcp.pages_to_free(high, free_high);
        self.pcp_shrink(pages, cpu, nr, index)
    }

    /// Returns at least `nr` pages of the CPU's set (or all, if it has fewer) to the buddy lists.
    /// Starts with list `index`; the oldest blocks of a list go first (Linux `free_pcppages_bulk`).
    /// Returns the number of blocks.
    #[inline(never)]
    pub(super) fn pcp_shrink(
        &mut self,
        pages: &mut PageArray,
        cpu: Cpu,
        nr: u32,
        index: usize,
    ) -> u32 {
        let mut left = nr.min(self.pcps[cpu].count);
        let mut blocks = 0;
        self.stat.this_cpu = cpu;
        for step in 0..NR_PCP_LISTS {
            if left == 0 {
                break;
            }
            let at = (index + step) % NR_PCP_LISTS;
            let order = Pcp::list_order(at);
            let mut list = core::mem::take(&mut self.pcps[cpu].lists[at]);
            let nr = (left.div_ceil(1 << order) as usize).min(list.len());
            self.free_oldest(pages, &list[..nr], order);
            list.drain(..nr);
            let pcp = &mut self.pcps[cpu];
            pcp.lists[at] = list;
            pcp.count -= (nr as u32) << order;
            left = left.saturating_sub((nr as u32) << order);
            blocks += nr as u32;
        }
        blocks
    }

    /// Returns blocks of `order` from a per-CPU list to the buddy lists, in their order.
    ///
    /// Blocks that together form one larger block, in address order, are merged first. If they were
    /// freed one by one, the result would be the same block in the same place, because none of them
    /// can merge with other blocks until all of them are free.
    pub(crate) fn free_oldest(&mut self, pages: &mut PageArray, blocks: &[Pfn], order: Order) {
        let mut rest = blocks;
        while let Some(&first) = rest.first() {
            let larger = whole_run(pages, rest, order);
            let nr = 1 << (larger - order);
            for pfn in &rest[1..nr] {
                let tail = &mut pages[*pfn];
                tail.place = Place::BuddyTail;
                tail.private = 0;
            }
            let mt = MigrateType::from_raw(pages[first].private);
            let mt = self.pcp_return_type(mt, first);
            self.free_parts(pages, first, larger, mt, nr as u32);
            rest = &rest[nr..];
        }
    }

    /// Type of the list to which a block returns. This is the type with which it was freed or
    /// taken, unless its pageblock has since been reserved, isolated or released. Linux checks the
    /// pageblock only while some pageblock is isolated, so it can lose track of its reserve. Since
    /// 6.10 the pageblock's type always decides.
    #[inline]
    fn pcp_return_type(&self, mt: MigrateType, pfn: Pfn) -> MigrateType {
        let block_mt = self.block_type(pfn);
        let keeps = self.fallback != FallbackPolicy::Linux612;
        if keeps && mt.is_mergeable() && block_mt.is_mergeable() {
            mt
        } else {
            block_mt
        }
    }

    /// Returns all pages of the CPU's set (Linux `drain_pages_zone`). Returns the number of blocks.
    pub(crate) fn pcp_drain(&mut self, pages: &mut PageArray, cpu: Cpu) -> u32 {
        self.pcp_shrink(pages, cpu, u32::MAX, 0)
    }
}

/// Order of the largest block, at most a pageblock, that the first entries of `blocks` form. All
/// entries have `order` and the same type, and each follows the previous one.
fn whole_run(pages: &PageArray, blocks: &[Pfn], order: Order) -> Order {
    let first = blocks[0];
    let private = pages[first].private;
    let aligned = (first.0 | 1 << PAGEBLOCK_ORDER).trailing_zeros() - u32::from(order);
    let most = blocks.len().min(1 << aligned);
    let follows = |(nth, pfn): &(usize, &Pfn)| {
        pfn.0 == first.0 + ((*nth as u32) << order) && pages[**pfn].private == private
    };
    let run = blocks[..most].iter().enumerate().take_while(follows).count();
    order + run.ilog2() as Order
}

/// A request to a per-CPU set.
#[derive(Clone, Copy)]
pub(crate) struct PcpRequest {
    /// Order of the block; the set keeps blocks of this order.
    pub order: Order,
    /// Migrate type: one of the three ordinary types.
    pub mt: MigrateType,
    /// Flags of the allocation attempt.
    pub flags: AllocFlags,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_follows_the_size_of_the_zone() {
        assert_eq!(zone_batchsize(0, PageSize::Kib4), 1);
        assert_eq!(zone_batchsize(3840, PageSize::Kib4), 1);
        assert_eq!(zone_batchsize(51_806, PageSize::Kib4), 15);
        assert_eq!(zone_batchsize(116_222, PageSize::Kib4), 31);
        assert_eq!(zone_batchsize(16 << 18, PageSize::Kib4), 63);
        assert_eq!(zone_batchsize(u64::MAX, PageSize::Kib4), 63);
        assert_eq!(zone_batchsize(u64::MAX, PageSize::Kib16), 15);
        assert_eq!(zone_batchsize(u64::MAX, PageSize::Kib64), 3);
    }

    #[test]
    fn high_is_the_low_mark_shared_out_but_at_least_four_batches() {
        assert_eq!(zone_highsize(532, 15, 1), 532);
        assert_eq!(zone_highsize(532, 15, 4), 133);
        assert_eq!(zone_highsize(532, 15, 64), 60);
        assert_eq!(zone_highsize(532, 15, 0), 532);
    }

    #[test]
    fn frees_without_allocations_give_back_ever_more() {
        let mut pcp = Pcp { count: 500, high: 500, batch: 63, ..Pcp::new() };
        let freed: [u32; 5] = core::array::from_fn(|_| pcp.pages_to_free(500, false));
        assert_eq!(freed, [63, 126, 252, 437, 437]);
        assert_eq!(pcp.frees, 3);
        assert_eq!(pcp.pages_to_free(0, true), 500);
    }

    #[test]
    fn active_reclaim_keeps_sets_short() {
        let pcp = Pcp { high: 500, batch: 63, ..Pcp::new() };
        assert_eq!(pcp.high_now(false, false), 500);
        assert_eq!(pcp.high_now(true, false), 252);
        assert_eq!(pcp.high_now(true, true), 0);
    }
}
