//! Passes over a region in one of several orders, over every page or with a stride.
//!
//! Invariant: with a stride, the order is that of the remaining pages alone.

use super::cursor::Cursor;
use super::modulo::Scatter;
use super::plan::{PhaseStage, Planner, ProgramState};
use crate::load::decode::{Hundredths, Size};
use crate::load::span::{ProblemSink, Spanned};
use crate::names::OrderKind;
use crate::op::Op;
use crate::prng::SplitMix64;
use crate::zipf::Zipf;
use std::sync::Arc;

/// Order of the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageOrder {
    /// 0, 1, 2, ...
    Sequential,
    /// Each page once, page = i * 7368787 mod pages.
    Scattered,
    /// Uniform draws with the documented generator.
    Random,
    /// Zipf-distributed draws with the documented generator: the rank is drawn, and rank r (from
    /// 0) is page r * 7368787 mod pages.
    Zipf {
        /// The exponent in hundredths: 100 is Zipf(1.0).
        exponent_hundredths: u32,
    },
}

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
    /// Index into [`ProgramState::regions`].
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

/// Passes over all indices in order.
#[derive(Debug)]
pub(super) struct Laps {
    region: u32,
    write: bool,
    stride: u64,
    index: u64,
    pages: u64,
    passes_left: u32,
}

impl Laps {
    #[inline]
    pub(super) fn next_index(&mut self) -> Option<u64> {
        if self.index == self.pages {
            self.index = 0;
            self.passes_left = self.passes_left.saturating_sub(1);
        }
        if self.passes_left == 0 {
            return None;
        }
        let index = self.index;
        self.index += 1;
        Some(index)
    }

    #[inline]
    pub(super) fn access(&self, page: u64) -> Op {
        Op::Access { region: self.region, page: page * self.stride, write: self.write }
    }
}

/// A number of random draws.
#[derive(Debug)]
pub(super) struct RandomDraws {
    /// Index into [`ProgramState::regions`]: the region with the generator.
    home: usize,
    region: u32,
    write: bool,
    stride: u64,
    pages: u64,
    left: u64,
    prng: SplitMix64,
}

impl RandomDraws {
    #[inline]
    pub(super) fn uniform(&mut self) -> Option<Op> {
        self.left = self.left.checked_sub(1)?;
        let page = self.prng.below(self.pages) * self.stride;
        Some(Op::Access { region: self.region, page, write: self.write })
    }

    #[inline]
    pub(super) fn zipf(&mut self, zipf: &Zipf, scatter: &Scatter) -> Option<Op> {
        self.left = self.left.checked_sub(1)?;
        let page = scatter.page(zipf.draw(&mut self.prng) - 1) * self.stride;
        Some(Op::Access { region: self.region, page, write: self.write })
    }

    pub(super) fn end(self, state: &mut ProgramState) {
        state.regions[self.home].prng = self.prng;
    }
}
