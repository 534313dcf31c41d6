//! Free blocks of one or two pageblocks: their places in a zone.
//!
//! Linux: blocks of `pageblock_order` and of `MAX_PAGE_ORDER`. Each type takes the highest
//! remaining pageblocks, because boot frees memory from the low end and the kernel allocates there.
//!
//! Invariant: no two free pageblocks are buddies, even if their types differ: they would merge. Only
//! CMA does not merge with other types.

use super::{Chunk, FreeLists, FreeListsError, TYPES};
use crate::frames::gfp::MigrateType;
use crate::units::{Order, MAX_PAGE_ORDER, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

const SIZE: u32 = PAGEBLOCK_NR_PAGES;

#[derive(Default)]
pub(super) struct WholeBlocks {
    pub(super) chunks: Vec<Chunk>,
    /// Pageblocks filled by the blocks, by first frame.
    pub(super) typed: Vec<(u32, MigrateType)>,
    /// Pageblocks that remain, lowest first.
    pub(super) vacant: Vec<u32>,
}

impl WholeBlocks {
    /// Places all blocks in the whole pageblocks of `start..end`.
    pub(super) fn place(
        lists: &FreeLists,
        start: u32,
        end: u32,
    ) -> Result<WholeBlocks, FreeListsError> {
        let orders = [MAX_PAGE_ORDER, PAGEBLOCK_ORDER];
        let by_type = (0..TYPES.len()).flat_map(|of| orders.map(|order| (of, order)));
        // Pairs come first: single pageblocks of one type could break pairs that another type
        // needs.
        let pairs_first =
            orders.into_iter().flat_map(|order| (0..TYPES.len()).map(move |of| (of, order)));
        WholeBlocks::in_turn(lists, start, end, by_type)
            .or_else(|_| WholeBlocks::in_turn(lists, start, end, pairs_first))
    }

    fn in_turn(
        lists: &FreeLists,
        start: u32,
        end: u32,
        turns: impl Iterator<Item = (usize, Order)>,
    ) -> Result<WholeBlocks, FreeListsError> {
        let vacant = (start.div_ceil(SIZE)..end / SIZE).map(|n| n * SIZE).collect();
        let mut whole = WholeBlocks { vacant, ..WholeBlocks::default() };
        // Of CMA, and of all other types.
        let mut singles = [BTreeSet::new(), BTreeSet::new()];
        let mut placed = [0u64; 2];
        for (of, order) in turns {
            let asked = u64::from(lists.blocks[of][usize::from(order)]);
            let found = match order {
                MAX_PAGE_ORDER => whole.take_pairs(asked),
                _ => {
                    let is_cma = TYPES[of] == MigrateType::Cma;
                    whole.take_singles(asked, &mut singles[usize::from(!is_cma)])
                }
            };
            let placed = &mut placed[usize::from(order - PAGEBLOCK_ORDER)];
            *placed += found.len() as u64;
            if (found.len() as u64) < asked {
                let all = lists.blocks.iter().map(|counts| u64::from(counts[usize::from(order)]));
                return Err(FreeListsError::Whole { order, asked: all.sum(), room: *placed });
            }
            let parts = 1 << (order - PAGEBLOCK_ORDER);
            for &pfn in &found {
                whole.chunks.push(Chunk { pfn, order, mt: TYPES[of] });
                whole.typed.extend((0..parts).map(|part| (pfn + part * SIZE, TYPES[of])));
            }
        }
        Ok(whole)
    }

    /// Takes the `most` highest aligned pairs, or fewer if there are fewer.
    fn take_pairs(&mut self, most: u64) -> Vec<u32> {
        let is_pair = |below: &[u32], at: u32| {
            below.last() == Some(&(at ^ SIZE)) && (at ^ SIZE).is_multiple_of(2 * SIZE)
        };
        let mut pairs = Vec::new();
        let mut kept = Vec::new();
        while let Some(at) = self.vacant.pop() {
            if (pairs.len() as u64) < most && is_pair(&self.vacant, at) {
                pairs.extend(self.vacant.pop());
            } else {
                kept.push(at);
            }
        }
        kept.reverse();
        self.vacant = kept;
        pairs
    }

    /// Takes up to `most` pageblocks, highest first. No two of these and `singles` are buddies.
    fn take_singles(&mut self, most: u64, singles: &mut BTreeSet<u32>) -> Vec<u32> {
        let mut found = Vec::new();
        let mut kept = Vec::new();
        while let Some(at) = self.vacant.pop() {
            if (found.len() as u64) < most && !singles.contains(&(at ^ SIZE)) {
                singles.insert(at);
                found.push(at);
            } else {
                kept.push(at);
            }
        }
        kept.reverse();
        self.vacant = kept;
        found
    }
}
