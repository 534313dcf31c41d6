//! A NUMA node, and the description of a machine's memory.
//!
//! Linux: `pg_data_t`, `struct zonelist` (include/linux/mmzone.h, 6.1). A node has four zones, some
//! of which may be empty. A zonelist is the order in which a request that starts on a node tries
//! the zones: all zones of its own node before those of other nodes, and on each node the highest
//! allowed zone first.
//!
//! Invariant: `zones[i].index == i`, and `zones[i].node` is the node's id.

use crate::frames::boot::free_lists::FreeLists;
use crate::frames::zone::Zone;
use crate::frames::zone_type::{MAX_NR_ZONES, ZONE_DMA, ZONE_DMA32, ZONE_MOVABLE, ZONE_NORMAL};
use crate::units::digest::State;
use crate::units::page_size::PageSize;
use crate::units::{NodeId, MAX_PAGE_ORDER, PAGEBLOCK_NR_PAGES};
use alloc::vec::Vec;
use core::ops::Range;

/// Largest number of nodes: a page descriptor keeps six bits of node number.
pub const MAX_NODES: usize = 64;
/// Where zone DMA ends, in bytes.
const DMA_END: u64 = 16 << 20;
/// Where zone DMA32 ends, in bytes.
const DMA32_END: u64 = 4 << 30;
/// Number of bytes at the lowest addresses that x86-64 does not give to the allocator.
const LOW_MIB: u64 = 1 << 20;

/// First frame above zone DMA (16 MiB).
pub const fn dma_end_pfn(page_size: PageSize) -> u64 {
    page_size.pages_in(DMA_END)
}

/// First frame above zone DMA32 (4 GiB).
pub const fn dma32_end_pfn(page_size: PageSize) -> u64 {
    page_size.pages_in(DMA32_END)
}

/// Largest size of zone DMA32 after a zone DMA of `dma` pages. A zone starts at a multiple of the
/// largest block. With pages of 64 KiB this is 64 MiB, so the frames between 16 and 64 MiB are in
/// no zone.
pub const fn dma32_pages_max(dma: u64, page_size: PageSize) -> u64 {
    let below = if dma > 0 { dma_end_pfn(page_size) } else { 0 };
    dma32_end_pfn(page_size) - below.next_multiple_of(1 << MAX_PAGE_ORDER)
}

/// A NUMA node.
#[derive(Clone, Debug, State)]
pub struct Node {
    /// Its number.
    pub id: NodeId,
    /// DMA, DMA32, Normal, Movable.
    pub zones: [Zone; MAX_NR_ZONES],
    /// CPUs that share the node's low watermark for their per-CPU sets: the node's own CPUs, or all
    /// CPUs if the node has none.
    pub nr_cpus: u16,
    /// Pages that are kept free, and so are not available to users: high watermarks and reserves.
    /// Dirty limits are computed from the other pages.
    pub totalreserve_pages: u64,
}

impl Node {
    /// Managed pages of all zones.
    pub fn managed_pages(&self) -> u64 {
        self.zones.iter().map(|zone| zone.managed).sum()
    }

    /// Free pages of all zones; per-CPU lists are not counted.
    pub fn free_pages(&self) -> u64 {
        self.zones.iter().map(Zone::free_pages).sum()
    }

    /// Zones with memory, lowest first.
    pub fn populated_zones(&self) -> impl DoubleEndedIterator<Item = &Zone> {
        self.zones.iter().filter(|zone| zone.is_populated())
    }
}

/// Sizes of a zone, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneSpec {
    /// Pages that exist.
    pub present: u64,
    /// Pages given to the allocator. The other present pages hold firmware, kernel image and page
    /// array.
    pub managed: u64,
    /// Pages free at machine start. The kernel never frees the other managed pages.
    pub free: u64,
    /// Managed pages that boot freed only after it had set the watermarks (initial RAM disk, init
    /// sections). 0 is a good default. With a larger number, the kernel's own `min_free_kbytes`,
    /// watermarks and reserves are a little smaller.
    pub late: u64,
    /// CMA memory: whole pageblocks at the end of the zone, all free. 0 if `free_lists` is given,
    /// which has the pageblocks of this type.
    pub cma: u64,
    /// Whether it is HighMem of a 32-bit machine. Only the last zone can be.
    pub is_highmem: bool,
    /// The free lists at machine start, with [`free`](ZoneSpec::free) pages in total; `None`:
    /// blocks as large as possible.
    pub free_lists: Option<FreeLists>,
}

impl ZoneSpec {
    /// A zone with all pages managed and free.
    pub const fn all_free(pages: u64) -> ZoneSpec {
        ZoneSpec {
            present: pages,
            managed: pages,
            free: pages,
            late: 0,
            cma: 0,
            is_highmem: false,
            free_lists: None,
        }
    }

    /// A zone in which `reserved` pages are not managed; all other pages are free.
    pub const fn with_reserved(present: u64, reserved: u64) -> ZoneSpec {
        let managed = present.saturating_sub(reserved);
        ZoneSpec {
            present,
            managed,
            free: managed,
            late: 0,
            cma: 0,
            is_highmem: false,
            free_lists: None,
        }
    }

    /// Largest possible [`cma`](ZoneSpec::cma), if the zone has these managed frames.
    pub fn cma_room(&self, managed: Range<u32>) -> u64 {
        let block = u64::from(PAGEBLOCK_NR_PAGES);
        let held_end = u64::from(managed.start) + (self.managed - self.free);
        let end = u64::from(managed.end) / block * block;
        end.saturating_sub(held_end.next_multiple_of(block))
    }
}

/// Sizes of a node's zones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeSpec {
    /// DMA, DMA32, Normal, Movable. Only node 0 may have the first two.
    pub zones: [ZoneSpec; MAX_NR_ZONES],
}

impl NodeSpec {
    /// Node 0 of an x86-64 machine with `bytes` of memory in pages of 4 KiB: DMA up to 16 MiB,
    /// DMA32 up to 4 GiB, Normal above; the top `movable` bytes are zone Movable. `reserved` bytes
    /// are not managed: the lowest MiB, then memory from the last zones. Everything else is free.
    pub fn x86_64(bytes: u64, reserved: u64, movable: u64) -> NodeSpec {
        NodeSpec::x86_64_of_pages(bytes, reserved, movable, PageSize::Kib4)
    }

    /// [`NodeSpec::x86_64`] with pages of another size.
    pub fn x86_64_of_pages(
        bytes: u64,
        reserved: u64,
        movable: u64,
        page_size: PageSize,
    ) -> NodeSpec {
        let total = page_size.pages_for(bytes);
        let movable = page_size.pages_for(movable).min(total);
        let dma = (total - movable).min(dma_end_pfn(page_size));
        let dma32 = (total - movable - dma).min(dma32_pages_max(dma, page_size));
        let normal = total - movable - dma - dma32;
        let mut spec = NodeSpec::default();
        spec.zones[ZONE_DMA] = ZoneSpec::all_free(dma);
        spec.zones[ZONE_DMA32] = ZoneSpec::all_free(dma32);
        spec.zones[ZONE_NORMAL] = ZoneSpec::all_free(normal);
        spec.zones[ZONE_MOVABLE] = ZoneSpec::all_free(movable);
        spec.reserve(page_size.pages_for(reserved), page_size);
        spec
    }

    /// A node other than 0, in pages of 4 KiB: all memory is Normal, except the top `movable`
    /// bytes.
    pub fn remote(bytes: u64, reserved: u64, movable: u64) -> NodeSpec {
        NodeSpec::remote_of_pages(bytes, reserved, movable, PageSize::Kib4)
    }

    /// [`NodeSpec::remote`] with pages of another size.
    pub fn remote_of_pages(
        bytes: u64,
        reserved: u64,
        movable: u64,
        page_size: PageSize,
    ) -> NodeSpec {
        let total = page_size.pages_for(bytes);
        let movable = page_size.pages_for(movable).min(total);
        let mut spec = NodeSpec::default();
        spec.zones[ZONE_NORMAL] = ZoneSpec::all_free(total - movable);
        spec.zones[ZONE_MOVABLE] = ZoneSpec::all_free(movable);
        spec.reserve(page_size.pages_for(reserved), page_size);
        spec
    }

    /// Removes `pages` from the managed pages: first up to 1 MiB from zone DMA, then from Normal,
    /// DMA32 and DMA in this order, last from Movable.
    fn reserve(&mut self, pages: u64, page_size: PageSize) {
        let mut left = pages;
        let order = [(ZONE_DMA, page_size.pages_in(LOW_MIB))]
            .into_iter()
            .chain([ZONE_NORMAL, ZONE_DMA32, ZONE_DMA, ZONE_MOVABLE].map(|z| (z, u64::MAX)));
        for (zone, most) in order {
            let zone = &mut self.zones[zone];
            let taken = left.min(most).min(zone.managed);
            zone.managed -= taken;
            zone.free = zone.managed;
            left -= taken;
        }
    }
}

/// An entry of a zonelist.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub struct ZoneRef {
    /// The node.
    pub node: NodeId,
    /// Index of the zone.
    pub zone: u8,
}

/// Zones for requests that start on one node and may use zones up to some index.
#[derive(Clone, Debug, Default)]
pub struct Zonelist {
    /// Populated zones, best first.
    pub zones: Vec<ZoneRef>,
    /// The first zone of `zones`.
    pub preferred: Option<ZoneRef>,
    /// Whether a first attempt avoids mixing types: the preferred zone is Normal and the node also
    /// has a zone DMA32 (Linux `alloc_flags_nofragment`).
    pub nofragment: bool,
}

/// The zonelists of one node, by the highest zone that a request may use.
pub type Zonelists = [Zonelist; MAX_NR_ZONES];

/// Builds the zonelists of every node (Linux `build_all_zonelists`). All nodes are equally far
/// apart: after the node itself come the nodes with higher numbers, then those with lower numbers.
pub fn build_zonelists(nodes: &[Node]) -> Vec<Zonelists> {
    (0..nodes.len())
        .map(|own| {
            core::array::from_fn(|highest| {
                let around = nodes[own..].iter().chain(&nodes[..own]);
                let zones: Vec<ZoneRef> = around
                    .flat_map(|node| node.zones[..=highest].iter().rev())
                    .filter(|zone| zone.is_populated())
                    .map(|zone| ZoneRef { node: zone.node, zone: zone.index as u8 })
                    .collect();
                let preferred = zones.first().copied();
                let nofragment = preferred.is_some_and(|first| avoids_mixing(nodes, first));
                Zonelist { zones, preferred, nofragment }
            })
        })
        .collect()
}

fn avoids_mixing(nodes: &[Node], preferred: ZoneRef) -> bool {
    let has_dma32 = nodes[usize::from(preferred.node.0)].zones[ZONE_DMA32].is_populated();
    usize::from(preferred.zone) == ZONE_NORMAL && (nodes.len() == 1 || has_dma32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn memory_is_cut_into_zones_as_on_x86_64() {
        let spec = NodeSpec::x86_64(8192 * MIB, 100 * MIB, 1024 * MIB);
        let [dma, dma32, normal, movable] = spec.zones;
        assert_eq!((dma.present, dma.managed), (4096, 3840));
        assert_eq!((dma32.present, dma32.managed), (1_044_480, 1_044_480));
        assert_eq!((normal.present, normal.managed), (786_432, 786_432 - 25_600 + 256));
        assert_eq!((movable.present, movable.managed), (262_144, 262_144));
    }

    #[test]
    fn a_small_machine_gives_what_it_has() {
        let spec = NodeSpec::x86_64(8 * MIB, 64 * MIB, 0);
        assert_eq!(spec.zones[ZONE_DMA].present, 2048);
        assert!(spec.zones.iter().all(|zone| zone.managed == 0 && zone.free == 0));
        let spec = NodeSpec::x86_64(0, 0, MIB);
        assert_eq!(spec, NodeSpec::default());
    }

    #[test]
    fn zones_of_larger_pages_have_the_same_bytes() {
        for page_size in PageSize::ALL {
            let spec = NodeSpec::x86_64_of_pages(8192 * MIB, 100 * MIB, 1024 * MIB, page_size);
            let [dma, dma32, _, movable] = spec.zones.map(|zone| page_size.bytes_of(zone.present));
            assert_eq!((dma, movable), (16 * MIB, 1024 * MIB));
            // Zones start at a multiple of the largest block.
            let begins = if page_size == PageSize::Kib64 { 64 * MIB } else { 16 * MIB };
            assert_eq!(dma32, 4096 * MIB - begins);
            let sum = |of: fn(&ZoneSpec) -> u64| -> u64 {
                page_size.bytes_of(spec.zones.iter().map(of).sum())
            };
            assert_eq!(sum(|zone| zone.present), 8192 * MIB);
            assert_eq!(sum(|zone| zone.present - zone.managed), 100 * MIB);
            assert_eq!(
                page_size.bytes_of(spec.zones[ZONE_DMA].managed),
                15 * MIB,
                "the lowest MiB is never managed"
            );
        }
    }
}
