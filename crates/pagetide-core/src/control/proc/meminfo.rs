//! /proc/meminfo (Linux: fs/proc/meminfo.c, `si_mem_available`, `vm_commit_limit`, 6.1).
//!
//! The file has the lines of a 6.1 for x86-64, in the kernel's order and width, except the lines
//! that describe hardware (`DirectMap*`, `HardwareCorrupted`), and those of CMA if the machine has
//! none. Values that are not modelled are 0.

use super::put;
use crate::ageing::sizes::MEMINFO_LINES;
use crate::frames::gfp::Watermark;
use crate::frames::page_alloc::Memory;
use crate::frames::zone::Zone;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::stats::vmstat::NodeStat;
use crate::units::HPAGE_PMD_NR;
use alloc::string::String;
use core::fmt::Write;

/// Size of the x86-64 vmalloc area in kB, which the kernel always prints.
const VMALLOC_TOTAL_KB: u64 = 34_359_738_367;

/// Appends a line: the label padded to 16 characters, the number to 8.
fn put_kb(out: &mut String, label: &str, kb: u64) {
    put!(out, "{label:<16}{kb:>8} kB\n");
}

impl Memory {
    /// Pages that a new program could get without swapping (Linux `si_mem_available`). These are
    /// free memory above the reserves, plus page cache and reclaimable slabs. From each of the last
    /// two, the smaller of its half and the low watermark is subtracted.
    fn mem_available(&self) -> u64 {
        let zones = || self.nodes.iter().flat_map(|node| &node.zones);
        let low: u64 = zones().map(|zone: &Zone| zone.wmark(Watermark::Low)).sum();
        let reserve: u64 = self.nodes.iter().map(|node| node.totalreserve_pages).sum();
        let file = self.global_lru_sizes().file();
        let file = file - low.min(file / 2);
        let slab = self.global_node_stat(NodeStat::NrSlabReclaimable);
        let slab = slab - low.min(slab / 2);
        (self.nr_free_pages() + file + slab).saturating_sub(reserve)
    }
}

impl Kernel {
    /// The lines about pages that reclaim handles.
    fn put_meminfo_user(&self, out: &mut String) {
        let stat = |stat| self.mem.global_node_stat(stat);
        let swapcached = stat(NodeStat::NrSwapcached);
        let cached = stat(NodeStat::NrFilePages).saturating_sub(swapcached);
        let managed: u64 = self.mem.nodes.iter().map(|node| node.managed_pages()).sum();
        let page_size = self.mem.page_size;
        let mut pages = |label: &str, pages| put_kb(out, label, page_size.kbytes_of(pages));
        pages("MemTotal:", managed);
        pages("MemFree:", self.mem.nr_free_pages());
        pages("MemAvailable:", self.mem.mem_available());
        pages("Buffers:", 0);
        pages("Cached:", cached);
        pages("SwapCached:", swapcached);
        let sizes = self.mem.global_lru_sizes();
        for (label, lists) in MEMINFO_LINES {
            pages(label, lists.iter().map(|&lru| sizes.on(lru)).sum());
        }
        pages("Mlocked:", self.nr_mlock());
        if self.mem.highmem_zones().next().is_some() {
            let sum = |of: fn(&Zone) -> u64| self.mem.highmem_zones().map(of).sum::<u64>();
            let (total, free) = (sum(|zone| zone.managed), sum(Zone::free_pages));
            pages("HighTotal:", total);
            pages("HighFree:", free);
            pages("LowTotal:", managed - total);
            pages("LowFree:", self.mem.nr_free_pages() - free);
        }
        pages("SwapTotal:", self.swap.usable().into());
        pages("SwapFree:", self.swap.free().into());
        pages("Zswap:", self.zswap_pool_pages());
        pages("Zswapped:", self.zswap_stats().map_or(0, |stats| stats.stored_pages));
        pages("Dirty:", stat(NodeStat::NrDirty));
        pages("Writeback:", stat(NodeStat::NrWriteback));
        pages("AnonPages:", stat(NodeStat::NrAnonPages));
        pages("Mapped:", stat(NodeStat::NrMapped));
        pages("Shmem:", 0);
    }
}

impl<O: Owners> Manager<O> {
    /// The text of /proc/meminfo.
    pub fn proc_meminfo(&self) -> String {
        let mut out = String::new();
        self.put_meminfo_user(&mut out);
        self.put_meminfo_kernel(&mut out);
        for label in ["HugePages_Total:", "HugePages_Free:", "HugePages_Rsvd:", "HugePages_Surp:"] {
            put!(out, "{label:<19}{:>5}\n", 0);
        }
        put_kb(&mut out, "Hugepagesize:", self.mem.page_size.kbytes_of(HPAGE_PMD_NR));
        put_kb(&mut out, "Hugetlb:", 0);
        out
    }

    /// The lines about kernel memory and about commitments.
    fn put_meminfo_kernel(&self, out: &mut String) {
        let page_size = self.mem.page_size;
        let mut pages = |label: &str, pages| put_kb(out, label, page_size.kbytes_of(pages));
        let reclaimable = self.mem.global_node_stat(NodeStat::NrSlabReclaimable);
        let unreclaimable = self.mem.global_node_stat(NodeStat::NrSlabUnreclaimable);
        pages("KReclaimable:", reclaimable);
        pages("Slab:", reclaimable + unreclaimable);
        pages("SReclaimable:", reclaimable);
        pages("SUnreclaim:", unreclaimable);
        pages("KernelStack:", 0);
        pages("PageTables:", self.mem.global_node_stat(NodeStat::NrPageTablePages));
        for label in ["SecPageTables:", "NFS_Unstable:", "Bounce:", "WritebackTmp:"] {
            pages(label, 0);
        }
        // vm.overcommit_ratio is 50.
        let managed: u64 = self.mem.nodes.iter().map(|node| node.managed_pages()).sum();
        pages("CommitLimit:", managed / 2 + u64::from(self.swap.usable()));
        pages("Committed_AS:", O::report(self).nr_committed);
        put_kb(out, "VmallocTotal:", VMALLOC_TOTAL_KB);
        for label in ["VmallocUsed:", "VmallocChunk:", "Percpu:"] {
            put_kb(out, label, 0);
        }
        let huge = self.mem.global_node_stat(NodeStat::NrAnonTransparentHugepages);
        put_kb(out, "AnonHugePages:", page_size.kbytes_of(huge * HPAGE_PMD_NR));
        for label in ["ShmemHugePages:", "ShmemPmdMapped:", "FileHugePages:", "FilePmdMapped:"] {
            put_kb(out, label, 0);
        }
        if self.mem.cma_pages() > 0 {
            put_kb(out, "CmaTotal:", page_size.kbytes_of(self.mem.cma_pages()));
            put_kb(out, "CmaFree:", page_size.kbytes_of(self.mem.free_cma_pages()));
        }
    }
}
