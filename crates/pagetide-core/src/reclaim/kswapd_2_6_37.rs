//! kswapd of Linux 2.6.37: the parts that differ from 6.1.
//!
//! Linux: `sleeping_prematurely`, the end of a round of `balance_pgdat` (mm/vmscan.c). Every zone
//! must reach its high watermark. A descent restarts at priority 12 as soon as it has freed 32
//! pages; below priority 10 each round ends with a nap for congested disks.
//!
//! Differs from Linux: LRU lists belong to nodes (as since 4.8), so a round is one pass over the
//! node.
//!
//! Invariant: these functions run only if the [era](crate::config::era) chooses this algorithm.

use crate::frames::gfp::Watermark;
use crate::interface::ctx::Ctx;
use crate::interface::effect::Sleep;
use crate::interface::kernel::Kernel;
use crate::interface::throttle::Throttle;
use crate::reclaim::plugin::PolicyFault;
use crate::units::{NodeId, Order, DEF_PRIORITY, SWAP_CLUSTER_MAX};

impl Kernel {
    /// Whether every zone up to `highest_zoneidx` is above its high watermark. Each zone is checked
    /// as for a request limited to zone DMA, so pages that a zone keeps free from requests for
    /// higher zones count as free. Zones with nothing to reclaim are skipped (`all_unreclaimable`).
    pub(super) fn pgdat_balanced_2_6_37(
        &self,
        node: NodeId,
        order: Order,
        highest_zoneidx: usize,
    ) -> bool {
        self.mem.nodes[node].zones[..=highest_zoneidx]
            .iter()
            .filter(|zone| zone.is_populated())
            .all(|zone| {
                self.config.has_high_mark(zone, order, 0)
                    || self.zone_reclaimable_pages(node, zone.index) == 0
            })
    }

    /// After a node pass: whether to continue, and a wait.
    pub(super) fn kswapd_round_end_2_6_37(&mut self, ctx: &Ctx) -> (bool, Option<Sleep>) {
        let node = ctx.node;
        // If a zone is below its min watermark, there is no time to wait.
        let under_min = self.mem.nodes[node]
            .zones
            .iter()
            .any(|zone| zone.is_populated() && zone.free_pages() <= zone.wmark(Watermark::Min));
        let kswapd = &mut self.mem.pgdat[node].kswapd;
        let sc = &mut kswapd.sc;
        let waits = sc.found.nr_scanned > 0 && sc.goal.priority < DEF_PRIORITY - 2 && !under_min;
        let wait = waits.then_some(Sleep::throttled(node, Throttle::CongestionWait, 100_000_000));
        let reclaimed = sc.found.nr_reclaimed - kswapd.of_2_6_37.reclaimed_before;
        if reclaimed < SWAP_CLUSTER_MAX {
            sc.goal.priority -= 1;
            if sc.goal.priority >= 0 {
                return (true, wait);
            }
            if reclaimed == 0 && sc.stop_sparing_groups() {
                return (true, wait);
            }
            if reclaimed == 0 && sc.overrule_plugins() {
                self.plugin.note(PolicyFault::Overruled);
                return (true, wait);
            }
            if reclaimed == 0 {
                kswapd.failures += 1;
                return (false, wait);
            }
        }
        sc.goal.priority = DEF_PRIORITY;
        kswapd.of_2_6_37.reclaimed_before = sc.found.nr_reclaimed;
        (true, wait)
    }
}
