//! The free scanner: finds free frames as migration targets, from a zone's end downwards.
//!
//! Linux: `isolate_freepages`, `isolate_freepages_block`, `fast_isolate_freepages`,
//! `fast_isolate_around`, `suitable_migration_target` (mm/compaction.c, 6.1).
//!
//! Invariant: frames on a run's list are not in the allocator. The scanner takes no frame that the
//! zone needs for its min watermark.

use super::migrate_scanner::freelist_scan_limit;
use super::run::block_end_in;
use super::zone_state::{pageblock_end, pageblock_start};
use super::{CompactControl, CompactMode, COMPACT_CLUSTER_MAX};
use crate::frames::gfp::MigrateType;
use crate::frames::page::Place;
use crate::frames::page_alloc::Memory;
use crate::interface::kernel::Kernel;
use crate::stats::vmstat::Event;
use crate::units::{Order, Pfn, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER};

impl Memory {
    /// Whether the block may receive pages (Linux `suitable_migration_target`, and its skip bit).
    fn is_migration_target(&mut self, run: &CompactControl, pfn: u32) -> bool {
        let page = self.pages.peek(pfn as usize);
        let whole = page.place == Place::Buddy && page.private >= PAGEBLOCK_ORDER.into();
        // Only a task's last attempt (`SyncFull`) takes blocks of any migrate type.
        let thorough = run.goal.thorough && run.is_direct();
        let ignores = run.ignore_skip_hint;
        let zone = self.compact_zone_of(&run.goal);
        if whole || !ignores && zone.compaction.is_skipped(pfn) {
            return false;
        }
        thorough || zone.block_type(Pfn(pfn)).is_movable()
    }

    /// Takes free blocks from `start..end` until the run has `wanted` frames. Returns where it
    /// stopped and the number of frames that it took.
    fn isolate_freepages_block(
        &mut self,
        run: &mut CompactControl,
        start: u32,
        end: u32,
        wanted: u32,
        stride: u32,
    ) -> (u32, u32) {
        let (mut at, mut nr_scanned, mut nr_isolated) = (start, 0u32, 0u32);
        // The descriptors of a pageblock are all fresh (never written since boot), or none is.
        let is_fresh = self.pages.is_fresh(start as usize);
        while at < end {
            nr_scanned += 1;
            let peeked;
            let page = if is_fresh {
                peeked = self.pages.peek(at as usize);
                &peeked
            } else {
                &self.pages[at as usize]
            };
            if page.place != Place::Buddy {
                // Skip a compound page as a whole.
                let compound = page.order > 0 && page.place != Place::BuddyTail;
                at += if compound { (1u32 << page.order).max(stride) } else { stride };
                continue;
            }
            let Some(order) = self.take_free_block(run, Pfn(at)) else { break };
            nr_scanned += (1 << order) - 1;
            nr_isolated += 1 << order;
            at += 1 << order;
            if run.freepages.len() as u32 >= wanted {
                break;
            }
        }
        run.free_scanned += u64::from(nr_scanned);
        self.vmstat.add(Event::CompactFreeScanned, nr_scanned.into());
        self.work.compact_scanned += nr_scanned;
        (at.min(end), nr_isolated)
    }

    /// Takes the free block that starts at `pfn` and puts its frames on the run's list. Returns
    /// `None` if the zone would fall below its watermark.
    fn take_free_block(&mut self, run: &mut CompactControl, pfn: Pfn) -> Option<Order> {
        let zone = &mut self.nodes[run.goal.zone.node].zones[usize::from(run.goal.zone.zone)];
        let order = zone.isolate_free_block(&mut self.pages, pfn)?;
        self.work.buddy_ops += 1;
        run.freepages.extend((pfn.0..pfn.0 + (1 << order)).map(Pfn));
        self.vmstat.add(Event::CompactIsolated, 1 << order);
        Some(order)
    }

    /// Searches the free lists for a frame near the zone's end. Takes it and the frames around it.
    fn fast_isolate_freepages(&mut self, run: &mut CompactControl, wanted: u32) {
        let Some(order) = run.goal.order else { return };
        let zone = self.compact_zone_of(&run.goal);
        let zone_start = zone.start_pfn.0;
        let scan_start = run.free_pfn >= zone.compaction.init_free;
        let mut limit = (freelist_scan_limit(run) >> 1).max(1);
        if scan_start {
            limit = PAGEBLOCK_NR_PAGES >> 1;
        }
        // Prefer the top quarter of the range between the scanners, then its top half.
        let distance = run.free_pfn.saturating_sub(run.migrate_pfn);
        let low = pageblock_start(run.free_pfn - (distance >> 2));
        let min = pageblock_start(run.free_pfn - (distance >> 1));
        run.search_order = run.search_order.min(order - 1);
        let mut at_order = Some(run.search_order);
        let (mut nr_scanned, mut highest) = (0u32, 0u32);
        let mut found = None;
        while let Some(this) = at_order.filter(|_| found.is_none()) {
            let (mut order_scanned, mut high) = (0u32, None);
            let zone = &mut self.nodes[run.goal.zone.node].zones[usize::from(run.goal.zone.zone)];
            let list = &zone.free_area[usize::from(this)].lists[MigrateType::Movable];
            let mut at = list.tail;
            while at.is_some() {
                order_scanned += 1;
                nr_scanned += 1;
                if at.0 >= highest {
                    highest = pageblock_start(at.0).max(zone_start);
                }
                if at.0 >= low {
                    run.fast_search_fail = 0;
                    run.search_order = this;
                    found = Some(at);
                    break;
                }
                if at.0 >= min && high.is_none_or(|high: Pfn| at > high) {
                    high = Some(at);
                    // A candidate: search for a better one only briefly.
                    limit >>= 1;
                }
                if order_scanned >= limit {
                    break;
                }
                at = self.pages[at].prev;
            }
            found = found.or(high);
            // The next search starts at the entries that this search has not seen.
            if let Some(last) = found.or(Some(at).filter(|at| at.is_some())) {
                zone.rotate_free_list_back(&mut self.pages, this, MigrateType::Movable, last);
            }
            if let Some(block) = found {
                match self.take_free_block(run, block) {
                    Some(order) => nr_scanned += (1 << order) - 1,
                    None => {
                        found = None;
                        run.search_order = run.search_order.checked_sub(1).unwrap_or(order - 1);
                        break;
                    }
                }
            }
            if order_scanned >= limit {
                limit = (limit >> 1).max(1);
            }
            at_order = next_search_order(run, order, this);
        }
        let mut around = found;
        if found.is_none() {
            run.fast_search_fail += 1;
            if scan_start {
                if highest >= min && highest > 0 {
                    run.free_pfn = highest;
                    around = Some(Pfn(highest));
                } else if run.is_direct() {
                    run.free_pfn = min.max(zone_start);
                    around = Some(Pfn(run.free_pfn));
                }
            }
        }
        let zone = self.compact_zone_of(&run.goal);
        if highest > 0 && highest >= zone.compaction.cached_free {
            let below = highest.saturating_sub(PAGEBLOCK_NR_PAGES);
            zone.compaction.cached_free = below.max(zone_start);
        }
        run.free_scanned += u64::from(nr_scanned);
        self.vmstat.add(Event::CompactFreeScanned, nr_scanned.into());
        self.work.compact_scanned += nr_scanned;
        if let Some(pfn) = around {
            self.fast_isolate_around(run, pfn, wanted);
        }
    }

    /// Takes more frames from the pageblock of a frame that a search found.
    fn fast_isolate_around(&mut self, run: &mut CompactControl, pfn: Pfn, wanted: u32) {
        let enough = run.freepages.len() as u32 >= wanted;
        if enough || run.is_direct() && run.goal.mode == CompactMode::Async {
            return;
        }
        let zone = self.compact_zone_of(&run.goal);
        let start = pageblock_start(pfn.0).max(zone.start_pfn.0);
        let end = block_end_in(zone, pfn.0);
        let (stopped, _) = self.isolate_freepages_block(run, start, end, wanted, 1);
        if stopped >= end {
            self.compact_zone_of(&run.goal).compaction.set_skip(start);
        }
    }
}

impl Kernel {
    /// Fills the run's list with up to `wanted` frames, one for each page to move.
    pub(super) fn isolate_freepages(&mut self, run: &mut CompactControl, wanted: u32) {
        let linear = self.era.scans_linearly;
        if !linear && run.goal.order.is_some_and(|order| order > 0) {
            self.mem.fast_isolate_freepages(run, wanted);
            if !run.freepages.is_empty() {
                split_map_pages(run);
                return;
            }
        }
        let low = pageblock_end(run.migrate_pfn);
        let zone_start = self.mem.compact_zone_of(&run.goal).start_pfn.0;
        let mut at = run.free_pfn;
        let mut block = pageblock_start(at);
        let longest = if linear { 1 } else { COMPACT_CLUSTER_MAX };
        let mut stride = if run.goal.mode == CompactMode::Async { longest } else { 1 };
        while block >= low && block + PAGEBLOCK_NR_PAGES > zone_start {
            let end = block_end_in(self.mem.compact_zone_of(&run.goal), block);
            if at < block || at >= end {
                at = block.max(zone_start);
            }
            if self.mem.is_migration_target(run, block.max(zone_start)) {
                let (stopped, nr) = self.mem.isolate_freepages_block(run, at, end, wanted, stride);
                at = stopped;
                if stopped >= end && (!linear || nr == 0) {
                    self.update_free_skip(run, block.max(zone_start));
                }
                if run.freepages.len() as u32 >= wanted {
                    // Leave a block that is used up. In any other case the next scan continues
                    // inside the block.
                    if at >= end {
                        at = block.saturating_sub(PAGEBLOCK_NR_PAGES);
                    }
                    break;
                }
                if at < end {
                    // Taking more would bring the zone below its watermark.
                    break;
                }
                stride = if nr > 0 { 1 } else { longest.min(stride << 1) };
            }
            let Some(next) = block.checked_sub(PAGEBLOCK_NR_PAGES) else {
                at = zone_start;
                break;
            };
            block = next;
            at = block;
        }
        run.free_pfn = at.max(zone_start);
        if !linear {
            split_map_pages(run);
        }
    }

    /// Sets the skip bit of a block that was scanned to its end.
    fn update_free_skip(&mut self, run: &CompactControl, pfn: u32) {
        if self.era.scans_linearly && run.ignore_skip_hint {
            return;
        }
        let zone = self.mem.compact_zone_of(&run.goal);
        zone.compaction.set_skip(pfn);
        zone.compaction.cached_free = zone.compaction.cached_free.min(pfn);
    }
}

/// Reverses the list: the block found last is used first, from its last frame down.
fn split_map_pages(run: &mut CompactControl) {
    run.freepages.make_contiguous().reverse();
}

/// The next order to search (Linux `next_search_order`). The search goes down from its first order,
/// then on from the highest order. It tries each order once.
fn next_search_order(run: &mut CompactControl, order: Order, this: Order) -> Option<Order> {
    let next = this.checked_sub(1).unwrap_or(order - 1);
    if next == run.search_order {
        run.search_order = run.search_order.checked_sub(1).unwrap_or(order - 1);
        return None;
    }
    Some(next)
}
