//! `workload = "high-order"` and `workload = "kernel-memory"`: how many blocks, how often.

use super::names::need;
use super::workload::Phases;
use crate::load::decode::Time;
use crate::load::raw::{self, BLOCKS_MAX};
use crate::load::span::{At, Problem, Sink};
use crate::load::units::show_size;
use crate::model::{BlockRequest, HighOrder, KernelMemory, Workload};
use crate::names::{HighOrderRequest, KernelRequest};

/// Order of a block unless the scenario says otherwise: a huge page.
const HIGH_ORDER: u8 = 9;

impl Phases<'_, '_> {
    pub(super) fn high_order(&self, keys: &raw::HighOrder, sink: &mut Sink) -> Option<Workload> {
        let order = keys.order.as_ref().map_or(HIGH_ORDER, |order| order.value.0 as u8);
        let attempts = self.attempts(keys, order, sink)?;
        let request = match keys.request.as_ref().map(|request| request.value) {
            None | Some(HighOrderRequest::Direct) => BlockRequest::KernelHigh,
            Some(HighOrderRequest::Nowait) => BlockRequest::Atomic,
        };
        let hold = keys.hold.as_ref().is_none_or(|hold| hold.value);
        let interval_ns = interval(&keys.interval);
        Some(Workload::HighOrder(HighOrder { order, attempts, interval_ns, request, hold }))
    }

    /// The number of attempts, which is given in one of two ways.
    fn attempts(&self, keys: &raw::HighOrder, order: u8, sink: &mut Sink) -> Option<u32> {
        let (share, span) = match (&keys.attempts, &keys.percent) {
            (Some(attempts), Some(percent)) => {
                sink.push(Problem {
                    span: percent.span,
                    message: "`attempts` and `percent` exclude each other".into(),
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
            (Some(attempts), None) => return Some(attempts.value.0 as u32),
            (None, Some(percent)) => (percent.value.0 as u64, percent.span),
        };
        let block = sink.page_size.bytes() << order;
        let part = u128::from(self.scene.memory) * u128::from(share) / 100;
        let count = (part / u128::from(block)) as u64;
        let of = format!("{share} % of {}", show_size(self.scene.memory));
        if count == 0 {
            let message = format!("{of} are less than a block of {}", show_size(block));
            sink.hinted(span, message, "write attempts = 1, or a smaller order");
            return None;
        }
        if count > BLOCKS_MAX as u64 {
            let message = format!("{of} are {count} blocks of {}", show_size(block));
            sink.hinted(span, message, format!("at most {BLOCKS_MAX}: write a larger order"));
            return None;
        }
        Some(count as u32)
    }

    pub(super) fn kernel_memory(
        &self,
        keys: &raw::KernelMemory,
        sink: &mut Sink,
    ) -> Option<Workload> {
        let place = (keys.at, keys.bad.as_slice());
        let blocks = need(&keys.blocks, "blocks", place, "workload kernel-memory", "1000", sink)?;
        if keys.bad.contains(&"count") {
            // Nobody said that it never ends.
            return None;
        }
        let request = match keys.request.as_ref().map(|request| request.value) {
            None | Some(KernelRequest::Kernel) => BlockRequest::Kernel,
            Some(KernelRequest::Atomic) => BlockRequest::Atomic,
            Some(KernelRequest::Nowait) => BlockRequest::Nowait,
            Some(KernelRequest::Reclaimable) => BlockRequest::Reclaimable,
        };
        Some(Workload::KernelMemory(KernelMemory {
            order: keys.order.as_ref().map_or(0, |order| order.value.0 as u8),
            blocks: blocks.value.0 as u32,
            count: keys.count.as_ref().map(|count| count.value.0 as u64),
            interval_ns: interval(&keys.interval),
            request,
        }))
    }
}

fn interval(interval: &Option<At<Time>>) -> u64 {
    interval.as_ref().map_or(0, |interval| interval.value.0)
}
