//! The slow path of an allocation, as an explicit state.
//!
//! Linux: `__alloc_pages_slowpath` (6.1). Wake kswapd, try at the min mark, reclaim, try again,
//! drain, and in the end kill somebody. Every stage may stop and sleep; the state is part of the
//! task's [`Call`](crate::call::Call).

use crate::call::Ctx;
use crate::config::DirectReclaimPolicy;
use crate::effect::{Step, Throttle, Wait};
use crate::fallback::Force;
use crate::gfp::{AllocFlags, Gfp, Watermark};
use crate::machine::Machine;
use crate::memcg::ROOT;
use crate::reclaim::direct::DirectReclaim;
use crate::units::{NodeId, Order, Pfn, PAGE_ALLOC_COSTLY_ORDER};

/// The nap before reclaiming again, before 4.7 (Linux: HZ/50).
const REBALANCE_NAP: u64 = 20_000_000;

/// Fruitless reclaims in a row before memory is declared exhausted.
const MAX_RECLAIM_RETRIES: u32 = 16;

#[derive(Clone, Debug)]
enum Stage {
    /// Wake kswapd and try at the min mark.
    Start,
    /// The reserves were too low to reclaim; waited for kswapd.
    Throttled,
    /// Reclaiming: `reclaim` says how far.
    Reclaim,
    /// Somebody is being killed; try again after a tick.
    OomWait,
}

/// An allocation that did not succeed at once.
#[derive(Clone, Debug)]
pub struct SlowPath {
    order: Order,
    gfp: Gfp,
    flags: AllocFlags,
    stage: Stage,
    reclaim: DirectReclaim,
    no_progress_loops: u32,
}

impl SlowPath {
    pub(crate) fn new(order: Order, gfp: Gfp) -> SlowPath {
        SlowPath {
            order,
            gfp,
            flags: AllocFlags::slow(gfp),
            stage: Stage::Start,
            reclaim: DirectReclaim::new(order, gfp),
            no_progress_loops: 0,
        }
    }

    /// Whether the task is in direct reclaim.
    pub fn is_reclaiming(&self) -> bool {
        matches!(self.stage, Stage::Reclaim | Stage::Throttled)
    }
}

impl Machine {
    /// One bounded step. Done: the page, or `None` if there is none to be had.
    pub(crate) fn slowpath_step(&mut self, state: &mut SlowPath, ctx: &Ctx) -> Step<Option<Pfn>> {
        match state.stage {
            Stage::Start | Stage::OomWait => {
                self.wake_all_kswapds(state, ctx);
                if let Some(pfn) = self.try_freelists(state, state.flags, ctx) {
                    return Step::Done(Some(pfn));
                }
                if self.mms.get(ctx.mm.idx()).is_some_and(|mm| mm.oom_victim) {
                    // A dying task may dip into the reserves to get out of the way.
                    let flags = AllocFlags { watermark: Watermark::None, ..state.flags };
                    return Step::Done(self.try_freelists(state, flags, ctx));
                }
                if !state.gfp.has(Gfp::DIRECT_RECLAIM) {
                    return Step::Done(None);
                }
                if let Some(wait) = self.throttle_direct_reclaim(state.gfp, ctx) {
                    state.stage = Stage::Throttled;
                    return Step::Wait(wait);
                }
                self.begin_reclaim(state);
                Step::Continue
            }
            Stage::Throttled => {
                self.begin_reclaim(state);
                Step::Continue
            }
            Stage::Reclaim => match self.direct_reclaim_step(&mut state.reclaim, ctx) {
                Step::Continue => Step::Continue,
                Step::Wait(wait) => Step::Wait(wait),
                Step::Done(reclaimed) => self.after_reclaim(state, reclaimed, ctx),
            },
        }
    }

    fn begin_reclaim(&mut self, state: &mut SlowPath) {
        self.direct_reclaim_begin(state.gfp);
        state.reclaim = DirectReclaim::new(state.order, state.gfp);
        state.stage = Stage::Reclaim;
    }

    fn try_freelists(&mut self, state: &SlowPath, flags: AllocFlags, ctx: &Ctx) -> Option<Pfn> {
        self.mem.get_page_from_freelist(ctx.cpu, ctx.node, state.order, state.gfp, flags)
    }

    fn wake_all_kswapds(&mut self, state: &SlowPath, ctx: &Ctx) {
        if !state.gfp.has(Gfp::KSWAPD_RECLAIM) {
            return;
        }
        let zone = state.gfp.highest_zone();
        for i in 0..self.nodes.len() {
            let node = NodeId(((ctx.node.idx() + i) % self.nodes.len()) as u8);
            self.wakeup_kswapd(node, state.order, zone, state.gfp.has(Gfp::DIRECT_RECLAIM));
        }
    }

    fn after_reclaim(
        &mut self,
        state: &mut SlowPath,
        reclaimed: u64,
        ctx: &Ctx,
    ) -> Step<Option<Pfn>> {
        state.stage = Stage::Start;
        if reclaimed > 0 {
            if let Some(pfn) = self.try_freelists(state, state.flags, ctx) {
                return Step::Done(Some(pfn));
            }
            // Freed pages may sit in per-CPU sets, or in the reserve for high orders.
            if self.config.direct_reclaim != DirectReclaimPolicy::Linux2635 {
                self.unreserve_highatomic(state.gfp, ctx, Force::No);
                self.lru_add_drain_all();
                self.mem.drain_all();
                if let Some(pfn) = self.try_freelists(state, state.flags, ctx) {
                    return Step::Done(Some(pfn));
                }
            }
        }
        if state.gfp.has(Gfp::NORETRY) {
            return Step::Done(None);
        }
        let costly = state.order > PAGE_ALLOC_COSTLY_ORDER;
        if costly && !state.gfp.has(Gfp::RETRY_MAYFAIL) {
            return Step::Done(None);
        }
        if self.should_reclaim_retry(state, reclaimed > 0, ctx) {
            if self.config.direct_reclaim.is_old() {
                return self.rebalance(state, ctx);
            }
            return Step::Continue;
        }
        self.may_oom(state, costly, ctx)
    }

    /// Whether another round of reclaim can be expected to help (Linux `should_reclaim_retry`).
    fn should_reclaim_retry(&mut self, state: &mut SlowPath, progress: bool, ctx: &Ctx) -> bool {
        if progress && state.order <= PAGE_ALLOC_COSTLY_ORDER {
            state.no_progress_loops = 0;
        } else {
            state.no_progress_loops += 1;
        }
        if state.no_progress_loops > MAX_RECLAIM_RETRIES {
            return self.unreserve_highatomic(state.gfp, ctx, Force::Yes);
        }
        let highest = state.gfp.highest_zone();
        (0..self.nodes.len()).any(|node| {
            (0..=highest).any(|index| {
                let zone = &self.mem.nodes[node].zones[index];
                let reclaimable = self.zone_reclaimable_pages(NodeId(node as u8), index);
                zone.is_populated()
                    && crate::watermark::zone_watermark_ok_free(
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

    /// Before 4.7: reclaim again without looking at the free lists first, after a wait of up to
    /// 20 ms for disks to write something.
    fn rebalance(&mut self, state: &mut SlowPath, ctx: &Ctx) -> Step<Option<Pfn>> {
        self.begin_reclaim(state);
        if self.waits_for_congestion(ctx.node) {
            let wait = self.reclaim_throttle(ctx.node, Throttle::CongestionWait, REBALANCE_NAP);
            return Step::Wait(wait);
        }
        Step::Continue
    }

    fn unreserve_highatomic(&mut self, gfp: Gfp, ctx: &Ctx, force: Force) -> bool {
        self.mem.unreserve_highatomic(ctx.node, gfp.highest_zone(), gfp.migrate_type(), force)
    }

    fn may_oom(&mut self, state: &mut SlowPath, costly: bool, ctx: &Ctx) -> Step<Option<Pfn>> {
        // Somebody may have freed memory in parallel: one last try, at the high mark.
        let flags = AllocFlags { watermark: Watermark::High, ..state.flags };
        if let Some(pfn) = self.try_freelists(state, flags, ctx) {
            return Step::Done(Some(pfn));
        }
        if costly || state.gfp.has(Gfp::RETRY_MAYFAIL) || !self.out_of_memory(ROOT) {
            return Step::Done(None);
        }
        state.no_progress_loops = 0;
        state.stage = Stage::OomWait;
        Step::Wait(Wait::Throttled {
            node: ctx.node,
            reason: Throttle::NoProgress,
            timeout: crate::reclaim::shrink_node::TICK,
        })
    }
}
