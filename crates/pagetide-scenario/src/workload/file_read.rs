//! `workload = "file-read"`: reads a file with read() calls: from start to end, and again, or blocks
//! in another order.

use super::prelude::*;
use super::calls::{check_call_order, BlockCalls};
use super::order::PageOrder;
use crate::load::check::phases::{check_block, DEFAULT_BLOCK};
use crate::load::decode::Hundredths;
use crate::names::OrderKind;

table! {
    /// Reads a file with read() calls.
    FileReadKeys of "workload file-read" {
        /// File to read.
        file: Spanned<NameKey> => required "\"data\"",
        /// Bytes to read (default: the whole file once).
        total: Spanned<Size>,
        /// Size of a call (default 64KiB).
        block: Spanned<Size> = DEFAULT_BLOCK,
        /// Order of the blocks (default sequential).
        order: Spanned<OrderKind>,
        /// Exponent of order zipf (default 1.0).
        exponent: Spanned<Hundredths>,
        /// Share of the calls that write the block (default 0).
        write_percent: Spanned<Int<0, 100>> = Int(0),
        /// File to which these calls append instead.
        log: Spanned<NameKey>,
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
    pub order: PageOrder,
    /// Share of the calls that write.
    pub write_percent: u32,
    /// The file to which they append, index into [`Setup::files`](crate::model::Setup::files);
    /// `None`: they overwrite the block.
    pub log: Option<usize>,
}

impl WorkloadSpec for FileReadWorkload {
    type Keys = FileReadKeys;

    fn check(keys: &FileReadKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let name = keys.file(sink)?;
        let file = phases.files.names.find(name, sink)?;
        check_block(&keys.block, sink);
        let size = phases.not_empty(file, name, sink)?;
        let bytes = keys.total.as_ref().map_or(size, |total| total.value.0);
        let block = keys.block();
        let order = check_call_order(&keys.order, &keys.exponent, (size, block), sink)?;
        let write_percent = keys.write_percent().into();
        let log = match &keys.log {
            Some(log) => {
                if write_percent == 0 {
                    let hint = "add write_percent = 50, for example, or leave out `log`";
                    sink.hinted(log.span, "no call writes to this `log`", hint);
                    return None;
                }
                let file = phases.files.names.find(log, sink)?;
                phases.check_growth(file, bytes, log.span, sink);
                Some(file)
            }
            None => None,
        };
        Some(FileReadWorkload { file, bytes, block: block.0, order, write_percent, log })
    }

    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let FileReadWorkload { file, bytes, block, order, write_percent, log } = *self;
        if order == PageOrder::Sequential && write_percent == 0 {
            return vec![read(planner, file, bytes, block)];
        }
        let calls = BlockCalls { file, block, order, write_percent, log, draws: "reads" };
        vec![calls.stage(planner, Some(bytes))]
    }

    fn files(&mut self, each: &mut dyn FnMut(&mut usize, bool)) {
        each(&mut self.file, self.write_percent > 0 && self.log.is_none());
        if let Some(log) = &mut self.log {
            each(log, true);
        }
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
