//! The slow path of an allocation: the stages after a failed first attempt, as explicit state.
//!
//! Linux: `__alloc_pages_slowpath` (6.1; slowpath/old.rs has older kernels). The slow path wakes
//! kswapd, tries at the min watermark, compacts lightly, reclaims, compacts, tries again, drains,
//! and finally kills a task. Every stage may stop and sleep; the state is part of the task's
//! [`Call`](crate::interface::call::Call).

mod old;

use crate::compaction::direct::{CompactPriority, DirectCompactResult, DirectCompaction};
use crate::compaction::CompactResult;
use crate::frames::fallback::HighAtomicRelease;
use crate::frames::gfp::{AllocFlags, Gfp, MigrateType, Watermark};
use crate::frames::page_alloc::{Memory, OomRequest};
use crate::groups::memcg::ROOT;
use crate::groups::Groups;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Sleep, Step};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::interface::throttle::Throttle;
use crate::reclaim::direct::DirectReclaim;
use crate::units::digest::State;
use crate::units::{Cpu, NodeId, Order, Pfn, Requester, PAGEBLOCK_ORDER, PAGE_ALLOC_COSTLY_ORDER};
use alloc::boxed::Box;

/// Number of reclaims in a row without progress after which memory is considered exhausted.
const MAX_RECLAIM_RETRIES: u32 = 16;

/// Number of compactions in a row that made a block which another task took (Linux
/// `MAX_COMPACT_RETRIES`).
const MAX_COMPACT_RETRIES: u32 = 16;

#[derive(Clone, Debug, State)]
enum SlowPathStage {
    /// Wake kswapd and try at the min watermark.
    Start,
    /// The reserves were too low to reclaim; the task has waited for kswapd.
    Throttled,
    /// Reclaiming: the state is in `reclaim`.
    Reclaim,
    Compact(Box<DirectCompaction>, AfterCompaction),
    /// The OOM killer is at work; try again after a tick.
    OomWait,
}

/// The stage after a compaction that has made no block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
enum AfterCompaction {
    /// Reclaim: it was the light compaction before reclaim.
    Reclaim,
    /// Decide whether to continue. `progress`: whether the preceding reclaim freed pages.
    Judge { progress: bool },
    /// Fail: it was the last attempt.
    Fail,
}

/// State of an allocation that did not succeed at once.
#[derive(Clone, Debug, State)]
pub struct SlowPath {
    order: Order,
    gfp: Gfp,
    flags: AllocFlags,
    stage: SlowPathStage,
    reclaim: DirectReclaim,
    no_progress_loops: u32,
    compact_priority: CompactPriority,
    compaction_retries: u32,
    compact_result: CompactResult,
    /// Whether the light compaction before the first reclaim is still to come.
    compact_first: bool,
    /// Whether no step has been made yet.
    is_new: bool,
}

impl SlowPath {
    pub(crate) fn new(order: Order, gfp: Gfp) -> SlowPath {
        SlowPath {
            order,
            gfp,
            flags: AllocFlags::slow(gfp),
            stage: SlowPathStage::Start,
            reclaim: DirectReclaim::new(order, gfp),
            no_progress_loops: 0,
            compact_priority: CompactPriority::SyncLight,
            compaction_retries: 0,
            compact_result: CompactResult::Skipped,
            compact_first: true,
            is_new: true,
        }
    }

    /// Whether the task is in direct reclaim or compaction.
    pub fn is_reclaiming(&self) -> bool {
        matches!(
            self.stage,
            SlowPathStage::Reclaim | SlowPathStage::Throttled | SlowPathStage::Compact(..)
        )
    }

    /// Whether the task is compacting.
    pub fn is_compacting(&self) -> bool {
        matches!(self.stage, SlowPathStage::Compact(..))
    }

    pub(crate) fn order(&self) -> Order {
        self.order
    }

    pub(crate) fn gfp(&self) -> Gfp {
        self.gfp
    }

    fn is_costly(&self) -> bool {
        self.order > PAGE_ALLOC_COSTLY_ORDER
    }

    /// Called when the light compaction has made no block. Returns whether the request gives up. A
    /// request for a huge page gives up if compaction was deferred after failures, or was skipped
    /// because it needs much reclaim first: reclaim would take too long for a fault.
    fn light_compaction_failed(&mut self, result: CompactResult) -> bool {
        if !self.is_costly() || !self.gfp.has(Gfp::NORETRY) {
            return false;
        }
        self.compact_priority = CompactPriority::Async;
        matches!(result, CompactResult::Skipped | CompactResult::Deferred)
    }
}

impl Groups {
    /// Called when the task has ended, which has also ended its compaction: releases what its
    /// reclaim holds.
    pub(crate) fn slowpath_orphaned(&mut self, state: &SlowPath) {
        self.abandon_direct_reclaim(&state.reclaim);
    }
}

impl Memory {
    fn begin_reclaim(&mut self, state: &mut SlowPath) {
        self.direct_reclaim_begin(state.gfp);
        state.reclaim = DirectReclaim::new(state.order, state.gfp);
        state.stage = SlowPathStage::Reclaim;
    }

    fn try_freelists(&mut self, state: &SlowPath, flags: AllocFlags, ctx: &Ctx) -> Option<Pfn> {
        self.get_page_from_freelist(ctx.cpu, ctx.node, state.order, state.gfp, flags)
    }

    /// Fails; but if mixing migrate types was avoided so far, retries with mixing.
    fn give_up(&mut self, state: &mut SlowPath, ctx: &Ctx) -> Step<Option<Pfn>> {
        if core::mem::take(&mut state.flags.nofragment) {
            return Step::Done(self.try_freelists(state, state.flags, ctx));
        }
        Step::Done(None)
    }
}

impl Kernel {
    /// Called when the request is abandoned: releases what its reclaim and its compaction hold.
    pub(crate) fn abandon_slowpath(&mut self, state: &SlowPath, asker: Requester, cpu: Cpu) {
        self.groups.slowpath_orphaned(state);
        match &state.stage {
            SlowPathStage::Compact(compaction, _) => {
                if let Some(run) = compaction.run() {
                    self.cancel_compact_run(run, asker, cpu);
                }
            }
            SlowPathStage::Start
            | SlowPathStage::Throttled
            | SlowPathStage::Reclaim
            | SlowPathStage::OomWait => {}
        }
    }

    /// Whether a light compaction comes before reclaim. It does for costly orders, and for small
    /// blocks of kernel memory, because free blocks of their migrate type are hard to form.
    fn compacts_before_reclaim(&self, state: &SlowPath) -> bool {
        let movable = state.gfp.migrate_type() == MigrateType::Movable;
        let any = !movable || self.era.compacts_before_every_reclaim;
        state.compact_first && (state.is_costly() || state.order > 0 && any)
    }

    fn reclaim_or_wait(&mut self, state: &mut SlowPath, ctx: &Ctx) -> Step<Option<Pfn>> {
        if let Some(wait) = self.throttle_direct_reclaim(state.gfp, ctx) {
            state.stage = SlowPathStage::Throttled;
            return Step::Wait(wait);
        }
        self.mem.begin_reclaim(state);
        Step::Continue
    }

    fn begin_compaction(
        &mut self,
        state: &mut SlowPath,
        priority: CompactPriority,
        after: AfterCompaction,
    ) {
        let compaction = DirectCompaction::new(state.order, state.gfp, state.flags, priority);
        state.stage = SlowPathStage::Compact(Box::new(compaction), after);
    }

    fn wake_all_kswapds(&mut self, order: Order, gfp: Gfp, ctx: &Ctx) {
        if !gfp.has(Gfp::KSWAPD_RECLAIM) {
            return;
        }
        let zone = gfp.highest_zone();
        let order = if self.config.defrag_mode { order.max(PAGEBLOCK_ORDER) } else { order };
        for i in 0..self.mem.pgdat.len() {
            let node = NodeId(((ctx.node.idx() + i) % self.mem.pgdat.len()) as u8);
            self.wakeup_kswapd(node, order, zone, gfp.has(Gfp::DIRECT_RECLAIM));
        }
    }

    /// Allocates a page for a task that reclaims, which will soon free memory: no watermark applies,
    /// and it reclaims nothing itself (Linux `PF_MEMALLOC`).
    pub(crate) fn alloc_in_reclaim(&mut self, gfp: Gfp, ctx: &Ctx) -> Option<Pfn> {
        if let Some(pfn) = self.mem.alloc_fast(ctx.cpu, ctx.node, 0, gfp) {
            return Some(pfn);
        }
        self.wake_all_kswapds(0, gfp, ctx);
        [AllocFlags::slow(gfp).watermark, Watermark::None].into_iter().find_map(|watermark| {
            let flags = AllocFlags { watermark, ..AllocFlags::slow(gfp) };
            self.mem.get_page_from_freelist(ctx.cpu, ctx.node, 0, gfp, flags)
        })
    }

    /// Whether another compaction can be expected to help (Linux `should_compact_retry`).
    fn should_compact_retry(&mut self, state: &mut SlowPath, ctx: &Ctx) -> bool {
        if state.order == 0 {
            return false;
        }
        match state.compact_result {
            // There was a block, but another task took it.
            CompactResult::Success => {
                state.compaction_retries += 1;
                let most = MAX_COMPACT_RETRIES / if state.is_costly() { 4 } else { 1 };
                if state.compaction_retries <= most {
                    return true;
                }
            }
            CompactResult::Skipped => {
                return self.is_compaction_worth_reclaim(state.order, state.gfp, ctx);
            }
            // Nothing was found, or the scan was not complete: try harder.
            CompactResult::Complete
            | CompactResult::Deferred
            | CompactResult::Contended
            | CompactResult::PartialSkipped
            | CompactResult::Continue => {}
        }
        let hardest =
            if state.is_costly() { CompactPriority::SyncLight } else { CompactPriority::SyncFull };
        if state.compact_priority <= hardest {
            return false;
        }
        state.compact_priority = match state.compact_priority {
            CompactPriority::Async => CompactPriority::SyncLight,
            CompactPriority::SyncLight | CompactPriority::SyncFull => CompactPriority::SyncFull,
        };
        state.compaction_retries = 0;
        true
    }

    /// Whether another round of reclaim can be expected to help (Linux `should_reclaim_retry`).
    fn should_reclaim_retry(&mut self, state: &mut SlowPath, progress: bool, ctx: &Ctx) -> bool {
        if progress && state.order <= PAGE_ALLOC_COSTLY_ORDER {
            state.no_progress_loops = 0;
        } else {
            state.no_progress_loops += 1;
        }
        if state.no_progress_loops > MAX_RECLAIM_RETRIES {
            return self.unreserve_highatomic(state.gfp, ctx, HighAtomicRelease::Yes);
        }
        let highest = state.gfp.highest_zone();
        (0..self.mem.pgdat.len()).any(|node| {
            (0..=highest).any(|index| {
                let zone = &self.mem.nodes[node].zones[index];
                let reclaimable = self.zone_reclaimable_pages(NodeId(node as u8), index);
                zone.is_populated()
                    && crate::frames::watermark::zone_watermark_ok_free(
                        zone,
                        state.order,
                        zone.wmark(Watermark::Min),
                        highest,
                        state.flags,
                        zone.free_pages() + reclaimable,
                    )
            })
        })
    }

    fn unreserve_highatomic(&mut self, gfp: Gfp, ctx: &Ctx, force: HighAtomicRelease) -> bool {
        self.mem.unreserve_highatomic(ctx.node, gfp.highest_zone(), gfp.migrate_type(), force)
    }
}

impl<O: Owners> Manager<O> {
    /// Runs one bounded step. `Done`: the block, or `None` if the allocation fails.
    pub(crate) fn slowpath_step(&mut self, state: &mut SlowPath, ctx: &Ctx) -> Step<Option<Pfn>> {
        match &mut state.stage {
            SlowPathStage::Start | SlowPathStage::OomWait => self.slowpath_start(state, ctx),
            SlowPathStage::Throttled => {
                self.mem.begin_reclaim(state);
                Step::Continue
            }
            SlowPathStage::Reclaim => match self.direct_reclaim_step(&mut state.reclaim, ctx) {
                Step::Continue => Step::Continue,
                Step::Wait(wait) => Step::Wait(wait),
                Step::Done(reclaimed) => self.after_reclaim(state, reclaimed, ctx),
            },
            SlowPathStage::Compact(compaction, after) => {
                let after = *after;
                match self.direct_compact_step(compaction, ctx) {
                    Step::Continue => Step::Continue,
                    Step::Wait(wait) => Step::Wait(wait),
                    Step::Done(done) => self.after_compaction(state, done, after, ctx),
                }
            }
        }
    }

    fn slowpath_start(&mut self, state: &mut SlowPath, ctx: &Ctx) -> Step<Option<Pfn>> {
        // Mixes migrate types only after reclaim and compaction have failed (Linux 6.15).
        state.flags.nofragment |= core::mem::take(&mut state.is_new) && self.config.defrag_mode;
        self.wake_all_kswapds(state.order, state.gfp, ctx);
        if let Some(pfn) = self.mem.try_freelists(state, state.flags, ctx) {
            return Step::Done(Some(pfn));
        }
        if self.owners.is_dying(ctx.asker) {
            // A dying task may use the reserves, so that it can exit.
            let flags = AllocFlags { watermark: Watermark::None, ..state.flags };
            return Step::Done(self.mem.try_freelists(state, flags, ctx));
        }
        if !state.gfp.has(Gfp::DIRECT_RECLAIM) {
            if core::mem::take(&mut state.flags.nofragment) && self.config.defrag_mode {
                // Nothing else helps this request.
                return Step::Done(self.mem.try_freelists(state, state.flags, ctx));
            }
            return Step::Done(None);
        }
        if self.compacts_before_reclaim(state) {
            state.compact_first = false;
            self.begin_compaction(state, CompactPriority::Async, AfterCompaction::Reclaim);
            return Step::Continue;
        }
        self.reclaim_or_wait(state, ctx)
    }

    fn after_reclaim(
        &mut self,
        state: &mut SlowPath,
        reclaimed: u64,
        ctx: &Ctx,
    ) -> Step<Option<Pfn>> {
        state.stage = SlowPathStage::Start;
        if reclaimed > 0 {
            if let Some(pfn) = self.mem.try_freelists(state, state.flags, ctx) {
                return Step::Done(Some(pfn));
            }
            // Freed pages may be in per-CPU lists, or in the reserve for high orders.
            if !self.era.leaves_cpu_lists {
                self.unreserve_highatomic(state.gfp, ctx, HighAtomicRelease::No);
                self.lru_add_drain_all();
                self.mem.drain_all();
                if let Some(pfn) = self.mem.try_freelists(state, state.flags, ctx) {
                    return Step::Done(Some(pfn));
                }
            }
        }
        let progress = reclaimed > 0;
        if state.order == 0 {
            return self.judge(state, progress, ctx);
        }
        if self.era.starts_over_after_reclaim {
            return self.after_reclaim_4_5(state, progress, ctx);
        }
        self.begin_compaction(state, state.compact_priority, AfterCompaction::Judge { progress });
        Step::Continue
    }

    fn after_compaction(
        &mut self,
        state: &mut SlowPath,
        done: DirectCompactResult,
        after: AfterCompaction,
        ctx: &Ctx,
    ) -> Step<Option<Pfn>> {
        state.stage = SlowPathStage::Start;
        state.compact_result = done.result;
        if done.pfn.is_some() {
            return Step::Done(done.pfn);
        }
        match after {
            AfterCompaction::Fail => Step::Done(None),
            AfterCompaction::Judge { progress } => self.judge(state, progress, ctx),
            AfterCompaction::Reclaim => {
                let gives_up = if self.era.starts_over_after_reclaim {
                    state.light_compaction_failed_4_5(done.result)
                } else {
                    state.light_compaction_failed(done.result)
                };
                if gives_up {
                    return Step::Done(None);
                }
                self.reclaim_or_wait(state, ctx)
            }
        }
    }

    /// Called when neither reclaim nor compaction has made the block: retries, kills a task, or
    /// fails.
    fn judge(&mut self, state: &mut SlowPath, progress: bool, ctx: &Ctx) -> Step<Option<Pfn>> {
        if state.gfp.has(Gfp::NORETRY) {
            return self.mem.give_up(state, ctx);
        }
        let costly = state.is_costly();
        if costly && !state.gfp.has(Gfp::RETRY_MAYFAIL) {
            return self.mem.give_up(state, ctx);
        }
        if self.should_reclaim_retry(state, progress, ctx) {
            if self.era.reclaims_again_at_once {
                return self.rebalance(state, ctx);
            }
            return Step::Continue;
        }
        if progress && self.should_compact_retry(state, ctx) {
            return Step::Continue;
        }
        if core::mem::take(&mut state.flags.nofragment) {
            // Mixes migrate types before it kills a task (Linux 6.15).
            return Step::Continue;
        }
        self.may_oom(state, costly, ctx)
    }

    fn may_oom(&mut self, state: &mut SlowPath, costly: bool, ctx: &Ctx) -> Step<Option<Pfn>> {
        // Memory may have been freed in parallel, so try once more, at the high watermark.
        let flags = AllocFlags { watermark: Watermark::High, ..state.flags };
        if let Some(pfn) = self.mem.try_freelists(state, flags, ctx) {
            return Step::Done(Some(pfn));
        }
        let (order, gfp) = (state.order, state.gfp);
        self.mem.last_oom = Some(OomRequest { order, gfp, scope: ROOT, for_min_ttl: false });
        // No task is killed for a huge request, or for a request that may fail.
        if costly || state.gfp.has(Gfp::RETRY_MAYFAIL) || !O::out_of_memory(self, ROOT, ctx.asker) {
            return Step::Done(None);
        }
        state.no_progress_loops = 0;
        state.stage = SlowPathStage::OomWait;
        let timeout = crate::units::TICK;
        Step::Wait(Sleep::throttled(ctx.node, Throttle::NoProgress, timeout))
    }
}
