//! The migrate scanner: finds movable pages, from a zone's start upwards.
//!
//! Linux: `isolate_migratepages`, `isolate_migratepages_block`, `fast_find_migrateblock`,
//! `suitable_migration_source`, `update_cached_migrate` (mm/compaction.c, 6.1).
//!
//! Differs from Linux: there are no locks, so a contended lock never ends a batch early.
//!
//! Invariant: an isolated page is [`Place::Isolated`], on no list, and counted in `nr_isolated_*`
//! until it is put back or has moved.

use super::run::block_start;
use super::zone_state::{pageblock_end, pageblock_start};
use super::{CompactControl, CompactMode, Compactor, FastStart, COMPACT_CLUSTER_MAX};
use crate::frames::gfp::{Gfp, MigrateType};
use crate::frames::page::{Page, PageFlags, Place};
use crate::frames::page_alloc::Memory;
use crate::interface::kernel::Kernel;
use crate::stats::vmstat::{Event, NodeStat};
use crate::units::{Order, Pfn, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER, PAGE_ALLOC_COSTLY_ORDER};

/// Number of entries a fast search may scan; halves with every failure (`freelist_scan_limit`).
pub(super) const fn freelist_scan_limit(run: &CompactControl) -> u32 {
    let shift = if run.fast_search_fail < 15 { run.fast_search_fail } else { 15 };
    (COMPACT_CLUSTER_MAX >> shift) + 1
}

impl Memory {
    /// Whether this request may move pages out of the block (Linux `suitable_migration_source`): an
    /// asynchronous task uses only blocks of its own migrate type.
    fn is_migration_source(&mut self, run: &CompactControl, pfn: u32) -> bool {
        let page = self.pages.get(pfn as usize);
        let is_huge =
            |page: &Page| page.has(PageFlags::HEAD) && Order::from(page.order) >= PAGEBLOCK_ORDER;
        if page.is_some_and(is_huge) {
            return false;
        }
        if run.goal.mode != CompactMode::Async || !run.is_direct() {
            return true;
        }
        let mt = self.compact_zone_of(&run.goal).block_type(Pfn(pfn));
        mt == run.goal.mt || run.goal.mt == MigrateType::Movable && mt.is_movable()
    }

    /// Whether more pages are isolated than half of those on the lists.
    fn is_too_many_isolated(&self, run: &CompactControl) -> bool {
        let stats = &self.pgdat[run.goal.zone.node].stats;
        let of = |stat: NodeStat| stats[stat as usize];
        let isolated = of(NodeStat::NrIsolatedAnon) + of(NodeStat::NrIsolatedFile);
        let sizes = self.node_lru_sizes(run.goal.zone.node);
        isolated > (sizes.anon() + sizes.file()) / 2
    }
}

impl Kernel {
    /// Isolates pages of the next suitable pageblock, if any.
    pub(super) fn isolate_migratepages(&mut self, run: &mut CompactControl) {
        let searched = run.migrate_pfn;
        let mut low = self.fast_find_migrateblock(run);
        let mut fast_found = low != searched && run.fast_search_fail == 0;
        let zone = self.mem.compact_zone_of(&run.goal);
        let zone_start = zone.start_pfn.0;
        let mut looked_at = 0;
        loop {
            let end = pageblock_end(low);
            // The free scanner's own block is never a source.
            if end > run.free_pfn {
                run.migrate_pfn = low;
                return;
            }
            looked_at += 1;
            if looked_at > 2 * COMPACT_CLUSTER_MAX {
                // Bounds the work of one step.
                run.migrate_pfn = low;
                return;
            }
            let zone = self.mem.compact_zone_of(&run.goal);
            let at_start = low.is_multiple_of(PAGEBLOCK_NR_PAGES) || low == zone_start;
            let looked_for = core::mem::take(&mut fast_found);
            let skipped =
                at_start && !looked_for && !run.ignore_skip_hint && zone.compaction.is_skipped(low);
            if skipped {
                low = end;
                continue;
            }
            if !self.mem.is_migration_source(run, low) {
                self.update_cached_migrate(run, end);
                low = end;
                continue;
            }
            self.isolate_migratepages_block(run, low, end);
            return;
        }
    }

    /// Notes that the scanner has reached `end`, the end of a block. As in Linux, the saved
    /// position is the end of the block that starts at `end`, so the next run starts one block
    /// later.
    fn update_cached_migrate(&mut self, run: &CompactControl, end: u32) {
        if self.era.scans_linearly && run.ignore_skip_hint {
            return;
        }
        let end = if self.era.scans_linearly { end } else { pageblock_end(end) };
        let sync = run.goal.mode != CompactMode::Async;
        let cached = &mut self.mem.compact_zone_of(&run.goal).compaction.cached_migrate;
        cached[0] = cached[0].max(end);
        if sync {
            cached[1] = cached[1].max(end);
        }
    }

    /// Searches the free lists for a partly empty block early in the zone. Returns the next
    /// position.
    fn fast_find_migrateblock(&mut self, run: &mut CompactControl) -> u32 {
        let pfn = run.migrate_pfn;
        let Some(order) = run.goal.order else { return pfn };
        if run.ignore_skip_hint || self.era.scans_linearly {
            return pfn;
        }
        let zone = &mut self.mem.nodes[run.goal.zone.node].zones[usize::from(run.goal.zone.zone)];
        let zone_start = zone.start_pfn.0;
        // Finish a block that was begun.
        if pfn != zone_start && pfn != pageblock_start(pfn) {
            return pfn;
        }
        let movable = run.goal.mt == MigrateType::Movable;
        if order <= PAGE_ALLOC_COSTLY_ORDER || (run.goal.by == Compactor::Direct && !movable) {
            return pfn;
        }
        // Search the first half of the range between the scanners, later only its first eighth.
        let mut distance = run.free_pfn.saturating_sub(pfn) >> 1;
        if pfn != zone_start {
            distance >>= 2;
        }
        let high = pageblock_start(pfn + distance);
        let limit = freelist_scan_limit(run);
        let mut nr_scanned = 0;
        let mut found = None;
        let mut at_order = order - 1;
        while at_order >= PAGE_ALLOC_COSTLY_ORDER && found.is_none() && nr_scanned < limit {
            let list = &zone.free_area[usize::from(at_order)].lists[MigrateType::Movable];
            let mut at = list.head;
            while at.is_some() {
                nr_scanned += 1;
                if nr_scanned > limit {
                    break;
                }
                if at.0 < high && !zone.compaction.is_skipped(at.0) {
                    found = Some(at.0);
                    break;
                }
                at = self.mem.pages[at].next;
            }
            if at.is_some() {
                // The next search starts after the entries that this search has seen.
                zone.rotate_free_list(&mut self.mem.pages, at_order, MigrateType::Movable, at);
            }
            at_order -= 1;
        }
        run.migrate_scanned += u64::from(nr_scanned);
        self.mem.vmstat.add(Event::CompactMigrateScanned, nr_scanned.into());
        self.mem.work.compact_scanned += nr_scanned;
        match found {
            Some(free) => {
                run.fast_start = match run.fast_start {
                    FastStart::Used => FastStart::Used,
                    FastStart::None => FastStart::At(free),
                    FastStart::At(low) => FastStart::At(low.min(free)),
                };
                run.fast_search_fail = 0;
                zone.compaction.set_skip(free);
                pageblock_start(free).max(zone_start)
            }
            None => {
                run.fast_search_fail += 1;
                if let FastStart::At(low) = run.fast_start {
                    run.fast_start = FastStart::Used;
                    run.migrate_pfn = low;
                    return low;
                }
                pfn
            }
        }
    }

    /// Isolates up to 32 pages of one block (Linux `isolate_migratepages_block`).
    fn isolate_migratepages_block(&mut self, run: &mut CompactControl, start: u32, end: u32) {
        if self.mem.is_too_many_isolated(run) {
            run.contended = true;
            return;
        }
        let asynchronous = run.goal.mode == CompactMode::Async;
        // A direct asynchronous run isolates all pages of a block of its order, or none.
        let order = run.goal.order.filter(|_| asynchronous && run.is_direct());
        let mut nr_scanned = 0u32;
        let mut nr_isolated = 0u32;
        let mut low = start;
        // The descriptors of a pageblock are all fresh (never written since boot), or none is.
        let is_fresh = self.mem.pages.is_fresh(start as usize);
        // The skip bit is checked once, at the block's first frame. A fast search sets the bit of
        // the block that it finds, so that block is skipped here. Linux 6.1 does the same; a fix
        // was reverted.
        let aligned = start.is_multiple_of(PAGEBLOCK_NR_PAGES);
        let linear = self.era.scans_linearly;
        let mut skip_updated = false;
        let mut next_skip = order.map_or(u32::MAX, |order| block_start(low, order) + (1 << order));
        if asynchronous && self.step.need_resched {
            run.contended = true;
            return;
        }
        while low < end {
            if let Some(order) = order.filter(|_| low >= next_skip) {
                if nr_isolated > 0 {
                    break;
                }
                next_skip = block_start(low, order) + (1 << order);
            }
            nr_scanned += 1;
            let heeds_bit = low == start && aligned && !linear && !run.ignore_skip_hint;
            if heeds_bit && self.mem.compact_zone_of(&run.goal).compaction.is_skipped(low) {
                low = end;
                break;
            }
            let peeked;
            let page = if is_fresh {
                peeked = self.mem.pages.peek(low as usize);
                &peeked
            } else {
                &self.mem.pages[low as usize]
            };
            if page.place == Place::Buddy {
                low += 1 << page.private;
                continue;
            }
            // Skip a compound page as a whole.
            let compound = page.order > 0 && matches!(page.place, Place::Allocated)
                || page.has(PageFlags::HEAD);
            let span = if compound { 1 << page.order } else { 1 };
            // Pages of pools move without owners and lists (Linux `isolate_movable_page`).
            let is_pool_page = page.has(PageFlags::ZSPAGE);
            if !compound && (is_pool_page || self.is_isolatable(page, run)) {
                // The run that takes the first page of a block sets the block's skip bit.
                if !is_pool_page
                    && !core::mem::replace(&mut skip_updated, true)
                    && low.is_multiple_of(PAGEBLOCK_NR_PAGES)
                    && !run.ignore_skip_hint
                    && !linear
                {
                    self.mem.compact_zone_of(&run.goal).compaction.set_skip(low);
                }
                self.isolate_migratepage(run, Pfn(low));
                nr_isolated += 1;
                low += 1;
                if run.migratepages.len() as u32 >= COMPACT_CLUSTER_MAX && !run.rescan {
                    break;
                }
                continue;
            }
            low += span;
            if let Some(order) = order {
                if nr_isolated > 0 {
                    self.putback_migratepages(run);
                    nr_isolated = 0;
                }
                if low < next_skip {
                    low = next_skip;
                }
                next_skip = block_start(low, order) + (1 << order);
            }
        }
        low = low.min(end);
        // The block has no pages for any run, or no pages are left.
        if low == end && (nr_isolated == 0 || run.rescan) {
            let marks = if linear { !run.ignore_skip_hint } else { aligned && !skip_updated };
            if marks {
                self.mem.compact_zone_of(&run.goal).compaction.set_skip(start);
            }
            self.update_cached_migrate(run, end);
        }
        run.migrate_scanned += u64::from(nr_scanned);
        self.mem.vmstat.add(Event::CompactMigrateScanned, nr_scanned.into());
        self.mem.vmstat.add(Event::CompactIsolated, nr_isolated.into());
        self.mem.work.compact_scanned += nr_scanned;
        run.migrate_pfn = low;
    }

    fn is_isolatable(&self, page: &Page, run: &CompactControl) -> bool {
        if !page.place.is_lru() || page.flags.any(PageFlags::PINNED.with(PageFlags::BATCHED)) {
            return false;
        }
        // Moving a file page can enter the file system, which needs `Gfp::FS`.
        if page.has(PageFlags::FILE) && !run.goal.gfp.has(Gfp::FS) {
            return false;
        }
        if page.place == Place::Unevictable && !self.config.compact_unevictable_allowed {
            return false;
        }
        let asynchronous = run.goal.mode == CompactMode::Async;
        let dirty_metadata = PageFlags::METADATA.with(PageFlags::DIRTY);
        if asynchronous && self.era.leaves_dirty_metadata && page.has(dirty_metadata) {
            return false;
        }
        // Only a run that may wait for writes takes pages under writeback.
        let waits = match run.goal.mode {
            CompactMode::Async => false,
            CompactMode::SyncLight => self.era.light_runs_take_writeback,
            CompactMode::Sync => true,
        };
        waits || !page.has(PageFlags::WRITEBACK)
    }

    fn isolate_migratepage(&mut self, run: &mut CompactControl, pfn: Pfn) {
        if self.mem.pages[pfn].has(PageFlags::ZSPAGE) {
            self.mem.pages[pfn].place = Place::Isolated;
            run.migratepages.push(pfn);
            return;
        }
        self.lruvec_remove(pfn);
        let page = &mut self.mem.pages[pfn];
        page.place = Place::Isolated;
        let stat = isolated_stat(page);
        self.mem.stat_inc(pfn, stat);
        run.migratepages.push(pfn);
    }

    pub(super) fn putback_migratepages(&mut self, run: &mut CompactControl) {
        while let Some(pfn) = run.migratepages.pop() {
            self.putback_isolated(pfn);
        }
    }

    pub(super) fn putback_isolated(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn];
        page.place = Place::Allocated;
        if page.has(PageFlags::ZSPAGE) {
            return;
        }
        let stat = isolated_stat(page);
        self.mem.stat_dec(pfn, stat);
        self.lruvec_add(pfn);
    }
}

/// The counter of an isolated page.
pub(super) const fn isolated_stat(page: &Page) -> NodeStat {
    if page.is_file_lru() {
        NodeStat::NrIsolatedFile
    } else {
        NodeStat::NrIsolatedAnon
    }
}
