//! `compute` of workloads that access memory: what the program does with a page besides touching one byte of it.
//!
//! Invariant: [`Op::Compute`] comes after each access and after nothing else, so it ends the phase if an access does.

use super::cursor::{Cursor, Generator};
use super::plan::{Stage, State};
use crate::op::Op;

/// A stage with `ns` of CPU time after each of its accesses; 0: the stage as it is.
pub(super) fn computing(stage: Stage, ns: u64) -> Stage {
    let Stage::Run(run) = &stage else { return stage };
    if ns == 0 {
        return stage;
    }
    let run = run.clone();
    Stage::run(move |state, round| {
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

    fn end(self: Box<Self>, state: &mut State) {
        self.inner.end(state);
    }
}
