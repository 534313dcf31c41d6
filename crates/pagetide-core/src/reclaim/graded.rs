//! Graded soft limits: pressure grows with the excess over the limit.
//!
//! Pagetide's own policy (`soft_limit = "graded"`), written against the plug-in trait. The
//! hierarchical policy knows two cases: the walk's priority, or priority 0. Here the priority of a
//! group falls with the share of its usage that is above its soft limit. A group with 5 % of its
//! usage above the limit is treated almost like other groups. A group with nearly all of its usage
//! above the limit is scanned as hard as by the patch of 2012.
//!
//! Invariant: a group with its whole usage above the limit has priority 0; a group at its limit has
//! the walk's priority.

use crate::reclaim::plugin::{GroupPlan, GroupPolicy, GroupVisit};
use crate::units::digest::Digest;

#[derive(Clone, Copy, Debug)]
pub(crate) struct GradedSoftLimit;

impl GroupPolicy for GradedSoftLimit {
    fn plan(&mut self, visit: &GroupVisit<'_>, plan: &mut GroupPlan) {
        // The worst group on the path decides for its descendants.
        let mut eased = 0;
        for group in visit.group.path().take_while(|group| group.id() != visit.target.id()) {
            let usage = group.usage().max(1);
            let excess = group.soft_limit_excess().min(usage);
            let priority = u64::try_from(plan.priority).unwrap_or(0);
            eased = eased.max((2 * priority * excess + usage) / (2 * usage));
        }
        plan.priority -= i8::try_from(eased).unwrap_or(0);
    }

    fn digest(&self, _: &mut Digest) {}
}
