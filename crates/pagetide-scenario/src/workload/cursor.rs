//! Where a task is within a stage: the generators themselves. Producing an access costs a few
//! nanoseconds and never allocates.

use super::blocks::{Churn, Takes};
use super::modulo::{Modulo, Scatter};
use super::names_and_pipes::Makes;
use super::objects::Objects;
use super::plan::{Accesses, FILE_SIZE_MAX, HEADER_PIECE};
use crate::op::Op;
use crate::prng::{Lcg, SplitMix64};
use crate::zipf::Zipf;
use std::ops::Range;
use std::sync::Arc;

/// Neighbours that one operation discards: no operation takes long.
const DISCARD_PAGES: u64 = 512;

/// The generator of a stage.
#[derive(Debug)]
pub(super) enum Cursor {
    /// Nothing (left).
    Idle,
    Sequential(Laps),
    Scattered(Laps, Scatter),
    Random(Draws),
    Zipf(Draws, Arc<Zipf>, Scatter),
    WorkingSet(Hotspot),
    FileWrite(Writes),
    FileRead(Reads),
    Pieces(Pieces, Arc<Zipf>),
    Interleave(Turns),
    Discard(Discards),
    Take(Takes),
    Churn(Churn),
    Objects(Box<Objects>),
    Make(Makes),
    /// Frees the blocks in these slots.
    Free(Range<u32>),
}

impl Cursor {
    /// The next operation of the stage; `None` at its end.
    #[inline]
    pub(super) fn next_op(&mut self) -> Option<Op> {
        match self {
            Cursor::Sequential(laps) => laps.next_index().map(|page| laps.access(page)),
            Cursor::Scattered(laps, scatter) => {
                laps.next_index().map(|index| laps.access(scatter.page(index)))
            }
            Cursor::Random(draws) => {
                draws.count_down()?;
                let page = draws.prng.below(draws.pages);
                Some(Op::Access { region: draws.region, page, write: draws.write })
            }
            Cursor::Zipf(draws, zipf, scatter) => {
                draws.count_down()?;
                let page = scatter.page(zipf.draw(&mut draws.prng) - 1);
                Some(Op::Access { region: draws.region, page, write: draws.write })
            }
            Cursor::WorkingSet(hotspot) => hotspot.next_op(),
            Cursor::FileWrite(writes) => writes.next_op(),
            Cursor::FileRead(reads) => reads.next_op(),
            Cursor::Pieces(pieces, zipf) => pieces.next_op(zipf),
            Cursor::Interleave(turns) => turns.next_op(),
            Cursor::Discard(discards) => discards.next_op(),
            Cursor::Take(takes) => takes.next_op(),
            Cursor::Churn(churn) => churn.next_op(),
            Cursor::Objects(objects) => objects.next_op(),
            Cursor::Make(makes) => makes.next_op(),
            Cursor::Free(slots) => slots.next().map(|slot| Op::FreeBlock { slot }),
            Cursor::Idle => None,
        }
    }
}

/// Passes over all indices in order.
#[derive(Debug)]
pub(super) struct Laps {
    pub(super) region: u32,
    pub(super) write: bool,
    pub(super) index: u64,
    pub(super) pages: u64,
    pub(super) passes_left: u32,
}

impl Laps {
    #[inline]
    fn next_index(&mut self) -> Option<u64> {
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
    fn access(&self, page: u64) -> Op {
        Op::Access { region: self.region, page, write: self.write }
    }
}

/// A number of random draws.
#[derive(Debug)]
pub(super) struct Draws {
    pub(super) region: u32,
    pub(super) write: bool,
    pub(super) pages: u64,
    pub(super) left: u64,
    pub(super) prng: SplitMix64,
}

impl Draws {
    #[inline]
    fn count_down(&mut self) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        Some(())
    }
}

/// The hot/cold generator: docs/scenario.md, "working-set".
#[derive(Debug)]
pub(super) struct Hotspot {
    left: u64,
    pub(super) lcg: Lcg,
    anon: Option<Side>,
    file: Option<Side>,
    anon_percent: u64,
    hot_access_percent: u64,
    write_percent: u64,
}

/// One region of a working set: its first `hot_pages` indices are hot.
#[derive(Clone, Copy, Debug)]
struct Side {
    region: u32,
    hot_pages: u64,
    hot: Modulo,
    cold: Modulo,
    scatter: Scatter,
}

impl Side {
    fn new(region: u32, pages: u64, hot_page_percent: u64) -> Self {
        let hot_pages = pages * hot_page_percent / 100;
        let cold = Modulo::new(pages - hot_pages);
        let hot = Modulo::new(hot_pages);
        Self { region, hot_pages, hot, cold, scatter: Scatter::new(pages) }
    }

    /// The page for a draw. Where no page is hot, all accesses are cold, and the other way round.
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
    /// `number` gives the number of a mapped region.
    pub(super) fn new(plan: &Accesses, lcg: Lcg, number: impl Fn(usize) -> u32) -> Self {
        let side = |side: Option<(usize, u64)>| {
            side.map(|(region, pages)| Side::new(number(region), pages, plan.hot_page_percent))
        };
        Self {
            left: plan.count,
            lcg,
            anon: side(plan.anon),
            file: side(plan.file),
            anon_percent: plan.anon_percent,
            hot_access_percent: plan.hot_access_percent,
            write_percent: plan.write_percent,
        }
    }

    #[inline]
    fn next_op(&mut self) -> Option<Op> {
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
}

/// A write to an anonymous page, a read of a file page, and so on.
#[derive(Debug)]
pub(super) struct Turns {
    pub(super) anon: u32,
    pub(super) file: u32,
    pub(super) turn: u64,
    /// Two a page.
    pub(super) turns: u64,
}

impl Turns {
    fn next_op(&mut self) -> Option<Op> {
        if self.turn == self.turns {
            return None;
        }
        let (page, write) = (self.turn / 2, self.turn.is_multiple_of(2));
        let region = if write { self.anon } else { self.file };
        self.turn += 1;
        Some(Op::Access { region, page, write })
    }
}

/// Pages that are given back: neighbours together.
#[derive(Debug)]
pub(super) struct Discards {
    pub(super) region: u32,
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) every: u64,
}

impl Discards {
    fn next_op(&mut self) -> Option<Op> {
        let left = self.end.checked_sub(self.next).filter(|left| *left > 0)?;
        let pages = if self.every == 1 { left.min(DISCARD_PAGES) } else { 1 };
        let page = self.next;
        self.next += if self.every == 1 { pages } else { self.every };
        Some(Op::Discard { region: self.region, page, pages })
    }
}

/// write() calls, one after the other.
#[derive(Debug)]
pub(super) struct Writes {
    pub(super) file: usize,
    pub(super) offset: u64,
    /// `None`: until stopped.
    pub(super) left: Option<u64>,
    pub(super) block: u64,
}

impl Writes {
    fn next_op(&mut self) -> Option<Op> {
        let len = self.left.map_or(self.block, |left| left.min(self.block));
        let end = self.offset.checked_add(len)?;
        if len == 0 || end > FILE_SIZE_MAX {
            return None;
        }
        let op = Op::Write { file: self.file, offset: self.offset, len };
        self.offset = end;
        self.left = self.left.map(|left| left - len);
        Some(op)
    }
}

/// read() calls from the file's start, round its end.
#[derive(Debug)]
pub(super) struct Reads {
    pub(super) file: usize,
    pub(super) size: u64,
    pub(super) offset: u64,
    pub(super) left: u64,
    pub(super) block: u64,
}

impl Reads {
    fn next_op(&mut self) -> Option<Op> {
        let len = self.block.min(self.left).min(self.size - self.offset);
        if len == 0 {
            return None;
        }
        let op = Op::Read { file: self.file, offset: self.offset, len };
        self.left -= len;
        self.offset += len;
        if self.offset == self.size {
            self.offset = 0;
        }
        Some(op)
    }
}

/// read() calls of whole pieces of a file, some pieces more often than others: the headers of a
/// build.
#[derive(Debug)]
pub(super) struct Pieces {
    file: usize,
    size: u64,
    left: u64,
    pub(super) prng: SplitMix64,
    scatter: Scatter,
}

impl Pieces {
    pub(super) fn new(file: usize, size: u64, left: u64, prng: SplitMix64) -> Self {
        let scatter = Scatter::new(size.div_ceil(HEADER_PIECE));
        Self { file, size, left, prng, scatter }
    }

    fn next_op(&mut self, zipf: &Zipf) -> Option<Op> {
        if self.left == 0 {
            return None;
        }
        let offset = self.scatter.page(zipf.draw(&mut self.prng) - 1) * HEADER_PIECE;
        // The file's last piece may be short, and so may be the last read of a unit.
        let len = HEADER_PIECE.min(self.size - offset).min(self.left);
        self.left -= len;
        Some(Op::Read { file: self.file, offset, len })
    }
}
