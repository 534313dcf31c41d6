//! Group policies: which groups a walk reclaims from, and at which priority.
//!
//! A walk over the groups of a node asks for a *plan* for each group. The plan says whether to skip
//! the group, at which priority to scan it, and how much of it is protected. Rules that need the
//! manager ([`GroupRule`]) are part of the core. A rule that needs only facts about groups is a
//! [`GroupPolicy`](crate::reclaim::plugin::GroupPolicy) of another crate, a plug-in, and comes last. After a
//! walk the rules are asked whether another walk is needed. docs/add-a-policy.md adds a rule, step
//! by step. Calls of built-in rules are static: a rule that is off costs a comparison.
//!
//! Invariant: a plan never changes the reclaimer's own priority (`sc.goal.priority`), so the end of a
//! walk has nothing to restore.

use super::plan::{VisitedGroup, WalkResult};
use super::protection::Protection;
use super::shrink_priority::ShrinkPriority;
use super::soft_limit::SoftLimit;
use super::ScanControl;
use crate::groups::memcg::ROOT;
use crate::interface::kernel::Kernel;
use crate::reclaim::plugin::{
    GroupPlan, GroupViews, GroupVisit, GroupWalk, PolicyFault, PLAN_PRIORITIES, WALKS_MAX,
};
use crate::units::{NodeId, DEF_PRIORITY};

/// A rule that reads or writes the reclaimer's state.
pub(crate) trait GroupRule {
    /// Changes the plan for one group. Not called for a group that is skipped already.
    fn plan(kernel: &mut Kernel, visit: VisitedGroup, sc: &mut ScanControl, plan: &mut GroupPlan);
}

impl Kernel {
    pub(crate) fn another_walk(&mut self, ended: WalkResult, sc: &mut ScanControl) -> bool {
        if self.config.is_second_pass_due(ended, &mut sc.rules) {
            return true;
        }
        let Some(plugin) = self.plugin.policy.as_mut().filter(|_| !sc.may.overrule_plugins) else {
            return false;
        };
        let walk = GroupWalk {
            number: ended.number,
            scanned: ended.scanned,
            nr_to_reclaim: sc.goal.nr_to_reclaim,
            nr_reclaimed: sc.found.nr_reclaimed,
        };
        let again = plugin.policy.another_walk(&walk);
        if again && ended.number + 1 >= WALKS_MAX {
            self.plugin.note(PolicyFault::TooManyWalks);
            return false;
        }
        again
    }
}

impl Kernel {
    pub(crate) fn group_views(&self, node: NodeId) -> GroupViews<'_> {
        let Kernel { groups, mem, config, .. } = self;
        GroupViews { memcgs: &groups.memcgs, mem, config, node }
    }

    #[inline]
    pub(crate) fn plan_group(&mut self, at: VisitedGroup, sc: &mut ScanControl) -> GroupPlan {
        let mut plan = GroupPlan { skip: false, priority: sc.goal.priority, protected: 0 };
        // Without groups, and without a shrink priority of the root, there is nothing to decide.
        let root = &self.groups.memcgs[ROOT];
        if at.memcg == ROOT && root.first_child.is_none() && root.shrink_priority == DEF_PRIORITY {
            return plan;
        }
        // Children need this group's protection even if this group is skipped. (The posted patch
        // skips the group before that, and leaves the values stale.)
        if !self.era.gates_before_protection && !self.walks_memcg_lru(sc) {
            self.calculate_protection(sc.goal.target.unwrap_or(ROOT), at.memcg);
        }
        // The shrink priority comes first, as in its patch.
        ShrinkPriority::plan(self, at, sc, &mut plan);
        if plan.skip {
            return plan;
        }
        SoftLimit::plan(self, at, sc, &mut plan);
        if plan.skip {
            return plan;
        }
        // On the memcg LRU protection also decides where the group goes.
        if !self.walks_memcg_lru(sc) {
            Protection::plan(self, at, sc, &mut plan);
        }
        if self.plugin.policy.is_some() && !plan.skip {
            self.ask_group_plugin(at, sc, &mut plan);
        }
        plan
    }

    /// Asks the plug-in to change a plan, and corrects impossible values.
    #[cold]
    #[inline(never)]
    fn ask_group_plugin(&mut self, at: VisitedGroup, sc: &mut ScanControl, plan: &mut GroupPlan) {
        if sc.may.overrule_plugins {
            return;
        }
        let Kernel { groups, mem, config, plugin, .. } = self;
        let Some(plugin) = &mut plugin.policy else { return };
        let before = *plan;
        let groups = GroupViews { memcgs: &groups.memcgs, mem, config, node: at.node };
        let visit = GroupVisit {
            group: groups.view(at.memcg),
            target: groups.view(sc.goal.target.unwrap_or(ROOT)),
            is_for_limit: sc.goal.is_for_group(),
            reclaimer: sc.goal.reclaimer,
            priority: sc.goal.priority,
            walk: at.walk,
            nr_to_reclaim: sc.goal.nr_to_reclaim,
            nr_reclaimed: sc.found.nr_reclaimed,
        };
        plugin.policy.plan(&visit, plan);
        let usage = visit.group.usage();
        if !PLAN_PRIORITIES.contains(&plan.priority) {
            plan.priority = plan.priority.clamp(*PLAN_PRIORITIES.start(), *PLAN_PRIORITIES.end());
            self.plugin.note(PolicyFault::PriorityOutOfRange);
        }
        let most = if at.memcg == ROOT { before.protected } else { usage.max(before.protected) };
        if plan.protected > most {
            plan.protected = most;
            self.plugin.note(PolicyFault::ProtectsTooMuch);
        }
        if plan.protected < before.protected {
            plan.protected = before.protected;
            self.plugin.note(PolicyFault::ProtectsTooLittle);
        }
        let gentler = plan.priority > before.priority || plan.protected > before.protected;
        sc.found.plugin_spared |= plan.skip || gentler;
    }
}
