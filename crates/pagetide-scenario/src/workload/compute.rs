//! `workload = "compute"`: uses the CPU.

use super::prelude::*;

table! {
    /// Uses the CPU.
    Keys of "workload compute" {
        /// CPU time to use.
        duration: At<Time> => required "\"1s\"",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compute {
    pub ns: u64,
}

impl Kind for Compute {
    type Keys = Keys;

    fn check(keys: &Keys, _: &mut Phases<'_, '_>, sink: &mut Sink) -> Option<Self> {
        Some(Compute { ns: keys.duration(sink)?.value.0 })
    }

    fn stages(&self, _: u32, _: &mut Planner<'_>) -> Vec<Stage> {
        vec![Stage::Once(Op::Compute { ns: self.ns })]
    }
}
