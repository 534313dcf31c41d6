//! Policies from outside the core: from which groups memory is reclaimed, and how pages age.
//!
//! Linux has no such hooks. Two public traits: a [`GroupPolicy`] changes the plan for a group that a walk has
//! reached; a [`PagePolicy`] decides about new, referenced and old pages. Both policies get facts (copies, or
//! views to read), never the machine. Each question contains the answer of the built-in rules. A policy is
//! registered under a name ([`Plugins`]) and put in force before the machine is used
//! ([`crate::manager::Manager::use_plugins`]); each machine has a copy of its own.
//!
//! An impossible answer is corrected and counted ([`Wrong`]): no policy can break an invariant of the
//! machine. A policy that protects too much memory is overruled: if a whole descent of reclaim has freed
//! nothing, the next descent does not ask the policy.
//!
//! Invariant: a machine without plug-ins decides, counts and hashes as if this module were not there.

mod group;
mod page;
mod registry;

pub(crate) use group::Groups;
pub use group::{GroupPolicy, GroupView, Plan, Visit, Walk, PLAN_PRIORITIES, WALKS_MAX};
pub use page::{Balance, Judged, ListSizes, PagePolicy, PageView, Pressure, Refault, Start};
pub use registry::{Chosen, NoSuchPolicy, Plugins, Refused};
pub(crate) use registry::{CloneGroup, ClonePage};

use crate::digest::{Digest, State};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

/// What was wrong with a policy's answers, and what was done instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Wrong {
    /// A priority outside [`PLAN_PRIORITIES`]; the nearest one was taken.
    PriorityOutOfRange = 0,
    /// More protected than the group uses; all of its usage was. The root has no usage of its own.
    ProtectsTooMuch = 1,
    /// Less protected than `memory.min` and `memory.low` grant; these were.
    ProtectsTooLittle = 2,
    /// One walk after the other; after [`WALKS_MAX`] there was none.
    WalksForEver = 3,
    /// No share for either kind, or one above the whole; the built-in balance was taken.
    BalanceOfNothing = 4,
    /// What it spared was all there was: a descent freed nothing, and the next did not ask.
    Overruled = 5,
}

impl Wrong {
    /// All of them.
    pub const ALL: [Wrong; 6] = [
        Wrong::PriorityOutOfRange,
        Wrong::ProtectsTooMuch,
        Wrong::ProtectsTooLittle,
        Wrong::WalksForEver,
        Wrong::BalanceOfNothing,
        Wrong::Overruled,
    ];

    /// The name it is counted under.
    pub const fn name(self) -> &'static str {
        match self {
            Wrong::PriorityOutOfRange => "plugin_priority_out_of_range",
            Wrong::ProtectsTooMuch => "plugin_protects_too_much",
            Wrong::ProtectsTooLittle => "plugin_protects_too_little",
            Wrong::WalksForEver => "plugin_walks_for_ever",
            Wrong::BalanceOfNothing => "plugin_balance_of_nothing",
            Wrong::Overruled => "plugin_overruled",
        }
    }

    /// Whether it may be the fault of a policy of this kind, `groups` or `pages`.
    pub fn is_of(self, kind: &str) -> bool {
        match self {
            Wrong::PriorityOutOfRange
            | Wrong::ProtectsTooMuch
            | Wrong::ProtectsTooLittle
            | Wrong::WalksForEver => kind == "groups",
            Wrong::BalanceOfNothing => kind == "pages",
            Wrong::Overruled => true,
        }
    }

    /// One clause about it, for a report.
    pub const fn text(self) -> &'static str {
        match self {
            Wrong::PriorityOutOfRange => "a priority outside 0..=24; the nearest one was taken",
            Wrong::ProtectsTooMuch => "more protected than the group uses; its usage was",
            Wrong::ProtectsTooLittle => "less protected than memory.min and memory.low; these were",
            Wrong::WalksForEver => "another walk after the fourth; there was none",
            Wrong::BalanceOfNothing => "a balance that cannot be; the built-in one was taken",
            Wrong::Overruled => "all that was left was spared; the next descent did not ask",
        }
    }
}

/// The plug-ins of one machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct InForce {
    pub groups: Option<Named<dyn CloneGroup>>,
    pub pages: Option<Named<dyn ClonePage>>,
    wrong: [u64; Wrong::ALL.len()],
}

/// A policy and the name it was registered under.
#[derive(Debug)]
pub(crate) struct Named<P: ?Sized> {
    pub name: String,
    pub policy: Box<P>,
}

impl InForce {
    pub fn of(chosen: Chosen) -> InForce {
        InForce { groups: chosen.groups, pages: chosen.pages, wrong: Default::default() }
    }

    #[cold]
    pub fn note(&mut self, wrong: Wrong) {
        self.wrong[wrong as usize] += 1;
    }

    /// What was wrong, and how often.
    pub fn wrong(&self) -> Vec<(Wrong, u64)> {
        let counts = Wrong::ALL.into_iter().zip(self.wrong);
        counts.filter(|&(_, times)| times > 0).collect()
    }
}

/// Names and states; without plug-ins nothing. What was wrong decides nothing.
impl State for InForce {
    fn digest(&self, digest: &mut Digest) {
        let InForce { groups, pages, wrong: _ } = self;
        if let Some(Named { name, policy }) = groups {
            digest_name(name, digest);
            policy.digest(digest);
        }
        if let Some(Named { name, policy }) = pages {
            digest_name(name, digest);
            policy.digest(digest);
        }
    }
}

fn digest_name(name: &str, digest: &mut Digest) {
    digest.write_u64(name.len() as u64);
    name.bytes().for_each(|byte| digest.write_u64(byte.into()));
}
