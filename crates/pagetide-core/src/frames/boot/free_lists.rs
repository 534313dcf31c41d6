//! A zone with given free lists at machine start.
//!
//! Linux: the free blocks that exist after boot, as /proc/pagetypeinfo shows them. Their numbers by
//! type and size decide when a type runs out of blocks and takes one of another type, and so when a
//! watermark is boosted. In a machine of the same size with all memory free, this would happen at
//! another time.
//!
//! Only the numbers of blocks are given, not their addresses. Blocks are placed from the top of the
//! zone downwards: first whole pageblocks, then smaller blocks in pageblocks of their type. No two
//! free blocks are buddies.
//!
//! Invariant: afterwards `pagetypeinfo` shows the requested numbers of free blocks. A type has at
//! least the pageblocks that its blocks need. It gets the requested number of pageblocks if the
//! zone has enough of them.

mod parts;
mod whole;

use crate::frames::buddy::mark_allocated;
use crate::frames::gfp::MigrateType;
use crate::frames::page_array::PageArray;
use crate::frames::zone::Zone;
use crate::units::{Order, Pfn, NR_PAGE_ORDERS, PAGEBLOCK_NR_PAGES};
use alloc::vec::Vec;
use core::ops::Range;
use parts::{Edge, PageblockNeeds};
use whole::WholeBlocks;

/// The migrate types that boot uses, in the order of /proc/pagetypeinfo.
pub const TYPES: [MigrateType; NR_TYPES] =
    [MigrateType::Unmovable, MigrateType::Movable, MigrateType::Reclaimable, MigrateType::Cma];
/// Number of [`TYPES`].
pub const NR_TYPES: usize = 4;

/// Free blocks of a zone when the machine starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeLists {
    /// Number of free blocks for each of [`TYPES`] and each order.
    pub blocks: [[u32; NR_PAGE_ORDERS]; NR_TYPES],
    /// Number of pageblocks of each of [`TYPES`].
    pub pageblocks: [u32; NR_TYPES],
}

#[derive(Clone, Copy)]
struct Chunk {
    pfn: u32,
    order: Order,
    mt: MigrateType,
}

/// Why free blocks do not fit into a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeListsError {
    /// Too many blocks of order 9 or 10, over all types: only `room` of this order fit. Two free
    /// pageblocks that are buddies would merge into a block of order 10, and a block of order 10
    /// must be aligned to its size.
    Whole {
        /// The order: 9 or 10.
        order: Order,
        /// Requested blocks.
        asked: u64,
        /// Blocks that fit.
        room: u64,
    },
    /// Too many smaller blocks: all types together need more pageblocks than remain. No
    /// two types share a pageblock, and no two blocks may be buddies.
    Parts {
        /// The type that needs the most pageblocks, as an index of [`TYPES`].
        most: usize,
        /// Pageblocks needed in addition to the pageblocks that the zone has only in part.
        needed: u64,
        /// Pageblocks that remain.
        room: u64,
    },
}

/// First frame of every free block, and types of pageblocks (by first frame).
struct BlockLayout {
    chunks: Vec<Chunk>,
    typed: Vec<(u32, MigrateType)>,
}

fn pageblocks_by_type(typed: &[(u32, MigrateType)]) -> [u64; NR_TYPES] {
    TYPES.map(|mt| typed.iter().filter(|(_, of)| *of == mt).count() as u64)
}

impl FreeLists {
    /// Pages in all blocks.
    pub fn pages(&self) -> u64 {
        let of_type = |counts: &[u32; NR_PAGE_ORDERS]| -> u64 {
            counts.iter().enumerate().map(|(order, &count)| u64::from(count) << order).sum()
        };
        self.blocks.iter().map(of_type).sum()
    }

    /// The number of pageblocks of each of [`TYPES`] that the blocks need in a zone with these
    /// managed frames (see [`managed_frames`](super::managed_frames)). Ignores
    /// [`pageblocks`](Self::pageblocks), although a machine uses the larger of both numbers.
    ///
    /// # Errors
    /// The blocks do not fit.
    pub fn fits(&self, frames: Range<u32>) -> Result<[u64; NR_TYPES], FreeListsError> {
        let (whole, _, count) = self.shares(frames.start, frames.end)?;
        let taken = pageblocks_by_type(&whole.typed);
        Ok(core::array::from_fn(|of| taken[of] + count.pageblocks()[of]))
    }

    /// Places the blocks of one or two whole pageblocks. Also returns the edges (the partial
    /// pageblocks at the ends of the zone), and how many pageblocks the smaller blocks need.
    fn shares(
        &self,
        start: u32,
        end: u32,
    ) -> Result<(WholeBlocks, Vec<Edge>, PageblockNeeds), FreeListsError> {
        let whole = WholeBlocks::place(self, start, end)?;
        let edges = parts::edges(start, end);
        let taken = pageblocks_by_type(&whole.typed);
        let count = parts::count(self, &edges, whole.vacant.len() as u64, taken)?;
        Ok((whole, edges, count))
    }

    /// Places all blocks within the frames `start..end`; `None` if they do not fit.
    fn plan(&self, start: u32, end: u32) -> Option<BlockLayout> {
        let (whole, mut edges, count) = self.shares(start, end).ok()?;
        let WholeBlocks { mut chunks, mut typed, mut vacant } = whole;
        parts::place(self, count.owners, &mut edges, &mut vacant, &mut chunks, &mut typed)?;
        // The kernel gets the remaining pageblocks. Each gets a type that has fewer pageblocks than
        // requested. The zone may run out of pageblocks first, because the requested numbers
        // include pageblocks of unmanaged memory.
        let used = pageblocks_by_type(&typed);
        for (index, mt) in TYPES.iter().enumerate() {
            for _ in used[index]..self.pageblocks[index].into() {
                let Some(pfn) = vacant.pop() else { break };
                typed.push((pfn, *mt));
            }
        }
        let size = PAGEBLOCK_NR_PAGES;
        vacant.extend(edges.into_iter().map(|(from, _)| from / size * size));
        typed.extend(vacant.into_iter().map(|pfn| (pfn, MigrateType::Unmovable)));
        Some(BlockLayout { chunks, typed })
    }

    /// Places these free blocks in `zone`. Its managed frames are `start..end`; none of them is
    /// free or allocated yet. Frames outside the blocks become the kernel's. Returns false and
    /// changes nothing if the blocks do not fit.
    pub(crate) fn build(
        &self,
        zone: &mut Zone,
        pages: &mut PageArray,
        start: u32,
        end: u32,
    ) -> bool {
        let Some(BlockLayout { chunks, typed }) = self.plan(start, end) else { return false };
        pages.hold(start..end, |pages, pfn| mark_allocated(pages, pfn, 0));
        for (pfn, mt) in typed {
            zone.set_block_type(Pfn(pfn), mt);
        }
        for Chunk { pfn, order, mt } in chunks {
            super::free_at_boot(zone, pages, Pfn(pfn), order, mt);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::boot::{managed_frames, SetupError};
    use crate::frames::node::{NodeSpec, ZoneSpec};
    use crate::frames::page::Place;
    use crate::frames::page_alloc::Memory;
    use crate::frames::zone_type::{ZONE_DMA, ZONE_DMA32};
    use crate::units::page_size::PageSize;
    use crate::units::NodeId;

    /// Debian's 6.1 with 256 MiB, before the first task runs.
    fn example() -> FreeLists {
        FreeLists {
            blocks: [
                [0, 1, 1, 4, 0, 1, 1, 1, 1, 0, 0],
                [1, 0, 1, 0, 0, 6, 9, 7, 7, 2, 38],
                [1, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0],
                [0; NR_PAGE_ORDERS],
            ],
            pageblocks: [16, 98, 6, 0],
        }
    }

    fn machine(lists: FreeLists) -> Memory {
        Memory::new(&[node(lists)], 1).unwrap()
    }

    fn node(lists: FreeLists) -> NodeSpec {
        let mut spec = NodeSpec::default();
        spec.zones[ZONE_DMA32] = ZoneSpec {
            free: lists.pages(),
            late: 736,
            free_lists: Some(lists),
            ..ZoneSpec::with_reserved(61_402, 9340)
        };
        spec
    }

    #[test]
    fn the_lists_are_as_asked() {
        let lists = example();
        let memory = machine(lists);
        memory.audit().unwrap();
        let zone = &memory.nodes[0].zones[ZONE_DMA32];
        assert_eq!(zone.free_pages(), lists.pages());
        for (index, mt) in TYPES.into_iter().enumerate() {
            let found = zone.pagetypeinfo(mt);
            let wanted = lists.blocks[index].map(u64::from);
            assert_eq!(found, wanted, "{mt:?}");
        }
    }

    #[test]
    fn a_pageblock_that_the_zone_has_in_part_is_used() {
        // Zone DMA of the same machine: managed memory begins in the middle of a pageblock.
        let lists = FreeLists {
            blocks: [
                [0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0],
                [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3],
                [0; NR_PAGE_ORDERS],
                [0; NR_PAGE_ORDERS],
            ],
            pageblocks: [1, 7, 0, 0],
        };
        assert_eq!(lists.pages(), 3808);
        zone_dma(lists);
    }

    /// A zone DMA with these lists, next to another zone.
    fn zone_dma(lists: FreeLists) -> Memory {
        let mut spec = NodeSpec::default();
        let free = lists.pages();
        spec.zones[ZONE_DMA] =
            ZoneSpec { free, free_lists: Some(lists), ..ZoneSpec::with_reserved(3998, 158) };
        spec.zones[ZONE_DMA32] = ZoneSpec::all_free(4096);
        let frames = managed_frames(&spec, PageSize::Kib4).unwrap();
        assert_eq!(frames[ZONE_DMA], 256..4096);
        let memory = Memory::new(&[spec], 1).unwrap();
        memory.audit().unwrap();
        let zone = &memory.nodes[0].zones[ZONE_DMA];
        assert_eq!(zone.free_pages(), free);
        for (index, mt) in TYPES.into_iter().enumerate() {
            assert_eq!(zone.pagetypeinfo(mt), lists.blocks[index].map(u64::from), "{mt:?}");
        }
        memory
    }

    #[test]
    fn a_claim_in_the_first_pageblock_of_zone_dma_moves_only_later_frames() {
        let mut memory = zone_dma(FreeLists {
            blocks: [
                of_orders(&[(5, 1), (6, 1), (7, 1)]),
                of_orders(&[(9, 1), (10, 3)]),
                [0; NR_PAGE_ORDERS],
                [0; NR_PAGE_ORDERS],
            ],
            pageblocks: [1, 7, 0, 0],
        });
        let Memory { pages, nodes, .. } = &mut memory;
        let zone = &mut nodes[0].zones[ZONE_DMA];
        assert_eq!((zone.start_pfn, zone.spanned), (Pfn(1), 4095));
        let largest = zone.first_block(7, MigrateType::Unmovable).unwrap();
        let moved = zone.move_pageblock(pages, largest, MigrateType::Reclaimable);
        let later = (largest.0..512).filter(|&pfn| pages[pfn as usize].place == Place::Buddy);
        let later: u32 = later.map(|pfn| 1 << pages[pfn as usize].private).sum();
        assert_eq!(moved.free, later);
        assert_eq!(zone.pagetypeinfo(MigrateType::Reclaimable)[7], 1);
        let left: u64 = zone.pagetypeinfo(MigrateType::Unmovable)[5..7].iter().sum();
        assert!(left > 0, "blocks below the claimed one stay");
        memory.audit().unwrap();
    }

    /// Blocks of one type: (order, number).
    fn of_orders(blocks: &[(usize, u32)]) -> [u32; NR_PAGE_ORDERS] {
        let mut counts = [0; NR_PAGE_ORDERS];
        blocks.iter().for_each(|&(order, count)| counts[order] = count);
        counts
    }

    #[test]
    fn a_part_of_a_pageblock_can_be_free_as_a_whole() {
        // The whole zone is free.
        let movable = of_orders(&[(9, 1), (10, 3)]);
        let blocks = [of_orders(&[(8, 1)]), movable, [0; NR_PAGE_ORDERS], [0; NR_PAGE_ORDERS]];
        let lists = FreeLists { blocks, pageblocks: [1, 7, 0, 0] };
        assert_eq!(lists.pages(), 3840);
        assert_eq!(lists.fits(256..4096), Ok([1, 7, 0, 0]));
        let memory = zone_dma(lists);
        let zone = &memory.nodes[0].zones[ZONE_DMA];
        assert_eq!(zone.block_type(Pfn(256)), MigrateType::Unmovable);
        assert_eq!(zone.block_type(Pfn(512)), MigrateType::Movable);
        // With one spare pageblock, the numbers of pageblocks are still as requested.
        let blocks =
            [of_orders(&[(8, 1)]), of_orders(&[(10, 3)]), [0; NR_PAGE_ORDERS], [0; NR_PAGE_ORDERS]];
        let lists = FreeLists { blocks, pageblocks: [1, 7, 0, 0] };
        assert_eq!(lists.fits(256..4096), Ok([1, 6, 0, 0]));
        zone_dma(lists);
        // The halves of a split block would merge.
        let blocks = [of_orders(&[(7, 2)]), movable, [0; NR_PAGE_ORDERS], [0; NR_PAGE_ORDERS]];
        let lists = FreeLists { blocks, pageblocks: [1, 7, 0, 0] };
        let misfit = FreeListsError::Parts { most: 0, needed: 1, room: 0 };
        assert_eq!(lists.fits(256..4096), Err(misfit));
    }

    #[test]
    fn an_edge_goes_to_the_type_that_has_a_use_for_it() {
        // Eight frames and two pageblocks: the first type cannot use the eight frames.
        let blocks =
            [of_orders(&[(4, 1)]), of_orders(&[(8, 1)]), of_orders(&[(3, 1)]), [0; NR_PAGE_ORDERS]];
        let lists = FreeLists { blocks, pageblocks: [1, 1, 1, 0] };
        assert_eq!(lists.fits(1016..2048), Ok([1, 1, 1, 0]));
        assert!(lists.plan(1016, 2048).is_some());
        assert!(lists.plan(1016, 1536).is_none());
        // A single pageblock must not break up the only pair.
        let blocks =
            [of_orders(&[(9, 1)]), of_orders(&[(10, 1)]), [0; NR_PAGE_ORDERS], [0; NR_PAGE_ORDERS]];
        let lists = FreeLists { blocks, pageblocks: [1, 2, 0, 0] };
        assert_eq!(lists.fits(512..2048), Ok([1, 2, 0, 0]));
        let misfit = FreeListsError::Whole { order: 9, asked: 1, room: 0 };
        assert_eq!(lists.fits(1024..2048), Err(misfit));
    }

    /// A pseudo-random sequence of numbers.
    fn numbers(mut state: u32) -> impl FnMut(u32) -> u32 {
        move |below| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        }
    }

    #[test]
    fn what_is_counted_is_what_is_placed() {
        let mut fitted = 0;
        for seed in 0..3000 {
            let mut number = numbers(seed);
            let start = number(1200);
            let end = start + 1 + number(12_000);
            let mut lists = FreeLists::default();
            for of in 0..NR_TYPES {
                lists.pageblocks[of] = number(5);
                for order in 0..NR_PAGE_ORDERS {
                    let sparse = number(3) * number(2);
                    lists.blocks[of][order] = sparse * (1 + number(1 + (256 >> order)));
                }
            }
            let counted = lists.fits(start..end);
            let plan = lists.plan(start, end);
            assert_eq!(counted.is_ok(), plan.is_some(), "{lists:?} in {start}..{end}");
            let (Ok(counted), Some(plan)) = (counted, plan) else { continue };
            fitted += 1;
            let is_cma = |chunk: &Chunk| chunk.mt == MigrateType::Cma;
            let mut free: Vec<(u32, Order, bool)> =
                plan.chunks.iter().map(|chunk| (chunk.pfn, chunk.order, is_cma(chunk))).collect();
            free.sort_unstable();
            assert!(free.windows(2).all(|two| two[0].0 + (1 << two[0].1) <= two[1].0));
            assert!(free.iter().all(|&(pfn, order, is_cma)| {
                let is_inside = pfn >= start && pfn + (1 << order) <= end;
                let buddy = (pfn ^ (1 << order), order, is_cma);
                let merges = order < 10 && free.binary_search(&buddy).is_ok();
                is_inside && pfn.is_multiple_of(1 << order) && !merges
            }));
            let typed: alloc::collections::BTreeMap<_, _> = plan.typed.iter().copied().collect();
            assert_eq!(typed.len(), plan.typed.len(), "no pageblock has two types");
            let size = PAGEBLOCK_NR_PAGES;
            assert!(plan.chunks.iter().all(|chunk| typed[&(chunk.pfn / size * size)] == chunk.mt));
            let needed = pageblocks_by_type(&plan.typed);
            assert!(needed.iter().zip(counted).all(|(all, needed)| *all >= needed));
        }
        assert!((100..2900).contains(&fitted), "{fitted}");
    }

    #[test]
    fn a_large_zone_is_laid_out_at_once() {
        // 64 GiB: with a search for each block this takes minutes.
        let pageblocks = 32_768;
        let movable = of_orders(&[(8, 7000), (3, 100_000), (9, 8000), (10, 8000)]);
        let none = [0; NR_PAGE_ORDERS];
        let blocks = [of_orders(&[(0, 200_000)]), movable, of_orders(&[(8, 100)]), none];
        let lists = FreeLists { blocks, pageblocks: [782, 31_886, 100, 0] };
        let plan = lists.plan(0, pageblocks * PAGEBLOCK_NR_PAGES).unwrap();
        assert_eq!(plan.typed.len(), pageblocks as usize);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut lists = FreeLists::default();
        lists.blocks[0][0] = 40_000; // single pages of which no two may be buddies
        let error = Memory::new(&[node(lists)], 1).unwrap_err();
        assert_eq!(error, SetupError::FreeLists(NodeId(0), ZONE_DMA32));
    }
}
