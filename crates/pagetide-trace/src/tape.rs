//! Cache of short traces in memory. A `build` workload replays the compiler's trace once for each
//! unit, in all jobs; decompressing it every time took a third of a whole simulation.
//!
//! Invariant: a tape has all records of a trace that was read to its end and verified there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

use crate::format::{AccessKinds, Header, Record};

/// Most records of a cached trace (16 MiB). A longer trace is read from its file each time.
pub(crate) const RECORDS_MAX: usize = 1 << 20;

/// One record in memory: an access and the time before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TapeRecord {
    /// Bits 17 and up: page, below 2^34. Bits 1 to 16: region. Bit 0: write.
    access: u64,
    /// In units of the trace's clock.
    pub time: u64,
}

impl TapeRecord {
    pub(crate) fn new(record: &Record) -> TapeRecord {
        let write = u64::from(record.kinds.contains(AccessKinds::WRITE));
        TapeRecord {
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

/// A whole trace in memory.
#[derive(Debug)]
pub struct Tape {
    pub(crate) header: Header,
    pub(crate) records: Vec<TapeRecord>,
    /// Time after the first reference of the last record.
    pub(crate) rest: u64,
}

/// Identity of a version of a file: path, length, and modification time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileVersion(PathBuf, u64, SystemTime);

impl FileVersion {
    /// `None` if the system has no modification time; such a file is not cached.
    pub(crate) fn of(path: &Path) -> Option<FileVersion> {
        let about = std::fs::metadata(path).ok()?;
        Some(FileVersion(path.to_path_buf(), about.len(), about.modified().ok()?))
    }
}

/// The tapes in use. All runs in the process share them.
static TAPES: Mutex<BTreeMap<FileVersion, Weak<Tape>>> = Mutex::new(BTreeMap::new());

/// The tape of a file, if one is in use.
pub(crate) fn of_file(file: &FileVersion) -> Option<Arc<Tape>> {
    let tapes = TAPES.lock().unwrap_or_else(PoisonError::into_inner);
    tapes.get(file).and_then(Weak::upgrade)
}

/// Registers the tape of a file. If another thread has registered one, that one is returned.
pub(crate) fn share(file: &FileVersion, tape: Tape) -> Arc<Tape> {
    let mut tapes = TAPES.lock().unwrap_or_else(PoisonError::into_inner);
    tapes.retain(|_, tape| tape.strong_count() > 0);
    if let Some(tape) = tapes.get(file).and_then(Weak::upgrade) {
        return tape;
    }
    let tape = Arc::new(tape);
    tapes.insert(file.clone(), Arc::downgrade(&tape));
    tape
}
