//! Free blocks smaller than a pageblock: how many pageblocks each type needs, and which frames.
//!
//! Blocks are cut out of slots, larger blocks first. A slot is an aligned range of 2^n frames. The
//! rest of a slot may hold smaller blocks, but the buddy of a block must not become free as a
//! whole, because the two would merge. So a block of order n takes 2^(n+1) pages from the larger
//! slots, whichever slot it is cut from, and leaves 2^n of them for smaller blocks. Therefore the
//! pageblocks can be counted without placing a block.
//!
//! An edge is a pageblock that is only partly in the zone. Its slots can be free as a whole: the
//! buddy of such a slot has frames outside the zone and is never free.
//!
//! Invariant: [`count`] returns the number of pageblocks that [`place`] uses.

use super::{Chunk, FreeLists, FreeListsError, NR_TYPES, TYPES};
use crate::frames::gfp::MigrateType;
use crate::units::{Order, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// Number of the orders below a pageblock's.
const ORDERS: usize = PAGEBLOCK_ORDER as usize;

/// The frames in the zone of a pageblock that is only partly in the zone.
pub(super) type Edge = (u32, u32);

/// The type that uses each edge, as an index of [`TYPES`]; same order as the edges.
pub(super) type EdgeTypes = [Option<usize>; 2];

#[derive(Clone, Copy)]
pub(super) struct PageblockNeeds {
    pub(super) owners: EdgeTypes,
    whole: [u64; NR_TYPES],
    edges: [u64; NR_TYPES],
}

impl PageblockNeeds {
    pub(super) fn pageblocks(&self) -> [u64; NR_TYPES] {
        core::array::from_fn(|of| self.whole[of] + self.edges[of])
    }
}

/// The edges of the zone `start..end`, the lower edge last.
pub(super) fn edges(start: u32, end: u32) -> Vec<Edge> {
    let size = PAGEBLOCK_NR_PAGES;
    let low = (start, start.next_multiple_of(size).min(end));
    let high = (end / size * size, end);
    let mut edges = Vec::new();
    if high.0 >= low.1 && high.0 < high.1 {
        edges.push(high);
    }
    if low.0 < low.1 {
        edges.push(low);
    }
    edges
}

/// Splits the frames of an edge into aligned parts as large as possible: (first frame, order).
fn aligned((mut at, end): Edge) -> impl Iterator<Item = (u32, Order)> {
    core::iter::from_fn(move || {
        let order = at.trailing_zeros().min(end.checked_sub(at)?.checked_ilog2()?);
        let part = (at, order as Order);
        at += 1 << order;
        Some(part)
    })
}

fn small(lists: &FreeLists, of: usize) -> &[u32] {
    &lists.blocks[of][..ORDERS]
}

/// Computes how many pageblocks each type needs, if `room` whole pageblocks and the edges are
/// available. Of the solutions that fit, returns the first with the smallest excess over the
/// numbers of pageblocks in `lists`. `taken` is the number of pageblocks used by larger blocks, for
/// each type.
pub(super) fn count(
    lists: &FreeLists,
    edges: &[Edge],
    room: u64,
    taken: [u64; NR_TYPES],
) -> Result<PageblockNeeds, FreeListsError> {
    let has_small = |of: usize| small(lists, of).iter().any(|&count| count > 0);
    // CMA has whole pageblocks only.
    let each =
        || [Some(0), Some(1), Some(2), None].into_iter().filter(|of| of.is_none_or(has_small));
    let owners = each().flat_map(|low| each().map(move |high| [high, low]));
    let counts: Vec<PageblockNeeds> =
        owners.map(|owners| count_for(lists, edges, owners)).collect();
    let needed = |count: &&PageblockNeeds| count.whole.iter().sum::<u64>();
    let excess = |count: &&PageblockNeeds| -> u64 {
        let all = count.pageblocks().into_iter().zip(taken).zip(lists.pageblocks);
        all.map(|((nr, taken), asked)| (nr + taken).saturating_sub(asked.into())).sum()
    };
    let fitting = counts.iter().filter(|count| needed(count) <= room).min_by_key(excess);
    let least = counts.iter().min_by_key(needed);
    fitting.copied().ok_or_else(|| {
        let whole = least.map_or([0; NR_TYPES], |count| count.whole);
        let most = (0..NR_TYPES).max_by_key(|&of| (whole[of], NR_TYPES - of)).unwrap_or(0);
        FreeListsError::Parts { most, needed: whole.iter().sum(), room }
    })
}

fn count_for(lists: &FreeLists, edges: &[Edge], owners: EdgeTypes) -> PageblockNeeds {
    let mut count = PageblockNeeds { owners, whole: [0; NR_TYPES], edges: [0; NR_TYPES] };
    for of in 0..TYPES.len() {
        // Pages of slots larger than `order`, and the number of edge slots of `order` or below.
        let mut larger = 0u64;
        let mut slots = [0u64; ORDERS];
        for (edge, _) in edges.iter().zip(owners).filter(|(_, owner)| *owner == Some(of)) {
            count.edges[of] += 1;
            aligned(*edge).for_each(|(_, part)| slots[usize::from(part)] += 1);
        }
        for order in (0..ORDERS).rev() {
            let asked = u64::from(small(lists, of)[order]);
            let exact = asked.min(slots[order]);
            slots[order] -= exact;
            let cut = asked - exact;
            // A block that is cut from a larger slot takes twice its size.
            let wanted = (cut << (order + 1)).saturating_sub(larger >> (order + 1) << (order + 1));
            let pageblocks = wanted.div_ceil(u64::from(PAGEBLOCK_NR_PAGES));
            count.whole[of] += pageblocks;
            larger += pageblocks * u64::from(PAGEBLOCK_NR_PAGES);
            larger -= cut << (order + 1);
            larger += (slots[order] + cut) << order;
        }
    }
    count
}

#[derive(Clone, Copy)]
struct BlockSlot {
    pfn: u32,
    order: Order,
    /// Whether the slot may become free as a whole.
    is_whole: bool,
}

/// The slots of one type.
#[derive(Default)]
struct BlockSlots {
    all: Vec<BlockSlot>,
    /// The slots, by the largest order of a block that fits; then by order and by index.
    by_room: BTreeSet<(Order, Order, usize)>,
}

impl BlockSlots {
    fn key(slot: BlockSlot, index: usize) -> Option<(Order, Order, usize)> {
        let room = if slot.is_whole { slot.order } else { slot.order.checked_sub(1)? };
        Some((room, slot.order, index))
    }

    fn add(&mut self, slot: BlockSlot) {
        self.by_room.extend(BlockSlots::key(slot, self.all.len()));
        self.all.push(slot);
    }

    /// Takes the smallest slot that fits a block of `order`, so that large slots stay whole.
    fn take(&mut self, order: Order) -> Option<BlockSlot> {
        let key = *self.by_room.range((order, 0, 0)..).next()?;
        self.by_room.remove(&key);
        let (.., index) = key;
        let slot = self.all.swap_remove(index);
        if let Some(&moved) = self.all.get(index) {
            if let Some(old) = BlockSlots::key(moved, self.all.len()) {
                self.by_room.remove(&old);
            }
            self.by_room.extend(BlockSlots::key(moved, index));
        }
        Some(slot)
    }
}

/// Places the blocks in their edges and in pageblocks from the top of `vacant`. Leaves only unused
/// edges in `edges`. `None` if there are too few pageblocks, which [`count`] excludes.
pub(super) fn place(
    lists: &FreeLists,
    owners: EdgeTypes,
    edges: &mut Vec<Edge>,
    vacant: &mut Vec<u32>,
    chunks: &mut Vec<Chunk>,
    typed: &mut Vec<(u32, MigrateType)>,
) -> Option<()> {
    let all = edges.clone();
    let mut left = owners.iter();
    edges.retain(|_| left.next().is_none_or(Option::is_none));
    for (of, mt) in TYPES.into_iter().enumerate() {
        let mut slots = BlockSlots::default();
        for (edge, _) in all.iter().zip(owners).filter(|(_, owner)| *owner == Some(of)) {
            typed.push((edge.0 / PAGEBLOCK_NR_PAGES * PAGEBLOCK_NR_PAGES, mt));
            aligned(*edge)
                .for_each(|(pfn, order)| slots.add(BlockSlot { pfn, order, is_whole: true }));
        }
        let mut taken = Vec::new();
        for order in (0..PAGEBLOCK_ORDER).rev() {
            for _ in 0..lists.blocks[of][usize::from(order)] {
                let mut slot = match slots.take(order) {
                    Some(slot) => slot,
                    None => {
                        let pfn = vacant.pop()?;
                        taken.push((pfn, mt));
                        BlockSlot { pfn, order: PAGEBLOCK_ORDER, is_whole: false }
                    }
                };
                // One of the two halves is split further; the other may hold only smaller blocks.
                while slot.order > order {
                    slot.order -= 1;
                    slot.is_whole = false;
                    slots.add(slot);
                    slot.pfn += 1 << slot.order;
                }
                chunks.push(Chunk { pfn: slot.pfn, order, mt });
            }
        }
        typed.extend(taken);
    }
    Some(())
}
