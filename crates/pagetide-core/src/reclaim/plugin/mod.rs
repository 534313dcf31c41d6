//! Policies from outside the core (plug-ins): which groups to reclaim from, and how hard.
//!
//! Linux has no such hook. A [`GroupPolicy`] changes the plan for a group, that is, what a walk does
//! with a group that it has reached. It gets facts (copies, or read-only views), never the machine.
//! Each question includes the answer of the built-in rules. A policy is registered under a name
//! ([`Plugins`]) and set before the machine is used
//! ([`crate::interface::kernel::Kernel::use_plugin`]); each machine has its own copy.
//!
//! An impossible answer is corrected and counted ([`PolicyFault`]), so no policy can break an
//! invariant of the machine. A policy that protects too much memory is overruled. Reclaim scans at
//! rising priorities (a descent, because the number falls from 12 to 0). If a whole descent has
//! freed nothing, the next one does not ask the policy.
//!
//! Invariant: a machine without plug-ins decides, counts and hashes as if this module did not
//! exist.

mod group;
mod registry;

pub(crate) use group::GroupViews;
pub use group::{
    GroupPlan, GroupPolicy, GroupView, GroupVisit, GroupWalk, PLAN_PRIORITIES, WALKS_MAX,
};
pub use registry::{NamedPolicy, Plugins, RegistrationError, UnknownPolicy};

use crate::ageing::page_policy::NamedPagePolicy;
use crate::units::digest::{Digest, State};
use alloc::vec::Vec;

/// Kinds of wrong answers, each with the correction that is applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum PolicyFault {
    /// A priority outside [`PLAN_PRIORITIES`]; replaced by the nearest one.
    PriorityOutOfRange = 0,
    /// More protected pages than the group uses; replaced by its usage (0 for the root).
    ProtectsTooMuch = 1,
    /// Fewer protected pages than `memory.min` and `memory.low` grant; replaced by that number.
    ProtectsTooLittle = 2,
    /// Another walk requested after [`WALKS_MAX`] walks; refused.
    TooManyWalks = 3,
    /// Reclaim freed nothing at any priority because the policy protected everything; the next
    /// attempt ignored the policy.
    Overruled = 4,
}

impl PolicyFault {
    /// All kinds.
    pub const ALL: [PolicyFault; 5] = [
        PolicyFault::PriorityOutOfRange,
        PolicyFault::ProtectsTooMuch,
        PolicyFault::ProtectsTooLittle,
        PolicyFault::TooManyWalks,
        PolicyFault::Overruled,
    ];

    /// The name under which reports count it.
    pub const fn name(self) -> &'static str {
        match self {
            PolicyFault::PriorityOutOfRange => "plugin_priority_out_of_range",
            PolicyFault::ProtectsTooMuch => "plugin_protects_too_much",
            PolicyFault::ProtectsTooLittle => "plugin_protects_too_little",
            PolicyFault::TooManyWalks => "plugin_walks_for_ever",
            PolicyFault::Overruled => "plugin_overruled",
        }
    }

    /// A description for reports: one clause.
    pub const fn text(self) -> &'static str {
        match self {
            PolicyFault::PriorityOutOfRange => "a priority outside 0..=24; the nearest was used",
            PolicyFault::ProtectsTooMuch => {
                "more protected than the group uses; its usage was used"
            }
            PolicyFault::ProtectsTooLittle => {
                "less protected than memory.min and memory.low; these hold"
            }
            PolicyFault::TooManyWalks => "another walk after the fourth; it was refused",
            PolicyFault::Overruled => {
                "it spared all remaining memory; the next attempt of reclaim ignored it"
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ActivePlugin {
    pub policy: Option<NamedPolicy>,
    /// A page policy; the groups have copies of it.
    pub pages: Option<NamedPagePolicy>,
    wrong: [u64; PolicyFault::ALL.len()],
}

impl ActivePlugin {
    #[cold]
    pub fn note(&mut self, wrong: PolicyFault) {
        self.wrong[wrong as usize] += 1;
    }

    /// The wrong answers and their counts.
    pub fn wrong(&self) -> Vec<(PolicyFault, u64)> {
        let counts = PolicyFault::ALL.into_iter().zip(self.wrong);
        counts.filter(|&(_, times)| times > 0).collect()
    }
}

/// Hashes name and state. Counts of wrong answers affect no decision, so they are not hashed.
impl State for ActivePlugin {
    fn digest(&self, digest: &mut Digest) {
        if let Some(NamedPolicy { name, policy }) = &self.policy {
            digest.write_u64(name.len() as u64);
            name.bytes().for_each(|byte| digest.write_u64(byte.into()));
            policy.digest(digest);
        }
        if let Some(NamedPagePolicy { name, .. }) = &self.pages {
            digest.write_u64(name.len() as u64);
            name.bytes().for_each(|byte| digest.write_u64(byte.into()));
        }
    }
}
