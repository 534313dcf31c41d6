//! The walk over the groups of a node by the memcg LRU.
//!
//! Linux: `shrink_many`, `shrink_one` (mm/vmscan.c, 6.12; since 6.3). Global reclaim visits the
//! groups of the oldest generation, bin by bin from a random one, until it has enough. A group that
//! was aged, or is below `memory.min`, becomes young. A group that is too small, or below
//! `memory.low`, is visited once more before it becomes young; then `memory.low` does not protect
//! it. A group that has pages left stays. Protection is what was calculated last: by kswapd before
//! its round, or by reclaim for a group.
//!
//! Invariant: a visit leads to at most one rotation, after the next group was chosen.

use super::ShrinkNode;
use crate::ageing::generations::memcg_lru::{Rotation, Verdict};
use crate::groups::memcg::{MemoryEvent, ROOT};
use crate::interface::kernel::Kernel;
use crate::reclaim::plan::VisitedGroup;
use crate::reclaim::plugin::GroupPlan;
use crate::reclaim::ScanControl;
use crate::units::{MemcgId, NodeId};

impl Kernel {
    /// Whether a reclaimer walks over the groups by the memcg LRU.
    pub(in crate::reclaim) fn walks_memcg_lru(&self, sc: &ScanControl) -> bool {
        self.era.generations && sc.goal.is_global() && !self.groups.memcg_lru.is_empty()
    }

    /// Begins a walk. Returns its first group.
    pub(super) fn first_of_memcg_lru(&mut self, pass: &mut ShrinkNode) -> Option<MemcgId> {
        let (walk, first) = self.groups.memcg_lru[pass.node.idx()].begin_walk();
        pass.memcg_lru = Some(walk);
        first
    }

    /// Ends the visit of a group: rotates it, and returns the next one.
    pub(super) fn next_of_memcg_lru(
        &mut self,
        pass: &mut ShrinkNode,
        memcg: MemcgId,
        sc: &ScanControl,
    ) -> Option<MemcgId> {
        let mut walk = pass.memcg_lru?;
        let rotation = self.rotation_of(memcg, pass.node, walk.verdict, sc);
        let list = self.groups.memcg_lru.get_mut(pass.node.idx())?;
        let next = list.end_visit(&mut walk, memcg, rotation);
        walk.verdict = Verdict::Scanned;
        pass.memcg_lru = Some(walk);
        next
    }

    fn rotation_of(
        &self,
        memcg: MemcgId,
        node: NodeId,
        verdict: Verdict,
        sc: &ScanControl,
    ) -> Option<Rotation> {
        match verdict {
            Verdict::Skipped(rotation) => Some(rotation),
            Verdict::Aged => Some(Rotation::Young),
            Verdict::Scanned if self.is_sizable(memcg, node, sc.goal.priority) => None,
            Verdict::Scanned => Some(self.once_more(memcg, node)),
        }
    }

    /// A group that gave nothing is visited once more before it becomes young.
    fn once_more(&self, memcg: MemcgId, node: NodeId) -> Rotation {
        let list = self.groups.memcg_lru.get(node.idx());
        match list.and_then(|list| list.entry(memcg)).and_then(|at| at.segment) {
            Some(Rotation::Tail) => Rotation::Young,
            _ => Rotation::Tail,
        }
    }

    /// The plan for a group of the walk.
    pub(super) fn plan_of_listed(
        &mut self,
        visit: VisitedGroup,
        sc: &mut ScanControl,
    ) -> PlanOfListed {
        let (memcg, node) = (visit.memcg, visit.node);
        let counter = &self.groups.memcgs[memcg].memory;
        let is_within = |protected: u64| memcg != ROOT && counter.usage <= protected;
        let (is_below_min, is_below_low) = (is_within(counter.emin), is_within(counter.elow));
        if is_below_min {
            return Err(Rotation::Young);
        }
        let once_more = self.once_more(memcg, node);
        if is_below_low && once_more == Rotation::Tail {
            return Err(once_more);
        }
        let plan = self.plan_group(visit, sc);
        if plan.skip {
            return Err(once_more);
        }
        if is_below_low {
            self.groups.memory_event(memcg, MemoryEvent::Low);
        }
        Ok(plan)
    }
}

/// A plan, or where a group goes that is left out.
pub(super) type PlanOfListed = Result<GroupPlan, Rotation>;
