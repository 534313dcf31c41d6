//! `workload = "pipes"`: opens pipes and closes most of them again.

use super::prelude::*;
use super::making::{Makes, Thing};
use crate::load::decode::Percent;

table! {
    /// Pipes.
    Keys of "workload pipes" {
        /// How many.
        make: At<Int<1, 100_000>> => required "200",
        /// The share that stays open until the task ends (default "0 %").
        keep: At<Percent> = Percent(0),
    }
}

/// Pipes: each costs the kernel two open files, an inode, a dentry and a ring of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipes {
    /// How many.
    pub make: u32,
    /// Per cent of them that stay open until the task ends ([`is_kept`](super::is_kept)).
    pub keep_percent: u32,
}

impl Kind for Pipes {
    type Keys = Keys;

    fn check(keys: &Keys, _: &mut Phases<'_, '_>, sink: &mut Sink) -> Option<Self> {
        let make = keys.make(sink)?.value.into();
        Some(Pipes { make, keep_percent: keys.keep().0 as u32 })
    }

    fn stages(&self, _: u32, _: &mut Planner<'_>) -> Vec<Stage> {
        vec![Makes::stage(Thing::Pipe, "pipes", self.make, self.keep_percent)]
    }
}
