//! Accesses whose pages are drawn. The next page has nothing to do with the last, so neither a processor nor an
//! operating system can guess it; but a program is a pure function, so it can say a few accesses ahead.
//!
//! Invariant: the accesses are those of one draw at a time. A stage ends when its batch is used up, so generators
//! that outlive the stage go on where they would have been.

use super::modulo::Scatter;
use super::plan::State;
use super::walk::{Draws, Laps};
use super::working_set::Hotspot;
use crate::op::Op;
use crate::zipf::Zipf;
use std::sync::Arc;

/// Accesses that are drawn together.
const BATCH: usize = 16;

/// One access, as [`Op::Access`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Page within the region.
    pub page: u64,
    /// The region.
    pub region: u32,
    /// Write, not read.
    pub write: bool,
}

impl From<Access> for Op {
    #[inline]
    fn from(access: Access) -> Op {
        Op::Access { region: access.region, page: access.page, write: access.write }
    }
}

/// Who draws.
#[derive(Debug)]
pub(super) enum Source {
    Scattered(Laps, Scatter),
    Random(Draws),
    Zipf(Draws, Arc<Zipf>, Scatter),
    WorkingSet(Hotspot),
}

impl Source {
    #[inline]
    fn draw(&mut self) -> Option<Access> {
        match self {
            Source::Scattered(laps, scatter) => {
                laps.next_index().map(|index| laps.access(scatter.page(index)))
            }
            Source::Random(draws) => draws.uniform(),
            Source::Zipf(draws, zipf, scatter) => draws.zipf(zipf, scatter),
            Source::WorkingSet(hotspot) => hotspot.draw(),
        }
    }
}

/// The accesses of a stage, a batch of them drawn.
#[derive(Debug)]
pub(super) struct Drawn {
    source: Source,
    batch: [Access; BATCH],
    /// The next of the batch.
    at: usize,
    /// Those of the batch that there are.
    len: usize,
}

impl Drawn {
    pub(super) fn new(source: Source) -> Drawn {
        Drawn { source, batch: [Access::default(); BATCH], at: 0, len: 0 }
    }

    /// The next access; `None` at the end of the stage.
    #[inline]
    pub(super) fn next_op(&mut self) -> Option<Op> {
        if self.at == self.len {
            self.draw();
        }
        let access = *self.batch[..self.len].get(self.at)?;
        self.at += 1;
        Some(access.into())
    }

    #[inline(never)]
    fn draw(&mut self) {
        (self.at, self.len) = (0, 0);
        while self.len < BATCH {
            let Some(access) = self.source.draw() else { break };
            self.batch[self.len] = access;
            self.len += 1;
        }
    }

    /// The batch, if the access that came last is its first.
    #[inline]
    pub(super) fn just_drawn(&self) -> Option<&[Access]> {
        (self.at == 1).then(|| &self.batch[..self.len])
    }

    /// Gives back what outlives the stage: the state of generators.
    pub(super) fn end(self, state: &mut State) {
        match self.source {
            Source::Random(draws) | Source::Zipf(draws, ..) => draws.end(state),
            Source::WorkingSet(hotspot) => hotspot.end(state),
            Source::Scattered(..) => {}
        }
    }
}
