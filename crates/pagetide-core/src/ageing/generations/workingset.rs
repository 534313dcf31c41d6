//! Shadows of evicted pages, and their refaults.
//!
//! Linux: `lru_gen_eviction`, `lru_gen_refault` (mm/workingset.c), `folio_inc_refs` (mm/swap.c,
//! 6.1). A shadow has the number of the generation that the page was evicted from, and the uses of
//! the page. A page that comes back while this generation is still the oldest counts as a refault
//! of its tier.

use super::feedback::tier_of;
use crate::ageing::shadow::{Shadow, AGE_MASK};
use crate::frames::page::{Page, PageFlags, Place, MAX_USES};
use crate::interface::kernel::Kernel;
use crate::stats::vmstat::Event;
use crate::units::Pfn;

/// Bits of the uses in a shadow (Linux `LRU_REFS_WIDTH`).
const USES_WIDTH: u32 = 2;

/// Uses of a page beyond the first (Linux `folio_lru_refs`).
pub(super) const fn uses_of(page: &Page) -> u32 {
    page.flags.uses() + page.has(PageFlags::WORKINGSET) as u32
}

impl Kernel {
    /// The shadow of a page that is being evicted.
    #[inline(never)]
    pub(in crate::ageing) fn lru_gen_eviction(&mut self, pfn: Pfn) -> Shadow {
        let page = &self.mem.pages[pfn];
        let (memcg, node, file) = (page.memcg, page.node(), page.is_file_lru());
        let (uses, nr) = (uses_of(page), page.nr_pages());
        let Some(generations) = self.groups.generations_mut(memcg, node) else {
            return Shadow::NONE;
        };
        let kind = usize::from(file);
        generations.feedback.evicted[kind][tier_of(uses)] += nr;
        let token = generations.min_seq[kind] << USES_WIDTH | u64::from(uses.saturating_sub(1));
        Shadow::pack(memcg, node, token, uses > 0)
    }

    /// Counts the return of a page, if its generation is still the oldest.
    #[inline(never)]
    pub(in crate::ageing) fn lru_gen_refault(&mut self, pfn: Pfn, shadow: Shadow) {
        let Some((evicted_memcg, node, token, has_uses)) = shadow.unpack() else { return };
        let page = &self.mem.pages[pfn];
        let (memcg, file, nr) = (page.memcg, page.is_file_lru(), page.nr_pages());
        self.mem.work.refaults += 1;
        if page.node() != node || memcg != evicted_memcg {
            return;
        }
        let kind = usize::from(file);
        let Some(generations) = self.groups.generations(memcg, node) else { return };
        let oldest = generations.min_seq[kind] & (AGE_MASK >> USES_WIDTH);
        let is_recent = token >> USES_WIDTH == oldest;
        let [refault, activate, restore] = match file {
            false => [
                Event::WorkingsetRefaultAnon,
                Event::WorkingsetActivateAnon,
                Event::WorkingsetRestoreAnon,
            ],
            true => [
                Event::WorkingsetRefaultFile,
                Event::WorkingsetActivateFile,
                Event::WorkingsetRestoreFile,
            ],
        };
        if is_recent || self.era.counts_old_refaults {
            self.mem.vmstat.add(refault, nr);
            self.groups.memcgs[memcg].events.add(refault, nr);
        }
        if !is_recent {
            return;
        }
        if self.era.counts_old_refaults {
            self.mem.vmstat.add(activate, nr);
            self.groups.memcgs[memcg].events.add(activate, nr);
        }
        let Some(generations) = self.groups.generations_mut(memcg, node) else { return };
        let uses = (token & ((1 << USES_WIDTH) - 1)) as u32 + u32::from(has_uses);
        generations.feedback.refaulted[kind][tier_of(uses)] += nr;
        // A stall: a page used through a page table, or one that its tier should have protected.
        if self.step.fault_mark != PageFlags::EMPTY || uses >= MAX_USES {
            let page = &mut self.mem.pages[pfn];
            page.set(PageFlags::WORKINGSET);
            page.set_uses(MAX_USES);
            self.mem.vmstat.add(restore, nr);
            self.groups.memcgs[memcg].events.add(restore, nr);
        }
    }

    /// Counts a use by read() or write() (Linux `folio_inc_refs`).
    pub(in crate::ageing) fn count_use(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn];
        if page.place == Place::Unevictable {
            return;
        }
        if !page.has(PageFlags::REFERENCED) {
            page.set(PageFlags::REFERENCED);
        } else if !page.has(PageFlags::WORKINGSET) {
            page.set(PageFlags::WORKINGSET);
        } else {
            let uses = page.flags.uses();
            page.set_uses((uses + 1).min(MAX_USES));
        }
    }
}
