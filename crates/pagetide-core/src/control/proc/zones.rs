//! /proc/zoneinfo, /proc/buddyinfo and /proc/pagetypeinfo (Linux: mm/vmstat.c, 6.1).
//!
//! zoneinfo has all zones, but no counters for empty zones; the other two files have only the zones
//! with memory. Only machines with CMA have `nr_free_cma` and the type CMA. `vm stats threshold` is
//! 0, because all counters are exact here. Counters of the whole machine (`workingset_refault_*`,
//! `nr_dirtied`, ...) are in the per-node part if there is only one node.

use super::{is_node_counter, put, CounterRow};
use crate::ageing::sizes::ZONE_LIST_NAMES;
use crate::frames::gfp::{MigrateType, Watermark};
use crate::frames::node::Node;
use crate::frames::page::PageFlags;
use crate::frames::page_alloc::Memory;
use crate::frames::zone::Zone;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::reclaim::kswapd::MAX_RECLAIM_RETRIES;
use crate::stats::vmstat::NodeStat;
use crate::units::{NodeId, NR_PAGE_ORDERS, PAGEBLOCK_NR_PAGES, PAGEBLOCK_ORDER};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;

/// Number of free blocks on one list at which pagetypeinfo stops counting.
const FREECOUNT_MAX: u64 = 100_000;

/// Whether the kernel considers the zone populated (this includes zones with only reserved pages).
fn is_populated(zone: &Zone) -> bool {
    zone.present > 0
}

pub(super) fn put_zone_head(out: &mut String, zone: &Zone) {
    put!(out, "Node {}, zone {:>8}", zone.node.0, zone.name());
}

impl Memory {
    fn zone_rows(
        &self,
        zone: &Zone,
        write_pending: u64,
        has_pools: bool,
    ) -> impl Iterator<Item = CounterRow> {
        let zspages = has_pools.then_some(("nr_zspages", zone.nr_zspages));
        let state = &self.pgdat[zone.node];
        let mlocked = state.nr_mlock[zone.index];
        let cma = (zone.cma_pages > 0).then(|| ("nr_free_cma", zone.free_cma_pages()));
        [("nr_free_pages", zone.free_pages())]
            .into_iter()
            .chain(ZONE_LIST_NAMES.into_iter().zip(state.zone_lru[zone.index]))
            .chain([("nr_zone_write_pending", write_pending), ("nr_mlock", mlocked)])
            .chain(zspages)
            .chain(cma)
    }

    /// Dirty file pages and pages under writeback, by node and zone.
    fn write_pending_by_zone(&self) -> Vec<[u64; MAX_NR_ZONES]> {
        let mut counts = vec![[0; MAX_NR_ZONES]; self.nodes.len()];
        if self.write_pending() > 0 {
            for (_, page) in self.pages.opened() {
                let dirty = page.has(PageFlags::FILE.with(PageFlags::DIRTY));
                let pending = u64::from(dirty) + u64::from(page.has(PageFlags::WRITEBACK));
                counts[usize::from(page.node().0)][page.zone()] += pending;
            }
        }
        counts
    }

    pub(super) fn present_zones(&self) -> impl Iterator<Item = &Zone> {
        self.nodes.iter().flat_map(|node| &node.zones).filter(|zone| is_populated(zone))
    }
}

impl Kernel {
    /// The text of /proc/buddyinfo: free blocks by order.
    pub fn proc_buddyinfo(&self) -> String {
        let mut out = String::new();
        for zone in self.mem.present_zones() {
            put_zone_head(&mut out, zone);
            out.push(' ');
            for free in zone.buddyinfo() {
                put!(out, "{free:>6} ");
            }
            out.push('\n');
        }
        out
    }

    /// The rows of /proc/buddyinfo: node, name of the zone, free blocks of each order.
    pub fn free_blocks_of_zones(&self) -> Vec<(NodeId, &'static str, [u64; NR_PAGE_ORDERS])> {
        self.mem.present_zones().map(|zone| (zone.node, zone.name(), zone.buddyinfo())).collect()
    }

    /// The text of /proc/pagetypeinfo: free blocks by order and type, pageblocks by type.
    pub fn proc_pagetypeinfo(&self) -> String {
        let mut out = String::new();
        let has_cma = self.mem.cma_pages() > 0;
        let types = MigrateType::ALL.into_iter().filter(|mt| has_cma || *mt != MigrateType::Cma);
        let types: Vec<MigrateType> = types.collect();
        for node in self.mem.nodes.iter().filter(|node| node.zones.iter().any(is_populated)) {
            put!(out, "Page block order: {PAGEBLOCK_ORDER}\n");
            put!(out, "Pages per block:  {PAGEBLOCK_NR_PAGES}\n\n");
            put_free_by_type(&mut out, node, &types);
            put_block_counts(&mut out, node, &types);
        }
        out
    }
}

impl<O: Owners> Manager<O> {
    /// The text of /proc/zoneinfo.
    pub fn proc_zoneinfo(&self) -> String {
        let mut out = String::new();
        let pending = self.mem.write_pending_by_zone();
        let has_pools = self.swap.has_pools();
        for (node, pending) in self.mem.nodes.iter().zip(&pending) {
            let first = node.zones.iter().position(is_populated);
            for (index, zone) in node.zones.iter().enumerate() {
                put_zone_head(&mut out, zone);
                if Some(index) == first {
                    out.push_str("\n  per-node stats");
                    for (name, value) in self.node_rows(node) {
                        put!(out, "\n      {name:<12} {value}");
                    }
                }
                put_marks(&mut out, zone);
                if is_populated(zone) {
                    for (name, value) in self.mem.zone_rows(zone, pending[index], has_pools) {
                        put!(out, "\n      {name:<12} {value}");
                    }
                    put_pagesets(&mut out, zone);
                    let failures = self.mem.pgdat[node.id].kswapd.failures;
                    let unreclaimable = u8::from(failures >= MAX_RECLAIM_RETRIES);
                    put!(out, "\n  node_unreclaimable:  {unreclaimable}");
                    put!(out, "\n  start_pfn:           {}", zone.start_pfn.0);
                }
                out.push('\n');
            }
        }
        out
    }

    /// Counters of the per-node part of zoneinfo.
    fn node_rows(&self, node: &Node) -> Vec<CounterRow> {
        if self.mem.nodes.len() == 1 {
            return self.metrics().filter(|(name, _)| is_node_counter(name)).collect();
        }
        let mut rows: Vec<CounterRow> = NodeStat::ALL
            .iter()
            .map(|&stat| (stat.name(), self.mem.node_stat(node.id, stat)))
            .chain([("workingset_nodes", self.nr_shadow_nodes(node.id))])
            .collect();
        super::sort_rows(&mut rows);
        rows
    }
}

fn put_marks(out: &mut String, zone: &Zone) {
    let rows = [
        ("  pages free     ", zone.free_pages()),
        ("        boost    ", zone.watermark_boost),
        ("        min      ", zone.wmark(Watermark::Min)),
        ("        low      ", zone.wmark(Watermark::Low)),
        ("        high     ", zone.wmark(Watermark::High)),
        ("        spanned  ", zone.spanned),
        ("        present  ", zone.present),
        ("        managed  ", zone.managed),
        ("        cma      ", zone.cma_pages),
    ];
    for (label, value) in rows {
        put!(out, "\n{label}{value}");
    }
    let [dma, dma32, normal, movable] = zone.lowmem_reserve;
    put!(out, "\n        protection: ({dma}, {dma32}, {normal}, {movable})");
}

fn put_pagesets(out: &mut String, zone: &Zone) {
    out.push_str("\n  pagesets");
    for (cpu, pcp) in zone.pcps.iter().enumerate() {
        put!(out, "\n    cpu: {cpu}");
        put!(out, "\n              count: {}", pcp.count);
        put!(out, "\n              high:  {}", pcp.high);
        put!(out, "\n              batch: {}", pcp.batch);
        put!(out, "\n  vm stats threshold: 0");
    }
}

fn put_free_by_type(out: &mut String, node: &Node, types: &[MigrateType]) {
    put!(out, "{:<43} ", "Free pages count per migrate type at order");
    for order in 0..NR_PAGE_ORDERS {
        put!(out, "{order:>6} ");
    }
    out.push('\n');
    for zone in node.zones.iter().filter(|zone| is_populated(zone)) {
        for mt in types {
            put!(out, "Node {:>4}, zone {:>8}, ", node.id.0, zone.name());
            put!(out, "type {:>12} ", mt.name());
            for free in zone.pagetypeinfo(*mt) {
                let more = if free >= FREECOUNT_MAX { ">" } else { "" };
                put!(out, "{more}{:>6} ", free.min(FREECOUNT_MAX));
            }
            out.push('\n');
        }
    }
}

fn put_block_counts(out: &mut String, node: &Node, types: &[MigrateType]) {
    put!(out, "\n{:<23}", "Number of blocks type ");
    for mt in types {
        put!(out, "{:>12} ", mt.name());
    }
    out.push('\n');
    for zone in node.zones.iter().filter(|zone| is_populated(zone)) {
        put_zone_head(out, zone);
        out.push(' ');
        let counts = zone.block_counts();
        for mt in types {
            put!(out, "{:>12} ", counts[mt.idx()]);
        }
        out.push('\n');
    }
}
