//! `memory.global_shrink_priority`: global reclaim scans some groups later and less than others.
//!
//! Hui Zhu's patch of 18 December 2019 (never merged). A group with value g is skipped by global
//! reclaim at priorities above g. At priority g and below it is scanned as if the priority were
//! higher by 12 - g. Reclaim for a group's own limit ignores the value. There are three forms
//! ([`ShrinkPriorityPolicy`]). *posted* is the patch. *guarded* adds a guarantee of progress, which
//! the patch lacks: if a whole descent (all priorities) has freed nothing and a group was skipped,
//! no group is skipped until the reclaimer is done. *hierarchical* is guarded, and the value of a
//! group is at most the least value of its ancestors.
//!
//! Invariant: except with *posted*, memory is not declared exhausted while a group was skipped.

use super::group_policy::GroupRule;
use super::plan::VisitedGroup;
use super::ScanControl;
use crate::config::ShrinkPriorityPolicy;
use crate::interface::kernel::Kernel;
use crate::reclaim::plugin::GroupPlan;
use crate::units::{MemcgId, DEF_PRIORITY};

pub(crate) struct ShrinkPriority;

impl GroupRule for ShrinkPriority {
    fn plan(kernel: &mut Kernel, visit: VisitedGroup, sc: &mut ScanControl, plan: &mut GroupPlan) {
        if !sc.goal.is_global() || sc.rules.ignore_shrink_priority {
            return;
        }
        let value = kernel.shrink_priority(visit.memcg);
        if value == DEF_PRIORITY {
            return;
        }
        if kernel.config.shrink_priority != ShrinkPriorityPolicy::Posted {
            sc.rules.shrink_priority_spared = true;
        }
        if value < sc.goal.priority {
            plan.skip = true;
        } else {
            plan.priority = sc.goal.priority + (DEF_PRIORITY - value);
        }
    }
}

impl Kernel {
    /// The priority at which the cached objects of a group are shrunk, if the group is not skipped.
    /// The patch changes it together with the lists' priority. Soft limits change only the lists'
    /// priority.
    pub(crate) fn slab_priority(&self, memcg: MemcgId, sc: &ScanControl) -> i8 {
        if !sc.goal.is_global() || sc.rules.ignore_shrink_priority {
            return sc.goal.priority;
        }
        sc.goal.priority + (DEF_PRIORITY - self.shrink_priority(memcg))
    }

    /// The effective value of a group.
    pub(crate) fn shrink_priority(&self, memcg: MemcgId) -> i8 {
        let own = self.groups.memcgs[memcg].shrink_priority;
        match self.config.shrink_priority {
            ShrinkPriorityPolicy::Off => DEF_PRIORITY,
            ShrinkPriorityPolicy::Posted | ShrinkPriorityPolicy::Guarded => own,
            ShrinkPriorityPolicy::Hierarchical => {
                let mut least = own;
                let mut at = self.groups.memcgs[memcg].parent;
                while at.is_some() {
                    least = least.min(self.groups.memcgs[at].shrink_priority);
                    at = self.groups.memcgs[at].parent;
                }
                least
            }
        }
    }
}
