//! memory.stat of a group, cgroup version 2 (Linux: `memory_stat_format`, mm/memcontrol.c, 6.1).
//!
//! Sizes are in bytes and events in counts; both include the descendants. The root's file has the
//! sizes of the machine, but uncharged kernel memory is in no file. `file` is page cache only.
//! Pages of the swap cache are in `swapcached`; /proc/vmstat counts them in `nr_file_pages`, too.
//!
//! Rows are in Linux's order ([`MEMORY_STAT_ORDER`]). Counters that Linux 6.1 does not have follow.

use super::{put, CounterRow};
use crate::ageing::sizes::MEMORY_STAT_NAMES;
use crate::frames::page::{Page, PageFlags};
use crate::frames::page_alloc::Memory;
use crate::groups::memcg::ROOT;
use crate::interface::kernel::Kernel;
use crate::stats::vmstat::NodeStat;
use crate::units::{IdVec, MemcgId, HPAGE_PMD_NR};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

/// memory.stat of Linux 6.1 with swap, zswap and huge pages, in its order. A row that the machine
/// does not have is 0: page tables of guests, sockets, vmalloc(), tmpfs, huge pages of files,
/// MADV_FREE. `kernel_stack` is not 0 in Linux, so it is left out.
const MEMORY_STAT_ORDER: &[&str] = &[
    "anon",
    "file",
    "kernel",
    "pagetables",
    "sec_pagetables",
    "percpu",
    "sock",
    "vmalloc",
    "shmem",
    "zswap",
    "zswapped",
    "file_mapped",
    "file_dirty",
    "file_writeback",
    "swapcached",
    "anon_thp",
    "file_thp",
    "shmem_thp",
    "inactive_anon",
    "active_anon",
    "inactive_file",
    "active_file",
    "unevictable",
    "slab_reclaimable",
    "slab_unreclaimable",
    "slab",
    "workingset_refault_anon",
    "workingset_refault_file",
    "workingset_activate_anon",
    "workingset_activate_file",
    "workingset_restore_anon",
    "workingset_restore_file",
    "workingset_nodereclaim",
    "pgscan",
    "pgsteal",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgfault",
    "pgmajfault",
    "pgrefill",
    "pgactivate",
    "pgdeactivate",
    "pglazyfree",
    "pglazyfreed",
    "zswpin",
    "zswpout",
    "thp_fault_alloc",
    "thp_collapse_alloc",
];

/// Pages of a group by type.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
struct GroupUsage {
    anon: u64,
    file: u64,
    file_mapped: u64,
    file_dirty: u64,
    file_writeback: u64,
    swapcached: u64,
}

impl Memory {
    fn root_usage(&self) -> GroupUsage {
        GroupUsage {
            anon: self.global_node_stat(NodeStat::NrAnonPages),
            file: self.global_node_stat(NodeStat::NrFilePages)
                - self.global_node_stat(NodeStat::NrSwapcached),
            file_mapped: self.global_node_stat(NodeStat::NrMapped),
            file_dirty: self.global_node_stat(NodeStat::NrDirty),
            file_writeback: self.global_node_stat(NodeStat::NrWriteback),
            swapcached: self.global_node_stat(NodeStat::NrSwapcached),
        }
    }
}

impl Kernel {
    /// The text of memory.stat of a group. Empty for an unknown group.
    pub fn memory_stat(&self, memcg: MemcgId) -> String {
        let mut out = String::new();
        if !self.groups.memcg_is_online(memcg) {
            return out;
        }
        let mut rows = self.memory_stat_sizes(memcg);
        rows.push(("anon_thp", self.anon_thp(memcg)));
        rows.extend(self.memcg_events(memcg).rows());
        let is_later = |(name, _): &&CounterRow| !MEMORY_STAT_ORDER.contains(name);
        let later = rows.iter().filter(is_later).map(|(name, _)| name);
        for name in MEMORY_STAT_ORDER.iter().chain(later) {
            let value = rows.iter().find(|(row, _)| row == name).map_or(0, |(_, value)| *value);
            put!(out, "{name} {value}\n");
        }
        out
    }

    /// The sizes of memory.stat, in bytes. O(pages of the group). Empty for a removed group.
    pub fn memory_stat_sizes(&self, memcg: MemcgId) -> Vec<CounterRow> {
        if self.groups.memcgs.get(memcg.idx()).is_none_or(|group| group.lruvecs.is_empty()) {
            return Vec::new();
        }
        let members: IdVec<MemcgId, bool> = (0..self.groups.memcgs.len())
            .map(|id| self.groups.is_descendant(MemcgId(id as u16), memcg))
            .collect();
        let usage = if memcg == ROOT { self.mem.root_usage() } else { self.group_usage(&members) };
        let groups = self.groups.memcgs.iter().zip(&members).filter(|(_, &is_member)| is_member);
        let slabs: u64 = groups.map(|(group, _)| group.kernel_pages).sum();
        // The root's counter lacks the memory that removed groups have passed to it.
        let of_root = if memcg == ROOT { self.groups.memcgs[ROOT].kernel_pages } else { 0 };
        let kernel = self.groups.memcgs[memcg].kmem.usage + of_root;
        let mut sizes = Vec::from([
            ("anon", usage.anon),
            ("file", usage.file),
            ("kernel", kernel),
            ("pagetables", kernel.saturating_sub(slabs)),
            ("file_mapped", usage.file_mapped),
            ("file_dirty", usage.file_dirty),
            ("file_writeback", usage.file_writeback),
            ("swapcached", usage.swapcached),
        ]);
        sizes.extend(MEMORY_STAT_NAMES.into_iter().zip(self.memcg_lru_sizes(memcg).0));
        sizes.iter_mut().for_each(|(_, size)| *size = self.mem.page_size.bytes_of(*size));
        sizes.push(("percpu", self.memcg_percpu_bytes(&members)));
        let [unreclaimable, reclaimable] = self.memcg_slab_bytes(&members);
        sizes.push(("slab_reclaimable", reclaimable));
        sizes.push(("slab_unreclaimable", unreclaimable));
        sizes.push(("slab", reclaimable + unreclaimable));
        let group = &self.groups.memcgs[memcg];
        sizes.push(("zswap", group.zswap_bytes));
        sizes.push(("zswapped", self.mem.page_size.bytes_of(group.zswapped)));
        sizes
    }

    /// Bytes of slabs charged to groups, as [unreclaimable, reclaimable]: bytes of objects, or of
    /// the pages of clones.
    fn memcg_slab_bytes(&self, members: &IdVec<MemcgId, bool>) -> [u64; 2] {
        let mut sums = [0; 2];
        let ids = (0..members.len()).filter(|&id| members[id]).map(|id| MemcgId(id as u16));
        for id in ids.clone() {
            let own = self.groups.memcgs[id].slab_bytes;
            sums.iter_mut().zip(own).for_each(|(sum, bytes)| *sum += bytes);
        }
        for (_, stock) in self.slabs.objcgs.stocks() {
            if members[self.slabs.objcgs.memcg_of(stock.objcg)] {
                sums.iter_mut().zip(stock.slab_bytes).for_each(|(sum, bytes)| *sum += bytes);
            }
        }
        for clone in ids.flat_map(|id| &self.groups.memcgs[id].clones) {
            let cache = &self.slabs.caches[*clone];
            sums[usize::from(cache.reclaimable)] += cache.bytes() as i64;
        }
        sums.map(|bytes| bytes.max(0) as u64)
    }

    /// Bytes of mapped huge pages of a group and its descendants. O(their pages), but O(nodes) for
    /// the root.
    pub fn anon_thp(&self, memcg: MemcgId) -> u64 {
        let huge = if memcg == ROOT {
            self.mem.global_node_stat(NodeStat::NrAnonTransparentHugepages)
        } else {
            let members: IdVec<MemcgId, bool> = (0..self.groups.memcgs.len())
                .map(|id| self.groups.is_descendant(MemcgId(id as u16), memcg))
                .collect();
            let mut huge = 0;
            self.for_each_user_page(&members, |page| {
                huge += u64::from(page.has(PageFlags::HEAD) && page.mapcount > 0);
            });
            huge
        };
        self.mem.page_size.bytes_of(huge * HPAGE_PMD_NR)
    }

    /// Counts the user pages charged to the groups marked in `members`.
    fn group_usage(&self, members: &IdVec<MemcgId, bool>) -> GroupUsage {
        let mut usage = GroupUsage::default();
        self.for_each_user_page(members, |page| {
            let (anon, file) = (page.is_anon(), page.has(PageFlags::FILE));
            let mapped = page.mapcount > 0;
            usage.anon += u64::from(anon && mapped) * page.nr_pages();
            usage.file += u64::from(file);
            usage.file_mapped += u64::from(file && mapped);
            usage.file_dirty += u64::from(file && page.has(PageFlags::DIRTY));
            usage.file_writeback += u64::from(page.has(PageFlags::WRITEBACK)) * page.nr_pages();
            usage.swapcached += u64::from(page.has(PageFlags::SWAPCACHE)) * page.nr_pages();
        });
        usage
    }

    /// Calls `f` once for every user page charged to one of the groups marked in `members`. Such a
    /// page is on a list of its group, in a CPU's batch, or being moved to another frame.
    fn for_each_user_page(&self, members: &IdVec<MemcgId, bool>, mut f: impl FnMut(&Page)) {
        let pages = &self.mem.pages;
        let groups = self.groups.memcgs.iter().zip(members).filter(|(_, &is_member)| is_member);
        let lists = groups.flat_map(|(group, _)| &group.lruvecs).flat_map(|lruvec| lruvec.lists());
        for pfn in lists.flat_map(|list| list.iter(pages)) {
            f(&pages[pfn]);
        }
        let in_batches = self.lru_batches.iter().flat_map(|batches| &batches.add).copied();
        let moving = self.compactions.in_flight().map(|(from, _)| from);
        for pfn in in_batches.chain(moving) {
            let page = &pages[pfn];
            if page.memcg.is_some() && members[page.memcg] {
                f(page);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::frames::node::NodeSpec;
    use crate::process::Machine;
    use crate::stats::vmstat::Event;

    #[test]
    fn rows_stand_in_the_kernels_order_and_counters_of_later_kernels_follow() {
        let node = NodeSpec::x86_64(8 << 20, 0, 0);
        let text = Machine::new(&[node], 1, Config::default()).unwrap().memory_stat(ROOT);
        let rows: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
        let (of_linux, later) = rows.split_at(MEMORY_STAT_ORDER.len());
        assert_eq!(of_linux, MEMORY_STAT_ORDER);
        let of_groups = Event::ALL.into_iter().filter(|event| event.is_of_groups());
        let names: Vec<&str> = of_groups.map(Event::name).collect();
        assert!(later.iter().all(|name| names.contains(name)), "no row of Linux: {later:?}");
    }
}
