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

/// Zones of at most this many frames are searched by frame.
const SMALL_ZONE: u32 = 4096;

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
        if let Some(zone) = sc.rules.only_zone {
            return self.isolate_pages_of_zone(lru, nr, memcg, node, zone, taken);
        }
        let reclaim_idx = sc.goal.reclaim_idx;
        let lruvec = &mut self.groups.memcgs[memcg].lruvecs[node];
        let pages = &mut self.mem.pages;
        let mut isolated = IsolatedBatch { nr_scanned: 0, nr_taken: 0 };
        let mut skipped: Vec<Pfn> = Vec::new();
        while isolated.nr_taken < nr {
            let pfn = lruvec.list(lru).tail;
            if pfn.is_none() {
                break;
            }
            let (zone, nr_pages) = (pages[pfn].zone(), pages[pfn].nr_pages());
            isolated.nr_scanned += nr_pages;
            lruvec.remove(pages, pfn, lru);
            pages[pfn].place = Place::Isolated;
            if zone > reclaim_idx {
                let event = [
                    Event::PgskipDma,
                    Event::PgskipDma32,
                    Event::PgskipNormal,
                    Event::PgskipMovable,
                ][zone];
                self.mem.vmstat.add(event, nr_pages);
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

    /// Takes up to `nr` pages of one zone off a list. (Before 4.8 every zone had its own lists.)
    /// Searching the node's list for the few pages of a small zone would be slow. So the frames of
    /// a small zone are searched in order, from where the last call stopped.
    fn isolate_pages_of_zone(
        &mut self,
        lru: Lru,
        nr: u64,
        memcg: MemcgId,
        node: NodeId,
        zone: usize,
        taken: &mut Vec<Pfn>,
    ) -> IsolatedBatch {
        let span = &self.mem.nodes[node].zones[zone];
        let (start, spanned) = (span.start_pfn.0, span.spanned as u32);
        let lruvec = &mut self.groups.memcgs[memcg].lruvecs[node];
        let pages = &mut self.mem.pages;
        let nr = nr.min(lruvec.zone_sizes[zone][lru as usize]);
        let cursor = self.groups.soft_limit_trees.zone_cursor % spanned.max(1);
        let mut nr_taken = 0;
        let mut at = lruvec.list(lru).tail;
        while spanned > SMALL_ZONE && nr_taken < nr && at.is_some() {
            // Most pages of the list are in a large zone. Take the oldest first; pages of other
            // zones stay.
            let pfn = at;
            let page = &pages[pfn];
            at = page.prev;
            if page.zone() == zone {
                nr_taken += page.nr_pages();
                lruvec.remove(pages, pfn, lru);
                pages[pfn].place = Place::Isolated;
                taken.push(pfn);
            }
        }
        for step in 0..spanned {
            if nr_taken >= nr || spanned > SMALL_ZONE {
                break;
            }
            let at = (cursor + step) % spanned;
            let pfn = Pfn(start + at);
            // A block that was never used has no page on a list.
            let Some(page) = pages.get(pfn.idx()) else { continue };
            if Lru::on(page) == Some(lru) && page.memcg == memcg {
                nr_taken += page.nr_pages();
                lruvec.remove(pages, pfn, lru);
                pages[pfn].place = Place::Isolated;
                taken.push(pfn);
                self.groups.soft_limit_trees.zone_cursor = at + 1;
            }
        }
        let state = &mut self.mem.pgdat[node];
        state.zone_lru[zone][lru as usize] -= nr_taken;
        state.stats[lru as usize] -= nr_taken;
        self.subtree_sizes_changed(memcg, node, lru, -(nr_taken as i64));
        self.mem.work.pages_scanned += taken.len() as u32;
        IsolatedBatch { nr_scanned: nr_taken, nr_taken }
    }
}
