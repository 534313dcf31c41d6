//! `memory.high`: tasks of a group above this value must reclaim and sleep.
//!
//! Linux: mm/memcontrol.c `mem_cgroup_handle_over_high`, `reclaim_high`, `calculate_high_delay`
//! (6.1). Pages that a task charges while its group or an ancestor is above `high` add up to a
//! debt. When its call returns, the task pays: it reclaims that many pages from every such group
//! before it continues. A task that owes more than a batch pays earlier, in the middle of a long
//! call, at a charge that may wait (`page_request`). If reclaim does not help enough, the task
//! sleeps. The sleep grows with the square of the excess and is at most 2 s.
//!
//! Charges of daemons add no debt. Linux passes the debt of an interrupt to a worker (`high_work`);
//! here no charge comes from an interrupt.
//!
//! Invariant: a task owes at most the pages that it charged since it last paid. Each thread has
//! only the debt of its own calls.

use crate::frames::gfp::Gfp;
use crate::groups::charge::MAX_RECLAIM_RETRIES;
use crate::groups::memcg::{MemcgPosition, MemoryEvent};
use crate::groups::memcg_stock::MEMCG_CHARGE_BATCH;
use crate::groups::Groups;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Sleep, Step};
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::interface::throttle::Throttle;
use crate::reclaim::direct::DirectReclaim;
use crate::units::digest::State;
use crate::units::{MemcgId, SWAP_CLUSTER_MAX};

/// Ticks per second of the kernel's clock, the unit of delays.
const HZ: u64 = 250;
const TICK_NS: u64 = 1_000_000_000 / HZ;
/// The longest sleep, in ticks (Linux `MEMCG_MAX_HIGH_DELAY_JIFFIES`).
const MAX_DELAY: u64 = 2 * HZ;
/// Fraction bits of an overage (Linux `MEMCG_DELAY_PRECISION_SHIFT`).
const PRECISION_SHIFT: u32 = 20;
/// Right shift that scales a delay down (Linux `MEMCG_DELAY_SCALING_SHIFT`).
const SCALING_SHIFT: u32 = 14;

/// State of the payment of a task's debt.
#[derive(Clone, Debug, State)]
pub struct OverHigh {
    memcg: MemcgPosition,
    nr_pages: u64,
    /// The next group to reclaim from, on the path to the root.
    at: Option<MemcgPosition>,
    reclaim: Option<DirectReclaim>,
    nr_reclaimed: u64,
    in_retry: bool,
    retries_left: u32,
    slept: bool,
}

impl OverHigh {
    pub(crate) fn nr_pages(&self) -> u64 {
        if self.slept {
            0
        } else {
            self.nr_pages
        }
    }
}

impl Groups {
    /// Adds `nr` pages to the debt for each group on the path to the root that is above
    /// `memory.high`.
    pub(crate) fn note_over_high(&mut self, memcg: MemcgId, nr: u64) {
        let mut at = memcg;
        while at.is_some() {
            let counter = &self.memcgs[at].memory;
            if counter.usage > counter.high {
                self.nr_over_high += nr;
                return;
            }
            at = self.memcgs[at].parent;
        }
    }

    /// Whether the present call owes so much that it must pay before it continues.
    pub(crate) fn owes_too_much(&self) -> bool {
        self.nr_over_high > MEMCG_CHARGE_BATCH
    }

    /// Length of the sleep of a task that charged `nr_pages` above `memory.high`, in ticks.
    fn high_delay(&self, memcg: MemcgId, nr_pages: u64) -> u64 {
        let mut overage = 0;
        let mut at = memcg;
        while at.is_some() {
            let counter = &self.memcgs[at].memory;
            let excess = counter.usage.saturating_sub(counter.high);
            overage = overage.max((excess << PRECISION_SHIFT) / counter.high.max(1));
            at = self.memcgs[at].parent;
        }
        delay_of(overage, nr_pages)
    }
}

impl<O: Owners> Manager<O> {
    /// Starts the payment for the task of `ctx`, if the task has a debt.
    pub(crate) fn begin_over_high(&mut self, ctx: &Ctx) -> Option<OverHigh> {
        let nr_pages =
            core::mem::take(&mut self.groups.nr_over_high) + self.owners.take_over_high(ctx.asker);
        if nr_pages == 0 || self.owners.is_dying(ctx.asker) {
            return None;
        }
        let memcg = self.groups.position_of(ctx.memcg);
        Some(OverHigh {
            memcg,
            nr_pages,
            at: Some(memcg),
            reclaim: None,
            nr_reclaimed: 0,
            in_retry: false,
            retries_left: MAX_RECLAIM_RETRIES,
            slept: false,
        })
    }

    pub(crate) fn over_high_step(&mut self, state: &mut OverHigh, ctx: &Ctx) -> Step<()> {
        if let Some(reclaim) = &mut state.reclaim {
            match self.direct_reclaim_step(reclaim, ctx) {
                Step::Continue => return Step::Continue,
                Step::Wait(wait) => return Step::Wait(wait),
                Step::Done(reclaimed) => {
                    state.nr_reclaimed += reclaimed;
                    state.reclaim = None;
                }
            }
        }
        let is_victim = self.owners.is_dying(ctx.asker);
        let Some(memcg) =
            self.groups.at_position(state.memcg).filter(|_| !state.slept && !is_victim)
        else {
            return Step::Done(());
        };
        while let Some(at) = state.at.and_then(|at| self.groups.at_position(at)) {
            let group = &self.groups.memcgs[at];
            let (parent, over) = (group.parent, group.memory.usage > group.memory.high);
            state.at = parent.is_some().then(|| self.groups.position_of(parent));
            if over {
                self.groups.memory_event(at, MemoryEvent::High);
                let nr = if state.in_retry { SWAP_CLUSTER_MAX } else { state.nr_pages };
                let target = self.groups.position_of(at);
                state.reclaim = Some(DirectReclaim::of_group(target, nr, Gfp::KERNEL));
                return Step::Continue;
            }
        }
        let delay = self.groups.high_delay(memcg, state.nr_pages);
        // So short a sleep is not worth it: reclaim may not have made much progress yet.
        if delay <= HZ / 100 {
            return Step::Done(());
        }
        if state.nr_reclaimed > 0 || state.retries_left > 0 {
            if state.nr_reclaimed == 0 {
                state.retries_left -= 1;
            }
            state.in_retry = true;
            state.nr_reclaimed = 0;
            state.at = Some(state.memcg);
            return Step::Continue;
        }
        state.slept = true;
        Step::Wait(Sleep::throttled(ctx.node, Throttle::MemoryHigh, delay * TICK_NS))
    }
}

/// The delay in ticks for an overage (the excess as a fraction of `high`, in fixed point with 20
/// fraction bits).
fn delay_of(overage: u64, nr_pages: u64) -> u64 {
    let overage = u128::from(overage);
    let penalty = overage.saturating_mul(overage).saturating_mul(HZ.into());
    let penalty = penalty >> PRECISION_SHIFT >> SCALING_SHIFT;
    let penalty = penalty.saturating_mul(nr_pages.into()) / u128::from(MEMCG_CHARGE_BATCH);
    u64::try_from(penalty).unwrap_or(u64::MAX).min(MAX_DELAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_with_the_square_of_the_excess() {
        let percent = |percent: u64| (percent << PRECISION_SHIFT) / 100;
        // 1 % over and a batch of 64 pages: 1.6 ticks.
        assert_eq!(delay_of(percent(1), 64), 1);
        assert_eq!(delay_of(percent(10), 64), 159);
        assert_eq!(delay_of(percent(20), 64), MAX_DELAY);
        assert_eq!(delay_of(percent(10), 32), 79, "half the pages, half the sleep");
        assert_eq!(delay_of(u64::MAX, u64::MAX), MAX_DELAY);
    }
}
