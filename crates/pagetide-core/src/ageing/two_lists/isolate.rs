//! Isolation: takes a batch of pages off a list.
//!
//! Linux: `isolate_lru_folios` (mm/vmscan.c, 6.1). All counts are in pages:
//! one huge page fills a batch.
//!
//! Invariant: an isolated page is on no list and in no list's count. It returns to a list or is
//! freed in the same step.

use crate::ageing::lruvec::Lru;
use crate::frames::page::Place;
use crate::interface::kernel::Kernel;
use crate::reclaim::ScanControl;
use crate::stats::vmstat::Event;
use crate::units::{MemcgId, NodeId, Pfn};
use alloc::vec::Vec;

/// Result of an isolation, in pages.
#[derive(Clone, Copy, Debug)]
pub(in crate::ageing::two_lists) struct IsolatedBatch {
    /// Pages taken, and those of zones above the highest usable zone.
    pub nr_scanned: u64,
    /// Pages taken.
    pub nr_taken: u64,
}

impl Kernel {
    /// Takes pages of usable zones off the tail, oldest first, until it has at least `nr`. A huge
    /// page is one entry and counts all its pages. `nr_scanned` includes pages of zones above the
    /// highest usable zone (Linux `isolate_lru_folios`).
    pub(in crate::ageing::two_lists) fn isolate_lru_pages(
        &mut self,
        lru: Lru,
        nr: u64,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
        taken: &mut Vec<Pfn>,
    ) -> IsolatedBatch {
        let lists_of = sc.rules.only_zone.unwrap_or(0);
        let reclaim_idx = sc.goal.reclaim_idx;
        let lruvec = &mut self.groups.memcgs[memcg].lruvecs[node];
        let pages = &mut self.mem.pages;
        let mut isolated = IsolatedBatch { nr_scanned: 0, nr_taken: 0 };
        let mut skipped: Vec<Pfn> = Vec::new();
        let Some(two) = lruvec.ageing.two_lists_mut() else { return isolated };
        let list = &mut two.of_zone_mut(lists_of).lists[lru as usize];
        while isolated.nr_taken < nr && list.tail.is_some() {
            let pfn = list.tail;
            list.remove(pages, pfn);
            let page = &mut pages[pfn];
            page.place = Place::Isolated;
            let (zone, nr_pages) = (page.zone(), page.nr_pages());
            isolated.nr_scanned += nr_pages;
            lruvec.zone_sizes[zone][lru as usize] -= nr_pages;
            if zone > reclaim_idx {
                self.mem.vmstat.add(Event::SKIPPED_IN_ZONE[zone], nr_pages);
                skipped.push(pfn);
            } else {
                self.mem.pgdat[node].zone_lru[zone][lru as usize] -= nr_pages;
                isolated.nr_taken += nr_pages;
                taken.push(pfn);
            }
        }
        self.mem.pgdat[node].stats[lru as usize] -= isolated.nr_taken;
        self.mem.work.pages_scanned += taken.len() as u32;
        self.mem.work.pages_skipped += skipped.len() as u32;
        // Skipped pages go to the head with the oldest last, as after a splice.
        for pfn in skipped {
            lruvec.add(pages, pfn);
        }
        self.subtree_sizes_changed(memcg, node, lru, -(isolated.nr_taken as i64));
        isolated
    }
}
