//! Soft limits within the one walk over the groups.
//!
//! Two policies ([`SoftLimitPolicy`]). *Hierarchical* is Johannes Weiner's patch of 10 January
//! 2012: a group is scanned at priority 0 if it or an ancestor is over its soft limit, otherwise at
//! the walk's priority. *Two-pass* is Michal Hocko's rework of 2013: the first walk visits only
//! groups over their limit; if it scanned no page, a second walk visits all groups. Pagetide adds a
//! rule to two-pass: if all priorities have freed nothing and groups were skipped, reclaim starts
//! again without the first walk. (The older *tree* is a separate stage before the walk:
//! [`super::soft_limit_tree`].)
//!
//! Options cover the questions of reviewers: whether the group that hit its limit counts as an
//! ancestor (`soft_limit_root`), whether soft limits may delay direct reclaim
//! (`soft_limit_direct`), and the meaning of the limit on one of several nodes (`soft_limit_node`).
//!
//! Invariant: a group is treated differently only if the group or an ancestor has a soft limit.
//! Memory is not declared exhausted while a group was skipped.

use super::group_policy::GroupRule;
use super::plan::{VisitedGroup, WalkResult};
use super::{OtherRules, ReclaimGoal, ScanControl};
use crate::config::Config;
use crate::config::{SoftLimitDirect, SoftLimitPolicy, SoftLimitRoot};
use crate::groups::memcg::ROOT;
use crate::interface::kernel::Kernel;
use crate::reclaim::plugin::GroupPlan;
use crate::units::{MemcgId, NodeId};

pub(crate) struct SoftLimit;

impl GroupRule for SoftLimit {
    fn plan(kernel: &mut Kernel, visit: VisitedGroup, sc: &mut ScanControl, plan: &mut GroupPlan) {
        match kernel.config.soft_limit {
            SoftLimitPolicy::Off | SoftLimitPolicy::Tree => {}
            SoftLimitPolicy::Hierarchical => {
                if let Some(priority) = kernel.config.soft_limit_priority(&sc.goal) {
                    let root = kernel.config.soft_limit_root;
                    if kernel.is_over_soft_limit(visit.memcg, visit.node, &sc.goal, root) {
                        plan.priority = plan.priority.min(priority);
                    }
                }
            }
            SoftLimitPolicy::TwoPass => {
                let included = SoftLimitRoot::Included;
                plan.skip = visit.walk == 0
                    && !sc.rules.ignore_soft_limit
                    && !kernel.is_over_soft_limit(visit.memcg, visit.node, &sc.goal, included);
                sc.rules.soft_limit_passed_over |= plan.skip;
            }
        }
    }
}

impl Config {
    /// Whether the first of two walks has ended without scanning a page.
    pub(super) fn is_second_pass_due(&self, walk: WalkResult, rules: &mut OtherRules) -> bool {
        if self.soft_limit != SoftLimitPolicy::TwoPass || walk.number > 0 || rules.ignore_soft_limit
        {
            return false;
        }
        let passed_over = core::mem::take(&mut rules.soft_limit_passed_over);
        if walk.scanned > 0 {
            rules.soft_limit_skipped |= passed_over;
        }
        walk.scanned == 0
    }

    /// The priority for groups over their soft limit; `None`: this reclaimer ignores soft limits.
    pub(crate) fn soft_limit_priority(&self, goal: &ReclaimGoal) -> Option<i8> {
        if goal.is_kswapd() {
            return Some(0);
        }
        match self.soft_limit_direct {
            SoftLimitDirect::Full => Some(0),
            SoftLimitDirect::Bounded => Some((goal.priority - 2).max(0)),
            SoftLimitDirect::Ignored => None,
        }
    }
}

impl Kernel {
    /// Whether a group is over its soft limit, or one of its ancestors up to the target is.
    pub(crate) fn is_over_soft_limit(
        &self,
        memcg: MemcgId,
        node: NodeId,
        goal: &ReclaimGoal,
        root: SoftLimitRoot,
    ) -> bool {
        let target = goal.target.unwrap_or(ROOT);
        let mut at = memcg;
        while at.is_some() {
            if at == target && root == SoftLimitRoot::Excluded {
                return false;
            }
            if self.soft_limit_excess_on(at, node) > 0 {
                return true;
            }
            if at == target {
                return false;
            }
            at = self.groups.memcgs[at].parent;
        }
        false
    }

    /// Pages by which a group is over its soft limit: on all nodes or, if limits are local, on
    /// `node`. The root has no soft limit.
    pub(crate) fn soft_limit_excess_on(&self, memcg: MemcgId, node: NodeId) -> u64 {
        self.group_views(node).view(memcg).soft_limit_excess()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ageing::lruvec::Lru;
    use crate::config::{Config, SoftLimitNode};
    use crate::frames::gfp::Gfp;
    use crate::frames::node::NodeSpec;
    use crate::process::Machine;
    use crate::reclaim::Reclaimer;
    use crate::units::DEF_PRIORITY;

    /// Whether the first walk skips `memcg`. `scanned`: pages that the walk scanned elsewhere.
    fn first_walk(
        machine: &mut Machine,
        memcg: MemcgId,
        scanned: u64,
        sc: &mut ScanControl,
    ) -> bool {
        let mut plan = GroupPlan { skip: false, priority: sc.goal.priority, protected: 0 };
        let visit = VisitedGroup { memcg, node: NodeId(0), walk: 0 };
        SoftLimit::plan(machine, visit, sc, &mut plan);
        assert_eq!(
            machine.config.is_second_pass_due(WalkResult { number: 0, scanned }, &mut sc.rules),
            scanned == 0 && plan.skip
        );
        plan.skip
    }

    #[test]
    fn a_first_pass_that_frees_nothing_is_the_last_of_its_kind() {
        let nodes = [NodeSpec::x86_64(64 << 20, 0, 0)];
        let config = Config { soft_limit: SoftLimitPolicy::TwoPass, ..Config::default() };
        let mut machine = Machine::new(&nodes, 1, config).unwrap();
        let memcg = machine.create_memcg("within its limit".into(), ROOT).unwrap();
        let mut sc = ScanControl::new(Reclaimer::Direct, 32, Gfp::KERNEL, 0);
        // Nothing to scan in other groups: a second walk follows, and no group was spared.
        assert!(first_walk(&mut machine, memcg, 0, &mut sc));
        assert!(!sc.has_spared() && !sc.stop_sparing_groups());
        assert!(first_walk(&mut machine, memcg, 5, &mut sc));
        sc.goal.priority = -1;
        assert!(sc.has_spared() && sc.stop_sparing_groups());
        assert_eq!(sc.goal.priority, DEF_PRIORITY);
        assert!(!first_walk(&mut machine, memcg, 5, &mut sc));
        assert!(!sc.has_spared() && !sc.stop_sparing_groups());
    }

    /// "4 G soft, 2 G node: 4 G group -> 2 G; 5 G -> 1.6 G; 16 G -> 512 M", scaled to 1/1000.
    #[test]
    fn local_limits_are_those_of_the_author_s_examples() {
        let nodes = [NodeSpec::x86_64(64 << 20, 0, 0), NodeSpec::remote(2 << 20, 0, 0)];
        let config = Config { soft_limit_node: SoftLimitNode::Local, ..Config::default() };
        let mut machine = Machine::new(&nodes, 1, config).unwrap();
        let memcg = machine.create_memcg("group".into(), ROOT).unwrap();
        let node = NodeId(1);
        let managed: u64 = machine.mem.nodes[1].zones.iter().map(|zone| zone.managed).sum();
        machine.groups.memcgs[memcg].soft_limit = 2 * managed;
        // Usage in tenths of the node, and the limit there in twentieths.
        for (usage, local) in [(20, 20), (25, 16), (80, 5)] {
            machine.groups.memcgs[memcg].memory.usage = usage * managed / 10;
            let limit = 2 * managed * managed / (usage * managed / 10);
            assert!((limit * 20).abs_diff(local * managed) <= managed / 10, "{limit}");
            for (here, excess) in [(limit, 0), (limit + 5, 5)] {
                machine.groups.memcgs[memcg].lruvecs[1].subtree[Lru::InactiveAnon as usize] = here;
                assert_eq!(machine.soft_limit_excess_on(memcg, node), excess);
            }
        }
    }
}
