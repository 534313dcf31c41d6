//! `workload = "trace"`: replays a page trace.

use super::prelude::*;
use std::path::PathBuf;

table! {
    /// Replays a page trace.
    Keys of "workload trace" {
        /// The trace, relative to the scenario file.
        path: At<String> => required "\"program.ptt\"",
        /// Times through it (default 1).
        passes: At<Int<0, { u32::MAX as i64 }>> = Int(1),
    }
}

/// Passes through a page trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The trace file.
    pub path: PathBuf,
    /// Times through the trace.
    pub passes: u32,
}

impl Kind for Trace {
    type Keys = Keys;

    fn check(keys: &Keys, phases: &mut Phases<'_, '_>, sink: &mut Sink) -> Option<Self> {
        let path = phases.trace(keys.path(sink)?, sink)?;
        Some(Trace { path, passes: keys.passes().into() })
    }

    fn stages(&self, _: u32, _: &mut Planner<'_>) -> Vec<Stage> {
        vec![Stage::Trace { path: self.path.clone(), passes: self.passes }]
    }
}
