//! The audit of pinned pages and locked pages.
//!
//! Linux: no such check; `unevictable_pgs_stranded` counts locked pages that were missed.

use super::{check, Violation};
use crate::frames::page::PageFlags;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::stats::vmstat::Event;
use crate::units::{IdVec, NodeId, Pfn};
use alloc::vec;

impl<O: Owners> Manager<O> {
    /// Compares pins with flags, and locked pages and their counts with locked mappings.
    pub(super) fn audit_held_pages(&self) -> Result<(), Violation> {
        let pages = &self.mem.pages;
        let mut nr_pins = 0;
        for (pfn, count) in self.mem.pins.iter() {
            let page = &pages[pfn];
            let user = page.is_user();
            check!(count > 0 && user, "{pfn:?}: {count} pins of {page:?}");
            check!(page.has(PageFlags::PINNED), "{pfn:?}: {count} pins, but not marked");
            check!(!page.has(PageFlags::MIGRATING), "{pfn:?} is pinned and being moved");
            nr_pins += count;
        }
        let marked = pages.opened().filter(|(_, page)| page.has(PageFlags::PINNED)).count();
        let known = self.mem.pins.iter().count();
        check!(marked == known, "{marked} pages are marked as pinned, {known} are");
        let pins = |event| self.mem.vmstat.get(event);
        let (taken, given) = (pins(Event::NrFollPinAcquired), pins(Event::NrFollPinReleased));
        check!(taken == given + nr_pins, "{taken} pins taken, {given} given back, {nr_pins} left");

        let mut locked: IdVec<NodeId, _> = vec![[0u64; MAX_NR_ZONES]; self.mem.pgdat.len()].into();
        for (Pfn(at), page) in pages.opened() {
            let is_marked = page.has(PageFlags::MLOCKED);
            if is_marked {
                locked[page.node()][page.zone()] += page.nr_pages();
            }
            let is_locked = self.is_page_locked(page);
            check!(is_marked == is_locked, "pfn{at}: locked {is_locked}, marked {is_marked}");
        }
        for (node, (state, found)) in self.mem.pgdat.iter().zip(&locked).enumerate() {
            let node = NodeId(node as u8);
            check!(state.nr_mlock == *found, "{node:?}: {:?} locked, {found:?}", state.nr_mlock);
        }
        Ok(())
    }
}
