//! Huge pages at the page level: one entry of an LRU list for 512 frames, and its splitting.
//!
//! Linux: `split_huge_page` (mm/huge_memory.c, 6.1). A huge page is a block of [`HPAGE_PMD_NR`]
//! frames. The first descriptor stands for the whole page: it is one entry of an LRU list and has
//! the group, the owner and the flags. The other descriptors ([`Place::HugeTail`]) are empty.
//!
//! Invariant: the first page of a huge page is `HEAD` and `ANON`, aligned, of order 9, and on an
//! LRU list, in a batch, or isolated. It is mapped once at an `index` that is a multiple of 512, or
//! pinned and unmapped. The 511 pages after it are `HugeTail` with empty descriptors.

use crate::lruvec::Lru;
use crate::manager::Manager;
use crate::owners::{OwnerSlot, Owners};
use crate::page::{PageFlags, Place};
use crate::units::{Pfn, HPAGE_PMD_NR};
use crate::vmstat::{Event, NodeStat};

impl<O: Owners> Manager<O> {
    /// Splits a huge page into 512 small pages, which inherit its flags, group and age (Linux
    /// `split_huge_page`). They take its position on the LRU list, in the order of their addresses.
    ///
    /// Returns `false` and changes nothing if `pfn` is not the first frame of a huge page, or if
    /// the page is locked, under writeback, pinned or under migration.
    pub fn split_huge_page(&mut self, pfn: Pfn) -> bool {
        let Some(page) = self.mem.pages.get(pfn.idx()) else { return false };
        if !page.has(PageFlags::HEAD) {
            return false;
        }
        if page.has(PageFlags::BATCHED) || page.place == Place::LruBatch {
            self.lru_add_drain_all();
        }
        let page = &self.mem.pages[pfn.idx()];
        let held = PageFlags::LOCKED
            .with(PageFlags::WRITEBACK)
            .with(PageFlags::PINNED)
            .with(PageFlags::MIGRATING);
        if page.flags.any(held) || !(page.place.is_lru() || page.place == Place::Isolated) {
            return false;
        }
        self.split_huge_pmd(pfn);
        self.split_descriptors(pfn);
        self.mlock_split_pages(pfn);
        self.mem.vmstat.count(Event::ThpSplitPage);
        true
    }

    /// Replaces the PMD entry by 512 page-table entries.
    fn split_huge_pmd(&mut self, head: Pfn) {
        self.owners.split(OwnerSlot::of(&self.mem.pages[head.idx()]));
        self.stat_dec(head, NodeStat::NrAnonTransparentHugepages);
        self.mem.vmstat.count(Event::ThpSplitPmd);
        self.mem.work.ptes_set += HPAGE_PMD_NR as u32;
        self.mem.work.tlb_flushes += 1;
    }

    fn split_descriptors(&mut self, head: Pfn) {
        let page = &mut self.mem.pages[head.idx()];
        page.clear(PageFlags::HEAD);
        page.order = 0;
        let (flags, place) = (page.flags, page.place);
        let (mapping, index, memcg, node) = (page.mapping, page.index, page.memcg, page.node());
        let mark = page.mark;
        let list = Lru::of_place(place);
        // Insert from the last to the second page, each next to the first, so that they leave the
        // tail in order.
        for at in (1..HPAGE_PMD_NR as u32).rev() {
            let pfn = Pfn(head.0 + at);
            let tail = &mut self.mem.pages[pfn.idx()];
            debug_assert_eq!(tail.place, Place::HugeTail);
            tail.flags = flags;
            tail.mark = mark;
            tail.mapping = mapping;
            tail.index = index + at;
            tail.memcg = memcg;
            tail.mapcount = 1;
            tail.order = 0;
            tail.place = place;
            if let Some(lru) = list {
                let lists = &mut self.memcgs[memcg.idx()].lruvecs[node.idx()].lists;
                lists[lru as usize].insert_before(&mut self.mem.pages, head, pfn, place);
            }
        }
        self.mem.work.lru_moves += HPAGE_PMD_NR as u32;
    }
}
