//! `workload = "kernel-memory"`: kernel memory of network buffers, stacks, drivers and the like.

use super::prelude::*;
use super::blocks::{BlockStep, BlockAllocator, BLOCKS_MAX, ORDER_MAX};
use crate::names::KernelRequest;
use crate::draws::prng::SplitMix64;

table! {
    /// Allocates and frees kernel memory.
    KernelMemoryKeys of "workload kernel-memory" {
        /// log2 of the pages of a block (default 0: one page).
        order: Spanned<Int<0, ORDER_MAX>> = Int(0),
        /// Largest number of blocks held at the same time.
        blocks: Spanned<Int<1, BLOCKS_MAX>> => required "1000",
        /// Number of allocations (default: until the task is stopped).
        count: Spanned<Int<1, { i64::MAX }>>,
        /// Time from the start of one allocation to the start of the next (default 0: at once).
        interval: Spanned<Time> = Time(0),
        /// Rights of an allocation (default kernel).
        request: Spanned<KernelRequest> = KernelRequest::Kernel,
    }
}

/// Allocations of kernel memory. When `blocks` are held, each new block replaces a random one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelMemoryWorkload {
    /// log2 of the pages of a block.
    pub order: u8,
    /// Largest number of blocks held.
    pub blocks: u32,
    /// Number of allocations; `None`: until stopped.
    pub count: Option<u64>,
    /// Time between the starts of two allocations, unless the allocation takes longer.
    pub interval_ns: u64,
    pub request: BlockRequest,
}

impl WorkloadSpec for KernelMemoryWorkload {
    type Keys = KernelMemoryKeys;

    fn check(keys: &KernelMemoryKeys, _: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let blocks = keys.blocks(sink)?;
        if keys.bad.contains(&"count") {
            // An invalid `count` does not mean "endless".
            return None;
        }
        let request = match keys.request() {
            KernelRequest::Kernel => BlockRequest::Kernel,
            KernelRequest::Atomic => BlockRequest::Atomic,
            KernelRequest::Nowait => BlockRequest::Nowait,
            KernelRequest::Reclaimable => BlockRequest::Reclaimable,
        };
        Some(KernelMemoryWorkload {
            order: keys.order().into(),
            blocks: blocks.value.into(),
            count: keys.count.as_ref().map(|count| count.value.into()),
            interval_ns: keys.interval().0,
            request,
        })
    }

    fn stages(&self, _: u32, _: &mut Planner<'_>) -> Vec<PhaseStage> {
        let memory = *self;
        let used = memory.count.map_or(memory.blocks, |count| {
            u32::try_from(count).unwrap_or(u32::MAX).min(memory.blocks)
        });
        let churn = PhaseStage::run(move |state, _| {
            let prng = state.draws("blocks");
            Box::new(Churn { memory, done: 0, slot: 0, step: BlockStep::Pace, prng }).into()
        });
        vec![churn, BlockAllocator::free(used)]
    }

    fn missing_end(&self) -> Option<&'static str> {
        self.count.is_none().then_some("count = 1000")
    }
}

/// Allocations that each replace a random block when all slots are in use.
#[derive(Debug)]
struct Churn {
    memory: KernelMemoryWorkload,
    done: u64,
    slot: u32,
    step: BlockStep,
    prng: SplitMix64,
}

impl Generator for Churn {
    fn next_op(&mut self) -> Option<Op> {
        let KernelMemoryWorkload { order, blocks, count, interval_ns, request } = self.memory;
        if matches!(self.step, BlockStep::Pace) {
            if count == Some(self.done) {
                return None;
            }
            self.step = BlockStep::Free;
            if interval_ns > 0 {
                return Some(Op::Pace { ns: interval_ns });
            }
        }
        if matches!(self.step, BlockStep::Free) {
            self.step = BlockStep::Alloc;
            if self.done >= u64::from(blocks) {
                self.slot = self.prng.below(u64::from(blocks)) as u32;
                return Some(Op::FreeBlock { slot: self.slot });
            }
            self.slot = self.done as u32;
        }
        self.step = BlockStep::Pace;
        self.done = self.done.saturating_add(1);
        Some(Op::AllocBlock { slot: self.slot, order, request })
    }

    fn end(self: Box<Self>, state: &mut ProgramState) {
        state.keep_draws("blocks", self.prng);
    }
}
