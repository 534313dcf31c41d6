//! `workload = "sleep"`: sleeps.

use super::prelude::*;

table! {
    /// Sleeps.
    Keys of "workload sleep" {
        /// Time to sleep.
        duration: At<Time> => required "\"1s\"",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    pub ns: u64,
}

impl Kind for Sleep {
    type Keys = Keys;

    fn check(keys: &Keys, _: &mut Phases<'_, '_>, sink: &mut Sink) -> Option<Self> {
        Some(Sleep { ns: keys.duration(sink)?.value.0 })
    }

    fn stages(&self, _: u32, _: &mut Planner<'_>) -> Vec<Stage> {
        vec![Stage::Once(Op::Sleep { ns: self.ns })]
    }
}
