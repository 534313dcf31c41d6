//! Decides about each page of a batch that ageing has isolated.
//!
//! Linux: `shrink_folio_list`, `shrink_inactive_list` (6.1). A page that was
//! referenced once stays. A page that was referenced twice, or by two mappings, or that is
//! executable, is activated. Dirty file pages are left to the writeback thread. Anonymous pages go
//! to swap. A clean, unmapped page is freed and leaves a shadow.
//!
//! A batch is atomic: nothing else runs between isolation and putback. So `nr_isolated_*` is 0
//! between steps and too-many-isolated throttling cannot occur (Linux needs it because its batches
//! overlap).

use super::ScanControl;
use crate::ageing::scan::EvictionBatch;
use crate::ageing::shadow::Shadow;
use crate::frames::gfp::Gfp;
use crate::frames::page::{PageFlags, Place};
use crate::groups::memcg::MemoryEvent;
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::interface::owners::{BackingStore, OwnerSlot, UnmapTarget};
use crate::stats::event::TraceEvent;
use crate::stats::vmstat::Event;
use crate::swap::SwapStore;
use crate::units::{MemcgId, NodeId, Pfn, SwapSlot, DEF_PRIORITY, HPAGE_PMD_NR};
use alloc::vec::Vec;

/// Counts of a batch (Linux `struct reclaim_stat`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReclaimStat {
    dirty: u64,
    unqueued_dirty: u64,
    congested: u64,
    writeback: u64,
    immediate: u64,
    pageout: u64,
    pub(super) activate: u64,
    ref_keep: u64,
    /// Frames of huge pages that were freed.
    pub(super) freed_huge: u64,
    /// The place of a page that stays.
    stays: StayingPage,
}

/// The place of a page that reclaim leaves in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StayingPage {
    /// It returns to the list that its flags name.
    #[default]
    Returns,
    /// Under generations: it becomes young, unless it waits for a write or may be freed at a second
    /// look.
    BecomesYoung { may_retry: bool },
}

enum ShrinkVerdict {
    Freed,
    Keep,
    Activate,
}

/// Decision about a page by its references (Linux `enum folio_references`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum PageVerdict {
    Reclaim,
    /// Reclaim the page if it need not be written.
    ReclaimClean,
    Keep,
    Activate,
}

impl Kernel {
    /// Takes the swap slots of a page; releases them if the group is at its swap limit (Linux
    /// `folio_alloc_swap`). Returns the first slot.
    fn swap_alloc(&mut self, pfn: Pfn, ctx: &Ctx) -> Option<SwapSlot> {
        let page = &self.mem.pages[pfn];
        let (memcg, nr) = (page.memcg, page.nr_pages());
        let slot = match nr {
            1 => self.swap.alloc(pfn, memcg),
            _ => self.swap.alloc_cluster(pfn, memcg),
        };
        if let Some(first) = slot {
            if self.try_charge_swap(memcg, nr) {
                if self.swap.takes_memory {
                    for slot in (first.0..first.0 + nr as u32).map(SwapSlot) {
                        self.add_cache_entry(slot, ctx);
                    }
                }
                return slot;
            }
        }
        if !self.era.counts_memory_and_swap {
            self.groups.memory_event(memcg, MemoryEvent::SwapFail);
        }
        if let Some(first) = slot {
            for slot in (first.0..first.0 + nr as u32).map(SwapSlot) {
                let _ = self.swap[slot].remove_from_cache(slot, Shadow::NONE);
            }
        }
        None
    }

    /// Where a page goes that cannot be freed before its write has ended.
    fn spared_for_write(&self) -> ShrinkVerdict {
        match self.era.keeps_unwritten {
            true => ShrinkVerdict::Keep,
            false => ShrinkVerdict::Activate,
        }
    }

    /// Whether reclaim itself may write a dirty file page. Only kswapd may, if it meets the page
    /// again and the node has only dirty pages at the tail.
    fn may_write_file_page(&self, pfn: Pfn, sc: &ScanControl) -> bool {
        let page = &self.mem.pages[pfn];
        let is_late = sc.goal.priority < DEF_PRIORITY - 2;
        self.writes_files(&sc.goal)
            || (self.era.kswapd_writes_files_late && sc.goal.is_kswapd() && is_late)
            || (sc.goal.is_kswapd()
                && page.has(PageFlags::RECLAIM)
                && self.mem.pgdat[page.node()].dirty)
    }
}

impl Kernel {
    /// Puts back a page that stays in memory, under generations (Linux `evict_folios`).
    #[inline(never)]
    fn put_back_young(&mut self, pfn: Pfn, may_retry: bool) {
        let page = &mut self.mem.pages[pfn];
        let unwritten = page.flags.any(PageFlags::DIRTY.with(PageFlags::WRITEBACK));
        if page.has(PageFlags::MLOCKED) {
            // It goes to the unevictable list.
        } else if page.has(PageFlags::RECLAIM) && unwritten {
            // Its uses were forgotten when it was isolated.
            if page.has(PageFlags::WORKINGSET) {
                page.set(PageFlags::REFERENCED);
            }
        } else if may_retry
            && !unwritten
            && page.mapcount == 0
            && !page
                .flags
                .any(PageFlags::ACTIVE.with(PageFlags::REFERENCED).with(PageFlags::LOCKED))
        {
            self.step.scratch_retry.push(pfn);
            return;
        } else {
            page.forget_uses();
            page.set(PageFlags::ACTIVE);
        }
        self.putback_page(pfn);
    }

    /// Marks a page as used. Returns the number of pages that count as activated.
    fn mark_active(&mut self, pfn: Pfn) -> u64 {
        let page = &mut self.mem.pages[pfn];
        if page.has(PageFlags::MLOCKED) {
            return 0;
        }
        page.set(PageFlags::ACTIVE);
        page.nr_pages()
    }
}

impl<O: Owners> Manager<O> {
    /// Decides about each page of a batch from the lists of `memcg`; returns how many were freed
    /// (Linux `shrink_inactive_list`).
    pub(crate) fn shrink_batch(
        &mut self,
        batch: EvictionBatch,
        memcg: MemcgId,
        node: NodeId,
        sc: &mut ScanControl,
        ctx: &Ctx,
    ) -> u64 {
        let EvictionBatch { file, nr_scanned, nr_taken, mut taken } = batch;
        let event = if sc.goal.is_kswapd() { Event::PgscanKswapd } else { Event::PgscanDirect };
        self.groups.memcgs[memcg].events.add(event, nr_scanned);
        // Reclaim for a group says nothing about memory pressure on the whole machine.
        if !sc.goal.is_for_group() {
            self.mem.vmstat.add(event, nr_scanned);
        }
        self.mem.vmstat.add(if file { Event::PgscanFile } else { Event::PgscanAnon }, nr_scanned);
        if nr_taken == 0 {
            self.step.scratch = taken;
            return 0;
        }
        let by_generation = self.era.generations;
        let mut stat = ReclaimStat::default();
        if by_generation {
            stat.stays = StayingPage::BecomesYoung { may_retry: true };
        }
        let mut freed = core::mem::take(&mut self.step.scratch_free);
        let unmapped_before = self.mem.work.rmap_walks;
        for &pfn in &taken {
            let was_huge = self.mem.pages[pfn].has(PageFlags::HEAD);
            self.judge_page(pfn, file, sc, &mut stat, &mut freed, ctx);
            // If this huge page was split for swap, its other pages are judged together with the
            // first.
            if was_huge && self.mem.pages[pfn.idx() + 1].place == Place::Isolated {
                for tail in pfn.0 + 1..pfn.0 + HPAGE_PMD_NR as u32 {
                    self.judge_page(Pfn(tail), file, sc, &mut stat, &mut freed, ctx);
                }
            }
        }
        if by_generation {
            // Some may have been written since the first look.
            stat.stays = StayingPage::BecomesYoung { may_retry: false };
            let mut again = core::mem::take(&mut self.step.scratch_retry);
            for pfn in again.drain(..) {
                self.judge_page(pfn, file, sc, &mut stat, &mut freed, ctx);
            }
            self.step.scratch_retry = again;
        }
        if self.mem.work.rmap_walks != unmapped_before {
            self.mem.work.tlb_flushes += 1;
        }
        let nr_reclaimed = freed.len() as u64 + stat.freed_huge;
        for &pfn in &freed {
            self.mem.pages[pfn].place = Place::Allocated;
        }
        self.uncharge_batch(ctx.cpu, &freed, memcg);
        self.mem.free_batch(ctx.cpu, &freed);
        freed.clear();
        self.step.scratch_free = freed;
        taken.clear();
        self.step.scratch = taken;

        let events = &mut self.kernel.groups.memcgs[memcg].events;
        let event = if sc.goal.is_kswapd() { Event::PgstealKswapd } else { Event::PgstealDirect };
        events.add(event, nr_reclaimed);
        if !sc.goal.is_for_group() || self.kernel.era.counts_all_steals {
            self.kernel.mem.vmstat.add(event, nr_reclaimed);
        }
        events.add(Event::Pgactivate, stat.activate);
        self.mem.vmstat.add(Event::Pgactivate, stat.activate);
        self.mem
            .vmstat
            .add(if file { Event::PgstealFile } else { Event::PgstealAnon }, nr_reclaimed);
        if by_generation && !self.era.evicts_unwritten {
            // Linux 6.1 neither records such a batch nor draws conclusions from it.
            return nr_reclaimed;
        }
        if !by_generation {
            self.lru_note_cost(memcg, node, file, stat.pageout);
            let zone = sc.rules.only_zone.unwrap_or(0);
            self.note_recent(memcg, (node, zone), file, nr_taken, stat.activate);
            if stat.unqueued_dirty == nr_taken {
                O::wake_writeback(self);
            }
        }
        self.kernel.mem.events.record(TraceEvent::MmVmscanLruShrinkInactive {
            nid: node,
            memcg,
            nr_scanned: nr_scanned as u32,
            nr_taken: nr_taken as u32,
            nr_reclaimed: nr_reclaimed as u32,
            nr_dirty: stat.dirty as u32,
            nr_writeback: stat.writeback as u32,
            nr_congested: stat.congested as u32,
            nr_immediate: stat.immediate as u32,
            nr_activate: stat.activate as u32,
            nr_ref_keep: stat.ref_keep as u32,
            priority: self.kernel.mem.events.priority,
            file,
        });
        let tally = &mut sc.found.tally;
        tally.unqueued_dirty += stat.unqueued_dirty;
        if file {
            tally.file_taken += nr_taken;
        }
        if by_generation {
            return nr_reclaimed;
        }
        tally.dirty += stat.dirty;
        tally.congested += stat.congested;
        tally.writeback += stat.writeback;
        tally.immediate += stat.immediate;
        tally.taken += nr_taken;
        nr_reclaimed
    }

    /// Processes one page of a batch: freed, or back on a list.
    #[inline]
    pub(super) fn judge_page(
        &mut self,
        pfn: Pfn,
        file: bool,
        sc: &mut ScanControl,
        stat: &mut ReclaimStat,
        freed: &mut Vec<Pfn>,
        ctx: &Ctx,
    ) {
        let verdict = self.shrink_page(pfn, file, sc, stat, ctx);
        let page = &self.mem.pages[pfn];
        // If a huge page was just split, this is only its first page.
        let nr = page.nr_pages();
        sc.found.nr_scanned += nr;
        match verdict {
            ShrinkVerdict::Freed if nr > 1 => {
                self.free_reclaimed_huge_page(pfn, ctx.cpu);
                stat.freed_huge += nr;
            }
            ShrinkVerdict::Freed => freed.push(pfn),
            ShrinkVerdict::Keep => match stat.stays {
                StayingPage::Returns => self.putback_page(pfn),
                StayingPage::BecomesYoung { may_retry } => self.put_back_young(pfn, may_retry),
            },
            ShrinkVerdict::Activate => {
                // A page that stays releases its swap slot if swap is short or if the page cannot
                // be swapped.
                if page.has(PageFlags::SWAPCACHE)
                    && page.mapcount > 0
                    && !page.has(PageFlags::WRITEBACK)
                    && (page.has(PageFlags::MLOCKED) || self.swap_is_full(page.memcg))
                {
                    self.delete_from_swap_cache(pfn, Default::default(), ctx.cpu);
                    self.mem.pages[pfn].set(PageFlags::DIRTY);
                }
                stat.activate += match stat.stays {
                    StayingPage::Returns => self.putback_active(pfn),
                    StayingPage::BecomesYoung { may_retry } => {
                        let nr = self.mark_active(pfn);
                        self.put_back_young(pfn, may_retry);
                        nr
                    }
                };
            }
        }
    }

    /// Takes the swap slots of a page. If there are not enough adjacent slots for a huge page, the
    /// page is split, and its first small page gets a slot.
    fn add_to_swap(&mut self, pfn: Pfn, ctx: &Ctx) -> Option<SwapSlot> {
        let page = &self.mem.pages[pfn];
        if page.has(PageFlags::HEAD) {
            // A page with another reference (such as a batch) cannot be split.
            if page.has(PageFlags::BATCHED) {
                return None;
            }
            if !self.era.splits_before_swap && !self.has_locked_part(pfn) {
                if let Some(slot) = self.swap_alloc(pfn, ctx) {
                    return Some(slot);
                }
            }
            if !self.split_huge_page(pfn) {
                return None;
            }
            self.mem.vmstat.count(Event::ThpSwpoutFallback);
            // A part of the huge page was locked, and this page belongs to that part.
            if self.mem.pages[pfn].has(PageFlags::MLOCKED) {
                return None;
            }
        }
        self.swap_alloc(pfn, ctx)
    }

    /// Decides about one page of `shrink_folio_list`. A page with the verdict `Freed` is detached
    /// from its owner, but its frame is not yet returned to the allocator.
    fn shrink_page(
        &mut self,
        pfn: Pfn,
        file: bool,
        sc: &ScanControl,
        stat: &mut ReclaimStat,
        ctx: &Ctx,
    ) -> ShrinkVerdict {
        let page = &self.mem.pages[pfn];
        if page.has(PageFlags::LOCKED) {
            return ShrinkVerdict::Keep;
        }
        if page.has(PageFlags::MLOCKED) {
            return ShrinkVerdict::Activate;
        }
        if !sc.may.unmap && page.mapcount > 0 {
            return ShrinkVerdict::Keep;
        }
        // Ageing has found it in use while it was isolated.
        if self.era.generations
            && !sc.may.ignore_references
            && page.mapcount > 0
            && page.has(PageFlags::REFERENCED)
        {
            return ShrinkVerdict::Keep;
        }
        // Anonymous pages become "dirty file-backed" only once they are in the swap cache.
        let has_backing = page.is_file_lru() || page.has(PageFlags::SWAPCACHE);
        let dirty = has_backing && file && page.has(PageFlags::DIRTY);
        let writeback = has_backing && page.has(PageFlags::WRITEBACK);
        if file && (dirty || writeback) {
            stat.dirty += 1;
        }
        if dirty && !writeback {
            stat.unqueued_dirty += 1;
        }
        if self.writes_files(&sc.goal) {
            stat.congested += u64::from(dirty && self.owners.is_write_congested());
            if page.has(PageFlags::WRITEBACK) {
                return ShrinkVerdict::Keep;
            }
        } else if file && writeback && page.has(PageFlags::RECLAIM) {
            stat.congested += 1;
        }
        if page.has(PageFlags::WRITEBACK) {
            let node = page.node();
            let marked = page.has(PageFlags::RECLAIM);
            if sc.goal.is_kswapd() && marked && self.mem.pgdat[node].writeback {
                stat.immediate += self.mem.pages[pfn].nr_pages();
            } else if sc.goal.is_for_group()
                && self.era.group_reclaim_awaits_writes
                && marked
                && (sc.goal.gfp.has(Gfp::FS) || (!file && sc.goal.gfp.has(Gfp::IO)))
            {
                self.step.legacy_wait = Some(pfn);
                return ShrinkVerdict::Keep;
            } else {
                let page = &mut self.mem.pages[pfn];
                page.set(PageFlags::RECLAIM);
                stat.writeback += page.nr_pages();
            }
            return self.spared_for_write();
        }
        let references = self.check_references(pfn, sc, ctx);
        match references {
            PageVerdict::Activate => return ShrinkVerdict::Activate,
            PageVerdict::Keep => {
                stat.ref_keep += self.mem.pages[pfn].nr_pages();
                return ShrinkVerdict::Keep;
            }
            PageVerdict::Reclaim | PageVerdict::ReclaimClean => {}
        }
        if self.mem.pages[pfn].has(PageFlags::PINNED) {
            return ShrinkVerdict::Keep;
        }
        let page = &self.mem.pages[pfn];
        if page.is_anon() && !page.has(PageFlags::SWAPCACHE) {
            if !sc.goal.gfp.has(Gfp::IO) {
                return ShrinkVerdict::Keep;
            }
            let Some(slot) = self.add_to_swap(pfn, ctx) else { return ShrinkVerdict::Activate };
            self.mem.mark_swap_cached(pfn, slot);
            self.mem.pages[pfn].set(PageFlags::DIRTY);
            self.mem.work.cache_ops += 1;
        }
        if self.mem.pages[pfn].mapcount > 0 {
            self.try_to_unmap(pfn);
            // Pinned by a user.
            if self.mem.pages[pfn].mapcount > 0 {
                return ShrinkVerdict::Activate;
            }
        }
        if self.mem.pages[pfn].has(PageFlags::DIRTY) {
            if file && !self.may_write_file_page(pfn, sc) {
                // The writeback thread will write it; free the page as soon as it has.
                self.mem.vmstat.count(Event::NrVmscanImmediateReclaim);
                self.mem.pages[pfn].set(PageFlags::RECLAIM);
                return self.spared_for_write();
            }
            let may_enter_fs = sc.goal.gfp.has(Gfp::FS) || (!file && sc.goal.gfp.has(Gfp::IO));
            if references == PageVerdict::ReclaimClean || !may_enter_fs || !sc.may.writepage {
                return ShrinkVerdict::Keep;
            }
            if file && !self.may_write_to_queue(&sc.goal) {
                return ShrinkVerdict::Keep;
            }
            stat.pageout += self.mem.pages[pfn].nr_pages();
            match self.pageout(pfn, ctx) {
                // A write that has ended at once leaves a clean page, which can be freed.
                SwapStore::Stored => {}
                SwapStore::Unfinished => return ShrinkVerdict::Keep,
                SwapStore::Refused => return ShrinkVerdict::Activate,
            }
        }
        // A page in another CPU's batch has one reference too many to be freed.
        if self.mem.pages[pfn].has(PageFlags::BATCHED) {
            return ShrinkVerdict::Keep;
        }
        let shadow = self.workingset_eviction(pfn, sc.goal.target);
        self.mem.work.cache_ops += 1;
        if self.mem.pages[pfn].has(PageFlags::SWAPCACHE) {
            self.delete_from_swap_cache(pfn, shadow, ctx.cpu);
        } else if self.mem.pages[pfn].has(PageFlags::FILE) {
            O::evict(self, pfn, shadow, ctx.cpu);
        }
        ShrinkVerdict::Freed
    }

    /// Writes a page so that it can be freed when the write has ended (Linux `pageout`).
    fn pageout(&mut self, pfn: Pfn, ctx: &Ctx) -> SwapStore {
        let nr = self.mem.pages[pfn].nr_pages();
        self.mem.vmstat.add(Event::NrVmscanWrite, nr);
        self.mem.pages[pfn].set(PageFlags::RECLAIM);
        let page = &mut self.mem.pages[pfn];
        if page.has(PageFlags::FILE) {
            O::write_page(self, pfn);
            return SwapStore::Unfinished;
        }
        self.swap_store(pfn, ctx)
    }

    /// Linux `folio_check_references`.
    #[inline]
    fn check_references(&mut self, pfn: Pfn, sc: &ScanControl, ctx: &Ctx) -> PageVerdict {
        if sc.may.ignore_references {
            return PageVerdict::Reclaim;
        }
        let (referenced_ptes, executable) = self.page_referenced(pfn, sc.goal.target, ctx);
        let referenced_page = self.mem.pages[pfn].test_clear(PageFlags::REFERENCED);
        let Kernel { mem, plugin, era, .. } = &mut self.kernel;
        let page = &mut mem.pages[pfn];
        if referenced_ptes > 0 {
            page.set(PageFlags::REFERENCED);
            let first_is_enough = !page.is_file_lru() && era.activates_new_anon;
            if referenced_page
                || plugin.pages.is_some()
                || referenced_ptes > 1
                || (executable && page.is_file_lru())
                || first_is_enough
            {
                return PageVerdict::Activate;
            }
            return PageVerdict::Keep;
        }
        if referenced_page && page.is_file_lru() {
            PageVerdict::ReclaimClean
        } else {
            PageVerdict::Reclaim
        }
    }

    /// Removes every entry of a page; for an anonymous page a swap entry replaces it.
    fn try_to_unmap(&mut self, pfn: Pfn) {
        let page = &self.mem.pages[pfn];
        if page.has(PageFlags::HEAD) {
            return self.unmap_huge(pfn);
        }
        let (at, mapcount, slot) = (OwnerSlot::of(page), page.mapcount, SwapSlot(page.private));
        let to = match at.store {
            BackingStore::Swap => UnmapTarget::Swapped(slot),
            BackingStore::Own => UnmapTarget::Unmapped,
        };
        let unmapped = self.owners.unmap(at, mapcount, to);
        self.mem.work.rmap_walks += unmapped.nr_entries_read;
        self.mem.work.ptes_set += u32::from(unmapped.nr);
        if at.store == BackingStore::Swap && unmapped.nr > 0 {
            self.swap[slot].map(slot);
        }
        for _ in 0..unmapped.nr {
            self.mem.page_remove_rmap(pfn);
        }
        if unmapped.dirty {
            match at.store {
                BackingStore::Swap => self.mem.pages[pfn].set(PageFlags::DIRTY),
                BackingStore::Own => O::dirtied(self, pfn),
            }
        }
    }
}
