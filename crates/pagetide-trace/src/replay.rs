//! A trace as the stream of its program's steps: regions, accesses, and the time between accesses.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::error::TraceError;
use crate::format::{Clock, Header, RegionKind};
use crate::reader::Reader;
use crate::tape::{self, FileNow, Kept, Tape};

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
    source: Source,
    passes: u32,
    /// log2 of the trace's pages in one page of a step.
    fold: u32,
    /// Regions mapped so far.
    mapped: u32,
    /// Time not yet given out, in units of the trace's clock.
    owed: u64,
    /// A record whose time has been given out but not its access.
    record: Option<Kept>,
}

/// Where the records come from.
#[derive(Debug)]
enum Source {
    /// From the file, and they are kept if it is short.
    Reading(Box<Reading>),
    /// From memory; with the number of the next one.
    Playing(Arc<Tape>, usize),
}

#[derive(Debug)]
struct Reading {
    reader: Reader<File>,
    /// `None`: the trace is too long to be kept, or its file cannot be told from what it may become.
    kept: Option<(FileNow, Vec<Kept>)>,
}

impl Reading {
    fn next(&mut self) -> Result<Option<Kept>, TraceError> {
        let Some(record) = self.reader.next_record()? else { return Ok(None) };
        let record = Kept::new(&record);
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
    /// Opens a trace to be replayed `passes` times.
    pub fn open(path: impl AsRef<Path>, passes: u32) -> Result<Replay, TraceError> {
        let path = path.as_ref();
        let file = FileNow::of(path);
        let source = match file.as_ref().and_then(tape::of_file) {
            Some(tape) => Source::Playing(tape, 0),
            None => {
                let reader = Reader::open(path)?;
                let kept = file.map(|file| (file, Vec::new()));
                Source::Reading(Box::new(Reading { reader, kept }))
            }
        };
        Ok(Replay { source, passes, fold: 0, mapped: 0, owed: 0, record: None })
    }

    /// The whole trace in memory, once it has been read to its end, unless it is long. Who holds on to it makes the
    /// next [`Replay::open`] of the file a short one.
    pub fn tape(&self) -> Option<Arc<Tape>> {
        match &self.source {
            Source::Playing(tape, _) => Some(Arc::clone(tape)),
            Source::Reading(_) => None,
        }
    }

    /// Folds the trace's pages into larger ones: `1 << shift` neighbours become one page, regions
    /// are rounded up, and every access stays one access.
    #[must_use]
    pub fn folded(mut self, shift: u32) -> Replay {
        self.fold = shift;
        self
    }

    /// The header of the trace.
    pub fn header(&self) -> &Header {
        match &self.source {
            Source::Reading(reading) => reading.reader.header(),
            Source::Playing(tape, _) => &tape.header,
        }
    }

    /// The next step; `None` at the end.
    pub fn next_step(&mut self) -> Result<Option<Step>, TraceError> {
        if let Some(step) = self.next_played() {
            return Ok(Some(step));
        }
        if self.passes > 0 && (self.mapped as usize) < self.header().regions.len() {
            return Ok(Some(self.next_map()));
        }
        while self.passes > 0 {
            let record = match &mut self.source {
                Source::Playing(tape, at) => take_next(tape, at),
                Source::Reading(reading) => reading.next()?,
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

    /// The next step if it is that of a record in memory: the common case, in which nothing can go wrong. `None` says
    /// nothing; [`Replay::next_step`] goes on.
    #[inline(always)]
    pub fn next_played(&mut self) -> Option<Step> {
        if let Some(record) = self.record.take() {
            return Some(self.access(record));
        }
        let Source::Playing(tape, at) = &mut self.source else { return None };
        if self.passes == 0 || (self.mapped as usize) < tape.header.regions.len() {
            return None;
        }
        let record = take_next(tape, at)?;
        Some(self.step_of(record))
    }

    /// The time before a record, or its access at once if that time is short.
    #[inline(always)]
    fn step_of(&mut self, record: Kept) -> Step {
        self.owed = self.owed.saturating_add(record.time);
        match self.pay(COMPUTE_GRAIN_NS) {
            Some(step) => {
                self.record = Some(record);
                step
            }
            None => self.access(record),
        }
    }

    fn next_map(&mut self) -> Step {
        let number = self.mapped;
        self.mapped += 1;
        let region = &self.header().regions[number as usize];
        let pages = region.pages.div_ceil(1 << self.fold);
        Step::Map { region: number, kind: region.kind, pages }
    }

    /// At the end of a pass: the rest of its time is owed, and the next one begins.
    fn end_pass(&mut self) -> Result<(), TraceError> {
        self.passes -= 1;
        let (rest, is_empty) = match &mut self.source {
            Source::Playing(tape, at) => {
                *at = 0;
                (tape.rest, tape.records.is_empty())
            }
            Source::Reading(reading) => {
                let Reading { reader, kept } = &mut **reading;
                let totals = *reader.totals().expect("the reader came to its end");
                let rest = totals.time - reader.time();
                if let Some((file, records)) = kept.take() {
                    let header = reader.header().clone();
                    let tape = tape::share(&file, Tape { header, records, rest });
                    self.source = Source::Playing(tape, 0);
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

    /// Time owed as a step, if it comes to `grain_ns`.
    #[inline]
    fn pay(&mut self, grain_ns: u64) -> Option<Step> {
        match self.header().clock {
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

    #[inline]
    fn access(&self, record: Kept) -> Step {
        Step::Access {
            region: record.region(),
            page: record.page() >> self.fold,
            write: record.is_write(),
        }
    }
}

/// The next record of a tape.
#[inline]
fn take_next(tape: &Tape, at: &mut usize) -> Option<Kept> {
    let record = *tape.records.get(*at)?;
    *at += 1;
    Some(record)
}
