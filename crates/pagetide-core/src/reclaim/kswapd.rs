//! kswapd: the daemon that keeps a node between its marks.
//!
//! Linux: `kswapd`, `balance_pgdat`, `kswapd_try_to_sleep`, `wakeup_kswapd` (6.1). Woken when an
//! allocation finds every zone below its low mark, it reclaims until one zone is above its high
//! mark, naps 100 ms, and sleeps for good if nobody called meanwhile. A zone whose marks are
//! boosted because fallbacks polluted its pageblocks is worked on mildly until the boost is gone.
//!
//! Invariant: `sleeping` is set exactly while the world must not step the daemon.

use super::kswapd_4_5::Balance;
use super::shrink_node::{NodeStep, ShrinkNode};
use super::{Reclaimer, ScanControl};
use crate::config::{BackgroundCompaction, KswapdPolicy, LruPolicy};
use crate::ctx::Ctx;
use crate::daemon::{Daemon, Rest};
use crate::digest::Digest;
use crate::effect::{Effect, Sleep, Step, Throttle, Token};
use crate::event::TraceEvent;
use crate::gfp::{AllocFlags, Gfp, Watermark};
use crate::lruvec::Lru;
use crate::manager::Manager;
use crate::memcg::ROOT;
use crate::owners::Owners;
use crate::page_alloc::Memory;
use crate::units::{
    Asker, Cpu, MemcgId, Nanos, NodeId, Order, DEF_PRIORITY, PAGEBLOCK_ORDER, SWAP_CLUSTER_MAX,
};
use crate::vmstat::Event;
use crate::zone::MAX_NR_ZONES;
use alloc::boxed::Box;

/// Fruitless descents after which kswapd gives up (Linux 6.1).
pub const MAX_RECLAIM_RETRIES: u32 = 16;
/// The short nap before the full sleep (Linux: HZ/10).
const NAP: Nanos = 100_000_000;

#[derive(Clone, Debug)]
enum Stage {
    /// Decide whether to sleep.
    TrySleep,
    /// In the short nap.
    Nap { until: Nanos },
    /// Asleep until woken.
    Sleep,
    /// Take the request and begin.
    Begin,
    /// Top of a round.
    Round,
    /// In the middle of a node pass. Boxed: the stage is moved at every step, and with many groups most
    /// steps do nothing else.
    Shrink(Box<ShrinkNode>),
    /// In a descent of Linux 4.5.
    Balance(Box<Balance>),
}

/// The daemon of one node.
#[derive(Clone, Debug)]
pub struct Kswapd {
    stage: Stage,
    /// Highest order asked for.
    pub order: Order,
    /// Highest zone asked for; `None`: nobody asked.
    pub highest_zoneidx: Option<usize>,
    /// Descents in a row that freed nothing.
    pub failures: u32,
    /// In its nap or asleep.
    pub sleeping: bool,
    pub(super) alloc_order: Order,
    reclaim_order: Order,
    pub(super) zoneidx: usize,
    /// Highest zone of the request, for kcompactd: not what kswapd made of it.
    request_zoneidx: usize,
    pub(super) sc: ScanControl,
    boosts: [u64; MAX_NR_ZONES],
    nr_boost_reclaim: u64,
    round_reclaimed: u64,
    round_scanned: u64,
    raise_priority: bool,
    /// Linux 4.5: pages of each zone scanned since something was last reclaimed from it.
    pub(super) pages_scanned: [u64; MAX_NR_ZONES],
    /// Linux 4.5: compacting.
    pub(super) compacting: bool,
}

impl Kswapd {
    /// A daemon that sleeps.
    pub(crate) fn new() -> Kswapd {
        Kswapd {
            stage: Stage::Sleep,
            order: 0,
            highest_zoneidx: None,
            failures: 0,
            sleeping: true,
            alloc_order: 0,
            reclaim_order: 0,
            zoneidx: MAX_NR_ZONES - 1,
            request_zoneidx: MAX_NR_ZONES - 1,
            sc: ScanControl::new(Reclaimer::Kswapd, 0, Gfp::KERNEL, 0),
            boosts: [0; MAX_NR_ZONES],
            nr_boost_reclaim: 0,
            round_reclaimed: 0,
            round_scanned: 0,
            raise_priority: true,
            pages_scanned: [0; MAX_NR_ZONES],
            compacting: false,
        }
    }
}

impl Kswapd {
    /// Mixes the state into `digest`.
    pub(crate) fn digest(&self, digest: &mut Digest) {
        let Kswapd {
            stage,
            order,
            highest_zoneidx,
            failures,
            sleeping,
            alloc_order,
            reclaim_order,
            zoneidx,
            request_zoneidx,
            sc,
            boosts,
            nr_boost_reclaim,
            round_reclaimed,
            round_scanned,
            raise_priority,
            pages_scanned,
            compacting,
        } = self;
        digest.write_all(pages_scanned);
        digest.write_u64(*request_zoneidx as u64);
        digest.write_u64(u64::from(*compacting));
        match stage {
            Stage::TrySleep => digest.write_u64(0),
            Stage::Nap { until } => digest.write_all(&[1, *until]),
            Stage::Sleep => digest.write_u64(2),
            Stage::Begin => digest.write_u64(3),
            Stage::Round => digest.write_u64(4),
            Stage::Shrink(pass) => {
                digest.write_u64(5);
                pass.digest(digest);
            }
            Stage::Balance(balance) => {
                digest.write_u64(6);
                balance.digest(digest);
            }
        }
        digest.write_option(highest_zoneidx.map(|zone| zone as u64));
        for order in [order, alloc_order, reclaim_order] {
            digest.write_u64(u64::from(*order));
        }
        sc.digest(digest);
        digest.write_all(boosts);
        digest.write_all(&[u64::from(*failures), u64::from(*sleeping), *zoneidx as u64]);
        digest.write_all(&[*nr_boost_reclaim, *round_reclaimed, *round_scanned]);
        digest.write_u64(u64::from(*raise_priority));
    }
}

impl<O: Owners> Manager<O> {
    /// Somebody is short of memory on this node (Linux `wakeup_kswapd`).
    pub(crate) fn wakeup_kswapd(
        &mut self,
        node: NodeId,
        order: Order,
        highest_zoneidx: usize,
        can_direct_reclaim: bool,
    ) {
        let kswapd = &mut self.nodes[node.idx()].kswapd;
        if kswapd.highest_zoneidx.is_none_or(|zone| zone < highest_zoneidx) {
            kswapd.highest_zoneidx = Some(highest_zoneidx);
        }
        kswapd.order = kswapd.order.max(order);
        if !kswapd.sleeping {
            return;
        }
        let hopeless = kswapd.failures >= MAX_RECLAIM_RETRIES;
        let balanced = match self.config.kswapd {
            KswapdPolicy::Linux45 => self.node_balanced_for_waker(node, order, highest_zoneidx),
            KswapdPolicy::Linux61 | KswapdPolicy::Linux2637 => {
                self.pgdat_balanced(node, order, highest_zoneidx)
            }
        };
        if hopeless || (balanced && !self.pgdat_watermark_boosted(node, highest_zoneidx)) {
            // A node that is too fragmented for a caller who cannot compact for himself.
            if !can_direct_reclaim && self.config.kswapd == KswapdPolicy::Linux61 {
                self.wakeup_kcompactd(node, order, highest_zoneidx);
            }
            return;
        }
        self.mem.vmstat.count(Event::MmVmscanWakeupKswapd);
        let zid = highest_zoneidx as u8;
        self.events.record(TraceEvent::MmVmscanWakeupKswapd { nid: node, zid, order });
        self.nodes[node.idx()].kswapd.sleeping = false;
        self.effects.push(Effect::Wake(Token::Daemon(Daemon::Kswapd(node))));
    }

    /// Reserves are low: kswapd must run, for zones up to Normal.
    pub(crate) fn wake_kswapd_for_reserves(&mut self, node: NodeId) {
        let kswapd = &mut self.nodes[node.idx()].kswapd;
        if kswapd.sleeping {
            let zone = kswapd.highest_zoneidx.unwrap_or(crate::zone::ZONE_NORMAL);
            kswapd.highest_zoneidx = Some(zone.min(crate::zone::ZONE_NORMAL));
            kswapd.sleeping = false;
            self.effects.push(Effect::Wake(Token::Daemon(Daemon::Kswapd(node))));
        }
    }

    /// Whether any zone up to `highest_zoneidx` is above its high mark (2.6.37: every zone).
    pub(crate) fn pgdat_balanced(
        &self,
        node: NodeId,
        order: Order,
        highest_zoneidx: usize,
    ) -> bool {
        let mut populated = self.mem.nodes[node.idx()].zones[..=highest_zoneidx]
            .iter()
            .filter(|zone| zone.is_populated())
            .peekable();
        if populated.peek().is_none() {
            return true;
        }
        // Defrag mode counts whole free pageblocks (Linux 6.15).
        let in_blocks = self.config.defrag_mode && order > 0;
        let balanced = |zone: &crate::zone::Zone, classzone: usize| {
            let mark = zone.wmark(Watermark::High);
            let free = if in_blocks { zone.free_pages_in_blocks() } else { zone.free_pages() };
            let flags = AllocFlags::at(Watermark::High);
            crate::watermark::zone_watermark_ok_free(zone, order, mark, classzone, flags, free)
        };
        match self.config.kswapd {
            KswapdPolicy::Linux61 => populated.any(|zone| balanced(zone, highest_zoneidx)),
            KswapdPolicy::Linux45 => self.pgdat_balanced_4_5(node, order, highest_zoneidx),
            // Classzone 0: what a low zone keeps from higher requests does not count against it.
            // A zone without anything to reclaim is passed over (`all_unreclaimable`).
            KswapdPolicy::Linux2637 => populated.all(|zone| {
                balanced(zone, 0) || self.zone_reclaimable_pages(node, zone.index) == 0
            }),
        }
    }

    fn pgdat_watermark_boosted(&self, node: NodeId, highest_zoneidx: usize) -> bool {
        self.mem.nodes[node.idx()].zones[..=highest_zoneidx]
            .iter()
            .any(|zone| zone.is_populated() && zone.watermark_boost > 0)
    }

    /// One bounded step of a node's kswapd, which runs on `cpu`.
    pub(crate) fn kswapd_step(&mut self, node: NodeId, cpu: Cpu, now: Nanos) -> Step<Rest> {
        let ctx = Ctx { cpu, node, now, asker: Asker::NONE, memcg: MemcgId(0) };
        self.kswapd_work(&ctx)
    }

    /// Whether the node's kswapd is compacting, as it did up to 4.5.
    pub fn kswapd_is_compacting(&self, node: NodeId) -> bool {
        self.nodes[node.idx()].kswapd.compacting
    }

    /// Whether the node's kswapd is napping or asleep.
    pub fn kswapd_is_sleeping(&self, node: NodeId) -> bool {
        self.nodes[node.idx()].kswapd.sleeping
    }

    fn kswapd_work(&mut self, ctx: &Ctx) -> Step<Rest> {
        let node = ctx.node;
        // The state is taken out so that the machine can be borrowed beside it; requests that
        // arrive meanwhile go into the fields of the one left in place, and are merged back.
        let mut stage =
            core::mem::replace(&mut self.nodes[node.idx()].kswapd.stage, Stage::TrySleep);
        let result = loop {
            match stage {
                Stage::TrySleep => match self.kswapd_try_to_nap(ctx) {
                    Some((next, step)) => break (next, step),
                    None => stage = Stage::Begin,
                },
                Stage::Nap { until } => {
                    self.nodes[node.idx()].kswapd.sleeping = false;
                    match self.kswapd_nap_ended(ctx, ctx.now < until) {
                        Some((next, step)) => break (next, step),
                        None => stage = Stage::Begin,
                    }
                }
                Stage::Sleep => {
                    self.nodes[node.idx()].kswapd.sleeping = false;
                    stage = Stage::Begin;
                }
                Stage::Begin => {
                    self.kswapd_begin(node);
                    stage = if self.config.kswapd == KswapdPolicy::Linux45 {
                        let zoneidx = self.nodes[node.idx()].kswapd.zoneidx;
                        Stage::Balance(Box::new(Balance::new(zoneidx)))
                    } else {
                        Stage::Round
                    };
                }
                Stage::Balance(ref mut balance) => match self.balance_pgdat_4_5(balance, ctx) {
                    Step::Continue => break (stage, Step::Continue),
                    Step::Wait(wait) => break (stage, Step::Wait(wait)),
                    Step::Done(()) => {
                        let end_zone = balance.end_zoneidx();
                        break (self.kswapd_end_4_5(node, end_zone), Step::Continue);
                    }
                },
                Stage::Round => match self.kswapd_round(ctx) {
                    Some(pass) => stage = Stage::Shrink(Box::new(pass)),
                    None => {
                        self.kswapd_end(node);
                        break (Stage::TrySleep, Step::Continue);
                    }
                },
                Stage::Shrink(ref mut pass) => {
                    let mut sc = self.nodes[node.idx()].kswapd.sc.clone();
                    let step = self.shrink_node_step(pass, &mut sc, ctx);
                    self.nodes[node.idx()].kswapd.sc = sc;
                    match step {
                        NodeStep::Continue => break (stage, Step::Continue),
                        NodeStep::Wait(wait) => break (stage, Step::Wait(wait)),
                        NodeStep::Done(wait) => {
                            let (more, sleep) = self.kswapd_round_end(ctx);
                            let next = if more {
                                Stage::Round
                            } else {
                                self.kswapd_end(node);
                                Stage::TrySleep
                            };
                            break match wait.or(sleep) {
                                Some(wait) => (next, Step::Wait(wait)),
                                None => (next, Step::Continue),
                            };
                        }
                    }
                }
            }
        };
        self.nodes[node.idx()].kswapd.stage = result.0;
        result.1
    }

    /// Ready to sleep: balanced, or hopeless. Lifts the reserve throttle either way.
    fn prepare_kswapd_sleep(&mut self, node: NodeId) -> bool {
        if self.nodes[node.idx()].nr_reserve_throttled > 0 {
            self.wake_throttled(node, Throttle::Reserves);
        }
        let kswapd = &self.nodes[node.idx()].kswapd;
        if kswapd.failures >= MAX_RECLAIM_RETRIES {
            return true;
        }
        let (order, zoneidx) = (kswapd.reclaim_order, kswapd.zoneidx);
        if self.pgdat_balanced(node, order, zoneidx) {
            let state = &mut self.nodes[node.idx()];
            state.dirty = false;
            state.writeback = false;
            state.congested = false;
            return true;
        }
        false
    }

    fn kswapd_try_to_nap(&mut self, ctx: &Ctx) -> Option<(Stage, Step<Rest>)> {
        let node = ctx.node;
        if self.prepare_kswapd_sleep(node) {
            let kswapd = &mut self.nodes[node.idx()].kswapd;
            kswapd.sleeping = true;
            let (order, zoneidx) = (kswapd.alloc_order, kswapd.request_zoneidx);
            if self.config.background_compaction == BackgroundCompaction::KcompactdEarly {
                self.reset_isolation_suitable(node);
                self.wakeup_kcompactd(node, order, zoneidx);
            }
            return Some((Stage::Nap { until: ctx.now + NAP }, Step::Done(Rest::of(NAP))));
        }
        self.mem.vmstat.count(Event::KswapdHighWmarkHitQuickly);
        None
    }

    fn kswapd_nap_ended(&mut self, ctx: &Ctx, early: bool) -> Option<(Stage, Step<Rest>)> {
        let node = ctx.node;
        if early {
            let kswapd = &mut self.nodes[node.idx()].kswapd;
            kswapd.highest_zoneidx = Some(kswapd.highest_zoneidx.unwrap_or(kswapd.zoneidx));
            kswapd.order = kswapd.order.max(kswapd.reclaim_order);
            self.mem.vmstat.count(Event::KswapdLowWmarkHitQuickly);
            return None;
        }
        if self.prepare_kswapd_sleep(node) {
            self.mem.vmstat.count(Event::MmVmscanKswapdSleep);
            self.events.record(TraceEvent::MmVmscanKswapdSleep { nid: node });
            if self.config.background_compaction != BackgroundCompaction::KcompactdEarly {
                let kswapd = &self.nodes[node.idx()].kswapd;
                let (order, zoneidx) = (kswapd.alloc_order, kswapd.request_zoneidx);
                self.reset_isolation_suitable(node);
                self.wakeup_kcompactd(node, order, zoneidx);
            }
            self.nodes[node.idx()].kswapd.sleeping = true;
            return Some((Stage::Sleep, Step::Done(Rest::UNTIL_WOKEN)));
        }
        self.mem.vmstat.count(Event::KswapdHighWmarkHitQuickly);
        None
    }

    /// Lets compaction look everywhere again where a task's run has ended (Linux
    /// `reset_isolation_suitable`).
    fn reset_isolation_suitable(&mut self, node: NodeId) {
        let Memory { pages, nodes, .. } = &mut self.mem;
        for zone in &mut nodes[node.idx()].zones {
            if zone.is_populated() && zone.compaction.blockskip_flush {
                zone.reset_isolation_suitable(pages, self.config.compaction);
            }
        }
    }

    /// Takes the request and sets up the descent (the head of `balance_pgdat`).
    fn kswapd_begin(&mut self, node: NodeId) {
        self.mem.vmstat.count(Event::MmVmscanKswapdWake);
        self.mem.vmstat.count(Event::Pageoutrun);
        let zones = &mut self.mem.nodes[node.idx()].zones;
        let kswapd = &mut self.nodes[node.idx()].kswapd;
        kswapd.alloc_order = kswapd.order;
        kswapd.zoneidx = kswapd.highest_zoneidx.unwrap_or(kswapd.zoneidx);
        kswapd.request_zoneidx = kswapd.zoneidx;
        let (zid, order) = (kswapd.zoneidx as u8, kswapd.alloc_order);
        self.events.record(TraceEvent::MmVmscanKswapdWake { nid: node, zid, order });
        kswapd.order = 0;
        kswapd.highest_zoneidx = None;
        kswapd.sc = ScanControl::new(Reclaimer::Kswapd, 0, Gfp::KERNEL, kswapd.alloc_order);
        kswapd.sc.reclaim_idx = kswapd.zoneidx;
        kswapd.boosts = [0; MAX_NR_ZONES];
        for (zone, boost) in zones[..=kswapd.zoneidx].iter_mut().zip(&mut kswapd.boosts) {
            *boost = zone.watermark_boost;
            zone.reclaim_active = true;
        }
        kswapd.nr_boost_reclaim = kswapd.boosts.iter().sum();
        kswapd.round_reclaimed = 0;
        kswapd.round_scanned = 0;
    }

    /// Top of a round: done, or the node pass to run.
    fn kswapd_round(&mut self, ctx: &Ctx) -> Option<ShrinkNode> {
        let node = ctx.node;
        let kswapd = &self.nodes[node.idx()].kswapd;
        let balanced = self.pgdat_balanced(node, kswapd.sc.order, kswapd.zoneidx);
        let laptop = self.config.laptop_mode != 0;
        let kswapd = &mut self.nodes[node.idx()].kswapd;
        if !balanced && kswapd.nr_boost_reclaim > 0 {
            // A real shortage: forget the boost and start again in earnest.
            kswapd.nr_boost_reclaim = 0;
            kswapd.sc.priority = DEF_PRIORITY;
        }
        if kswapd.nr_boost_reclaim == 0 && balanced {
            return None;
        }
        kswapd.raise_priority =
            !(kswapd.nr_boost_reclaim > 0 && kswapd.sc.priority == DEF_PRIORITY - 2);
        kswapd.sc.may_writepage = !laptop && kswapd.nr_boost_reclaim == 0;
        kswapd.sc.may_swap = kswapd.nr_boost_reclaim == 0;
        if kswapd.sc.priority < DEF_PRIORITY - 2 {
            kswapd.sc.may_writepage = true;
        }
        kswapd.round_reclaimed = kswapd.sc.nr_reclaimed;
        kswapd.sc.nr_scanned = 0;
        kswapd.sc.nr_to_reclaim = match self.config.kswapd {
            KswapdPolicy::Linux61 | KswapdPolicy::Linux45 => self.mem.nodes[node.idx()].zones
                [..=kswapd.zoneidx]
                .iter()
                .filter(|zone| zone.is_populated())
                .map(|zone| zone.wmark(Watermark::High).max(SWAP_CLUSTER_MAX))
                .sum(),
            KswapdPolicy::Linux2637 => u64::MAX,
        };
        self.kswapd_age_anon(ctx);
        Some(ShrinkNode::new(node))
    }

    /// Keeps the anonymous lists in balance even while only page cache is taken.
    pub(super) fn kswapd_age_anon(&mut self, ctx: &Ctx) {
        let node = ctx.node;
        // Before 5.8 every group's lists were looked at for themselves.
        let each = self.config.lru != LruPolicy::Linux61;
        if !self.can_age_anon_pages() || (!each && !self.inactive_is_low(ROOT, node, false)) {
            return;
        }
        let sc = self.nodes[node.idx()].kswapd.sc.clone();
        self.events.priority = sc.priority;
        let mut next = Some(ROOT);
        while let Some(memcg) = next {
            next = self.next_memcg(ROOT, memcg);
            // The patch of 2019 gates ageing as it gates reclaim.
            if !sc.ignore_shrink_priority && self.shrink_priority(memcg) < sc.priority {
                continue;
            }
            if each && !self.inactive_is_low(memcg, node, false) {
                continue;
            }
            self.shrink_active_list(Lru::ActiveAnon, SWAP_CLUSTER_MAX, memcg, node, &sc, ctx);
        }
    }

    /// After a node pass: lower the priority or stop. Returns whether to go on, and a wait.
    fn kswapd_round_end(&mut self, ctx: &Ctx) -> (bool, Option<Sleep>) {
        let node = ctx.node;
        if self.nodes[node.idx()].nr_reserve_throttled > 0 && self.allow_direct_reclaim(node) {
            self.wake_throttled(node, Throttle::Reserves);
        }
        let policy = self.config.kswapd;
        let kswapd = &mut self.nodes[node.idx()].kswapd;
        let sc = &mut kswapd.sc;
        if policy == KswapdPolicy::Linux2637 {
            return self.kswapd_round_end_2637(ctx);
        }
        if sc.order > 0 && sc.nr_reclaimed >= 2 << sc.order {
            sc.order = 0;
        }
        if sc.nr_scanned >= sc.nr_to_reclaim {
            kswapd.raise_priority = false;
        }
        let reclaimed = sc.nr_reclaimed - kswapd.round_reclaimed;
        kswapd.nr_boost_reclaim -= kswapd.nr_boost_reclaim.min(reclaimed);
        if kswapd.nr_boost_reclaim > 0 && reclaimed == 0 {
            return (false, None);
        }
        if kswapd.raise_priority || reclaimed == 0 {
            sc.priority -= 1;
        }
        if sc.priority >= 1 {
            return (true, None);
        }
        if sc.nr_reclaimed == 0 && sc.spares_no_priority() {
            return (true, None);
        }
        if sc.nr_reclaimed == 0 {
            kswapd.failures += 1;
        }
        (false, None)
    }

    /// The 2.6.37 rule: below priority 10 wait for congestion; once 32 pages were freed in a
    /// descent, begin a new one.
    fn kswapd_round_end_2637(&mut self, ctx: &Ctx) -> (bool, Option<Sleep>) {
        let node = ctx.node;
        // Below a min mark there is no time to wait.
        let under_min = self.mem.nodes[node.idx()]
            .zones
            .iter()
            .any(|zone| zone.is_populated() && zone.free_pages() <= zone.wmark(Watermark::Min));
        let kswapd = &mut self.nodes[node.idx()].kswapd;
        let sc = &mut kswapd.sc;
        let waits = sc.nr_scanned > 0 && sc.priority < DEF_PRIORITY - 2 && !under_min;
        let wait = waits.then_some(Sleep::throttled(node, Throttle::CongestionWait, 100_000_000));
        let descent = sc.nr_reclaimed - kswapd.round_scanned;
        if descent >= SWAP_CLUSTER_MAX {
            sc.priority = DEF_PRIORITY;
            kswapd.round_scanned = sc.nr_reclaimed;
            return (true, wait);
        }
        sc.priority -= 1;
        if sc.priority >= 0 {
            return (true, wait);
        }
        if descent == 0 && sc.spares_no_priority() {
            return (true, wait);
        }
        if descent == 0 {
            kswapd.failures += 1;
            return (false, wait);
        }
        sc.priority = DEF_PRIORITY;
        kswapd.round_scanned = sc.nr_reclaimed;
        (true, wait)
    }

    /// The end of a descent of Linux 4.5. It sleeps by what it has balanced, unless somebody wants a
    /// larger block by now.
    fn kswapd_end_4_5(&mut self, node: NodeId, end_zone: usize) -> Stage {
        let request = self.nodes[node.idx()].kswapd.zoneidx;
        self.kswapd_end(node);
        let kswapd = &mut self.nodes[node.idx()].kswapd;
        if kswapd.order > kswapd.alloc_order {
            return Stage::Begin;
        }
        kswapd.zoneidx = end_zone.min(request);
        Stage::TrySleep
    }

    /// The tail of `balance_pgdat`: take the boost off that was worked off.
    fn kswapd_end(&mut self, node: NodeId) {
        let kswapd = &mut self.nodes[node.idx()].kswapd;
        let boosted = kswapd.boosts.iter().any(|&boost| boost > 0);
        let zoneidx = kswapd.zoneidx;
        kswapd.reclaim_order = kswapd.sc.order;
        for (zone, &boost) in
            self.mem.nodes[node.idx()].zones[..=zoneidx].iter_mut().zip(&kswapd.boosts)
        {
            zone.reclaim_active = false;
            zone.watermark_boost -= zone.watermark_boost.min(boost);
        }
        if kswapd.reclaim_order >= kswapd.alloc_order && self.config.kswapd != KswapdPolicy::Linux45
        {
            // Satisfied at the order asked for: go by the newest request.
            kswapd.alloc_order = kswapd.order;
            kswapd.reclaim_order = kswapd.order;
            kswapd.zoneidx = kswapd.highest_zoneidx.unwrap_or(kswapd.zoneidx);
        }
        if boosted {
            self.wakeup_kcompactd(node, PAGEBLOCK_ORDER, zoneidx);
        }
        self.snapshot_refaults(None, node);
    }
}
