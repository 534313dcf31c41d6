//! The key `compute` of workloads that access memory: CPU time of the program after each access.
//!
//! Invariant: [`Op::Compute`] follows each access and nothing else, also the last of a phase.

use super::cursor::{Cursor, Generator};
use super::plan::PhaseStage;
use super::state::ProgramState;
use crate::op::Op;

/// Adds `ns` of CPU time after each access of a stage; 0 returns the stage unchanged.
pub(super) fn computing(stage: PhaseStage, ns: u64) -> PhaseStage {
    let PhaseStage::Run(run) = &stage else { return stage };
    if ns == 0 {
        return stage;
    }
    let run = run.clone();
    PhaseStage::run(move |state, round| {
        Box::new(Computing { inner: run.begin(state, round), ns, due: false }).into()
    })
}

/// Accesses, with CPU time after each.
#[derive(Debug)]
struct Computing {
    inner: Cursor,
    ns: u64,
    /// The last operation was an access.
    due: bool,
}

impl Generator for Computing {
    fn next_op(&mut self) -> Option<Op> {
        if std::mem::take(&mut self.due) {
            return Some(Op::Compute { ns: self.ns });
        }
        let op = self.inner.next_op();
        self.due = matches!(op, Some(Op::Access { .. }));
        op
    }

    fn end(self: Box<Self>, state: &mut ProgramState) {
        self.inner.end(state);
    }
}
