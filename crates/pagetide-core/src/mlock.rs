//! Locked pages: they are on the unevictable list as long as a locked mapping maps them.
//!
//! Linux: mm/mlock.c (`mlock_folio`, `munlock_page`), `PG_mlocked`, `NR_MLOCK` (6.1). The owners know
//! the locked mappings ([`Owners::is_locked`]). A page is marked when one of these maps it, and
//! unmarked when none maps it any more.
//!
//! Differences from Linux: pages move at once, not by way of a CPU's batch. The owners count the locked
//! mappings of a page; Linux keeps a count in the page, which may be too low. So reclaim finds no
//! locked page unmarked, with one exception: Linux does not lock a huge page of which only a part is
//! locked, and Pagetide does not either; when the huge page is split, its locked pages are marked.
//!
//! Invariant: a mapped page is MLOCKED exactly when [`Owners::is_locked`] says so, and `nr_mlock`
//! counts these pages by node and zone.

use crate::manager::Manager;
use crate::owners::{Owners, Slot};
use crate::page::{Page, PageFlags, Place};
use crate::units::{Pfn, HPAGE_PMD_NR};
use crate::vmstat::Event;

impl<O: Owners> Manager<O> {
    /// Locked pages of the machine (`nr_mlock`).
    pub fn nr_mlock(&self) -> u64 {
        self.nodes.iter().flat_map(|node| node.nr_mlock).sum()
    }

    /// A locked mapping maps the page (Linux `mlock_folio`).
    #[cold]
    pub(crate) fn mlock_page(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn.idx()];
        if page.has(PageFlags::MLOCKED) {
            return;
        }
        page.set(PageFlags::MLOCKED);
        let (nr, on_list) = (page.nr_pages(), page.place.is_lru());
        self.count_mlock(pfn, nr as i64);
        self.mem.vmstat.add(Event::UnevictablePgsMlocked, nr);
        // What is off its list comes to the right one later.
        if on_list {
            self.lruvec_remove(pfn);
            self.lruvec_add(pfn);
            self.note_culled(pfn);
        }
    }

    /// No locked mapping maps the page any more (Linux `munlock_page`).
    pub(crate) fn munlock_page(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn.idx()];
        if !page.test_clear(PageFlags::MLOCKED) {
            return;
        }
        let (nr, place) = (page.nr_pages(), page.place);
        self.count_mlock(pfn, -(nr as i64));
        if place == Place::Isolated {
            // Somebody else has it off its list, and puts it on the right one.
            self.mem.vmstat.add(Event::UnevictablePgsStranded, nr);
            return;
        }
        self.mem.vmstat.add(Event::UnevictablePgsMunlocked, nr);
        if place == Place::Unevictable {
            self.lruvec_remove(pfn);
            self.lruvec_add(pfn);
            self.mem.vmstat.add(Event::UnevictablePgsRescued, nr);
        }
    }

    /// An entry of the page is gone: it stays locked only if a locked mapping has another one.
    pub(crate) fn munlock_if_unlocked(&mut self, pfn: Pfn) {
        let page = &self.mem.pages[pfn.idx()];
        if page.has(PageFlags::MLOCKED) && !self.is_page_locked(page) {
            self.munlock_page(pfn);
        }
    }

    /// Whether a locked mapping maps the page.
    pub(crate) fn is_page_locked(&self, page: &Page) -> bool {
        page.mapcount > 0 && self.owners.is_locked(Slot::of(page), page.has(PageFlags::HEAD))
    }

    /// A huge page of which only a part was locked is split now: that part is.
    pub(crate) fn mlock_split_pages(&mut self, head: Pfn) {
        for pfn in (head.0..head.0 + HPAGE_PMD_NR as u32).map(Pfn) {
            if self.is_page_locked(&self.mem.pages[pfn.idx()]) {
                self.mlock_page(pfn);
            }
        }
    }

    /// A page came to the unevictable list: it is no longer active (Linux `lru_add_fn`).
    #[cold]
    pub(crate) fn note_culled(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn.idx()];
        if page.place == Place::Unevictable {
            page.clear(PageFlags::ACTIVE);
            let nr = page.nr_pages();
            self.mem.vmstat.add(Event::UnevictablePgsCulled, nr);
        }
    }

    /// A page is freed that is still marked (Linux `__page_cache_release`).
    pub(crate) fn clear_mlocked(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn.idx()];
        if page.test_clear(PageFlags::MLOCKED) {
            let nr = page.nr_pages();
            self.count_mlock(pfn, -(nr as i64));
            self.mem.vmstat.add(Event::UnevictablePgsCleared, nr);
        }
    }

    fn count_mlock(&mut self, pfn: Pfn, change: i64) {
        let page = &self.mem.pages[pfn.idx()];
        let count = &mut self.nodes[page.node().idx()].nr_mlock[page.zone()];
        *count = count.wrapping_add_signed(change);
    }
}
