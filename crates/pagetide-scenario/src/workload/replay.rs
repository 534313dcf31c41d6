//! A page trace within a task: its regions are numbered after those that the task has already, and
//! go when the trace ends, as those of a program that exits.

use crate::op::Op;
use crate::trace::{Replay, TraceError};
use pagetide_core::page_size::PageSize;
use std::path::Path;

/// A trace phase on its way.
#[derive(Debug)]
pub(super) struct Replayed {
    replay: Replay,
    /// The trace's regions that are mapped: numbers from `first` on, below `end`.
    first: u32,
    end: u32,
    has_ended: bool,
}

impl Replayed {
    /// `first` is the number of the trace's first region within the task.
    pub(super) fn open(
        path: &Path,
        passes: u32,
        first: u32,
        page_size: PageSize,
    ) -> Result<Self, TraceError> {
        let replay = Replay::open(path, passes)?.with_first_region(first).with_page_size(page_size);
        Ok(Self { replay, first, end: first, has_ended: false })
    }

    pub(super) fn next_op(&mut self) -> Result<Option<Op>, TraceError> {
        if !self.has_ended {
            if let Some(op) = self.replay.next_op()? {
                if let Op::Map { region, .. } = op {
                    assert_eq!(region, self.end, "regions of a trace are mapped in their order");
                    self.end += 1;
                }
                return Ok(Some(op));
            }
            self.has_ended = true;
        }
        if self.first == self.end {
            return Ok(None);
        }
        let region = self.first;
        self.first += 1;
        Ok(Some(Op::Unmap { region }))
    }

    /// The number that the next region of the task gets.
    pub(super) fn next_region(&self) -> u32 {
        self.end
    }
}
