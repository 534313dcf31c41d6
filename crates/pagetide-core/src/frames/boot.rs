//! Machine start: places nodes and zones, frees managed pages, allocates the kernel's pages.
//!
//! Linux: `free_area_init`, `memblock_free_all` (mm/page_alloc.c, mm/memblock.c, 6.1) and every
//! allocation that the kernel makes before the first program runs.
//!
//! Invariant: after [`Memory::new`] each zone has exactly `free` pages on its buddy lists, in
//! ascending address order, and none on other lists. The kernel's pages are at the low end, in
//! unmovable pageblocks, unless the free lists of the zone are given ([`free_lists`]).

pub mod free_lists;

use crate::frames::buddy::{mark_allocated, Placement};
use crate::frames::gfp::MigrateType;
use crate::frames::node::{
    build_zonelists, dma32_end_pfn, dma32_pages_max, dma_end_pfn, Node, NodeSpec, ZoneSpec,
    MAX_NODES,
};
use crate::frames::page_alloc::{LastFreed, Memory};
use crate::frames::page_array::PageArray;
use crate::frames::pgdat::NodeState;
use crate::frames::pin_counts::Pins;
use crate::frames::watermark::{self, WatermarkInputs};
use crate::frames::zone::Zone;
use crate::frames::zone_type::{MAX_NR_ZONES, ZONE_DMA, ZONE_DMA32, ZONE_HIGHMEM, ZONE_NAMES};
use crate::stats::event::EventLog;
use crate::stats::vmstat::Vmstat;
use crate::stats::work::Work;
use crate::units::page_size::PageSize;
use crate::units::{
    NodeId, Order, Pfn, MAX_PAGES, MAX_PAGE_ORDER, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER,
};
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// Why a machine cannot be built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetupError {
    /// No node, or more than 64.
    NodeCount(usize),
    /// No CPU.
    NoCpu,
    /// No zone has memory.
    NoMemory,
    /// Only node 0 may have zones DMA and DMA32.
    LowZone(NodeId),
    /// Zone `zone` of the node is larger than the range x86-64 gives it.
    ZoneTooLarge(NodeId, usize),
    /// Zone `zone` has more managed than present pages, more free pages or late pages
    /// (`ZoneSpec::late`) than managed pages, or free lists that do not add up to `free` pages.
    ZoneCounts(NodeId, usize),
    /// The free blocks of zone `zone`, or its CMA memory, do not fit into its pageblocks.
    FreeLists(NodeId, usize),
    /// More frames, holes included, than a frame number can address.
    TooManyPages(u64),
    /// The host has no memory for the page array.
    PageArray(u64),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |zone: &usize| ZONE_NAMES.get(*zone).copied().unwrap_or("?");
        match self {
            SetupError::NodeCount(nr) => write!(f, "{nr} nodes: must be 1 to {MAX_NODES}"),
            SetupError::NoCpu => write!(f, "a machine needs a CPU"),
            SetupError::NoMemory => write!(f, "no zone has managed memory"),
            SetupError::LowZone(node) => {
                write!(f, "{node:?}: only node 0 may have zones DMA and DMA32")
            }
            SetupError::ZoneTooLarge(node, zone) => {
                write!(f, "{node:?}: zone {} is larger than its address range", name(zone))
            }
            SetupError::ZoneCounts(node, zone) => {
                write!(f, "{node:?}: zone {}: must be free, late <= managed <= present", name(zone))
            }
            SetupError::FreeLists(node, zone) => {
                write!(
                    f,
                    "{node:?}: zone {}: free blocks or CMA do not fit into its pageblocks",
                    name(zone)
                )
            }
            SetupError::TooManyPages(nr) => write!(f, "{nr} frames: at most {MAX_PAGES} fit"),
            SetupError::PageArray(nr) => write!(f, "no memory for {nr} page descriptors"),
        }
    }
}

impl core::error::Error for SetupError {}

/// Smallest zone, in pageblocks, in which boot makes one pageblock reclaimable.
const RECLAIMABLE_FROM_PAGEBLOCKS: u32 = 16;

/// Position of a zone, in frames.
#[derive(Clone, Copy, Default)]
struct ZoneSpan {
    start: u64,
    len: u64,
    /// First managed frame; managed frames are contiguous.
    managed: u64,
}

impl Memory {
    /// Builds a machine with these nodes and the kernel's default watermarks ([`watermark::boot`]).
    pub fn new(specs: &[NodeSpec], nr_cpus: u16) -> Result<Memory, SetupError> {
        Memory::of_pages(specs, nr_cpus, PageSize::default())
    }

    /// Like [`Memory::new`], with pages of this size; the numbers in `specs` count such pages.
    pub fn of_pages(
        specs: &[NodeSpec],
        nr_cpus: u16,
        page_size: PageSize,
    ) -> Result<Memory, SetupError> {
        check(specs, nr_cpus, page_size)?;
        let (spans, nr_pages) = place_zones(specs, page_size);
        if nr_pages > MAX_PAGES {
            return Err(SetupError::TooManyPages(nr_pages));
        }
        let mut pages = page_array(&spans, nr_pages)?;
        let mut nodes: Vec<Node> = Vec::with_capacity(specs.len());
        for (i, (spec, spans)) in specs.iter().zip(&spans).enumerate() {
            let id = NodeId(i as u8);
            let zones: [Option<Zone>; MAX_NR_ZONES] = core::array::from_fn(|z| {
                boot_zone(&mut pages, id, z, &spec.zones[z], spans[z], nr_cpus)
            });
            if let Some(z) = zones.iter().position(Option::is_none) {
                return Err(SetupError::FreeLists(id, z));
            }
            nodes.push(Node {
                id,
                zones: zones.map(|zone| zone.expect("the loop sets every zone")),
                nr_cpus: nr_local_cpus(i, specs.len(), nr_cpus),
                totalreserve_pages: 0,
            });
        }
        watermark::boot(&mut nodes, &mut WatermarkInputs::default(), page_size);
        for zone in nodes.iter_mut().flat_map(|node| &mut node.zones) {
            let marks = zone.stat_marks();
            zone.stat.set_thresholds(marks, stat_unit(page_size));
        }
        Ok(Memory {
            pgdat: nodes.iter().map(|_| NodeState::new()).collect(),
            pins: Pins::default(),
            page_size,
            pages,
            zonelists: build_zonelists(&nodes).into(),
            nodes: nodes.into(),
            vmstat: Vmstat::new(),
            events: EventLog::default(),
            work: Work::default(),
            nr_cpus,
            wakeups: Vec::new(),
            last_oom: None,
            last_freed: LastFreed::guess(),
            spreads_over_zones: false,
            defrag_mode: false,
        })
    }

    pub(crate) const fn stat_unit(&self) -> u64 {
        stat_unit(self.page_size)
    }
}

fn check(specs: &[NodeSpec], nr_cpus: u16, page_size: PageSize) -> Result<(), SetupError> {
    if specs.is_empty() || specs.len() > MAX_NODES {
        return Err(SetupError::NodeCount(specs.len()));
    }
    if nr_cpus == 0 {
        return Err(SetupError::NoCpu);
    }
    for (i, spec) in specs.iter().enumerate() {
        let node = NodeId(i as u8);
        for (z, zone) in spec.zones.iter().enumerate() {
            let ordered = zone.free <= zone.managed
                && zone.late <= zone.managed
                && zone.managed <= zone.present
                && zone.free_lists.is_none_or(|lists| lists.pages() == zone.free && zone.cma == 0);
            if !ordered {
                return Err(SetupError::ZoneCounts(node, z));
            }
            if zone.present > MAX_PAGES {
                return Err(SetupError::TooManyPages(zone.present));
            }
        }
        let low = &spec.zones[..=ZONE_DMA32];
        if i > 0 && low.iter().any(|zone| zone.present > 0) {
            return Err(SetupError::LowZone(node));
        }
        let dma = spec.zones[ZONE_DMA].present;
        if dma > dma_end_pfn(page_size) {
            return Err(SetupError::ZoneTooLarge(node, ZONE_DMA));
        }
        if spec.zones[ZONE_DMA32].present > dma32_pages_max(dma, page_size) {
            return Err(SetupError::ZoneTooLarge(node, ZONE_DMA32));
        }
    }
    if specs.iter().all(|spec| spec.zones.iter().all(|zone| zone.managed == 0)) {
        return Err(SetupError::NoMemory);
    }
    Ok(())
}

/// Assigns frames to each zone. If a higher zone follows, zone DMA reaches up to 16 MiB and zone
/// DMA32 up to 4 GiB. If such a zone has less memory than that, it has a hole: DMA at the start
/// (below 1 MiB; such a zone begins at frame 1), DMA32 at the end (the PCI hole). Other zones are
/// contiguous and have no holes. Other starts are aligned to the largest block, so that no block and
/// no pageblock belongs to two zones.
fn place_zones(specs: &[NodeSpec], page_size: PageSize) -> (Vec<[ZoneSpan; MAX_NR_ZONES]>, u64) {
    let align = 1u64 << MAX_PAGE_ORDER;
    let mut at = 0u64;
    let mut spans = Vec::with_capacity(specs.len());
    for spec in specs {
        let mut node = [ZoneSpan::default(); MAX_NR_ZONES];
        for (z, zone) in spec.zones.iter().enumerate() {
            if zone.present == 0 {
                continue;
            }
            let start = at.next_multiple_of(align);
            let more_above = spec.zones[z + 1..].iter().any(|zone| zone.present > 0);
            let len = match z {
                ZONE_DMA if more_above => dma_end_pfn(page_size) - start,
                ZONE_DMA32 if more_above => dma32_end_pfn(page_size) - start,
                _ => zone.present,
            };
            let hole_in_front = if z == ZONE_DMA { len - zone.present } else { 0 };
            let managed = start + hole_in_front + (zone.present - zone.managed);
            at = start + len;
            // Firmware has the first frame of the machine, so the zone does not span it.
            let start = start + hole_in_front.min(1);
            node[z] = ZoneSpan { start, len: at - start, managed };
        }
        spans.push(node);
    }
    (spans, at)
}

/// The managed frames of each zone of a node, as if the machine had only this node. In any other
/// machine the frames have the same offsets within pageblocks and pairs of pageblocks. `None` if no
/// machine can have such a node.
pub fn managed_frames(spec: &NodeSpec, page_size: PageSize) -> Option<[Range<u32>; MAX_NR_ZONES]> {
    let specs = [*spec];
    check(&specs, 1, page_size).ok()?;
    let (spans, nr_pages) = place_zones(&specs, page_size);
    let spans = spans.first().filter(|_| nr_pages <= MAX_PAGES)?;
    let frames = |span: &ZoneSpan, zone: &ZoneSpec| {
        span.managed as u32..(span.managed + zone.managed) as u32
    };
    Some(core::array::from_fn(|z| frames(&spans[z], &spec.zones[z])))
}

fn page_array(spans: &[[ZoneSpan; MAX_NR_ZONES]], nr_pages: u64) -> Result<PageArray, SetupError> {
    let mut pages = PageArray::new(nr_pages).ok_or(SetupError::PageArray(nr_pages))?;
    let mut at = 0;
    for (i, node) in spans.iter().enumerate() {
        for (z, span) in node.iter().enumerate().filter(|(_, span)| span.len > 0) {
            // Frames between two zones are reserved, like the frames of a hole.
            let end = span.start + span.len;
            pages.assign(at..end, z as u8, NodeId(i as u8));
            at = end;
        }
    }
    Ok(pages)
}

/// Pages in 128 MiB. The thresholds of the zones' counters are computed in this unit.
const fn stat_unit(page_size: PageSize) -> u64 {
    page_size.pages_in(128 << 20)
}

/// Returns `None` if the free blocks or the CMA memory do not fit into the zone's pageblocks.
fn boot_zone(
    pages: &mut PageArray,
    node: NodeId,
    index: usize,
    spec: &ZoneSpec,
    span: ZoneSpan,
    nr_cpus: u16,
) -> Option<Zone> {
    let mut zone = Zone::new(index, node, Pfn(span.start as u32), span.len, nr_cpus);
    zone.present = spec.present;
    zone.managed = spec.managed;
    zone.late = spec.late;
    zone.is_highmem = spec.is_highmem && index == ZONE_HIGHMEM;
    let (start, end) = (span.managed as u32, (span.managed + spec.managed) as u32);
    if let Some(lists) = spec.free_lists {
        let fits = lists.build(&mut zone, pages, start, end);
        zone.cma_pages = pages_of(&zone, MigrateType::Cma);
        return fits.then_some(zone);
    }
    let block = u64::from(PAGEBLOCK_NR_PAGES);
    if !spec.cma.is_multiple_of(block) || spec.cma > spec.cma_room(start..end) {
        return None;
    }
    let held_end = hold(&mut zone, pages, start, end, spec.managed - spec.free);
    let cma_end = end / PAGEBLOCK_NR_PAGES;
    for at in cma_end - (spec.cma / block) as u32..cma_end {
        zone.set_block_type(Pfn(at * PAGEBLOCK_NR_PAGES), MigrateType::Cma);
    }
    zone.cma_pages = spec.cma;
    free_range(&mut zone, pages, held_end, end);
    Some(zone)
}

/// Pages in the zone's pageblocks of this type, all of which it has as a whole.
fn pages_of(zone: &Zone, mt: MigrateType) -> u64 {
    zone.block_counts()[mt as usize] * u64::from(PAGEBLOCK_NR_PAGES)
}

/// Frees frames `at..end` in blocks as large as possible, each to the tail of its list.
fn free_range(zone: &mut Zone, pages: &mut PageArray, mut at: u32, end: u32) {
    while at < end {
        let fits = (end - at).ilog2();
        let mut order = at.trailing_zeros().min(fits).min(MAX_PAGE_ORDER.into()) as Order;
        // A block must not span pageblocks of two types.
        if order > PAGEBLOCK_ORDER {
            let next = Pfn(at + PAGEBLOCK_NR_PAGES);
            if zone.block_type(Pfn(at)) != zone.block_type(next) {
                order = PAGEBLOCK_ORDER;
            }
        }
        let mt = zone.block_type(Pfn(at));
        free_at_boot(zone, pages, Pfn(at), order, mt);
        at += 1 << order;
    }
}

/// Frees one block to the tail of its list. A fresh block of the largest order is not written to.
fn free_at_boot(zone: &mut Zone, pages: &mut PageArray, pfn: Pfn, order: Order, mt: MigrateType) {
    if order < MAX_PAGE_ORDER || !zone.free_fresh(pages, pfn, mt) {
        pages.open(pfn);
        crate::frames::buddy::clear_tails(pages, pfn, order);
        zone.free_block(pages, pfn, order, mt, Placement::Tail);
    }
}

/// Allocates the first `nr` managed pages of a zone for the kernel and returns the end of this
/// range. The pageblocks of the range are unmovable; the rest of the last one is free for unmovable
/// requests. A large enough zone also gets a reclaimable pageblock, because Debian's 6.1 with 256
/// MiB and 512 MiB has 500 to 900 free pages of that type before the first program runs.
fn hold(zone: &mut Zone, pages: &mut PageArray, start: u32, end: u32, nr: u64) -> u32 {
    let size = PAGEBLOCK_NR_PAGES;
    let held_end = start + nr as u32;
    if nr == 0 {
        return held_end;
    }
    pages.hold(start..held_end, |pages, pfn| mark_allocated(pages, pfn, 0));
    for block in start / size..held_end.div_ceil(size) {
        zone.set_block_type(Pfn(block * size), MigrateType::Unmovable);
    }
    let first_whole = held_end.next_multiple_of(size);
    if first_whole + size <= end && (end - start) / size >= RECLAIMABLE_FROM_PAGEBLOCKS {
        zone.set_block_type(Pfn(first_whole), MigrateType::Reclaimable);
    }
    held_end
}

/// The node of a CPU: nodes get contiguous ranges of CPUs of equal size.
pub(crate) fn cpu_node(cpu: u16, nr_nodes: usize, nr_cpus: u16) -> NodeId {
    NodeId((usize::from(cpu) * nr_nodes / usize::from(nr_cpus.max(1))).min(nr_nodes - 1) as u8)
}

fn nr_local_cpus(node: usize, nr_nodes: usize, nr_cpus: u16) -> u16 {
    let local = (0..nr_cpus).filter(|&cpu| cpu_node(cpu, nr_nodes, nr_cpus).idx() == node).count();
    if local == 0 {
        nr_cpus
    } else {
        local as u16
    }
}
