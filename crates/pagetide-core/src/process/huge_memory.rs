//! Transparent huge pages of anonymous memory: eligibility and mapping.
//!
//! Linux: mm/huge_memory.c (6.1). 512 present entries for consecutive frames map a huge page, so an
//! access is the same load and store as for a small page. Together the entries stand for Linux's
//! one PMD entry. It counts as young if one of them is young, and as dirty because all are dirty;
//! `mapcount` is 1. The page table exists, as in Linux, which keeps one for a later split.
//! [`crate::frames::huge_page`] has the page-level part.
//!
//! Differences from Linux: a read of untouched memory maps the 4 KiB zero page. Linux may map a
//! huge zero page, which a later write splits. So reads fault once for each page here, and once for
//! each region in Linux. The page table is allocated before the huge page, not after it.

use super::page_table::{Advice, Backing, Pte, Vma, VmaId};
use super::Machine;
use crate::config::Config;
use crate::config::{Thp, ThpDefrag};
use crate::frames::gfp::Gfp;
use crate::frames::page::{PageFlags, Place};
use crate::process::object::MemoryObject;
use crate::units::{Cpu, MemcgId, Pfn, HPAGE_PMD_NR};

/// First page of the huge-page region that contains `page`.
pub(crate) const fn region_of(page: u64) -> u64 {
    page / HPAGE_PMD_NR * HPAGE_PMD_NR
}

impl Vma {
    /// Whether the mapping, as far as it has grown, contains the whole region of `page`.
    pub(crate) fn has_region(&self, page: u64) -> bool {
        region_of(page) + HPAGE_PMD_NR <= self.grown.min(self.len())
    }

    /// The huge-page advice of the region of `page`, if uniform.
    pub(crate) fn advice_of_region(&self, page: u64) -> Option<Advice> {
        let start = region_of(page);
        self.parts.of(start..start + HPAGE_PMD_NR, self.advice)
    }

    /// The entries of the region that begins at `start`.
    pub(crate) fn region(&self, start: u64) -> &[Pte] {
        &self.ptes[start as usize..(start + HPAGE_PMD_NR) as usize]
    }

    fn region_mut(&mut self, start: u64) -> &mut [Pte] {
        &mut self.ptes[start as usize..(start + HPAGE_PMD_NR) as usize]
    }

    /// Whether a huge page was accessed since the last call; clears the young bits.
    pub(crate) fn test_clear_young_huge(&mut self, start: u64) -> bool {
        let ptes = self.region_mut(start).iter_mut();
        ptes.fold(false, |young, pte| pte.test_clear_young() | young)
    }

    /// Turns the PMD entry into 512 page-table entries: all are young if one was.
    pub(crate) fn split_region(&mut self, start: u64) {
        let ptes = self.region_mut(start);
        if ptes.iter().any(|pte| pte.is_young()) {
            for pte in ptes {
                // `touched(false)` returns a present entry with its young bit set.
                *pte = pte.touched(false).unwrap_or(*pte);
            }
        }
    }
}

impl Config {
    /// Whether the region of `page` may be a huge page (Linux `hugepage_vma_check`).
    pub(crate) fn may_be_huge(&self, vma: &Vma, page: u64) -> bool {
        if vma.backing != Backing::Anon || self.thp == Thp::Never {
            return false;
        }
        match (self.thp, vma.advice_of_region(page)) {
            (Thp::Never, _) | (_, None | Some(Advice::NoHuge)) => false,
            (Thp::Always, Some(_)) | (Thp::Madvise, Some(Advice::Huge)) => true,
            (Thp::Madvise, Some(Advice::Normal | Advice::Random | Advice::Sequential)) => false,
        }
    }
}

impl Machine {
    /// Whether MADV_COLLAPSE may make the region of `page` huge, independent of `enabled` (Linux
    /// `hugepage_vma_check` without `enforce_sysfs`).
    pub(crate) fn may_be_collapsed(vma: &Vma, page: u64) -> bool {
        let advice = vma.advice_of_region(page);
        vma.backing == Backing::Anon && advice.is_some_and(|advice| advice != Advice::NoHuge)
    }

    /// Allocation flags of a fault for a huge page (Linux `vma_thp_gfp_mask`).
    pub(crate) fn thp_gfp(&self, vma: VmaId, page: u64) -> Gfp {
        let madvised = self.owners.vmas[vma].advice_of_region(page) == Some(Advice::Huge);
        if self.era.asks_once_for_huge {
            return self.config.thp_gfp_4_5(madvised);
        }
        let light = Gfp::TRANSHUGE_LIGHT;
        let if_madvised = |gfp: Gfp, other: Gfp| light.with(if madvised { gfp } else { other });
        match self.config.thp_defrag {
            ThpDefrag::Always => if_madvised(Gfp::EMPTY, Gfp::NORETRY).with(Gfp::DIRECT_RECLAIM),
            ThpDefrag::Defer => light.with(Gfp::KSWAPD_RECLAIM),
            ThpDefrag::DeferMadvise => if_madvised(Gfp::DIRECT_RECLAIM, Gfp::KSWAPD_RECLAIM),
            ThpDefrag::Madvise => if_madvised(Gfp::DIRECT_RECLAIM, Gfp::EMPTY),
            ThpDefrag::Never => light,
        }
    }

    /// The huge page that maps a page of a mapping, if any.
    pub(crate) fn huge_page_at(&self, vma: VmaId, page: u64) -> Option<Pfn> {
        let pte = self.owners.vmas[vma].ptes.get(region_of(page) as usize)?;
        if !pte.is_present() || pte.is_zero_page() {
            return None;
        }
        Some(pte.pfn()).filter(|pfn| self.mem.pages[*pfn].has(PageFlags::HEAD))
    }

    /// Maps an allocated, zeroed and charged block as the huge page of an empty region, and puts it
    /// on the LRU. `memcg` is the charged group.
    pub(crate) fn map_huge(&mut self, vma: VmaId, start: u64, head: Pfn, memcg: MemcgId, cpu: Cpu) {
        debug_assert!(
            start.is_multiple_of(HPAGE_PMD_NR) && head.0.is_multiple_of(HPAGE_PMD_NR as u32)
        );
        let first = head.idx();
        for page in &mut self.mem.pages[first + 1..first + HPAGE_PMD_NR as usize] {
            page.place = Place::HugeTail;
        }
        let at = MemoryObject::Anon(vma).at(start);
        self.begin_anon_page(head, at, PageFlags::HEAD, memcg, cpu);
        let mapping = &mut self.owners.vmas[vma];
        for (pte, pfn) in mapping.region_mut(start).iter_mut().zip(head.0..) {
            *pte = Pte::map(Pfn(pfn), true);
        }
        mapping.nr_present += HPAGE_PMD_NR;
        self.mem.page_add_rmap(head);
        if self.owners.vmas[vma].locked.contains(start) {
            self.mlock_page(head);
        }
        self.mem.work.ptes_set += 1;
        self.mem.work.rmap_walks += 1;
        self.folio_add_lru(cpu, head);
    }
}
