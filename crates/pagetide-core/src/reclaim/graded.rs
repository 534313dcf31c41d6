//! Graded soft limits: pressure that grows with the excess.
//!
//! Pagetide's own (`soft_limit = "graded"`). The hierarchical policy knows two cases: the walk's own
//! priority, or priority 0. Here the priority of a group falls with the share of its usage that is
//! above its soft limit. A group with 5 % of its usage above the limit is treated almost like others; a
//! group with nearly all of its usage above it is scanned as hard as by the patch of 2012.
//!
//! Invariant: a group whose whole usage is above its limit has priority 0; a group at its limit has the
//! walk's own.

use super::group_policy::GroupPolicy;
use super::plan::{Plan, Visit};
use super::ScanControl;
use crate::config::SoftLimitPolicy;
use crate::manager::Manager;
use crate::memcg::ROOT;
use crate::owners::Owners;

/// The policy.
pub(crate) struct Graded;

impl GroupPolicy for Graded {
    fn plan<O: Owners>(
        machine: &mut Manager<O>,
        visit: Visit,
        sc: &mut ScanControl,
        plan: &mut Plan,
    ) {
        if machine.config.soft_limit != SoftLimitPolicy::Graded {
            return;
        }
        // The worst group on the path decides for those below it.
        let target = sc.target.unwrap_or(ROOT);
        let (mut at, mut eased) = (visit.memcg, 0);
        while at.is_some() && at != target {
            let usage = machine.memcgs[at.idx()].memory.usage.max(1);
            let excess = machine.soft_limit_excess_on(at, visit.node).min(usage);
            let priority = u64::try_from(plan.priority).unwrap_or(0);
            eased = eased.max((2 * priority * excess + usage) / (2 * usage));
            at = machine.memcgs[at.idx()].parent;
        }
        plan.priority -= i8::try_from(eased).unwrap_or(0);
    }
}
