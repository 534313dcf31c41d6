//! A short trace in memory, as what a replay needs of it. A build performs the compiler's accesses once for each of its
//! units, and its jobs perform the same ones: unpacked every time, they took a third of a whole simulation.
//!
//! Linux has no such thing.
//!
//! Invariant: a tape has all records of a trace that was read to its end, where its totals agree with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use crate::format::{Header, Kinds, Record};

/// Records of the longest trace that is kept: 16 MiB of them. A longer one is read anew each time.
pub(crate) const RECORDS_MAX: usize = 1 << 20;

/// One record: an access and the time before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// From bit 17 on the page, below 2^34; then the region, below 2^16; and whether it is written.
    access: u64,
    /// In units of the trace's clock.
    pub time: u64,
}

impl Kept {
    pub(crate) fn new(record: &Record) -> Kept {
        let write = u64::from(record.kinds.contains(Kinds::WRITE));
        Kept {
            access: record.page << 17 | u64::from(record.region) << 1 | write,
            time: record.time,
        }
    }

    pub(crate) fn region(self) -> u32 {
        u32::from((self.access >> 1) as u16)
    }

    pub(crate) fn page(self) -> u64 {
        self.access >> 17
    }

    pub(crate) fn is_write(self) -> bool {
        self.access & 1 != 0
    }
}

/// All of a trace.
#[derive(Debug)]
pub struct Tape {
    pub(crate) header: Header,
    pub(crate) records: Vec<Kept>,
    /// Time after the first reference of the last record.
    pub(crate) rest: u64,
}

/// A file as it is at a moment: where it is, how long it is, and when it was changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileNow(PathBuf, u64, SystemTime);

impl FileNow {
    /// `None` where the system does not say when a file was changed: such a file is read each time.
    pub(crate) fn of(path: &Path) -> Option<FileNow> {
        let about = std::fs::metadata(path).ok()?;
        Some(FileNow(path.to_path_buf(), about.len(), about.modified().ok()?))
    }
}

/// The tapes that somebody has. They are the same for all runs of the process.
static TAPES: Mutex<BTreeMap<FileNow, Weak<Tape>>> = Mutex::new(BTreeMap::new());

/// The tape of a file, if somebody has it.
pub(crate) fn of_file(file: &FileNow) -> Option<Arc<Tape>> {
    let tapes = TAPES.lock().unwrap_or_else(PoisonError::into_inner);
    tapes.get(file).and_then(Weak::upgrade)
}

/// Shares a tape of a file. If another of it was made meanwhile, there is one from now on.
pub(crate) fn share(file: &FileNow, tape: Tape) -> Arc<Tape> {
    let mut tapes = TAPES.lock().unwrap_or_else(PoisonError::into_inner);
    tapes.retain(|_, tape| tape.strong_count() > 0);
    if let Some(tape) = tapes.get(file).and_then(Weak::upgrade) {
        return tape;
    }
    let tape = Arc::new(tape);
    tapes.insert(file.clone(), Arc::downgrade(&tape));
    tape
}
