//! Every counter of /proc/vmstat, under the kernel's name.
//!
//! Linux: mm/vmstat.c. There are three tables: [`Event`] counts events, [`NodeStat`] has the levels
//! of a node, and zones keep `nr_free_pages` themselves. A counter is `Name = "kernel's name",
//! words;`. The words are the [`MetricDirection`], unless it is `Neither`, and `group`: memory groups
//! count it, too. Linux keeps per-CPU deltas and adds them later; here counters are exact at all
//! times, as after a write to /proc/sys/vm/stat_refresh.
//!
//! Invariant: the events of groups are in the order of the kernel's memory.stat.

use crate::units::digest::State;
use crate::units::MAX_NR_ZONES;

/// Which change of a counter or of another metric is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricDirection {
    /// Less is better: times, waiting, pages that had to be read again, kills.
    Less,
    /// More is better: work done, hot pages kept in memory.
    More,
    /// Less is cheaper, but not a goal: scans, wakes, reads and writes, CPU time.
    Work,
    /// Neither: levels of memory, activity of programs, and what is good or bad only in comparison,
    /// such as huge pages, which cost memory.
    Neither,
}

/// The direction of a counter, and whether groups count it, from the words of its declaration.
macro_rules! words {
    (group:) => { false };
    (group: group $($rest:ident)*) => { true };
    (group: $other:ident $($rest:ident)*) => { words!(group: $($rest)*) };
    (better:) => { MetricDirection::Neither };
    (better: group) => { MetricDirection::Neither };
    (better: $better:ident $($rest:ident)*) => { MetricDirection::$better };
}

macro_rules! counters {
    ($(#[$emeta:meta])* $enum:ident {
        $(#[doc = $about:literal] $name:ident = $text:literal $(, $word:ident)*;)*
    }) => {
        $(#[$emeta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum $enum { $(#[doc = $about] $name,)* }

        impl $enum {
            /// Number of counters.
            pub const COUNT: usize = [$($text),*].len();
            /// All counters in the order of the enum.
            pub const ALL: [$enum; $enum::COUNT] = [$($enum::$name),*];

            /// The kernel's name.
            pub const fn name(self) -> &'static str {
                match self { $($enum::$name => $text,)* }
            }

            /// Its documentation, one sentence.
            pub const fn about(self) -> &'static str {
                match self { $($enum::$name => $about.trim_ascii(),)* }
            }

            /// Whether less or more is better.
            pub const fn better(self) -> MetricDirection {
                match self { $($enum::$name => words!(better: $($word)*),)* }
            }

            /// Whether groups count it, too.
            pub const fn is_of_groups(self) -> bool {
                match self { $($enum::$name => words!(group: $($word)*),)* }
            }
        }
    };
}

counters! {
    /// Events counted since boot.
    Event {
        /// Kilobytes read from disks.
        Pgpgin = "pgpgin", Work;
        /// Kilobytes written to disks.
        Pgpgout = "pgpgout", Work;
        /// Pages read from swap.
        Pswpin = "pswpin", Work;
        /// Pages written to swap.
        Pswpout = "pswpout", Work;
        /// Pages allocated from zone DMA.
        PgallocDma = "pgalloc_dma";
        /// Pages allocated from zone DMA32.
        PgallocDma32 = "pgalloc_dma32";
        /// Pages allocated from zone Normal.
        PgallocNormal = "pgalloc_normal";
        /// Pages allocated from zone Movable.
        PgallocMovable = "pgalloc_movable";
        /// Direct reclaims for requests limited to zone DMA.
        AllocstallDma = "allocstall_dma", Less;
        /// Direct reclaims for requests limited to zone DMA32.
        AllocstallDma32 = "allocstall_dma32", Less;
        /// Direct reclaims for requests limited to zone Normal.
        AllocstallNormal = "allocstall_normal", Less;
        /// Direct reclaims for requests that may use zone Movable.
        AllocstallMovable = "allocstall_movable", Less;
        /// Pages passed over in zone DMA because reclaim wanted lower zones.
        PgskipDma = "pgskip_dma";
        /// Pages passed over in zone DMA32.
        PgskipDma32 = "pgskip_dma32";
        /// Pages passed over in zone Normal.
        PgskipNormal = "pgskip_normal";
        /// Pages passed over in zone Movable.
        PgskipMovable = "pgskip_movable";
        /// Pages freed.
        Pgfree = "pgfree";
        /// Evicted anonymous pages that came back.
        WorkingsetRefaultAnon = "workingset_refault_anon", Less, group;
        /// Evicted file pages that came back.
        WorkingsetRefaultFile = "workingset_refault_file", Less, group;
        /// Refaulted anonymous pages put straight on the active list.
        WorkingsetActivateAnon = "workingset_activate_anon", group;
        /// Refaulted file pages put straight on the active list.
        WorkingsetActivateFile = "workingset_activate_file", group;
        /// Refaulted anonymous pages that had been in the working set.
        WorkingsetRestoreAnon = "workingset_restore_anon", Less, group;
        /// Refaulted file pages that had been in the working set.
        WorkingsetRestoreFile = "workingset_restore_file", Less, group;
        /// Nodes of the page cache that a shrinker freed with their shadows.
        WorkingsetNodereclaim = "workingset_nodereclaim", Work, group;
        /// Inactive pages looked at by kswapd.
        PgscanKswapd = "pgscan_kswapd", Work, group;
        /// Inactive pages looked at by allocating tasks.
        PgscanDirect = "pgscan_direct", Work, group;
        /// Pages reclaimed by kswapd.
        PgstealKswapd = "pgsteal_kswapd", Work, group;
        /// Pages reclaimed by allocating tasks.
        PgstealDirect = "pgsteal_direct", Work, group;
        /// Page faults, retries after dropping the lock included.
        Pgfault = "pgfault", Work, group;
        /// Faults that had to read.
        Pgmajfault = "pgmajfault", Less, group;
        /// Active pages looked at.
        Pgrefill = "pgrefill", Work, group;
        /// Pages moved to an active list.
        Pgactivate = "pgactivate", group;
        /// Pages moved from an active to an inactive list.
        Pgdeactivate = "pgdeactivate", group;
        /// Pages read from zswap.
        Zswpin = "zswpin", Work, group;
        /// Pages stored in zswap.
        Zswpout = "zswpout", Work, group;
        /// Pages of zswap written to the disks of their slots (since 6.8).
        Zswpwb = "zswpwb", Work, group;
        /// Huge pages given to faults.
        ThpFaultAlloc = "thp_fault_alloc", group;
        /// Huge pages made of small ones, by khugepaged or by a task (MADV_COLLAPSE).
        ThpCollapseAlloc = "thp_collapse_alloc", group;
        /// Tasks throttled because reserves ran low.
        PgscanDirectThrottle = "pgscan_direct_throttle", Less;
        /// Anonymous pages looked at.
        PgscanAnon = "pgscan_anon", Work;
        /// File pages looked at.
        PgscanFile = "pgscan_file", Work;
        /// Anonymous pages reclaimed.
        PgstealAnon = "pgsteal_anon", Work;
        /// File pages reclaimed.
        PgstealFile = "pgsteal_file", Work;
        /// Objects that shrinkers looked at.
        SlabsScanned = "slabs_scanned", Work;
        /// kswapd was woken again within its short nap.
        KswapdLowWmarkHitQuickly = "kswapd_low_wmark_hit_quickly", Work;
        /// The node was out of balance again after the short nap.
        KswapdHighWmarkHitQuickly = "kswapd_high_wmark_hit_quickly", Work;
        /// Times kswapd started balancing.
        Pageoutrun = "pageoutrun", Work;
        /// Pages moved to the tail when their write ended.
        Pgrotated = "pgrotated";
        /// Writes to `vm.drop_caches` that dropped page cache.
        DropPagecache = "drop_pagecache";
        /// Writes to `vm.drop_caches` that dropped slab objects.
        DropSlab = "drop_slab";
        /// Tasks killed because memory ran out.
        OomKill = "oom_kill", Less;
        /// Pages moved to another frame.
        PgmigrateSuccess = "pgmigrate_success", Work;
        /// Pages that could not be moved, or whose copy failed.
        PgmigrateFail = "pgmigrate_fail", Work;
        /// Huge pages moved to another frame.
        ThpMigrationSuccess = "thp_migration_success", Work;
        /// Pages that compaction scanned for pages to move.
        CompactMigrateScanned = "compact_migrate_scanned", Work;
        /// Pages that compaction scanned for free targets.
        CompactFreeScanned = "compact_free_scanned", Work;
        /// Pages that compaction isolated, to move or as targets.
        CompactIsolated = "compact_isolated", Work;
        /// Allocations that compacted for themselves.
        CompactStall = "compact_stall", Less;
        /// Such allocations that got no block.
        CompactFail = "compact_fail", Work;
        /// Such allocations that got their block.
        CompactSuccess = "compact_success";
        /// Times kcompactd went to work for a request; proactive work is not counted.
        CompactDaemonWake = "compact_daemon_wake", Work;
        /// The part of `compact_migrate_scanned` by kcompactd.
        CompactDaemonMigrateScanned = "compact_daemon_migrate_scanned", Work;
        /// The part of `compact_free_scanned` by kcompactd.
        CompactDaemonFreeScanned = "compact_daemon_free_scanned", Work;
        /// Faults that wanted a huge page and got a small one.
        ThpFaultFallback = "thp_fault_fallback";
        /// Such fallbacks because of a group's limit.
        ThpFaultFallbackCharge = "thp_fault_fallback_charge";
        /// Times that no huge page was free for a collapse.
        ThpCollapseAllocFailed = "thp_collapse_alloc_failed";
        /// Huge pages split into small ones.
        ThpSplitPage = "thp_split_page";
        /// Huge mappings split into entries of small pages.
        ThpSplitPmd = "thp_split_pmd";
        /// Regions that khugepaged skipped because too many pages were missing.
        ThpScanExceedNonePte = "thp_scan_exceed_none_pte";
        /// Regions that khugepaged skipped because too many pages were in swap.
        ThpScanExceedSwapPte = "thp_scan_exceed_swap_pte";
        /// Huge pages written to swap in one piece.
        ThpSwpout = "thp_swpout", Work;
        /// Huge pages that reclaim split because swap had no contiguous space.
        ThpSwpoutFallback = "thp_swpout_fallback";
        /// Pages of a swap read-ahead that were then used.
        SwapRaHit = "swap_ra_hit";
        /// Pages read ahead from swap.
        SwapRa = "swap_ra";
        /// Dirty file pages that reclaim marked for reclaim after their write.
        NrVmscanImmediateReclaim = "nr_vmscan_immediate_reclaim", Work;
        /// Pages that reclaim wrote.
        NrVmscanWrite = "nr_vmscan_write", Work;
        /// Pages made dirty.
        NrDirtied = "nr_dirtied";
        /// Pages written back.
        NrWritten = "nr_written", Work;
        /// kswapd began to balance (tracepoint).
        MmVmscanKswapdWake = "mm_vmscan_kswapd_wake", Work;
        /// kswapd went to full sleep (tracepoint).
        MmVmscanKswapdSleep = "mm_vmscan_kswapd_sleep", Work;
        /// An allocation woke kswapd (tracepoint).
        MmVmscanWakeupKswapd = "mm_vmscan_wakeup_kswapd", Work;
        /// Direct reclaim began (tracepoint).
        MmVmscanDirectReclaimBegin = "mm_vmscan_direct_reclaim_begin", Less;
        /// Tasks put to sleep by reclaim (tracepoint).
        MmVmscanThrottled = "mm_vmscan_throttled", Less;
        /// Compactions by kswapd itself, before kcompactd existed (Pagetide's).
        CompactKswapd = "compact_kswapd", Work;
        /// Free block of a foreign migrate type taken (tracepoint).
        MmPageAllocExtfrag = "mm_page_alloc_extfrag", Work;
        /// Pins of user pages taken.
        NrFollPinAcquired = "nr_foll_pin_acquired";
        /// Pins of user pages given back.
        NrFollPinReleased = "nr_foll_pin_released";
        /// Pages put on the unevictable list.
        UnevictablePgsCulled = "unevictable_pgs_culled";
        /// Pages taken off the unevictable list because they are evictable again.
        UnevictablePgsRescued = "unevictable_pgs_rescued";
        /// Pages locked.
        UnevictablePgsMlocked = "unevictable_pgs_mlocked";
        /// Pages unlocked.
        UnevictablePgsMunlocked = "unevictable_pgs_munlocked";
        /// Pages freed while they were locked.
        UnevictablePgsCleared = "unevictable_pgs_cleared";
        /// Pages unlocked while they were isolated.
        UnevictablePgsStranded = "unevictable_pgs_stranded";
    }
}

counters! {
    /// Levels of a node, or of one group on a node, in pages.
    NodeStat {
        /// Inactive anonymous list.
        NrInactiveAnon = "nr_inactive_anon";
        /// Active anonymous list.
        NrActiveAnon = "nr_active_anon";
        /// Inactive file list.
        NrInactiveFile = "nr_inactive_file";
        /// Active file list.
        NrActiveFile = "nr_active_file";
        /// Unevictable list.
        NrUnevictable = "nr_unevictable";
        /// Anonymous pages taken off their list by reclaim.
        NrIsolatedAnon = "nr_isolated_anon";
        /// File pages taken off their list by reclaim.
        NrIsolatedFile = "nr_isolated_file";
        /// Mapped anonymous pages.
        NrAnonPages = "nr_anon_pages";
        /// Mapped file pages.
        NrMapped = "nr_mapped";
        /// Page-cache pages, swap cache included.
        NrFilePages = "nr_file_pages";
        /// Dirty file pages.
        NrDirty = "nr_dirty";
        /// Pages being written.
        NrWriteback = "nr_writeback";
        /// Swap-cache pages.
        NrSwapcached = "nr_swapcached";
        /// Pages of slabs that a shrinker can free.
        NrSlabReclaimable = "nr_slab_reclaimable";
        /// Pages of other slabs.
        NrSlabUnreclaimable = "nr_slab_unreclaimable";
        /// Pages of page tables.
        NrPageTablePages = "nr_page_table_pages";
        /// Huge pages of anonymous memory that are mapped, in huge pages.
        NrAnonTransparentHugepages = "nr_anon_transparent_hugepages";
    }
}

/// A table of counters, indexed by its enum.
#[derive(Clone, Debug, PartialEq, Eq, State)]
pub struct Vmstat {
    events: [u64; Event::COUNT],
}

impl Default for Vmstat {
    fn default() -> Self {
        Self::new()
    }
}

impl Vmstat {
    /// All zero.
    pub const fn new() -> Vmstat {
        Vmstat { events: [0; Event::COUNT] }
    }

    /// Counts one event.
    #[inline]
    pub fn count(&mut self, event: Event) {
        self.events[event as usize] += 1;
    }

    /// Counts `n` events.
    #[inline]
    pub fn add(&mut self, event: Event, n: u64) {
        self.events[event as usize] += n;
    }

    /// Value of a counter.
    #[inline]
    pub fn get(&self, event: Event) -> u64 {
        self.events[event as usize]
    }

    /// Direct reclaims over all zones (mmtests prints the sum as `allocstall`).
    pub fn allocstall(&self) -> u64 {
        self.get(Event::AllocstallDma)
            + self.get(Event::AllocstallDma32)
            + self.get(Event::AllocstallNormal)
            + self.get(Event::AllocstallMovable)
    }
}

impl Event {
    /// Counters of pages that reclaim skipped because their zone is too high, by zone.
    pub(crate) const SKIPPED_IN_ZONE: [Event; MAX_NR_ZONES] =
        [Event::PgskipDma, Event::PgskipDma32, Event::PgskipNormal, Event::PgskipMovable];
}
