//! The cost model: CPU time of each kind of work. It is the same for all scenarios.
//!
//! It models one CPU core of an x86-64 server of the years 2012 to 2022 at about 3 GHz, with its
//! memory, running Linux. The memory manager counts its work ([`Work`]), and only this file turns
//! counts into time. No number was chosen to fit an experiment. A scenario may replace costs by
//! measurements of its machine (`[machine.costs]`); `pagetide verify` does.
//!
//! Invariant: cost is linear in the counts (`cost(a) + cost(b) == cost(a + b)`), so the total time
//! does not depend on how the work is divided into steps.
//!
//! # Sources
//!
//! Each constant names its source by one of these tags. Cycles are converted at 3 GHz.
//!
//! * `[haswell-fault]` L. Torvalds, "the cost of Linux's page fault handling", 30 April 2014:
//!   exception and `iret` take 1050 cycles, 80.7 % of a fault that maps the zero page (1300 in
//!   all).
//! * `[page_bench]` J. D. Brouer, netoptimizer/prototype-kernel, `page_bench01`, as posted to
//!   linux-mm: order-0 allocate-and-free 272 cycles (4.6-rc1, 2016) and 246 cycles (later).
//! * `[zone-lock]` A. Lu, linux-mm, 5 February 2018, "eliminate zone->lock contention": most of the
//!   time under the zone lock is cache misses on `struct page`.
//! * `[dram]` AnandTech 2017, LMBench on Xeon v4, Skylake-SP and EPYC 7601: a load from memory
//!   takes 89 to 98 ns; 90 is used. "n cold lines" below means n times this.
//! * `[clear_pages]` Linux commit cb431accb36e, "x86/clear_page: introduce clear_pages()": clearing
//!   4 KiB at a time runs at 13.7 GB/s on AMD Milan.
//! * `[fio-4k]` Chi Zhiling, "mm/filemap: reduce unnecessary xarray lookups", linux-kernel, 20 May
//!   2026: fio, 4 KiB reads from the page cache, 2828 MB/s, 1.45 us a read including fio itself.
//! * `[memfd]` "filemap_grab_folios", linux-kernel, January 2025 (Ice Lake): batching the
//!   page-cache insertion of 3 GiB saves 73 ms of 708, 93 ns a page for lock and tree walk.
//! * `[xrp]` Zhong et al., "XRP: In-Kernel Storage Functions with eBPF", OSDI 2022, table 1: a 512
//!   B read() of 6.27 us: crossing 351 ns, read() 199, ext4 2006, bio 379, NVMe driver 113, device
//!   3224.
//! * `[switch]` two tasks over a pipe, Linux 6.6, i7 11th generation (ddumbying.vercel.app,
//!   "Context switch overhead"): 1070 ns a switch between threads, 2410 ns between processes, pipe
//!   system calls and wake-up included. The guest below: 2400 ns.
//! * `[shootdown]` common figures for x86: an IPI round trip takes 1 to 3 us, 1 us for the first
//!   receiver and about 0.2 us for each further one; M. Gorman's batching of unmaps ("kswapd is
//!   scanning and unmapping >100K pages per second", linux-mm 2015) is why it costs once per batch.
//! * `[dentry]` rmdir of a directory with 100 000 negative dentries, Linux 6.1 in QEMU with one
//!   nanosecond per instruction: 835 to 1127 ns a dentry.
//! * `[kworker]` W. Gao, "Measuring and improving buffered I/O" (Solidigm KA-01862), Linux 6.8, two
//!   NVMe disks of 14.5 GB/s together: buffered writes to ext4 reach 5383 MB/s with one kworker at
//!   100 % of its CPU.
//! * `[fio-zram]` u/VenditatioDelendaEst, "zram benchmarks": random reads of 4 KiB from zram, mean
//!   times with lzo 2428 ns, lzo-rle 2235, lz4 1708, zstd 5714, at ratios of 2.77, 2.74, 2.63 and
//!   3.37.
//! * `[linuxreviews-zram]` linuxreviews.org, "Comparison of Compression Algorithms": copying 1.1 GiB
//!   into zram takes 4.57 s with lzo, 4.47 with lzo-rle, 4.47 with lz4, 7.90 with zstd.
//! * `[images]` 123 700 pages of a compiler, an interpreter and a JavaScript engine, compressed and
//!   decompressed one by one during development on a Zen 4 EPYC: LZO 4.4 to 6.0 us and 2.9 to 4.2,
//!   LZ4 3.0 to 3.8 and 1.5 to 1.8, zstd (level 3) 13.8 to 17.1 and 5.5.
//! * `[intel_idle]` `drivers/idle/intel_idle.c`, Skylake-SP: leaving C1 takes 2 us.
//!
//! # How the sums compare
//!
//! Sums of constants against measurements of whole operations, as a check that they are plausible
//! together (tests keep the model near them). "Guest" is one measurement during development: Linux
//! 6.18, ext4, in a virtual machine on a Zen 4 EPYC, which needs no Meltdown mitigation; nested
//! paging makes faults more expensive there.
//!
//! | operation | model | elsewhere |
//! |---|---|---|
//! | first write to an anonymous page | 1.07 us | 1.01 us median `[i7-fault]`; guest 1.5 us |
//! | cached page by 64 KiB read() | 0.52 us | guest 0.46 to 0.53 us |
//! | cached page by 4 KiB read() | 0.85 us | `[fio-4k]` below 1.45 us; guest 0.95 us |
//! | new page by 64 KiB / 16 KiB / 4 KiB write() | 0.9 / 1.4 / 3.1 us | guest 0.84 / 1.4 / 3.0 us |
//! | dropping a clean, unmapped page | 0.53 us | guest 0.44 us; at most 1.1 us `[32-kswapds]` |
//! | first touch of a mapped sparse-file page | 3.9 us | guest 3.3 us |
//!
//! * `[i7-fault]` an anonymous fault by `rdtsc`, Linux 6.6, i7 11th generation, the author of
//!   `[switch]`: least 575 ns, median 1013 ns.
//! * `[32-kswapds]` J. Axboe, "make buffered writes work with RWF_UNCACHED", 2024: 115 GB/s written
//!   through a full page cache by 32 files while 32 kswapds run full steam.
//!
//! The seed of 2011 reports 150 ms of system time for 16384 faults on a mapped sparse file: 9.2 us
//! a page, including its share of reclaim. The model has 3.9 us, or 5.6 us with the eviction of one
//! mapped page. The difference is accepted, as the seed's machine (unnamed, a kernel of 2010,
//! likely a slower core, tick-sampled accounting with a second busy CPU) is not the machine above.

use pagetide_core::stats::work::Work;
use pagetide_core::units::page_size::PageSize;
use pagetide_core::units::{Nanos, PAGE_SIZE};
use pagetide_scenario::model::costs::{MachineCosts, Price};
use std::ops::Index;

/// Passes every kind of work with its cost to a macro, except copies, which count bytes. A test
/// verifies that each kind of [`Work`] has a cost.
macro_rules! priced {
    ($with:ident) => {
        $with! {
            Fault faults,
            PageAlloc pages_allocated,
            PageCharge pages_charged,
            PageFree pages_freed,
            BuddyOp buddy_ops,
            PageZero pages_allocated_zeroed,
            PageZero pages_zeroed,
            Pte ptes_set,
            CacheOp cache_ops,
            PageScan pages_scanned,
            PageSkip pages_skipped,
            RmapWalk rmap_walks,
            PteWalk ptes_walked,
            PteUsed ptes_used,
            LruMove lru_moves,
            Refault refaults,
            LruvecVisit lruvecs_visited,
            ListSpare lists_spared,
            Bio bios,
            BioPage bio_pages,
            TlbFlush tlb_flushes,
            TlbShootdown tlb_flushes,
            Syscall syscalls,
            CompactScan compact_scanned,
            PageMigrate pages_migrated,
            SlabRefill slab_refills,
            ObjcgDrain objcg_drains,
            CacheCreate caches_created,
            ObjectScan objects_scanned,
            ObjectPrune objects_pruned,
            FsRead fs_reads,
            FsRequest fs_requests,
            Writeback writebacks,
            LzoCompress lzo_compressed,
            LzoDecompress lzo_decompressed,
            LzoRleCompress lzo_rle_compressed,
            LzoRleDecompress lzo_rle_decompressed,
            Lz4Compress lz4_compressed,
            Lz4Decompress lz4_decompressed,
            ZstdCompress zstd_compressed,
            ZstdDecompress zstd_decompressed,
        }
    };
}

/// Costs in nanoseconds per operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostModel {
    prices: [Nanos; Price::COUNT],
}

impl Index<Price> for CostModel {
    type Output = Nanos;

    fn index(&self, price: Price) -> &Nanos {
        &self.prices[price as usize]
    }
}

impl CostModel {
    /// The core described in this file, on a machine with several CPUs.
    pub const SERVER: CostModel = {
        let mut prices = [0; Price::COUNT];
        let mut at = 0;
        while at < Price::COUNT {
            prices[at] = CostModel::sourced(Price::ALL[at]);
            at += 1;
        }
        CostModel { prices }
    };

    /// Cost of an operation on that core, with its source.
    pub const fn sourced(price: Price) -> Nanos {
        match price {
            // One entry into the page-fault handler and back: exception, look-up of the mapping,
            // page-table walk. 1300 cycles and page-table isolation's share; `[haswell-fault]`.
            Price::Fault => 500,
            // One order-0 page from a per-CPU set. 60 % of `[page_bench]`'s 246 to 272
            // cycles.
            Price::PageAlloc => 50,
            // One page charged to a group and later uncharged: stock, owner, and about six counters
            // of the group's lists incremented and decremented. About 450 instructions, two a
            // cycle, and half a cold line; an estimate from `[dram]`. Groups in the guest of
            // docs/fidelity.md cost more than the stock and half a cold line (60) explain.
            Price::PageCharge => 120,
            // One page back to a per-CPU set. The other 40 % of `[page_bench]`.
            Price::PageFree => 35,
            // One block between the buddy lists and a per-CPU set: one cold `struct page`;
            // `[zone-lock]`, `[dram]`.
            Price::BuddyOp => 90,
            // Clearing a page, of 4 KiB in [`CostModel::SERVER`]: 13.7 GB/s; `[clear_pages]`.
            Price::PageZero => 300,
            // Copying 4 KiB between page cache and user memory: 10 GB/s, a clear and a read at
            // `[clear_pages]`'s rate with the read partly hidden. `[fio-4k]` bounds it from above.
            Price::PageCopy => 400,
            // One page-table entry written, with the page's map count (one line, cold half of the
            // time) and the counters of the address space; `[dram]`.
            Price::Pte => 80,
            // One page-cache or swap-cache look-up, insertion or removal; `[memfd]`.
            Price::CacheOp => 100,
            // One page looked at by reclaim: taken off the list's tail (its own line and two
            // neighbours'), locked, checked. Three cold lines; `[dram]`.
            Price::PageScan => 300,
            // One page skipped by reclaim because its zone is too high: moved from the list's tail
            // to another list. One cold line; the neighbour's line is that of the next page;
            // `[dram]`.
            Price::PageSkip => 90,
            // One reverse-map walk to one page-table entry: a lock, the mapping, four levels of
            // page table. Two cold lines and 70 ns of instructions; `[dram]`.
            Price::RmapWalk => 250,
            // One page-table entry read in order, eight to a line, whose used bit is tested. The line
            // comes at the rate of a stream (`[clear_pages]`, 5 ns): 1 ns, and some ten instructions.
            Price::PteWalk => 5,
            // The page of a used entry among these: one cold line, and two atomic operations, on
            // the entry and on the page's flags; `[dram]`.
            Price::PteUsed => 110,
            // One page moved between LRU lists, as a part of a batch of 15 that shares the lock:
            // half a cold line; `[dram]`.
            Price::LruMove => 50,
            // One refault evaluated by its shadow entry: looks up the group, reads the sizes of its
            // lists and its counters. Two cold lines; an estimate from `[dram]`.
            Price::Refault => 200,
            // One group's lists visited by reclaim: iterator, protection, scan balance. Five cold
            // lines; an estimate from `[dram]`.
            Price::LruvecVisit => 450,
            // One round of `shrink_lruvec` over the lists that finds an active list which it may not
            // age: about 80 instructions by reading the source, two a cycle. All of its lines are hot.
            Price::ListSpare => 16,
            // One request submitted to a disk: 379 ns in the block layer and 113 ns in the driver;
            // `[xrp]`.
            Price::Bio => 500,
            // One page of such a request: its entry in the list for the device, and at the end its
            // flags and its waiters. Its line is cold each time; `[dram]`.
            Price::BioPage => 180,
            // Flushing a batch of entries on the CPU that runs: up to 33 single invalidations or
            // one full flush, of about 200 cycles each way, and the misses that follow. An
            // estimate.
            Price::TlbFlush => 200,
            // Additional cost of a flush with other CPUs: the wait for one IPI round trip to a few
            // receivers; `[shootdown]`. 0 on a machine with one CPU.
            Price::TlbShootdown => 1_500,
            // One system call entered, dispatched and left: 351 ns with mitigations; `[xrp]`.
            // (Guest without them: 190 ns.)
            Price::Syscall => 350,
            // One page looked at by a scanner of compaction: the page array is read in order, so
            // the line of 64 bytes comes at the rate of a stream (`[clear_pages]`, 5 ns), and is
            // tested.
            Price::CompactScan => 7,
            // Migrating one page, except for its entries, its bytes and the lists: locking both
            // pages, freezing the reference count, copying the descriptor. Three cold lines;
            // `[dram]`.
            Price::PageMigrate => 270,
            // One object allocated or freed on the CPU's own slab: half of what `kmem_cache_alloc`
            // and `kmem_cache_free` take together in the kernel's own slab_bulk_test, about 40 ns.
            Price::Object => 20,
            // Charging it to a group: stock, owner vector, counters. An estimate: half a cold line
            // and the instructions; the series of 2020 was reported to cost 140 ns in a message's
            // round trip of some ten allocations.
            Price::ObjectCharge => 10,
            // One slab taken from a chain or a node's list: a lock and a cold line; `[dram]`.
            Price::SlabRefill => 90,
            // One stock of bytes drained for another owner: a cold line; `[dram]`.
            Price::ObjcgDrain => 90,
            // One cache created for a group: allocation, names, sysfs. An estimate.
            Price::CacheCreate => 30_000,
            // One cached object scanned by a shrinker: a lock and one cold line; `[dram]`.
            Price::ObjectScan => 150,
            // One cached object freed by a shrinker, except for its slab: unhashed, removed from
            // its parent's children, passed to RCU. About 1000 instructions (`[dentry]`), two a
            // cycle, and six cold lines: two of its own, two neighbours in the hash chain, two
            // among the children; `[dram]`.
            Price::ObjectPrune => 700,
            // A file system's share of one read request: block mapping. `[xrp]`'s ext4.
            Price::FsRead => 2_000,
            // A file system's share of one run of holes that it fills with zeroes, or of one newly
            // written page: block mapping, journal handle, delayed allocation. Also `[xrp]`'s ext4.
            // (Before large folios, ext4 does this for every page of a buffered write; since then,
            // once per call.)
            Price::FsRequest => 2_000,
            // One page of a file put under writeback: its tags in the tree, its buffer head, its
            // blocks. One flusher at 100 % of a CPU writes 5383 MB/s to ext4, 760 ns a page with
            // the page's place in its request; `[kworker]`.
            Price::Writeback => 670,
            // Compressing one page, with the work of zram around it. `[images]`; the difference of
            // zstd and LZO is 12 us a page in `[linuxreviews-zram]`, too. LZO-RLE against LZO as in
            // `[fio-zram]`.
            Price::LzoCompress => 5_000,
            Price::LzoRleCompress => 4_600,
            Price::Lz4Compress => 3_700,
            Price::ZstdCompress => 16_000,
            // Decompressing one page: mean times of reads of 4 KiB, `[fio-zram]`. They include the
            // block layer's direct call, and are near `[images]`.
            Price::LzoDecompress => 2_400,
            Price::LzoRleDecompress => 2_200,
            Price::Lz4Decompress => 1_700,
            Price::ZstdDecompress => 5_700,
            // Interrupt and completion of one request: two kernel entries and the block layer once
            // more, from `[xrp]`. Charged to the CPU that takes the interrupt.
            Price::IoCompletion => 1_000,
            // Switching a CPU from one process to another: `[switch]` less two system calls and the
            // wake-up.
            Price::ContextSwitch => 1_200,
            // The waker's share of a wake-up (`try_to_wake_up`): `[switch]` minus the switch and
            // the system calls.
            Price::Wakeup => 500,
            // From the wake-up to the first instruction on an idle CPU: C1 exit and IPI;
            // `[intel_idle]`, `[shootdown]`.
            Price::IdleExit => 3_000,
            // Touching a resident page: a TLB miss and a cold line, ten or so overlapping as in a
            // loop over independent pages; `[dram]` over the 10 to 12 line-fill buffers of a core.
            // (Guest: 13 ns.)
            Price::Hit => 15,
            // User instructions around one access: about 30, two a cycle.
            Price::UserAccess => 5,
        }
    }

    /// The model for a machine with `cpus` CPUs. With one CPU, no other TLB needs a flush.
    #[must_use]
    pub const fn for_cpus(cpus: u16) -> CostModel {
        Self::SERVER.on_cpus(cpus)
    }

    /// The model of a machine with these costs; the others are those of [`CostModel::SERVER`].
    pub fn of_machine(costs: &MachineCosts, cpus: u16, page_size: PageSize) -> CostModel {
        let mut model = Self::SERVER;
        for (price, ns) in costs.iter() {
            model.prices[price as usize] = ns;
        }
        model.on_cpus(cpus).with_page_size(page_size)
    }

    const fn on_cpus(mut self, cpus: u16) -> CostModel {
        if cpus == 1 {
            self.prices[Price::TlbShootdown as usize] = 0;
        }
        self
    }

    /// The same core with another page size. The cost of clearing or compressing a page is
    /// proportional to its size. Copies count bytes, and all other costs per page do not depend on its size.
    #[must_use]
    pub const fn with_page_size(mut self, page_size: PageSize) -> CostModel {
        let mut at = 0;
        while at < Price::BY_PAGE_BYTES.len() {
            let price = Price::BY_PAGE_BYTES[at] as usize;
            self.prices[price] = self.prices[price] * page_size.bytes() / PAGE_SIZE;
            at += 1;
        }
        self
    }

    /// CPU time of `work`.
    pub fn cost(&self, work: &Work) -> Nanos {
        let (counts, bytes) = counts(work);
        let copied = u64::from(bytes) * self[Price::PageCopy] / PAGE_SIZE;
        counts.iter().map(|&(price, count)| u64::from(count) * self[price]).sum::<Nanos>() + copied
    }

    /// The cost of each kind of work except copies, in the order of [`Work::counts`]; `None` if one
    /// exceeds 32 bits.
    pub(crate) fn of_kinds(&self) -> Option<[u64; Work::FIELDS]> {
        let mut kinds = Work::default();
        macro_rules! add {
            ($($price:ident $count:ident,)*) => {
                $(kinds.$count = u32::try_from(self[Price::$price]).ok()?.checked_add(kinds.$count)?;)*
            };
        }
        priced!(add);
        Some(kinds.counts().map(u64::from))
    }

    /// CPU time of one access to a resident page.
    pub fn access_ns(&self) -> Nanos {
        self[Price::Hit] + self[Price::UserAccess]
    }
}

/// The operations of `work` with their numbers, and the number of bytes that it copied.
pub(crate) fn counts(work: &Work) -> ([(Price, u32); 41], u32) {
    macro_rules! pairs {
        ($($price:ident $count:ident,)*) => { [$((Price::$price, work.$count)),*] };
    }
    (priced!(pairs), work.bytes_copied)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: CostModel = CostModel::SERVER;

    /// Allocation of a page: from the buddy lists through the per-CPU set to an LRU list.
    const NEW_PAGE: Work = Work { pages_allocated: 1, buddy_ops: 1, lru_moves: 1, ..NOTHING };
    const NOTHING: Work = Work {
        faults: 0,
        pages_allocated: 0,
        pages_charged: 0,
        pages_freed: 0,
        buddy_ops: 0,
        pages_allocated_zeroed: 0,
        pages_zeroed: 0,
        bytes_copied: 0,
        ptes_set: 0,
        cache_ops: 0,
        pages_scanned: 0,
        pages_skipped: 0,
        rmap_walks: 0,
        ptes_walked: 0,
        ptes_used: 0,
        lru_moves: 0,
        refaults: 0,
        lruvecs_visited: 0,
        lists_spared: 0,
        bios: 0,
        bio_pages: 0,
        tlb_flushes: 0,
        syscalls: 0,
        compact_scanned: 0,
        pages_migrated: 0,
        slab_refills: 0,
        objcg_drains: 0,
        caches_created: 0,
        objects_scanned: 0,
        objects_pruned: 0,
        fs_reads: 0,
        fs_requests: 0,
        writebacks: 0,
        lzo_compressed: 0,
        lzo_decompressed: 0,
        lzo_rle_compressed: 0,
        lzo_rle_decompressed: 0,
        lz4_compressed: 0,
        lz4_decompressed: 0,
        zstd_compressed: 0,
        zstd_decompressed: 0,
    };

    #[track_caller]
    fn assert_between(value_ns: Nanos, low_ns: Nanos, high_ns: Nanos) {
        assert!((low_ns..=high_ns).contains(&value_ns), "{value_ns} not in {low_ns}..={high_ns}");
    }

    #[test]
    fn every_kind_of_work_costs_something() {
        assert_eq!(MODEL.cost(&NOTHING), 0);
        assert_eq!(MODEL.cost(&Work { faults: 3, ..NOTHING }), 1500);
        // One unit of each field (a page for bytes), so that none is forgotten.
        let alone = [
            Work { faults: 1, ..NOTHING },
            Work { pages_allocated: 1, ..NOTHING },
            Work { pages_charged: 1, ..NOTHING },
            Work { pages_freed: 1, ..NOTHING },
            Work { buddy_ops: 1, ..NOTHING },
            Work { pages_allocated_zeroed: 1, ..NOTHING },
            Work { pages_zeroed: 1, ..NOTHING },
            Work { bytes_copied: 4096, ..NOTHING },
            Work { ptes_set: 1, ..NOTHING },
            Work { cache_ops: 1, ..NOTHING },
            Work { pages_scanned: 1, ..NOTHING },
            Work { pages_skipped: 1, ..NOTHING },
            Work { rmap_walks: 1, ..NOTHING },
            Work { ptes_walked: 1, ..NOTHING },
            Work { ptes_used: 1, ..NOTHING },
            Work { lru_moves: 1, ..NOTHING },
            Work { refaults: 1, ..NOTHING },
            Work { lruvecs_visited: 1, ..NOTHING },
            Work { lists_spared: 1, ..NOTHING },
            Work { bios: 1, ..NOTHING },
            Work { bio_pages: 1, ..NOTHING },
            Work { tlb_flushes: 1, ..NOTHING },
            Work { syscalls: 1, ..NOTHING },
            Work { compact_scanned: 1, ..NOTHING },
            Work { pages_migrated: 1, ..NOTHING },
            Work { slab_refills: 1, ..NOTHING },
            Work { objcg_drains: 1, ..NOTHING },
            Work { caches_created: 1, ..NOTHING },
            Work { objects_scanned: 1, ..NOTHING },
            Work { objects_pruned: 1, ..NOTHING },
            Work { fs_reads: 1, ..NOTHING },
            Work { fs_requests: 1, ..NOTHING },
            Work { writebacks: 1, ..NOTHING },
            Work { lzo_compressed: 1, ..NOTHING },
            Work { lzo_decompressed: 1, ..NOTHING },
            Work { lzo_rle_compressed: 1, ..NOTHING },
            Work { lzo_rle_decompressed: 1, ..NOTHING },
            Work { lz4_compressed: 1, ..NOTHING },
            Work { lz4_decompressed: 1, ..NOTHING },
            Work { zstd_compressed: 1, ..NOTHING },
            Work { zstd_decompressed: 1, ..NOTHING },
        ];
        assert_eq!(alone.len(), NOTHING.fields().len(), "a new kind of work needs its line");
        for work in alone {
            assert!(MODEL.cost(&work) > 0, "{work:?} costs nothing");
        }
    }

    #[test]
    fn cost_is_linear() {
        let a = Work { faults: 2, bios: 1, pages_scanned: 77, ..NOTHING };
        let b = Work { ptes_set: 9, tlb_flushes: 3, ..NEW_PAGE };
        let mut both = a;
        both.add(&b);
        assert_eq!(MODEL.cost(&both), MODEL.cost(&a) + MODEL.cost(&b));
    }

    #[test]
    fn largest_counts_do_not_overflow() {
        let most = Work { tlb_flushes: u32::MAX, faults: u32::MAX, ..NOTHING };
        assert!(MODEL.cost(&most) > u64::from(u32::MAX));
    }

    #[test]
    fn a_single_cpu_sends_no_ipi() {
        let flush = Work { tlb_flushes: 1, ..NOTHING };
        assert_eq!(CostModel::for_cpus(1).cost(&flush), 200);
        assert_eq!(CostModel::for_cpus(2).cost(&flush), 1700);
    }

    #[test]
    fn a_larger_page_is_cleared_and_copied_by_the_byte() {
        let large = MODEL.with_page_size(PageSize::Kib64);
        let clear = Work { pages_zeroed: 1, ..NOTHING };
        assert_eq!(large.cost(&clear), 16 * MODEL.cost(&clear));
        let copy = Work { bytes_copied: 1 << 16, ..NOTHING };
        assert_eq!(large.cost(&copy), MODEL.cost(&copy));
        let walk = Work { rmap_walks: 1, pages_scanned: 1, ..NOTHING };
        assert_eq!(large.cost(&walk), MODEL.cost(&walk));
        assert_eq!(MODEL.with_page_size(PageSize::Kib4), MODEL);
    }

    #[test]
    fn an_anonymous_fault_is_about_a_microsecond() {
        let fault = Work { faults: 1, pages_zeroed: 1, ptes_set: 1, ..NEW_PAGE };
        assert_between(MODEL.cost(&fault), 575, 1500);
    }

    #[test]
    fn cached_reads_are_as_fast_as_measured() {
        let by_16 = Work { syscalls: 1, cache_ops: 16, bytes_copied: 16 * 4096, ..NOTHING };
        assert_between(MODEL.cost(&by_16) / 16, 450, 600);
        let by_1 = Work { syscalls: 1, cache_ops: 1, bytes_copied: 4096, ..NOTHING };
        assert_between(MODEL.cost(&by_1), 700, 1450);
    }

    #[test]
    fn buffered_writes_are_as_fast_as_measured() {
        // With large folios, the file system costs once per call.
        let per_page = |pages: u32| {
            let call = Work { syscalls: 1, ..NOTHING };
            let page = Work { cache_ops: 2, bytes_copied: 4096, ..NEW_PAGE };
            (MODEL.cost(&call) + MODEL[Price::FsRequest]) / u64::from(pages) + MODEL.cost(&page)
        };
        assert_between(per_page(16), 700, 1100);
        assert_between(per_page(4), 1100, 1700);
        assert_between(per_page(1), 2500, 3600);
    }

    #[test]
    fn reclaiming_a_clean_page_is_as_fast_as_measured() {
        let page = Work { pages_scanned: 1, cache_ops: 1, pages_freed: 1, buddy_ops: 1, ..NOTHING };
        assert_between(MODEL.cost(&page), 400, 1150);
    }

    /// The seed's figure is an upper bound, not a target.
    #[test]
    fn the_seed_s_fault_is_of_the_right_order() {
        // Major fault and its retry; look-up, look-up again, insertion.
        let fault = Work { faults: 2, pages_zeroed: 1, ptes_set: 1, cache_ops: 3, ..NEW_PAGE };
        let fault_ns = MODEL.cost(&fault) + MODEL[Price::FsRequest];
        assert_between(fault_ns, 3_000, 4_500);
        // Eviction of a mapped page: scanned twice, unmapped the second time.
        let eviction = Work {
            pages_scanned: 2,
            rmap_walks: 3,
            ptes_set: 1,
            cache_ops: 1,
            lru_moves: 1,
            pages_freed: 1,
            buddy_ops: 1,
            ..NOTHING
        };
        assert_between(fault_ns + MODEL.cost(&eviction), 4_600, 9_200);
    }

    #[test]
    fn a_stated_price_takes_the_place_of_the_table_s() {
        let mut costs = MachineCosts::default();
        let of = |costs: &MachineCosts, cpus| CostModel::of_machine(costs, cpus, PageSize::Kib4);
        assert_eq!((of(&costs, 1), of(&costs, 2)), (CostModel::for_cpus(1), MODEL));
        costs.set(Price::Fault, 7);
        costs.set(Price::TlbShootdown, 70);
        costs.set(Price::PageZero, 100);
        let fault = Work { faults: 2, tlb_flushes: 1, ..NOTHING };
        assert_eq!(of(&costs, 1).cost(&fault), 14 + 200);
        assert_eq!(of(&costs, 4).cost(&fault), 14 + 200 + 70);
        let clear = Work { pages_zeroed: 1, ..NOTHING };
        assert_eq!(CostModel::of_machine(&costs, 1, PageSize::Kib64).cost(&clear), 1600);
    }
}
