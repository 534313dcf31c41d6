//! `workload = "file-write"`: appends to a file with write() calls, like dd, or overwrites blocks of
//! it in an order.

use super::prelude::*;
use super::calls::{check_call_order, BlockCalls};
use super::order::PageOrder;
use crate::op::FILE_SIZE_MAX;
use crate::load::check::phases::{check_block, DEFAULT_BLOCK};
use crate::load::decode::Hundredths;
use crate::names::OrderKind;

table! {
    /// Appends to a file with write() calls, or overwrites its blocks.
    FileWriteKeys of "workload file-write" {
        /// File to write to.
        file: Spanned<NameKey> => required "\"data\"",
        /// Bytes to write (default: until the task is stopped).
        total: Spanned<Size>,
        /// Size of a call (default 64KiB).
        block: Spanned<Size> = DEFAULT_BLOCK,
        /// Order in which blocks are overwritten (default: appends).
        order: Spanned<OrderKind>,
        /// Exponent of order zipf (default 1.0).
        exponent: Spanned<Hundredths>,
    }
}

/// write() calls that start at the end of the file, or overwrite blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileWriteWorkload {
    /// Index into [`Setup::files`](crate::model::Setup::files).
    pub file: usize,
    /// Total bytes; `None`: until stopped.
    pub bytes: Option<u64>,
    /// Bytes per call.
    pub block: u64,
    /// The order of the blocks that are overwritten; `None`: appends.
    pub order: Option<PageOrder>,
}

impl WorkloadSpec for FileWriteWorkload {
    type Keys = FileWriteKeys;

    fn check(keys: &FileWriteKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let name = keys.file(sink)?;
        let file = phases.files.names.find(name, sink)?;
        check_block(&keys.block, sink);
        let block = keys.block();
        let order = match &keys.order {
            Some(_) => {
                let size = phases.not_empty(file, name, sink)?;
                Some(check_call_order(&keys.order, &keys.exponent, (size, block), sink)?)
            }
            None => {
                check_call_order(&None, &keys.exponent, (0, block), sink)?;
                if let Some(total) = &keys.total {
                    phases.check_growth(file, total.value.0, total.span, sink);
                }
                None
            }
        };
        let bytes = keys.total.as_ref().map(|total| total.value.0);
        Some(FileWriteWorkload { file, bytes, block: block.0, order })
    }

    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let FileWriteWorkload { file, bytes, block, order } = *self;
        vec![match order {
            None => append(planner, file, bytes, block),
            Some(order) => {
                let (write_percent, log, draws) = (100, None, "writes");
                BlockCalls { file, block, order, write_percent, log, draws }.stage(planner, bytes)
            }
        }]
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
