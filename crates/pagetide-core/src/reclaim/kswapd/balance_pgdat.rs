//! Steps of kswapd: waking it, its rounds over the node, and going to sleep.
//!
//! Linux: `wakeup_kswapd`, `balance_pgdat`, `kswapd_try_to_sleep`, `prepare_kswapd_sleep`
//! (mm/vmscan.c, 6.1).

use super::{KswapdStage, MAX_RECLAIM_RETRIES, NAP};
use crate::config::Config;
use crate::frames::gfp::{AllocFlags, Gfp, Watermark};
use crate::frames::page_alloc::Memory;
use crate::frames::watermark::zone_watermark_ok_free;
use crate::frames::zone::Zone;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::interface::ctx::Ctx;
use crate::interface::daemon::{Daemon, DaemonRest};
use crate::interface::effect::{Effect, Step, Token};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::interface::throttle::Throttle;
use crate::reclaim::kswapd_by_zone::ZoneDescent;
use crate::reclaim::plugin::PolicyFault;
use crate::reclaim::shrink_node::{NodeStep, ShrinkNode};
use crate::reclaim::{Reclaimer, ScanControl};
use crate::stats::event::TraceEvent;
use crate::stats::vmstat::Event;
use crate::units::{
    Cpu, MemcgId, Nanos, NodeId, Order, Requester, DEF_PRIORITY, PAGEBLOCK_ORDER, SWAP_CLUSTER_MAX,
};
use alloc::boxed::Box;

/// First action of a round.
enum RoundStart {
    Shrink,
    Nothing,
    Over,
}

impl Memory {
    fn pgdat_watermark_boosted(&self, node: NodeId, highest_zoneidx: usize) -> bool {
        self.nodes[node].zones[..=highest_zoneidx]
            .iter()
            .any(|zone| zone.is_populated() && zone.watermark_boost > 0)
    }

    /// While kswapd is awake, CPUs keep fewer pages in their lists (Linux
    /// `set_pgdat_percpu_threshold`).
    fn set_percpu_threshold(&mut self, node: NodeId, awake: bool) {
        let unit = self.stat_unit();
        for zone in &mut self.nodes[node].zones {
            let marks = zone.stat_marks();
            zone.stat.set_pressure(awake, marks, unit);
        }
    }

    /// Takes the request and sets up the descent (first part of `balance_pgdat`).
    fn kswapd_begin(&mut self, node: NodeId) {
        self.vmstat.count(Event::MmVmscanKswapdWake);
        self.vmstat.count(Event::Pageoutrun);
        let Memory { nodes, pgdat, events, .. } = self;
        let zones = &mut nodes[node].zones;
        let kswapd = &mut pgdat[node].kswapd;
        kswapd.alloc_order = kswapd.order;
        kswapd.zoneidx = kswapd.highest_zoneidx.unwrap_or(kswapd.zoneidx);
        kswapd.request_zoneidx = kswapd.zoneidx;
        let (zid, order) = (kswapd.zoneidx as u8, kswapd.alloc_order);
        events.record(TraceEvent::MmVmscanKswapdWake { nid: node, zid, order });
        kswapd.order = 0;
        kswapd.highest_zoneidx = None;
        *kswapd.sc = ScanControl::new(Reclaimer::Kswapd, 0, Gfp::KERNEL, kswapd.alloc_order);
        kswapd.sc.goal.reclaim_idx = kswapd.zoneidx;
        kswapd.boosts = [0; MAX_NR_ZONES];
        for (zone, boost) in zones[..=kswapd.zoneidx].iter_mut().zip(&mut kswapd.boosts) {
            *boost = zone.watermark_boost;
            zone.reclaim_active = true;
        }
        kswapd.nr_boost_reclaim = kswapd.boosts.iter().sum();
        kswapd.round_reclaimed = 0;
    }
}

impl Config {
    /// Whether a zone is above its high watermark. Defrag mode counts whole free pageblocks (Linux
    /// 6.15).
    pub(in crate::reclaim) fn has_high_mark(
        &self,
        zone: &Zone,
        order: Order,
        classzone: usize,
    ) -> bool {
        let in_blocks = self.defrag_mode && order > 0;
        let free = match in_blocks {
            true => zone.free_pages_in_blocks(),
            false => zone.stat.safe(zone.free_pages()),
        };
        let (mark, flags) = (zone.wmark(Watermark::High), AllocFlags::at(Watermark::High));
        zone_watermark_ok_free(zone, order, mark, classzone, flags, free)
    }
}

impl Kernel {
    /// An allocation found too little memory on this node (Linux `wakeup_kswapd`).
    pub(crate) fn wakeup_kswapd(
        &mut self,
        node: NodeId,
        order: Order,
        highest_zoneidx: usize,
        can_direct_reclaim: bool,
    ) {
        let kswapd = &mut self.mem.pgdat[node].kswapd;
        if kswapd.highest_zoneidx.is_none_or(|zone| zone < highest_zoneidx) {
            kswapd.highest_zoneidx = Some(highest_zoneidx);
        }
        kswapd.order = kswapd.order.max(order);
        if !kswapd.sleeping {
            return;
        }
        let hopeless = kswapd.failures >= MAX_RECLAIM_RETRIES;
        let balanced = if self.era.lists_by_zone {
            self.node_balanced_for_waker(node, order, highest_zoneidx)
        } else {
            self.pgdat_balanced(node, order, highest_zoneidx)
        };
        if hopeless || (balanced && !self.mem.pgdat_watermark_boosted(node, highest_zoneidx)) {
            // The node is fragmented, and the allocating task may not compact.
            if !can_direct_reclaim && !self.era.wakers_spare_kcompactd {
                self.wakeup_kcompactd(node, order, highest_zoneidx);
            }
            return;
        }
        self.mem.vmstat.count(Event::MmVmscanWakeupKswapd);
        let zid = highest_zoneidx as u8;
        self.mem.events.record(TraceEvent::MmVmscanWakeupKswapd { nid: node, zid, order });
        self.mem.pgdat[node].kswapd.sleeping = false;
        self.step.effects.push(Effect::Wake(Token::Daemon(Daemon::Kswapd(node))));
    }

    /// Reserves are low: kswapd must run, for zones up to Normal.
    pub(crate) fn wake_kswapd_for_reserves(&mut self, node: NodeId) {
        let kswapd = &mut self.mem.pgdat[node].kswapd;
        if kswapd.sleeping {
            let zone = kswapd.highest_zoneidx.unwrap_or(crate::frames::zone_type::ZONE_NORMAL);
            kswapd.highest_zoneidx = Some(zone.min(crate::frames::zone_type::ZONE_NORMAL));
            kswapd.sleeping = false;
            self.step.effects.push(Effect::Wake(Token::Daemon(Daemon::Kswapd(node))));
        }
    }

    /// Whether any zone up to `highest_zoneidx` is above its high watermark.
    pub(crate) fn pgdat_balanced(
        &self,
        node: NodeId,
        order: Order,
        highest_zoneidx: usize,
    ) -> bool {
        if self.era.lists_by_zone {
            return self.pgdat_balanced_by_zone(node, order, highest_zoneidx);
        }
        let mut populated = self.mem.nodes[node].zones[..=highest_zoneidx]
            .iter()
            .filter(|zone| zone.is_populated())
            .peekable();
        populated.peek().is_none()
            || populated.any(|zone| self.config.has_high_mark(zone, order, highest_zoneidx))
    }

    /// Whether the node's kswapd is napping or asleep.
    pub fn kswapd_is_sleeping(&self, node: NodeId) -> bool {
        self.mem.pgdat.get(node.idx()).is_none_or(|node| node.kswapd.sleeping)
    }

    /// After a round: another round, or the end of the descent.
    fn kswapd_next(&mut self, node: NodeId, more: bool) -> KswapdStage {
        if more {
            return KswapdStage::Round;
        }
        self.kswapd_end(node);
        KswapdStage::TrySleep
    }

    /// Whether kswapd may sleep: balanced, or hopeless. Ends the reserve throttle in both cases.
    fn prepare_kswapd_sleep(&mut self, node: NodeId) -> bool {
        if self.mem.pgdat[node].nr_reserve_throttled > 0 {
            self.wake_throttled(node, Throttle::Reserves);
        }
        let kswapd = &self.mem.pgdat[node].kswapd;
        if kswapd.failures >= MAX_RECLAIM_RETRIES {
            return true;
        }
        let (order, zoneidx) = (kswapd.reclaim_order, kswapd.zoneidx);
        if self.pgdat_balanced(node, order, zoneidx) {
            let state = &mut self.mem.pgdat[node];
            state.dirty = false;
            state.writeback = false;
            state.congested = false;
            return true;
        }
        false
    }

    fn kswapd_try_to_nap(&mut self, ctx: &Ctx) -> Option<(KswapdStage, Step<DaemonRest>)> {
        let node = ctx.node;
        if self.prepare_kswapd_sleep(node) {
            let kswapd = &mut self.mem.pgdat[node].kswapd;
            kswapd.sleeping = true;
            let (order, zoneidx) = (kswapd.alloc_order, kswapd.request_zoneidx);
            if !self.era.kcompactd_after_nap {
                self.reset_isolation_suitable(node);
                self.wakeup_kcompactd(node, order, zoneidx);
            }
            return Some((
                KswapdStage::Nap { until: ctx.now + NAP },
                Step::Done(DaemonRest::of(NAP)),
            ));
        }
        self.mem.vmstat.count(Event::KswapdHighWmarkHitQuickly);
        None
    }

    fn kswapd_nap_ended(
        &mut self,
        ctx: &Ctx,
        early: bool,
    ) -> Option<(KswapdStage, Step<DaemonRest>)> {
        let node = ctx.node;
        if early {
            let kswapd = &mut self.mem.pgdat[node].kswapd;
            kswapd.highest_zoneidx = Some(kswapd.highest_zoneidx.unwrap_or(kswapd.zoneidx));
            kswapd.order = kswapd.order.max(kswapd.reclaim_order);
            self.mem.vmstat.count(Event::KswapdLowWmarkHitQuickly);
            return None;
        }
        if self.prepare_kswapd_sleep(node) {
            self.mem.vmstat.count(Event::MmVmscanKswapdSleep);
            self.mem.events.record(TraceEvent::MmVmscanKswapdSleep { nid: node });
            if self.era.kcompactd_after_nap {
                let kswapd = &self.mem.pgdat[node].kswapd;
                let (order, zoneidx) = (kswapd.alloc_order, kswapd.request_zoneidx);
                self.reset_isolation_suitable(node);
                self.wakeup_kcompactd(node, order, zoneidx);
            }
            self.mem.pgdat[node].kswapd.sleeping = true;
            self.mem.set_percpu_threshold(node, false);
            return Some((KswapdStage::Sleep, Step::Done(DaemonRest::UNTIL_WOKEN)));
        }
        self.mem.vmstat.count(Event::KswapdHighWmarkHitQuickly);
        None
    }

    /// Clears compaction's skip hints where a task's run has completed (Linux
    /// `reset_isolation_suitable`).
    fn reset_isolation_suitable(&mut self, node: NodeId) {
        let Memory { pages, nodes, .. } = &mut self.mem;
        for zone in &mut nodes[node].zones {
            if zone.is_populated() && zone.compaction.blockskip_flush {
                zone.reset_isolation_suitable(pages, &self.era);
            }
        }
    }

    /// After a node pass: the next stage.
    fn kswapd_round_end(&mut self, ctx: &Ctx) -> KswapdStage {
        let node = ctx.node;
        if self.mem.pgdat[node].nr_reserve_throttled > 0 && self.allow_direct_reclaim(node) {
            self.wake_throttled(node, Throttle::Reserves);
        }
        let kswapd = &mut self.mem.pgdat[node].kswapd;
        let sc = &mut kswapd.sc;
        if sc.goal.order > 0 && sc.found.nr_reclaimed >= 2 << sc.goal.order {
            sc.goal.order = 0;
        }
        if sc.found.nr_scanned >= sc.goal.nr_to_reclaim {
            kswapd.raise_priority = false;
        }
        let reclaimed = sc.found.nr_reclaimed - kswapd.round_reclaimed;
        kswapd.nr_boost_reclaim -= kswapd.nr_boost_reclaim.min(reclaimed);
        if kswapd.needs_compaction && sc.goal.order > 0 && reclaimed > sc.goal.nr_to_reclaim {
            let order = sc.goal.order;
            return KswapdStage::Compact(self.mem.kswapd_begins_to_compact(node, order));
        }
        let more = self.kswapd_lower_priority(node);
        self.kswapd_next(node, more)
    }

    /// The end of a round: lowers the priority or stops. Returns whether to continue.
    fn kswapd_lower_priority(&mut self, node: NodeId) -> bool {
        let kswapd = &mut self.mem.pgdat[node].kswapd;
        let sc = &mut kswapd.sc;
        let reclaimed = sc.found.nr_reclaimed - kswapd.round_reclaimed;
        if kswapd.nr_boost_reclaim > 0 && reclaimed == 0 {
            // Reclaim has not failed as long as a group was spared.
            let is_vain = sc.found.nr_reclaimed == 0 && !sc.has_spared();
            if is_vain && !self.is_no_failure(node) {
                self.mem.pgdat[node].kswapd.failures += 1;
            }
            return false;
        }
        if kswapd.raise_priority || reclaimed == 0 {
            sc.goal.priority -= 1;
        }
        if sc.goal.priority >= 1 {
            return true;
        }
        if sc.found.nr_reclaimed == 0 && sc.stop_sparing_groups() {
            return true;
        }
        if sc.found.nr_reclaimed == 0 && sc.overrule_plugins() {
            self.plugin.note(PolicyFault::Overruled);
            return true;
        }
        if sc.found.nr_reclaimed == 0 && !self.is_no_failure(node) {
            self.mem.pgdat[node].kswapd.failures += 1;
        }
        false
    }

    /// A descent without progress is not a failure if there was nothing to reclaim: the node has
    /// enough pages but no block, and a kswapd that compacts does not reclaim from such a node.
    fn is_no_failure(&self, node: NodeId) -> bool {
        let kswapd = &self.mem.pgdat[node].kswapd;
        self.era.kswapd_compacts
            && kswapd.alloc_order > 0
            && self.pgdat_balanced(node, 0, kswapd.zoneidx)
    }

    /// Ends a descent. If the descent satisfied the order of its request, kswapd continues with the
    /// newest request.
    fn kswapd_end(&mut self, node: NodeId) {
        self.kswapd_end_balance(node);
        let kswapd = &mut self.mem.pgdat[node].kswapd;
        if kswapd.reclaim_order >= kswapd.alloc_order {
            kswapd.alloc_order = kswapd.order;
            kswapd.reclaim_order = kswapd.order;
            kswapd.zoneidx = kswapd.highest_zoneidx.unwrap_or(kswapd.zoneidx);
        }
    }

    /// Last part of `balance_pgdat`: removes the boost for which this descent reclaimed.
    pub(in crate::reclaim) fn kswapd_end_balance(&mut self, node: NodeId) {
        let kswapd = &mut self.mem.pgdat[node].kswapd;
        let boosted = kswapd.boosts.iter().any(|&boost| boost > 0);
        let zoneidx = kswapd.zoneidx;
        kswapd.reclaim_order = kswapd.sc.goal.order;
        for (zone, &boost) in self.mem.nodes[node].zones[..=zoneidx].iter_mut().zip(&kswapd.boosts)
        {
            zone.reclaim_active = false;
            zone.watermark_boost -= zone.watermark_boost.min(boost);
        }
        if boosted {
            self.wakeup_kcompactd(node, PAGEBLOCK_ORDER, zoneidx);
        }
        self.groups.snapshot_refaults(None, node);
    }
}

impl<O: Owners> Manager<O> {
    /// One bounded step of a node's kswapd, which runs on `cpu`.
    pub(crate) fn kswapd_step(&mut self, node: NodeId, cpu: Cpu, now: Nanos) -> Step<DaemonRest> {
        let ctx = Ctx { cpu, node, now, asker: Requester::NONE, memcg: MemcgId(0) };
        self.kswapd_work(&ctx)
    }

    fn kswapd_work(&mut self, ctx: &Ctx) -> Step<DaemonRest> {
        let node = ctx.node;
        // The stage is taken out so that the machine can be borrowed at the same time. All other
        // state stays in place except the scan control during a pass, so that new requests can
        // update it.
        let mut stage =
            core::mem::replace(&mut self.mem.pgdat[node].kswapd.stage, KswapdStage::TrySleep);
        let result = loop {
            match stage {
                KswapdStage::TrySleep => match self.kswapd_try_to_nap(ctx) {
                    Some((next, step)) => break (next, step),
                    None => stage = KswapdStage::Begin,
                },
                KswapdStage::Nap { until } => {
                    self.mem.pgdat[node].kswapd.sleeping = false;
                    match self.kswapd_nap_ended(ctx, ctx.now < until) {
                        Some((next, step)) => break (next, step),
                        None => stage = KswapdStage::Begin,
                    }
                }
                KswapdStage::Sleep => {
                    self.mem.pgdat[node].kswapd.sleeping = false;
                    self.mem.set_percpu_threshold(node, true);
                    stage = KswapdStage::Begin;
                }
                KswapdStage::Begin => {
                    self.mem.kswapd_begin(node);
                    stage = if self.era.lists_by_zone {
                        let laptop = self.config.laptop_mode != 0;
                        let kswapd = &mut self.mem.pgdat[node].kswapd;
                        kswapd.sc.may.writepage = !laptop;
                        let zoneidx = kswapd.zoneidx;
                        KswapdStage::Balance(Box::new(ZoneDescent::new(zoneidx)))
                    } else {
                        KswapdStage::Round
                    };
                }
                KswapdStage::Balance(ref mut balance) => match self
                    .balance_pgdat_by_zone(balance, ctx)
                {
                    Step::Continue => break (stage, Step::Continue),
                    Step::Wait(wait) => break (stage, Step::Wait(wait)),
                    Step::Done(()) => {
                        let end_zone = balance.end_zoneidx();
                        let again = self.kswapd_end_by_zone(node, end_zone);
                        let next = if again { KswapdStage::Begin } else { KswapdStage::TrySleep };
                        break (next, Step::Continue);
                    }
                },
                KswapdStage::Round => match self.kswapd_round(ctx) {
                    RoundStart::Shrink => {
                        stage = KswapdStage::Shrink(Box::new(ShrinkNode::new(node)))
                    }
                    RoundStart::Nothing => {
                        let more = self.kswapd_lower_priority(node);
                        break (self.kswapd_next(node, more), Step::Continue);
                    }
                    RoundStart::Over => break (self.kswapd_next(node, false), Step::Continue),
                },
                KswapdStage::Compact(ref mut zones) => match self.kswapd_compact_step(zones, ctx) {
                    Step::Continue => break (stage, Step::Continue),
                    Step::Wait(wait) => break (stage, Step::Wait(wait)),
                    Step::Done(()) => {
                        let more = self.kswapd_lower_priority(node);
                        break (self.kswapd_next(node, more), Step::Continue);
                    }
                },
                KswapdStage::Shrink(ref mut pass) => {
                    let mut sc = self.mem.pgdat[node].kswapd.sc.take();
                    let step = self.shrink_node_step(pass, &mut sc, ctx);
                    self.mem.pgdat[node].kswapd.sc.put_back(sc);
                    match step {
                        NodeStep::Continue => break (stage, Step::Continue),
                        NodeStep::Wait(wait) => break (stage, Step::Wait(wait)),
                        NodeStep::Done(wait) => {
                            let next = self.kswapd_round_end(ctx);
                            break match wait {
                                Some(wait) => (next, Step::Wait(wait)),
                                None => (next, Step::Continue),
                            };
                        }
                    }
                }
            }
        };
        self.mem.pgdat[node].kswapd.stage = result.0;
        result.1
    }

    fn kswapd_round(&mut self, ctx: &Ctx) -> RoundStart {
        let node = ctx.node;
        let kswapd = &self.mem.pgdat[node].kswapd;
        let balanced = self.pgdat_balanced(node, kswapd.sc.goal.order, kswapd.zoneidx);
        let laptop = self.config.laptop_mode != 0;
        let kswapd = &mut self.kernel.mem.pgdat[node].kswapd;
        if !balanced && kswapd.nr_boost_reclaim > 0 {
            // A real shortage: drops the boost and restarts at full priority.
            kswapd.nr_boost_reclaim = 0;
            kswapd.sc.goal.priority = DEF_PRIORITY;
        }
        if kswapd.nr_boost_reclaim == 0 && balanced {
            return RoundStart::Over;
        }
        let compacts = self.kernel.era.kswapd_compacts && kswapd.sc.goal.order > 0 && !balanced;
        kswapd.raise_priority =
            !(kswapd.nr_boost_reclaim > 0 && kswapd.sc.goal.priority == DEF_PRIORITY - 2);
        kswapd.sc.may.writepage = !laptop && kswapd.nr_boost_reclaim == 0;
        kswapd.sc.may.swap = kswapd.nr_boost_reclaim == 0;
        if kswapd.sc.goal.priority < DEF_PRIORITY - 2 {
            kswapd.sc.may.writepage = true;
        }
        kswapd.round_reclaimed = kswapd.sc.found.nr_reclaimed;
        kswapd.sc.found.nr_scanned = 0;
        let (order, zoneidx) = (kswapd.sc.goal.order, kswapd.zoneidx);
        kswapd.needs_compaction = compacts;
        let mut sc = *self.mem.pgdat[ctx.node].kswapd.sc;
        self.kswapd_age_node(&mut sc, ctx);
        let zones = &self.kernel.mem.nodes[node].zones[..=zoneidx];
        let zones = zones.iter().filter(|zone| zone.is_populated());
        let nr_to_reclaim =
            zones.map(|zone| zone.wmark(Watermark::High).max(SWAP_CLUSTER_MAX)).sum();
        let kept = &mut self.mem.pgdat[ctx.node].kswapd.sc;
        kept.found.generations = sc.found.generations;
        kept.goal.priority = sc.goal.priority;
        kept.goal.nr_to_reclaim = nr_to_reclaim;
        if compacts {
            let has_block = self.mem.node_has_block(node, order, zoneidx, zoneidx);
            self.mem.pgdat[node].kswapd.needs_compaction = !has_block;
            if !self.aim_at_zones_without_pages(node) {
                // Keep the priority, as after a round that has scanned enough.
                self.mem.pgdat[node].kswapd.raise_priority = false;
                return RoundStart::Nothing;
            }
        } else {
            self.mem.pgdat[node].kswapd.sc.goal.reclaim_idx = zoneidx;
        }
        RoundStart::Shrink
    }
}
