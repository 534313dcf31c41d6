//! `workload = "file-read"`: reads a file with read() calls, and wraps around at its end.

use super::prelude::*;
use crate::load::check::phases::{check_block, DEFAULT_BLOCK};

table! {
    /// Reads a file with read() calls.
    FileReadKeys of "workload file-read" {
        /// File to read.
        file: Spanned<NameKey> => required "\"data\"",
        /// Bytes to read (default: the whole file once).
        total: Spanned<Size>,
        /// Size of a call (default 64KiB).
        block: Spanned<Size> = DEFAULT_BLOCK,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileReadWorkload {
    /// Index into [`Setup::files`](crate::model::Setup::files).
    pub file: usize,
    /// Total bytes; wraps around at the end of the file.
    pub bytes: u64,
    /// Bytes per call.
    pub block: u64,
}

impl WorkloadSpec for FileReadWorkload {
    type Keys = FileReadKeys;

    fn check(keys: &FileReadKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let name = keys.file(sink)?;
        let file = phases.files.names.find(name, sink)?;
        check_block(&keys.block, sink);
        let size = phases.not_empty(file, name, sink)?;
        let bytes = keys.total.as_ref().map_or(size, |total| total.value.0);
        Some(FileReadWorkload { file, bytes, block: keys.block().0 })
    }

    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        vec![read(planner, self.file, self.bytes, self.block)]
    }

    fn files(&mut self, each: &mut dyn FnMut(&mut usize, bool)) {
        each(&mut self.file, false);
    }
}

/// Reads `left` bytes of a file. Each round of the phase continues where the previous one stopped.
pub(super) fn read(planner: &Planner<'_>, file: usize, left: u64, block: u64) -> PhaseStage {
    let size = planner.file_sizes[file];
    PhaseStage::run(move |_, round| {
        let offset = part_offset(round, left, size);
        Box::new(Reads { file, size, offset, left, block }).into()
    })
}

/// Start of the part of a file that round `round` reads: each round reads `bytes` bytes, from the
/// start of the file, and wraps around.
fn part_offset(round: u32, bytes: u64, size: u64) -> u64 {
    let read = u128::from(round) * u128::from(bytes);
    (read % u128::from(size.max(1))) as u64
}

/// Generates read() calls from the start of the file, with wrap-around.
#[derive(Debug)]
struct Reads {
    file: usize,
    size: u64,
    offset: u64,
    left: u64,
    block: u64,
}

impl Generator for Reads {
    fn next_op(&mut self) -> Option<Op> {
        let len = self.block.min(self.left).min(self.size - self.offset);
        if len == 0 {
            return None;
        }
        let op = Op::Read { file: self.file, offset: self.offset, len };
        self.left -= len;
        self.offset += len;
        if self.offset == self.size {
            self.offset = 0;
        }
        Some(op)
    }
}
