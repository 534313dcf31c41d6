//! `workload = "pipes"`: opens pipes and closes most of them again.

use super::prelude::*;
use super::making::{KeepShare, MadeKind};
use crate::load::decode::Share;
use crate::names::PickKind;

table! {
    /// Opens pipes.
    OpenPipesKeys of "workload pipes" {
        /// Number of pipes.
        make: Spanned<Int<1, 100_000>> => required "200",
        /// Share that stays open until the task ends (default "0 %").
        keep: Spanned<Share> = Share::NONE,
        /// Which pipes stay: every Nth, or random ones (default evenly).
        pick: Spanned<PickKind> = PickKind::Evenly,
    }
}

/// Pipes: each costs the kernel two open files, an inode, a dentry and a ring of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipes {
    pub make: u32,
    /// The pipes that stay open until the task ends.
    pub keep: KeepShare,
}

impl WorkloadSpec for Pipes {
    type Keys = OpenPipesKeys;

    fn check(keys: &OpenPipesKeys, _: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let make = keys.make(sink)?.value.into();
        Some(Pipes { make, keep: KeepShare::new(keys.keep(), keys.pick()) })
    }

    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        vec![planner.make_stage(phase, MadeKind::Pipe, "pipes", (self.make, self.keep))]
    }
}
