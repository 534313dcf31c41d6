//! Orders of the pages of a region, and their generators.

use super::modulo::Scatter;
use super::state::ProgramState;
use crate::draws::prng::SplitMix64;
use crate::draws::zipf::Zipf;
use crate::op::Op;

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

/// Passes over all indices in order.
#[derive(Debug)]
pub(super) struct Laps {
    pub(super) region: u32,
    pub(super) write: bool,
    pub(super) stride: u64,
    pub(super) index: u64,
    pub(super) pages: u64,
    pub(super) passes_left: u32,
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
    pub(super) home: usize,
    pub(super) region: u32,
    pub(super) write: bool,
    pub(super) stride: u64,
    pub(super) pages: u64,
    pub(super) left: u64,
    pub(super) prng: SplitMix64,
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
