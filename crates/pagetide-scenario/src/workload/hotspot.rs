//! Hot and cold accesses, with the generator of docs/scenario.md ("working-set").

use super::modulo::{Modulo, Scatter};
use super::state::ProgramState;
use crate::draws::prng::Lcg;
use crate::op::Op;

/// The accesses of a working set.
#[derive(Debug)]
pub(super) struct Hotspot {
    pub(super) left: u64,
    pub(super) lcg: Lcg,
    /// Index into the generators of the task's state.
    pub(super) generator: usize,
    pub(super) anon: Option<WorkingSetSide>,
    pub(super) file: Option<WorkingSetSide>,
    pub(super) anon_percent: u64,
    pub(super) hot_access_percent: u64,
    pub(super) write_percent: u64,
}

/// One region of a working set: its first `hot_pages` indices are hot.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkingSetSide {
    region: u32,
    hot_pages: u64,
    hot: Modulo,
    cold: Modulo,
    scatter: Scatter,
}

impl WorkingSetSide {
    pub(super) fn new(region: u32, pages: u64, hot_page_percent: u64) -> Self {
        let hot_pages = pages * hot_page_percent / 100;
        let cold = Modulo::new(pages - hot_pages);
        let hot = Modulo::new(hot_pages);
        Self { region, hot_pages, hot, cold, scatter: Scatter::new(pages) }
    }

    /// The page for a draw. If no page is hot, all accesses are cold, and vice versa.
    #[inline]
    fn page(&self, is_hot: bool, draw: u64) -> u64 {
        let has_cold = self.hot_pages < self.scatter.pages();
        let index = if (is_hot && self.hot_pages > 0) || !has_cold {
            self.hot.of(draw)
        } else {
            self.hot_pages + self.cold.of(draw)
        };
        self.scatter.page(index)
    }
}

impl Hotspot {
    #[inline]
    pub(super) fn next_op(&mut self) -> Option<Op> {
        self.left = self.left.checked_sub(1)?;
        let is_anon = match (&self.anon, &self.file) {
            (Some(_), Some(_)) => self.lcg.draw() % 100 < self.anon_percent,
            (anon, _) => anon.is_some(),
        };
        let side = if is_anon { self.anon.as_ref()? } else { self.file.as_ref()? };
        let is_hot = self.lcg.draw() % 100 < self.hot_access_percent;
        let page = side.page(is_hot, self.lcg.draw());
        let write = is_anon
            && match self.write_percent {
                0 => false,
                100 => true,
                percent => self.lcg.draw() % 100 < percent,
            };
        Some(Op::Access { region: side.region, page, write })
    }

    pub(super) fn end(self, state: &mut ProgramState) {
        state.generators[self.generator].lcg = self.lcg;
    }
}
