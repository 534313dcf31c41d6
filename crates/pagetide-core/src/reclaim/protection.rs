//! `memory.min` and `memory.low`: memory protected from reclaim.
//!
//! Linux: `mem_cgroup_calculate_protection`, `shrink_node_memcgs`, `get_scan_count` (6.1). Reclaim
//! never takes pages from a group that uses no more than its effective `min`. It skips a group
//! within its effective `low` until a whole descent (all priorities) has freed nothing. If a group
//! uses more, only the unprotected part counts for the scan, so the pressure grows gradually.
//! Effective values depend on the parent's, so the walk computes them on its way down.
//!
//! Invariant: a group is not protected from reclaim for its own limit.

use super::group_policy::GroupRule;
use super::plan::VisitedGroup;
use super::ScanControl;
use crate::config::MemoryProtection;
use crate::groups::memcg::{MemoryEvent, ROOT};
use crate::groups::page_counter::{effective_protection, recursive_protection};
use crate::interface::kernel::Kernel;
use crate::reclaim::plugin::GroupPlan;
use crate::units::MemcgId;

pub(crate) struct Protection;

impl GroupRule for Protection {
    fn plan(kernel: &mut Kernel, visit: VisitedGroup, sc: &mut ScanControl, plan: &mut GroupPlan) {
        let target = sc.goal.target.unwrap_or(ROOT);
        if visit.memcg == target {
            return;
        }
        if kernel.era.gates_before_protection {
            kernel.calculate_protection(target, visit.memcg);
        }
        let counter = &kernel.groups.memcgs[visit.memcg].memory;
        let (usage, min, low) = (counter.usage, counter.emin, counter.elow);
        if min == 0 && low == 0 {
            return;
        }
        if usage <= min {
            plan.skip = true;
            return;
        }
        if usage <= low {
            if !sc.may.memcg_low {
                sc.found.memcg_low_skipped = true;
                plan.skip = true;
                return;
            }
            kernel.groups.memory_event(visit.memcg, MemoryEvent::Low);
        }
        plan.protected = if !sc.may.memcg_low && low > min {
            // If this descent frees nothing, a later one ignores `low`.
            sc.found.memcg_low_skipped = true;
            low
        } else {
            min
        };
    }
}

impl Kernel {
    /// Effective protection of a group under reclaim of `root` (Linux
    /// `mem_cgroup_calculate_protection`).
    pub(crate) fn calculate_protection(&mut self, root: MemcgId, memcg: MemcgId) {
        if memcg == root {
            return;
        }
        let group = &self.groups.memcgs[memcg];
        let usage = group.memory.usage;
        if usage == 0 {
            return;
        }
        let (min, low) = (group.memory.min, group.memory.low);
        let parent = &self.groups.memcgs[group.parent].memory;
        let is_below_protected = [parent.min, parent.low, parent.emin, parent.elow] != [0; 4];
        let (emin, elow) = if group.parent == root {
            (min, low)
        } else {
            let granted = |setting, effective, claimed| match self.config.memory_protection {
                MemoryProtection::OwnOnly => {
                    effective_protection(usage, setting, effective, claimed)
                }
                MemoryProtection::Recursive => {
                    recursive_protection(usage, setting, effective, claimed, parent.usage)
                }
            };
            (
                granted(min, parent.emin, parent.children_min_usage),
                granted(low, parent.elow, parent.children_low_usage),
            )
        };
        let counter = &mut self.groups.memcgs[memcg].memory;
        let was_protected = [counter.emin, counter.elow] != [0; 2];
        counter.emin = emin;
        counter.elow = elow;
        if was_protected && [min, low, emin, elow] == [0; 4] && !is_below_protected {
            // The walk order was built while this group was protected, and treats it as special.
            self.groups.idle_groups.forget();
        }
    }
}
