//! The work of kcompactd: waking, its runs over the zones of the node, and sleeping.
//!
//! Linux: `wakeup_kcompactd`, `kcompactd_do_work`, `proactive_compact_node` (mm/compaction.c, 6.1).

use super::{
    fragmentation_score_wmark, fragmentation_score_zone, Kcompactd, KcompactdStage, KcompactdWork,
    CHECK_INTERVAL,
};
use crate::compaction::compaction_4_5::has_low_mark;
use crate::compaction::run::{CompactRunEnd, CompactRunId};
use crate::compaction::{CompactGoal, CompactMode, CompactResult, Compactor};
use crate::frames::gfp::{AllocFlags, Gfp, MigrateType, Watermark};
use crate::frames::node::ZoneRef;
use crate::frames::page_alloc::Memory;
use crate::frames::watermark::{zone_watermark_ok, zone_watermark_ok_free};
use crate::frames::zone::Zone;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::interface::ctx::Ctx;
use crate::interface::daemon::{Daemon, DaemonRest};
use crate::interface::effect::{Effect, Step, Token};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::stats::vmstat::Event;
use crate::units::{Cpu, MemcgId, Nanos, NodeId, Order, Requester};

impl Memory {
    /// Mean of the zones' scores, weighted by size (Linux `fragmentation_score_node`).
    pub(crate) fn fragmentation_score_node(&self, node: NodeId) -> u64 {
        let zones = &self.nodes[node].zones;
        let present: u64 = zones.iter().map(|zone| zone.present).sum();
        zones
            .iter()
            .filter(|zone| zone.is_populated())
            .map(|zone| zone.present * fragmentation_score_zone(zone) / (present + 1))
            .sum()
    }
}

impl Kernel {
    fn is_proactive(&self) -> bool {
        !self.era.no_kcompactd
            && !self.era.no_proactive_compaction
            && self.config.compaction_proactiveness > 0
    }

    /// Asks kcompactd for a block of `order` (Linux `wakeup_kcompactd`).
    pub(crate) fn wakeup_kcompactd(&mut self, node: NodeId, order: Order, highest_zoneidx: usize) {
        if order == 0 || self.era.no_kcompactd {
            return;
        }
        let kcompactd = &mut self.mem.pgdat[node].kcompactd;
        kcompactd.max_order = kcompactd.max_order.max(order);
        kcompactd.highest_zoneidx = kcompactd.highest_zoneidx.min(highest_zoneidx);
        if kcompactd.sleeping && self.is_kcompactd_worth_while(node) {
            self.begin_waking_kcompactd(node);
        }
    }

    fn begin_waking_kcompactd(&mut self, node: NodeId) {
        let kcompactd = &mut self.mem.pgdat[node].kcompactd;
        if core::mem::replace(&mut kcompactd.sleeping, false) {
            self.step.effects.push(Effect::Wake(Token::Daemon(Daemon::Kcompactd(node))));
        }
    }

    /// Whether compaction would help any zone of the node (Linux `kcompactd_node_suitable`).
    fn is_kcompactd_worth_while(&self, node: NodeId) -> bool {
        let Kcompactd { max_order, highest_zoneidx, .. } = self.mem.pgdat[node].kcompactd;
        self.mem.nodes[node].zones[..=highest_zoneidx]
            .iter()
            .filter(|zone| zone.is_populated())
            .any(|zone| self.kcompactd_suits(zone, max_order, highest_zoneidx))
    }

    fn kcompactd_suits(&self, zone: &Zone, order: Order, highest_zoneidx: usize) -> bool {
        if !self.config.defrag_mode {
            let flags = AllocFlags::at(Watermark::Min);
            let suitable = crate::compaction::suitable::compaction_suitable(
                zone,
                &self.config,
                &self.era,
                order,
                flags,
                highest_zoneidx,
            );
            return suitable == CompactResult::Continue;
        }
        // Defrag mode wants whole free pageblocks up to the high watermark, not just one block.
        let flags = AllocFlags::at(Watermark::High);
        let high = zone.wmark(Watermark::High);
        let free = zone.free_pages_in_blocks();
        let met = zone_watermark_ok_free(zone, order, high, highest_zoneidx, flags, free);
        let gap = zone.wmark(Watermark::Low) + crate::compaction::suitable::compact_gap(order);
        !met && zone_watermark_ok(zone, 0, gap, highest_zoneidx, flags)
    }

    /// Asks all kcompactds to compact everything; no task waits for the result.
    pub(crate) fn request_full_compaction(&mut self) {
        for node in 0..self.mem.pgdat.len() {
            self.mem.pgdat[node].kcompactd.explicit = true;
            self.begin_waking_kcompactd(NodeId(node as u8));
        }
    }

    /// Makes every kcompactd check fragmentation, after a write to `vm.compaction_proactiveness`.
    pub(crate) fn wake_all_kcompactds(&mut self) {
        for node in 0..self.mem.pgdat.len() {
            self.mem.pgdat[node].kcompactd.proactive_trigger = true;
            self.begin_waking_kcompactd(NodeId(node as u8));
        }
    }

    /// Whether the node's kcompactd is compacting a zone.
    pub fn kcompactd_is_compacting(&self, node: NodeId) -> bool {
        let node = self.mem.pgdat.get(node.idx());
        node.is_some_and(|node| {
            matches!(node.kcompactd.stage, KcompactdStage::Zone { run: Some(_), .. })
        })
    }

    /// Whether the node's kcompactd is asleep.
    pub fn kcompactd_is_sleeping(&self, node: NodeId) -> bool {
        self.mem.pgdat.get(node.idx()).is_none_or(|node| node.kcompactd.sleeping)
    }

    /// Time until the first step of each kcompactd, unless it is woken earlier.
    pub(crate) fn kcompactd_first_rest(&self) -> DaemonRest {
        match self.is_proactive() {
            true => DaemonRest::of(CHECK_INTERVAL),
            false => DaemonRest::UNTIL_WOKEN,
        }
    }

    /// Chooses the work after waking up.
    fn kcompactd_begin(&mut self, ctx: &Ctx, timed_out: bool) -> Step<DaemonRest> {
        let node = ctx.node;
        let kcompactd = &mut self.mem.pgdat[node].kcompactd;
        let triggered = core::mem::take(&mut kcompactd.proactive_trigger);
        let work = if core::mem::take(&mut kcompactd.explicit) {
            Some(KcompactdWork::Explicit)
        } else if kcompactd.max_order > 0 && !triggered {
            let (order, highest_zoneidx) = (kcompactd.max_order, kcompactd.highest_zoneidx);
            self.mem.vmstat.count(Event::CompactDaemonWake);
            Some(KcompactdWork::Request { order, highest_zoneidx })
        } else if (timed_out || triggered) && self.should_compact_proactively(node) {
            Some(KcompactdWork::Proactive { score_before: self.mem.fragmentation_score_node(node) })
        } else {
            None
        };
        match work {
            Some(work) => {
                self.mem.pgdat[node].kcompactd.stage =
                    KcompactdStage::Zone { work, at: 0, run: None };
                Step::Continue
            }
            None => self.kcompactd_sleep(ctx, CHECK_INTERVAL),
        }
    }

    fn kcompactd_sleep(&mut self, ctx: &Ctx, timeout: Nanos) -> Step<DaemonRest> {
        let timeout = if self.is_proactive() { timeout } else { Nanos::MAX };
        let kcompactd = &mut self.mem.pgdat[ctx.node].kcompactd;
        kcompactd.stage = KcompactdStage::Sleep { until: ctx.now.saturating_add(timeout) };
        if kcompactd.max_order > 0 || kcompactd.explicit || kcompactd.proactive_trigger {
            return Step::Continue;
        }
        kcompactd.sleeping = true;
        Step::Done(DaemonRest::of(timeout))
    }

    fn kcompactd_next_zone(
        &mut self,
        work: KcompactdWork,
        at: usize,
        ctx: &Ctx,
    ) -> Step<DaemonRest> {
        let node = ctx.node;
        let last = match work {
            KcompactdWork::Request { highest_zoneidx, .. } => highest_zoneidx,
            KcompactdWork::Proactive { .. } | KcompactdWork::Explicit => MAX_NR_ZONES - 1,
        };
        for zone in at..=last {
            if !self.mem.nodes[node].zones[zone].is_populated() {
                continue;
            }
            if let Some(run) = self.kcompactd_begin_zone(node, work, zone, ctx) {
                self.mem.pgdat[node].kcompactd.stage =
                    KcompactdStage::Zone { work, at: zone, run: Some(run) };
                return Step::Continue;
            }
        }
        self.kcompactd_end(work, ctx)
    }

    fn kcompactd_begin_zone(
        &mut self,
        node: NodeId,
        work: KcompactdWork,
        zone: usize,
        ctx: &Ctx,
    ) -> Option<CompactRunId> {
        let at = ZoneRef { node, zone: zone as u8 };
        let goal = CompactGoal {
            zone: at,
            order: None,
            mt: MigrateType::Movable,
            gfp: Gfp::KERNEL,
            mode: CompactMode::SyncLight,
            flags: AllocFlags::at(Watermark::Min),
            highest_zoneidx: zone,
            by: Compactor::Proactive,
            thorough: true,
        };
        let goal = match work {
            KcompactdWork::Proactive { .. } => goal,
            KcompactdWork::Explicit => {
                CompactGoal { mode: CompactMode::Sync, by: Compactor::Explicit, ..goal }
            }
            KcompactdWork::Request { order, highest_zoneidx } => {
                let state = &mut self.mem.nodes[node].zones[zone];
                if state.compaction.is_deferred(order) {
                    return None;
                }
                let zone = &self.mem.nodes[node].zones[zone];
                if !self.kcompactd_suits(zone, order, highest_zoneidx) {
                    return None;
                }
                let by = Compactor::Kcompactd;
                // kcompactd does not know the migrate type of the request. The kernel leaves the
                // field at 0, which means unmovable.
                let mt = MigrateType::Unmovable;
                CompactGoal { order: Some(order), mt, highest_zoneidx, by, thorough: false, ..goal }
            }
        };
        let id = self.compact_begin(goal, ctx).ok()?;
        if self.era.kcompactd_is_plain {
            self.ignore_skip_hints(id);
        }
        Some(id)
    }

    fn kcompactd_zone_done(
        &mut self,
        node: NodeId,
        work: KcompactdWork,
        zone: usize,
        end: CompactRunEnd,
    ) {
        self.mem.vmstat.add(Event::CompactDaemonMigrateScanned, end.migrate_scanned);
        self.mem.vmstat.add(Event::CompactDaemonFreeScanned, end.free_scanned);
        let KcompactdWork::Request { order, highest_zoneidx } = work else { return };
        let exhausted =
            matches!(end.result, CompactResult::Complete | CompactResult::PartialSkipped);
        let success = if self.era.compacts_to_low_mark {
            let flags = AllocFlags::at(Watermark::Low);
            has_low_mark(&self.mem.nodes[node].zones[zone], order, flags, highest_zoneidx)
        } else {
            end.result == CompactResult::Success
        };
        if !success && exhausted && !self.era.kcompactd_is_plain {
            // Free pages on per-CPU lists may keep blocks from merging.
            for cpu in 0..self.mem.nr_cpus {
                self.mem.drain_cpu_zone(Cpu(cpu), ZoneRef { node, zone: zone as u8 });
            }
        }
        let compaction = &mut self.mem.nodes[node].zones[zone].compaction;
        if success {
            compaction.defer_reset(order, false);
        } else if exhausted {
            compaction.defer(order);
        }
    }

    fn kcompactd_end(&mut self, work: KcompactdWork, ctx: &Ctx) -> Step<DaemonRest> {
        let node = ctx.node;
        let mut timeout = CHECK_INTERVAL;
        match work {
            KcompactdWork::Explicit => {}
            KcompactdWork::Request { order, highest_zoneidx } => {
                // Whatever the result, the request counts as served, unless a larger one has
                // arrived.
                let kcompactd = &mut self.mem.pgdat[node].kcompactd;
                if kcompactd.max_order <= order {
                    kcompactd.max_order = 0;
                }
                if kcompactd.highest_zoneidx >= highest_zoneidx {
                    kcompactd.highest_zoneidx = MAX_NR_ZONES - 1;
                }
            }
            KcompactdWork::Proactive { score_before } => {
                if self.mem.fragmentation_score_node(node) >= score_before {
                    timeout <<= crate::compaction::defer::COMPACT_MAX_DEFER_SHIFT;
                }
            }
        }
        self.kcompactd_sleep(ctx, timeout)
    }

    fn should_compact_proactively(&self, node: NodeId) -> bool {
        self.is_proactive()
            && self.mem.pgdat[node].kswapd.sleeping
            && self.mem.fragmentation_score_node(node)
                > fragmentation_score_wmark(&self.config, false)
    }
}

impl<O: Owners> Manager<O> {
    pub(crate) fn kcompactd_step(
        &mut self,
        node: NodeId,
        cpu: Cpu,
        now: Nanos,
    ) -> Step<DaemonRest> {
        let ctx = Ctx { cpu, node, now, asker: Requester::NONE, memcg: MemcgId(0) };
        self.mem.pgdat[node].kcompactd.sleeping = false;
        self.kcompactd_work(&ctx)
    }

    fn kcompactd_work(&mut self, ctx: &Ctx) -> Step<DaemonRest> {
        let node = ctx.node;
        match self.mem.pgdat[node].kcompactd.stage {
            KcompactdStage::Sleep { until } => self.kcompactd_begin(ctx, ctx.now >= until),
            KcompactdStage::Zone { work, at, run: Some(id) } => match self.compact_step(id, ctx) {
                Step::Continue => Step::Continue,
                Step::Wait(wait) => Step::Wait(wait),
                Step::Done(end) => {
                    self.kcompactd_zone_done(node, work, at, end);
                    self.mem.pgdat[node].kcompactd.stage =
                        KcompactdStage::Zone { work, at: at + 1, run: None };
                    Step::Continue
                }
            },
            KcompactdStage::Zone { work, at, run: None } => self.kcompactd_next_zone(work, at, ctx),
        }
    }
}
