//! Sorting the oldest generation: takes pages to evict, and moves the others to the lists on which
//! they belong.
//!
//! Linux: `sort_folio`, `isolate_folio`, `scan_folios` (mm/vmscan.c, 6.1).

use super::feedback::{tier_of, MAX_NR_TIERS};
use super::limits::{MAX_LRU_BATCH, MIN_LRU_BATCH, MIN_NR_GENS};
use super::window::{place_of, Departure, ListEnd};
use super::workingset::uses_of;
use crate::ageing::lruvec::Lru;
use crate::frames::gfp::Gfp;
use crate::frames::page::{Page, PageFlags, Place};
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::interface::kernel::Kernel;
use crate::reclaim::ScanControl;
use crate::stats::vmstat::Event;
use crate::units::{MemcgId, NodeId, Pfn};
use alloc::vec::Vec;

/// Uses of a page that is always protected (Linux `BIT(LRU_REFS_WIDTH)`).
const MOST_USES: u32 = 4;

/// Pages of one kind that eviction has looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SortedPages {
    /// All of them; 0 if eviction cannot go on.
    pub nr_scanned: u64,
    /// Those taken.
    pub nr_taken: u64,
}

impl Kernel {
    /// Whether a reclaimer may take a page at all.
    fn may_take(&self, page: &Page, sc: &ScanControl) -> bool {
        let swaps = page.is_anon() && !page.has(PageFlags::SWAPCACHE);
        if self.era.evicts_unwritten {
            let writes = page.has(PageFlags::DIRTY) && !page.is_file_lru();
            return sc.goal.gfp.has(Gfp::IO) || !writes && !swaps;
        }
        let may_unmap = sc.may.unmap || page.mapcount == 0;
        let may_write = sc.may.writepage && sc.goal.gfp.has(Gfp::IO);
        may_unmap && (may_write || !page.has(PageFlags::DIRTY) && !swaps)
    }

    /// Takes up to 64 pages of one kind from the oldest generation.
    pub(super) fn scan_oldest(
        &mut self,
        (memcg, node): (MemcgId, NodeId),
        sc: &ScanControl,
        file: bool,
        last_tier: usize,
        taken: &mut Vec<Pfn>,
    ) -> SortedPages {
        let mut sorted = SortedPages::default();
        let Some(generations) = self.groups.generations(memcg, node) else { return sorted };
        if generations.nr_generations(file) == MIN_NR_GENS {
            return sorted;
        }
        let place = usize::from(place_of(generations.min_seq[usize::from(file)]));
        let mut left = MAX_LRU_BATCH;
        let mut nr_moved = 0;
        // From the highest usable zone down, then the zones that the request cannot use.
        for zone in (1..=MAX_NR_ZONES).rev().map(|at| (sc.goal.reclaim_idx + at) % MAX_NR_ZONES) {
            let mut spared = Vec::new();
            let mut nr_spared = 0;
            while let Some(generations) = self.groups.generations(memcg, node) {
                let pfn = generations.lists[place][usize::from(file)][zone].tail;
                if pfn.is_none() {
                    break;
                }
                let nr = self.mem.pages[pfn].nr_pages();
                sorted.nr_scanned += nr;
                if self.sort_page(pfn, (memcg, node), sc, last_tier) {
                    nr_moved += nr;
                } else if self.may_take(&self.mem.pages[pfn], sc) {
                    self.take_page(pfn, (memcg, node));
                    taken.push(pfn);
                    sorted.nr_taken += nr;
                } else {
                    if let Some(generations) = self.groups.generations_mut(memcg, node) {
                        generations.unlink(&mut self.mem.pages, pfn);
                    }
                    spared.push(pfn);
                    nr_spared += nr;
                }
                left -= 1;
                if left == 0 || sorted.nr_taken.max(nr_spared) >= MIN_LRU_BATCH {
                    break;
                }
            }
            if nr_spared > 0 {
                self.mem.vmstat.add(Event::SKIPPED_IN_ZONE[zone], nr_spared);
                self.mem.work.pages_skipped += spared.len() as u32;
                // They return to the head of the list, the oldest last.
                for pfn in spared {
                    if let Some(generations) = self.groups.generations_mut(memcg, node) {
                        let place = place as u8;
                        generations.link(&mut self.mem.pages, pfn, place, ListEnd::Head);
                    }
                }
            }
            if left == 0 || sorted.nr_taken >= MIN_LRU_BATCH {
                break;
            }
        }
        self.mem.work.pages_scanned += taken.len() as u32;
        self.mem.work.lru_moves += nr_moved as u32;
        if !sc.goal.is_for_group() {
            self.mem.vmstat.add(Event::Pgrefill, nr_moved);
        }
        self.groups.memcgs[memcg].events.add(Event::Pgrefill, nr_moved);
        // Pages that the request cannot use must not keep the scan going for ever.
        if sorted.nr_taken == 0 && left > 0 {
            sorted.nr_scanned = 0;
        }
        sorted
    }

    /// Moves a page that must not be evicted now to the list on which it belongs. Returns whether
    /// it has moved.
    fn sort_page(
        &mut self,
        pfn: Pfn,
        (memcg, node): (MemcgId, NodeId),
        sc: &ScanControl,
        last_tier: usize,
    ) -> bool {
        let page = &self.mem.pages[pfn];
        let file = page.is_file_lru();
        let kind = usize::from(file);
        let (uses, zone, nr) = (uses_of(page), page.zone(), page.nr_pages());
        let tier = tier_of(uses);
        let is_busy = !self.era.evicts_unwritten
            && (page.flags.any(PageFlags::LOCKED.with(PageFlags::WRITEBACK))
                || file && page.has(PageFlags::DIRTY));
        let counts = !self.era.counts_old_refaults;
        let protects = self.era.protects_tiers;
        let Some(generations) = self.groups.generations_mut(memcg, node) else { return false };
        let end = if page.generation() != Some(place_of(generations.min_seq[kind])) {
            // Ageing has found it in use.
            ListEnd::Head
        } else if protects && (tier > last_tier || uses == MOST_USES) {
            generations.feedback.protected[kind][tier.min(MAX_NR_TIERS - 1)] += nr;
            let event = match file {
                false => Event::WorkingsetActivateAnon,
                true => Event::WorkingsetActivateFile,
            };
            if counts {
                self.mem.vmstat.add(event, nr);
                self.groups.memcgs[memcg].events.add(event, nr);
            }
            self.next_generation(pfn, memcg, node);
            ListEnd::Tail
        } else if zone > sc.goal.reclaim_idx {
            self.next_generation(pfn, memcg, node);
            ListEnd::Tail
        } else if is_busy {
            self.next_generation(pfn, memcg, node);
            // It becomes the next page to be evicted when its write ends.
            self.mem.pages[pfn].set(PageFlags::RECLAIM);
            ListEnd::Head
        } else {
            return false;
        };
        if let Some(generations) = self.groups.generations_mut(memcg, node) {
            generations.relist(&mut self.mem.pages, pfn, end);
        }
        true
    }

    /// Takes a page off the lists, to be evicted.
    fn take_page(&mut self, pfn: Pfn, (memcg, node): (MemcgId, NodeId)) {
        let clears_reclaim = !self.era.evicts_unwritten;
        let page = &mut self.mem.pages[pfn];
        if !page.has(PageFlags::REFERENCED) {
            page.forget_uses();
        }
        page.clear(PageFlags::REFERENCED);
        if clears_reclaim {
            page.clear(PageFlags::RECLAIM);
        }
        let (file, zone, nr) = (page.is_file_lru(), page.zone(), page.nr_pages());
        let Some(generations) = self.groups.generations_mut(memcg, node) else { return };
        let active = generations.remove(&mut self.mem.pages, pfn, Departure::Evicted);
        let lru = Lru::of_kind(file, active);
        self.count_pages(memcg, (node, zone), lru, -(nr as i64));
        self.mem.pages[pfn].place = Place::Isolated;
    }
}
