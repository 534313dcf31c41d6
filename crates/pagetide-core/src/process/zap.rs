//! Removing page-table entries: munmap, exit of an address space, MADV_DONTNEED.
//!
//! Linux: mm/memory.c `zap_pte_range`, mm/huge_memory.c `zap_huge_pmd`, mm/madvise.c
//! `madvise_dontneed_single_vma` (6.1). File pages inherit the accessed and dirty bits of their
//! entries; anonymous pages and swap slots are freed, huge pages as a whole.
//!
//! Difference from Linux: if a part of a huge page is discarded, Linux splits only the mapping and
//! leaves the page to the deferred-split shrinker. Here the discarded part is free at once.
//!
//! As in Linux (`mmu_gather`), huge pages are freed last: after the whole range is unmapped and
//! their page tables are freed. The order of frees decides which pages the per-CPU lists keep.
//! Small pages are freed one by one, before their page tables.
//!
//! Invariant: a page table outlives its entries. Exception: with 4 KiB pages a huge page has all
//! entries of its page table, and the table is freed with the huge page.

use super::huge_memory::region_of;
use super::ids::MapError;
use crate::frames::page::PageFlags;
use crate::interface::effect::Effects;
use crate::interface::kernel::Kernel;
use crate::process::page_table::{Advice, Backing, Pte, VmaId};
use crate::process::Machine;
use crate::stats::vmstat::NodeStat;
use crate::units::{Cpu, Pfn, HPAGE_PMD_NR};
use alloc::vec::Vec;

impl Kernel {
    /// Frees unmapped huge pages (Linux `tlb_finish_mmu`).
    pub(crate) fn free_gathered(&mut self, gathered: Vec<Pfn>, cpu: Cpu) {
        gathered.into_iter().for_each(|head| self.free_anon_page(head, cpu));
    }

    fn free_table(&mut self, table: Pfn, cpu: Cpu) {
        self.mem.stat_dec(table, NodeStat::NrPageTablePages);
        self.uncharge_table(cpu, table);
        self.mem.free_page(cpu, table, 0);
    }
}

impl Machine {
    /// Discards `nr` pages of a mapping from `first` on (MADV_DONTNEED). Anonymous memory is freed
    /// with its swap slots and then reads as zeroes; file pages are only unmapped. If the range
    /// covers only a part of a huge page, and the page cannot be split because it is locked,
    /// pinned, under writeback or under migration, that part is not discarded.
    ///
    /// # Errors
    /// [`BadId`](crate::interface::bad_id::BadId) of the mapping or CPU; [`MapError::Locked`] if a
    /// page is locked.
    pub fn discard(
        &mut self,
        vma: VmaId,
        first: u64,
        nr: u64,
        cpu: Cpu,
    ) -> Result<Effects<'_>, MapError> {
        self.groups.check_cpu(cpu)?;
        let mapping = self.owners.living_vma(vma)?;
        let end = first.saturating_add(nr).min(mapping.len());
        if mapping.locked.count_in(first..end) > 0 {
            return Err(MapError::Locked);
        }
        self.zap_range(vma, first, end, cpu);
        Ok(self.take_effects())
    }

    fn zap_range(&mut self, vma: VmaId, first: u64, end: u64, cpu: Cpu) {
        let sequential = self.lacks_recency(vma);
        let mut nr_zapped = 0;
        let mut gathered = Vec::new();
        let mut at = first;
        while at < end {
            if at == first || at.is_multiple_of(HPAGE_PMD_NR) {
                if let Some(head) = self.huge_page_at(vma, at) {
                    let next = region_of(at) + HPAGE_PMD_NR;
                    let whole = at == region_of(at) && next <= end;
                    if whole {
                        self.zap_huge(vma, at, head, cpu);
                        gathered.push(head);
                        nr_zapped += 1;
                    }
                    if whole || !self.split_huge_page(head) {
                        at = next;
                        continue;
                    }
                }
            }
            let mapping = &mut self.owners.vmas[vma];
            let pte = core::mem::replace(&mut mapping.ptes[at as usize], Pte::EMPTY);
            mapping.nr_swapped -= u64::from(pte.swap_slot().is_some());
            mapping.nr_present -= u64::from(pte.is_present() && !pte.is_zero_page());
            nr_zapped += u32::from(!pte.is_empty());
            self.zap_pte(pte, sequential, cpu);
            at += 1;
        }
        self.free_gathered(gathered, cpu);
        self.mem.work.ptes_set += nr_zapped;
        self.mem.work.tlb_flushes += u32::from(nr_zapped > 0);
    }

    /// Unmaps a huge page and frees its page table. The caller frees the page.
    fn zap_huge(&mut self, vma: VmaId, start: u64, head: Pfn, cpu: Cpu) {
        let mapping = &mut self.owners.vmas[vma];
        mapping.ptes[start as usize..(start + HPAGE_PMD_NR) as usize].fill(Pte::EMPTY);
        mapping.nr_present -= HPAGE_PMD_NR;
        // With larger pages the table also has entries of other regions, and stays.
        let page_size = self.kernel.mem.page_size;
        let table = match page_size.ptrs_per_pte() == HPAGE_PMD_NR {
            true => core::mem::replace(&mut mapping.tables[page_size.table_of(start)], Pfn::NONE),
            false => Pfn::NONE,
        };
        self.mem.page_remove_rmap(head);
        self.munlock_if_unlocked(head);
        if table.is_some() {
            self.owners.vmas[vma].nr_tables -= 1;
            self.free_table(table, cpu);
        }
    }

    /// Releases what a removed entry referred to: a swap slot, or one mapping of a page.
    #[inline]
    fn zap_pte(&mut self, pte: Pte, sequential: bool, cpu: Cpu) {
        if let Some(slot) = pte.swap_slot() {
            self.swap_unmap(slot, cpu);
            self.free_cached_swap_page(slot, cpu);
        } else if pte.is_present() && !pte.is_zero_page() {
            let pfn = pte.pfn();
            let page = &self.mem.pages[pfn];
            let (is_file, is_anon) = (page.has(PageFlags::FILE), page.is_anon());
            if is_file && pte.is_dirty() {
                self.set_page_dirty(pfn);
            }
            if is_file && pte.is_young() && !sequential {
                self.mark_page_accessed(cpu, pfn);
            }
            self.mem.page_remove_rmap(pfn);
            self.munlock_if_unlocked(pfn);
            if is_anon {
                self.free_anon_page(pfn, cpu);
            }
        }
    }

    /// Whether references through a mapping say nothing about its pages (Linux 6.3
    /// `vma_has_recency`).
    fn lacks_recency(&self, vma: VmaId) -> bool {
        match self.owners.vmas[vma].advice {
            Advice::Sequential => true,
            Advice::Random => self.era.forgets_random,
            Advice::Normal | Advice::Huge | Advice::NoHuge => false,
        }
    }

    /// Removes a whole mapping. Adds its huge pages to `gathered`, for [`Self::free_gathered`].
    pub(crate) fn unmap_vma(&mut self, vma: VmaId, cpu: Cpu, gathered: &mut Vec<Pfn>) {
        if !self.owners.vmas[vma].alive {
            return;
        }
        let sequential = self.lacks_recency(vma);
        // Unlock first, so that no page stays locked for this mapping.
        self.owners.vmas[vma].locked = Default::default();
        let mut at = 0;
        while let Some(&pte) = self.owners.vmas[vma].ptes.get(at) {
            // The first entry of a huge page stands for all of them.
            let huge = if at.is_multiple_of(HPAGE_PMD_NR as usize) {
                self.huge_page_at(vma, at as u64)
            } else {
                None
            };
            if let Some(head) = huge {
                self.zap_huge(vma, at as u64, head, cpu);
                gathered.push(head);
                at += HPAGE_PMD_NR as usize;
            } else {
                self.zap_pte(pte, sequential, cpu);
                at += 1;
            }
        }
        let mapping = &mut self.owners.vmas[vma];
        mapping.ptes = Vec::new();
        let tables = core::mem::take(&mut mapping.tables);
        mapping.nr_tables = 0;
        for table in tables.into_iter().filter(|table| table.is_some()) {
            self.free_table(table, cpu);
        }
        let dead = &mut self.owners.vmas[vma];
        dead.alive = false;
        dead.nr_present = 0;
        dead.nr_swapped = 0;
        let (mm, backing) = (dead.mm, dead.backing);
        self.owners.vma_ids.give_back(vma.0);
        self.owners.mms[mm].vmas.retain(|&other| other != vma);
        if let Backing::File(file) = backing {
            self.owners.files[file].mappings.retain(|&other| other != vma);
            self.reap_file(file, cpu);
        }
    }
}
