//! Advice on a mapping that acts at once, and advice that changes.
//!
//! Linux: `madvise_vma_behavior`, `madvise_cold_or_pageout_pte_range`, `deactivate_page`, `can_madv_lru_vma` (6.1).
//! MADV_COLD puts pages that only this mapping maps on the inactive list; MADV_PAGEOUT reclaims them, referenced or
//! not. What somebody else maps, or is on no list, stays as it is. The first page that is locked ends the call.
//!
//! Differences from Linux: a mapping has one advice, but for parts with another about huge pages, where Linux
//! splits it if only a part is advised. Pages are deactivated at once, not by way of a CPU's batch. A huge page of
//! which only a part is advised is split as a page. Linux reclaims what a table of entries maps in one piece; here
//! others may run after each batch.
//!
//! Invariant: a page that is reclaimed here goes back to its list or is freed in the same step.

use super::huge_memory::region_of;
use super::ids::NOT_BEGUN;
use super::page_table::{Advice, VmaId};
use super::request::{Leave, LeaveHow};
use super::Machine;
use crate::bad_id::BadId;
use crate::control::Errno;
use crate::ctx::Ctx;
use crate::effect::{Effects, Step};
use crate::outcome::Outcome;
use crate::page::PageFlags;
use crate::process::MmId;
use crate::units::{MemcgId, Pfn, HPAGE_PMD_NR, SWAP_CLUSTER_MAX};
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
        let mapping = &mut self.owners.vmas[vma.idx()];
        (mapping.advice, mapping.parts) = (advice, Default::default());
        // Before its first fault a mapping has nothing to collapse (Linux: no `anon_vma`).
        let has_tables = self.owners.vmas[vma.idx()].tables.iter().any(|table| table.is_some());
        if advice == Advice::Huge && has_tables {
            self.khugepaged_enter(vma, 0);
        }
        Ok(self.hand_out())
    }

    /// Allows huge pages in a part of a mapping, or forbids them (MADV_HUGEPAGE, MADV_NOHUGEPAGE). One that is partly
    /// in it is split.
    ///
    /// # Errors
    /// [`BadId::Vma`], [`BadId::Page`].
    pub fn advise_huge(
        &mut self,
        vma: VmaId,
        pages: Range<u64>,
        allowed: bool,
    ) -> Result<Effects<'_>, BadId> {
        let mapping = self.living_vma(vma)?;
        let (own, advice) = (mapping.advice, if allowed { Advice::Huge } else { Advice::NoHuge });
        if pages.end > mapping.len() {
            return Err(BadId::Page(vma));
        }
        if pages.is_empty() || mapping.parts.of(pages.clone(), own) == Some(advice) {
            return Ok(self.hand_out());
        }
        for edge in [pages.start, pages.end] {
            if !edge.is_multiple_of(HPAGE_PMD_NR) {
                if let Some(head) = self.huge_page_at(vma, edge) {
                    self.split_huge_page(head);
                }
            }
        }
        let mapping = &mut self.owners.vmas[vma.idx()];
        mapping.parts.set(pages.clone(), advice, own);
        if allowed && mapping.tables.iter().any(|table| table.is_some()) {
            self.khugepaged_enter(vma, pages.start.next_multiple_of(HPAGE_PMD_NR));
        }
        Ok(self.hand_out())
    }

    /// One batch of pages, of one table of entries.
    pub(crate) fn leave_step(&mut self, leave: &mut Leave, ctx: &Ctx) -> Step<Outcome> {
        let mapping = match self.living_vma(leave.vma) {
            Ok(mapping) if [NOT_BEGUN, mapping.born].contains(&leave.born) => mapping,
            Err(id) if leave.born == NOT_BEGUN => return Step::Done(Outcome::BadId(id)),
            Ok(_) | Err(_) => return Step::Done(Outcome::Refused(Errno::Enomem)),
        };
        if leave.end > mapping.len() {
            return Step::Done(Outcome::BadId(BadId::Page(leave.vma)));
        }
        let locked = mapping.locked.first_in(leave.next..leave.end);
        if leave.next >= leave.end || locked == Some(leave.next) {
            return Step::Done(match locked {
                None => Outcome::Minor,
                Some(_) => Outcome::Refused(Errno::Einval),
            });
        }
        if leave.born == NOT_BEGUN {
            leave.born = mapping.born;
            self.lru_add_drain(ctx.cpu);
        }
        let end = locked.unwrap_or(leave.end).min(region_of(leave.next) + HPAGE_PMD_NR);
        let batch = self.only_mapped_here(leave.vma, &mut leave.next, end);
        match leave.how {
            LeaveHow::Cold => self.deactivate_pages(&batch),
            LeaveHow::PageOut => {
                leave.is_unmapped |= !batch.is_empty();
                // Whoever reclaims them, they are no group's more than another's.
                let (node, asker) = (self.mem.cpu_node(ctx.cpu), MmId::NONE);
                self.reclaim_pages(batch, &Ctx { node, asker, memcg: MemcgId::NONE, ..*ctx });
            }
        }
        if leave.next == end && core::mem::take(&mut leave.is_unmapped) {
            self.mem.work.tlb_flushes += 1;
        }
        Step::Continue
    }

    fn deactivate_pages(&mut self, pages: &[Pfn]) {
        for &pfn in pages {
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
    }

    /// A batch of the pages from `at` to `end` that are on lists and that only this mapping maps, in order, not young
    /// and not referenced any more. A huge page is the last of its batch.
    fn only_mapped_here(&mut self, vma: VmaId, at: &mut u64, end: u64) -> Vec<Pfn> {
        let mut found = Vec::new();
        while *at < end && (found.len() as u64) < SWAP_CLUSTER_MAX {
            let first = *at;
            let region = region_of(first);
            let is_whole = first == region && region + HPAGE_PMD_NR <= end;
            let (pfn, next) = match self.huge_page_at(vma, first) {
                Some(head) if is_whole => {
                    self.owners.vmas[vma.idx()].test_clear_young_huge(region);
                    (head, region + HPAGE_PMD_NR)
                }
                // Held by somebody, it cannot be split, and stays.
                Some(head) if !self.split_huge_page(head) => {
                    *at = end;
                    break;
                }
                Some(_) | None => {
                    let pte = self.owners.vmas[vma.idx()].ptes[first as usize];
                    if !pte.is_present() || pte.is_zero_page() {
                        *at += 1;
                        continue;
                    }
                    (pte.pfn(), first + 1)
                }
            };
            *at = next;
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
        found
    }
}
