//! User pages from allocation to free: owner, number of mappings, swap slot.
//!
//! Linux: mm/rmap.c (`page_add_anon_rmap`, `page_remove_rmap`), mm/swap_state.c, `folio_put`.
//!
//! Invariant: a mapped page is counted once on its node, as anonymous or as mapped file memory. A
//! SWAPCACHE page has its slot in `private`.

use crate::ageing::shadow::Shadow;
use crate::frames::buddy::clear_tails;
use crate::frames::page::{Page, PageFlags, Place};
use crate::frames::page_alloc::Memory;
use crate::interface::kernel::Kernel;
use crate::interface::owners::OwnerSlot;
use crate::stats::vmstat::NodeStat;
use crate::units::{Cpu, MemcgId, NodeId, Pfn, SwapSlot, HPAGE_PMD_ORDER};

impl Memory {
    pub(crate) fn init_user_page(&mut self, pfn: Pfn, mapping: u32, index: u32, flags: PageFlags) {
        let page = &mut self.pages[pfn];
        debug_assert_eq!(page.place, Place::Allocated);
        page.mapping = mapping;
        page.index = index;
        page.flags = flags;
    }

    pub(crate) fn page_add_rmap(&mut self, pfn: Pfn) {
        let page = &mut self.pages[pfn];
        page.mapcount += 1;
        if page.mapcount == 1 {
            let (node, stat, nr, huge) = mapped_as(page);
            let stats = &mut self.pgdat[node].stats;
            stats[stat as usize] += nr;
            stats[NodeStat::NrAnonTransparentHugepages as usize] += u64::from(huge);
        }
    }

    pub(crate) fn page_remove_rmap(&mut self, pfn: Pfn) {
        let page = &mut self.pages[pfn];
        page.mapcount -= 1;
        if page.mapcount == 0 {
            let (node, stat, nr, huge) = mapped_as(page);
            let stats = &mut self.pgdat[node].stats;
            stats[stat as usize] -= nr;
            stats[NodeStat::NrAnonTransparentHugepages as usize] -= u64::from(huge);
        }
    }

    /// Puts a page in the swap cache of `slot`, which already refers to it. A huge page is in the
    /// swap cache of 512 slots, from `slot` on.
    pub(crate) fn mark_swap_cached(&mut self, pfn: Pfn, slot: SwapSlot) {
        let page = &mut self.pages[pfn];
        page.set(PageFlags::SWAPCACHE);
        page.private = slot.0;
        self.stat_pages(pfn, NodeStat::NrFilePages, true);
        self.stat_pages(pfn, NodeStat::NrSwapcached, true);
    }
}

impl Kernel {
    /// Makes a zeroed and charged frame the anonymous page of a slot in swap-backed memory. No
    /// list has it yet.
    pub(crate) fn begin_anon_page(
        &mut self,
        pfn: Pfn,
        at: OwnerSlot,
        extra: PageFlags,
        memcg: MemcgId,
        cpu: Cpu,
    ) {
        let flags =
            PageFlags::SWAPBACKED.with(PageFlags::UPTODATE).with(PageFlags::DIRTY).with(extra);
        self.mem.init_user_page(pfn, at.owner, at.index, flags);
        self.activate_new_anon(pfn);
        self.charge(cpu, pfn, memcg);
    }

    /// Removes a page from the swap cache, leaving `shadow` in its slots.
    pub(crate) fn delete_from_swap_cache(&mut self, pfn: Pfn, shadow: Shadow, cpu: Cpu) {
        let page = &mut self.mem.pages[pfn];
        debug_assert!(page.has(PageFlags::SWAPCACHE));
        page.clear(PageFlags::SWAPCACHE);
        let (first, nr) = (page.private, page.nr_pages() as u32);
        page.private = 0;
        for slot in (first..first + nr).map(SwapSlot) {
            let freed = self.swap[slot].remove_from_cache(slot, shadow);
            if self.swap.takes_memory && !self.swap[slot].has_cache_entry(slot) {
                self.remove_cache_entry(slot, cpu);
            }
            match freed {
                Some(memcg) => {
                    self.uncharge_cached_swap(memcg);
                    self.swap_slot_free_notify(slot, cpu);
                }
                None => self.charge_swapped_out(self.swap[slot].memcg(slot)),
            }
        }
        self.mem.stat_pages(pfn, NodeStat::NrFilePages, false);
        self.mem.stat_pages(pfn, NodeStat::NrSwapcached, false);
    }

    pub(crate) fn swap_unmap(&mut self, slot: SwapSlot, cpu: Cpu) {
        let had_entry = self.swap.takes_memory && self.swap[slot].has_cache_entry(slot);
        let freed = self.swap[slot].unmap(slot);
        if had_entry && !self.swap[slot].has_cache_entry(slot) {
            self.remove_cache_entry(slot, cpu);
        }
        if let Some(memcg) = freed {
            self.groups.uncharge_swap(memcg);
            self.swap_slot_free_notify(slot, cpu);
        }
    }

    /// Frees an unmapped anonymous page with its swap slot. If the page is under I/O, reclaim frees
    /// it later (in Linux, the last reference does); if it is pinned, its last unpin frees it.
    pub(crate) fn free_anon_page(&mut self, pfn: Pfn, cpu: Cpu) {
        let page = &self.mem.pages[pfn];
        debug_assert_eq!(page.mapcount, 0);
        let held = PageFlags::WRITEBACK.with(PageFlags::LOCKED).with(PageFlags::PINNED);
        if page.flags.any(held) {
            return;
        }
        if page.has(PageFlags::SWAPCACHE) {
            self.delete_from_swap_cache(pfn, Default::default(), cpu);
        }
        self.free_user_page(pfn, cpu);
    }

    /// Frees the cached page of a swap slot that no entry refers to. A huge page is freed when no
    /// entry refers to any of its slots.
    pub(crate) fn free_cached_swap_page(&mut self, slot: SwapSlot, cpu: Cpu) {
        let Some(pfn) = self.swap_cache_head(slot) else { return };
        let page = &self.mem.pages[pfn];
        let first = page.private;
        let slots = (first..first + page.nr_pages() as u32).map(SwapSlot);
        if page.mapcount == 0 && !slots.into_iter().any(|slot| self.swap[slot].is_mapped(slot)) {
            self.free_anon_page(pfn, cpu);
        }
    }

    /// Frees a page without an owner; a huge page is freed as a whole.
    pub(crate) fn free_user_page(&mut self, pfn: Pfn, cpu: Cpu) {
        let huge = self.mem.pages[pfn].has(PageFlags::HEAD);
        debug_assert!(!self.mem.pages[pfn].has(PageFlags::PINNED), "{pfn:?} is pinned");
        self.mem.clear_mlocked(pfn);
        self.lru_forget(pfn);
        self.uncharge(cpu, pfn);
        if huge {
            clear_tails(&mut self.mem.pages, pfn, HPAGE_PMD_ORDER);
        }
        self.mem.free_page(cpu, pfn, if huge { HPAGE_PMD_ORDER } else { 0 });
    }
}

/// How a mapped page is counted: node, counter, number of pages, and whether it is a huge page.
#[inline]
fn mapped_as(page: &Page) -> (NodeId, NodeStat, u64, bool) {
    let stat = if page.is_anon() { NodeStat::NrAnonPages } else { NodeStat::NrMapped };
    (page.node(), stat, page.nr_pages(), page.has(PageFlags::HEAD))
}
