//! The groups to reclaim from, and the priority for each: one decision, made by plug-ins.
//!
//! Every walk over the groups of a node asks for a [`Plan`] for each group: skip the group, or scan it
//! at a priority with a part of it protected. Policies fill the plan in, one after the other, in the
//! order of the list at the end of this file; each is one file with one type that implements
//! [`GroupPolicy`]. After a walk the policies are asked whether another walk is needed.
//! docs/add-a-policy.md adds one, step by step.
//!
//! Linux has no such hook: its rules are in `shrink_node_memcgs` (mm/vmscan.c), or were patches to it.
//! Calls are static: a policy that is off costs a comparison.
//!
//! Invariant: the reclaimer's own priority (`sc.priority`) is never changed by a plan, so there is
//! nothing to restore at the end of a walk.

use super::graded::Graded;
use super::plan::{Plan, Visit, Walk};
use super::protection::Protection;
use super::shrink_priority::ShrinkPriority;
use super::soft_limit::SoftLimit;
use super::ScanControl;
use crate::manager::Manager;
use crate::memcg::ROOT;
use crate::owners::Owners;
use crate::units::DEF_PRIORITY;

/// A rule about who is reclaimed from.
pub(crate) trait GroupPolicy {
    /// Changes the plan for one group. Not called for a group that is skipped already.
    fn plan<O: Owners>(
        machine: &mut Manager<O>,
        visit: Visit,
        sc: &mut ScanControl,
        plan: &mut Plan,
    );

    /// Whether, after this walk, everybody is to be visited once more.
    fn another_walk<O: Owners>(_machine: &Manager<O>, _walk: Walk, _sc: &ScanControl) -> bool {
        false
    }
}

macro_rules! policies {
    ($($policy:ty),+ $(,)?) => {
        impl<O: Owners> Manager<O> {
            /// The plan for one group.
            #[inline]
            pub(crate) fn plan_group(&mut self, visit: Visit, sc: &mut ScanControl) -> Plan {
                let mut plan = Plan { skip: false, priority: sc.priority, protected: 0 };
                // A machine without groups, and without a priority of its own, has nothing to decide.
                let root = &self.memcgs[ROOT.idx()];
                if visit.memcg == ROOT
                    && root.first_child.is_none()
                    && root.shrink_priority == DEF_PRIORITY
                {
                    return plan;
                }
                // Groups below need what this one is granted, whether it is skipped or not. (The
                // posted patch gates before that, and leaves it stale.)
                if !self.era.gates_before_protection {
                    self.calculate_protection(sc.target.unwrap_or(ROOT), visit.memcg);
                }
                $(
                    <$policy>::plan(self, visit, sc, &mut plan);
                    if plan.skip {
                        return plan;
                    }
                )+
                plan
            }

            /// Whether another walk must follow.
            pub(crate) fn another_walk(&self, walk: Walk, sc: &ScanControl) -> bool {
                $(<$policy>::another_walk(self, walk, sc))||+
            }
        }
    };
}

// The order in which they are asked. The posted shrink priority comes first, before protection is
// even computed, as its patch had it.
policies!(ShrinkPriority, SoftLimit, Graded, Protection);
