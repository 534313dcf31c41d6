//! `memory.min` and `memory.low`: what reclaim leaves alone.
//!
//! Linux: `mem_cgroup_calculate_protection`, `shrink_node_memcgs`, `get_scan_count` (6.1). A group
//! that uses no more than its effective `min` is never reclaimed from; one within its effective `low` is
//! passed over until a whole descent has freed nothing. Above that, only the part of its pages
//! that is not protected feels pressure, so protection fades in instead of being a cliff. Effective
//! values come from the parent's, so they are computed as the walk goes down.
//!
//! Invariant: the group that reclaim is about is not protected from itself.

use super::group_policy::GroupRule;
use super::plan::GroupAt;
use super::ScanControl;
use crate::manager::Manager;
use crate::memcg::{MemoryEvent, ROOT};
use crate::owners::Owners;
use crate::page_counter::effective_protection;
use crate::plugin::Plan;
use crate::units::MemcgId;

/// The policy.
pub(crate) struct Protection;

impl GroupRule for Protection {
    fn plan<O: Owners>(
        machine: &mut Manager<O>,
        visit: GroupAt,
        sc: &mut ScanControl,
        plan: &mut Plan,
    ) {
        let target = sc.target.unwrap_or(ROOT);
        if visit.memcg == target {
            return;
        }
        if machine.era.gates_before_protection {
            machine.calculate_protection(target, visit.memcg);
        }
        let counter = &machine.memcgs[visit.memcg.idx()].memory;
        let (usage, min, low) = (counter.usage, counter.emin, counter.elow);
        if min == 0 && low == 0 {
            return;
        }
        if usage <= min {
            plan.skip = true;
            return;
        }
        if usage <= low {
            if !sc.memcg_low_reclaim {
                sc.memcg_low_skipped = true;
                plan.skip = true;
                return;
            }
            machine.memory_event(visit.memcg, MemoryEvent::Low);
        }
        plan.protected = if !sc.memcg_low_reclaim && low > min {
            // Should nothing else be left, `low` will have to give.
            sc.memcg_low_skipped = true;
            low
        } else {
            min
        };
    }
}

impl<O: Owners> Manager<O> {
    /// Effective protection of a group under reclaim of `root` (Linux
    /// `mem_cgroup_calculate_protection`).
    pub(super) fn calculate_protection(&mut self, root: MemcgId, memcg: MemcgId) {
        if memcg == root {
            return;
        }
        let group = &self.memcgs[memcg.idx()];
        let usage = group.memory.usage;
        if usage == 0 {
            return;
        }
        let (min, low) = (group.memory.min, group.memory.low);
        let (emin, elow) = if group.parent == root {
            (min, low)
        } else {
            let parent = &self.memcgs[group.parent.idx()].memory;
            (
                effective_protection(usage, min, parent.emin, parent.children_min_usage),
                effective_protection(usage, low, parent.elow, parent.children_low_usage),
            )
        };
        let counter = &mut self.memcgs[memcg.idx()].memory;
        counter.emin = emin;
        counter.elow = elow;
    }
}
