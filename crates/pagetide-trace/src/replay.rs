//! A trace as the stream of its program's steps: regions, accesses, and the time between accesses.

use std::fs::File;
use std::path::Path;

use crate::error::TraceError;
use crate::format::{Clock, Kinds, Record, RegionKind};
use crate::reader::Reader;

/// Instructions that a CPU executes in a nanosecond while it replays a
/// trace: 2 GHz and one instruction a cycle. It turns a trace's instruction counts into
/// [`Step::Compute`]; it is not there to be tuned.
pub const INSTRUCTIONS_PER_NS: u64 = 2;

/// Shortest [`Step::Compute`] within a trace: shorter pieces are added up until they reach it, for
/// between two accesses of a window lie but a few hundred instructions. No time is lost.
pub const COMPUTE_GRAIN_NS: u64 = 1_000;

/// One step of a replay. Regions have the trace's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next region appears, with so many pages.
    Map {
        /// Its number.
        region: u32,
        /// What its pages are.
        kind: RegionKind,
        /// Its size.
        pages: u64,
    },
    /// A page is used.
    Access {
        /// The region.
        region: u32,
        /// Page within the region.
        page: u64,
        /// Written, not only read or executed.
        write: bool,
    },
    /// The program computes for so many nanoseconds.
    Compute {
        /// Duration.
        ns: u64,
    },
    /// No request arrives for so many nanoseconds.
    Sleep {
        /// Duration.
        ns: u64,
    },
}

/// Replays a trace file.
///
/// First come the regions in the order of their numbers, then the records, `passes` times: the
/// time before a record's first reference as [`Step::Compute`] (instructions) or [`Step::Sleep`]
/// (wall clock), then one [`Step::Access`], which writes if any reference of the record does.
#[derive(Debug)]
pub struct Replay {
    reader: Reader<File>,
    passes: u32,
    /// log2 of the trace's pages in one page of a step.
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
        Ok(Replay { reader, passes, fold: 0, mapped: 0, owed: 0, record: None })
    }

    /// Folds the trace's pages into larger ones: `1 << shift` neighbours become one page, regions
    /// are rounded up, and every access stays one access.
    #[must_use]
    pub fn folded(mut self, shift: u32) -> Replay {
        self.fold = shift;
        self
    }

    /// The reader behind it, for the header.
    pub fn reader(&self) -> &Reader<File> {
        &self.reader
    }

    /// The next step; `None` at the end.
    #[inline]
    pub fn next_step(&mut self) -> Result<Option<Step>, TraceError> {
        if let Some(record) = self.record.take() {
            return Ok(Some(self.access(&record)));
        }
        if self.passes > 0 && (self.mapped as usize) < self.reader.header().regions.len() {
            return Ok(Some(self.next_map()));
        }
        while self.passes > 0 {
            let Some(record) = self.reader.next_record()? else {
                self.end_pass()?;
                if let Some(step) = self.pay(1) {
                    return Ok(Some(step));
                }
                continue;
            };
            self.owed = self.owed.saturating_add(record.time);
            if let Some(step) = self.pay(COMPUTE_GRAIN_NS) {
                self.record = Some(record);
                return Ok(Some(step));
            }
            return Ok(Some(self.access(&record)));
        }
        Ok(None)
    }

    fn next_map(&mut self) -> Step {
        let number = self.mapped;
        let region = &self.reader.header().regions[number as usize];
        self.mapped += 1;
        let pages = region.pages.div_ceil(1 << self.fold);
        Step::Map { region: number, kind: region.kind, pages }
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

    /// Time owed as a step, if it comes to `grain_ns`.
    fn pay(&mut self, grain_ns: u64) -> Option<Step> {
        match self.reader.header().clock {
            Clock::Instructions => {
                let ns = self.owed / INSTRUCTIONS_PER_NS;
                if ns < grain_ns {
                    return None;
                }
                self.owed %= INSTRUCTIONS_PER_NS;
                Some(Step::Compute { ns })
            }
            Clock::Nanoseconds => {
                let ns = std::mem::take(&mut self.owed);
                (ns > 0).then_some(Step::Sleep { ns })
            }
        }
    }

    fn access(&self, record: &Record) -> Step {
        Step::Access {
            region: record.region,
            page: record.page >> self.fold,
            write: record.kinds.contains(Kinds::WRITE),
        }
    }
}
