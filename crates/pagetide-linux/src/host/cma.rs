//! The CMA areas of zones: memory that only movable pages may use.
//!
//! Linux: `totalcma_pages` and `zone->cma_pages` (mm/cma.c). The size of a zone's areas is in
//! /proc/pagetypeinfo (pageblocks of type CMA) and, since 5.12, in /proc/zoneinfo; /proc/meminfo
//! has the machine's (`CmaTotal`, since 3.19). The free part of a zone is its `nr_free_cma`.
//! Invariant: an area has whole pageblocks, at most those of its zone; every guess has a note.

use super::free;
use super::note::{shown, ImportNote};
use super::number::show_pages;
use super::pagetypeinfo::{with_pages, CMA, MOVABLE};
use super::snapshot::HostSnapshot;
use super::zoneinfo::HostZone;
use pagetide_core::units::page_size::PageSize;
use pagetide_core::units::{PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER};
use pagetide_scenario::model::FreeLists;

/// CMA memory of a zone, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HostCma {
    pub pages: u64,
    pub free: u64,
}

impl HostCma {
    pub(super) fn plus(self, other: HostCma) -> HostCma {
        HostCma {
            pages: self.pages.saturating_add(other.pages),
            free: self.free.saturating_add(other.free),
        }
    }

    /// Whole pageblocks in a zone of `managed` pages.
    pub(super) fn within(self, managed: u64) -> HostCma {
        let block = u64::from(PAGEBLOCK_NR_PAGES);
        let most = managed / block * block;
        let pages = self.pages.max(self.free).min(most).next_multiple_of(block);
        HostCma { pages, free: self.free.min(pages) }
    }

    /// The machine's, if /proc/meminfo has it.
    pub(super) fn of_meminfo(host: &HostSnapshot, size: PageSize) -> Option<HostCma> {
        let pages = |name: &str| host.memory.get(name).map(|kbytes| size.pages_in_kbytes(kbytes));
        let total = pages("CmaTotal").filter(|pages| *pages > 0)?;
        Some(HostCma { pages: total, free: pages("CmaFree").unwrap_or(total) })
    }
}

/// The area of each zone, in the order of the zones.
pub(super) fn areas(
    host: &HostSnapshot,
    size: PageSize,
    notes: &mut Vec<ImportNote>,
) -> Vec<HostCma> {
    let zones = &host.zones.zones;
    let counter = |zone: &HostZone, name: &str| zone.counters.get(name).copied();
    let free = |zone: &HostZone| counter(zone, "nr_free_cma");
    let stated = |zone: &HostZone| {
        let blocks = host.types.cma_pageblocks(zone.node, &zone.name);
        let pages = blocks.map(|nr| u64::from(nr) * u64::from(PAGEBLOCK_NR_PAGES));
        pages.or_else(|| counter(zone, "cma"))
    };
    let mut sizes: Vec<Option<u64>> = zones.iter().map(stated).collect();
    // The rest of CmaTotal is where most of the free part is, else in the largest low zone.
    let total = HostCma::of_meminfo(host, size).unwrap_or_default();
    let rest = sizes.iter().flatten().fold(total.pages, |rest, pages| rest.saturating_sub(*pages));
    let is_low = |zone: &HostZone| !matches!(zone.name.as_str(), "HighMem" | "Movable");
    let unknown = (0..zones.len()).filter(|at| sizes[*at].is_none() && rest > 0);
    let guessed = unknown.max_by_key(|at| {
        let zone = &zones[*at];
        (free(zone), is_low(zone), free::managed(zone))
    });
    if let Some(at) = guessed {
        sizes[at] = Some(rest);
    }
    let mut areas = Vec::new();
    for (index, (zone, stated)) in zones.iter().zip(sizes).enumerate() {
        let is_guessed = guessed == Some(index);
        let of_total = Some(total.free).filter(|_| is_guessed);
        let known = free(zone).or(of_total);
        let pages = stated.unwrap_or(0);
        let managed = free::managed(zone);
        let area = HostCma { pages, free: known.unwrap_or(pages) }.within(managed);
        let [has, asked] = [area.pages, pages].map(|pages| show_pages(pages, size));
        let (place, message) = match known {
            _ if pages > managed => {
                ("/proc/zoneinfo", format!("{asked} of CMA are more than it manages: {has} here"))
            }
            _ if is_guessed => {
                ("/proc/meminfo", format!("{asked} of CmaTotal are taken to be in this zone"))
            }
            Some(free) if pages < free => {
                let message = format!(
                    "the size of its CMA area is unknown: {has}, the pageblocks of {free} free pages"
                );
                ("/proc/zoneinfo", message)
            }
            None if pages > 0 => {
                ("/proc/zoneinfo", format!("how much of {has} of CMA is free is unknown: all here"))
            }
            _ => ("", String::new()),
        };
        if !message.is_empty() {
            let message = format!("zone {} of node {}: {message}", shown(&zone.name), zone.node);
            notes.push(ImportNote::new(place, message));
        }
        areas.push(area);
    }
    areas
}

/// `lists` with the free pages of `area` as CMA instead of movable: the largest blocks, if the area
/// has room for them as they are, else as few blocks as possible.
pub(super) fn with_cma(mut lists: FreeLists, area: HostCma) -> FreeLists {
    let mut left = area.free.saturating_sub(pages(&lists.blocks[CMA]));
    for order in (0..=10).rev() {
        let count = u64::from(lists.blocks[MOVABLE][order]).min(left >> order);
        lists.blocks[MOVABLE][order] -= count as u32;
        lists.blocks[CMA][order] += count as u32;
        left -= count << order;
    }
    // All that remain are larger than the rest.
    if let Some(order) = (0..=10).find(|order| left > 0 && lists.blocks[MOVABLE][*order] > 0) {
        lists.blocks[MOVABLE][order] -= 1;
        lists = with_pages(with_pages(lists, MOVABLE, (1 << order) - left), CMA, left);
    }
    // Of two buddies only one is free, so a block below order 9 takes twice its size.
    let blocks = lists.blocks[CMA];
    let small = pages(&blocks[..PAGEBLOCK_ORDER.into()]);
    if pages(&blocks).saturating_add(small) > area.pages {
        lists.blocks[CMA] = [0; 11];
        lists = with_pages(lists, CMA, pages(&blocks));
    }
    let nr = area.pages / u64::from(PAGEBLOCK_NR_PAGES);
    lists.pageblocks[CMA] = u32::try_from(nr).unwrap_or(u32::MAX);
    lists
}

fn pages(blocks: &[u32]) -> u64 {
    blocks.iter().enumerate().map(|(order, count)| u64::from(*count) << order).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{meminfo, pagetypeinfo, zoneinfo};

    fn of(zones: &str, memory: &str, types: &str) -> (Vec<(u64, u64)>, Vec<String>) {
        let host = HostSnapshot {
            zones: zoneinfo::parse(zones).0,
            memory: meminfo::parse(memory).0,
            types: pagetypeinfo::parse(types),
            ..HostSnapshot::default()
        };
        let mut notes = Vec::new();
        let areas = areas(&host, PageSize::Kib4, &mut notes);
        let areas = areas.iter().map(|area| (area.pages, area.free)).collect();
        (areas, notes.into_iter().map(|note| note.message).collect())
    }

    fn zone(name: &str, managed: u64, counters: &str) -> String {
        format!("Node 0, zone {name}\n pages free 900\n high 1\n present {managed}\n{counters}")
    }

    #[test]
    fn sizes_are_stated_or_guessed_with_a_note() {
        let two = |cma: &str| zone("DMA32", 20_000, cma) + &zone("Normal", 9000, "");
        let stated = two(" cma 2048\n nr_free_cma 700\n");
        assert_eq!(of(&stated, "CmaTotal: 8192 kB\n", ""), (vec![(2048, 700), (0, 0)], vec![]));
        let total = "CmaTotal: 8192 kB\nCmaFree: 400 kB\n";
        for (zones, free) in [(two(" nr_free_cma 700\n"), 700), (two(""), 100)] {
            let (areas, notes) = of(&zones, total, "");
            assert_eq!(areas, [(2048, free), (0, 0)]);
            let told = "zone DMA32 of node 0: 8.0 MiB of CmaTotal are taken to be in this zone";
            assert_eq!(notes, [told]);
        }
        let (areas, notes) = of(&two(" nr_free_cma 700\n"), "", "");
        assert_eq!(areas, [(1024, 700), (0, 0)]);
        assert!(notes[0].contains("unknown: 4.0 MiB, the pageblocks of 700 free"), "{notes:?}");
        let (areas, notes) = of(&two(" cma 2048\n"), "", "");
        assert_eq!(areas, [(2048, 2048), (0, 0)]);
        assert!(notes[0].contains("how much of 8.0 MiB of CMA is free is unknown"), "{notes:?}");
        let types = "\
            Page block order: 10\nNumber of blocks type Unmovable Movable Reclaimable CMA\n\
            Node 0, zone DMA32 1 1 1 2\nNode 0, zone Normal 1 1 1 0\n";
        assert_eq!(of(&two(" nr_free_cma 7\n"), total, types).0, [(2048, 7), (0, 0)]);
    }

    #[test]
    fn free_cma_of_unknown_type_is_the_largest_blocks() {
        let area = |pages, free| HostCma { pages, free };
        let lists = |movable: [u32; 11]| {
            let mut lists = FreeLists::default();
            lists.blocks[MOVABLE] = movable;
            lists
        };
        let of = |movable, area| {
            let lists = with_cma(lists(movable), area);
            (lists.blocks[MOVABLE], lists.blocks[CMA], lists.pageblocks[CMA])
        };
        let whole = of([9, 0, 0, 0, 0, 0, 0, 0, 0, 3, 2], area(4096, 3072 + 512));
        assert_eq!(whole.0, [9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((whole.1[9], whole.1[10], whole.2), (3, 2, 8));
        let part = of([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2], area(2048, 1025));
        assert_eq!(part.0, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
        assert_eq!((part.1[0], part.1[10], part.2), (1, 1, 4));
        // Small blocks of the same size would need more pageblocks than the area has.
        let small = of([0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0], area(512, 400));
        assert_eq!((small.0[4], small.1), (75, [0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0]));
        let few = of([3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], area(512, 400));
        assert_eq!((few.0[0], few.1[0], few.2), (0, 3, 1));
    }

    #[test]
    fn an_area_is_no_larger_than_its_zone() {
        for counters in [" cma 18446744073709551615\n nr_free_cma 9\n", " cma 30000\n"] {
            let (areas, notes) = of(&zone("DMA32", 20_000, counters), "", "");
            assert_eq!(areas[0].0, 39 * 512);
            assert!(notes[0].contains("more than it manages: 78.0 MiB here"), "{notes:?}");
        }
        let (areas, notes) = of(&zone("DMA32", 500, " nr_free_cma 9\n"), "", "");
        assert_eq!((areas, notes.len()), (vec![(0, 0)], 1));
    }
}
