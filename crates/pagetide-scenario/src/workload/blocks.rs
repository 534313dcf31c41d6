//! Kernel memory by order: consecutive allocations into slots.
//!
//! A block is stored in a slot of the task. The stream of operations does not know whether an
//! allocation succeeded: a failed one leaves its slot empty, and freeing an empty slot does
//! nothing.

use super::cursor::Generator;
use super::plan::Stage;
use crate::op::{BlockRequest, Op};
use std::ops::Range;

/// log2 of the pages of the kernel's largest block.
pub(super) const ORDER_MAX: i64 = 10;
/// Largest number of blocks that a task can hold, and of attempts in a phase.
pub(super) const BLOCKS_MAX: i64 = 1 << 24;

/// Allocations of blocks into slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Take {
    pub(super) order: u8,
    pub(super) request: BlockRequest,
    pub(super) interval_ns: u64,
    /// Each block gets its own slot, from `first` up to but excluding `end`. If false, all blocks
    /// use the slot `first`, and each is freed at once.
    pub(super) hold: bool,
    pub(super) first: u32,
    pub(super) end: u32,
}

/// The next step of the current allocation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Pace,
    Free,
    Alloc,
}

/// Allocates into slots in order.
#[derive(Debug)]
pub(super) struct Takes {
    take: Take,
    step: Step,
}

impl Takes {
    pub(super) fn stage(take: Take) -> Stage {
        Stage::run(move |_, _| Box::new(Takes { take, step: Step::Pace }).into())
    }

    /// Frees the blocks in the slots from 0 up to but excluding `end`.
    pub(super) fn free(end: u32) -> Stage {
        Stage::run(move |_, _| Box::new(Frees(0..end)).into())
    }
}

impl Generator for Takes {
    fn next_op(&mut self) -> Option<Op> {
        let Take { order, request, interval_ns, hold, first, end } = self.take;
        if matches!(self.step, Step::Free) {
            self.step = Step::Pace;
            return Some(Op::FreeBlock { slot: 0 });
        }
        if first == end {
            return None;
        }
        if matches!(self.step, Step::Pace) && interval_ns > 0 {
            self.step = Step::Alloc;
            return Some(Op::Pace { ns: interval_ns });
        }
        self.take.first += 1;
        self.step = if hold { Step::Pace } else { Step::Free };
        Some(Op::AllocBlock { slot: if hold { first } else { 0 }, order, request })
    }
}

#[derive(Debug)]
struct Frees(Range<u32>);

impl Generator for Frees {
    fn next_op(&mut self) -> Option<Op> {
        self.0.next().map(|slot| Op::FreeBlock { slot })
    }
}
