//! Huge pages as the ground floor knows them: one entry on a list, 512 frames, and how they are split.
//!
//! Linux: `split_huge_page` (mm/huge_memory.c, 6.1). A huge page is a block of [`HPAGE_PMD_NR`] frames.
//! Its first descriptor stands for all of it: it is on one LRU list as one entry, has the group, the
//! owner and the flags. The other descriptors follow it ([`Place::HugeTail`]) and are empty. `mapcount`
//! is 1: its 512 entries stand for one entry of the second level.
//!
//! Invariant: the first page of a huge page is `HEAD` and `ANON`, aligned, of order 9, mapped once at an
//! `index` that is a multiple of 512 (or pinned, and mapped no more), and on an LRU list, in a batch, or isolated; the 511 behind it are
//! `HugeTail` with empty descriptors.

use crate::lruvec::Lru;
use crate::manager::Manager;
use crate::owners::{Owners, Slot};
use crate::page::{PageFlags, Place};
use crate::units::{Pfn, HPAGE_PMD_NR};
use crate::vmstat::{Event, NodeStat};

impl<O: Owners> Manager<O> {
    /// Splits a huge page into 512 small ones, which inherit its flags, its group and its age (Linux
    /// `split_huge_page`). They lie where it was on its list, so that reclaim meets them in order.
    ///
    /// Refused, and nothing changes, if `pfn` is not the first frame of a huge page, or if somebody
    /// holds it.
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

    /// What one entry of the second level said, its 512 entries say from now on.
    fn split_huge_pmd(&mut self, head: Pfn) {
        self.owners.split(Slot::of(&self.mem.pages[head.idx()]));
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
        // From the last to the second, each beside the first: they come off the tail in order.
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
