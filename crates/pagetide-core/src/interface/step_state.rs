//! State of the step that is running, and what daemons keep between their steps.
//!
//! Linux has these in local variables, in `current` and on the stack of a thread.
//!
//! Invariant: the buffers are empty between two steps.

use crate::frames::page::PageFlags;
use crate::interface::daemon::{Daemon, ThrottleQueue};
use crate::interface::effect::EffectQueue;
use crate::units::digest::{Digest, State};
use crate::units::Pfn;
use alloc::vec::Vec;

/// State of the running step.
#[derive(Clone, Debug)]
pub(crate) struct StepState {
    pub effects: EffectQueue,
    /// Page under writeback that reclaim for a group must wait for (cgroup version 1).
    pub legacy_wait: Option<Pfn>,
    /// The last step ended inside a plug ([`crate::interface::kernel::Kernel::is_plugged`]).
    pub plugged: bool,
    /// Another task wants the CPU of the next step.
    pub need_resched: bool,
    /// Throttle queue whose sleeper count includes the daemon, by [`Daemon::idx`].
    pub daemon_sleeps: Vec<ThrottleQueue>,
    /// Flag of pages that the step adds: it is a fault in a mapping with neither random nor
    /// sequential advice, under generations (Linux `in_lru_fault`) or a page policy.
    pub fault_mark: PageFlags,
    /// The reclaimer has an open walk over page tables: whether it looks at anonymous pages (Linux
    /// `reclaim_state::mm_walk`).
    pub mm_walk: Option<bool>,
    /// Buffers that steps reuse, so that a step does not allocate.
    pub scratch: Vec<Pfn>,
    pub scratch_free: Vec<Pfn>,
    pub scratch_retry: Vec<Pfn>,
    /// A planted defect, which tests should find.
    #[cfg(debug_assertions)]
    pub planted: Option<crate::interface::planted::PlantedDefect>,
}

impl StepState {
    pub fn new(nr_nodes: usize) -> StepState {
        StepState {
            effects: EffectQueue::with_capacity(64),
            legacy_wait: None,
            plugged: false,
            need_resched: false,
            daemon_sleeps: Daemon::all(nr_nodes).map(|_| None).collect(),
            fault_mark: PageFlags::EMPTY,
            mm_walk: None,
            scratch: Vec::with_capacity(64),
            scratch_free: Vec::with_capacity(64),
            scratch_retry: Vec::new(),
            #[cfg(debug_assertions)]
            planted: None,
        }
    }
}

/// The world and the step set the other fields.
impl State for StepState {
    fn digest(&self, digest: &mut Digest) {
        self.legacy_wait.digest(digest);
        self.daemon_sleeps.digest(digest);
        digest.write_u64(self.effects.nr_undelivered() as u64);
    }
}
