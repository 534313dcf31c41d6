//! `workload = "trace"`: replays a page trace.

use super::prelude::*;
use crate::names::AdviceKind;
use std::path::PathBuf;

table! {
    /// Replays a page trace.
    Keys of "workload trace" {
        /// The trace, relative to the scenario file.
        path: At<String> => required "\"program.ptt\"",
        /// Times through it (default 1).
        passes: At<Int<0, { u32::MAX as i64 }>> = Int(1),
        /// Advice on its regions of files (default: normal; of a trace of objects, random).
        advice: At<AdviceKind>,
    }
}

/// Passes through a page trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The trace file.
    pub path: PathBuf,
    /// Times through the trace.
    pub passes: u32,
    /// Advice on its regions of files; `None`: as suits what it is a trace of.
    pub advice: Option<Advice>,
}

impl Kind for Trace {
    type Keys = Keys;

    fn check(keys: &Keys, phases: &mut Phases<'_, '_>, sink: &mut Sink) -> Option<Self> {
        let path = phases.trace(keys.path(sink)?, sink)?;
        let advice = keys.advice.as_ref().map(|advice| advice.value.into());
        Some(Trace { path, passes: keys.passes().into(), advice })
    }

    fn stages(&self, _: u32, _: &mut Planner<'_>) -> Vec<Stage> {
        vec![Stage::Trace { path: self.path.clone(), passes: self.passes, advice: self.advice }]
    }
}
