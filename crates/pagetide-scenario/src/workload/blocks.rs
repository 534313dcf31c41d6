//! Kernel memory by order: attempts one after another, and blocks that take each other's places.
//!
//! A block goes into a slot of the task. Whether there is one the stream of operations does not know:
//! an allocation that failed leaves its slot empty, and freeing an empty slot does nothing.

use super::plan::Take;
use crate::model::KernelMemory;
use crate::op::Op;
use crate::prng::SplitMix64;

/// What comes next for the present allocation.
#[derive(Clone, Copy, Debug)]
enum Step {
    Pace,
    Free,
    Alloc,
}

/// Allocations into slots in order.
#[derive(Debug)]
pub(super) struct Takes {
    take: Take,
    step: Step,
}

impl Takes {
    pub(super) fn new(take: Take) -> Self {
        Self { take, step: Step::Pace }
    }

    pub(super) fn next_op(&mut self) -> Option<Op> {
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

/// Allocations that, once all slots are used, each take the place of a random one.
#[derive(Debug)]
pub(super) struct Churn {
    memory: KernelMemory,
    done: u64,
    slot: u32,
    step: Step,
    pub(super) prng: SplitMix64,
}

impl Churn {
    pub(super) fn new(memory: KernelMemory, prng: SplitMix64) -> Self {
        Self { memory, done: 0, slot: 0, step: Step::Pace, prng }
    }

    pub(super) fn next_op(&mut self) -> Option<Op> {
        let KernelMemory { order, blocks, count, interval_ns, request } = self.memory;
        if matches!(self.step, Step::Pace) {
            if count == Some(self.done) {
                return None;
            }
            self.step = Step::Free;
            if interval_ns > 0 {
                return Some(Op::Pace { ns: interval_ns });
            }
        }
        if matches!(self.step, Step::Free) {
            self.step = Step::Alloc;
            if self.done >= u64::from(blocks) {
                self.slot = self.prng.below(u64::from(blocks)) as u32;
                return Some(Op::FreeBlock { slot: self.slot });
            }
            self.slot = self.done as u32;
        }
        self.step = Step::Pace;
        self.done = self.done.saturating_add(1);
        Some(Op::AllocBlock { slot: self.slot, order, request })
    }
}
