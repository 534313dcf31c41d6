//! `workload = "sleep"`: sleeps.

use super::prelude::*;

table! {
    /// Sleeps.
    SleepKeys of "workload sleep" {
        /// Time to sleep.
        duration: Spanned<Time> => required "\"1s\"",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleepWorkload {
    pub ns: u64,
}

impl WorkloadSpec for SleepWorkload {
    type Keys = SleepKeys;

    fn check(keys: &SleepKeys, _: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        Some(SleepWorkload { ns: keys.duration(sink)?.value.0 })
    }

    fn stages(&self, _: u32, _: &mut Planner<'_>) -> Vec<PhaseStage> {
        vec![PhaseStage::Once(Op::Sleep { ns: self.ns })]
    }
}
