//! Nodes and zones as a scenario has them: DMA, DMA32, Normal, Movable of x86-64, or DMA, Normal,
//! HighMem of a 32-bit machine.
//!
//! Other zones are mapped or left out: Device is not memory for programs; the larger DMA zones of
//! other architectures become the zone that their memory would be in here.
//! Invariant: zones of a node are in the scenario's order and unique; sizes pass the checks of the
//! loader and the core; nodes without memory are left out.

use super::buddyinfo::BuddyInfo;
use super::cma::{self, HostCma};
use super::error::HostError;
use super::free::{self, ReportedLists, ZoneUsage};
use super::marks::HostWatermarks;
use super::note::{shown, ImportNote};
use super::number::show_pages;
use super::pagetypeinfo;
use super::snapshot::HostSnapshot;
use super::unnamed;
use super::zoneinfo::HostZone;
use pagetide_core::frames::boot::free_lists::NR_TYPES;
use pagetide_core::units::page_size::PageSize;
use pagetide_core::units::PAGEBLOCK_NR_PAGES;
use pagetide_scenario::model::FreeLists;
use pagetide_scenario::names::{NameSet, ZoneName};
use std::collections::BTreeMap;

/// Maximum pages of all nodes.
const MACHINE_PAGES_MAX: u64 = 1 << 29;
/// Maximum bytes of zone DMA.
const DMA_BYTES_MAX: u64 = 16 << 20;
/// Maximum bytes of zones DMA and DMA32 together.
const DMA32_END_BYTES: u64 = 4 << 30;
/// Maximum number of nodes in a scenario.
const NODES_MAX: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct NodeLayout {
    /// The node's number on the system.
    pub number: u32,
    pub zones: Vec<ZoneLayout>,
}

/// A zone; all values in pages.
#[derive(Clone, Debug)]
pub(super) struct ZoneLayout {
    pub name: ZoneName,
    pub present: u64,
    pub managed: u64,
    pub usage: ZoneUsage,
    pub lists: ReportedLists,
    /// The system's watermarks; `None` if unknown, or if the zone combines several.
    pub marks: Option<HostWatermarks>,
    pub cma: HostCma,
    /// Its free lists, of all zones that it combines; `None` if unknown.
    pub free_lists: Option<FreeLists>,
    /// Whether the free lists have the blocks of each type, not only of each order.
    pub has_types: bool,
}

/// The machine's nodes, with notes on what does not fit. Empty if no zone is known.
pub(super) fn nodes(
    host: &HostSnapshot,
    size: PageSize,
    marks: &[Option<HostWatermarks>],
    notes: &mut Vec<ImportNote>,
) -> Result<Vec<NodeLayout>, HostError> {
    let mut usage = free::usage(&host.zones.zones, &host.zones.nodes);
    unnamed::hold(&mut usage, unnamed::unmapped_pages(host, size));
    let mut nodes: BTreeMap<u32, Vec<ZoneLayout>> = BTreeMap::new();
    let mut empty = Vec::new();
    let areas = cma::areas(host, size, notes);
    let has_highmem = has_highmem(&host.zones.zones);
    for (((zone, usage), marks), cma) in host.zones.zones.iter().zip(usage).zip(marks).zip(areas) {
        let name = shown(&zone.name);
        let present = zone.present.unwrap_or(0);
        nodes.entry(zone.node).or_default();
        if zone.present.is_none() && zone.free.is_some_and(|pages| pages > 0) {
            let message = format!(
                "zone {name} of node {} is left out: its size is missing (is the file cut?)",
                zone.node
            );
            notes.push(ImportNote::new("/proc/zoneinfo", message));
            continue;
        }
        if present == 0 || zone.name == "Device" {
            empty.push(format!("{name} of node {}", zone.node));
            continue;
        }
        if present > MACHINE_PAGES_MAX {
            return Err(too_large(present, size));
        }
        // Only the first node of a scenario has low zones.
        let is_first = nodes.iter().all(|(node, zones)| *node >= zone.node || zones.is_empty());
        let zones = nodes.entry(zone.node).or_default();
        let (place, is_other) = match has_highmem {
            true => place_below_highmem(&zone.name, present, size, is_first),
            false => place(&zone.name, present, size, is_first, zones),
        };
        if is_other {
            let message = format!(
                "zone {name} of node {} ({}) does not exist like this in a scenario: it is part of \
                 zone {} here",
                zone.node,
                show_pages(present, size),
                place.name()
            );
            notes.push(ImportNote::new("/proc/zoneinfo", message));
        }
        let types = pagetypeinfo::free_lists(
            &host.types.free_blocks(zone.node, &zone.name),
            &host.types.pageblocks(zone.node, &zone.name),
        );
        let layout = ZoneLayout {
            name: place,
            present,
            managed: free::managed(zone),
            usage,
            lists: free::lists(zone),
            marks: *marks,
            cma,
            free_lists: types
                .or_else(|| untyped(host, zone, usage.free, cma))
                .filter(|lists| lists.pages() <= free::managed(zone)),
            has_types: types.is_some(),
        };
        match zones.iter_mut().find(|zone| zone.name == place) {
            Some(zone) => zone.join(layout),
            None => zones.push(layout),
        }
    }
    if !empty.is_empty() {
        let message = format!("zones without memory for programs are left out: {}", list(&empty));
        notes.push(ImportNote::new("/proc/zoneinfo", message));
    }
    if nodes.values().flatten().all(|zone| zone.managed == 0) {
        let Some((total, usage, lists)) = unnamed::of_meminfo(host, size, MACHINE_PAGES_MAX) else {
            return Ok(Vec::new());
        };
        return Ok(vec![without_zones(host, total, usage, lists, size, notes)]);
    }
    finish(nodes, size, notes)
}

/// The blocks of /proc/buddyinfo or of a report, movable where their types are unknown, without the
/// free part of the CMA area. Without blocks only this part is known.
fn untyped(host: &HostSnapshot, zone: &HostZone, free: u64, cma: HostCma) -> Option<FreeLists> {
    let is_same = |it: &&BuddyInfo| it.node == zone.node && it.zone == zone.name;
    let known = host.free_blocks.iter().find(is_same).and_then(BuddyInfo::by_type);
    let managed = free::managed(zone);
    let pageblocks = managed.div_ceil(PAGEBLOCK_NR_PAGES.into());
    let pageblocks = [0, u32::try_from(pageblocks).ok()?, 0, 0];
    let lists = match known {
        Some(blocks) => FreeLists { blocks, pageblocks },
        None if cma.pages == 0 => return None,
        None => in_large_blocks(free, pageblocks),
    };
    let is_cma = cma.pages > 0 && lists.pages() <= managed;
    Some(if is_cma { cma::with_cma(lists, cma) } else { lists })
}

fn in_large_blocks(free: u64, pageblocks: [u32; NR_TYPES]) -> FreeLists {
    let none = FreeLists { pageblocks, ..FreeLists::default() };
    pagetypeinfo::with_pages(none, pagetypeinfo::MOVABLE, free)
}

/// The zones for memory of which only the size is known.
fn without_zones(
    host: &HostSnapshot,
    total: u64,
    usage: ZoneUsage,
    lists: ReportedLists,
    size: PageSize,
    notes: &mut Vec<ImportNote>,
) -> NodeLayout {
    let high = host.memory.get("HighTotal").map_or(0, |kbytes| size.pages_in_kbytes(kbytes));
    let is_64_bit = high == 0 || high >= total;
    let low = if is_64_bit { size.pages_in(DMA32_END_BYTES) } else { total - high };
    let kind = if is_64_bit { "x86-64" } else { "a 32-bit machine (HighTotal)" };
    let message = format!("no zones are known; the scenario has MemTotal in the zones of {kind}");
    notes.push(ImportNote::new("/proc/meminfo", message));
    let names = match is_64_bit {
        true => [ZoneName::Dma, ZoneName::Dma32, ZoneName::Normal],
        false => [ZoneName::Dma, ZoneName::Normal, ZoneName::HighMem],
    };
    let ends = [size.pages_in(DMA_BYTES_MAX).min(low), low, u64::MAX];
    let mut zones: Vec<ZoneLayout> = Vec::new();
    let (mut start, mut left) = (0, lists);
    for (name, end) in names.into_iter().zip(ends) {
        let pages = total.min(end) - start;
        let lists = free::scaled(left, pages, total - start);
        left = left.minus(lists);
        start += pages;
        if pages > 0 {
            zones.push(ZoneLayout {
                name,
                present: pages,
                managed: pages,
                usage: usage.part(pages, total),
                lists,
                marks: None,
                cma: HostCma::default(),
                free_lists: None,
                has_types: false,
            });
        }
    }
    let low_zones = zones.iter_mut().filter(|zone| zone.name != ZoneName::HighMem);
    let cma = HostCma::of_meminfo(host, size);
    if let Some((zone, cma)) = low_zones.max_by_key(|zone| zone.managed).zip(cma) {
        zone.cma = cma.within(zone.managed);
        let message = format!(
            "{} of CmaTotal are taken to be in zone {}",
            show_pages(zone.cma.pages, size),
            zone.name.name()
        );
        notes.push(ImportNote::new("/proc/meminfo", message));
        let free = in_large_blocks(zone.usage.free, FreeLists::default().pageblocks);
        zone.free_lists = Some(cma::with_cma(free, zone.cma));
    }
    NodeLayout { number: 0, zones }
}

fn finish(
    nodes: BTreeMap<u32, Vec<ZoneLayout>>,
    size: PageSize,
    notes: &mut Vec<ImportNote>,
) -> Result<Vec<NodeLayout>, HostError> {
    let mut layouts: Vec<NodeLayout> = Vec::new();
    let mut without = Vec::new();
    for (number, mut zones) in nodes {
        zones.sort_by_key(|zone| zone.name);
        if zones.iter().all(|zone| zone.managed == 0) {
            without.push(format!("node {number}"));
        } else {
            layouts.push(NodeLayout { number, zones });
        }
    }
    if layouts.len() > NODES_MAX {
        without.extend(layouts.drain(NODES_MAX..).map(|node| format!("node {}", node.number)));
    }
    if !without.is_empty() {
        let message = format!(
            "nodes without memory, and nodes above the maximum, are left out: {}",
            list(&without)
        );
        notes.push(ImportNote::new("/proc/zoneinfo", message));
    }
    let zones = layouts.iter().flat_map(|node| &node.zones);
    let total = zones.fold(0u64, |sum, zone| sum.saturating_add(zone.present));
    if total > MACHINE_PAGES_MAX {
        return Err(too_large(total, size));
    }
    Ok(layouts)
}

fn too_large(pages: u64, size: PageSize) -> HostError {
    HostError::TooLarge { has: show_pages(pages, size), limit: show_pages(MACHINE_PAGES_MAX, size) }
}

/// The first few of many.
fn list(all: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = all[..all.len().min(SHOWN)].join(", ");
    if all.len() > SHOWN {
        text += &format!(" and {} more", all.len() - SHOWN);
    }
    text
}

impl ZoneLayout {
    fn join(&mut self, other: ZoneLayout) {
        self.present = self.present.saturating_add(other.present);
        self.managed = self.managed.saturating_add(other.managed);
        self.usage = self.usage.plus(other.usage);
        self.lists = self.lists.plus(other.lists);
        self.cma = self.cma.plus(other.cma);
        self.has_types &= other.has_types;
        self.marks = None;
        let lists = self.free_lists.zip(other.free_lists);
        self.free_lists = lists.map(|(a, b)| pagetypeinfo::joined(a, b));
    }
}

/// Whether the machine has zone HighMem, and memory for the kernel below it.
fn has_highmem(zones: &[HostZone]) -> bool {
    let has = |names: &[&str]| {
        zones.iter().any(|zone| names.contains(&zone.name.as_str()) && free::managed(zone) > 0)
    };
    has(&["HighMem"]) && has(&["DMA", "DMA32", "Normal"])
}

/// The zone of the memory on a machine with HighMem, as [`place`].
fn place_below_highmem(
    name: &str,
    present: u64,
    size: PageSize,
    is_first: bool,
) -> (ZoneName, bool) {
    match name {
        "DMA" if is_first && present <= size.pages_in(DMA_BYTES_MAX) => (ZoneName::Dma, false),
        "HighMem" => (ZoneName::HighMem, false),
        "Movable" => (ZoneName::HighMem, true),
        _ => (ZoneName::Normal, name != "Normal"),
    }
}

/// The x86-64 zone of the memory, and whether it differs from the system's zone.
fn place(
    name: &str,
    present: u64,
    size: PageSize,
    is_first: bool,
    zones: &[ZoneLayout],
) -> (ZoneName, bool) {
    let dma_pages = size.pages_in(DMA_BYTES_MAX);
    let below: u64 =
        zones.iter().filter(|zone| zone.name <= ZoneName::Dma32).fold(0, |sum, zone| {
            // The holes of DMA count too: DMA32 begins at 16 MiB.
            sum.saturating_add(if zone.name == ZoneName::Dma { dma_pages } else { zone.present })
        });
    let fits = is_first && below.saturating_add(present) <= size.pages_in(DMA32_END_BYTES);
    match name {
        "DMA" if is_first && present <= dma_pages => (ZoneName::Dma, false),
        "DMA" if fits => (ZoneName::Dma32, true),
        "DMA32" if fits => (ZoneName::Dma32, false),
        "Normal" => (ZoneName::Normal, false),
        "Movable" => (ZoneName::Movable, false),
        _ => (ZoneName::Normal, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{marks, meminfo, page_size, zoneinfo};

    fn lay_out(zones: &str, meminfo: &str) -> (Vec<NodeLayout>, Vec<ImportNote>) {
        let host = HostSnapshot {
            zones: zoneinfo::parse(zones).0,
            memory: meminfo::parse(meminfo).0,
            ..HostSnapshot::default()
        };
        let mut notes = Vec::new();
        let (size, _) = page_size::of(&host, &mut Vec::new());
        let marks = marks::read(&host, size, true).marks;
        (nodes(&host, size, &marks, &mut notes).unwrap(), notes)
    }

    fn zone(node: u32, name: &str, present: u64) -> String {
        format!(
            "Node {node}, zone {name}\n pages free 1\n min 1\n low 1\n high 1\n present {present}\n"
        )
    }

    fn shape(nodes: &[NodeLayout]) -> Vec<(u32, Vec<(ZoneName, u64)>)> {
        let zones = |node: &NodeLayout| {
            node.zones.iter().map(|zone| (zone.name, zone.present)).collect::<Vec<_>>()
        };
        nodes.iter().map(|node| (node.number, zones(node))).collect()
    }

    #[test]
    fn x86_64_keeps_its_zones() {
        let text = zone(0, "DMA", 3998)
            + &zone(0, "DMA32", 1_044_480)
            + &zone(0, "Normal", 9)
            + &zone(0, "Movable", 0)
            + &zone(2, "Normal", 8)
            + &zone(2, "Device", 7)
            + &zone(3, "Normal", 0);
        let (nodes, notes) = lay_out(&text, "");
        let low = vec![(ZoneName::Dma, 3998), (ZoneName::Dma32, 1_044_480), (ZoneName::Normal, 9)];
        assert_eq!(shape(&nodes), [(0, low), (2, vec![(ZoneName::Normal, 8)])]);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].message.contains("Movable of node 0, Device of node 2"));
    }

    #[test]
    fn other_architectures_are_fitted_in() {
        // arm64: DMA up to 1 GiB or 4 GiB.
        let text = zone(0, "DMA", 262_144) + &zone(0, "DMA32", 500_000) + &zone(0, "Normal", 9);
        let (nodes, notes) = lay_out(&text, "");
        assert_eq!(shape(&nodes), [(0, vec![(ZoneName::Dma32, 762_144), (ZoneName::Normal, 9)])]);
        assert!(nodes[0].zones[0].marks.is_none() && notes.len() == 1);
        // A second node with low memory, and a first one without any.
        let text = zone(0, "DMA", 0) + &zone(1, "DMA", 4000) + &zone(2, "DMA32", 5);
        let (nodes, _) = lay_out(&text, "");
        assert_eq!(
            shape(&nodes),
            [(1, vec![(ZoneName::Dma, 4000)]), (2, vec![(ZoneName::Normal, 5)])]
        );
    }

    #[test]
    fn a_32_bit_machine_has_highmem() {
        let high = zone(0, "HighMem", 900);
        let text = zone(0, "DMA", 4000) + &zone(0, "Normal", 200_000) + &high;
        let (nodes, notes) = lay_out(&text, "");
        let low = [(ZoneName::Dma, 4000), (ZoneName::Normal, 200_000)];
        assert_eq!(shape(&nodes)[0].1, [low[0], low[1], (ZoneName::HighMem, 900)]);
        assert_eq!(notes, []);
        // A DMA zone above 16 MiB, and movable memory, which is HighMem as well.
        let text = zone(0, "DMA", 9000) + &zone(0, "Normal", 50) + &high + &zone(0, "Movable", 7);
        let (nodes, notes) = lay_out(&text, "");
        assert_eq!(shape(&nodes)[0].1, [(ZoneName::Normal, 9050), (ZoneName::HighMem, 907)]);
        assert_eq!(notes.len(), 2, "{notes:?}");
        // Where the kernel itself has no memory, the file is not whole.
        let (nodes, notes) = lay_out(&(zone(0, "Normal", 0) + &high), "");
        assert_eq!(shape(&nodes)[0].1, [(ZoneName::Normal, 900)]);
        assert!(notes[0].message.contains("it is part of zone Normal here"), "{notes:?}");
        let memory = "MemTotal: 1048576 kB\nHighTotal: 524288 kB\nCmaTotal: 8192 kB\n";
        let (nodes, notes) = lay_out("", memory);
        let pages: Vec<_> = nodes[0].zones.iter().map(|it| (it.name, it.present, it.cma)).collect();
        let cma = HostCma { pages: 2048, free: 2048 };
        let none = HostCma::default();
        let low = [(ZoneName::Dma, 4096, none), (ZoneName::Normal, 126_976, cma)];
        assert_eq!(pages, [low[0], low[1], (ZoneName::HighMem, 131_072, none)]);
        assert!(notes[0].message.contains("the zones of a 32-bit machine"), "{notes:?}");
    }

    #[test]
    fn larger_pages_stay_large() {
        let text = zone(0, "DMA", 65_536) + &zone(0, "Normal", 9);
        let (nodes, _) = lay_out(&text, "MemTotal: 4194880 kB\n");
        assert_eq!(shape(&nodes)[0].1, [(ZoneName::Dma32, 65_536), (ZoneName::Normal, 9)]);
        let (nodes, _) = lay_out(&text.replace("65536", "65537"), "MemTotal: 4194944 kB\n");
        assert_eq!(shape(&nodes)[0].1, [(ZoneName::Normal, 65_546)]);
    }

    #[test]
    fn a_zone_that_is_cut_is_left_out_with_a_note() {
        let whole = zone(0, "DMA32", 30_000) + &zone(0, "Normal", 50_000);
        let (nodes, notes) = lay_out(&whole[..whole.len() - 20], "");
        assert_eq!(shape(&nodes)[0].1, [(ZoneName::Dma32, 30_000)]);
        let told = "zone Normal of node 0 is left out: its size is missing";
        assert!(notes[0].message.starts_with(told), "{notes:?}");
    }

    #[test]
    fn too_much_memory_is_refused() {
        for text in [
            zone(0, "Normal", u64::MAX),
            zone(0, "Normal", MACHINE_PAGES_MAX) + &zone(1, "Normal", 1),
        ] {
            let host = HostSnapshot { zones: zoneinfo::parse(&text).0, ..HostSnapshot::default() };
            assert!(matches!(
                nodes(&host, PageSize::Kib4, &[None, None], &mut Vec::new()),
                Err(HostError::TooLarge { .. })
            ));
        }
    }
}
