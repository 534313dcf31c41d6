//! `workload = "pipes"`: opens pipes and closes most of them again.

use super::prelude::*;
use super::making::{Keep, Thing};
use crate::load::decode::Share;
use crate::names::PickKind;

table! {
    /// Pipes.
    Keys of "workload pipes" {
        /// How many.
        make: At<Int<1, 100_000>> => required "200",
        /// The share that stays open until the task ends (default "0 %").
        keep: At<Share> = Share::NONE,
        /// Which of them stay: those that lie evenly, or any (default evenly).
        pick: At<PickKind> = PickKind::Evenly,
    }
}

/// Pipes: each costs the kernel two open files, an inode, a dentry and a ring of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipes {
    /// How many.
    pub make: u32,
    /// Those that stay open until the task ends.
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
