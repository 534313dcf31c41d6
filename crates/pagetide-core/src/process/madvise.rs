//! madvise: MADV_COLD and MADV_PAGEOUT, and changes of a mapping's advice.
//!
//! Linux: `madvise_vma_behavior`, `madvise_cold_or_pageout_pte_range`, `deactivate_page`,
//! `can_madv_lru_vma` (6.1). Both act on pages that no other mapping maps: MADV_COLD makes
//! them pages that are not in use; MADV_PAGEOUT reclaims them, referenced or not. Other pages, and
//! pages on no list, are left alone. The first locked page ends the call.
//!
//! Differences from Linux: a mapping has one advice, and ranges with another advice for huge pages;
//! Linux splits the mapping. Pages are deactivated at once, not through a CPU's batch. If only a
//! part of a huge page is advised, the page itself is split. Linux reclaims all pages of one page
//! table at once; here other tasks may run after each batch.
//!
//! Invariant: a page that is reclaimed here returns to its list or is freed in the same step.

use super::huge_memory::region_of;
use super::id_pool::NOT_BEGUN;
use super::page_table::{Advice, VmaId};
use super::request::{MadviseLru, MadviseLruMode};
use super::Machine;
use crate::frames::page::PageFlags;
use crate::interface::bad_id::BadId;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Effects, Step};
use crate::interface::outcome::Outcome;
use crate::process::MmId;
use crate::units::errno::Errno;
use crate::units::{MemcgId, Pfn, HPAGE_PMD_NR, SWAP_CLUSTER_MAX};
use alloc::vec::Vec;
use core::ops::Range;

impl Machine {
    /// Changes the advice of a mapping.
    ///
    /// # Errors
    /// [`BadId::Vma`] if the mapping does not exist.
    pub fn set_advice(&mut self, vma: VmaId, advice: Advice) -> Result<Effects<'_>, BadId> {
        self.owners.living_vma(vma)?;
        let mapping = &mut self.owners.vmas[vma];
        (mapping.advice, mapping.parts) = (advice, Default::default());
        // Before its first fault a mapping has no pages to collapse (Linux: no `anon_vma`).
        let has_tables = self.owners.vmas[vma].tables.iter().any(|table| table.is_some());
        if advice == Advice::Huge && has_tables {
            self.khugepaged_enter(vma, 0);
        }
        Ok(self.take_effects())
    }

    /// Allows or forbids huge pages in a range of a mapping (MADV_HUGEPAGE, MADV_NOHUGEPAGE).
    /// Splits huge pages at the edges of the range.
    ///
    /// # Errors
    /// [`BadId::Vma`] if the mapping does not exist, [`BadId::Page`] if it is shorter than
    /// the range.
    pub fn advise_huge(
        &mut self,
        vma: VmaId,
        pages: Range<u64>,
        allowed: bool,
    ) -> Result<Effects<'_>, BadId> {
        let mapping = self.owners.living_vma(vma)?;
        let (own, advice) = (mapping.advice, if allowed { Advice::Huge } else { Advice::NoHuge });
        if pages.end > mapping.len() {
            return Err(BadId::Page(vma));
        }
        if pages.is_empty() || mapping.parts.of(pages.clone(), own) == Some(advice) {
            return Ok(self.take_effects());
        }
        for edge in [pages.start, pages.end] {
            if !edge.is_multiple_of(HPAGE_PMD_NR) {
                if let Some(head) = self.huge_page_at(vma, edge) {
                    self.split_huge_page(head);
                }
            }
        }
        let mapping = &mut self.owners.vmas[vma];
        mapping.parts.set(pages.clone(), advice, own);
        if allowed && mapping.tables.iter().any(|table| table.is_some()) {
            self.khugepaged_enter(vma, pages.start.next_multiple_of(HPAGE_PMD_NR));
        }
        Ok(self.take_effects())
    }

    /// Processes one batch of pages, all of one page table.
    pub(crate) fn madvise_lru_step(&mut self, leave: &mut MadviseLru, ctx: &Ctx) -> Step<Outcome> {
        let mapping = match self.owners.living_vma(leave.vma) {
            Ok(mapping) if [NOT_BEGUN, mapping.generation].contains(&leave.born) => mapping,
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
            leave.born = mapping.generation;
            self.lru_add_drain(ctx.cpu);
        }
        let end = locked.unwrap_or(leave.end).min(region_of(leave.next) + HPAGE_PMD_NR);
        let batch = self.collect_exclusive_pages(leave.vma, &mut leave.next, end);
        match leave.how {
            MadviseLruMode::Cold => batch.iter().for_each(|&pfn| self.deactivate_page(pfn)),
            MadviseLruMode::PageOut => {
                leave.is_unmapped |= !batch.is_empty();
                // MADV_PAGEOUT is not reclaim for a group, so the context has no memcg.
                let (node, asker) = (self.mem.cpu_node(ctx.cpu), MmId::NONE);
                self.reclaim_pages(batch, &Ctx { node, asker, memcg: MemcgId::NONE, ..*ctx });
            }
        }
        if leave.next == end && core::mem::take(&mut leave.is_unmapped) {
            self.mem.work.tlb_flushes += 1;
        }
        Step::Continue
    }

    /// Collects a batch from `at..end`: pages on LRU lists that only this mapping maps. Clears
    /// their young and referenced bits. A huge page ends its batch.
    fn collect_exclusive_pages(&mut self, vma: VmaId, at: &mut u64, end: u64) -> Vec<Pfn> {
        let mut found = Vec::new();
        while *at < end && (found.len() as u64) < SWAP_CLUSTER_MAX {
            let first = *at;
            let region = region_of(first);
            let is_whole = first == region && region + HPAGE_PMD_NR <= end;
            let (pfn, next) = match self.huge_page_at(vma, first) {
                Some(head) if is_whole => {
                    self.owners.vmas[vma].test_clear_young_huge(region);
                    (head, region + HPAGE_PMD_NR)
                }
                // A busy huge page cannot be split; leave it alone.
                Some(head) if !self.split_huge_page(head) => {
                    *at = end;
                    break;
                }
                Some(_) | None => {
                    let pte = self.owners.vmas[vma].ptes[first as usize];
                    if !pte.is_present() || pte.is_zero_page() {
                        *at += 1;
                        continue;
                    }
                    (pte.pfn(), first + 1)
                }
            };
            *at = next;
            let page = &mut self.mem.pages[pfn];
            let is_on_list = page.place.is_lru() && !page.has(PageFlags::BATCHED);
            if page.mapcount != 1 || !is_on_list {
                continue;
            }
            page.clear(PageFlags::REFERENCED);
            if next == first + 1 {
                self.owners.vmas[vma].ptes[first as usize].test_clear_young();
            }
            found.push(pfn);
        }
        self.mem.work.ptes_set += found.len() as u32;
        found
    }
}
