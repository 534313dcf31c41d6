//! Direct reclaim: a task that allocates frees 32 pages itself, of the machine or of its group.
//!
//! Linux: `try_to_free_pages`, `try_to_free_mem_cgroup_pages`, `do_try_to_free_pages` (6.1).
//! Priority falls from 12 to 0 inclusive. Each round shrinks every eligible node once; reclaim ends
//! with the round that reaches 32 freed pages. If a whole descent (one round at each priority) has
//! freed nothing, another descent follows. Each further descent drops one exception, in this order:
//! pages in use, groups that soft limits or a shrink priority had spared, groups below
//! `memory.low`, groups that a plug-in had spared.
//!
//! Invariant: a finished reclaim has `done` set and its result in `sc.found.nr_reclaimed`.

use super::shrink_node::{NodeStep, ShrinkNode};
use super::{Reclaimer, ScanControl};
use crate::compaction::suitable::{compact_gap, compaction_suitable};
use crate::compaction::CompactResult;
use crate::frames::gfp::{AllocFlags, Gfp, Watermark};
use crate::frames::page_alloc::Memory;
use crate::frames::watermark::zone_watermark_ok;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::groups::memcg::MemcgPosition;
use crate::groups::Groups;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Sleep, Step};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::interface::throttle::Throttle;
use crate::reclaim::kswapd_compacts::balance_gap;
use crate::reclaim::plugin::PolicyFault;
use crate::stats::event::TraceEvent;
use crate::stats::vmstat::Event;
use crate::units::digest::State;
use crate::units::{NodeId, Order, DEF_PRIORITY, PAGE_ALLOC_COSTLY_ORDER, SWAP_CLUSTER_MAX, TICK};

/// Lists of a node, or of one zone where zones have lists of their own.
type ListsAt = (NodeId, Option<usize>);

/// A direct reclaim in progress.
#[derive(Clone, Debug, State)]
pub struct DirectReclaim {
    sc: ScanControl,
    /// The group to reclaim from; `None`: the machine.
    target: Option<MemcgPosition>,
    /// Position in the order of nodes, or of zones, in the current round.
    at: usize,
    pass: Option<ShrinkNode>,
    round_scanned: u64,
    /// The first batch has run, so the event log has the begin event.
    began: bool,
}

impl DirectReclaim {
    pub(crate) fn new(order: Order, gfp: Gfp) -> DirectReclaim {
        DirectReclaim {
            sc: ScanControl::new(Reclaimer::Direct, SWAP_CLUSTER_MAX, gfp, order),
            target: None,
            at: 0,
            pass: None,
            round_scanned: 0,
            began: false,
        }
    }

    /// Reclaim of `nr` pages from a group and its descendants (Linux
    /// `try_to_free_mem_cgroup_pages`).
    pub(crate) fn of_group(target: MemcgPosition, nr: u64, gfp: Gfp) -> DirectReclaim {
        let mut reclaim = DirectReclaim::new(0, gfp);
        reclaim.target = Some(target);
        reclaim.sc.goal.target = Some(target.id);
        reclaim.sc.goal.nr_to_reclaim = nr.max(SWAP_CLUSTER_MAX);
        reclaim.sc.goal.reclaim_idx = MAX_NR_ZONES - 1;
        reclaim
    }

    /// Makes this the reclaim for a write to memory.reclaim (Linux `MEMCG_RECLAIM_PROACTIVE`).
    pub(crate) fn proactive(mut self) -> DirectReclaim {
        self.sc.goal.proactive = true;
        self
    }
}

impl Groups {
    /// The reclaimer stops early: releases what its pass holds.
    pub(crate) fn abandon_direct_reclaim(&mut self, state: &DirectReclaim) {
        if let Some(pass) = &state.pass {
            self.abandon_shrink_node(pass);
        }
    }
}

impl Memory {
    pub(crate) fn direct_reclaim_begin(&mut self, gfp: Gfp) {
        let event = [
            Event::AllocstallDma,
            Event::AllocstallDma32,
            Event::AllocstallNormal,
            Event::AllocstallMovable,
        ][gfp.highest_zone()];
        self.vmstat.count(event);
        self.vmstat.count(Event::MmVmscanDirectReclaimBegin);
    }
}

impl Kernel {
    /// Whether every zone of the node that the request may use is ready for compaction, so that
    /// reclaim can stop there (Linux `compaction_ready`). A single such zone is enough to end
    /// reclaim after this round.
    fn is_compaction_ready(&self, (node, zone): ListsAt, sc: &mut ScanControl) -> bool {
        if sc.goal.order <= PAGE_ALLOC_COSTLY_ORDER || sc.goal.is_for_group() {
            return false;
        }
        let mut all = true;
        let zones = &self.mem.nodes[node].zones;
        let zones = match zone {
            Some(zone) => &zones[zone..=zone],
            None => &zones[..=sc.goal.reclaim_idx],
        };
        // 4.5 checks each zone as for a request that can use only the lowest.
        let classzone = if self.era.compacts_to_low_mark { 0 } else { sc.goal.reclaim_idx };
        for zone in zones {
            if !zone.is_populated() {
                continue;
            }
            let flags = AllocFlags::at(Watermark::Min);
            let ready = match compaction_suitable(
                zone,
                &self.config,
                &self.era,
                sc.goal.order,
                flags,
                classzone,
            ) {
                CompactResult::Success => true,
                CompactResult::Skipped => false,
                CompactResult::Deferred
                | CompactResult::Continue
                | CompactResult::Complete
                | CompactResult::PartialSkipped
                | CompactResult::Contended => {
                    let gap = if self.era.compacts_to_low_mark { balance_gap(zone) } else { 0 };
                    let mark = zone.wmark(Watermark::High) + gap + compact_gap(sc.goal.order);
                    let flags = AllocFlags::at(Watermark::High);
                    zone_watermark_ok(zone, 0, mark, classzone, flags)
                }
            };
            sc.found.compaction_ready |= ready;
            all &= ready;
        }
        all
    }

    /// The next lists of the round. The task's own node comes first, then the others by number;
    /// where zones have lists of their own, the highest zone of a node comes first.
    fn lists_to_shrink(&self, state: &DirectReclaim, first: NodeId) -> Option<ListsAt> {
        let nr_nodes = self.mem.pgdat.len();
        let nodes = (0..nr_nodes).map(|i| NodeId(((first.idx() + i) % nr_nodes) as u8));
        let by_zone = self.era.lists_by_zone;
        let lists = nodes.flat_map(|node| {
            let zones = &self.mem.nodes[node].zones[..=state.sc.goal.reclaim_idx];
            let zones = zones.iter().rev().filter(|zone| zone.is_populated());
            zones
                .take(if by_zone { MAX_NR_ZONES } else { 1 })
                .map(move |zone| (node, by_zone.then_some(zone.index)))
        });
        lists.into_iter().nth(state.at)
    }

    /// Drops one exception for the next descent, after a descent that freed nothing. Returns false
    /// if no exception remains.
    fn drop_one_exception(&mut self, sc: &mut ScanControl) -> bool {
        if self.era.shares_walks && !sc.goal.full_walk {
            // Tasks share their walks, so this task may have seen only empty groups.
            sc.goal.full_walk = true;
        } else if sc.found.skipped_ageing {
            sc.may.force_ageing = true;
            sc.found.skipped_ageing = false;
        } else if sc.stop_sparing_groups() {
            // These groups have no protection, so they come before the groups below `memory.low`.
            // The next descent meets those again.
            sc.may.force_ageing = false;
            sc.found.memcg_low_skipped = false;
        } else if sc.found.memcg_low_skipped {
            sc.may.force_ageing = false;
            sc.may.memcg_low = true;
            sc.found.memcg_low_skipped = false;
        } else if sc.overrule_plugins() {
            sc.may.force_ageing = false;
            self.plugin.note(PolicyFault::Overruled);
        } else {
            return false;
        }
        true
    }

    /// Whether tasks may reclaim without waiting for kswapd (Linux `allow_direct_reclaim`): the
    /// free pages are more than half of the sum of the min watermarks.
    pub(crate) fn allow_direct_reclaim(&mut self, node: NodeId) -> bool {
        if self.mem.pgdat[node].kswapd.failures >= super::kswapd::MAX_RECLAIM_RETRIES {
            return true;
        }
        let mut reserve = 0;
        let mut free = 0;
        for index in 0..=crate::frames::zone_type::ZONE_NORMAL {
            let zone = &self.mem.nodes[node].zones[index];
            if !zone.is_populated() || self.zone_reclaimable_pages(node, index) == 0 {
                continue;
            }
            let zone = &self.mem.nodes[node].zones[index];
            reserve += zone.wmark(crate::frames::gfp::Watermark::Min);
            free += zone.free_pages_counted();
        }
        if reserve == 0 || free > reserve / 2 {
            return true;
        }
        self.wake_kswapd_for_reserves(node);
        false
    }

    /// Whether the task must wait until kswapd has refilled the reserves (Linux
    /// `throttle_direct_reclaim`).
    pub(crate) fn throttle_direct_reclaim(&mut self, gfp: Gfp, ctx: &Ctx) -> Option<Sleep> {
        if self.era.reserves_unguarded || self.allow_direct_reclaim(ctx.node) {
            return None;
        }
        self.mem.vmstat.count(Event::PgscanDirectThrottle);
        let timeout = if gfp.has(Gfp::FS) { u64::MAX } else { 1_000_000_000 };
        Some(Sleep::throttled(ctx.node, Throttle::Reserves, timeout))
    }
}

impl<O: Owners> Manager<O> {
    /// One batch of direct reclaim. Done: pages freed.
    pub(crate) fn direct_reclaim_step(
        &mut self,
        state: &mut DirectReclaim,
        ctx: &Ctx,
    ) -> Step<u64> {
        if !core::mem::replace(&mut state.began, true) {
            let (order, gfp_flags) = (state.sc.goal.order, state.sc.goal.gfp);
            self.mem.events.record(match state.sc.goal.target {
                None => TraceEvent::MmVmscanDirectReclaimBegin { order, gfp_flags },
                Some(memcg) => TraceEvent::MmVmscanMemcgReclaimBegin { memcg, order, gfp_flags },
            });
        }
        let step = self.direct_reclaim_batch(state, ctx);
        if let Step::Done(nr_reclaimed) = step {
            self.mem.events.record(match state.sc.goal.target {
                None => TraceEvent::MmVmscanDirectReclaimEnd { nr_reclaimed },
                Some(memcg) => TraceEvent::MmVmscanMemcgReclaimEnd { memcg, nr_reclaimed },
            });
        }
        step
    }

    fn direct_reclaim_batch(&mut self, state: &mut DirectReclaim, ctx: &Ctx) -> Step<u64> {
        if state.target.is_some_and(|target| self.groups.at_position(target).is_none()) {
            return Step::Done(state.sc.found.nr_reclaimed);
        }
        let pass = match &mut state.pass {
            Some(pass) => pass,
            None => match self.lists_to_shrink(state, ctx.node) {
                Some(lists) if self.is_compaction_ready(lists, &mut state.sc) => {
                    state.at += 1;
                    return Step::Continue;
                }
                Some((node, zone)) => {
                    state.sc.rules.only_zone = zone;
                    state.pass.insert(ShrinkNode::new(node))
                }
                None => return self.direct_reclaim_round_end(state, ctx),
            },
        };
        match self.shrink_node_step(pass, &mut state.sc, ctx) {
            NodeStep::Continue => Step::Continue,
            NodeStep::Wait(wait) => Step::Wait(wait),
            NodeStep::Done(wait) => {
                state.pass = None;
                state.at += 1;
                match wait {
                    Some(wait) => Step::Wait(wait),
                    None => Step::Continue,
                }
            }
        }
    }

    fn direct_reclaim_round_end(&mut self, state: &mut DirectReclaim, ctx: &Ctx) -> Step<u64> {
        let sc = &mut state.sc;
        let round_scanned = sc.found.nr_scanned - state.round_scanned;
        state.at = 0;
        state.round_scanned = sc.found.nr_scanned;
        if sc.found.nr_reclaimed >= sc.goal.nr_to_reclaim {
            self.snapshot_all_refaults(sc.goal.target);
            return Step::Done(sc.found.nr_reclaimed);
        }
        if sc.found.compaction_ready {
            // Compaction can make the block: that is progress.
            self.snapshot_all_refaults(sc.goal.target);
            return Step::Done(sc.found.nr_reclaimed.max(1));
        }
        // Only a shortage of the machine makes the task sleep here.
        let may_sleep = !sc.goal.is_for_group() && !self.era.hurries_without_progress;
        let stuck = may_sleep && sc.goal.priority == 1 && sc.found.nr_reclaimed == 0;
        let may_nap = round_scanned > 0 && sc.goal.priority < DEF_PRIORITY - 2;
        sc.goal.priority -= 1;
        if sc.goal.priority < 0 {
            self.snapshot_all_refaults(sc.goal.target);
            if sc.found.nr_reclaimed == 0 && self.drop_one_exception(sc) {
                sc.goal.priority = DEF_PRIORITY;
                return Step::Continue;
            }
            return Step::Done(sc.found.nr_reclaimed);
        }
        if may_nap && self.waits_for_congestion(ctx.node) {
            let wait = self.mem.reclaim_throttle(ctx.node, Throttle::CongestionWait, 100_000_000);
            return Step::Wait(wait);
        }
        if stuck && sc.found.nr_reclaimed <= sc.found.nr_scanned >> 3 {
            return Step::Wait(self.mem.reclaim_throttle(ctx.node, Throttle::NoProgress, TICK));
        }
        Step::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::frames::node::NodeSpec;
    use crate::groups::memcg::ROOT;
    use crate::process::page_table::{Advice, Backing};
    use crate::process::{Machine, ProcessCall};
    use crate::swap::SwapOptions;
    use crate::units::{Cpu, MemcgId, Requester};

    const NODE: NodeId = NodeId(0);

    #[test]
    fn a_reclaim_that_is_given_up_puts_the_worst_group_back_on_the_tree() {
        let mut machine =
            Machine::new(&[NodeSpec::x86_64(32 << 20, 0, 0)], 1, Config::default()).unwrap();
        machine.swapon(SwapOptions::new(1 << 13));
        let memcg = machine.create_memcg("g".into(), ROOT).unwrap();
        let written = machine.write_group_control(memcg, "memory.soft_limit_in_bytes", "64K");
        written.unwrap().1.discard();
        let mm = machine.create_mm(memcg).unwrap();
        let heap = machine.mmap(mm, Backing::Anon, 4000, Advice::Normal, false).unwrap();
        for page in 0..4000 {
            let mut call = ProcessCall::fault(mm, NODE, heap, page, true);
            let (step, effects) = machine.step(&mut call, Cpu(0), 0);
            effects.discard();
            assert!(matches!(step, Step::Done(_)), "there is room");
        }
        let on_tree = |machine: &Machine| machine.groups.soft_limit_trees.of_node(0).count();
        assert_eq!(on_tree(&machine), 1);
        let ctx =
            Ctx { cpu: Cpu(0), node: NODE, now: 0, asker: Requester::NONE, memcg: MemcgId(0) };
        let mut reclaim = DirectReclaim::new(0, Gfp::KERNEL);
        assert!(matches!(machine.direct_reclaim_step(&mut reclaim, &ctx), Step::Continue));
        assert_eq!(on_tree(&machine), 0, "the stage holds it");
        machine.groups.abandon_direct_reclaim(&reclaim);
        assert_eq!(on_tree(&machine), 1);
        // A pass that holds nothing: no change.
        machine.groups.abandon_direct_reclaim(&reclaim);
        assert_eq!(on_tree(&machine), 1);
        machine.take_effects().discard();
        machine.audit().unwrap();
    }
}
