//! Replays a page trace within a task: its steps become operations of the task. Its regions are
//! numbered after the task's own, and are unmapped when the trace ends, as when a program exits.

use crate::op::Advice;
use crate::op::{Op, RegionBacking};
use pagetide_core::units::page_size::PageSize;
use pagetide_trace::format::PAGE_SIZE;
use pagetide_trace::{RegionKind, Replay, ReplayStep, Tape, TraceError};
use std::path::Path;
use std::sync::Arc;

/// A trace phase in progress.
#[derive(Debug)]
pub(super) struct TraceReplay {
    replay: Replay,
    /// Number of the trace's first region within the task.
    base: u32,
    /// Mapped regions of the trace: numbers from `first` up to but excluding `end`.
    first: u32,
    end: u32,
    has_ended: bool,
    /// Advice on regions of files.
    advice: Advice,
}

impl TraceReplay {
    /// `first`: number of the trace's first region within the task. Without `advice`, a trace of
    /// objects is replayed without read-ahead: neighbours in its file are unrelated objects.
    pub(super) fn open(
        path: &Path,
        passes: u32,
        advice: Option<Advice>,
        first: u32,
        page_size: PageSize,
    ) -> Result<Self, TraceError> {
        // Several pages of the trace may share one page of the machine.
        let shift = page_size.shift() - PAGE_SIZE.trailing_zeros();
        let replay = Replay::open(path, passes)?.folded(shift);
        let advice = advice.unwrap_or(match replay.header().is_request_trace() {
            true => Advice::Random,
            false => Advice::Normal,
        });
        Ok(Self { replay, base: first, first, end: first, has_ended: false, advice })
    }

    /// Fast path: the next operation if its record is in memory; otherwise `None`.
    #[inline(always)]
    pub(super) fn next_played(&mut self) -> Option<Op> {
        let step = self.replay.next_played()?;
        Some(self.op_of(step))
    }

    pub(super) fn next_op(&mut self) -> Result<Option<Op>, TraceError> {
        if !self.has_ended {
            if let Some(step) = self.replay.next_step()? {
                return Ok(Some(self.op_of(step)));
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

    #[inline(always)]
    fn op_of(&mut self, step: ReplayStep) -> Op {
        match step {
            ReplayStep::Map { region, kind, pages } => self.map(region, kind, pages),
            ReplayStep::Access { region, page, write } => {
                Op::Access { region: self.base + region, page, write }
            }
            ReplayStep::Compute { ns } => Op::Compute { ns },
            ReplayStep::Sleep { ns } => Op::Sleep { ns },
        }
    }

    #[inline(never)]
    fn map(&mut self, region: u32, kind: RegionKind, pages: u64) -> Op {
        let region = self.base + region;
        assert_eq!(region, self.end, "regions of a trace are mapped in their order");
        self.end += 1;
        let (backing, executable, advice) = match kind {
            RegionKind::Anon => (RegionBacking::Heap, false, Advice::Normal),
            RegionKind::File { key, executable } => {
                (RegionBacking::TraceFile { key }, executable, self.advice)
            }
        };
        Op::Map { region, backing, pages, advice, executable }
    }

    /// The trace in memory, once it has been read to its end.
    pub(super) fn tape(&self) -> Option<Arc<Tape>> {
        self.replay.tape()
    }

    /// The number of the task's next region.
    pub(super) fn next_region(&self) -> u32 {
        self.end
    }
}
