//! The use of a zone's memory, and the memory that would be free without programs.
//!
//! Linux: the counters of `enum zone_stat_item` and `enum node_stat_item` (include/linux/mmzone.h).
//! Free pages and pages on LRU lists are counted by zone; all others belong to the kernel. Of
//! these, reclaimable slab and page tables of programs would be freed with the programs. Since 4.8
//! (page tables: 5.11) these are counted by node; here they are distributed over the node's zones
//! in proportion to the kernel's pages in each; none of them is in HighMem.
//!
//! Invariant: free + programs + cache + returned + held = managed, in pages of the system's size,
//! whatever the counters are.

use super::number::scale;
use super::zoneinfo::{HostZone, ZoneCounters};
use std::collections::BTreeMap;

/// Managed pages of a zone by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ZoneUsage {
    /// Free, in the buddy lists (`nr_free_pages`).
    pub free: u64,
    /// Free, in per-CPU lists.
    pub in_pagesets: u64,
    /// Anonymous, shared, locked and compressed memory of programs.
    pub programs: u64,
    /// Page cache.
    pub cache: u64,
    /// Kernel memory that would be freed without programs: reclaimable slab, page tables.
    pub returned: u64,
    /// Kernel memory that stays allocated.
    pub held: u64,
}

impl ZoneUsage {
    /// The use of `managed` pages: free, in per-CPU lists, programs, cache, returned. The rest is
    /// held. A part that is too large is cut.
    pub(super) fn of(managed: u64, parts: [u64; 5]) -> ZoneUsage {
        let mut held = managed;
        let [free, in_pagesets, programs, cache, returned] = parts.map(|pages| {
            let taken = pages.min(held);
            held -= taken;
            taken
        });
        ZoneUsage { free, in_pagesets, programs, cache, returned, held }
    }

    /// Pages that would be free if no program ran.
    pub(super) fn free_without_programs(&self) -> u64 {
        // All parts of `managed`, so the sum cannot overflow.
        self.free + self.in_pagesets + self.programs + self.cache + self.returned
    }

    /// The use of `pages` of `total` pages, if all parts are spread evenly.
    pub(super) fn part(self, pages: u64, total: u64) -> ZoneUsage {
        let of = |part: u64| scale(part, pages, total);
        let mut usage = ZoneUsage {
            free: of(self.free),
            in_pagesets: of(self.in_pagesets),
            programs: of(self.programs),
            cache: of(self.cache),
            returned: of(self.returned),
            held: 0,
        };
        usage.held = pages - usage.free_without_programs();
        usage
    }

    pub(super) fn plus(self, other: ZoneUsage) -> ZoneUsage {
        ZoneUsage {
            free: self.free.saturating_add(other.free),
            in_pagesets: self.in_pagesets.saturating_add(other.in_pagesets),
            programs: self.programs.saturating_add(other.programs),
            cache: self.cache.saturating_add(other.cache),
            returned: self.returned.saturating_add(other.returned),
            held: self.held.saturating_add(other.held),
        }
    }
}

/// Pages of the LRU lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedLists {
    pub active_anon: u64,
    pub inactive_anon: u64,
    pub active_file: u64,
    pub inactive_file: u64,
}

impl ReportedLists {
    pub(super) fn anon(&self) -> u64 {
        self.active_anon.saturating_add(self.inactive_anon)
    }

    pub(super) fn file(&self) -> u64 {
        self.active_file.saturating_add(self.inactive_file)
    }

    pub(super) fn all(&self) -> u64 {
        self.anon().saturating_add(self.file())
    }

    pub(super) fn plus(self, other: ReportedLists) -> ReportedLists {
        self.with(other, u64::saturating_add)
    }

    pub(super) fn minus(self, other: ReportedLists) -> ReportedLists {
        self.with(other, u64::saturating_sub)
    }

    /// Each list changed by that of `other`.
    pub(super) fn with(self, other: ReportedLists, change: fn(u64, u64) -> u64) -> ReportedLists {
        ReportedLists {
            active_anon: change(self.active_anon, other.active_anon),
            inactive_anon: change(self.inactive_anon, other.inactive_anon),
            active_file: change(self.active_file, other.active_file),
            inactive_file: change(self.inactive_file, other.inactive_file),
        }
    }
}

/// The lists of `part` of `whole` pages, if all are spread evenly.
pub(super) fn scaled(lists: ReportedLists, part: u64, whole: u64) -> ReportedLists {
    ReportedLists {
        active_anon: scale(lists.active_anon, part, whole),
        inactive_anon: scale(lists.inactive_anon, part, whole),
        active_file: scale(lists.active_file, part, whole),
        inactive_file: scale(lists.inactive_file, part, whole),
    }
}

/// The lists of a zone.
pub(super) fn lists(zone: &HostZone) -> ReportedLists {
    // Before 4.8 the LRU lists belonged to zones, under names that nodes have now; before 2.6.28
    // they had pages of both kinds.
    let get = |name: &str| zone.counters.get(name).copied();
    let list = |name: &str| get(&format!("nr_zone_{name}")).or_else(|| get(&format!("nr_{name}")));
    let of_file = |name: &str| list(&format!("{name}_file")).or_else(|| get(name)).unwrap_or(0);
    ReportedLists {
        active_anon: list("active_anon").unwrap_or(0),
        inactive_anon: list("inactive_anon").unwrap_or(0),
        active_file: of_file("active"),
        inactive_file: of_file("inactive"),
    }
}

/// Counters of kernel memory that is freed with programs.
const RETURNED: [&str; 3] =
    ["nr_slab_reclaimable", "nr_kernel_misc_reclaimable", "nr_page_table_pages"];

/// Pages of the allocator; before 3.9 all present pages.
pub(super) fn managed(zone: &HostZone) -> u64 {
    let present = zone.present.unwrap_or(0);
    zone.managed.unwrap_or(present).min(present)
}

/// The use of each zone's memory, in the order of `zones`.
pub(super) fn usage(zones: &[HostZone], nodes: &BTreeMap<u32, ZoneCounters>) -> Vec<ZoneUsage> {
    let mut all: Vec<ZoneUsage> = zones.iter().map(of_zone).collect();
    for (node, counters) in nodes {
        let is_mine = |zone: &HostZone| zone.node == *node && zone.name != "HighMem";
        let mine: Vec<usize> = (0..zones.len()).filter(|i| is_mine(&zones[*i])).collect();
        let returned =
            RETURNED.iter().fold(0u64, |sum, name| sum.saturating_add(get(counters, name)));
        let total = mine.iter().fold(0u64, |sum, i| sum.saturating_add(all[*i].held));
        for i in mine {
            let part = scale(returned.min(total), all[i].held, total).min(all[i].held);
            all[i].returned = all[i].returned.saturating_add(part);
            all[i].held -= part;
        }
    }
    all
}

/// The use according to the zone's own counters.
fn of_zone(zone: &HostZone) -> ZoneUsage {
    let counters = &zone.counters;
    let lists = lists(zone);
    let others = get(counters, "nr_mlock").saturating_add(get(counters, "nr_zspages"));
    let returned = RETURNED.iter().fold(0u64, |sum, name| sum.saturating_add(get(counters, name)));
    ZoneUsage::of(
        managed(zone),
        [
            zone.free.unwrap_or(0),
            zone.in_pagesets(),
            lists.anon().saturating_add(others),
            lists.file(),
            returned,
        ],
    )
}

fn get(counters: &ZoneCounters, name: &str) -> u64 {
    counters.get(name).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(node: u32, managed: u64, free: u64, counters: &[(&str, u64)]) -> HostZone {
        HostZone {
            node,
            present: Some(managed),
            managed: Some(managed),
            free: Some(free),
            counters: counters.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
            ..HostZone::default()
        }
    }

    #[test]
    fn what_the_node_counts_is_shared_out() {
        let zones = [
            zone(0, 100, 70, &[]),
            zone(0, 1000, 100, &[("nr_zone_active_anon", 300), ("nr_zone_inactive_file", 510)]),
            zone(1, 50, 50, &[]),
        ];
        let counters = [("nr_slab_reclaimable".to_owned(), 50), ("nr_page_table_pages".into(), 10)];
        let nodes = BTreeMap::from([(0, ZoneCounters::from(counters))]);
        let usage = usage(&zones, &nodes);
        // The kernel has 30 and 90 pages; 60 of them are returned, in the same proportion.
        assert_eq!((usage[0].returned, usage[0].held), (15, 15));
        assert_eq!((usage[1].returned, usage[1].held), (45, 45));
        assert_eq!((usage[1].programs, usage[1].cache), (300, 510));
        assert_eq!(usage[1].free_without_programs(), 955);
        assert_eq!(usage[2].held, 0);
    }

    #[test]
    fn old_names_are_known() {
        let counters = [("nr_inactive_anon", 5), ("nr_active_file", 7), ("nr_slab_reclaimable", 2)];
        let usage = usage(&[zone(0, 100, 80, &counters)], &BTreeMap::new())[0];
        assert_eq!((usage.programs, usage.cache, usage.returned, usage.held), (5, 7, 2, 6));
    }

    #[test]
    fn impossible_counters_do_not_add_memory() {
        let huge = [("nr_zone_active_anon", u64::MAX), ("nr_mlock", u64::MAX)];
        let nodes =
            BTreeMap::from([(0, ZoneCounters::from([("nr_slab_reclaimable".into(), u64::MAX)]))]);
        let usage = usage(&[zone(0, 100, 40, &huge), zone(0, 9, 3, &[])], &nodes);
        assert_eq!((usage[0].programs, usage[0].free_without_programs()), (60, 100));
        assert_eq!((usage[1].returned, usage[1].held), (6, 0));
        let absurd = HostZone { managed: Some(9), present: Some(5), ..HostZone::default() };
        assert_eq!(managed(&absurd), 5);
    }
}
