//! The steps of a compaction run.
//!
//! Linux: `compact_zone` (mm/compaction.c, 6.1).

use super::{block_start, last_block, scanners_met, CompactRunEnd, CompactRunId, BLOCKS_A_STEP};
use crate::compaction::compaction_4_5::has_low_mark;
use crate::compaction::zone_state::pageblock_start;
use crate::compaction::{
    CompactControl, CompactGoal, CompactMode, CompactResult, CompactStage, Compactor,
};
use crate::frames::gfp::{MigrateType, Watermark};
use crate::frames::page::PageFlags;
use crate::frames::page_alloc::Memory;
use crate::frames::zone::Zone;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Sleep, Step};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::stats::event::TraceEvent;
use crate::units::{Cpu, Pfn, Requester, MAX_PAGE_ORDER, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER};

impl Memory {
    /// Frees the unused target frames. Returns the highest one.
    fn release_freepages(&mut self, run: &mut CompactControl, cpu: Cpu) -> Option<u32> {
        let highest = run.freepages.iter().map(|pfn| pfn.0).max();
        for pfn in run.freepages.drain(..) {
            self.free_page(cpu, pfn, 0);
        }
        highest
    }

    pub(in crate::compaction) fn compact_zone_of(&mut self, goal: &CompactGoal) -> &mut Zone {
        &mut self.nodes[goal.zone.node].zones[usize::from(goal.zone.zone)]
    }

    fn compact_end(
        &mut self,
        mut run: CompactControl,
        result: CompactResult,
        ctx: &Ctx,
    ) -> CompactRunEnd {
        debug_assert!(run.migratepages.is_empty() && run.in_flight.is_empty());
        let highest = self.release_freepages(&mut run, ctx.cpu);
        let zone = self.compact_zone_of(&run.goal);
        if let Some(highest) = highest {
            let block = pageblock_start(highest).max(zone.start_pfn.0);
            zone.compaction.cached_free = zone.compaction.cached_free.max(block);
        }
        let (zone_start, zone_end) = (u64::from(zone.start_pfn.0), zone.end_pfn());
        self.events.record(TraceEvent::MmCompactionEnd {
            zone_start,
            migrate_pfn: run.migrate_pfn.into(),
            free_pfn: run.free_pfn.into(),
            zone_end,
            sync: run.goal.mode != CompactMode::Async,
            status: result.name(),
        });
        CompactRunEnd {
            result,
            captured: run.captured,
            migrate_scanned: run.migrate_scanned,
            free_scanned: run.free_scanned,
        }
    }
}

impl Kernel {
    /// Number of compaction runs, including abandoned ones that wait for their copies.
    pub fn nr_compactions(&self) -> usize {
        self.compactions.runs.iter().flatten().count()
    }

    /// Begins a run if it can help. Otherwise `Err` holds the reason.
    pub(crate) fn compact_begin(
        &mut self,
        goal: CompactGoal,
        ctx: &Ctx,
    ) -> Result<CompactRunId, CompactResult> {
        let zone = &self.mem.nodes[goal.zone.node].zones[usize::from(goal.zone.zone)];
        // kcompactd in defrag mode wants more than one block and has checked the zone itself.
        let wants_more = self.config.defrag_mode && goal.by == Compactor::Kcompactd;
        if let Some(order) = goal.order.filter(|_| !wants_more) {
            let suitable = crate::compaction::suitable::compaction_suitable(
                zone,
                &self.config,
                &self.era,
                order,
                goal.flags,
                goal.highest_zoneidx,
            );
            if suitable != CompactResult::Continue {
                return Err(suitable);
            }
        }
        let mut run = CompactControl::new(goal, zone);
        let Memory { pages, nodes, .. } = &mut self.mem;
        let zone = &mut nodes[goal.zone.node].zones[usize::from(goal.zone.zone)];
        if goal.order.is_some_and(|order| zone.compaction.is_restarting(order)) {
            zone.reset_isolation_suitable(pages, &self.era);
        }
        if !run.whole_zone {
            let (start, end) = (zone.start_pfn.0, zone.end_pfn());
            let inside = |pfn: u32| pfn >= start && u64::from(pfn) < end;
            let sync = usize::from(goal.mode != CompactMode::Async);
            run.migrate_pfn = zone.compaction.cached_migrate[sync];
            run.free_pfn = zone.compaction.cached_free;
            if !inside(run.free_pfn) {
                run.free_pfn = last_block(zone);
                zone.compaction.cached_free = run.free_pfn;
            }
            if !inside(run.migrate_pfn) {
                run.migrate_pfn = start;
                zone.compaction.cached_migrate = [start; 2];
            }
            let first = if self.era.scans_linearly { start } else { zone.compaction.init_migrate };
            run.whole_zone = run.migrate_pfn <= first;
        }
        run.update_cached = goal.mode == CompactMode::Async
            && zone.compaction.cached_migrate[0] == zone.compaction.cached_migrate[1];
        let (zone_start, zone_end) = (u64::from(zone.start_pfn.0), zone.end_pfn());
        self.mem.events.record(TraceEvent::MmCompactionBegin {
            zone_start,
            migrate_pfn: run.migrate_pfn.into(),
            free_pfn: run.free_pfn.into(),
            zone_end,
            sync: goal.mode != CompactMode::Async,
        });
        self.lru_add_drain(ctx.cpu);
        Ok(self.compactions.insert(ctx.asker, run))
    }

    /// After the copies of a batch: handles failures, and drains the per-CPU lists if needed.
    fn after_migration(&mut self, run: &mut CompactControl, ctx: &Ctx) -> Option<CompactResult> {
        run.last_migrated = Some(run.batch_start);
        let failed = core::mem::take(&mut run.nr_failed) > 0;
        let out_of_frames = core::mem::take(&mut run.out_of_frames);
        if out_of_frames && !scanners_met(run) {
            return Some(CompactResult::Contended);
        }
        // Where a page has stayed, no block of the order can form. Skip the rest of that block, and
        // do not drain.
        if (failed || out_of_frames) && run.is_direct() && run.goal.mode == CompactMode::Async {
            if let Some(order) = run.goal.order {
                run.migrate_pfn = block_start(run.migrate_pfn.max(1) - 1, order) + (1 << order);
                run.last_migrated = None;
            }
        }
        self.check_drain(run, ctx)
    }

    /// Drains the per-CPU lists after the scanner has left a block, so that freed pages can merge.
    fn check_drain(&mut self, run: &mut CompactControl, ctx: &Ctx) -> Option<CompactResult> {
        let (Some(order), Some(last)) = (run.goal.order, run.last_migrated) else { return None };
        if last < block_start(run.migrate_pfn, order) {
            return self.drain_and_capture(run, ctx);
        }
        None
    }

    fn drain_and_capture(&mut self, run: &mut CompactControl, ctx: &Ctx) -> Option<CompactResult> {
        self.lru_add_drain(ctx.cpu);
        self.mem.drain_cpu_zone(ctx.cpu, run.goal.zone);
        let vacated = run.last_migrated.take()?;
        let order = run.goal.order?;
        // Taking a small block from a movable pageblock would mix migrate types in it.
        let polluting = order < PAGEBLOCK_ORDER;
        if self.era.no_capture || !run.is_direct() {
            return None;
        }
        let mut at = block_start(vacated, order);
        while at < run.migrate_pfn {
            let zone = self.mem.compact_zone_of(&run.goal);
            let movable = zone.spans(at) && zone.block_type(Pfn(at)) == MigrateType::Movable;
            if zone.spans(at) && !(polluting && movable) {
                let Self { mem, .. } = self;
                let zone =
                    &mut mem.nodes[run.goal.zone.node].zones[usize::from(run.goal.zone.zone)];
                if zone.capture_block(&mut mem.pages, Pfn(at), order) {
                    run.captured = Some(Pfn(at));
                    return Some(CompactResult::Success);
                }
            }
            at += 1 << order;
        }
        None
    }

    /// Whether the run has reached its goal or the end of the zone (Linux `__compact_finished`).
    fn compact_finished(&mut self, run: &mut CompactControl) -> Option<CompactResult> {
        let goal = run.goal;
        if scanners_met(run) {
            let zone = self.mem.compact_zone_of(&goal);
            let (start, end) = (zone.start_pfn.0, zone.end_pfn());
            zone.compaction.reset_positions(start, end);
            // Only direct runs make kswapd clear the skip bits.
            if run.is_direct() {
                zone.compaction.blockskip_flush = true;
            }
            return Some(if run.whole_zone {
                CompactResult::Complete
            } else {
                CompactResult::PartialSkipped
            });
        }
        if goal.by == Compactor::Proactive {
            if !self.mem.pgdat[goal.zone.node].kswapd.sleeping {
                return Some(CompactResult::PartialSkipped);
            }
            let low = crate::compaction::kcompactd::fragmentation_score_wmark(&self.config, true);
            let score = crate::compaction::kcompactd::fragmentation_score_zone(
                self.mem.compact_zone_of(&goal),
            );
            return (score <= low).then_some(CompactResult::Success);
        }
        let order = goal.order?;
        // Finish a pageblock that was begun.
        if !self.era.leaves_blocks_unfinished && !run.migrate_pfn.is_multiple_of(PAGEBLOCK_NR_PAGES)
        {
            return None;
        }
        let defrag_mode = self.config.defrag_mode && !run.is_direct();
        let to_low_mark = self.era.compacts_to_low_mark;
        let zone = self.mem.compact_zone_of(&goal);
        if defrag_mode {
            // Defrag mode: whole free pageblocks count, up to the high watermark.
            let done = crate::frames::watermark::zone_watermark_ok_free(
                zone,
                order,
                zone.wmark(Watermark::High),
                goal.highest_zoneidx,
                goal.flags,
                zone.free_pages_in_blocks(),
            );
            return done.then_some(CompactResult::Success);
        }
        if to_low_mark && !has_low_mark(zone, order, goal.flags, goal.highest_zoneidx) {
            return None;
        }
        let found = (order..=MAX_PAGE_ORDER).any(|order| zone.block_suits(order, goal.mt));
        found.then_some(CompactResult::Success)
    }

    /// Abandons all runs of a task. They return their frames now, or after their copies.
    pub(crate) fn abandon_compactions(&mut self, owner: Requester, cpu: Cpu) {
        for at in 0..self.compactions.runs.len() {
            let entry = self.compactions.runs[at].as_ref();
            if entry.is_some_and(|(mm, run)| *mm == owner && !run.abandoned) {
                self.abandon_run(CompactRunId(at as u32), cpu);
            }
        }
    }

    /// Abandons a run on behalf of the task that began it.
    pub(crate) fn cancel_compact_run(&mut self, id: CompactRunId, by: Requester, cpu: Cpu) {
        let entry = self.compactions.runs.get(id.0 as usize).and_then(Option::as_ref);
        if entry.is_some_and(|(owner, run)| *owner == by && !run.abandoned) {
            self.abandon_run(id, cpu);
        }
    }

    fn abandon_run(&mut self, id: CompactRunId, cpu: Cpu) {
        let at = id.0 as usize;
        let Some((owner, mut run)) = self.compactions.runs[at].take() else { return };
        self.mem.release_freepages(&mut run, cpu);
        if let Some(block) = run.captured.take() {
            self.mem.free_page(cpu, block, run.goal.order.unwrap_or(0));
        }
        if !run.in_flight.is_empty() {
            run.abandoned = true;
            self.compactions.runs[at] = Some((owner, run));
        }
    }

    /// Makes a run ignore skip bits.
    pub(in crate::compaction) fn ignore_skip_hints(&mut self, id: CompactRunId) {
        if let Some(Some((_, run))) = self.compactions.runs.get_mut(id.0 as usize) {
            run.ignore_skip_hint = true;
        }
    }
}

impl<O: Owners> Manager<O> {
    /// Runs one batch. `Done`: the run is gone and has returned all frames except a captured block.
    pub(crate) fn compact_step(&mut self, id: CompactRunId, ctx: &Ctx) -> Step<CompactRunEnd> {
        let entry = self.compactions.runs.get_mut(id.0 as usize).and_then(Option::take);
        let Some((owner, mut run)) = entry else { return Step::Done(CompactRunEnd::GIVEN_UP) };
        if owner != ctx.asker || run.abandoned {
            // The task was killed: its run is abandoned, or another run has taken the id.
            self.compactions.runs[id.0 as usize] = Some((owner, run));
            return Step::Done(CompactRunEnd::GIVEN_UP);
        }
        if let Some(&(page, _)) = run.in_flight.first() {
            // The world is still copying.
            self.mem.pages[page].set(PageFlags::WAITERS);
            self.compactions.runs[id.0 as usize] = Some((owner, run));
            return Step::Wait(Sleep::on_page(page));
        }
        let ended = self.compact_batch(id, &mut run, ctx);
        match ended {
            None => {
                self.compactions.runs[id.0 as usize] = Some((owner, run));
                Step::Continue
            }
            Some(result) => Step::Done(self.mem.compact_end(*run, result, ctx)),
        }
    }

    fn compact_batch(
        &mut self,
        id: CompactRunId,
        run: &mut CompactControl,
        ctx: &Ctx,
    ) -> Option<CompactResult> {
        if run.stage == CompactStage::Migrating {
            run.stage = CompactStage::Isolate;
            if let Some(result) = self.after_migration(run, ctx) {
                return Some(result);
            }
        }
        for _ in 0..BLOCKS_A_STEP {
            if let Some(result) = self.compact_finished(run) {
                return Some(result);
            }
            let start = run.migrate_pfn;
            run.rescan = run
                .last_migrated
                .is_some_and(|last| pageblock_start(last) == pageblock_start(start));
            self.isolate_migratepages(run);
            if run.contended {
                self.putback_migratepages(run);
                return Some(CompactResult::Contended);
            }
            if run.migratepages.is_empty() {
                if run.update_cached {
                    let zone = self.mem.compact_zone_of(&run.goal);
                    zone.compaction.cached_migrate[1] = zone.compaction.cached_migrate[0];
                }
                if let Some(result) = self.check_drain(run, ctx) {
                    return Some(result);
                }
                continue;
            }
            run.update_cached = false;
            run.batch_start = start;
            self.migrate_pages(id, run, ctx.cpu);
            run.stage = CompactStage::Migrating;
            if run.in_flight.is_empty() {
                run.stage = CompactStage::Isolate;
                if let Some(result) = self.after_migration(run, ctx) {
                    return Some(result);
                }
                continue;
            }
            return None;
        }
        None
    }
}
