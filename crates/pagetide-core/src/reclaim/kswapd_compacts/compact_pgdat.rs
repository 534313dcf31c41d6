//! For a kswapd that compacts: the goal of a round, and the runs over the node's zones.
//!
//! Linux: `compact_pgdat` (mm/compaction.c, until 4.5).

use super::{balance_gap, CompactZones};
use crate::compaction::{CompactGoal, CompactMode, CompactResult, Compactor};
use crate::frames::gfp::{AllocFlags, Gfp, MigrateType, Watermark};
use crate::frames::node::ZoneRef;
use crate::frames::page_alloc::Memory;
use crate::frames::watermark::{zone_watermark_ok, zone_watermark_ok_free};
use crate::frames::zone::Zone;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::interface::ctx::Ctx;
use crate::interface::effect::Step;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::stats::vmstat::Event;
use crate::units::{NodeId, Order, SWAP_CLUSTER_MAX};

impl Memory {
    /// Whether some zone up to `end` has a block of `order` and is above its low watermark.
    pub(in crate::reclaim) fn node_has_block(
        &self,
        node: NodeId,
        order: Order,
        end: usize,
        classzone: usize,
    ) -> bool {
        let flags = AllocFlags::at(Watermark::Low);
        self.nodes[node].zones[..=end].iter().filter(|zone| zone.is_populated()).any(|zone| {
            zone_watermark_ok(zone, order, zone.wmark(Watermark::Low), classzone, flags)
        })
    }

    pub(in crate::reclaim) fn kswapd_begins_to_compact(
        &mut self,
        node: NodeId,
        order: Order,
    ) -> CompactZones {
        self.vmstat.count(Event::CompactKswapd);
        self.pgdat[node].kswapd.by_zone.compacting = true;
        CompactZones { order, zone: 0, run: None }
    }
}

impl Kernel {
    /// Whether the node's kswapd is compacting.
    pub fn kswapd_is_compacting(&self, node: NodeId) -> bool {
        self.mem.pgdat.get(node.idx()).is_some_and(|node| node.kswapd.by_zone.compacting)
    }

    /// Whether the zone has a block of `order`, or compaction could make one.
    pub(in crate::reclaim) fn is_compactable(
        &self,
        zone: &Zone,
        order: Order,
        classzone: usize,
    ) -> bool {
        let flags = AllocFlags::at(Watermark::Low);
        crate::compaction::suitable::compaction_suitable(
            zone,
            &self.config,
            &self.era,
            order,
            flags,
            classzone,
        ) != CompactResult::Skipped
    }

    /// Sets the goal of a round of 6.1's kswapd when it compacts: to reclaim from the zones with
    /// too few pages for compaction. `false`: there is no such zone, so the round has nothing to
    /// reclaim.
    pub(in crate::reclaim) fn aim_at_zones_without_pages(&mut self, node: NodeId) -> bool {
        let kswapd = &self.mem.pgdat[node].kswapd;
        let (order, zoneidx) = (kswapd.sc.goal.order, kswapd.zoneidx);
        let (mut reclaim_idx, mut nr_to_reclaim) = (zoneidx, 0);
        for (index, zone) in self.mem.nodes[node].zones[..=zoneidx].iter().enumerate() {
            if zone.is_populated() && !self.awaits_compaction(zone, order, zoneidx) {
                reclaim_idx = index;
                nr_to_reclaim += zone.wmark(Watermark::High).max(SWAP_CLUSTER_MAX);
            }
        }
        let sc = &mut self.mem.pgdat[node].kswapd.sc;
        sc.goal.reclaim_idx = reclaim_idx;
        sc.goal.nr_to_reclaim = nr_to_reclaim;
        nr_to_reclaim > 0
    }

    /// Whether kswapd leaves a zone alone because compaction can do the rest.
    fn awaits_compaction(&self, zone: &Zone, order: Order, classzone: usize) -> bool {
        let order = if self.is_compactable(zone, order, classzone) { 0 } else { order };
        let mark = zone.wmark(Watermark::High) + balance_gap(zone);
        let flags = AllocFlags::at(Watermark::High);
        let free = zone.stat.safe(zone.free_pages());
        zone_watermark_ok_free(zone, order, mark, classzone, flags, free)
    }
}

impl<O: Owners> Manager<O> {
    /// Compacts the node's zones, asynchronously (Linux `compact_pgdat`). One bounded step.
    pub(in crate::reclaim) fn kswapd_compact_step(
        &mut self,
        at: &mut CompactZones,
        ctx: &Ctx,
    ) -> Step<()> {
        let node = ctx.node;
        let CompactZones { order, zone, run } = at;
        let order = *order;
        // 4.5 checks the low watermark as for a request that may use only the lowest zone.
        let by_zone = self.era.lists_by_zone;
        if let Some(id) = *run {
            match self.compact_step(id, ctx) {
                Step::Continue => return Step::Continue,
                Step::Wait(wait) => return Step::Wait(wait),
                Step::Done(_) => {
                    let of = &mut self.mem.nodes[node].zones[*zone];
                    let low = of.wmark(Watermark::Low);
                    let classzone = if by_zone { 0 } else { *zone };
                    let flags = AllocFlags::at(Watermark::Low);
                    if zone_watermark_ok(of, order, low, classzone, flags) {
                        of.compaction.defer_reset(order, false);
                    }
                    *zone += 1;
                    *run = None;
                }
            }
        }
        while *zone < MAX_NR_ZONES {
            let of = &mut self.mem.nodes[node].zones[*zone];
            if of.is_populated() && !of.compaction.is_deferred(order) {
                let goal = CompactGoal {
                    zone: ZoneRef { node, zone: *zone as u8 },
                    order: Some(order),
                    mt: MigrateType::Unmovable,
                    gfp: Gfp::KERNEL,
                    mode: CompactMode::Async,
                    flags: AllocFlags::at(Watermark::Low),
                    highest_zoneidx: *zone,
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
        self.mem.pgdat[node].kswapd.by_zone.compacting = false;
        Step::Done(())
    }
}
