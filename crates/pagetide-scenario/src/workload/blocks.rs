//! Kernel memory by order: consecutive allocations into slots.
//!
//! A block is stored in a slot of the task. The stream of operations does not know whether an
//! allocation succeeded: a failed one leaves its slot empty, and freeing an empty slot does
//! nothing.

use super::cursor::Generator;
use super::plan::PhaseStage;
use crate::op::{BlockRequest, Op};
use std::ops::Range;

/// log2 of the pages of the kernel's largest block.
pub(super) const ORDER_MAX: i64 = 10;
/// Largest number of blocks that a task can hold, and of attempts in a phase.
pub(super) const BLOCKS_MAX: i64 = 1 << 24;

/// Allocations of blocks into slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockAllocs {
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
pub(super) enum BlockStep {
    Pace,
    Free,
    Alloc,
}

/// Allocates into slots in order.
#[derive(Debug)]
pub(super) struct BlockAllocator {
    take: BlockAllocs,
    step: BlockStep,
}

impl BlockAllocator {
    pub(super) fn stage(take: BlockAllocs) -> PhaseStage {
        PhaseStage::run(move |_, _| Box::new(BlockAllocator { take, step: BlockStep::Pace }).into())
    }

    /// Frees the blocks in the slots from 0 up to but excluding `end`.
    pub(super) fn free(end: u32) -> PhaseStage {
        PhaseStage::run(move |_, _| Box::new(BlockFrees(0..end)).into())
    }
}

impl Generator for BlockAllocator {
    fn next_op(&mut self) -> Option<Op> {
        let BlockAllocs { order, request, interval_ns, hold, first, end } = self.take;
        if matches!(self.step, BlockStep::Free) {
            self.step = BlockStep::Pace;
            return Some(Op::FreeBlock { slot: 0 });
        }
        if first == end {
            return None;
        }
        if matches!(self.step, BlockStep::Pace) && interval_ns > 0 {
            self.step = BlockStep::Alloc;
            return Some(Op::Pace { ns: interval_ns });
        }
        self.take.first += 1;
        self.step = if hold { BlockStep::Pace } else { BlockStep::Free };
        Some(Op::AllocBlock { slot: if hold { first } else { 0 }, order, request })
    }
}

#[derive(Debug)]
struct BlockFrees(Range<u32>);

impl Generator for BlockFrees {
    fn next_op(&mut self) -> Option<Op> {
        self.0.next().map(|slot| Op::FreeBlock { slot })
    }
}
