//! A zone whose free lists are known when the machine starts.
//!
//! Linux: the free blocks that boot left, as /proc/pagetypeinfo shows them. The number of free blocks
//! of each type and size decides when a type has no block left and takes one of another type, and so
//! when a watermark is boosted. On an empty machine of the same size that would be at another time.
//!
//! Only numbers are known, not addresses: blocks are laid out from the top of the zone down, whole
//! pageblocks first, then smaller blocks in pageblocks of their type, no two of them buddies. The
//! kernel holds the rest.
//!
//! Invariant: afterwards `pagetypeinfo` gives the numbers that were asked for.

use crate::buddy::{clear_tails, mark_allocated, Placement};
use crate::gfp::MigrateType;
use crate::page::PageArray;
use crate::units::{
    Order, Pfn, MAX_PAGE_ORDER, NR_PAGE_ORDERS, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER,
};
use crate::zone::Zone;
use alloc::vec::Vec;

/// The types that boot uses, in the order of /proc/pagetypeinfo.
pub const TYPES: [MigrateType; 3] =
    [MigrateType::Unmovable, MigrateType::Movable, MigrateType::Reclaimable];

/// Free blocks of a zone when the machine starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeLists {
    /// Free blocks of each of [`TYPES`], of each order.
    pub blocks: [[u32; NR_PAGE_ORDERS]; 3],
    /// Pageblocks of each of [`TYPES`].
    pub pageblocks: [u32; 3],
}

/// A block to be free.
#[derive(Clone, Copy)]
struct Chunk {
    pfn: u32,
    order: Order,
    mt: MigrateType,
}

/// A part of a pageblock that must not become free as a whole, or it would merge.
#[derive(Clone, Copy)]
struct Slot {
    pfn: u32,
    order: Order,
}

/// Where everything goes: free blocks, and the types of pageblocks by their first frame.
struct Plan {
    chunks: Vec<Chunk>,
    typed: Vec<(u32, MigrateType)>,
}

/// The frames `at..end` in aligned parts as large as possible.
fn aligned_slots(mut at: u32, end: u32) -> Vec<Slot> {
    let mut slots = Vec::new();
    while at < end {
        let order = at.trailing_zeros().min((end - at).ilog2()) as Order;
        slots.push(Slot { pfn: at, order });
        at += 1 << order;
    }
    slots
}

impl FreeLists {
    /// Pages in all blocks.
    pub fn pages(&self) -> u64 {
        let of_type = |counts: &[u32; NR_PAGE_ORDERS]| -> u64 {
            counts.iter().enumerate().map(|(order, &count)| u64::from(count) << order).sum()
        };
        self.blocks.iter().map(of_type).sum()
    }

    /// Where everything goes within the frames `start..end`; `None` when it does not fit.
    fn plan(&self, start: u32, end: u32) -> Option<Plan> {
        let size = PAGEBLOCK_NR_PAGES;
        let mut vacant: Vec<u32> = (start.div_ceil(size)..end / size).map(|n| n * size).collect();
        let mut chunks = Vec::new();
        let mut typed = Vec::new();
        // Pairs of pageblocks, then single ones, from the top.
        for (counts, mt) in self.blocks.iter().zip(TYPES) {
            for order in (PAGEBLOCK_ORDER..=MAX_PAGE_ORDER).rev() {
                let span = 1u32 << order;
                for _ in 0..counts[order as usize] {
                    let parts = (span / size) as usize;
                    let buddy_is_free = |pfn: u32| {
                        chunks
                            .iter()
                            .any(|chunk: &Chunk| (chunk.pfn, chunk.order) == (pfn ^ span, order))
                    };
                    let whole = |window: &[u32]| {
                        window[0].is_multiple_of(span)
                            && window[parts - 1] - window[0] == span - size
                            && (order == MAX_PAGE_ORDER || !buddy_is_free(window[0]))
                    };
                    let at = vacant.windows(parts).rposition(whole)?;
                    chunks.push(Chunk { pfn: vacant[at], order, mt });
                    typed.extend(vacant.drain(at..at + parts).map(|pfn| (pfn, mt)));
                }
            }
        }
        // Pageblocks that the zone has only in part, the lower one first: boot's own.
        let low = (start, start.next_multiple_of(size).min(end));
        let high = (end / size * size, end);
        let mut edges = Vec::new();
        if high.0 >= low.1 && high.0 < high.1 {
            edges.push(high);
        }
        if low.0 < low.1 {
            edges.push(low);
        }
        for (counts, mt) in self.blocks.iter().zip(TYPES) {
            let mut slots: Vec<Slot> = Vec::new();
            for order in (0..PAGEBLOCK_ORDER).rev() {
                for _ in 0..counts[order as usize] {
                    // The smallest slot that is larger, so that large ones stay whole.
                    let best = |slots: &[Slot]| {
                        let fits = |(_, slot): &(usize, &Slot)| slot.order > order;
                        let fitting = slots.iter().enumerate().filter(fits);
                        fitting.min_by_key(|(_, slot)| slot.order).map(|(index, _)| index)
                    };
                    if best(&slots).is_none() {
                        if let Some((from, to)) = edges.pop() {
                            typed.push((from / size * size, mt));
                            slots.extend(aligned_slots(from, to));
                        }
                    }
                    let mut slot = match best(&slots) {
                        Some(index) => slots.swap_remove(index),
                        None => {
                            let pfn = vacant.pop()?;
                            typed.push((pfn, mt));
                            Slot { pfn, order: PAGEBLOCK_ORDER }
                        }
                    };
                    // Of two halves one is split on, the other may hold something else, not all.
                    while slot.order > order {
                        slot.order -= 1;
                        slots.push(slot);
                        slot.pfn += 1 << slot.order;
                    }
                    chunks.push(Chunk { pfn: slot.pfn, order, mt });
                }
            }
        }
        // What is left is held; its types make up the numbers.
        for (index, mt) in TYPES.iter().enumerate() {
            let used = typed.iter().filter(|(_, of)| of == mt).count() as u32;
            for _ in used..self.pageblocks[index] {
                let Some(pfn) = vacant.pop() else { break };
                typed.push((pfn, *mt));
            }
        }
        vacant.extend(edges.into_iter().map(|(from, _)| from / size * size));
        typed.extend(vacant.into_iter().map(|pfn| (pfn, MigrateType::Unmovable)));
        Some(Plan { chunks, typed })
    }

    /// Gives `zone`, whose managed frames `start..end` are neither free nor handed out, these free
    /// blocks; everything else is held by the kernel. False, and nothing done, if they do not fit.
    pub(crate) fn build(
        &self,
        zone: &mut Zone,
        pages: &mut PageArray,
        start: u32,
        end: u32,
    ) -> bool {
        let Some(Plan { chunks, typed }) = self.plan(start, end) else { return false };
        for pfn in start..end {
            mark_allocated(pages, Pfn(pfn), 0);
        }
        for (pfn, mt) in typed {
            zone.set_block_type(Pfn(pfn), mt);
        }
        for Chunk { pfn, order, mt } in chunks {
            clear_tails(pages, Pfn(pfn), order);
            zone.free_block(pages, Pfn(pfn), order, mt, Placement::Tail);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{NodeSpec, ZoneSpec};
    use crate::page_alloc::Memory;
    use crate::zone::{ZONE_DMA, ZONE_DMA32};

    /// Debian's 6.1 with 256 MiB, before the first task runs.
    fn example() -> FreeLists {
        FreeLists {
            blocks: [
                [0, 1, 1, 4, 0, 1, 1, 1, 1, 0, 0],
                [1, 0, 1, 0, 0, 6, 9, 7, 7, 2, 38],
                [1, 0, 0, 1, 1, 1, 1, 1, 0, 1, 0],
            ],
            pageblocks: [16, 98, 6],
        }
    }

    fn machine(lists: FreeLists) -> Memory {
        let mut spec = NodeSpec::default();
        spec.zones[ZONE_DMA32] = ZoneSpec {
            present: 61_402,
            managed: 52_062,
            free: lists.pages(),
            late: 736,
            free_lists: Some(lists),
        };
        Memory::new(&[spec], 1).unwrap()
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
            ],
            pageblocks: [1, 7, 0],
        };
        let mut spec = NodeSpec::default();
        spec.zones[ZONE_DMA] =
            ZoneSpec { present: 3998, managed: 3840, free: 3808, late: 0, free_lists: Some(lists) };
        spec.zones[ZONE_DMA32] = ZoneSpec::all_free(4096);
        let memory = Memory::new(&[spec], 1).unwrap();
        memory.audit().unwrap();
        let zone = &memory.nodes[0].zones[ZONE_DMA];
        for (index, mt) in TYPES.into_iter().enumerate() {
            assert_eq!(zone.pagetypeinfo(mt), lists.blocks[index].map(u64::from), "{mt:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_approximated() {
        let mut lists = FreeLists::default();
        lists.blocks[0][0] = 40_000; // single pages of which no two may be buddies
        let memory = machine(lists);
        memory.audit().unwrap();
        assert_eq!(memory.nodes[0].zones[ZONE_DMA32].free_pages(), 40_000);
    }
}
