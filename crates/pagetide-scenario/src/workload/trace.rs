//! `workload = "trace"`: replays a page trace.

use super::prelude::*;
use crate::names::AdviceKind;
use std::path::PathBuf;

table! {
    /// Replays a page trace.
    TraceKeys of "workload trace" {
        /// Trace file, relative to the file that names it.
        path: Spanned<String> => required "\"program.ptt\"",
        /// Number of passes through the trace (default 1).
        passes: Spanned<Int<0, { u32::MAX as i64 }>> = Int(1),
        /// Advice on its regions of files (default: normal; for a trace of objects, random).
        advice: Spanned<AdviceKind>,
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceWorkload {
    pub path: PathBuf,
    /// Number of passes through the trace.
    pub passes: u32,
    /// Advice on its regions of files; `None`: the default for the kind of trace.
    pub advice: Option<Advice>,
}

impl WorkloadSpec for TraceWorkload {
    type Keys = TraceKeys;

    fn check(keys: &TraceKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let path = phases.trace(keys.path(sink)?, sink)?;
        let advice = keys.advice.as_ref().map(|advice| advice.value.into());
        Some(TraceWorkload { path, passes: keys.passes().into(), advice })
    }

    fn stages(&self, _: u32, _: &mut Planner<'_>) -> Vec<PhaseStage> {
        vec![PhaseStage::Trace { path: self.path.clone(), passes: self.passes, advice: self.advice }]
    }
}
