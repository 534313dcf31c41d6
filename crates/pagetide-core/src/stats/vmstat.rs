//! Every counter of /proc/vmstat, under the kernel's name.
//!
//! Linux: mm/vmstat.c. There are three tables: [`Event`] counts events, [`NodeStat`] has the levels
//! of a node, and zones keep `nr_free_pages` themselves. One macro keeps the enum, the names and
//! the meanings (`pagetide metrics`) together. Linux keeps per-CPU deltas and adds them later; here
//! counters are exact at all times, as after a write to /proc/sys/vm/stat_refresh.

use crate::units::digest::State;

macro_rules! counters {
    ($(#[$emeta:meta])* $enum:ident { $(#[doc = $about:literal] $name:ident = $text:literal,)* }) => {
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
                const NAMES: [&str; $enum::COUNT] = [$($text),*];
                NAMES[self as usize]
            }

            /// Its documentation, one sentence.
            pub const fn about(self) -> &'static str {
                const ABOUT: [&str; $enum::COUNT] = [$($about),*];
                ABOUT[self as usize].trim_ascii()
            }
        }
    };
}

counters! {
    /// Events counted since boot.
    Event {
        /// Kilobytes read from disks.
        Pgpgin = "pgpgin",
        /// Kilobytes written to disks.
        Pgpgout = "pgpgout",
        /// Pages read from swap.
        Pswpin = "pswpin",
        /// Pages written to swap.
        Pswpout = "pswpout",
        /// Pages allocated from zone DMA.
        PgallocDma = "pgalloc_dma",
        /// Pages allocated from zone DMA32.
        PgallocDma32 = "pgalloc_dma32",
        /// Pages allocated from zone Normal.
        PgallocNormal = "pgalloc_normal",
        /// Pages allocated from zone Movable.
        PgallocMovable = "pgalloc_movable",
        /// Direct reclaims for requests limited to zone DMA.
        AllocstallDma = "allocstall_dma",
        /// Direct reclaims for requests limited to zone DMA32.
        AllocstallDma32 = "allocstall_dma32",
        /// Direct reclaims for requests limited to zone Normal.
        AllocstallNormal = "allocstall_normal",
        /// Direct reclaims for requests that may use zone Movable.
        AllocstallMovable = "allocstall_movable",
        /// Pages passed over in zone DMA because reclaim wanted lower zones.
        PgskipDma = "pgskip_dma",
        /// Pages passed over in zone DMA32.
        PgskipDma32 = "pgskip_dma32",
        /// Pages passed over in zone Normal.
        PgskipNormal = "pgskip_normal",
        /// Pages passed over in zone Movable.
        PgskipMovable = "pgskip_movable",
        /// Pages freed.
        Pgfree = "pgfree",
        /// Pages moved to an active list.
        Pgactivate = "pgactivate",
        /// Pages moved from an active to an inactive list.
        Pgdeactivate = "pgdeactivate",
        /// Page faults, retries after dropping the lock included.
        Pgfault = "pgfault",
        /// Faults that had to read.
        Pgmajfault = "pgmajfault",
        /// Active pages looked at.
        Pgrefill = "pgrefill",
        /// Pages reclaimed by kswapd.
        PgstealKswapd = "pgsteal_kswapd",
        /// Pages reclaimed by allocating tasks.
        PgstealDirect = "pgsteal_direct",
        /// Inactive pages looked at by kswapd.
        PgscanKswapd = "pgscan_kswapd",
        /// Inactive pages looked at by allocating tasks.
        PgscanDirect = "pgscan_direct",
        /// Tasks throttled because reserves ran low.
        PgscanDirectThrottle = "pgscan_direct_throttle",
        /// Anonymous pages looked at.
        PgscanAnon = "pgscan_anon",
        /// File pages looked at.
        PgscanFile = "pgscan_file",
        /// Anonymous pages reclaimed.
        PgstealAnon = "pgsteal_anon",
        /// File pages reclaimed.
        PgstealFile = "pgsteal_file",
        /// Objects that shrinkers looked at.
        SlabsScanned = "slabs_scanned",
        /// kswapd was woken again within its short nap.
        KswapdLowWmarkHitQuickly = "kswapd_low_wmark_hit_quickly",
        /// The node was out of balance again after the short nap.
        KswapdHighWmarkHitQuickly = "kswapd_high_wmark_hit_quickly",
        /// Times kswapd started balancing.
        Pageoutrun = "pageoutrun",
        /// Pages moved to the tail when their write ended.
        Pgrotated = "pgrotated",
        /// Writes to `vm.drop_caches` that dropped page cache.
        DropPagecache = "drop_pagecache",
        /// Writes to `vm.drop_caches` that dropped slab objects.
        DropSlab = "drop_slab",
        /// Tasks killed because memory ran out.
        OomKill = "oom_kill",
        /// Pages moved to another frame.
        PgmigrateSuccess = "pgmigrate_success",
        /// Pages that could not be moved, or whose copy failed.
        PgmigrateFail = "pgmigrate_fail",
        /// Huge pages moved to another frame.
        ThpMigrationSuccess = "thp_migration_success",
        /// Pages that compaction scanned for pages to move.
        CompactMigrateScanned = "compact_migrate_scanned",
        /// Pages that compaction scanned for free targets.
        CompactFreeScanned = "compact_free_scanned",
        /// Pages that compaction isolated, to move or as targets.
        CompactIsolated = "compact_isolated",
        /// Allocations that compacted for themselves.
        CompactStall = "compact_stall",
        /// Such allocations that got no block.
        CompactFail = "compact_fail",
        /// Such allocations that got their block.
        CompactSuccess = "compact_success",
        /// Times kcompactd went to work for a request; proactive work is not counted.
        CompactDaemonWake = "compact_daemon_wake",
        /// The part of `compact_migrate_scanned` by kcompactd.
        CompactDaemonMigrateScanned = "compact_daemon_migrate_scanned",
        /// The part of `compact_free_scanned` by kcompactd.
        CompactDaemonFreeScanned = "compact_daemon_free_scanned",
        /// Huge pages given to faults.
        ThpFaultAlloc = "thp_fault_alloc",
        /// Faults that wanted a huge page and got a small one.
        ThpFaultFallback = "thp_fault_fallback",
        /// Such fallbacks because of a group's limit.
        ThpFaultFallbackCharge = "thp_fault_fallback_charge",
        /// Huge pages made of small ones, by khugepaged or by a task (MADV_COLLAPSE).
        ThpCollapseAlloc = "thp_collapse_alloc",
        /// Times that no huge page was free for a collapse.
        ThpCollapseAllocFailed = "thp_collapse_alloc_failed",
        /// Huge pages split into small ones.
        ThpSplitPage = "thp_split_page",
        /// Huge mappings split into entries of small pages.
        ThpSplitPmd = "thp_split_pmd",
        /// Regions that khugepaged skipped because too many pages were missing.
        ThpScanExceedNonePte = "thp_scan_exceed_none_pte",
        /// Regions that khugepaged skipped because too many pages were in swap.
        ThpScanExceedSwapPte = "thp_scan_exceed_swap_pte",
        /// Huge pages written to swap in one piece.
        ThpSwpout = "thp_swpout",
        /// Huge pages that reclaim split because swap had no contiguous space.
        ThpSwpoutFallback = "thp_swpout_fallback",
        /// Pages of a swap read-ahead that were then used.
        SwapRaHit = "swap_ra_hit",
        /// Pages read ahead from swap.
        SwapRa = "swap_ra",
        /// Dirty file pages that reclaim marked for reclaim after their write.
        NrVmscanImmediateReclaim = "nr_vmscan_immediate_reclaim",
        /// Pages that reclaim wrote.
        NrVmscanWrite = "nr_vmscan_write",
        /// Pages made dirty.
        NrDirtied = "nr_dirtied",
        /// Pages written back.
        NrWritten = "nr_written",
        /// Evicted anonymous pages that came back.
        WorkingsetRefaultAnon = "workingset_refault_anon",
        /// Evicted file pages that came back.
        WorkingsetRefaultFile = "workingset_refault_file",
        /// Refaulted anonymous pages put straight on the active list.
        WorkingsetActivateAnon = "workingset_activate_anon",
        /// Refaulted file pages put straight on the active list.
        WorkingsetActivateFile = "workingset_activate_file",
        /// Refaulted anonymous pages that had been in the working set.
        WorkingsetRestoreAnon = "workingset_restore_anon",
        /// Refaulted file pages that had been in the working set.
        WorkingsetRestoreFile = "workingset_restore_file",
        /// Nodes of the page cache that a shrinker freed with their shadows.
        WorkingsetNodereclaim = "workingset_nodereclaim",
        /// kswapd began to balance (tracepoint).
        MmVmscanKswapdWake = "mm_vmscan_kswapd_wake",
        /// kswapd went to full sleep (tracepoint).
        MmVmscanKswapdSleep = "mm_vmscan_kswapd_sleep",
        /// An allocation woke kswapd (tracepoint).
        MmVmscanWakeupKswapd = "mm_vmscan_wakeup_kswapd",
        /// Direct reclaim began (tracepoint).
        MmVmscanDirectReclaimBegin = "mm_vmscan_direct_reclaim_begin",
        /// Tasks put to sleep by reclaim (tracepoint).
        MmVmscanThrottled = "mm_vmscan_throttled",
        /// Compactions by kswapd itself, before kcompactd existed (Pagetide's).
        CompactKswapd = "compact_kswapd",
        /// Free block of a foreign migrate type taken (tracepoint).
        MmPageAllocExtfrag = "mm_page_alloc_extfrag",
        /// Pins of user pages taken.
        NrFollPinAcquired = "nr_foll_pin_acquired",
        /// Pins of user pages given back.
        NrFollPinReleased = "nr_foll_pin_released",
        /// Pages put on the unevictable list.
        UnevictablePgsCulled = "unevictable_pgs_culled",
        /// Pages taken off the unevictable list because they are evictable again.
        UnevictablePgsRescued = "unevictable_pgs_rescued",
        /// Pages locked.
        UnevictablePgsMlocked = "unevictable_pgs_mlocked",
        /// Pages unlocked.
        UnevictablePgsMunlocked = "unevictable_pgs_munlocked",
        /// Pages freed while they were locked.
        UnevictablePgsCleared = "unevictable_pgs_cleared",
        /// Pages unlocked while they were isolated.
        UnevictablePgsStranded = "unevictable_pgs_stranded",
    }
}

counters! {
    /// Levels of a node, or of one group on a node, in pages.
    NodeStat {
        /// Inactive anonymous list.
        NrInactiveAnon = "nr_inactive_anon",
        /// Active anonymous list.
        NrActiveAnon = "nr_active_anon",
        /// Inactive file list.
        NrInactiveFile = "nr_inactive_file",
        /// Active file list.
        NrActiveFile = "nr_active_file",
        /// Unevictable list.
        NrUnevictable = "nr_unevictable",
        /// Anonymous pages taken off their list by reclaim.
        NrIsolatedAnon = "nr_isolated_anon",
        /// File pages taken off their list by reclaim.
        NrIsolatedFile = "nr_isolated_file",
        /// Mapped anonymous pages.
        NrAnonPages = "nr_anon_pages",
        /// Mapped file pages.
        NrMapped = "nr_mapped",
        /// Page-cache pages, swap cache included.
        NrFilePages = "nr_file_pages",
        /// Dirty file pages.
        NrDirty = "nr_dirty",
        /// Pages being written.
        NrWriteback = "nr_writeback",
        /// Swap-cache pages.
        NrSwapcached = "nr_swapcached",
        /// Pages of slabs that a shrinker can free.
        NrSlabReclaimable = "nr_slab_reclaimable",
        /// Pages of other slabs.
        NrSlabUnreclaimable = "nr_slab_unreclaimable",
        /// Pages of page tables.
        NrPageTablePages = "nr_page_table_pages",
        /// Huge pages of anonymous memory that are mapped, in huge pages.
        NrAnonTransparentHugepages = "nr_anon_transparent_hugepages",
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
