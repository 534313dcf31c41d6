//! The machine's state in the format of the kernel's own files, for existing parsers.
//!
//! Linux 6.1: `vmstat_show` and `zoneinfo_show` (mm/vmstat.c), `meminfo_proc_show`
//! (fs/proc/meminfo.c), `swap_show` (mm/swapfile.c), `psi_show` (kernel/sched/psi.c),
//! `memory_stat_format` (mm/memcontrol.c). This file has vmstat, swaps and pressure; `zones` has
//! zoneinfo, buddyinfo and pagetypeinfo; `extfrag` has the two indices of debugfs; `meminfo` and
//! `memory_stat` have the files of the same names.
//!
//! Differences from Linux: counters that are not modelled are left out of vmstat and zoneinfo, but
//! they are 0 in meminfo, where parsers expect a fixed set. (In memory.stat some are left out and
//! some are 0.) Pagetide's own counters follow the kernel's in vmstat. Pressure averages are always
//! 0.00; the totals are exact.
//!
//! Producing a file takes time in proportion to its length, with two exceptions that walk all
//! frames: zoneinfo while pages are dirty, and memory.stat of groups other than the root.

mod extfrag;
mod meminfo;
mod memory_stat;
mod zones;

use crate::ageing::sizes::ZONE_LIST_NAMES;
use crate::frames::page_alloc::Memory;
use crate::groups::memcg::ROOT;
use crate::groups::Groups;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::{Owners, OwnersReport};
use crate::stats::vmstat::{Event, NodeStat};
use crate::units::{MemcgId, Nanos, NodeId, NR_PAGE_ORDERS};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

/// Appends formatted text. Writing to a string cannot fail.
macro_rules! put {
    ($out:expr, $($format:tt)+) => {{
        let _ = write!($out, $($format)+);
    }};
}
use put;

/// A counter's name and its value.
type CounterRow = (&'static str, u64);

/// /proc/vmstat of Linux 6.1 on x86-64, in its order: zones, nodes, writeback, events. Includes the
/// names of counters that are not modelled.
const VMSTAT_ORDER: &[&str] = &[
    "nr_free_pages",
    "nr_zone_inactive_anon",
    "nr_zone_active_anon",
    "nr_zone_inactive_file",
    "nr_zone_active_file",
    "nr_zone_unevictable",
    "nr_zone_write_pending",
    "nr_mlock",
    "nr_bounce",
    "nr_zspages",
    "nr_free_cma",
    "numa_hit",
    "numa_miss",
    "numa_foreign",
    "numa_interleave",
    "numa_local",
    "numa_other",
    "nr_inactive_anon",
    "nr_active_anon",
    "nr_inactive_file",
    "nr_active_file",
    "nr_unevictable",
    "nr_slab_reclaimable",
    "nr_slab_unreclaimable",
    "nr_isolated_anon",
    "nr_isolated_file",
    "workingset_nodes",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "workingset_restore_anon",
    "workingset_restore_file",
    "workingset_nodereclaim",
    "nr_anon_pages",
    "nr_mapped",
    "nr_file_pages",
    "nr_dirty",
    "nr_writeback",
    "nr_writeback_temp",
    "nr_shmem",
    "nr_shmem_hugepages",
    "nr_shmem_pmdmapped",
    "nr_file_hugepages",
    "nr_file_pmdmapped",
    "nr_anon_transparent_hugepages",
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_dirtied",
    "nr_written",
    "nr_throttled_written",
    "nr_kernel_misc_reclaimable",
    "nr_foll_pin_acquired",
    "nr_foll_pin_released",
    "nr_kernel_stack",
    "nr_page_table_pages",
    "nr_sec_page_table_pages",
    "nr_swapcached",
    "pgpromote_success",
    "pgpromote_candidate",
    "nr_dirty_threshold",
    "nr_dirty_background_threshold",
    "pgpgin",
    "pgpgout",
    "pswpin",
    "pswpout",
    "pgalloc_dma",
    "pgalloc_dma32",
    "pgalloc_normal",
    "pgalloc_movable",
    "allocstall_dma",
    "allocstall_dma32",
    "allocstall_normal",
    "allocstall_movable",
    "pgskip_dma",
    "pgskip_dma32",
    "pgskip_normal",
    "pgskip_movable",
    "pgfree",
    "pgactivate",
    "pgdeactivate",
    "pglazyfree",
    "pgfault",
    "pgmajfault",
    "pglazyfreed",
    "pgrefill",
    "pgreuse",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgdemote_kswapd",
    "pgdemote_direct",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgscan_direct_throttle",
    "pgscan_anon",
    "pgscan_file",
    "pgsteal_anon",
    "pgsteal_file",
    "zone_reclaim_failed",
    "pginodesteal",
    "slabs_scanned",
    "kswapd_inodesteal",
    "kswapd_low_wmark_hit_quickly",
    "kswapd_high_wmark_hit_quickly",
    "pageoutrun",
    "pgrotated",
    "drop_pagecache",
    "drop_slab",
    "oom_kill",
    "numa_pte_updates",
    "numa_huge_pte_updates",
    "numa_hint_faults",
    "numa_hint_faults_local",
    "numa_pages_migrated",
    "pgmigrate_success",
    "pgmigrate_fail",
    "thp_migration_success",
    "thp_migration_fail",
    "thp_migration_split",
    "compact_migrate_scanned",
    "compact_free_scanned",
    "compact_isolated",
    "compact_stall",
    "compact_fail",
    "compact_success",
    "compact_daemon_wake",
    "compact_daemon_migrate_scanned",
    "compact_daemon_free_scanned",
    "unevictable_pgs_culled",
    "unevictable_pgs_scanned",
    "unevictable_pgs_rescued",
    "unevictable_pgs_mlocked",
    "unevictable_pgs_munlocked",
    "unevictable_pgs_cleared",
    "unevictable_pgs_stranded",
    "thp_fault_alloc",
    "thp_fault_fallback",
    "thp_fault_fallback_charge",
    "thp_collapse_alloc",
    "thp_collapse_alloc_failed",
    "thp_file_alloc",
    "thp_file_fallback",
    "thp_file_fallback_charge",
    "thp_file_mapped",
    "thp_split_page",
    "thp_split_page_failed",
    "thp_deferred_split_page",
    "thp_split_pmd",
    "thp_scan_exceed_none_pte",
    "thp_scan_exceed_swap_pte",
    "thp_scan_exceed_share_pte",
    "thp_zero_page_alloc",
    "thp_zero_page_alloc_failed",
    "thp_swpout",
    "thp_swpout_fallback",
    "swap_ra",
    "swap_ra_hit",
];

/// Position of a counter in the kernel's vmstat; `None` for Pagetide's own counters.
fn kernel_position(name: &str) -> Option<usize> {
    VMSTAT_ORDER.iter().position(|&known| known == name)
}

/// Whether a counter is in the per-node part of zoneinfo.
fn is_node_counter(name: &str) -> bool {
    let position = kernel_position(name);
    position >= kernel_position("nr_inactive_anon")
        && position.is_some_and(|at| Some(at) < kernel_position("nr_dirty_threshold"))
}

/// Sorts rows into the kernel's order; Pagetide's own rows follow, in the given order.
fn sort_rows(rows: &mut [CounterRow]) {
    rows.sort_by_key(|(name, _)| kernel_position(name).unwrap_or(usize::MAX));
}

/// Names for the columns of /proc/buddyinfo.
const FREE_BLOCKS: [&str; NR_PAGE_ORDERS] = [
    "nr_free_blocks_0",
    "nr_free_blocks_1",
    "nr_free_blocks_2",
    "nr_free_blocks_3",
    "nr_free_blocks_4",
    "nr_free_blocks_5",
    "nr_free_blocks_6",
    "nr_free_blocks_7",
    "nr_free_blocks_8",
    "nr_free_blocks_9",
    "nr_free_blocks_10",
];

impl Groups {
    /// Pressure of a group, in the format of memory.pressure.
    pub(crate) fn psi_text(&self, memcg: MemcgId, now: Nanos) -> String {
        let mut psi = self.memcgs[memcg].psi.clone();
        psi.flush(now);
        let mut out = String::new();
        let averages = &psi.averages;
        let some = ("some", averages.some(), psi.some_ns);
        let full = ("full", averages.full(), psi.full_ns);
        for (kind, averages, total) in [some, full] {
            put!(out, "{kind}");
            for (name, average) in ["avg10", "avg60", "avg300"].into_iter().zip(averages) {
                put!(out, " {name}={}.{:02}", average / 100, average % 100);
            }
            put!(out, " total={}\n", total / 1000);
        }
        out
    }
}

impl Memory {
    /// Dirty pages and pages under writeback (Linux `NR_ZONE_WRITE_PENDING`).
    fn write_pending(&self) -> u64 {
        self.global_node_stat(NodeStat::NrDirty) + self.global_node_stat(NodeStat::NrWriteback)
    }
}

impl Kernel {
    /// Present levels, not events: free pages and the node statistics in pages, under their names
    /// in /proc/vmstat; and [`Kernel::free_blocks`].
    pub fn levels(&self) -> Vec<(&'static str, u64)> {
        let stats = NodeStat::ALL.map(|stat| (stat.name(), self.mem.global_node_stat(stat)));
        let pages = core::iter::once(("nr_free_pages", self.mem.nr_free_pages()));
        let zspages = self.swap.has_pools().then(|| ("nr_zspages", self.mem.nr_zspages()));
        pages.chain(stats).chain(zspages).chain(self.free_blocks()).collect()
    }

    /// Free blocks of each order, summed over all zones, as in /proc/buddyinfo.
    pub fn free_blocks(&self) -> [(&'static str, u64); NR_PAGE_ORDERS] {
        let mut blocks = FREE_BLOCKS.map(|name| (name, 0));
        for zone in self.mem.nodes.iter().flat_map(|node| &node.zones) {
            for ((_, sum), nr) in blocks.iter_mut().zip(zone.buddyinfo()) {
                *sum += nr;
            }
        }
        blocks
    }

    /// The text of /proc/swaps. The areas are called /dev/swap0, /dev/swap1, ..., or by their zram
    /// device; the size of an
    /// area is its usable part.
    pub fn proc_swaps(&self) -> String {
        let mut out = String::from("Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
        let mut nr_zrams = 0;
        for (at, area) in self.swap.areas().iter().enumerate() {
            let kb = |slots: u32| self.mem.page_size.kbytes_of(slots.into());
            let (size, used) = (kb(area.usable()), kb(area.used()));
            let name = match area.zram() {
                Some(_) => alloc::format!("/dev/zram{nr_zrams}"),
                None => alloc::format!("/dev/swap{at}"),
            };
            nr_zrams += u32::from(area.zram().is_some());
            // The kernel adds a tab after numbers of up to seven digits.
            let tab = |kb: u64| if kb < 10_000_000 { "\t" } else { "" };
            put!(out, "{name:<40}partition\t{size}\t{}", tab(size));
            put!(out, "{used}\t{}{}\n", tab(used), area.priority);
        }
        out
    }

    /// The text of /proc/pressure/memory at time `now`: averages in percent, totals in microseconds.
    pub fn proc_pressure_memory(&self, now: Nanos) -> String {
        self.groups.psi_text(ROOT, now)
    }
}

impl<O: Owners> Manager<O> {
    /// Every counter with its name, in the order of [`Manager::proc_vmstat`]. Sizes are in pages,
    /// `pgpgin` and `pgpgout` in kB.
    ///
    /// The kernel's files do not have the counters named after tracepoints, or `allocstall` (the
    /// sum over zones). The patch of 2011 uses the name `kswapd_wakeup` for `mm_vmscan_kswapd_wake`
    /// (kswapd started to balance).
    pub fn metrics(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let OwnersReport { dirty_limits, .. } = O::report(self);
        let (background, threshold) = dirty_limits;
        let mut rows: Vec<CounterRow> = Vec::with_capacity(VMSTAT_ORDER.len());
        rows.push(("nr_free_pages", self.mem.nr_free_pages()));
        rows.extend(ZONE_LIST_NAMES.into_iter().zip(self.mem.global_lru_sizes().0));
        rows.push(("nr_zone_write_pending", self.mem.write_pending()));
        rows.push(("nr_mlock", self.nr_mlock()));
        if self.swap.has_pools() {
            rows.push(("nr_zspages", self.mem.nr_zspages()));
        }
        if self.mem.cma_pages() > 0 {
            rows.push(("nr_free_cma", self.mem.free_cma_pages()));
        }
        rows.extend(NodeStat::ALL.map(|stat| (stat.name(), self.mem.global_node_stat(stat))));
        let nodes = (0..self.nr_nodes()).map(|node| NodeId(node as u8));
        let shadow_nodes = nodes.map(|node| self.nr_shadow_nodes(node)).sum();
        rows.push(("workingset_nodes", shadow_nodes));
        rows.push(("nr_dirty_threshold", threshold));
        rows.push(("nr_dirty_background_threshold", background));
        rows.extend(Event::ALL.map(|event| (event.name(), self.mem.vmstat.get(event))));
        rows.push(("allocstall", self.mem.vmstat.allocstall()));
        sort_rows(&mut rows);
        rows.into_iter()
    }

    /// The text of /proc/vmstat. The last line of the kernel's part is `nr_unstable 0`.
    pub fn proc_vmstat(&self) -> String {
        let mut out = String::new();
        let mut in_kernel_part = true;
        for (name, value) in self.metrics() {
            if in_kernel_part && kernel_position(name).is_none() {
                in_kernel_part = false;
                out.push_str("nr_unstable 0\n");
            }
            put!(out, "{name} {value}\n");
        }
        out
    }
}

#[cfg(test)]
mod tests;
