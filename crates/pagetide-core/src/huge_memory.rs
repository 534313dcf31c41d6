//! Transparent huge pages of anonymous memory: eligibility, mapping, splitting.
//!
//! Linux: mm/huge_memory.c (6.1). A huge page is a block of [`HPAGE_PMD_NR`] frames. Its first
//! descriptor stands for all of it: it is on one LRU list as one entry, has the group, the owner and the
//! flags. The others are behind it ([`Place::HugeTail`]) and empty.
//!
//! The entries that map it are 512 present ones for consecutive frames, so that an access is the same
//! load and store as ever. Together they are what Linux has as one entry of the second level: it is
//! referenced if one of them is, it is written because all of them are, and `mapcount` is 1. The page of
//! page table is there as it is in Linux, which deposits one to split with.
//!
//! Differences from Linux: a read of untouched memory maps the page of zeroes of 4 KiB, where Linux
//! may map a huge one, which a write breaks up again: reads fault once a page instead of once a region.
//! The page of page table is taken before the huge page, not after it.
//!
//! Invariant: the first page of a huge page is `HEAD` and `ANON`, aligned, of order 9, mapped once at an
//! `index` that is a multiple of 512, and on an LRU list, in a batch, or isolated; the 511 behind it are
//! `HugeTail` with empty descriptors.

use crate::config::{Thp, ThpDefrag};
use crate::gfp::Gfp;
use crate::lruvec::Lru;
use crate::machine::Machine;
use crate::page::{PageFlags, Place};
use crate::page_table::{Advice, Backing, Pte, Vma, VmaId};
use crate::units::{Cpu, MemcgId, Pfn, HPAGE_PMD_NR};
use crate::vmstat::{Event, NodeStat};

/// First page of the region that a page of a mapping is in.
pub(crate) const fn region_of(page: u64) -> u64 {
    page / HPAGE_PMD_NR * HPAGE_PMD_NR
}

impl Vma {
    /// Whether the whole region that `page` is in belongs to the mapping, as far as it has grown.
    pub(crate) fn has_region(&self, page: u64) -> bool {
        region_of(page) + HPAGE_PMD_NR <= self.grown.min(self.len())
    }

    /// The entries of the region from `start` on.
    pub(crate) fn region(&self, start: u64) -> &[Pte] {
        &self.ptes[start as usize..(start + HPAGE_PMD_NR) as usize]
    }

    fn region_mut(&mut self, start: u64) -> &mut [Pte] {
        &mut self.ptes[start as usize..(start + HPAGE_PMD_NR) as usize]
    }
}

impl Machine {
    /// Whether a mapping may have huge pages (Linux `hugepage_vma_check`).
    pub(crate) fn may_be_huge(&self, vma: &Vma) -> bool {
        vma.backing == Backing::Anon
            && match (self.config.thp, vma.advice) {
                (Thp::Never, _) | (_, Advice::NoHuge) => false,
                (Thp::Always, _) | (Thp::Madvise, Advice::Huge) => true,
                (Thp::Madvise, Advice::Normal | Advice::Random | Advice::Sequential) => false,
            }
    }

    /// What a fault may do for a huge page (Linux `vma_thp_gfp_mask`).
    pub(crate) fn thp_gfp(&self, vma: VmaId) -> Gfp {
        let madvised = self.vmas[vma.idx()].advice == Advice::Huge;
        if self.era.asks_once_for_huge {
            return self.thp_gfp_4_5(madvised);
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

    /// The huge page that maps a page of a mapping, if one does.
    pub(crate) fn huge_page_at(&self, vma: VmaId, page: u64) -> Option<Pfn> {
        let pte = self.vmas[vma.idx()].ptes.get(region_of(page) as usize)?;
        if !pte.is_present() || pte.is_zero_page() {
            return None;
        }
        Some(pte.pfn()).filter(|pfn| self.mem.pages[pfn.idx()].has(PageFlags::HEAD))
    }

    /// Makes an allocated and cleared block the huge page of a region in which nothing is mapped, and
    /// puts it on the LRU. It was allocated with its charge to `memcg`.
    pub(crate) fn map_huge(&mut self, vma: VmaId, start: u64, head: Pfn, memcg: MemcgId, cpu: Cpu) {
        debug_assert!(
            start.is_multiple_of(HPAGE_PMD_NR) && head.0.is_multiple_of(HPAGE_PMD_NR as u32)
        );
        let first = head.idx();
        for page in &mut self.mem.pages[first + 1..first + HPAGE_PMD_NR as usize] {
            page.place = Place::HugeTail;
        }
        let flags = PageFlags::ANON.with(PageFlags::UPTODATE).with(PageFlags::DIRTY);
        self.init_user_page(head, vma.0, start as u32, flags.with(PageFlags::HEAD));
        self.begin_anon_page(head);
        self.charge(cpu, head, memcg);
        let mapping = &mut self.vmas[vma.idx()];
        for (pte, pfn) in mapping.region_mut(start).iter_mut().zip(head.0..) {
            *pte = Pte::map(Pfn(pfn), true);
        }
        mapping.nr_present += HPAGE_PMD_NR;
        self.page_add_rmap(head);
        self.mem.work.ptes_set += 1;
        self.mem.work.rmap_walks += 1;
        self.folio_add_lru(cpu, head);
    }

    /// Whether a huge page's mapping was used since it was last asked; forgets it.
    pub(crate) fn test_clear_young_huge(&mut self, head: Pfn) -> bool {
        let page = &self.mem.pages[head.idx()];
        let (vma, start) = (page.mapping as usize, u64::from(page.index));
        let ptes = self.vmas[vma].region_mut(start).iter_mut();
        ptes.fold(false, |young, pte| pte.test_clear_young() | young)
    }

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
        self.mem.vmstat.count(Event::ThpSplitPage);
        true
    }

    /// What one entry of the second level said, its 512 entries say from now on.
    fn split_huge_pmd(&mut self, head: Pfn) {
        let page = &self.mem.pages[head.idx()];
        let (vma, start) = (page.mapping as usize, u64::from(page.index));
        let ptes = self.vmas[vma].region_mut(start);
        if ptes.iter().any(|pte| pte.is_young()) {
            for pte in ptes {
                // What `touched` gives for a read of what is there: the entry, young.
                *pte = pte.touched(false).unwrap_or(*pte);
            }
        }
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
        let list = Lru::of_place(place);
        // From the last to the second, each beside the first: they come off the tail in order.
        for at in (1..HPAGE_PMD_NR as u32).rev() {
            let pfn = Pfn(head.0 + at);
            let tail = &mut self.mem.pages[pfn.idx()];
            debug_assert_eq!(tail.place, Place::HugeTail);
            tail.flags = flags;
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
