//! read() and write() calls of whole blocks of a file, in one of the orders of pages.

use super::cursor::Generator;
use super::modulo::Scatter;
use super::order::PageOrder;
use super::plan::{PhaseStage, Planner};
use super::state::ProgramState;
use super::walk::check_order;
use crate::draws::prng::SplitMix64;
use crate::draws::zipf::{Zipf, ZIPF_RANKS_MAX};
use crate::load::decode::{Hundredths, Size};
use crate::load::span::{ProblemSink, Spanned};
use crate::load::units::show_size;
use crate::names::OrderKind;
use crate::op::Op;
use std::sync::Arc;

/// Calls on the blocks of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockCalls {
    /// Index into [`Setup::files`](crate::model::Setup::files).
    pub(super) file: usize,
    /// Bytes of a block.
    pub(super) block: u64,
    pub(super) order: PageOrder,
    /// Share of the calls that write.
    pub(super) write_percent: u32,
    /// The file to which they append; `None`: they overwrite the block.
    pub(super) log: Option<usize>,
    /// Name of the task's generator for random and Zipf draws.
    pub(super) draws: &'static str,
}

impl BlockCalls {
    /// Calls with `left` bytes in all; `None`: until the task is stopped.
    pub(super) fn stage(self, planner: &mut Planner<'_>, left: Option<u64>) -> PhaseStage {
        let size = planner.file_sizes[self.file];
        let blocks = size.div_ceil(self.block);
        let zipf = match self.order {
            PageOrder::Zipf { exponent_hundredths } => {
                Some(planner.zipf(blocks, exponent_hundredths))
            }
            PageOrder::Sequential | PageOrder::Scattered | PageOrder::Random => None,
        };
        if let Some(log) = self.log {
            let end = planner.file_sizes[log];
            planner.state.positions.entry(log).or_insert(end);
        }
        let scatter = Scatter::new(blocks);
        PhaseStage::run(move |state, _| {
            let (zipf, prng) = (zipf.clone(), state.draws(self.draws));
            let log = self.log.map(|log| (log, state.positions[&log]));
            Box::new(Calls { of: self, size, left, next: 0, prng, scatter, zipf, log }).into()
        })
    }
}

#[derive(Debug)]
struct Calls {
    of: BlockCalls,
    size: u64,
    left: Option<u64>,
    /// Next index of an order without draws.
    next: u64,
    prng: SplitMix64,
    scatter: Scatter,
    /// Ranks of the blocks.
    zipf: Option<Arc<Zipf>>,
    /// The log and the position in it.
    log: Option<(usize, u64)>,
}

impl Calls {
    fn next_block(&mut self) -> u64 {
        let blocks = self.scatter.pages();
        let index = self.next;
        match (self.of.order, &self.zipf) {
            (PageOrder::Sequential | PageOrder::Scattered, _) => {
                self.next = if index + 1 == blocks { 0 } else { index + 1 };
                let is_scattered = self.of.order == PageOrder::Scattered;
                if is_scattered {
                    self.scatter.page(index)
                } else {
                    index
                }
            }
            (PageOrder::Zipf { .. }, Some(zipf)) => {
                self.scatter.page(zipf.draw(&mut self.prng) - 1)
            }
            (PageOrder::Random | PageOrder::Zipf { .. }, _) => self.prng.below(blocks),
        }
    }

    fn next_writes(&mut self) -> bool {
        match u64::from(self.of.write_percent) {
            0 => false,
            100 => true,
            percent => self.prng.below(100) < percent,
        }
    }
}

impl Generator for Calls {
    fn next_op(&mut self) -> Option<Op> {
        if self.left == Some(0) {
            return None;
        }
        let BlockCalls { file, block, .. } = self.of;
        let offset = self.next_block() * block;
        let writes = self.next_writes();
        // The last block of the file may be short, and so may the last call.
        let len = block.min(self.size - offset);
        let len = self.left.map_or(len, |left| left.min(len));
        self.left = self.left.map(|left| left - len);
        Some(match &mut self.log {
            _ if !writes => Op::Read { file, offset, len },
            None => Op::Write { file, offset, len },
            Some((log, end)) => {
                let offset = *end;
                *end += len;
                Op::Write { file: *log, offset, len }
            }
        })
    }

    fn end(self: Box<Self>, state: &mut ProgramState) {
        state.keep_draws(self.of.draws, self.prng);
        state.positions.extend(self.log);
    }
}

/// The order of calls on a file of `size` bytes; `None` after a mistake was reported.
pub(super) fn check_call_order(
    kind: &Option<Spanned<OrderKind>>,
    exponent: &Option<Spanned<Hundredths>>,
    (size, block): (u64, Size),
    sink: &mut ProblemSink,
) -> Option<PageOrder> {
    let named = kind.as_ref().map_or(OrderKind::Sequential, |kind| kind.value);
    let order = check_order(named, exponent, sink)?;
    let least = size.div_ceil(ZIPF_RANKS_MAX);
    match kind {
        Some(kind) if order != PageOrder::Sequential && block.0 < least => {
            let message = "an order other than sequential has at most 2^35 blocks";
            let hint = format!("use a block of at least {}", show_size(least));
            sink.hinted(kind.span, message, hint);
            None
        }
        _ => Some(order),
    }
}
