//! The descent of kswapd in 4.5: zone by zone, with compaction inside.
//!
//! Linux: `balance_pgdat`, `kswapd_shrink_zone` (mm/vmscan.c, 4.5).

use super::{ZoneDescent, ZoneDescentStage};
use crate::frames::gfp::{AllocFlags, Watermark};
use crate::frames::page_alloc::Memory;
use crate::frames::watermark::zone_watermark_ok;
use crate::frames::zone::Zone;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::interface::ctx::Ctx;
use crate::interface::effect::Step;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::interface::throttle::Throttle;
use crate::reclaim::kswapd::Kswapd;
use crate::reclaim::kswapd_compacts::balance_gap;
use crate::reclaim::plugin::PolicyFault;
use crate::reclaim::shrink_node::{NodeStep, ShrinkNode};
use crate::units::{NodeId, Order, DEF_PRIORITY, SWAP_CLUSTER_MAX};

impl Memory {
    fn end_zone(&mut self, state: &mut ZoneDescent, node: NodeId, zone: usize) {
        let kswapd = &mut self.pgdat[node].kswapd;
        let sc = &mut kswapd.sc;
        sc.rules.only_zone = None;
        state.nr_attempted += sc.goal.nr_to_reclaim;
        if sc.found.nr_reclaimed > state.reclaimed_before {
            kswapd.of_4_5.pages_scanned[zone] = 0;
        } else {
            kswapd.of_4_5.pages_scanned[zone] += sc.found.nr_scanned;
        }
        if sc.found.nr_scanned >= sc.goal.nr_to_reclaim {
            state.raise_priority = false;
        }
    }
}

impl Kernel {
    /// Whether a zone needs no work of kswapd. `highorder`: the question is whether to
    /// wake kswapd for a block of `order`.
    fn zone_balanced(
        &self,
        zone: &Zone,
        order: Order,
        highorder: bool,
        gap: u64,
        classzone: usize,
    ) -> bool {
        let flags = AllocFlags::at(Watermark::High);
        let mark = zone.wmark(Watermark::High) + gap;
        if self.era.kswapd_compacts {
            return zone_watermark_ok(zone, order, mark, classzone, flags)
                && (order == 0 || self.is_compactable(zone, order, classzone));
        }
        if highorder {
            zone_watermark_ok(zone, order, mark, classzone, flags)
        } else {
            zone_watermark_ok(zone, 0, mark + (1 << order), classzone, flags)
        }
    }

    /// Whether kswapd can stay asleep after a failed allocation, because no zone needs work.
    pub(in crate::reclaim) fn node_balanced_for_waker(
        &self,
        node: NodeId,
        order: Order,
        highest_zoneidx: usize,
    ) -> bool {
        self.mem.nodes[node].zones[..=highest_zoneidx]
            .iter()
            .filter(|zone| zone.is_populated())
            .all(|zone| self.zone_balanced(zone, order, true, 0, 0))
    }

    /// Whether kswapd may sleep: every zone is balanced or, for order > 0, the balanced zones have
    /// a quarter of the node's memory. Each zone is checked as for a request that can use no higher
    /// zone.
    pub(in crate::reclaim) fn pgdat_balanced_4_5(
        &self,
        node: NodeId,
        order: Order,
        classzone: usize,
    ) -> bool {
        let (mut managed, mut balanced) = (0, 0);
        for zone in &self.mem.nodes[node].zones[..=classzone] {
            if !zone.is_populated() {
                continue;
            }
            managed += zone.managed;
            let gives_up = !self.zone_reclaimable(node, zone.index);
            if gives_up || self.zone_balanced(zone, order, false, 0, zone.index) {
                balanced += zone.managed;
            } else if order == 0 {
                return false;
            }
        }
        balanced >= managed / 4
    }

    fn zone_reclaimable(&self, node: NodeId, zone: usize) -> bool {
        self.mem.pgdat[node].kswapd.of_4_5.pages_scanned[zone]
            < self.zone_reclaimable_pages(node, zone) * 6
    }

    /// Whether to shrink a zone (Linux `kswapd_shrink_zone`, first part).
    fn begin_zone(&mut self, state: &mut ZoneDescent, node: NodeId, index: usize) -> bool {
        let zone = &self.mem.nodes[node].zones[index];
        let Kswapd { sc, .. } = &self.mem.pgdat[node].kswapd;
        let reclaimable = sc.goal.priority == DEF_PRIORITY || self.zone_reclaimable(node, index);
        if !zone.is_populated() || !reclaimable {
            return false;
        }
        let mut order = sc.goal.order;
        if order > 0 && self.era.kswapd_compacts && self.is_compactable(zone, order, state.end_zone)
        {
            order = 0;
        }
        let gap = balance_gap(zone);
        let balanced = self.zone_balanced(zone, order, false, gap, state.end_zone);
        let nr_to_reclaim = zone.wmark(Watermark::High).max(SWAP_CLUSTER_MAX);
        let sc = &mut self.mem.pgdat[node].kswapd.sc;
        sc.found.nr_scanned = 0;
        sc.goal.nr_to_reclaim = nr_to_reclaim;
        sc.rules.only_zone = Some(index);
        state.reclaimed_before = sc.found.nr_reclaimed;
        if balanced {
            // Keep the priority, as after a round that has scanned enough.
            state.raise_priority = false;
        }
        !balanced
    }

    /// Ends a descent. Returns whether a larger order was requested during it. If not, the zones
    /// that kswapd has balanced decide whether it sleeps.
    pub(in crate::reclaim) fn kswapd_end_4_5(&mut self, node: NodeId, end_zone: usize) -> bool {
        self.kswapd_end_balance(node);
        let kswapd = &mut self.mem.pgdat[node].kswapd;
        if kswapd.order > kswapd.alloc_order {
            return true;
        }
        kswapd.zoneidx = end_zone.min(kswapd.zoneidx);
        false
    }
}

impl<O: Owners> Manager<O> {
    /// One step of a descent. `Done`: the descent is over.
    pub(in crate::reclaim) fn balance_pgdat_4_5(
        &mut self,
        state: &mut ZoneDescent,
        ctx: &Ctx,
    ) -> Step<()> {
        let node = ctx.node;
        match &mut state.at {
            ZoneDescentStage::Top => {
                if !self.begin_round(state, ctx) {
                    return Step::Done(());
                }
                state.at = ZoneDescentStage::Zone(0);
            }
            ZoneDescentStage::Zone(zone) => {
                let zone = *zone;
                if zone > state.end_zone {
                    state.at = ZoneDescentStage::AfterZones;
                } else if self.begin_zone(state, node, zone) {
                    state.at = ZoneDescentStage::Shrink(zone, ShrinkNode::new(node));
                } else {
                    state.at = ZoneDescentStage::Zone(zone + 1);
                }
            }
            ZoneDescentStage::Shrink(zone, pass) => {
                let zone = *zone;
                let mut sc = self.mem.pgdat[node].kswapd.sc.take();
                let step = self.shrink_node_step(pass, &mut sc, ctx);
                self.mem.pgdat[node].kswapd.sc.put_back(sc);
                match step {
                    NodeStep::Continue => {}
                    NodeStep::Wait(wait) => return Step::Wait(wait),
                    NodeStep::Done(wait) => {
                        self.mem.end_zone(state, node, zone);
                        state.at = ZoneDescentStage::Zone(zone + 1);
                        if let Some(wait) = wait {
                            return Step::Wait(wait);
                        }
                    }
                }
            }
            ZoneDescentStage::AfterZones => {
                if self.mem.pgdat[node].nr_reserve_throttled > 0 && self.allow_direct_reclaim(node)
                {
                    self.wake_throttled(node, Throttle::Reserves);
                }
                let compacts = self.era.kswapd_compacts;
                let sc = &mut self.mem.pgdat[node].kswapd.sc;
                let order = sc.goal.order;
                if compacts && order > 0 && sc.found.nr_reclaimed >= 2 << order {
                    // Perhaps permanently fragmented: settle for order 0.
                    sc.goal.order = 0;
                }
                // If there was nothing to reclaim, this comparison is always false.
                let compacts = state.needs_compaction && sc.found.nr_reclaimed > state.nr_attempted;
                let order = sc.goal.order;
                state.at = ZoneDescentStage::End;
                if compacts && order > 0 {
                    state.at =
                        ZoneDescentStage::Compact(self.mem.kswapd_begins_to_compact(node, order));
                }
            }
            ZoneDescentStage::Compact(zones) => match self.kswapd_compact_step(zones, ctx) {
                Step::Continue => {}
                Step::Wait(wait) => return Step::Wait(wait),
                Step::Done(()) => state.at = ZoneDescentStage::End,
            },
            ZoneDescentStage::End => {
                let sc = &mut self.mem.pgdat[node].kswapd.sc;
                state.reclaimed += sc.found.nr_reclaimed;
                if state.raise_priority || sc.found.nr_reclaimed == 0 {
                    sc.goal.priority -= 1;
                }
                let order = sc.goal.order;
                let zoneidx = self.mem.pgdat[node].kswapd.zoneidx;
                if self.pgdat_balanced_4_5(node, order, zoneidx) {
                    return Step::Done(());
                }
                let sc = &mut self.mem.pgdat[node].kswapd.sc;
                if sc.goal.priority < 1 {
                    // Last try: lift the exemptions of policies that 4.5 did not have.
                    if state.reclaimed > 0 {
                        return Step::Done(());
                    } else if sc.stop_sparing_groups() {
                    } else if sc.overrule_plugins() {
                        self.plugin.note(PolicyFault::Overruled);
                    } else {
                        return Step::Done(());
                    }
                }
                state.at = ZoneDescentStage::Top;
            }
        }
        Step::Continue
    }

    /// Finds the highest zone that needs work. `false`: none does.
    fn begin_round(&mut self, state: &mut ZoneDescent, ctx: &Ctx) -> bool {
        let node = ctx.node;
        self.mem.work.lruvecs_visited += 1;
        let sc = &mut self.mem.pgdat[node].kswapd.sc;
        sc.found.nr_reclaimed = 0;
        if sc.goal.priority < DEF_PRIORITY - 2 {
            sc.may.writepage = true;
        }
        let (order, priority) = (sc.goal.order, sc.goal.priority);
        state.nr_attempted = 0;
        state.raise_priority = true;
        state.needs_compaction = order > 0 && self.era.kswapd_compacts;
        let end = (0..MAX_NR_ZONES).rev().find(|&index| {
            let zone = &self.mem.nodes[node].zones[index];
            zone.is_populated()
                && (priority == DEF_PRIORITY || self.zone_reclaimable(node, index))
                && !self.zone_balanced(zone, order, false, 0, 0)
        });
        let Some(end) = end else { return false };
        state.end_zone = end;
        let sc = *self.mem.pgdat[ctx.node].kswapd.sc;
        self.kswapd_age_node(&sc, ctx);
        let zoneidx = self.mem.pgdat[node].kswapd.zoneidx;
        let has_block = self.mem.node_has_block(node, order, end, zoneidx);
        state.needs_compaction &= !has_block;
        true
    }
}
