//! The slow path of older kernels, where the algorithm differs from 6.1.
//!
//! Linux 4.5, orders above 0: a light compaction precedes every reclaim. After a reclaim that freed
//! pages the cycle repeats; but requests that may fail compact once more and then end. Linux up to
//! 4.6: one reclaim follows another without a check of the free lists, with a nap in between if
//! disks are busy.
//!
//! Invariant: these functions run only if the [era](crate::config::era) chooses this algorithm.

use super::{AfterCompaction, SlowPath};
use crate::compaction::direct::CompactPriority;
use crate::compaction::CompactResult;
use crate::config::Config;
use crate::config::ThpDefrag;
use crate::frames::gfp::Gfp;
use crate::interface::ctx::Ctx;
use crate::interface::effect::Step;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::interface::throttle::Throttle;
use crate::units::Pfn;

/// The nap before reclaiming again (Linux: HZ/50).
const REBALANCE_NAP: u64 = 20_000_000;

impl SlowPath {
    /// 4.5: called when the light compaction has made no block. Returns whether the request gives
    /// up. A request for a huge page gives up if compaction was deferred or contended, and never
    /// compacts harder.
    pub(super) fn light_compaction_failed_4_5(&mut self, result: CompactResult) -> bool {
        if !self.gfp.has(Gfp::TRANSHUGE.with(Gfp::NORETRY)) {
            return false;
        }
        self.compact_priority = CompactPriority::Async;
        matches!(result, CompactResult::Deferred | CompactResult::Contended)
    }
}

impl Config {
    /// 4.5: flags of an allocation for a fault that wants a huge page (Linux
    /// `alloc_hugepage_gfpmask`).
    pub(crate) fn thp_gfp_4_5(&self, madvised: bool) -> Gfp {
        let works = match self.thp_defrag {
            ThpDefrag::Always => true,
            ThpDefrag::Madvise | ThpDefrag::DeferMadvise => madvised,
            ThpDefrag::Defer | ThpDefrag::Never => false,
        };
        // `GFP_TRANSHUGE` of 4.4 to 4.6 did not wake kswapd.
        let gfp = if works { Gfp::DIRECT_RECLAIM } else { Gfp::EMPTY };
        Gfp::TRANSHUGE_LIGHT.with(Gfp::NORETRY).with(gfp)
    }
}

impl<O: Owners> Manager<O> {
    /// 4.5: called after a reclaim that has made no block.
    pub(super) fn after_reclaim_4_5(
        &mut self,
        state: &mut SlowPath,
        progress: bool,
        ctx: &Ctx,
    ) -> Step<Option<Pfn>> {
        let goes_on = !state.is_costly() && !state.gfp.has(Gfp::NORETRY);
        if goes_on && progress {
            // Repeats the cycle, with its light compaction.
            state.compact_first = true;
            return Step::Continue;
        }
        if goes_on {
            return self.may_oom(state, false, ctx);
        }
        self.begin_compaction(state, state.compact_priority, AfterCompaction::Fail);
        Step::Continue
    }

    /// Up to 4.6: reclaims again. If disks are busy, first waits up to 20 ms for their writes.
    pub(super) fn rebalance(&mut self, state: &mut SlowPath, ctx: &Ctx) -> Step<Option<Pfn>> {
        self.mem.begin_reclaim(state);
        if self.waits_for_congestion(ctx.node) {
            let wait = self.mem.reclaim_throttle(ctx.node, Throttle::CongestionWait, REBALANCE_NAP);
            return Step::Wait(wait);
        }
        Step::Continue
    }
}
