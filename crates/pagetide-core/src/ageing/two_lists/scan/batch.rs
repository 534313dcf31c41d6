//! Planning a scan, and taking its batches.
//!
//! Linux: `shrink_lruvec`, `shrink_list` (mm/vmscan.c, 6.1).

use super::ListScan;
use crate::ageing::generations::scan::GenerationScan;
use crate::ageing::lruvec::Lru;
use crate::ageing::scan::{EvictionBatch, LruvecScan, ScanBatch};
use crate::ageing::two_lists::isolate::IsolatedBatch;
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::reclaim::plugin::GroupPlan;
use crate::reclaim::ScanControl;
use crate::units::{MemcgId, NodeId, DEF_PRIORITY, SWAP_CLUSTER_MAX};

impl Kernel {
    /// Plans the scan of one group's lists, to free `nr_to_reclaim` pages.
    pub(crate) fn plan_scan(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
        plan: GroupPlan,
        nr_to_reclaim: u64,
    ) -> LruvecScan {
        if self.era.generations {
            let is_empty = self.has_nothing_to_evict(memcg, node, plan.priority);
            return LruvecScan::Generations(GenerationScan::new(plan.priority, is_empty));
        }
        if self.has_page_policy() {
            let scan = self.plan_policy_scan(memcg, node, sc, plan, nr_to_reclaim);
            return LruvecScan::Policy(scan);
        }
        let nr = self.get_scan_count(memcg, node, sc, plan);
        let until_enough = self.era.scans_until_enough;
        let spares_none = until_enough || !sc.goal.is_kswapd() && sc.goal.target.is_none();
        LruvecScan::TwoLists(ListScan {
            nr,
            targets: nr,
            nr_reclaimed: 0,
            nr_to_reclaim,
            proportional: spares_none && plan.priority == DEF_PRIORITY,
            until_enough,
            at: 0,
            priority: plan.priority,
        })
    }
}

impl<O: Owners> Manager<O> {
    /// The next batch of a scan.
    pub(crate) fn next_batch(
        &mut self,
        scan: &mut LruvecScan,
        memcg: MemcgId,
        node: NodeId,
        sc: &mut ScanControl,
        ctx: &Ctx,
    ) -> ScanBatch {
        let scan = match scan {
            // The lists were switched during the scan.
            LruvecScan::TwoLists(_) if self.leaves_two_lists => return ScanBatch::Done,
            LruvecScan::TwoLists(scan) => scan,
            LruvecScan::Policy(scan) => {
                return self.next_batch_of_policy(scan, memcg, node, sc, ctx.cpu)
            }
            LruvecScan::Generations(scan) => {
                return self.next_batch_of_generations(scan, memcg, node, sc, ctx)
            }
        };
        let Some((lru, nr)) = scan.next() else {
            // Keep the anonymous lists in balance, even without inactive pages to scan.
            if self.must_age_anon(memcg, node, sc.rules.only_zone) {
                let nr = SWAP_CLUSTER_MAX;
                self.shrink_active_list(Lru::ActiveAnon, nr, memcg, node, sc, ctx);
            }
            return ScanBatch::Done;
        };
        if !lru.is_active() {
            self.lru_add_drain(ctx.cpu);
            let mut taken = core::mem::take(&mut self.step.scratch);
            let IsolatedBatch { nr_scanned, nr_taken } =
                self.isolate_lru_pages(lru, nr, memcg, node, sc, &mut taken);
            let file = lru.is_file();
            return ScanBatch::Evict(EvictionBatch { file, nr_scanned, nr_taken, taken });
        }
        let is_aged = if self.era.ages_by_own_lists {
            sc.may.force_ageing
                || self.is_to_be_aged(memcg, node, sc.rules.only_zone, lru.is_file())
        } else {
            sc.found.lists.may_deactivate[usize::from(lru.is_file())]
        };
        if is_aged {
            self.shrink_active_list(lru, nr, memcg, node, sc, ctx);
        } else {
            sc.found.skipped_ageing = true;
            self.mem.work.lists_spared += 1;
        }
        ScanBatch::Aged
    }
}
