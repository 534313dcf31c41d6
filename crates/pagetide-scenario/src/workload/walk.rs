//! Passes over a region, page by page, in one of several orders.

use super::cursor::Cursor;
use super::modulo::Scatter;
use super::plan::{Planner, Stage, State};
use crate::load::decode::Hundredths;
use crate::load::span::{At, Sink};
use crate::names::OrderKind;
use crate::op::Op;
use crate::prng::SplitMix64;
use crate::zipf::Zipf;
use std::sync::Arc;

/// Order in which pages are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
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
    exponent: &Option<At<Hundredths>>,
    sink: &mut Sink,
) -> Option<Order> {
    if let (Some(exponent), true) = (exponent, kind != OrderKind::Zipf) {
        let hint = "only order = \"zipf\" has an exponent";
        sink.hinted(exponent.span, "`exponent` does not belong here", hint);
        return None;
    }
    Some(match kind {
        OrderKind::Sequential => Order::Sequential,
        OrderKind::Scattered => Order::Scattered,
        OrderKind::Random => Order::Random,
        OrderKind::Zipf => {
            let exponent = exponent.as_ref().map_or(100, |exponent| exponent.value.0);
            Order::Zipf { exponent_hundredths: exponent }
        }
    })
}

impl Planner<'_> {
    /// Passes over the first `pages` pages of a region.
    pub(super) fn walk(
        &mut self,
        region: usize,
        pages: u64,
        passes: u32,
        write: bool,
        order: Order,
    ) -> Stage {
        let zipf = match order {
            Order::Zipf { exponent_hundredths } => Some(self.zipf(pages, exponent_hundredths)),
            Order::Sequential | Order::Scattered | Order::Random => None,
        };
        let scatter = Scatter::new(pages);
        Stage::run(move |state, _| {
            let number = state.number(region);
            let laps = Laps { region: number, write, index: 0, pages, passes_left: passes };
            let left = pages * u64::from(passes);
            let prng = state.regions[region].prng;
            let draws = Draws { home: region, region: number, write, pages, left, prng };
            match (order, &zipf) {
                (Order::Sequential, _) => Cursor::Sequential(laps),
                (Order::Scattered, _) => Cursor::Scattered(laps, scatter),
                (Order::Zipf { .. }, Some(zipf)) => Cursor::Zipf(draws, Arc::clone(zipf), scatter),
                (Order::Random | Order::Zipf { .. }, _) => Cursor::Random(draws),
            }
        })
    }
}

/// Passes over all indices in order.
#[derive(Debug)]
pub(super) struct Laps {
    region: u32,
    write: bool,
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
        Op::Access { region: self.region, page, write: self.write }
    }
}

/// A number of random draws.
#[derive(Debug)]
pub(super) struct Draws {
    /// Index into [`State::regions`], whose generator draws.
    home: usize,
    region: u32,
    write: bool,
    pages: u64,
    left: u64,
    prng: SplitMix64,
}

impl Draws {
    #[inline]
    pub(super) fn uniform(&mut self) -> Option<Op> {
        self.left = self.left.checked_sub(1)?;
        let page = self.prng.below(self.pages);
        Some(Op::Access { region: self.region, page, write: self.write })
    }

    #[inline]
    pub(super) fn zipf(&mut self, zipf: &Zipf, scatter: &Scatter) -> Option<Op> {
        self.left = self.left.checked_sub(1)?;
        let page = scatter.page(zipf.draw(&mut self.prng) - 1);
        Some(Op::Access { region: self.region, page, write: self.write })
    }

    pub(super) fn end(self, state: &mut State) {
        state.regions[self.home].prng = self.prng;
    }
}
