//! Fragmentation of free memory, seen by a request of one order.
//!
//! Linux: `fill_contig_page_info`, `__fragmentation_index` and `unusable_free_index` (mm/vmstat.c,
//! 6.1). Compaction uses these indices and debugfs shows them. Values are integers in thousandths.

use crate::frames::zone::Zone;
use crate::units::{Order, NR_PAGE_ORDERS};

/// Free memory as a request of one order sees it (Linux `struct contig_page_info`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FreeBlocks {
    /// Pages in free blocks of any order.
    pub pages: u64,
    /// Free blocks of any order.
    pub blocks: u64,
    /// Free blocks of this order or a higher one.
    pub suitable_blocks: u64,
    /// Pages in the suitable blocks.
    pub suitable_pages: u64,
}

impl FreeBlocks {
    /// The free blocks of a zone, on lists of all types.
    pub fn of(zone: &Zone, order: Order) -> FreeBlocks {
        let mut free = FreeBlocks::default();
        for (at, &blocks) in zone.buddyinfo().iter().enumerate() {
            free.pages += blocks << at;
            free.blocks += blocks;
            if at >= order.into() {
                free.suitable_blocks += blocks;
                free.suitable_pages += blocks << at;
            }
        }
        free
    }

    /// Sum over two zones; both must be at the same order.
    pub const fn plus(self, other: FreeBlocks) -> FreeBlocks {
        FreeBlocks {
            pages: self.pages + other.pages,
            blocks: self.blocks + other.blocks,
            suitable_blocks: self.suitable_blocks + other.suitable_blocks,
            suitable_pages: self.suitable_pages + other.suitable_pages,
        }
    }

    /// Share of free memory that this order cannot use; see [`unusable_index`].
    pub fn unusable_index(&self) -> i32 {
        let unusable = (self.pages - self.suitable_pages) * 1000;
        unusable.checked_div(self.pages).map_or(1000, thousandths)
    }
}

/// Why a request of an order fails, in thousandths. Values near 0 mean too little free memory,
/// values near 1000 mean fragmentation; -1000 means that a block is free. If the free blocks are
/// few and too small, Linux's formula leaves this range and gives other negative values.
///
/// ```
/// # use pagetide_core::{compaction::fragmentation::fragmentation_index, config::Config};
/// # use pagetide_core::{frames::node::NodeSpec, frames::zone_type::ZONE_DMA32, process::Machine};
/// # let node = NodeSpec::x86_64(64 << 20, 0, 0);
/// # let machine = Machine::new(&[node], 1, Config::default()).unwrap();
/// let zone = &machine.mem.nodes[0].zones[ZONE_DMA32];
/// assert_eq!(fragmentation_index(zone, 9), -1000, "all memory is still free in large blocks");
/// ```
pub fn fragmentation_index(zone: &Zone, order: Order) -> i32 {
    let free = FreeBlocks::of(zone, order);
    if usize::from(order) >= NR_PAGE_ORDERS || free.blocks == 0 {
        return 0;
    }
    if free.suitable_blocks > 0 {
        return -1000;
    }
    let requests = (free.pages * 1000) >> order;
    1000 - thousandths((1000 + requests) / free.blocks)
}

/// Share of free memory in blocks smaller than an order, in thousandths: 0 if all blocks suit, 1000
/// if none does or if no memory is free.
pub fn unusable_index(zone: &Zone, order: Order) -> i32 {
    FreeBlocks::of(zone, order).unusable_index()
}

fn thousandths(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::zone_type::ZONE_NORMAL;
    use crate::units::{NodeId, Pfn, MAX_PAGE_ORDER};

    /// A zone that reports `blocks[order]` free blocks of each order.
    fn zone(blocks: [u64; NR_PAGE_ORDERS]) -> Zone {
        let mut zone = Zone::new(ZONE_NORMAL, NodeId(0), Pfn(0), 1 << 20, 1);
        for (area, nr_free) in zone.free_area.iter_mut().zip(blocks) {
            area.nr_free = nr_free;
        }
        zone
    }

    fn all(zone: &Zone, index: impl Fn(&Zone, Order) -> i32) -> [i32; NR_PAGE_ORDERS] {
        core::array::from_fn(|order| index(zone, order as Order))
    }

    #[test]
    fn nothing_free() {
        let zone = zone([0; NR_PAGE_ORDERS]);
        assert_eq!(all(&zone, fragmentation_index), [0; NR_PAGE_ORDERS]);
        assert_eq!(all(&zone, unusable_index), [1000; NR_PAGE_ORDERS]);
    }

    #[test]
    fn everything_in_the_largest_blocks() {
        let zone = zone([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
        assert_eq!(all(&zone, fragmentation_index), [-1000; NR_PAGE_ORDERS]);
        assert_eq!(all(&zone, unusable_index), [0; NR_PAGE_ORDERS]);
        assert_eq!(fragmentation_index(&zone, MAX_PAGE_ORDER + 1), 0);
    }

    /// 100 pages, 60 pairs and 10 blocks of 4: 260 pages in 170 blocks.
    /// Order 3: 260000 / 8 = 32500; 33500 / 170 = 197. Order 4: 16250; 17250 / 170 = 101. Order 9:
    /// 507; 1507 / 170 = 8. Unusable, order 1: 100000 / 260 = 384; order 2: 220000 / 260 = 846.
    #[test]
    fn a_fragmented_zone_by_hand() {
        let zone = zone([100, 60, 10, 0, 0, 0, 0, 0, 0, 0, 0]);
        let wanted = [-1000, -1000, -1000, 803, 899, 947, 971, 983, 989, 992, 993];
        assert_eq!(all(&zone, fragmentation_index), wanted);
        let wanted = [0, 384, 846, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000];
        assert_eq!(all(&zone, unusable_index), wanted);
    }

    /// One free page, or one free block of half the order: the formula of Linux leaves its range.
    #[test]
    fn few_blocks_are_below_zero() {
        let zone = zone([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(fragmentation_index(&zone, 1), 1000 - 1500);
        assert_eq!(fragmentation_index(&zone, 3), 1000 - 1125);
        assert_eq!(fragmentation_index(&zone, 10), 1000 - 1000);
    }

    #[test]
    fn zones_add_up() {
        let small = FreeBlocks::of(&zone([3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), 9);
        let large = FreeBlocks::of(&zone([0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]), 9);
        let both = small.plus(large);
        let wanted =
            FreeBlocks { pages: 1539, blocks: 5, suitable_blocks: 2, suitable_pages: 1536 };
        assert_eq!(both, wanted);
        assert_eq!(both.unusable_index(), 1, "3000 / 1539");
    }
}
