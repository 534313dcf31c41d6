//! Huge pages at the page level: one entry of an LRU list for 512 frames, and its splitting.
//!
//! Linux: `split_huge_page` (mm/huge_memory.c, 6.1), `add_to_swap` (mm/swap_state.c). A huge page
//! is a block of [`HPAGE_PMD_NR`] frames. The first descriptor stands for the whole page: it is one
//! entry of an LRU list and has the group, the owner and the flags. The other descriptors
//! ([`Place::HugeTail`]) are empty.
//!
//! A huge page is swapped out in one piece if 512 adjacent slots are free; then it is in the swap
//! cache of all of them, and its frames are freed together after the write.
//!
//! Difference from Linux: a fault on a huge page in the swap cache splits the page. Linux maps the
//! faulting part and keeps the page in one piece, so that it can also be freed only as a whole.
//!
//! Invariant: the first page of a huge page is `HEAD` and `ANON`, aligned, of order 9, and on an
//! LRU list, in a batch, or isolated. It is mapped once at an `index` that is a multiple of 512, or
//! unmapped and pinned or in the swap cache. The 511 pages after it are `HugeTail` with empty
//! descriptors.

use crate::frames::page::{PageFlags, Place};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::{OwnerSlot, Owners, UnmapTarget};
use crate::stats::vmstat::{Event, NodeStat};
use crate::units::{Cpu, Pfn, SwapSlot, HPAGE_PMD_NR};

impl Kernel {
    /// The page in the swap cache of a slot; for a huge page, its first frame.
    pub(crate) fn swap_cache_head(&self, slot: SwapSlot) -> Option<Pfn> {
        let pfn = self.swap[slot].cached(slot)?;
        let is_tail = self.mem.pages[pfn].place == Place::HugeTail;
        Some(if is_tail { Pfn(pfn.0 / HPAGE_PMD_NR as u32 * HPAGE_PMD_NR as u32) } else { pfn })
    }

    /// The small page in the swap cache of a slot. A huge page is split, also while it is written:
    /// the end of the write is then the end for each of its pages.
    ///
    /// Parts whose entries are gone, which had to stay with the others, are freed; a part under
    /// writeback is freed by reclaim.
    pub(crate) fn swap_cache_page(&mut self, slot: SwapSlot, cpu: Cpu) -> Option<Pfn> {
        let head = self.swap_cache_head(slot)?;
        if self.mem.pages[head].has(PageFlags::HEAD) {
            if self.mem.pages[head].has(PageFlags::BATCHED)
                || self.mem.pages[head].place == Place::LruBatch
            {
                self.lru_add_drain_all();
            }
            let first = self.mem.pages[head].private;
            self.split_descriptors(head);
            for slot in (first..first + HPAGE_PMD_NR as u32).map(SwapSlot) {
                if !self.swap[slot].is_mapped(slot) {
                    self.free_cached_swap_page(slot, cpu);
                }
            }
        }
        self.swap[slot].cached(slot)
    }

    /// Frees a huge page that reclaim has detached from its owner and from the swap cache.
    pub(crate) fn free_reclaimed_huge_page(&mut self, head: Pfn, cpu: Cpu) {
        self.mem.pages[head].place = Place::Allocated;
        self.free_user_page(head, cpu);
    }

    fn split_descriptors(&mut self, head: Pfn) {
        let page = &mut self.mem.pages[head];
        page.clear(PageFlags::HEAD);
        page.order = 0;
        let (flags, place) = (page.flags, page.place);
        let (mapping, index, memcg, node) = (page.mapping, page.index, page.memcg, page.node());
        let mapcount = page.mapcount;
        let first_slot = flags.has(PageFlags::SWAPCACHE).then_some(page.private);
        let note = self.mem.pages.note(head);
        // Insert from the last to the second page, each next to the first, so that they leave the
        // tail in order.
        for at in (1..HPAGE_PMD_NR as u32).rev() {
            let pfn = Pfn(head.0 + at);
            let tail = &mut self.mem.pages[pfn];
            debug_assert_eq!(tail.place, Place::HugeTail);
            tail.flags = flags;
            tail.mapping = mapping;
            tail.index = index + at;
            tail.memcg = memcg;
            tail.mapcount = mapcount;
            tail.private = first_slot.map_or(0, |slot| slot + at);
            tail.order = 0;
            tail.place = place;
            self.mem.pages.set_note(pfn, note);
            self.groups.memcgs[memcg].lruvecs[node].add_split(&mut self.mem.pages, head, pfn);
        }
        self.mem.work.lru_moves += HPAGE_PMD_NR as u32;
    }
}

impl<O: Owners> Manager<O> {
    /// Splits a huge page into 512 small pages, which inherit its flags, group and age (Linux
    /// `split_huge_page`). They take its position on the LRU list, in the order of their addresses.
    ///
    /// Returns `false` and changes nothing if `pfn` is not the first frame of a huge page, or if
    /// the page is locked, in the swap cache, pinned or under migration.
    pub fn split_huge_page(&mut self, pfn: Pfn) -> bool {
        let Some(page) = self.mem.pages.get(pfn.idx()) else { return false };
        if !page.has(PageFlags::HEAD) {
            return false;
        }
        if page.has(PageFlags::BATCHED) || page.place == Place::LruBatch {
            self.lru_add_drain_all();
        }
        let page = &self.mem.pages[pfn];
        let held = PageFlags::LOCKED
            .with(PageFlags::WRITEBACK)
            .with(PageFlags::PINNED)
            .with(PageFlags::MIGRATING)
            .with(PageFlags::SWAPCACHE);
        if page.flags.any(held) || !(page.place.is_lru() || page.place == Place::Isolated) {
            return false;
        }
        self.split_huge_pmd(pfn);
        self.split_descriptors(pfn);
        self.mlock_split_pages(pfn);
        self.mem.vmstat.count(Event::ThpSplitPage);
        true
    }

    /// Whether a part of a huge page is in a locked range, so that the page cannot be swapped out as
    /// a whole.
    pub(crate) fn has_locked_part(&self, head: Pfn) -> bool {
        let at = OwnerSlot::of(&self.mem.pages[head]);
        let part = |nr: u32| OwnerSlot { index: at.index + nr, ..at };
        (0..HPAGE_PMD_NR as u32).any(|nr| self.owners.is_locked(part(nr), false))
    }

    /// Replaces the entry of a huge page in the swap cache by 512 swap entries.
    pub(crate) fn unmap_huge(&mut self, head: Pfn) {
        let page = &self.mem.pages[head];
        let (at, first) = (OwnerSlot::of(page), page.private);
        self.owners.split(at);
        self.mem.vmstat.count(Event::ThpSplitPmd);
        for nr in 0..HPAGE_PMD_NR as u32 {
            let slot = SwapSlot(first + nr);
            let part = OwnerSlot { index: at.index + nr, ..at };
            let unmapped = self.owners.unmap(part, 1, UnmapTarget::Swapped(slot));
            debug_assert_eq!(unmapped.nr, 1);
            self.swap[slot].map(slot);
        }
        self.mem.work.rmap_walks += 1;
        self.mem.work.ptes_set += 2 * HPAGE_PMD_NR as u32;
        self.mem.page_remove_rmap(head);
    }

    /// Replaces the PMD entry by 512 page-table entries.
    fn split_huge_pmd(&mut self, head: Pfn) {
        self.owners.split(OwnerSlot::of(&self.mem.pages[head]));
        self.mem.stat_dec(head, NodeStat::NrAnonTransparentHugepages);
        self.mem.vmstat.count(Event::ThpSplitPmd);
        self.mem.work.ptes_set += HPAGE_PMD_NR as u32;
        self.mem.work.tlb_flushes += 1;
    }
}
