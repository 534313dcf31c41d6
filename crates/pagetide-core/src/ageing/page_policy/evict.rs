//! Reclaim under a page policy: scans, batches, ageing and uses.
//!
//! Linux has no such hook. A scan looks at `size >> priority` pages of a group, as under the two
//! lists; protected memory counts less. Invariant: [`PolicyScan`] holds the whole state between two
//! batches.

use super::lists::{MayTake, PolicyTask, PolicyVisit};
use super::scan::PolicyScan;
use super::tables::TablesOf;
use crate::ageing::lruvec::Lru;
use crate::ageing::scan::{EvictionBatch, ScanBatch};
use crate::ageing::Ageing;
use crate::frames::page::{PageFlags, Place};
use crate::groups::memcg::ROOT;
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::reclaim::plugin::GroupPlan;
use crate::reclaim::ScanControl;
use crate::units::{Cpu, MemcgId, NodeId, Pfn};

impl Kernel {
    /// Plans a scan of one group.
    pub(in crate::ageing) fn plan_policy_scan(
        &self,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
        plan: GroupPlan,
        nr_to_reclaim: u64,
    ) -> PolicyScan {
        let sizes = self.groups.memcgs[memcg].lruvecs[node].sizes();
        let can_swap = sc.may.swap && self.memcg_swap_left(memcg) > 0;
        let size = sizes.file() + if can_swap { sizes.anon() } else { 0 };
        let usage = self.groups.memcgs[memcg].memory.usage.max(plan.protected);
        let unprotected = match plan.protected {
            0 => size,
            protected => size - size * protected / (usage + 1),
        };
        PolicyScan {
            nr_reclaimed: 0,
            priority: plan.priority,
            left: unprotected >> plan.priority.max(0),
            nr_to_reclaim,
            has_begun: false,
        }
    }
}

impl<O: Owners> Manager<O> {
    /// The next batch of a scan.
    pub(in crate::ageing) fn next_batch_of_policy(
        &mut self,
        scan: &mut PolicyScan,
        memcg: MemcgId,
        node: NodeId,
        sc: &mut ScanControl,
        cpu: Cpu,
    ) -> ScanBatch {
        if !core::mem::replace(&mut scan.has_begun, true) {
            self.lru_add_drain(cpu);
        }
        let has_enough = !sc.goal.is_kswapd() && scan.nr_reclaimed >= scan.nr_to_reclaim;
        if scan.left == 0 || has_enough {
            return ScanBatch::Done;
        }
        let may_take = MayTake {
            anon: sc.may.swap && self.memcg_swap_left(memcg) > 0,
            mapped: sc.may.unmap,
            highest_zone: sc.goal.reclaim_idx,
        };
        let task = match sc.may.overrule_plugins {
            true => PolicyTask::Overrule,
            false => PolicyTask::Evict,
        };
        let Some(visit) = self.visit_policy(memcg, node, Some(may_take), task) else {
            return ScanBatch::Done;
        };
        scan.left = scan.left.saturating_sub(u64::from(visit.nr_looks).max(visit.nr_taken));
        let PolicyVisit { taken, nr_taken, nr_looks, .. } = visit;
        self.mem.work.pages_scanned += taken.len() as u32;
        let Some(&first) = taken.first() else {
            self.step.scratch = taken;
            // Nothing can be taken although pages are left: the policy protects them.
            sc.found.plugin_spared = true;
            return if nr_looks == 0 { ScanBatch::Done } else { ScanBatch::Aged };
        };
        let file = self.mem.pages[first].is_file_lru();
        ScanBatch::Evict(EvictionBatch { file, nr_scanned: nr_taken, nr_taken, taken })
    }

    /// Asks the policy of a group, and counts what it has moved and taken.
    fn visit_policy(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        may_take: Option<MayTake>,
        task: PolicyTask,
    ) -> Option<PolicyVisit> {
        let can_swap = self.memcg_swap_left(memcg) > 0;
        let Manager { kernel, owners } = self;
        let Kernel { groups, mem, step, era, .. } = kernel;
        let Ageing::Policy(lists) = &mut groups.memcgs[memcg].lruvecs[node].ageing else {
            return None;
        };
        let scratch = core::mem::take(&mut step.scratch);
        let mut tables = TablesOf {
            owners,
            memcg,
            node,
            can_swap,
            forgets_random: era.forgets_random,
            table_len: mem.page_size.ptrs_per_pte(),
            work: &mut mem.work,
        };
        let lruvec = (memcg, node);
        let visit = lists.visit(&mut mem.pages, lruvec, &mut tables, scratch, may_take, task);
        mem.work.lru_moves += visit.nr_looks - visit.taken.len() as u32;
        for (zone, changes) in visit.changes.iter().enumerate() {
            for (lru, &change) in Lru::EVICTABLE.into_iter().zip(changes) {
                if change != 0 {
                    self.count_pages(memcg, (node, zone), lru, change);
                }
            }
        }
        Some(visit)
    }

    /// Lets the policies of all groups age a node, in the background of kswapd.
    pub(in crate::ageing) fn age_by_policy(&mut self, ctx: &Ctx) {
        let mut next = Some(ROOT);
        while let Some(memcg) = next {
            next = self.groups.next_memcg(ROOT, memcg);
            if let Some(visit) = self.visit_policy(memcg, ctx.node, None, PolicyTask::Age) {
                self.step.scratch = visit.taken;
            }
        }
    }
}

impl Kernel {
    /// Counts a use by read() or write(). The first one marks the page, as under the two lists.
    pub(in crate::ageing) fn note_use_by_policy(&mut self, cpu: Cpu, pfn: Pfn) {
        if !self.mem.pages[pfn].has(PageFlags::REFERENCED) {
            return self.mem.pages[pfn].set(PageFlags::REFERENCED);
        }
        if self.mem.pages[pfn].place == Place::LruBatch {
            self.lru_add_drain(cpu);
        }
        let page = &self.mem.pages[pfn];
        if page.place != Place::Lru {
            return;
        }
        let (memcg, node, zone, nr) = (page.memcg, page.node(), page.zone(), page.nr_pages());
        let before = Lru::of(page);
        let Kernel { groups, mem, .. } = self;
        if let Ageing::Policy(lists) = &mut groups.memcgs[memcg].lruvecs[node].ageing {
            lists.used(&mut mem.pages, pfn);
        }
        let after = Lru::of(&self.mem.pages[pfn]);
        if before != after {
            self.count_pages(memcg, (node, zone), before, -(nr as i64));
            self.count_pages(memcg, (node, zone), after, nr as i64);
        }
        self.mem.work.lru_moves += 1;
    }

    /// Tells the policy of a page that the page was evicted.
    #[inline(never)]
    pub(in crate::ageing) fn note_eviction_by_policy(&mut self, pfn: Pfn) {
        let page = &self.mem.pages[pfn];
        let (memcg, node) = (page.memcg, page.node());
        let Kernel { groups, mem, .. } = self;
        if let Ageing::Policy(lists) = &mut groups.memcgs[memcg].lruvecs[node].ageing {
            lists.evicted(&mut mem.pages, pfn);
        }
    }
}
