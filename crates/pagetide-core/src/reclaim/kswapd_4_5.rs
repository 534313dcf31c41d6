//! kswapd as it was in Linux 4.5 and 4.6: zone by zone, and, before kcompactd, a compactor.
//!
//! Linux: `balance_pgdat`, `kswapd_shrink_zone`, `zone_balanced`, `pgdat_balanced` (mm/vmscan.c) before
//! and after Vlastimil Babka's "mm, kswapd: replace kswapd compaction with waking up kcompactd" of
//! March 2016. [`BackgroundCompaction`] says which.
//!
//! Before (`kswapd`): a zone is balanced when it has its high mark *at the order asked for*. A round
//! reclaims from the zones that are not, at order 0 where compaction could do the rest, and compacts
//! the node at its end if more was reclaimed than was tried. For requests that only wake kswapd this
//! never happens: zone DMA is tried and gives nothing, the others have enough pages of order 0 and are
//! not tried, 0 is not more than what was tried, and kswapd goes down all priorities for nothing, again
//! and again. That flaw is what the patch is about, and it is kept.
//!
//! After (`kcompactd` and the others): kswapd is woken for the order, balances for single pages, and
//! leaves compaction to kcompactd.
//!
//! Differs from Linux: LRU lists belong to nodes, as since 4.8; a zone's own are the node's without the
//! pages of others. A zone counts as given up when it was scanned six times over for nothing.

use super::kswapd::Kswapd;
use super::shrink_node::{NodeStep, ShrinkNode};
use crate::compaction::{CompactMode, CompactResult, Compactor, Goal, RunId};
use crate::config::BackgroundCompaction;
use crate::ctx::Ctx;
use crate::digest::Digest;
use crate::effect::{Step, Throttle};
use crate::gfp::{AllocFlags, Gfp, MigrateType, Watermark};
use crate::manager::Manager;
use crate::node::ZoneRef;
use crate::owners::Owners;
use crate::units::{NodeId, Order, DEF_PRIORITY, SWAP_CLUSTER_MAX};
use crate::vmstat::Event;
use crate::watermark::zone_watermark_ok;
use crate::zone::{Zone, MAX_NR_ZONES};

/// A zone may be above its high mark by its hundredth before pressure on it ends.
const KSWAPD_ZONE_BALANCE_GAP_RATIO: u64 = 100;

/// Where a descent is.
#[derive(Clone, Debug)]
pub(super) struct Balance {
    /// Highest zone that is not balanced; what kswapd sleeps by.
    end_zone: usize,
    at: Place,
    nr_attempted: u64,
    needs_compaction: bool,
    raise_priority: bool,
    /// Of the zone being shrunk.
    reclaimed_before: u64,
}

#[derive(Clone, Debug)]
enum Place {
    /// Top of a round.
    Top,
    /// The next zone of the round.
    Zone(usize),
    /// In the middle of a zone.
    Shrink(usize, ShrinkNode),
    /// All zones were seen to.
    AfterZones,
    /// Compacting: the zone, and its run.
    Compact(usize, Option<RunId>),
    /// End of the round.
    End,
}

impl Balance {
    pub(super) fn new(zoneidx: usize) -> Balance {
        Balance {
            end_zone: zoneidx,
            at: Place::Top,
            nr_attempted: 0,
            needs_compaction: false,
            raise_priority: true,
            reclaimed_before: 0,
        }
    }

    pub(super) fn digest(&self, digest: &mut Digest) {
        let Balance {
            end_zone,
            at,
            nr_attempted,
            needs_compaction,
            raise_priority,
            reclaimed_before,
        } = self;
        match at {
            Place::Top => digest.write_u64(0),
            Place::Zone(zone) => digest.write_all(&[1, *zone as u64]),
            Place::Shrink(zone, pass) => {
                digest.write_all(&[2, *zone as u64]);
                pass.digest(digest);
            }
            Place::AfterZones => digest.write_u64(3),
            Place::Compact(zone, run) => {
                digest.write_all(&[4, *zone as u64]);
                digest.write_option(run.map(|run| run.0.into()));
            }
            Place::End => digest.write_u64(5),
        }
        digest.write_all(&[*end_zone as u64, *nr_attempted, *reclaimed_before]);
        digest.write_all(&[u64::from(*needs_compaction), u64::from(*raise_priority)]);
    }
}

impl<O: Owners> Manager<O> {
    fn kswapd_compacts(&self) -> bool {
        self.config.background_compaction == BackgroundCompaction::Kswapd
    }

    /// Whether a zone needs nothing of kswapd. `highorder`: for the waker, who wants a block.
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
        if self.kswapd_compacts() {
            return zone_watermark_ok(zone, order, mark, classzone, flags)
                && (order == 0 || self.is_compactable(zone, order, classzone));
        }
        if highorder {
            zone_watermark_ok(zone, order, mark, classzone, flags)
        } else {
            zone_watermark_ok(zone, 0, mark + (1 << order), classzone, flags)
        }
    }

    /// There is a block, or compaction could make one.
    fn is_compactable(&self, zone: &Zone, order: Order, classzone: usize) -> bool {
        let flags = AllocFlags::at(Watermark::Low);
        crate::compaction::suitable::compaction_suitable(
            zone,
            &self.config,
            order,
            flags,
            classzone,
        ) != CompactResult::Skipped
    }

    /// Whether a request that found no memory may leave kswapd asleep: no zone needs it.
    pub(super) fn node_balanced_for_waker(
        &self,
        node: NodeId,
        order: Order,
        highest_zoneidx: usize,
    ) -> bool {
        self.mem.nodes[node.idx()].zones[..=highest_zoneidx]
            .iter()
            .filter(|zone| zone.is_populated())
            .all(|zone| self.zone_balanced(zone, order, true, 0, 0))
    }

    /// Whether kswapd may sleep: every zone is balanced, or, for blocks, a quarter of the node's memory.
    /// Each zone is held against requests that could use no higher one.
    pub(super) fn pgdat_balanced_4_5(&self, node: NodeId, order: Order, classzone: usize) -> bool {
        let (mut managed, mut balanced) = (0, 0);
        for zone in &self.mem.nodes[node.idx()].zones[..=classzone] {
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

    /// Whether a zone is worth scanning again.
    fn zone_reclaimable(&self, node: NodeId, zone: usize) -> bool {
        self.nodes[node.idx()].kswapd.pages_scanned[zone]
            < self.zone_reclaimable_pages(node, zone) * 6
    }

    /// One step of a descent. Done: it is over.
    pub(super) fn balance_pgdat_4_5(&mut self, state: &mut Balance, ctx: &Ctx) -> Step<()> {
        let node = ctx.node;
        match &mut state.at {
            Place::Top => {
                if !self.begin_round(state, ctx) {
                    return Step::Done(());
                }
                state.at = Place::Zone(0);
            }
            Place::Zone(zone) => {
                let zone = *zone;
                if zone > state.end_zone {
                    state.at = Place::AfterZones;
                } else if self.begin_zone(state, node, zone) {
                    state.at = Place::Shrink(zone, ShrinkNode::new(node));
                } else {
                    state.at = Place::Zone(zone + 1);
                }
            }
            Place::Shrink(zone, pass) => {
                let zone = *zone;
                let mut sc = self.nodes[node.idx()].kswapd.sc.clone();
                let step = self.shrink_node_step(pass, &mut sc, ctx);
                self.nodes[node.idx()].kswapd.sc = sc;
                match step {
                    NodeStep::Continue => {}
                    NodeStep::Wait(wait) => return Step::Wait(wait),
                    NodeStep::Done(wait) => {
                        self.end_zone(state, node, zone);
                        state.at = Place::Zone(zone + 1);
                        if let Some(wait) = wait {
                            return Step::Wait(wait);
                        }
                    }
                }
            }
            Place::AfterZones => {
                if self.nodes[node.idx()].nr_reserve_throttled > 0
                    && self.allow_direct_reclaim(node)
                {
                    self.wake_throttled(node, Throttle::Reserves);
                }
                let compacts = self.kswapd_compacts();
                let sc = &mut self.nodes[node.idx()].kswapd.sc;
                let order = sc.order;
                if compacts && order > 0 && sc.nr_reclaimed >= 2 << order {
                    // Fragmented for good, perhaps: single pages will have to do.
                    sc.order = 0;
                }
                // The comparison that is never true if there was nothing to reclaim.
                let compacts = state.needs_compaction && sc.nr_reclaimed > state.nr_attempted;
                state.at = if compacts { Place::Compact(0, None) } else { Place::End };
                if compacts {
                    self.mem.vmstat.count(Event::CompactKswapd);
                    self.nodes[node.idx()].kswapd.compacting = true;
                }
            }
            Place::Compact(..) => return self.kswapd_compact_step(state, ctx),
            Place::End => {
                let sc = &mut self.nodes[node.idx()].kswapd.sc;
                if state.raise_priority || sc.nr_reclaimed == 0 {
                    sc.priority -= 1;
                }
                let (order, priority) = (sc.order, sc.priority);
                let zoneidx = self.nodes[node.idx()].kswapd.zoneidx;
                if priority < 1 || self.pgdat_balanced_4_5(node, order, zoneidx) {
                    return Step::Done(());
                }
                state.at = Place::Top;
            }
        }
        Step::Continue
    }

    /// Finds the highest zone that needs work. `false`: none does.
    fn begin_round(&mut self, state: &mut Balance, ctx: &Ctx) -> bool {
        let node = ctx.node;
        self.mem.work.lruvecs_visited += 1;
        let sc = &mut self.nodes[node.idx()].kswapd.sc;
        sc.nr_reclaimed = 0;
        if sc.priority < DEF_PRIORITY - 2 {
            sc.may_writepage = true;
        }
        let (order, priority) = (sc.order, sc.priority);
        state.nr_attempted = 0;
        state.raise_priority = true;
        state.needs_compaction = order > 0 && self.kswapd_compacts();
        let end = (0..MAX_NR_ZONES).rev().find(|&index| {
            let zone = &self.mem.nodes[node.idx()].zones[index];
            zone.is_populated()
                && (priority == DEF_PRIORITY || self.zone_reclaimable(node, index))
                && !self.zone_balanced(zone, order, false, 0, 0)
        });
        let Some(end) = end else { return false };
        state.end_zone = end;
        self.kswapd_age_anon(ctx);
        let zoneidx = self.nodes[node.idx()].kswapd.zoneidx;
        let has_block = self.mem.nodes[node.idx()].zones[..=end]
            .iter()
            .filter(|zone| zone.is_populated())
            .any(|zone| {
                let low = zone.wmark(Watermark::Low);
                zone_watermark_ok(zone, order, low, zoneidx, AllocFlags::at(Watermark::Low))
            });
        state.needs_compaction &= !has_block;
        true
    }

    /// Whether a zone is to be shrunk (Linux `kswapd_shrink_zone`, its head).
    fn begin_zone(&mut self, state: &mut Balance, node: NodeId, index: usize) -> bool {
        let zone = &self.mem.nodes[node.idx()].zones[index];
        let Kswapd { sc, .. } = &self.nodes[node.idx()].kswapd;
        let reclaimable = sc.priority == DEF_PRIORITY || self.zone_reclaimable(node, index);
        if !zone.is_populated() || !reclaimable {
            return false;
        }
        let mut order = sc.order;
        if order > 0 && self.kswapd_compacts() && self.is_compactable(zone, order, state.end_zone) {
            order = 0;
        }
        let low = zone.wmark(Watermark::Low);
        let gap = low.min(zone.managed.div_ceil(KSWAPD_ZONE_BALANCE_GAP_RATIO));
        let balanced = self.zone_balanced(zone, order, false, gap, state.end_zone);
        let nr_to_reclaim = zone.wmark(Watermark::High).max(SWAP_CLUSTER_MAX);
        let sc = &mut self.nodes[node.idx()].kswapd.sc;
        sc.nr_scanned = 0;
        sc.nr_to_reclaim = nr_to_reclaim;
        sc.only_zone = Some(index);
        state.reclaimed_before = sc.nr_reclaimed;
        if balanced {
            // Enough "was scanned".
            state.raise_priority = false;
        }
        !balanced
    }

    fn end_zone(&mut self, state: &mut Balance, node: NodeId, zone: usize) {
        let kswapd = &mut self.nodes[node.idx()].kswapd;
        let sc = &mut kswapd.sc;
        sc.only_zone = None;
        state.nr_attempted += sc.nr_to_reclaim;
        if sc.nr_reclaimed > state.reclaimed_before {
            kswapd.pages_scanned[zone] = 0;
        } else {
            kswapd.pages_scanned[zone] += sc.nr_scanned;
        }
        if sc.nr_scanned >= sc.nr_to_reclaim {
            state.raise_priority = false;
        }
    }

    /// Compacts the node's zones, asynchronously (Linux `compact_pgdat`).
    fn kswapd_compact_step(&mut self, state: &mut Balance, ctx: &Ctx) -> Step<()> {
        let node = ctx.node;
        let Place::Compact(zone, run) = &mut state.at else { unreachable!("compacting") };
        let order = self.nodes[node.idx()].kswapd.alloc_order;
        let highest_zoneidx = MAX_NR_ZONES - 1;
        if let Some(id) = *run {
            match self.compact_step(id, ctx) {
                Step::Continue => return Step::Continue,
                Step::Wait(wait) => return Step::Wait(wait),
                Step::Done(_) => {
                    let at = &mut self.mem.nodes[node.idx()].zones[*zone];
                    let low = at.wmark(Watermark::Low);
                    if zone_watermark_ok(at, order, low, 0, AllocFlags::at(Watermark::Low)) {
                        at.compaction.defer_reset(order, false);
                    }
                    *zone += 1;
                    *run = None;
                }
            }
        }
        while *zone < MAX_NR_ZONES {
            let at = &mut self.mem.nodes[node.idx()].zones[*zone];
            if at.is_populated() && !at.compaction.is_deferred(order) {
                let goal = Goal {
                    zone: ZoneRef { node, zone: *zone as u8 },
                    order: Some(order),
                    mt: MigrateType::Unmovable,
                    gfp: Gfp::KERNEL,
                    mode: CompactMode::Async,
                    flags: AllocFlags::at(Watermark::Low),
                    highest_zoneidx: highest_zoneidx.min(*zone),
                    by: Compactor::Kswapd,
                    thorough: false,
                };
                if let Ok(id) = self.compact_begin(goal, ctx) {
                    *run = Some(id);
                    return Step::Continue;
                }
            }
            *zone += 1;
        }
        self.nodes[node.idx()].kswapd.compacting = false;
        state.at = Place::End;
        Step::Continue
    }
}

impl Balance {
    /// The zone that kswapd sleeps by.
    pub(super) fn end_zoneidx(&self) -> usize {
        self.end_zone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CompactionPolicy, Config, KswapdPolicy};
    use crate::daemon::Daemon;
    use crate::gfp::Gfp;
    use crate::node::NodeSpec;
    use crate::process::Machine;
    use crate::process::MmId;
    use crate::reclaim::direct::DirectReclaim;
    use crate::units::{Cpu, MemcgId};

    const NODE: NodeId = NodeId(0);
    const CTX: Ctx = Ctx { cpu: Cpu(0), node: NODE, now: 0, asker: MmId::NONE, memcg: MemcgId(0) };

    fn machine(kswapd: KswapdPolicy, mib: u64) -> Machine {
        let config = Config {
            kswapd,
            compaction: CompactionPolicy::Linux45,
            background_compaction: BackgroundCompaction::Kcompactd,
            ..Config::default()
        };
        Machine::new(&[NodeSpec::x86_64(mib << 20, 0, 0)], 1, config).unwrap()
    }

    /// Takes single pages of one zone until it has none left.
    fn exhaust(machine: &mut Machine, gfp: Gfp, zone: usize) {
        let flags = AllocFlags::at(Watermark::None);
        while machine.mem.nodes[0].zones[zone].free_pages() > 0 {
            machine.mem.get_page_from_freelist(Cpu(0), NODE, 0, gfp, flags).unwrap();
        }
    }

    #[test]
    fn a_quarter_of_a_node_is_enough_for_blocks_and_all_of_it_is_wanted_for_pages() {
        // DMA has a quarter of 64 MiB less the little that boot keeps, and a sixteenth of 256.
        for (mib, enough) in [(56, true), (256, false)] {
            let mut machine = machine(KswapdPolicy::Linux45, mib);
            exhaust(&mut machine, Gfp::KERNEL.with(Gfp::DMA32), 1);
            // Without pages to reclaim a zone counts as balanced.
            machine.nodes[0].zone_lru[1][2] = 1000;
            machine.nodes[0].kswapd.pages_scanned = [0; MAX_NR_ZONES];
            assert!(!machine.pgdat_balanced_4_5(NODE, 0, 1), "{mib} MiB");
            let dma_only = machine.mem.nodes[0].zones[0].free_pages() > 1000;
            assert_eq!(machine.pgdat_balanced_4_5(NODE, 3, 1), enough && dma_only, "{mib} MiB");
            // Since 4.8 one zone is enough for either.
            machine.config.kswapd = KswapdPolicy::Linux61;
            assert_eq!(machine.pgdat_balanced(NODE, 0, 1), dma_only, "{mib} MiB");
        }
    }

    #[test]
    fn kswapd_descends_to_priority_1_and_a_task_to_0() {
        let mut machine = machine(KswapdPolicy::Linux61, 8);
        exhaust(&mut machine, Gfp::KERNEL, 0);
        machine.take_work();
        let mut reclaim = DirectReclaim::new(0, Gfp::KERNEL);
        while !matches!(machine.direct_reclaim_step(&mut reclaim, &CTX), Step::Done(_)) {}
        // The root's lists are visited once a round, of priorities 12 to 0.
        assert_eq!(machine.take_work().lruvecs_visited, 13);
        machine.wakeup_kswapd(NODE, 0, 2, true);
        machine.hand_out().discard();
        while machine.nodes[0].kswapd.failures == 0 {
            machine.step_daemon(Daemon::Kswapd(NODE), Cpu(0), 0).1.discard();
        }
        assert_eq!(machine.take_work().lruvecs_visited, 12);
    }
}
