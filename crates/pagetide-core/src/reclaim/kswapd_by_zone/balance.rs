//! The descent of a kswapd that works zone by zone.
//!
//! Linux: `balance_pgdat`, `kswapd_shrink_zone` (mm/vmscan.c, 2.6.37 to 4.6).

use super::{ZoneDescent, ZoneDescentStage};
use crate::frames::gfp::{AllocFlags, Watermark};
use crate::frames::watermark::zone_watermark_ok;
use crate::frames::zone::Zone;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Sleep, Step};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::interface::throttle::Throttle;
use crate::reclaim::kswapd::Kswapd;
use crate::reclaim::kswapd_compacts::balance_gap;
use crate::reclaim::plugin::PolicyFault;
use crate::reclaim::shrink_node::{NodeStep, ShrinkNode};
use crate::stats::vmstat::Event;
use crate::units::{NodeId, Order, DEF_PRIORITY, SWAP_CLUSTER_MAX};
use alloc::boxed::Box;

/// How a round of 2.6.37 and 3.3 ends.
enum RoundEnd {
    Balanced,
    Again(Option<Sleep>),
    /// Nothing can be freed.
    GivesUp,
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
        if highorder || self.era.kswapd_restarts {
            zone_watermark_ok(zone, order, mark, classzone, flags)
        } else {
            zone_watermark_ok(zone, 0, mark + (1 << order), classzone, flags)
        }
    }

    /// Whether kswapd can stay asleep after a failed allocation, because no zone needs work. Up to
    /// 3.3 only a zone below its low watermark needs work.
    pub(in crate::reclaim) fn node_balanced_for_waker(
        &self,
        node: NodeId,
        order: Order,
        highest_zoneidx: usize,
    ) -> bool {
        let mut zones = self.mem.nodes[node].zones[..=highest_zoneidx].iter();
        zones.all(|zone| match self.era.kswapd_restarts {
            _ if !zone.is_populated() => true,
            true => {
                let flags = AllocFlags::at(Watermark::Low);
                zone_watermark_ok(zone, order, zone.wmark(Watermark::Low), 0, flags)
            }
            false => self.zone_balanced(zone, order, true, 0, 0),
        })
    }

    /// Whether kswapd may sleep: every zone is balanced or, for order > 0 and except in 2.6.37, the
    /// balanced zones have a quarter of the node's memory. Each zone is checked as for a request
    /// that can use no higher zone (2.6.37: as for a request that can use only zone DMA).
    pub(in crate::reclaim) fn pgdat_balanced_by_zone(
        &self,
        node: NodeId,
        order: Order,
        classzone: usize,
    ) -> bool {
        let every = order == 0 || self.era.kswapd_wants_every_zone;
        let (mut managed, mut balanced) = (0, 0);
        for zone in &self.mem.nodes[node].zones[..=classzone] {
            if !zone.is_populated() {
                continue;
            }
            managed += zone.managed;
            let gives_up = !self.zone_reclaimable(node, zone.index);
            let class = if self.era.kswapd_wants_every_zone { 0 } else { zone.index };
            if gives_up || self.zone_balanced(zone, order, false, 0, class) {
                balanced += zone.managed;
            } else if every {
                return false;
            }
        }
        balanced >= managed / 4
    }

    fn zone_reclaimable(&self, node: NodeId, zone: usize) -> bool {
        self.mem.pgdat[node].kswapd.by_zone.pages_scanned[zone]
            < self.zone_reclaimable_pages(node, zone) * 6
    }

    /// Pages above its high watermark at which a zone is not scanned.
    fn zone_gap(&self, zone: &Zone) -> u64 {
        match self.era.kswapd_wants_every_zone {
            true => 7 * zone.wmark(Watermark::High),
            false => balance_gap(zone),
        }
    }

    /// Whether kswapd works on a zone in this round.
    fn begin_zone(&mut self, node: NodeId, index: usize) -> bool {
        let zone = &self.mem.nodes[node].zones[index];
        let sc = &self.mem.pgdat[node].kswapd.sc;
        let reclaimable = sc.goal.priority == DEF_PRIORITY || self.zone_reclaimable(node, index);
        if !zone.is_populated() || !reclaimable {
            return false;
        }
        let sc = &mut self.mem.pgdat[node].kswapd.sc;
        sc.found.nr_scanned = 0;
        sc.rules.only_zone = Some(index);
        true
    }

    /// Whether to scan the lists of a zone (Linux `kswapd_shrink_zone`, first part).
    fn begin_lists(&mut self, state: &mut ZoneDescent, node: NodeId, index: usize) -> bool {
        let zone = &self.mem.nodes[node].zones[index];
        let Kswapd { sc, .. } = &self.mem.pgdat[node].kswapd;
        let mut order = sc.goal.order;
        if order > 0 && self.era.kswapd_compacts && self.is_compactable(zone, order, state.end_zone)
        {
            order = 0;
        }
        let balanced = self.zone_balanced(zone, order, false, self.zone_gap(zone), state.end_zone);
        let nr_to_reclaim = match self.era.kswapd_restarts {
            true => u64::MAX,
            false => zone.wmark(Watermark::High).max(SWAP_CLUSTER_MAX),
        };
        let sc = &mut self.mem.pgdat[node].kswapd.sc;
        sc.goal.nr_to_reclaim = nr_to_reclaim;
        state.reclaimed_before = sc.found.nr_reclaimed;
        if balanced {
            // Keep the priority, as after a round that has scanned enough.
            state.raise_priority = false;
        }
        !balanced
    }

    /// The lists of a zone were scanned.
    fn lists_scanned(&mut self, state: &mut ZoneDescent, node: NodeId, zone: usize) {
        let kswapd = &mut self.mem.pgdat[node].kswapd;
        let sc = &mut kswapd.sc;
        state.nr_attempted = state.nr_attempted.saturating_add(sc.goal.nr_to_reclaim);
        state.scanned += sc.found.nr_scanned;
        if sc.found.nr_reclaimed > state.reclaimed_before {
            kswapd.by_zone.pages_scanned[zone] = 0;
        } else {
            kswapd.by_zone.pages_scanned[zone] += sc.found.nr_scanned;
        }
        if sc.found.nr_scanned >= sc.goal.nr_to_reclaim {
            state.raise_priority = false;
        }
    }

    /// 2.6.37 and 3.3 look at each zone after its scan.
    fn judge_zone(&mut self, state: &mut ZoneDescent, node: NodeId, index: usize) {
        let sc = &mut self.mem.pgdat[node].kswapd.sc;
        if state.scanned > 2 * SWAP_CLUSTER_MAX
            && state.scanned > sc.found.nr_reclaimed + sc.found.nr_reclaimed / 2
        {
            sc.may.writepage = true;
        }
        let order = sc.goal.order;
        if !self.zone_reclaimable(node, index) {
            return;
        }
        let zone = &self.mem.nodes[node].zones[index];
        let is_above = |mark| {
            let flags = AllocFlags::at(mark);
            zone_watermark_ok(zone, order, zone.wmark(mark), state.end_zone, flags)
        };
        let (is_short, is_under_min) = (!is_above(Watermark::High), !is_above(Watermark::Min));
        state.is_short |= is_short;
        state.is_under_min |= is_under_min;
        if !is_short {
            self.mem.pgdat[node].congested = false;
        }
    }

    /// The end of a round of 2.6.37 and 3.3.
    fn restarting_round_end(&mut self, state: &mut ZoneDescent, ctx: &Ctx) -> RoundEnd {
        let node = ctx.node;
        let Kswapd { sc, zoneidx, .. } = &self.mem.pgdat[node].kswapd;
        let (order, zoneidx) = (sc.goal.order, *zoneidx);
        let has_quarter = order > 0
            && !self.era.kswapd_wants_every_zone
            && self.pgdat_balanced_by_zone(node, order, zoneidx);
        if !state.is_short || has_quarter {
            return RoundEnd::Balanced;
        }
        let sc = &mut self.mem.pgdat[node].kswapd.sc;
        // If a zone is below its min watermark, there is no time to wait.
        let naps = state.scanned > 0 && sc.goal.priority < DEF_PRIORITY - 2 && !state.is_under_min;
        let nap = naps.then_some(Sleep::throttled(node, Throttle::CongestionWait, 100_000_000));
        if sc.found.nr_reclaimed < SWAP_CLUSTER_MAX {
            sc.goal.priority -= 1;
            if sc.goal.priority >= 0 {
                return RoundEnd::Again(nap);
            }
            // Perhaps permanently fragmented: settle for order 0.
            sc.goal.order = 0;
            if sc.found.nr_reclaimed == 0 && !sc.stop_sparing_groups() {
                if !sc.overrule_plugins() {
                    self.mem.pgdat[node].kswapd.failures += 1;
                    return RoundEnd::GivesUp;
                }
                self.plugin.note(PolicyFault::Overruled);
            }
        }
        self.mem.vmstat.count(Event::Pageoutrun);
        let sc = &mut self.mem.pgdat[node].kswapd.sc;
        sc.goal.priority = DEF_PRIORITY;
        state.reclaimed += core::mem::take(&mut sc.found.nr_reclaimed);
        sc.may.writepage = self.config.laptop_mode == 0;
        state.scanned = 0;
        RoundEnd::Again(nap)
    }

    /// Ends a descent. Returns whether a larger order was requested during it. If not, the zones
    /// that kswapd has balanced decide whether it sleeps.
    pub(in crate::reclaim) fn kswapd_end_by_zone(&mut self, node: NodeId, end_zone: usize) -> bool {
        self.mem.pgdat[node].kswapd.sc.rules.only_zone = None;
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
    pub(in crate::reclaim) fn balance_pgdat_by_zone(
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
            &mut ZoneDescentStage::Zone(zone) => {
                state.at = if zone > state.end_zone {
                    ZoneDescentStage::AfterZones
                } else if !self.begin_zone(node, zone) {
                    ZoneDescentStage::Zone(zone + 1)
                } else if let Some(soft) = {
                    let sc = &self.mem.pgdat[node].kswapd.sc;
                    self.begin_soft_reclaim(node, sc)
                } {
                    ZoneDescentStage::Soft(zone, Box::new(soft))
                } else {
                    ZoneDescentStage::Lists(zone)
                };
            }
            ZoneDescentStage::Soft(zone, soft) => {
                let zone = *zone;
                if self.soft_reclaim_step(soft, ctx) {
                    if !self.era.soft_limits_only_in_kswapd {
                        state.scanned += soft.nr_scanned;
                        self.mem.pgdat[node].kswapd.sc.found.nr_reclaimed += soft.nr_reclaimed;
                    }
                    state.at = ZoneDescentStage::Lists(zone);
                }
                let goal = self.mem.pgdat[node].kswapd.sc.goal;
                if let NodeStep::Wait(wait) = self.legacy_wait(&goal, node) {
                    return Step::Wait(wait);
                }
            }
            &mut ZoneDescentStage::Lists(zone) => {
                state.at = match self.begin_lists(state, node, zone) {
                    true => ZoneDescentStage::Shrink(zone, ShrinkNode::new(node)),
                    false => ZoneDescentStage::ZoneEnd(zone),
                };
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
                        self.lists_scanned(state, node, zone);
                        state.at = ZoneDescentStage::ZoneEnd(zone);
                        if let Some(wait) = wait {
                            return Step::Wait(wait);
                        }
                    }
                }
            }
            &mut ZoneDescentStage::ZoneEnd(zone) => {
                if self.era.kswapd_restarts {
                    self.judge_zone(state, node, zone);
                }
                state.at = ZoneDescentStage::Zone(zone + 1);
            }
            ZoneDescentStage::AfterZones => {
                if self.mem.pgdat[node].nr_reserve_throttled > 0 && self.allow_direct_reclaim(node)
                {
                    self.wake_throttled(node, Throttle::Reserves);
                }
                if self.era.kswapd_restarts {
                    state.at = ZoneDescentStage::Top;
                    return match self.restarting_round_end(state, ctx) {
                        RoundEnd::Balanced | RoundEnd::GivesUp => Step::Done(()),
                        RoundEnd::Again(Some(nap)) => Step::Wait(nap),
                        RoundEnd::Again(None) => Step::Continue,
                    };
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
                let reclaimed = core::mem::take(&mut sc.found.nr_reclaimed);
                state.reclaimed += reclaimed;
                if state.raise_priority || reclaimed == 0 {
                    sc.goal.priority -= 1;
                }
                let order = sc.goal.order;
                let zoneidx = self.mem.pgdat[node].kswapd.zoneidx;
                if self.pgdat_balanced_by_zone(node, order, zoneidx) {
                    return Step::Done(());
                }
                let sc = &mut self.mem.pgdat[node].kswapd.sc;
                if sc.goal.priority < 1 {
                    // Last try: lift the exemptions of policies that these kernels did not have.
                    if state.reclaimed > 0 {
                        return Step::Done(());
                    }
                    if !sc.stop_sparing_groups() {
                        if !sc.overrule_plugins() {
                            return Step::Done(());
                        }
                        self.plugin.note(PolicyFault::Overruled);
                    }
                }
                state.at = ZoneDescentStage::Top;
            }
        }
        Step::Continue
    }

    /// Finds the highest zone that needs work, and ages the anonymous memory of the zones down to
    /// it. `false`: no zone needs work.
    fn begin_round(&mut self, state: &mut ZoneDescent, ctx: &Ctx) -> bool {
        let node = ctx.node;
        self.mem.work.lruvecs_visited += 1;
        let restarts = self.era.kswapd_restarts;
        let sc = &mut self.mem.pgdat[node].kswapd.sc;
        if !restarts && sc.goal.priority < DEF_PRIORITY - 2 {
            sc.may.writepage = true;
        }
        let (order, priority) = (sc.goal.order, sc.goal.priority);
        state.nr_attempted = 0;
        state.raise_priority = true;
        state.is_short = false;
        state.is_under_min = false;
        state.needs_compaction = order > 0 && self.era.kswapd_compacts;
        let mut end = None;
        for index in (0..MAX_NR_ZONES).rev() {
            let zone = &self.mem.nodes[node].zones[index];
            let is_reclaimable = priority == DEF_PRIORITY || self.zone_reclaimable(node, index);
            if !zone.is_populated() || !is_reclaimable {
                continue;
            }
            let mut sc = *self.mem.pgdat[node].kswapd.sc;
            sc.rules.only_zone = Some(index);
            self.kswapd_age_node(&mut sc, ctx);
            let zone = &self.mem.nodes[node].zones[index];
            if !self.zone_balanced(zone, order, false, 0, 0) {
                end = Some(index);
                break;
            }
        }
        let Some(end) = end else { return false };
        state.end_zone = end;
        let zoneidx = self.mem.pgdat[node].kswapd.zoneidx;
        let has_block = self.mem.node_has_block(node, order, end, zoneidx);
        state.needs_compaction &= !has_block;
        true
    }
}
