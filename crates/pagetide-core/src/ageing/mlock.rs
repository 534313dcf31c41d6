//! Locked pages: a page is on the unevictable list while a locked mapping maps it.
//!
//! Linux: mm/mlock.c (`mlock_folio`, `munlock_page`), `PG_mlocked`, `NR_MLOCK` (6.1). The owners
//! know the locked mappings ([`Owners::is_locked`]). A page is marked when a locked mapping maps
//! it, and unmarked when no locked mapping maps it any more.
//!
//! Differences from Linux: pages move at once, not through a CPU's batch. The owners know how many
//! locked mappings a page has; Linux keeps a count in the page, and the count may be too low. So
//! reclaim never finds an unmarked locked page, with one exception: if only a part of a huge page
//! is locked, Linux does not mark the huge page, and neither does Pagetide. When the huge page is
//! split, its locked pages are marked.
//!
//! Invariant: a mapped page is MLOCKED exactly when [`Owners::is_locked`] says so (see above for
//! parts of huge pages), and `nr_mlock` counts these pages by node and zone.

use crate::frames::page::{Page, PageFlags, Place};
use crate::frames::page_alloc::Memory;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::{OwnerSlot, Owners};
use crate::stats::vmstat::Event;
use crate::units::{Pfn, HPAGE_PMD_NR};

impl Memory {
    /// Clears the active flag of a page that was put on the unevictable list (Linux `lru_add_fn`).
    #[cold]
    pub(crate) fn note_culled(&mut self, pfn: Pfn) {
        let page = &mut self.pages[pfn];
        if page.place == Place::Unevictable {
            page.clear(PageFlags::ACTIVE);
            let nr = page.nr_pages();
            self.vmstat.add(Event::UnevictablePgsCulled, nr);
        }
    }

    /// Clears the mark of a page that is freed (Linux `__page_cache_release`).
    #[inline]
    pub(crate) fn clear_mlocked(&mut self, pfn: Pfn) {
        let page = &mut self.pages[pfn];
        if page.has(PageFlags::MLOCKED) {
            page.clear(PageFlags::MLOCKED);
            let nr = page.nr_pages();
            self.count_mlock(pfn, -(nr as i64));
            self.vmstat.add(Event::UnevictablePgsCleared, nr);
        }
    }

    fn count_mlock(&mut self, pfn: Pfn, change: i64) {
        let page = &self.pages[pfn];
        let count = &mut self.pgdat[page.node()].nr_mlock[page.zone()];
        *count = count.wrapping_add_signed(change);
    }
}

impl Kernel {
    /// Locked pages of the machine (`nr_mlock`).
    pub fn nr_mlock(&self) -> u64 {
        self.mem.pgdat.iter().flat_map(|node| node.nr_mlock).sum()
    }

    /// Marks a page that a locked mapping maps (Linux `mlock_folio`).
    #[cold]
    pub(crate) fn mlock_page(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn];
        if page.has(PageFlags::MLOCKED) {
            return;
        }
        page.set(PageFlags::MLOCKED);
        let (nr, on_list) = (page.nr_pages(), page.place.is_lru());
        self.mem.count_mlock(pfn, nr as i64);
        self.mem.vmstat.add(Event::UnevictablePgsMlocked, nr);
        // A page that is off its list will be put back on the right list later.
        if on_list {
            self.lruvec_remove(pfn);
            self.lruvec_add(pfn);
            self.mem.note_culled(pfn);
        }
    }

    /// Unmarks a page that no locked mapping maps any more (Linux `munlock_page`).
    pub(crate) fn munlock_page(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn];
        if !page.test_clear(PageFlags::MLOCKED) {
            return;
        }
        let (nr, place) = (page.nr_pages(), page.place);
        self.mem.count_mlock(pfn, -(nr as i64));
        if place == Place::Isolated {
            // The page is isolated; it will be put back on the right list.
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
}

impl<O: Owners> Manager<O> {
    /// Unmarks a page that lost an entry, unless a locked mapping still maps it.
    pub(crate) fn munlock_if_unlocked(&mut self, pfn: Pfn) {
        let page = &self.mem.pages[pfn];
        if page.has(PageFlags::MLOCKED) && !self.is_page_locked(page) {
            self.munlock_page(pfn);
        }
    }

    pub(crate) fn is_page_locked(&self, page: &Page) -> bool {
        page.mapcount > 0 && self.owners.is_locked(OwnerSlot::of(page), page.has(PageFlags::HEAD))
    }

    /// Marks the locked pages of a huge page that was partly locked and is now split.
    pub(crate) fn mlock_split_pages(&mut self, head: Pfn) {
        for pfn in (head.0..head.0 + HPAGE_PMD_NR as u32).map(Pfn) {
            if self.is_page_locked(&self.mem.pages[pfn]) {
                self.mlock_page(pfn);
            }
        }
    }
}
