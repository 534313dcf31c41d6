//! Reclaim of pages that a caller names, wherever they are on their lists.
//!
//! Linux: `reclaim_pages`, `reclaim_folio_list` (mm/vmscan.c, 6.1), for MADV_PAGEOUT. The pages are
//! handled like any batch, but references are ignored, and neither scanned nor stolen pages are
//! counted.
//!
//! Invariant: each of the pages is on a list again, or freed, when the call returns.

use super::shrink_list::ReclaimStat;
use super::{Reclaimer, ScanControl};
use crate::frames::gfp::Gfp;
use crate::frames::page::{PageFlags, Place};
use crate::interface::ctx::Ctx;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::stats::vmstat::Event;
use crate::units::{Pfn, HPAGE_PMD_NR};
use alloc::vec::Vec;

impl<O: Owners> Manager<O> {
    /// Reclaims pages that are on LRU lists and in no CPU's batch. The caller flushes TLBs.
    pub(crate) fn reclaim_pages(&mut self, pages: Vec<Pfn>, ctx: &Ctx) {
        let mut sc = ScanControl::new(Reclaimer::Direct, 0, Gfp::KERNEL, 0);
        sc.may.ignore_references = true;
        let by_generation = self.era.generations;
        for &pfn in &pages {
            self.lruvec_remove(pfn);
            let page = &mut self.mem.pages[pfn];
            page.place = Place::Isolated;
            if by_generation {
                // It was set because the page was young.
                page.clear(PageFlags::ACTIVE);
            }
        }
        let mut freed = Vec::new();
        for pfn in pages {
            let page = &self.mem.pages[pfn];
            let (memcg, file) = (page.memcg, page.is_file_lru());
            let was_huge = page.has(PageFlags::HEAD);
            let mut stat = ReclaimStat::default();
            self.judge_page(pfn, file, &mut sc, &mut stat, &mut freed, ctx);
            if was_huge && self.mem.pages[pfn.idx() + 1].place == Place::Isolated {
                for tail in pfn.0 + 1..pfn.0 + HPAGE_PMD_NR as u32 {
                    self.judge_page(Pfn(tail), file, &mut sc, &mut stat, &mut freed, ctx);
                }
            }
            self.groups.memcgs[memcg].events.add(Event::Pgactivate, stat.activate);
            self.mem.vmstat.add(Event::Pgactivate, stat.activate);
            for &pfn in &freed {
                self.mem.pages[pfn].place = Place::Allocated;
            }
            self.uncharge_batch(ctx.cpu, &freed, memcg);
            self.mem.free_batch(ctx.cpu, &freed);
            freed.clear();
        }
    }
}
