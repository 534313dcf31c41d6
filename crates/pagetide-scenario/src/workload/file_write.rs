//! `workload = "file-write"`: appends to a file with write() calls, like dd.

use super::prelude::*;
use crate::op::FILE_SIZE_MAX;
use crate::load::check::phases::{check_block, DEFAULT_BLOCK};

table! {
    /// Appends to a file with write() calls.
    FileWriteKeys of "workload file-write" {
        /// File to append to.
        file: Spanned<NameKey> => required "\"data\"",
        /// Bytes to write (default: until the task is stopped).
        total: Spanned<Size>,
        /// Size of a call (default 64KiB).
        block: Spanned<Size> = DEFAULT_BLOCK,
    }
}

/// write() calls that start at the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileWriteWorkload {
    /// Index into [`Setup::files`](crate::model::Setup::files).
    pub file: usize,
    /// Total bytes; `None`: until stopped.
    pub bytes: Option<u64>,
    /// Bytes per call.
    pub block: u64,
}

impl WorkloadSpec for FileWriteWorkload {
    type Keys = FileWriteKeys;

    fn check(keys: &FileWriteKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let file = phases.files.names.find(keys.file(sink)?, sink)?;
        check_block(&keys.block, sink);
        if let Some(total) = &keys.total {
            phases.check_growth(file, total.value.0, total.span, sink);
        }
        let bytes = keys.total.as_ref().map(|total| total.value.0);
        Some(FileWriteWorkload { file, bytes, block: keys.block().0 })
    }

    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        vec![append(planner, self.file, self.bytes, self.block)]
    }

    fn files(&mut self, each: &mut dyn FnMut(&mut usize, bool)) {
        each(&mut self.file, true);
    }

    fn missing_end(&self) -> Option<&'static str> {
        self.bytes.is_none().then_some("total = \"1GiB\"")
    }
}

/// Appends to a file from the task's last position, or from the end of the file.
pub(super) fn append(
    planner: &mut Planner<'_>,
    file: usize,
    left: Option<u64>,
    block: u64,
) -> PhaseStage {
    let size = planner.file_sizes[file];
    planner.state.positions.entry(file).or_insert(size);
    PhaseStage::run(move |state, _| {
        let offset = state.positions[&file];
        Box::new(Writes { file, offset, left, block }).into()
    })
}

/// Generates write() calls.
#[derive(Debug)]
struct Writes {
    file: usize,
    offset: u64,
    /// `None`: until stopped.
    left: Option<u64>,
    block: u64,
}

impl Generator for Writes {
    fn next_op(&mut self) -> Option<Op> {
        let len = self.left.map_or(self.block, |left| left.min(self.block));
        let end = self.offset.checked_add(len)?;
        if len == 0 || end > FILE_SIZE_MAX {
            return None;
        }
        let op = Op::Write { file: self.file, offset: self.offset, len };
        self.offset = end;
        self.left = self.left.map(|left| left - len);
        Some(op)
    }

    fn end(self: Box<Self>, state: &mut ProgramState) {
        state.positions.insert(self.file, self.offset);
    }
}
