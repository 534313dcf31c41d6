//! The walk over the groups of a node by the memcg LRU.
//!
//! Linux: `shrink_many`, `shrink_one` (mm/vmscan.c, 6.12; since 6.3). Global reclaim visits the
//! groups of the oldest generation, bin by bin from a random one, until it has enough. A group that
//! was aged, or is below `memory.min`, becomes young. A group that is too small, or below
//! `memory.low`, is visited once more before it becomes young; then `memory.low` does not protect
//! it. A group that has pages left stays.
//!
//! Invariant: a visit leads to at most one rotation, after the next group was chosen.

use super::ShrinkNode;
use crate::ageing::generations::memcg_lru::{Rotation, MEMCG_NR_BINS};
use crate::groups::memcg::{MemoryEvent, ROOT};
use crate::interface::kernel::Kernel;
use crate::reclaim::plan::VisitedGroup;
use crate::reclaim::plugin::GroupPlan;
use crate::reclaim::ScanControl;
use crate::units::digest::State;
use crate::units::{MemcgId, NodeId};

/// Position of a walk over one generation of groups.
#[derive(Clone, Copy, Debug, State)]
pub(super) struct MemcgLruWalk {
    generation: u8,
    first_bin: u8,
    bin: u8,
    pub(super) verdict: Verdict,
}

/// What came of the visit of a group.
#[derive(Clone, Copy, Debug, State)]
pub(super) enum Verdict {
    /// The plan leaves the group out.
    Skipped(Rotation),
    /// It was scanned, and has no old pages left.
    Aged,
    /// It was scanned.
    Scanned,
}

impl Kernel {
    /// Whether a reclaimer walks over the groups by the memcg LRU.
    pub(super) fn walks_memcg_lru(&self, sc: &ScanControl) -> bool {
        self.era.generations && sc.goal.is_global() && !self.groups.memcg_lru.is_empty()
    }

    /// Begins a walk. Returns its first group.
    pub(super) fn first_of_memcg_lru(&mut self, pass: &mut ShrinkNode) -> Option<MemcgId> {
        let list = &mut self.groups.memcg_lru[pass.node.idx()];
        let bin = list.draw_bin();
        let generation = list.oldest();
        let verdict = Verdict::Scanned;
        let mut walk = MemcgLruWalk { generation, first_bin: bin, bin, verdict };
        let first = match list.first_of(generation, bin) {
            None => self.first_of_next_bins(pass.node, &mut walk),
            first => first,
        };
        pass.memcg_lru = Some(walk);
        first
    }

    fn first_of_next_bins(&self, node: NodeId, walk: &mut MemcgLruWalk) -> Option<MemcgId> {
        let list = &self.groups.memcg_lru[node.idx()];
        loop {
            walk.bin = (walk.bin + 1) % MEMCG_NR_BINS;
            if walk.bin == walk.first_bin {
                return None;
            }
            if let Some(first) = list.first_of(walk.generation, walk.bin) {
                return Some(first);
            }
        }
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
        let (at, next) = (list.entry(memcg), list.after(memcg));
        if let Some(rotation) = rotation {
            list.rotate(memcg, rotation);
        }
        // Another reclaimer may have moved the group to another generation: the bin begins again.
        let has_left = at.is_none_or(|at| at.generation != walk.generation);
        let next = if has_left { list.first_of(walk.generation, walk.bin) } else { next };
        let next = next.or_else(|| self.first_of_next_bins(pass.node, &mut walk));
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
        let list = &self.groups.memcg_lru[node.idx()];
        match list.entry(memcg).and_then(|at| at.segment) {
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
        self.calculate_protection(ROOT, memcg);
        let counter = &self.groups.memcgs[memcg].memory;
        let is_within = |protected: u64| protected > 0 && counter.usage <= protected;
        if is_within(counter.emin) {
            return Err(Rotation::Young);
        }
        if is_within(counter.elow) {
            match self.once_more(memcg, node) {
                Rotation::Tail => return Err(Rotation::Tail),
                _ => self.groups.memory_event(memcg, MemoryEvent::Low),
            }
        }
        let plan = self.plan_group(visit, sc);
        match plan.skip {
            true => Err(self.once_more(memcg, node)),
            false => Ok(plan),
        }
    }
}

/// A plan, or where a group goes that is left out.
pub(super) type PlanOfListed = Result<GroupPlan, Rotation>;
