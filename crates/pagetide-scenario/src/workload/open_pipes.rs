//! `workload = "pipes"`: opens pipes and closes most of them again.

use super::prelude::*;
use super::making::{Keep, Thing};
use crate::load::decode::Share;
use crate::names::PickKind;

table! {
    /// Opens pipes.
    Keys of "workload pipes" {
        /// Number of pipes.
        make: At<Int<1, 100_000>> => required "200",
        /// Share that stays open until the task ends (default "0 %").
        keep: At<Share> = Share::NONE,
        /// Which pipes stay: every Nth, or random ones (default evenly).
        pick: At<PickKind> = PickKind::Evenly,
    }
}

/// Pipes: each costs the kernel two open files, an inode, a dentry and a ring of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipes {
    pub make: u32,
    /// The pipes that stay open until the task ends.
    pub keep: Keep,
}

impl Kind for Pipes {
    type Keys = Keys;

    fn check(keys: &Keys, _: &mut Phases<'_, '_>, sink: &mut Sink) -> Option<Self> {
        let make = keys.make(sink)?.value.into();
        Some(Pipes { make, keep: Keep::new(keys.keep(), keys.pick()) })
    }

    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<Stage> {
        vec![planner.makes(phase, Thing::Pipe, "pipes", (self.make, self.keep))]
    }
}
