//! Advice on a mapping that acts at once, and advice that changes.
//!
//! Linux: `madvise_vma_behavior`, `madvise_cold_or_pageout_pte_range`, `deactivate_page`, `can_madv_lru_vma` (6.1).
//! MADV_COLD puts pages that only this mapping maps on the inactive list; MADV_PAGEOUT reclaims them, referenced or
//! not. What somebody else maps, or is on no list, stays as it is.
//!
//! Differences from Linux: a mapping has one advice, where Linux splits it if only a part is advised. Pages are
//! deactivated at once, not by way of a CPU's batch. A huge page of which only a part is advised is split as a page.
//!
//! Invariant: a page that is reclaimed here goes back to its list or is freed in the same step.

use super::huge_memory::region_of;
use super::ids::MapError;
use super::page_table::{Advice, VmaId};
use super::Machine;
use crate::bad_id::BadId;
use crate::ctx::Ctx;
use crate::effect::Effects;
use crate::page::PageFlags;
use crate::process::MmId;
use crate::units::{Cpu, MemcgId, Nanos, Pfn, HPAGE_PMD_NR};
use crate::vmstat::Event;
use alloc::vec::Vec;
use core::ops::Range;

impl Machine {
    /// Gives another advice on a mapping.
    ///
    /// # Errors
    /// [`BadId::Vma`].
    pub fn set_advice(&mut self, vma: VmaId, advice: Advice) -> Result<Effects<'_>, BadId> {
        self.living_vma(vma)?;
        self.owners.vmas[vma.idx()].advice = advice;
        // Before its first fault a mapping has nothing to collapse (Linux: no `anon_vma`).
        let has_tables = self.owners.vmas[vma.idx()].tables.iter().any(|table| table.is_some());
        if advice == Advice::Huge && has_tables {
            self.khugepaged_enter(vma, 0);
        }
        Ok(self.hand_out())
    }

    /// Moves pages of a mapping to their inactive lists (MADV_COLD).
    ///
    /// # Errors
    /// [`BadId::Vma`], [`BadId::Cpu`]; [`MapError::Locked`] if the first of these pages is locked. If a later one is,
    /// those before it are done (Linux: a locked part is a mapping of its own; EINVAL after what came before it).
    pub fn madvise_cold(
        &mut self,
        vma: VmaId,
        pages: Range<u64>,
        cpu: Cpu,
    ) -> Result<Effects<'_>, MapError> {
        for pfn in self.only_mapped_here(vma, pages, cpu)? {
            let page = &mut self.mem.pages[pfn.idx()];
            if !page.has(PageFlags::ACTIVE) {
                continue;
            }
            let (nr, memcg) = (page.nr_pages(), page.memcg);
            self.lruvec_remove(pfn);
            let page = &mut self.mem.pages[pfn.idx()];
            page.clear(PageFlags::ACTIVE);
            page.clear(PageFlags::REFERENCED);
            self.lruvec_add(pfn);
            self.mem.vmstat.add(Event::Pgdeactivate, nr);
            self.memcgs[memcg.idx()].events.add(Event::Pgdeactivate, nr);
        }
        Ok(self.hand_out())
    }

    /// Reclaims pages of a mapping now: clean ones are freed, anonymous ones are written to swap and freed by whoever
    /// reclaims next (MADV_PAGEOUT).
    ///
    /// # Errors
    /// As [`Machine::madvise_cold`].
    pub fn madvise_pageout(
        &mut self,
        vma: VmaId,
        pages: Range<u64>,
        cpu: Cpu,
        now: Nanos,
    ) -> Result<Effects<'_>, MapError> {
        let taken = self.only_mapped_here(vma, pages, cpu)?;
        let node = self.mem.cpu_node(cpu);
        let ctx = Ctx { cpu, node, now, asker: MmId::NONE, memcg: MemcgId::NONE };
        self.reclaim_pages(taken, &ctx);
        Ok(self.hand_out())
    }

    /// Pages on lists that only this mapping maps, in order, not young and not referenced any more.
    fn only_mapped_here(
        &mut self,
        vma: VmaId,
        pages: Range<u64>,
        cpu: Cpu,
    ) -> Result<Vec<Pfn>, MapError> {
        self.check_cpu(cpu)?;
        let mapping = self.living_vma(vma)?;
        let end = pages.end.min(mapping.len());
        let end = match mapping.locked.first_in(pages.start..end) {
            Some(first) if first == pages.start => return Err(MapError::Locked),
            Some(first) => first,
            None => end,
        };
        self.lru_add_drain(cpu);
        let mut found = Vec::new();
        let mut at = pages.start;
        while at < end {
            let region = region_of(at);
            let huge = self.huge_page_at(vma, at);
            let is_whole = at == region && region + HPAGE_PMD_NR <= end;
            let (pfn, next) = match huge {
                Some(head) if is_whole => {
                    self.owners.vmas[vma.idx()].test_clear_young_huge(region);
                    (head, region + HPAGE_PMD_NR)
                }
                // Held by somebody, it cannot be split, and stays.
                Some(head) if !self.split_huge_page(head) => {
                    at = region + HPAGE_PMD_NR;
                    continue;
                }
                Some(_) | None => {
                    let pte = &mut self.owners.vmas[vma.idx()].ptes[at as usize];
                    if !pte.is_present() || pte.is_zero_page() {
                        at += 1;
                        continue;
                    }
                    (pte.pfn(), at + 1)
                }
            };
            let first = at;
            at = next;
            let page = &mut self.mem.pages[pfn.idx()];
            let is_on_list = page.place.is_lru() && !page.has(PageFlags::BATCHED);
            if page.mapcount != 1 || !is_on_list {
                continue;
            }
            page.clear(PageFlags::REFERENCED);
            if next == first + 1 {
                self.owners.vmas[vma.idx()].ptes[first as usize].test_clear_young();
            }
            found.push(pfn);
        }
        self.mem.work.ptes_set += found.len() as u32;
        Ok(found)
    }
}
