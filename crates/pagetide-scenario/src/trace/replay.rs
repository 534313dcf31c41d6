//! A trace as the stream of operations of a task.

use std::fs::File;
use std::path::Path;

use super::error::TraceError;
use super::format::{self, Clock, Kinds, Record, RegionKind};
use super::reader::Reader;
use crate::model::Advice;
use crate::op::{Backing, Op};
use pagetide_core::page_size::PageSize;

/// Instructions that a CPU of the simulated machine executes in a nanosecond while it replays a
/// trace: 2 GHz and one instruction a cycle. It turns a trace's instruction counts into
/// [`Op::Compute`]; it is not there to be tuned.
pub const INSTRUCTIONS_PER_NS: u64 = 2;

/// Shortest [`Op::Compute`] within a trace: shorter pieces are added up until they reach it, for
/// between two accesses of a window lie but a few hundred instructions. No time is lost.
pub const COMPUTE_GRAIN_NS: u64 = 1_000;

/// Replays a trace file.
///
/// First come the regions in the order of their numbers, then the records, `passes` times: the
/// time before a record's first reference as [`Op::Compute`] (instructions) or [`Op::Sleep`]
/// (wall clock), then one [`Op::Access`], which writes if any reference of the record does.
#[derive(Debug)]
pub struct Replay {
    reader: Reader<File>,
    passes: u32,
    /// Number of the trace's first region within the task.
    first_region: u32,
    /// log2 of the trace's pages in one of the machine's.
    fold: u32,
    /// Regions mapped so far.
    mapped: u32,
    /// Time not yet given out, in units of the trace's clock.
    owed: u64,
    /// A record whose time has been given out but not its access.
    record: Option<Record>,
}

impl Replay {
    /// Opens a trace to be replayed `passes` times.
    pub fn open(path: impl AsRef<Path>, passes: u32) -> Result<Replay, TraceError> {
        let reader = Reader::open(path)?;
        Ok(Replay { reader, passes, first_region: 0, fold: 0, mapped: 0, owed: 0, record: None })
    }

    /// Numbers the trace's regions from `first` instead of 0, for a task that has others.
    #[must_use]
    pub fn with_first_region(mut self, first: u32) -> Replay {
        self.first_region = first;
        self
    }

    /// Folds the trace's pages into larger ones: as many neighbours as fit become one page, regions
    /// are rounded up, and every access stays one access.
    #[must_use]
    pub fn with_page_size(mut self, page_size: PageSize) -> Replay {
        self.fold = page_size.shift() - format::PAGE_SIZE.trailing_zeros();
        self
    }

    /// The reader behind it, for the header.
    pub fn reader(&self) -> &Reader<File> {
        &self.reader
    }

    /// The next operation; `None` at the end.
    #[inline]
    pub fn next_op(&mut self) -> Result<Option<Op>, TraceError> {
        if let Some(record) = self.record.take() {
            return Ok(Some(self.access(&record)));
        }
        if self.passes > 0 && (self.mapped as usize) < self.reader.header().regions.len() {
            return Ok(Some(self.next_map()));
        }
        while self.passes > 0 {
            let Some(record) = self.reader.next_record()? else {
                self.end_pass()?;
                if let Some(op) = self.pay(1) {
                    return Ok(Some(op));
                }
                continue;
            };
            self.owed = self.owed.saturating_add(record.time);
            if let Some(op) = self.pay(COMPUTE_GRAIN_NS) {
                self.record = Some(record);
                return Ok(Some(op));
            }
            return Ok(Some(self.access(&record)));
        }
        Ok(None)
    }

    fn next_map(&mut self) -> Op {
        let number = self.mapped;
        let region = &self.reader.header().regions[number as usize];
        self.mapped += 1;
        let (backing, executable) = match region.kind {
            RegionKind::Anon => (Backing::Heap, false),
            RegionKind::File { key, executable } => (Backing::TraceFile { key }, executable),
        };
        Op::Map {
            region: self.first_region + number,
            backing,
            pages: region.pages.div_ceil(1 << self.fold),
            advice: Advice::Normal,
            executable,
        }
    }

    /// At the end of a pass: the rest of its time is owed, and the next one begins.
    fn end_pass(&mut self) -> Result<(), TraceError> {
        let totals = *self.reader.totals().expect("the reader came to its end");
        self.owed = self.owed.saturating_add(totals.time - self.reader.time());
        self.passes -= 1;
        if totals.records == 0 {
            self.passes = 0;
        }
        if self.passes > 0 {
            self.reader.rewind()?;
        }
        Ok(())
    }

    /// Time owed as an operation, if it comes to `grain_ns`.
    fn pay(&mut self, grain_ns: u64) -> Option<Op> {
        match self.reader.header().clock {
            Clock::Instructions => {
                let ns = self.owed / INSTRUCTIONS_PER_NS;
                if ns < grain_ns {
                    return None;
                }
                self.owed %= INSTRUCTIONS_PER_NS;
                Some(Op::Compute { ns })
            }
            Clock::Nanoseconds => {
                let ns = std::mem::take(&mut self.owed);
                (ns > 0).then_some(Op::Sleep { ns })
            }
        }
    }

    fn access(&self, record: &Record) -> Op {
        Op::Access {
            region: self.first_region + record.region,
            page: record.page >> self.fold,
            write: record.kinds.contains(Kinds::WRITE),
        }
    }
}
