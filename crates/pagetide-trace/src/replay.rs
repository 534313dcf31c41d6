//! Replay of a trace as a stream of steps: regions, accesses, and the time between accesses.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::error::TraceError;
use crate::format::{Clock, Header, RegionKind};
use crate::reader::TraceReader;
use crate::tape::{self, FileVersion, Tape, TapeRecord};

/// Instructions per nanosecond in [`ReplayStep::Compute`]: 2 GHz and one instruction a cycle. Not a
/// tunable.
pub const INSTRUCTIONS_PER_NS: u64 = 2;

/// Shortest [`ReplayStep::Compute`] within a trace. Two accesses of a window are only a few hundred
/// instructions apart, so shorter times are added up until they reach this. No time is lost.
pub const COMPUTE_GRAIN_NS: u64 = 1_000;

/// One step of a replay. Regions have the trace's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayStep {
    /// Maps the next region.
    Map { region: u32, kind: RegionKind, pages: u64 },
    /// Accesses a page.
    Access {
        region: u32,
        /// Page within the region.
        page: u64,
        /// False if the page is only read or executed.
        write: bool,
    },
    /// Computes.
    Compute { ns: u64 },
    /// Waits for the next request.
    Sleep { ns: u64 },
}

/// Replays a trace file.
///
/// The regions come first, in the order of their numbers. The records follow, `passes` times: for
/// each the time before its first reference as [`ReplayStep::Compute`] (instructions) or
/// [`ReplayStep::Sleep`] (wall clock), then one [`ReplayStep::Access`], which is a write if any
/// reference of the record is.
#[derive(Debug)]
pub struct Replay {
    source: ReplaySource,
    passes: u32,
    /// log2 of the number of trace pages in one page of a step.
    fold: u32,
    /// Regions mapped so far.
    mapped: u32,
    /// Time not yet returned in a step, in units of the trace's clock.
    owed: u64,
    /// A record whose time has been returned, but not its access.
    record: Option<TapeRecord>,
}

#[derive(Debug)]
enum ReplaySource {
    /// Records from the file.
    Reading(Box<FileReplay>),
    /// Records from memory, and the index of the next.
    Playing(Arc<Tape>, usize),
}

#[derive(Debug)]
struct FileReplay {
    reader: TraceReader<File>,
    /// Records read so far. `None` if the trace is too long for the cache, or the file has no
    /// modification time.
    kept: Option<(FileVersion, Vec<TapeRecord>)>,
}

impl FileReplay {
    fn next(&mut self) -> Result<Option<TapeRecord>, TraceError> {
        let Some(record) = self.reader.next_record()? else { return Ok(None) };
        let record = TapeRecord::new(&record);
        if let Some((_, records)) = &mut self.kept {
            match records.len() < tape::RECORDS_MAX {
                true => records.push(record),
                false => self.kept = None,
            }
        }
        Ok(Some(record))
    }
}

impl Replay {
    /// Opens a trace for `passes` replays.
    pub fn open(path: impl AsRef<Path>, passes: u32) -> Result<Replay, TraceError> {
        let path = path.as_ref();
        let file = FileVersion::of(path);
        let source = match file.as_ref().and_then(tape::of_file) {
            Some(tape) => ReplaySource::Playing(tape, 0),
            None => {
                let reader = TraceReader::open(path)?;
                let kept = file.map(|file| (file, Vec::new()));
                ReplaySource::Reading(Box::new(FileReplay { reader, kept }))
            }
        };
        Ok(Replay { source, passes, fold: 0, mapped: 0, owed: 0, record: None })
    }

    /// The trace in memory, after one pass; `None` if it is too long. As long as the caller keeps
    /// it, [`Replay::open`] of the same file uses it and reads nothing.
    pub fn tape(&self) -> Option<Arc<Tape>> {
        match &self.source {
            ReplaySource::Playing(tape, _) => Some(Arc::clone(tape)),
            ReplaySource::Reading(_) => None,
        }
    }

    /// Folds the trace's pages into larger pages: `1 << shift` neighbours become one page. Region
    /// sizes are rounded up. Every access stays one access.
    #[must_use]
    pub fn folded(mut self, shift: u32) -> Replay {
        self.fold = shift;
        self
    }

    pub fn header(&self) -> &Header {
        match &self.source {
            ReplaySource::Reading(reading) => reading.reader.header(),
            ReplaySource::Playing(tape, _) => &tape.header,
        }
    }

    /// The next step; `None` at the end.
    pub fn next_step(&mut self) -> Result<Option<ReplayStep>, TraceError> {
        if let Some(step) = self.next_played() {
            return Ok(Some(step));
        }
        if self.passes > 0 && (self.mapped as usize) < self.header().regions.len() {
            return Ok(Some(self.next_map()));
        }
        while self.passes > 0 {
            let record = match &mut self.source {
                ReplaySource::Playing(tape, at) => take_next(tape, at),
                ReplaySource::Reading(reading) => reading.next()?,
            };
            let Some(record) = record else {
                self.end_pass()?;
                if let Some(step) = self.pay(1) {
                    return Ok(Some(step));
                }
                continue;
            };
            return Ok(Some(self.step_of(record)));
        }
        Ok(None)
    }

    /// Fast path: the next step of a record in memory, which cannot fail. After `None`, call
    /// [`Replay::next_step`], which may still have a step.
    #[inline(always)]
    pub fn next_played(&mut self) -> Option<ReplayStep> {
        if let Some(record) = self.record.take() {
            return Some(self.access(record));
        }
        let ReplaySource::Playing(tape, at) = &mut self.source else { return None };
        if self.passes == 0 || (self.mapped as usize) < tape.header.regions.len() {
            return None;
        }
        let record = take_next(tape, at)?;
        Some(self.step_of(record))
    }

    /// The time before a record, or its access if that time is below [`COMPUTE_GRAIN_NS`].
    #[inline(always)]
    fn step_of(&mut self, record: TapeRecord) -> ReplayStep {
        self.owed = self.owed.saturating_add(record.time);
        match self.pay(COMPUTE_GRAIN_NS) {
            Some(step) => {
                self.record = Some(record);
                step
            }
            None => self.access(record),
        }
    }

    fn next_map(&mut self) -> ReplayStep {
        let number = self.mapped;
        self.mapped += 1;
        let region = &self.header().regions[number as usize];
        let pages = region.pages.div_ceil(1 << self.fold);
        ReplayStep::Map { region: number, kind: region.kind, pages }
    }

    /// Ends a pass: adds the time after its last record and goes back to the first record.
    fn end_pass(&mut self) -> Result<(), TraceError> {
        self.passes -= 1;
        let (rest, is_empty) = match &mut self.source {
            ReplaySource::Playing(tape, at) => {
                *at = 0;
                (tape.rest, tape.records.is_empty())
            }
            ReplaySource::Reading(reading) => {
                let FileReplay { reader, kept } = &mut **reading;
                let totals = *reader.totals().expect("the reader came to its end");
                let rest = totals.time - reader.time();
                if let Some((file, records)) = kept.take() {
                    let header = reader.header().clone();
                    let tape = tape::share(&file, Tape { header, records, rest });
                    self.source = ReplaySource::Playing(tape, 0);
                } else if self.passes > 0 {
                    reader.rewind()?;
                }
                (rest, totals.records == 0)
            }
        };
        self.owed = self.owed.saturating_add(rest);
        if is_empty {
            self.passes = 0;
        }
        Ok(())
    }

    /// A step for the time owed, if that is at least `grain_ns`.
    #[inline]
    fn pay(&mut self, grain_ns: u64) -> Option<ReplayStep> {
        match self.header().clock {
            Clock::Instructions => {
                let ns = self.owed / INSTRUCTIONS_PER_NS;
                if ns < grain_ns {
                    return None;
                }
                self.owed %= INSTRUCTIONS_PER_NS;
                Some(ReplayStep::Compute { ns })
            }
            Clock::Nanoseconds => {
                let ns = std::mem::take(&mut self.owed);
                (ns > 0).then_some(ReplayStep::Sleep { ns })
            }
        }
    }

    #[inline]
    fn access(&self, record: TapeRecord) -> ReplayStep {
        ReplayStep::Access {
            region: record.region(),
            page: record.page() >> self.fold,
            write: record.is_write(),
        }
    }
}

#[inline]
fn take_next(tape: &Tape, at: &mut usize) -> Option<TapeRecord> {
    let record = *tape.records.get(*at)?;
    *at += 1;
    Some(record)
}
