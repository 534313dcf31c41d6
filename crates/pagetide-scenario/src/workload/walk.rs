//! Passes over a region in one of several orders, over every page or with a stride.
//!
//! Invariant: with a stride, the order is that of the remaining pages alone.

use super::cursor::Cursor;
use super::modulo::Scatter;
use super::order::{Laps, PageOrder, RandomDraws};
use super::plan::{PhaseStage, Planner};
use crate::load::decode::{Hundredths, Size};
use crate::load::span::{ProblemSink, Spanned};
use crate::names::OrderKind;
use std::sync::Arc;

/// The order of a walk; `None` after a mistake was reported.
pub(super) fn check_order(
    kind: OrderKind,
    exponent: &Option<Spanned<Hundredths>>,
    sink: &mut ProblemSink,
) -> Option<PageOrder> {
    if let (Some(exponent), true) = (exponent, kind != OrderKind::Zipf) {
        let hint = "leave it out: only order = \"zipf\" has an exponent";
        sink.hinted(exponent.span, "this order has no `exponent`", hint);
        return None;
    }
    Some(match kind {
        OrderKind::Sequential => PageOrder::Sequential,
        OrderKind::Scattered => PageOrder::Scattered,
        OrderKind::Random => PageOrder::Random,
        OrderKind::Zipf => {
            let exponent = exponent.as_ref().map_or(100, |exponent| exponent.value.0);
            PageOrder::Zipf { exponent_hundredths: exponent }
        }
    })
}

/// The stride in pages; `None` after a mistake was reported.
pub(super) fn check_stride(stride: &Option<Spanned<Size>>, sink: &mut ProblemSink) -> Option<u64> {
    let Some(stride) = stride else { return Some(1) };
    let (bytes, page) = (stride.value.0, sink.page_size.bytes());
    if bytes == 0 || !bytes.is_multiple_of(page) {
        let hint = format!("write whole pages of {} KiB, for example \"2MiB\"", page >> 10);
        let message = match bytes {
            0 => "the stride is 0".to_owned(),
            bytes => format!("{bytes} bytes are not whole pages"),
        };
        sink.hinted(stride.span, message, hint);
        return None;
    }
    Some(bytes / page)
}

/// Passes over a region.
pub(super) struct RegionPasses {
    /// Index into the regions of the task's state.
    pub(super) region: usize,
    /// Number of pages, from page 0.
    pub(super) pages: u64,
    /// Distance between two pages that are visited.
    pub(super) stride: u64,
    pub(super) passes: u32,
    pub(super) write: bool,
    pub(super) order: PageOrder,
}

impl RegionPasses {
    /// One pass over the pages, in order.
    pub(super) fn once(region: usize, pages: u64, write: bool) -> RegionPasses {
        RegionPasses { region, pages, stride: 1, passes: 1, write, order: PageOrder::Sequential }
    }
}

impl Planner<'_> {
    pub(super) fn walk(&mut self, walk: RegionPasses) -> PhaseStage {
        let RegionPasses { region, pages, stride, passes, write, order } = walk;
        let pages = pages.div_ceil(stride);
        let zipf = match order {
            PageOrder::Zipf { exponent_hundredths } => Some(self.zipf(pages, exponent_hundredths)),
            PageOrder::Sequential | PageOrder::Scattered | PageOrder::Random => None,
        };
        let scatter = Scatter::new(pages);
        PhaseStage::run(move |state, _| {
            let number = state.number(region);
            let laps = Laps { region: number, write, stride, index: 0, pages, passes_left: passes };
            let left = pages * u64::from(passes);
            let prng = state.regions[region].prng;
            let draws =
                RandomDraws { home: region, region: number, write, stride, pages, left, prng };
            match (order, &zipf) {
                (PageOrder::Sequential, _) => Cursor::Sequential(laps),
                (PageOrder::Scattered, _) => Cursor::Scattered(laps, scatter),
                (PageOrder::Zipf { .. }, Some(zipf)) => {
                    Cursor::Zipf(draws, Arc::clone(zipf), scatter)
                }
                (PageOrder::Random | PageOrder::Zipf { .. }, _) => Cursor::Random(draws),
            }
        })
    }
}
