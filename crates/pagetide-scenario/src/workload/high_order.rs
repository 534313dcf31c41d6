//! `workload = "high-order"`: tries to allocate blocks, like mmtests' module stress-highalloc.

use super::prelude::*;
use super::blocks::{BlockAllocs, BlockAllocator, BLOCKS_MAX, ORDER_MAX};
use crate::load::units::show_size;
use crate::names::HighOrderRequest;

table! {
    /// Tries to allocate blocks of high order. Needs either `attempts` or `percent`.
    HighOrderKeys of "workload high-order" {
        /// log2 of the pages of a block (default 9: 2 MiB).
        order: Spanned<Int<0, ORDER_MAX>> = Int(9),
        /// Number of attempts.
        attempts: Spanned<Int<1, BLOCKS_MAX>>,
        /// Attempts as the per cent of the machine's memory that their blocks have.
        percent: Spanned<Int<1, 100>>,
        /// Time from the start of one attempt to the start of the next (default 0: at once).
        interval: Spanned<Time> = Time(0),
        /// Rights of an attempt (default direct).
        request: Spanned<HighOrderRequest> = HighOrderRequest::Direct,
        /// Keeps the blocks until all attempts are made (default true).
        hold: Spanned<bool> = true,
    }
}

/// Attempts to allocate blocks of one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HighOrder {
    /// log2 of the pages of a block.
    pub order: u8,
    pub attempts: u32,
    /// Time between the starts of two attempts, unless the attempt takes longer.
    pub interval_ns: u64,
    pub request: BlockRequest,
    /// Blocks are held until all attempts are made; if false, each is freed at once.
    pub hold: bool,
}

impl WorkloadSpec for HighOrder {
    type Keys = HighOrderKeys;

    fn check(keys: &HighOrderKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let order = keys.order().into();
        let attempts = attempts(keys, order, phases.scene.memory, sink)?;
        let request = match keys.request() {
            HighOrderRequest::Direct => BlockRequest::KernelHigh,
            HighOrderRequest::Nowait => BlockRequest::Atomic,
        };
        let (hold, interval_ns) = (keys.hold(), keys.interval().0);
        Some(HighOrder { order, attempts, interval_ns, request, hold })
    }

    fn stages(&self, _: u32, _: &mut Planner<'_>) -> Vec<PhaseStage> {
        let HighOrder { order, attempts, interval_ns, request, hold } = *self;
        let take = BlockAllocator::stage(BlockAllocs { order, request, interval_ns, hold, first: 0, end: attempts });
        if hold {
            vec![take, BlockAllocator::free(attempts)]
        } else {
            vec![take]
        }
    }
}

/// The number of attempts, from `attempts` or `percent`.
fn attempts(keys: &HighOrderKeys, order: u8, memory: u64, sink: &mut ProblemSink) -> Option<u32> {
    let (share, span) = match (&keys.attempts, &keys.percent) {
        (Some(attempts), Some(percent)) => {
            sink.push(SpannedProblem {
                span: percent.span,
                message: "the workload cannot have both `attempts` and `percent`".into(),
                hint: Some("remove one of them".into()),
                also: Some((attempts.span, "the other one".into())),
            });
            return None;
        }
        (None, None) => {
            let is_known = keys.bad.contains(&"attempts") || keys.bad.contains(&"percent");
            if !is_known {
                let hint = "add attempts = 1000, or percent = 80";
                let message = "workload high-order has neither `attempts` nor `percent`";
                sink.hinted(keys.at, message, hint);
            }
            return None;
        }
        (Some(attempts), None) => return Some(attempts.value.into()),
        (None, Some(percent)) => (u64::from(percent.value), percent.span),
    };
    let block = sink.page_size.bytes() << order;
    let part = u128::from(memory) * u128::from(share) / 100;
    let count = (part / u128::from(block)) as u64;
    let of = format!("{share} % of {}", show_size(memory));
    if count == 0 {
        let message = format!("{of} is less than a block of {}", show_size(block));
        sink.hinted(span, message, "write attempts = 1, or choose a smaller order");
        return None;
    }
    if count > BLOCKS_MAX as u64 {
        let message = format!("{of} is {count} blocks of {}", show_size(block));
        sink.hinted(span, message, format!("at most {BLOCKS_MAX} are possible: choose a larger order"));
        return None;
    }
    Some(count as u32)
}
