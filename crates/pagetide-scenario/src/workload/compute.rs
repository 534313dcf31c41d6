//! `workload = "compute"`: uses the CPU.

use super::prelude::*;

table! {
    /// Uses the CPU.
    ComputeKeys of "workload compute" {
        /// CPU time to use.
        duration: Spanned<Time> => required "\"1s\"",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compute {
    pub ns: u64,
}

impl WorkloadSpec for Compute {
    type Keys = ComputeKeys;

    fn check(keys: &ComputeKeys, _: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        Some(Compute { ns: keys.duration(sink)?.value.0 })
    }

    fn stages(&self, _: u32, _: &mut Planner<'_>) -> Vec<PhaseStage> {
        vec![PhaseStage::Once(Op::Compute { ns: self.ns })]
    }
}
