//! Graded soft limits: pressure that grows with the excess.
//!
//! Pagetide's own (`soft_limit = "graded"`), written against the trait that plug-ins have. The hierarchical
//! policy knows two cases: nobody's business, or priority 0. Here the priority of a group falls with the share
//! of its usage that lies above its soft limit: one that is 5 % over is hardly treated differently, one that is
//! nearly all over is scanned as hard as the patch of 2012 does.
//!
//! Invariant: as far above its limit as can be is priority 0; at the limit, the walk's own.

use crate::digest::Digest;
use crate::plugin::{GroupPolicy, Plan, Visit};

/// The policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Graded;

impl GroupPolicy for Graded {
    fn plan(&mut self, visit: &Visit<'_>, plan: &mut Plan) {
        // The worst group on the path decides for those below it.
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
