//! Direct compaction: a task compacts for its own allocation.
//!
//! Linux: `__alloc_pages_direct_compact`, `try_to_compact_pages`, `compact_zone_order` (6.1).
//! Compacts the zones of the zonelist one after the other until one has a block. Then the task
//! takes a block from the free lists, or the block that the run has kept for it
//! (`compaction_capture`).
//!
//! Invariant: a request that may not start I/O compacts nothing.

use super::compaction_4_5::has_low_mark;
use super::run::CompactRunId;
use super::{CompactGoal, CompactMode, CompactResult, Compactor};
use crate::frames::gfp::{AllocFlags, Gfp, Watermark};
use crate::frames::node::ZoneRef;
use crate::frames::page_alloc::Memory;
use crate::interface::ctx::Ctx;
use crate::interface::effect::Step;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::stats::vmstat::Event;
use crate::units::digest::State;
use crate::units::{Order, Pfn};

/// How hard to try (Linux `enum compact_priority`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, State)]
pub(crate) enum CompactPriority {
    /// Scans whole zones and ignores skip bits and deferral.
    SyncFull,
    /// May wait for locks.
    SyncLight,
    /// Never waits.
    Async,
}

#[derive(Clone, Debug, State)]
pub(crate) struct DirectCompaction {
    order: Order,
    gfp: Gfp,
    flags: AllocFlags,
    priority: CompactPriority,
    /// Position in the zonelist.
    at: usize,
    run: Option<CompactRunId>,
    /// The largest result of all zones so far.
    result: CompactResult,
    captured: Option<Pfn>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DirectCompactResult {
    pub result: CompactResult,
    /// The allocated block.
    pub pfn: Option<Pfn>,
}

impl DirectCompaction {
    pub(crate) fn new(
        order: Order,
        gfp: Gfp,
        flags: AllocFlags,
        priority: CompactPriority,
    ) -> DirectCompaction {
        let result = CompactResult::Skipped;
        DirectCompaction { order, gfp, flags, priority, at: 0, run: None, result, captured: None }
    }

    pub(crate) fn run(&self) -> Option<CompactRunId> {
        self.run
    }

    fn mode(&self) -> CompactMode {
        if self.priority == CompactPriority::Async {
            CompactMode::Async
        } else {
            CompactMode::SyncLight
        }
    }
}

impl Memory {
    fn compaction_of(&mut self, at: ZoneRef) -> &mut super::ZoneCompaction {
        &mut self.nodes[at.node].zones[usize::from(at.zone)].compaction
    }
}

impl Kernel {
    /// Notes the result of one zone. Returns whether to stop trying further zones.
    fn zone_was_compacted(
        &mut self,
        state: &mut DirectCompaction,
        result: CompactResult,
        ctx: &Ctx,
    ) -> bool {
        state.result = state.result.max(result);
        let highest = state.gfp.highest_zone();
        let zones = &self.mem.zonelists[ctx.node][highest].zones;
        let Some(&at) = zones.get(state.at) else { return true };
        let order = state.order;
        let success = if self.era.compacts_to_low_mark {
            let zone = &self.mem.nodes[at.node].zones[usize::from(at.zone)];
            has_low_mark(zone, order, state.flags, highest)
        } else {
            result == CompactResult::Success
        };
        if success {
            state.result = state.result.max(CompactResult::Success);
            self.mem.compaction_of(at).defer_reset(order, false);
            return true;
        }
        let exhausted = matches!(result, CompactResult::Complete | CompactResult::PartialSkipped);
        if state.priority != CompactPriority::Async && exhausted {
            // Only a synchronous failure shows that no block can be made.
            self.mem.compaction_of(at).defer(order);
        }
        state.priority == CompactPriority::Async && self.step.need_resched
    }

    fn after_direct_compact(
        &mut self,
        state: &mut DirectCompaction,
        ctx: &Ctx,
    ) -> DirectCompactResult {
        let result = state.result;
        let deferred = result == CompactResult::Deferred && self.era.deferred_is_no_stall;
        if result == CompactResult::Skipped || deferred {
            return DirectCompactResult { result, pfn: None };
        }
        self.mem.vmstat.count(Event::CompactStall);
        let pfn = match state.captured.take() {
            Some(pfn) => {
                self.mem.alloc_captured(pfn, state.order);
                Some(pfn)
            }
            None => self.mem.get_page_from_freelist(
                ctx.cpu,
                ctx.node,
                state.order,
                state.gfp,
                state.flags,
            ),
        };
        match pfn {
            Some(pfn) => {
                let page = &self.mem.pages[pfn];
                let at = ZoneRef { node: page.node(), zone: page.zone() as u8 };
                let compaction = self.mem.compaction_of(at);
                compaction.blockskip_flush = false;
                compaction.defer_reset(state.order, true);
                self.mem.vmstat.count(Event::CompactSuccess);
            }
            None => self.mem.vmstat.count(Event::CompactFail),
        }
        DirectCompactResult { result, pfn }
    }

    /// Whether reclaim could make compaction possible (Linux `compaction_zonelist_suitable`).
    pub(crate) fn is_compaction_worth_reclaim(&self, order: Order, gfp: Gfp, ctx: &Ctx) -> bool {
        let highest = gfp.highest_zone();
        self.mem.zonelists[ctx.node][highest].zones.iter().any(|at| {
            let zone = &self.mem.nodes[at.node].zones[usize::from(at.zone)];
            // Assume that reclaim for one block frees only a part of the reclaimable pages, as
            // Linux does.
            let reclaimable = self.zone_reclaimable_pages(at.node, at.zone.into());
            let available = reclaimable / u64::from(order).max(1) + zone.free_pages();
            let flags = AllocFlags::at(Watermark::Min);
            let (config, era) = (&self.config, &self.era);
            super::suitable::suitable_with(zone, config, era, order, flags, highest, available)
                == CompactResult::Continue
        })
    }
}

impl<O: Owners> Manager<O> {
    /// Runs one batch. `Done` holds the result and the allocated block, if any.
    pub(crate) fn direct_compact_step(
        &mut self,
        state: &mut DirectCompaction,
        ctx: &Ctx,
    ) -> Step<DirectCompactResult> {
        match self.try_to_compact_zones(state, ctx) {
            Step::Continue => Step::Continue,
            Step::Wait(wait) => Step::Wait(wait),
            Step::Done(()) => Step::Done(self.after_direct_compact(state, ctx)),
        }
    }

    fn try_to_compact_zones(&mut self, state: &mut DirectCompaction, ctx: &Ctx) -> Step<()> {
        if let Some(id) = state.run {
            return match self.compact_step(id, ctx) {
                Step::Continue => Step::Continue,
                Step::Wait(wait) => Step::Wait(wait),
                Step::Done(end) => {
                    state.run = None;
                    state.captured = end.captured;
                    if self.zone_was_compacted(state, end.result, ctx) {
                        return Step::Done(());
                    }
                    state.at += 1;
                    Step::Continue
                }
            };
        }
        if !state.gfp.has(Gfp::IO) {
            return Step::Done(());
        }
        let highest = state.gfp.highest_zone();
        loop {
            let zones = &self.mem.zonelists[ctx.node][highest].zones;
            let Some(&zone) = zones.get(state.at) else { return Step::Done(()) };
            if zone.node != ctx.node && state.gfp.has(Gfp::THISNODE) {
                state.at += 1;
                continue;
            }
            let thorough = state.priority == CompactPriority::SyncFull;
            if !thorough && self.mem.compaction_of(zone).is_deferred(state.order) {
                state.result = state.result.max(CompactResult::Deferred);
                state.at += 1;
                continue;
            }
            let goal = CompactGoal {
                zone,
                order: Some(state.order),
                mt: state.gfp.migrate_type(),
                gfp: state.gfp,
                mode: state.mode(),
                flags: state.flags,
                highest_zoneidx: highest,
                by: Compactor::Direct,
                thorough,
            };
            match self.compact_begin(goal, ctx) {
                Ok(id) => {
                    state.run = Some(id);
                    return Step::Continue;
                }
                Err(result) => {
                    if self.zone_was_compacted(state, result, ctx) {
                        return Step::Done(());
                    }
                    state.at += 1;
                }
            }
        }
    }
}
