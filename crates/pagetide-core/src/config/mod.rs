//! The policies and control files of the machine, each declared once.
//!
//! Linux: the `vm_table` of kernel/sysctl.c, and the memory files of debugfs and sysfs. A kernel
//! release has one variant of each policy, except for transparent huge pages. This file generates
//! [`Config`] with its defaults and its digest, the enums, [`Policy`], [`PolicyChoice`] and
//! [`Sysctl`], the keys and checks of scenario files, their schema and the tables of
//! docs/scenario.md. `control/handlers.rs` has the writes that do more than set a field. The rest
//! of the core reads the effect of a policy from the era (`era.rs`).
//!
//! A sysctl is `Name = "kernel's name", form, unit, since => field: type = default`; `special`: a
//! write does more than set the field. A policy is `Name = "key", flags => field: type = default`,
//! and a variant is `Name = number, "name"`; `linux`: Linux 6.1 does it. `boot`: the policy is
//! chosen before groups and objects exist. `implied`: the policy is not a key of a scenario's
//! `[policy]`, but follows from other keys.
//!
//! Invariant: the numbers of variants and the order of fields do not change, because the digest of
//! a machine contains both. A new field, at the end of its section, changes every digest.

pub(crate) mod era;

mod declare;
mod form;
mod marks;
mod policy;
mod policy_set;

pub(crate) use form::INT_MAX;
pub use form::{ControlFile, ControlForm, ControlOrigin, ControlValue};
pub use marks::{
    default_min_free_kbytes, WatermarkInputs, WmarkKbytes, MIN_FREE_KBYTES_MAX,
    MIN_FREE_KBYTES_MAX_OLD, MIN_FREE_KBYTES_MIN,
};
pub use policy::PolicyVariant;
pub use policy_set::PolicySet;

use crate::units::digest::{Digest, State};
use crate::units::page_size::PageSize;
use crate::units::HPAGE_PMD_NR;
use declare::{default_words, flag, optional, policy_type, tunables};
use form::ControlOrigin::{Linux, Patch};
use form::{from, sysfs, within, ControlNumber, INT_MIN, SECONDS_MAX, UINT_MAX, ULONG_MAX};

/// Pages of a huge page that khugepaged may find missing or in swap: all but one.
const MAX_PTES: u64 = HPAGE_PMD_NR - 1;

tunables! {
    with page_size;

    // Control files that depend on more than one field, or act.
    files {
        /// Free memory that only urgent allocations may use. It sets the min watermarks of all
        /// zones.
        MinFreeKbytes = "vm.min_free_kbytes", from(0), "kB", Linux("2.6"),
            default "sqrt(16 * lowmem in kB), 128 to 262144";
        /// Distance between the watermarks (policy scale-factor).
        WatermarkScaleFactor = "vm.watermark_scale_factor", within(1, 3000), "1/10000 of a zone",
            Linux("4.6; up to 1000 until 5.16"), default "10";
        /// How far fragmentation may raise the watermarks for a while; 0 is off.
        WatermarkBoostFactor = "vm.watermark_boost_factor", from(0), "1/10000 of the high mark", Linux("5.0"),
            default "15000";
        /// The min watermark of the whole machine (policy apart).
        WmarkMinKbytes = "vm.wmark_min_kbytes", from(0), "kB", Patch("January 2011"),
            default "as vm.min_free_kbytes";
        /// The low watermark of the whole machine: below it kswapd is woken (policy apart).
        WmarkLowKbytes = "vm.wmark_low_kbytes", from(0), "kB", Patch("January 2011"),
            default "1.25 min";
        /// The high watermark of the whole machine: kswapd stops there (policy apart).
        WmarkHighKbytes = "vm.wmark_high_kbytes", from(0), "kB", Patch("January 2011"),
            default "1.5 min";
        /// Raises the low and high watermarks, not min (Rik van Riel's patch of 2011).
        ExtraFreeKbytes = "vm.extra_free_kbytes", from(0), "kB", Patch("2011"), default "0";
        /// Pages of a lower zone that requests for a higher zone cannot use: 1/N of the pages of
        /// the higher zones.
        LowmemReserveRatio = "vm.lowmem_reserve_ratio", ControlForm::Zones, "", Linux("2.6"),
            default "256 256 32 0";
        /// 1 drops clean page cache, 2 unused inodes and directory entries, 3 both (workload
        /// write-control only).
        DropCaches = "vm.drop_caches", ControlForm::Action { max: 4 }, "", Linux("2.6.16"),
            default "none (write-only)";
        /// Compacts all zones at once (workload write-control only).
        CompactMemory = "vm.compact_memory", ControlForm::Action { max: 1 }, "", Linux("2.6.35"),
            default "none (write-only)";
        /// Updates the counters of /proc/vmstat, always exact here (workload write-control only).
        StatRefresh = "vm.stat_refresh", ControlForm::Anything, "", Linux("4.7"),
            default "none (write-only)";
        /// Which anonymous memory gets huge pages. The values always and madvise raise
        /// vm.min_free_kbytes, unless the user has written it.
        ThpEnabled = "transparent_hugepage.enabled", ControlForm::Policy(Policy::Thp), "", Linux("2.6.38"),
            default "never";
        /// Action of a fault when no huge page is free: reclaim and compact, wake the daemons, or
        /// nothing.
        ThpDefrag = "transparent_hugepage.defrag", ControlForm::Policy(Policy::ThpDefrag), "",
            Linux("2.6.38; defer since 4.6, defer+madvise since 4.11"), default "madvise";
    }

    of watermarks {
        /// How the low and high watermarks follow from what the user sets.
        Watermarks = "watermarks" => policy: WatermarkPolicy = ScaleFactor {
            /// Until Linux 4.5: low = 1.25 min, high = 1.5 min.
            Derived = 0, "derived";
            /// Since Linux 4.6: low and high are min plus one and two steps of
            /// vm.watermark_scale_factor.
            ScaleFactor = 1, "scale-factor", linux;
            /// The patch of January 2011: vm.wmark_min_kbytes, vm.wmark_low_kbytes and
            /// vm.wmark_high_kbytes each set their watermark; until one is written, as derived.
            Apart = 2, "apart";
        }
        /// How large per-CPU lists are, and how fast they drain.
        PerCpuLists = "per_cpu_lists" => pcp: PcpPolicy = Linux61 {
            /// Since Linux 5.14: the limit of each CPU's lists is an equal share of the low
            /// watermark, less during reclaim. While a CPU only frees, each batch that is drained
            /// is twice as large as the one before.
            Linux61 = 0, "linux-6.1", linux;
            /// Before 5.14: the limit is six batches of at most 31 pages; one batch is drained at a
            /// time.
            Linux2637 = 1, "linux-2.6.37";
            /// Since Linux 6.7: the lists adapt to their CPU. While it only allocates, each refill
            /// is twice as large, up to 32 batches, and the limit grows, up to the CPU's share of an
            /// eighth of the zone. The limit shrinks while the zone is short of memory.
            Linux612 = 2, "linux-6.12";
        }
        /// How many pages a request takes if it falls back to a pageblock of another migrate type
        /// without claiming the pageblock.
        Fallback = "fallback" => fallback: FallbackPolicy = Linux61 {
            /// The whole free block. Pages that it does not need go to the lists of the request's
            /// type.
            Linux61 = 0, "linux-6.1", linux;
            /// Up to 5.6: as linux-6.1, but movable requests take CMA memory only if their own
            /// lists are empty. Since 5.7 they also do while more than half of the zone's free
            /// pages are CMA.
            Linux54 = 2, "linux-5.4";
            /// Since Linux 6.10: only the pages it needs. The others stay on the lists of the
            /// pageblock's type, and the next request falls back again.
            Linux612 = 1, "linux-6.12";
        }
    }

    // Reclaim, writeback and groups.
    theme {
        sysctls {
            /// Cost of swapping relative to reading files; 100: equal.
            Swappiness = "vm.swappiness", within(0, 200), "", Linux("2.6; up to 100 until 5.7")
                => swappiness: u32 = 60;
            /// Swap read-ahead: 0 reads one page.
            PageCluster = "vm.page-cluster", within(0, 31), "log2 of pages",
                Linux("2.2; kernels after 6.1 check the range") => page_cluster: u32 = 3;
            /// Range around a file fault in which cached pages are mapped as well; one page: off.
            FaultAroundBytes = "vm.fault_around_bytes", ControlForm::Debugfs, "bytes",
                Linux("3.15, in Linux a debugfs file")
                => fault_around_pages: u32 = page_size.pages_in(64 << 10) as u32,
                special FaultAroundBytes, words "65536";
            /// Largest file read-ahead.
            ReadAheadKb = "block.read_ahead_kb", sysfs(0, UINT_MAX), "kB",
                Linux("2.6, in Linux a file of each disk")
                => read_ahead_pages: u32 = page_size.pages_in(128 << 10) as u32,
                special ReadAheadKb, words "128";
            /// Share of dirty memory at which writers are throttled.
            DirtyRatio = "vm.dirty_ratio", within(0, 100), "per cent", Linux("2.6")
                => dirty_ratio: u32 = 20, special DirtyRatio;
            /// Share of dirty memory at which background writeback starts.
            DirtyBackgroundRatio = "vm.dirty_background_ratio", within(0, 100), "per cent", Linux("2.6")
                => dirty_background_ratio: u32 = 10, special DirtyBackgroundRatio;
            /// Dirty memory at which writers are throttled, instead of the ratio; at least two
            /// pages.
            DirtyBytes = "vm.dirty_bytes", ControlForm::Bytes { min_pages: 2 }, "bytes", Linux("2.6.29")
                => dirty_bytes: u64 = 0, special DirtyBytes, words "0 (the ratio counts)";
            /// Dirty memory at which background writeback starts, instead of the ratio.
            DirtyBackgroundBytes = "vm.dirty_background_bytes", within(1, ULONG_MAX), "bytes",
                Linux("2.6.29")
                => dirty_background_bytes: u64 = 0, special DirtyBackgroundBytes,
                words "0 (the ratio counts)";
            /// Time between two rounds of the flusher; 0 is off. A negative value acts as the large
            /// unsigned number with the same bits.
            DirtyWritebackCentisecs = "vm.dirty_writeback_centisecs", within(INT_MIN, INT_MAX), "1/100 s",
                Linux("2.6") => dirty_writeback_centisecs: u32 = 500, special DirtyWritebackCentisecs;
            /// Age at which a dirty page is written back.
            DirtyExpireCentisecs = "vm.dirty_expire_centisecs", from(0), "1/100 s", Linux("2.6")
                => dirty_expire_centisecs: u32 = 3000;
            /// Delays write-back to let a disk rest; 0 is off.
            LaptopMode = "vm.laptop_mode", within(-SECONDS_MAX, SECONDS_MAX), "s", Linux("2.6")
                => laptop_mode: i32 = 0;
            /// How hard unused inodes and dentries are reclaimed, relative to page cache; 0 is
            /// never.
            VfsCachePressure = "vm.vfs_cache_pressure", from(0), "per cent", Linux("2.6")
                => vfs_cache_pressure: u32 = 100;
            /// Parts of the multi-generational LRU that are on: 1 generations, 2 walks over page
            /// tables, 4 the used bit of upper tables. Without 1 the machine has the two lists.
            LruGenEnabled = "lru_gen.enabled", ControlForm::Bits { all: 7 }, "sum of bits", Linux("6.1")
                => lru_gen_enabled: u32 = 7, special LruGenEnabled, words "0x0007";
            /// Pages used so recently are not evicted; if there are no others, the OOM killer
            /// kills. 0 is off.
            LruGenMinTtlMs = "lru_gen.min_ttl_ms", sysfs(0, UINT_MAX), "ms", Linux("6.1")
                => lru_gen_min_ttl_ms: u32 = 0;
        }
        policies {
            /// How kswapd balances a node.
            Kswapd = "kswapd" => kswapd: KswapdPolicy = Linux61 {
                /// kswapd reclaims up to one goal per node, the sum of the high watermarks, and
                /// stops when any zone is balanced. It respects watermark boosts and counts its
                /// failures.
                Linux61 = 0, "linux-6.1", linux;
                /// Linux 4.5 and 4.6: each zone has LRU lists of its own, as in all kernels up to
                /// 4.7. kswapd and tasks reclaim zone by zone, kswapd at the requested order, up to
                /// the high watermark of each zone. Requests for single pages are spread over the
                /// zones. For orders above 0 a node is balanced when a quarter of
                /// its memory is. The block layer does not throttle writeback yet; that throttling
                /// came with 4.10.
                Linux45 = 2, "linux-4.5";
                /// Linux 3.2 and 3.3: kswapd brings every zone to its high watermark. A scan of a
                /// zone has no goal. Each time kswapd has freed 32 pages, it starts again at the
                /// first priority. Below priority 10 it writes dirty file pages, and naps while
                /// disks are congested. Writeback is not throttled.
                Linux33 = 3, "linux-3.3";
                /// Linux 2.6.37, the kernel that the tunable-watermarks patch changed: as
                /// linux-3.3, but kswapd scans a zone up to eight times its high watermark, writes
                /// dirty file pages at every priority, and does not count pages that soft limits
                /// gave. Only kswapd respects soft limits.
                Linux2637 = 1, "linux-2.6.37";
            }
            /// How an allocating task reclaims for itself.
            DirectReclaim = "direct_reclaim" => direct_reclaim: DirectReclaimPolicy = Linux61 {
                /// The task never writes file pages. It sleeps only if it is throttled because
                /// kswapd cannot keep up.
                Linux61 = 0, "linux-6.1", linux;
                /// Up to Linux 5.15: as linux-6.1, but the task does not sleep for a tick if it has
                /// freed next to nothing.
                Linux59 = 4, "linux-5.9";
                /// Linux 3.2 and 3.3: the task never writes file pages. Below priority 10 it naps
                /// if a disk is congested and it met pages of that disk while scanning.
                Linux33 = 3, "linux-3.3";
                /// As linux-3.3, but the task writes dirty file pages itself.
                Linux2637 = 1, "linux-2.6.37";
                /// As 2.6.37, but the task naps even if no disk is congested, and does not drain
                /// the per-CPU lists (it does since 2.6.36).
                Linux2635 = 2, "linux-2.6.35";
            }
            /// How pages age, and how page cache and anonymous memory share the pressure.
            Lru = "lru" => lru: LruPolicy = Linux61 {
                /// New anonymous pages start on the inactive list. Refaults of anonymous pages are
                /// tested like those of page cache: the refault distance decides whether the page
                /// is activated. The costs of reclaiming each kind decide the balance.
                Linux61 = 0, "linux-6.1", linux;
                /// Linux 5.8: as 6.1, but new anonymous pages start on the active list, one
                /// reference brings them back to it, and only refaults of page cache are tested.
                Linux58 = 4, "linux-5.8";
                /// Linux 4.12 to 5.7: as linux-5.8, but the numbers of scanned and rotated pages
                /// decide the balance, and each group's own lists decide whether its active pages
                /// are deactivated.
                Linux54 = 1, "linux-5.4";
                /// Linux 3.15 to 4.6: as linux-5.4, but a file's active pages are deactivated only
                /// while they are more than the inactive ones, and refaults do not change this.
                Linux45 = 5, "linux-4.5";
                /// Linux 3.3 to 3.14: as linux-4.5, but no refault is tested, cold page cache is
                /// not preferred, and a scan ends as soon as it has freed enough.
                Linux33 = 2, "linux-3.3";
                /// Up to 2.6.39: as linux-3.3, but pages that are too few for a batch of 32 are
                /// scanned later.
                Linux2637 = 6, "linux-2.6.37";
                /// Linux 6.12 (since 6.3): as 6.1, but references through mappings with random
                /// advice are ignored.
                Linux612 = 3, "linux-6.12";
                /// The multi-generational LRU (since Linux 6.1), unless lru_gen.enabled turns it
                /// off. Needs policy kswapd = linux-6.1.
                Mglru = 7, "mglru", linux;
            }
            /// How global reclaim respects soft limits (memory.soft_limit_in_bytes).
            SoftLimit = "soft_limit" => soft_limit: SoftLimitPolicy = Tree {
                /// Since Linux 2.6.31, cgroup version 1: a tree sorts the groups by their excess
                /// over the limit. Reclaim from these groups is a separate stage before the regular
                /// one.
                Tree = 1, "tree", linux;
                /// The patch of January 2012: a group over its soft limit, and every descendant of
                /// such a group, is scanned at priority 0. There is only the regular walk.
                Hierarchical = 2, "hierarchical";
                /// The rework of 2013: the first pass scans only groups over their limit. A second
                /// pass scans all groups if the first scanned nothing.
                TwoPass = 3, "two-pass";
                /// Soft limits have no effect.
                Off = 0, "off";
            }
            /// Whether a group that is reclaimed because of its own hard limit counts as over its
            /// soft limit.
            SoftLimitRoot = "soft_limit_root" => soft_limit_root: SoftLimitRoot = Excluded {
                /// It does not count, as agreed in review.
                Excluded = 0, "excluded", linux;
                /// It counts, as in the posted patch.
                Included = 1, "included";
            }
            /// How hard tasks in direct reclaim scan groups over their soft limits.
            SoftLimitDirect = "soft_limit_direct" => soft_limit_direct: SoftLimitDirect = Full {
                /// As hard as kswapd.
                Full = 0, "full", linux;
                /// Two priorities harder than other groups, at most.
                Bounded = 1, "bounded";
                /// As hard as other groups: only kswapd respects soft limits.
                Ignored = 2, "ignored";
            }
            /// How a soft limit applies on one node.
            SoftLimitNode = "soft_limit_node" => soft_limit_node: SoftLimitNode = Global {
                /// The whole limit is compared with the group's whole size.
                Global = 0, "global", linux;
                /// The node's share, soft limit x node's size / group's size, is compared with the
                /// group's size on the node. The patch's author described it this way.
                Local = 1, "local";
            }
            /// The effect of memory.global_shrink_priority.
            ShrinkPriority = "shrink_priority" => shrink_priority: ShrinkPriorityPolicy = Guarded {
                /// The patch of December 2019, but negative values are refused, and if reclaim
                /// frees nothing at any priority, it is repeated with the setting ignored.
                Guarded = 2, "guarded", linux;
                /// The patch as it was posted.
                Posted = 1, "posted";
                /// As guarded, but a group's value is the minimum on its path to the root.
                Hierarchical = 3, "hierarchical";
                /// No effect.
                Off = 0, "off";
            }
            /// How a reclaimer walks the groups.
            GroupWalk = "group_walk" => group_walk: GroupWalkPolicy = Whole {
                /// Linux 5.4 to 6.7: every reclaimer visits every group.
                Whole = 0, "whole", linux;
                /// Since 6.8: tasks in direct reclaim share a remembered position and stop when
                /// they have enough. kswapd visits every group.
                Shared = 1, "shared";
            }
            /// Which pages are read from swap with the page of a fault.
            SwapReadahead = "swap_readahead" => swap_readahead: SwapReadaheadPolicy = Linux61 {
                /// Since Linux 4.14: neighbours in the address space, as many as recent hits
                /// justify; with an area on a rotating disk as linux-4.5.
                Linux61 = 0, "linux-6.1", linux;
                /// Linux 3.14 to 4.13: neighbours in the swap area, as many as recent hits justify.
                Linux45 = 1, "linux-4.5";
                /// Up to Linux 3.13: the slots in use next to the page's, within an aligned cluster
                /// of 2^vm.page-cluster slots, at every fault.
                Linux33 = 2, "linux-3.3";
            }
            /// Events that count as a page fault.
            Faults = "faults" => faults: FaultPolicy = Linux61 {
                /// Every attempt. A fault that reads a page drops its lock and is retried, so it
                /// counts again.
                Linux61 = 0, "linux-6.1", linux;
                /// Linux 6.12 (since 6.4): each fault counts once, however often it is retried.
                Linux612 = 1, "linux-6.12";
                /// Up to 5.0: as linux-6.1, but a fault keeps its lock while it starts a read. It
                /// is retried only if it then has to wait for the page.
                Linux50 = 2, "linux-5.0";
            }
            /// How zswap, if the machine has it, writes pages back to disks.
            Zswap = "zswap" => zswap: ZswapPolicy = Linux61 {
                /// A store that finds the pool full has one page written. A page that is read
                /// stays in the pool, too, until its slot is freed.
                Linux61 = 0, "linux-6.1", linux;
                /// Linux 6.12 (since 6.8): each group has a list. A worker writes pages of all
                /// groups until the pool is below its threshold, but passes over an entry once. A
                /// group at `memory.zswap.max` has its own pages written. A page that is read
                /// leaves the pool.
                Linux612 = 1, "linux-6.12";
            }
            /// The release whose multi-generational LRU it is. For policy lru = mglru.
            MglruRules = "mglru" => mglru: MglruRules = Linux61 {
                /// Linux 6.1: kswapd ages all groups before a round. Eviction passes over pages
                /// that are dirty or being written.
                Linux61 = 0, "linux-6.1", linux;
                /// Linux 6.12: a reclaimer ages a group when it finds too few old pages in it, and
                /// then leaves it. kswapd begins at a priority that suits the shortage, and stops
                /// when all zones are above their high watermarks. Dirty pages wake the flusher.
                Linux612 = 1, "linux-6.12";
            }
            /// Whether eviction looks at the page-table entries around a used one
            /// (lru_gen_look_around). For policy lru = mglru.
            MglruLookAround = "mglru_look_around" => mglru_look_around: MglruLookAround = On {
                /// It does, and used pages among them become young.
                On = 0, "on", linux;
                /// It looks at the entries of the evicted page only.
                Off = 1, "off";
            }
            /// Whether ageing walks over page tables (walk_mm). For policy lru = mglru.
            MglruPageTableWalks = "mglru_page_table_walks"
                => mglru_page_table_walks: MglruPageTableWalks = On {
                /// It does, if lru_gen.enabled has bit 2.
                On = 0, "on", linux;
                /// A new generation begins without a walk.
                Off = 1, "off";
            }
            /// Which page tables a walk reads (test_bloom_filter). For policy lru = mglru.
            MglruBloomFilter = "mglru_bloom_filter" => mglru_bloom_filter: MglruBloomFilter = On {
                /// Tables in which the last walk or eviction found many used entries.
                On = 0, "on", linux;
                /// All.
                Off = 1, "off";
            }
            /// Whether refaults protect tiers of pages that read() and write() use often
            /// (get_tier_idx). For policy lru = mglru.
            MglruTiers = "mglru_tiers" => mglru_tiers: MglruTiers = On {
                /// They do.
                On = 0, "on", linux;
                /// Eviction takes every page of the oldest generation that is not in use.
                Off = 1, "off";
            }
            /// Whether global reclaim chooses groups by generation (shrink_many). For policy lru =
            /// mglru of Linux 6.12.
            MglruMemcgLru = "mglru_memcg_lru" => mglru_memcg_lru: MglruMemcgLru = On {
                /// It does; the list begins with the groups that have waited longest.
                On = 0, "on", linux;
                /// It walks over the tree, as in Linux 6.1.
                Off = 1, "off";
            }
            /// How zsmalloc, the pool of zram and zswap, places objects.
            Zsmalloc = "zsmalloc" => zsmalloc: ZsmallocPolicy = Linux61 {
                /// A zspage has up to 4 pages, and lists tell zspages apart that are more than three
                /// quarters full.
                Linux61 = 0, "linux-6.1", linux;
                /// Linux 6.12 (since 6.3): a zspage has up to 8 pages (`CONFIG_ZSMALLOC_CHAIN_SIZE`
                /// of Debian), and there is a list for each tenth of fullness.
                Linux612 = 1, "linux-6.12";
            }
            /// Where pages of zeroes go that are swapped out, on a machine with zram or zswap.
            ZeroPages = "zero_pages" => zero_pages: ZeroPagesPolicy = Linux61 {
                /// Into zram or zswap, which store pages of one word without memory.
                Linux61 = 0, "linux-6.1", linux;
                /// Linux 6.12: a bitmap of the area records them. zswap compresses pages of another
                /// word like any other.
                Linux612 = 1, "linux-6.12";
            }
            /// Which of its runnable tasks a CPU runs. Read when the machine starts.
            Scheduler = "scheduler" => scheduler: SchedulerPolicy = Linux61 {
                /// The Completely Fair Scheduler (2.6.38 to 6.5): a woken task preempts the running
                /// one if it has had less CPU time by 1 ms, times a factor for the number of CPUs.
                Linux61 = 0, "linux-6.1", linux;
                /// EEVDF (since Linux 6.6): a running task keeps the CPU until it has had its slice
                /// of 0.7 ms, times that factor. Only ticks and wake-ups check this.
                Linux612 = 1, "linux-6.12";
            }
            /// Version of the cgroup interface, which changes a few decisions of reclaim.
            Cgroup = "cgroup", implied => cgroup: CgroupVersion = V2 {
                /// Groups have limits of dirty pages, and reclaim for a group does not wait for
                /// writeback. A swap slot counts while in use.
                V2 = 1, "v2", linux;
                /// Only the machine has limits of dirty pages, and reclaim for a group waits for
                /// writeback. A swap slot counts while its page is not in memory, and
                /// `memory.swap.max` limits nothing.
                V1 = 0, "v1", linux;
            }
        }
    }

    // Compaction and huge pages.
    theme {
        sysctls {
            /// Up to this fragmentation index, a failed allocation counts as lack of memory and
            /// does not compact.
            ExtfragThreshold = "vm.extfrag_threshold", within(0, 1000), "1/1000", Linux("2.6.35")
                => extfrag_threshold: u32 = 500;
            /// Whether compaction moves unevictable pages.
            CompactUnevictableAllowed = "vm.compact_unevictable_allowed", within(0, 1), "", Linux("4.2")
                => compact_unevictable_allowed: bool = true, words "1";
            /// How eagerly kcompactd compacts without a request; 0 is never.
            CompactionProactiveness = "vm.compaction_proactiveness", within(0, 100), "", Linux("5.9")
                => compaction_proactiveness: u32 = 20, special CompactionProactiveness;
            /// Whether requests reclaim and compact rather than mix migrate types in a pageblock.
            DefragMode = "vm.defrag_mode", within(0, 1), "", Linux("6.15")
                => defrag_mode: bool = false, special DefragMode, words "0";
        }
        policies {
            /// Which daemon makes blocks of high order in the background.
            BackgroundCompaction = "background_compaction"
                => background_compaction: BackgroundCompaction = KcompactdEarly {
                /// kcompactd. It is woken before kswapd's short sleep, so that frequent requests
                /// cannot delay its wake-up for ever (since 4.6).
                KcompactdEarly = 3, "kcompactd-early", linux;
                /// kcompactd, woken when kswapd goes to full sleep: the patch of March 2016.
                Kcompactd = 2, "kcompactd";
                /// kswapd itself, in its rounds, as in Linux 4.5 and earlier. Needs policy kswapd =
                /// linux-4.5 or linux-6.1; with linux-6.1 it follows Pagetide's own patch (0004 in
                /// kernels/linux-6.1).
                Kswapd = 1, "kswapd";
                /// None.
                Off = 0, "off";
            }
            /// When compaction is worthwhile, how it scans, and when an allocation uses it.
            Compaction = "compaction" => compaction: CompactionPolicy = Linux61 {
                /// Linux 6.1.
                Linux61 = 0, "linux-6.1", linux;
                /// Linux 5.1 to 5.8: as 6.1, but kcompactd compacts on request only.
                Linux58 = 2, "linux-5.8";
                /// Linux 4.5: compaction is asynchronous before every reclaim and synchronous after
                /// it. It is successful only if the low watermark is met as well. Nor does
                /// kcompactd compact without a request.
                Linux45 = 1, "linux-4.5";
            }
            /// Whether a compacting task captures the block it has made before the block is free.
            CompactionCapture = "compaction_capture" => compaction_capture: CompactionCapture = On {
                /// It captures the block (since Linux 5.1).
                On = 0, "on", linux;
                /// It competes for the block with other tasks.
                Off = 1, "off";
            }
            /// When anonymous memory gets huge pages (transparent_hugepage/enabled).
            Thp = "thp" => thp: Thp = Never {
                /// Wherever possible.
                Always = 0, "always", linux;
                /// Where madvise asked for it (advice = huge).
                Madvise = 1, "madvise", linux;
                /// Nowhere. Linux has no default of its own; distributions choose always or
                /// madvise.
                Never = 2, "never", linux;
            }
            /// Action of a fault if no huge page is free (transparent_hugepage/defrag).
            ThpDefrag = "thp_defrag" => thp_defrag: ThpDefrag = Madvise {
                /// Reclaims and compacts, once.
                Always = 0, "always", linux;
                /// Wakes the daemons.
                Defer = 1, "defer", linux;
                /// Reclaims and compacts where madvise asked for it, wakes the daemons elsewhere.
                DeferMadvise = 2, "defer+madvise", linux;
                /// Reclaims and compacts where madvise asked for it, does nothing elsewhere.
                Madvise = 3, "madvise", linux;
                /// Does nothing.
                Never = 4, "never", linux;
            }
        }
    }

    // khugepaged, and kernel memory.
    theme {
        sysctls {
            /// Whether khugepaged reclaims and compacts.
            KhugepagedDefrag = "transparent_hugepage.khugepaged.defrag", sysfs(0, 1), "", Linux("2.6.38")
                => khugepaged_defrag: bool = true, words "1";
            /// Pages that khugepaged scans in a round.
            KhugepagedPagesToScan = "transparent_hugepage.khugepaged.pages_to_scan", sysfs(1, UINT_MAX),
                "pages", Linux("2.6.38") => khugepaged_pages_to_scan: u32 = 4096;
            /// Time between two rounds.
            KhugepagedScanSleepMillisecs = "transparent_hugepage.khugepaged.scan_sleep_millisecs",
                sysfs(0, UINT_MAX), "ms", Linux("2.6.38") => khugepaged_scan_sleep_millisecs: u32 = 10000;
            /// How long khugepaged waits after it found no huge page.
            KhugepagedAllocSleepMillisecs = "transparent_hugepage.khugepaged.alloc_sleep_millisecs",
                sysfs(0, UINT_MAX), "ms", Linux("2.6.38") => khugepaged_alloc_sleep_millisecs: u32 = 60000;
            /// Number of the 512 pages that may be missing when khugepaged makes a huge page.
            KhugepagedMaxPtesNone = "transparent_hugepage.khugepaged.max_ptes_none", sysfs(0, MAX_PTES),
                "pages", Linux("2.6.38") => khugepaged_max_ptes_none: u32 = 511;
            /// Number of the 512 pages that may be in swap.
            KhugepagedMaxPtesSwap = "transparent_hugepage.khugepaged.max_ptes_swap", sysfs(0, MAX_PTES),
                "pages", Linux("4.8") => khugepaged_max_ptes_swap: u32 = 64;
        }
        policies {
            /// Whether groups pay for kernel memory (boot option cgroup.memory=nokmem).
            KmemAccounting = "kmem_accounting", boot, implied => kmem_accounting: KmemAccounting = On {
                /// They pay.
                On = 1, "on", linux;
                /// They do not pay.
                Off = 0, "off", linux;
            }
            /// Share of a parent's protection that children get (mount option memory_recursiveprot).
            MemoryProtection = "memory_protection", boot, implied => memory_protection: MemoryProtection = OwnOnly {
                /// The part that they claim themselves.
                OwnOnly = 0, "own", linux;
                /// The part that they claim, and a share of the unclaimed rest.
                Recursive = 1, "recursive", linux;
            }
            /// Which group pays for small kernel objects.
            SlabAccounting = "slab_accounting", boot => slab_accounting: SlabAccounting = PerObject {
                /// Groups share the caches, and every object has an owner: the patch series of 2020
                /// (since Linux 5.9).
                PerObject = 3, "per-object", linux;
                /// Each group has clones of the caches and pays for their whole pages; the clones
                /// keep a removed group alive until their last object is freed (Linux 3.8 to 5.2).
                PerGroupCaches = 1, "per-group-caches";
                /// The same, but the parent takes over the clones of a removed group (5.3 to 5.8).
                PerGroupCachesReparent = 2, "per-group-caches-reparent";
                /// No group pays (before Linux 3.8).
                Off = 0, "off";
            }
            /// Which slab of a cache is used next.
            Slub = "slub", boot => slub: SlubPolicy = Linux61 {
                /// The CPU's own slab, then its chain of partial slabs (limited by number of
                /// slabs), then the node's queue.
                Linux61 = 0, "linux-6.1", linux;
                /// As linux-6.1, but the chain is limited by free objects, counted when a slab is
                /// added (up to 5.15).
                Linux55 = 1, "linux-5.5";
            }
        }
    }
}

impl Thp {
    /// Whether khugepaged runs: some memory may get huge pages (Linux `hugepage_flags_enabled`).
    pub const fn is_on(self) -> bool {
        match self {
            Thp::Always | Thp::Madvise => true,
            Thp::Never => false,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Config::of_pages(PageSize::default())
    }
}
