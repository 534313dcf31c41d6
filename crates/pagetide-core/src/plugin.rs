//! Policies from outside the core (plug-ins): which groups to reclaim from, and how pages age.
//!
//! Linux has no such hooks. There are two public traits. A [`GroupPolicy`] changes the plan for a
//! group, that is, what a walk does with a group that it has reached. A [`PagePolicy`] decides
//! about new, referenced and old pages. Both get facts (copies, or read-only views), never the
//! machine. Each question includes the answer of the built-in rules. A policy is registered under a
//! name ([`Plugins`]) and set before the machine is used
//! ([`crate::manager::Manager::use_plugins`]); each machine has its own copy.
//!
//! An impossible answer is corrected and counted ([`PolicyFault`]), so no policy can break an
//! invariant of the machine. A policy that protects too much memory is overruled. Reclaim scans at
//! rising priorities (a descent, because the number falls from 12 to 0). If a whole descent has
//! freed nothing, the next one does not ask the policy.
//!
//! Invariant: a machine without plug-ins decides, counts and hashes as if this module did not
//! exist.

mod group;
mod page;
mod registry;

pub(crate) use group::GroupViews;
pub use group::{
    GroupPlan, GroupPolicy, GroupView, GroupVisit, GroupWalk, PLAN_PRIORITIES, WALKS_MAX,
};
pub use page::{
    InitialList, ListSizes, PagePolicy, PageVerdict, PageView, Refault, ScanBalance, ScanPressure,
};
pub(crate) use registry::{CloneGroupPolicy, ClonePagePolicy};
pub use registry::{PluginChoice, Plugins, RegistrationError, UnknownPolicy};

use crate::digest::{Digest, State};
use alloc::boxed::Box;
use alloc::string::String;
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
    /// A balance without any share, or with a share above the whole; replaced by the built-in one.
    ImpossibleBalance = 4,
    /// Reclaim freed nothing at any priority because the policy protected everything; the next
    /// attempt ignored the policy.
    Overruled = 5,
}

impl PolicyFault {
    /// All kinds.
    pub const ALL: [PolicyFault; 6] = [
        PolicyFault::PriorityOutOfRange,
        PolicyFault::ProtectsTooMuch,
        PolicyFault::ProtectsTooLittle,
        PolicyFault::TooManyWalks,
        PolicyFault::ImpossibleBalance,
        PolicyFault::Overruled,
    ];

    /// The name under which reports count it.
    pub const fn name(self) -> &'static str {
        match self {
            PolicyFault::PriorityOutOfRange => "plugin_priority_out_of_range",
            PolicyFault::ProtectsTooMuch => "plugin_protects_too_much",
            PolicyFault::ProtectsTooLittle => "plugin_protects_too_little",
            PolicyFault::TooManyWalks => "plugin_walks_for_ever",
            PolicyFault::ImpossibleBalance => "plugin_balance_of_nothing",
            PolicyFault::Overruled => "plugin_overruled",
        }
    }

    /// Whether a policy of this kind, `groups` or `pages`, can cause it.
    pub fn is_of(self, kind: &str) -> bool {
        match self {
            PolicyFault::PriorityOutOfRange
            | PolicyFault::ProtectsTooMuch
            | PolicyFault::ProtectsTooLittle
            | PolicyFault::TooManyWalks => kind == "groups",
            PolicyFault::ImpossibleBalance => kind == "pages",
            PolicyFault::Overruled => true,
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
            PolicyFault::ImpossibleBalance => "an impossible balance; the built-in one was used",
            PolicyFault::Overruled => {
                "it spared all remaining memory; the next attempt of reclaim ignored it"
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ActivePlugins {
    pub groups: Option<NamedPolicy<dyn CloneGroupPolicy>>,
    pub pages: Option<NamedPolicy<dyn ClonePagePolicy>>,
    wrong: [u64; PolicyFault::ALL.len()],
}

#[derive(Debug)]
pub(crate) struct NamedPolicy<P: ?Sized> {
    pub name: String,
    pub policy: Box<P>,
}

impl ActivePlugins {
    pub fn of(chosen: PluginChoice) -> ActivePlugins {
        ActivePlugins { groups: chosen.groups, pages: chosen.pages, wrong: Default::default() }
    }

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

/// Hashes names and states. Counts of wrong answers affect no decision, so they are not hashed.
impl State for ActivePlugins {
    fn digest(&self, digest: &mut Digest) {
        let ActivePlugins { groups, pages, wrong: _ } = self;
        if let Some(NamedPolicy { name, policy }) = groups {
            digest_name(name, digest);
            policy.digest(digest);
        }
        if let Some(NamedPolicy { name, policy }) = pages {
            digest_name(name, digest);
            policy.digest(digest);
        }
    }
}

fn digest_name(name: &str, digest: &mut Digest) {
    digest.write_u64(name.len() as u64);
    name.bytes().for_each(|byte| digest.write_u64(byte.into()));
}
