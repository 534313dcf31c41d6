//! The tunables, under their sysctl names, with Linux 6.1's defaults, and the policies.
//!
//! Control files parse into these ([`crate::control`]). What a policy makes a kernel do is asked of the
//! era of a machine (`era.rs`), not of the policy.
//!
//! The first variant of each policy is the default: Linux 6.1, where that has the thing at all. Where
//! variants have numbers, these are what the digest of a machine has always held of them.

use crate::digest::State;
use crate::page_size::PageSize;
use crate::watermark::WatermarkInputs;

/// How kswapd balances a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum KswapdPolicy {
    /// Linux 6.1: one goal a node (the sum of the high marks), priority drops while too little
    /// was scanned, done when any zone is balanced.
    #[default]
    Linux61,
    /// Linux 2.6.37, the time of the tunable-watermarks patch: every zone must reach its high
    /// mark, each round at most 32 reclaimed pages deep before it starts again at priority 12,
    /// 100 ms waits for congestion below priority 10.
    Linux2637,
    /// Linux 4.5 and 4.6: zones are balanced one by one, at the order asked for, each up to its high
    /// mark; a node is balanced for an order above 0 when a quarter of it is.
    Linux45,
}

/// How an allocating task reclaims.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum DirectReclaimPolicy {
    /// Linux 6.1: never writes file pages, sleeps only when throttled.
    #[default]
    Linux61,
    /// Linux 2.6.37: writes dirty file pages itself; below priority 10 waits up to 100 ms, if a
    /// disk is congested and the lists have shown it (`wait_iff_congested`).
    Linux2637,
    /// Linux up to 2.6.35: as 2.6.37, but every wait is a `congestion_wait` that sleeps whether
    /// or not anything is congested, and a reclaim that freed pages which somebody else took, or
    /// which are still on a per-CPU list, sleeps up to 20 ms before it tries again: the lists are
    /// not drained (they are since 2.6.36).
    Linux2635,
}

/// How pages age, and how page cache and anonymous memory share the pressure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum LruPolicy {
    /// Linux 6.1: new anonymous pages are inactive, anonymous refaults are judged, costs decide the
    /// balance.
    #[default]
    Linux61,
    /// Linux 5.4 (3.15 to 5.7): new anonymous pages are active and go back there at the first
    /// reference; only page cache has refaults; what was scanned and rotated decides the balance, and
    /// cold page cache goes first.
    Linux54,
    /// Linux 3.3: no refaults, no preference for cold page cache.
    Linux33,
}

/// What a group over its soft limit means to reclaim for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum SoftLimitPolicy {
    /// Linux since 2.6.31 (cgroup version 1): trees of groups by excess, and a stage of reclaim of
    /// their own before the regular one.
    #[default]
    Tree = 1,
    /// Nothing.
    Off = 0,
    /// The patch of January 2012: one walk, at priority 0 for a group that is over or below one.
    Hierarchical = 2,
    /// The rework of 2013: only groups over their limit; everybody if that looked at nothing.
    TwoPass = 3,
    /// Pagetide's: the priority falls with the relative excess.
    Graded = 4,
}

/// Whether the group that reclaim is about counts as an ancestor over its soft limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum SoftLimitRoot {
    /// As agreed in review.
    #[default]
    Excluded,
    /// As posted.
    Included,
}

/// How a task that reclaims for itself heeds soft limits (policy `hierarchical`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum SoftLimitDirect {
    /// As kswapd: priority 0.
    #[default]
    Full,
    /// Two priorities harder than its own.
    Bounded,
    /// Not at all.
    Ignored,
}

/// What a soft limit means on one of several nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum SoftLimitNode {
    /// The group's usage decides, wherever it is.
    #[default]
    Global,
    /// soft limit x node's size / group's usage is the limit of what the group has on the node.
    Local,
}

/// What `memory.global_shrink_priority` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum ShrinkPriorityPolicy {
    /// The patch of December 2019 with values from 0, and with a descent that spares nobody when one
    /// that spared somebody has freed nothing.
    #[default]
    Guarded = 2,
    /// Nothing.
    Off = 0,
    /// The patch as it was posted.
    Posted = 1,
    /// Guarded, and a group's value is the least on its path to the root.
    Hierarchical = 3,
}

/// Who visits which groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum GroupWalkPolicy {
    /// Linux 5.4 to 6.7: every reclaimer visits every group.
    #[default]
    Whole,
    /// Linux since 6.8: tasks that reclaim for themselves share a position and stop when they have
    /// enough; kswapd visits every group.
    Shared,
}

/// Who makes blocks of high order in the background.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum BackgroundCompaction {
    /// kcompactd, woken before kswapd's nap, so that requests that keep coming cannot starve it
    /// (Linux since 4.6).
    #[default]
    KcompactdEarly = 3,
    /// Nobody.
    Off = 0,
    /// kswapd, in the middle of its rounds, as up to Linux 4.5 (needs [`KswapdPolicy::Linux45`]).
    Kswapd = 1,
    /// kcompactd, woken when kswapd goes to sleep for good: Vlastimil Babka's patch of March 2016.
    Kcompactd = 2,
}

/// How compaction is judged worth while, how it scans, and when an allocation resorts to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum CompactionPolicy {
    /// Linux 6.1.
    #[default]
    Linux61,
    /// Linux 4.5: asynchronous before every reclaim, synchronous after it, done only if the low mark
    /// is met as well.
    Linux45,
}

/// Whether a task that compacts for itself takes the block it has made before it is on a free list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum CompactionCapture {
    /// It does (Linux since 5.1).
    #[default]
    On,
    /// It competes for it with everybody.
    Off,
}

/// When anonymous memory gets huge pages (`transparent_hugepage/enabled`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum Thp {
    /// Nowhere. Linux has no default of its own; distributions choose `always` or `madvise`.
    #[default]
    Never = 2,
    /// Wherever it can.
    Always = 0,
    /// Where madvise asked for it.
    Madvise = 1,
}

impl Thp {
    /// Whether anything may get huge pages: khugepaged is there then (Linux `hugepage_flags_enabled`).
    pub const fn is_on(self) -> bool {
        match self {
            Thp::Always | Thp::Madvise => true,
            Thp::Never => false,
        }
    }
}

/// What a fault does for a huge page that is not there (`transparent_hugepage/defrag`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum ThpDefrag {
    /// Reclaims and compacts where madvise asked for it, does nothing elsewhere.
    #[default]
    Madvise = 3,
    /// Reclaims and compacts, once.
    Always = 0,
    /// Wakes the daemons.
    Defer = 1,
    /// Reclaims and compacts where madvise asked for it, wakes the daemons elsewhere.
    DeferMadvise = 2,
    /// Does nothing.
    Never = 4,
}

/// khugepaged's tunables (`transparent_hugepage/khugepaged/`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub struct Khugepaged {
    /// `defrag`: may reclaim and compact.
    pub defrag: bool,
    /// `pages_to_scan` in a round.
    pub pages_to_scan: u32,
    /// `scan_sleep_millisecs` between rounds.
    pub scan_sleep_millisecs: u32,
    /// `alloc_sleep_millisecs` after it found no huge page.
    pub alloc_sleep_millisecs: u32,
    /// `max_ptes_none`: so many pages of the 512 may be missing.
    pub max_ptes_none: u32,
    /// `max_ptes_swap`: so many may be in swap.
    pub max_ptes_swap: u32,
}

impl Default for Khugepaged {
    fn default() -> Self {
        Khugepaged {
            defrag: true,
            pages_to_scan: 4096,
            scan_sleep_millisecs: 10_000,
            alloc_sleep_millisecs: 60_000,
            max_ptes_none: 511,
            max_ptes_swap: 64,
        }
    }
}

/// Who pays for small objects of the kernel. Chosen at boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum SlabAccounting {
    /// Caches are shared, and every object has an owner: Roman Gushchin's series of 2020 (since 5.9).
    #[default]
    PerObject = 3,
    /// Nobody (before Linux 3.8, and with `cgroup.memory=nokmem`).
    Off = 0,
    /// Each group has caches of its own, and pays for their pages; they hold it when it is gone (Linux 3.8
    /// to 5.2).
    PerGroupCaches = 1,
    /// The same, and its parent takes them over (5.3 to 5.8).
    PerGroupCachesReparent = 2,
}

/// How caches use their slabs. Chosen at boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum SlubPolicy {
    /// Linux 6.1: a CPU's chain of partial slabs has a length; nodes' lists are queues.
    #[default]
    Linux61,
    /// Linux 5.5 (up to 5.15): a CPU's chain has a number of free objects, counted as they were when the
    /// slabs came.
    Linux55,
    /// Pagetide's: no chains; the fullest partial slab is used first.
    Fullest,
    /// Pagetide's: no chains; the partial slab with the lowest slot is used first.
    Lowest,
}

/// How an object remembers its owner. Chosen at boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum SlabOwners {
    /// By pointers of 8 bytes in a vector of the slab's, which is an object itself (Linux).
    #[default]
    Pointers,
    /// By ids of 2 bytes, at the end of the slab if they fit there (Pagetide's).
    Ids,
}

/// Version of the cgroup interface, which decides a few things that reclaim does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum CgroupVersion {
    /// Reclaim for a group does not wait for pages under writeback.
    #[default]
    V2 = 1,
    /// It waits for them.
    V1 = 0,
}

/// Everything that can be tuned.
#[derive(Clone, Debug, PartialEq, Eq, State)]
pub struct Config {
    /// How large a page is: chosen when a machine is made ([`Config::of_pages`]), and not changed then.
    #[state(skip)] // as the number of pages, it is not state
    pub page_size: PageSize,
    /// `vm.swappiness`, 0..=200.
    pub swappiness: u32,
    /// `vm.page-cluster`: log2 of the largest swap read-ahead, in pages.
    pub page_cluster: u32,
    /// `vm.fault_around_bytes` in pages; 1 switches fault-around off.
    pub fault_around_pages: u32,
    /// Largest file read-ahead window in pages (`read_ahead_kb`).
    pub read_ahead_pages: u32,
    /// `vm.dirty_ratio`, per cent of dirtyable memory; unused if `dirty_bytes` is set.
    pub dirty_ratio: u32,
    /// `vm.dirty_background_ratio`.
    pub dirty_background_ratio: u32,
    /// `vm.dirty_bytes`; 0: use the ratio.
    pub dirty_bytes: u64,
    /// `vm.dirty_background_bytes`; 0: use the ratio.
    pub dirty_background_bytes: u64,
    /// `vm.dirty_writeback_centisecs`.
    pub dirty_writeback_centisecs: u32,
    /// `vm.dirty_expire_centisecs`.
    pub dirty_expire_centisecs: u32,
    /// `vm.laptop_mode` in seconds; 0 is off.
    pub laptop_mode: i32,
    /// `vm.vfs_cache_pressure` in per cent: how eagerly names and inodes are freed.
    pub vfs_cache_pressure: u32,
    /// Whether swap lies on a rotating disk: read-ahead by slot, not by address.
    pub swap_rotational: bool,
    /// Marks, boost, reserve.
    pub watermarks: WatermarkInputs,
    /// kswapd's policy.
    pub kswapd: KswapdPolicy,
    /// Direct reclaim's policy.
    pub direct_reclaim: DirectReclaimPolicy,
    /// Ageing of pages.
    pub lru: LruPolicy,
    /// Soft limits.
    pub soft_limit: SoftLimitPolicy,
    /// Whose soft limits count.
    pub soft_limit_root: SoftLimitRoot,
    /// For which reclaimers.
    pub soft_limit_direct: SoftLimitDirect,
    /// On which nodes.
    pub soft_limit_node: SoftLimitNode,
    /// Shrink priorities.
    pub shrink_priority: ShrinkPriorityPolicy,
    /// Walks over the groups.
    pub group_walk: GroupWalkPolicy,
    /// Version of the cgroup interface.
    pub cgroup: CgroupVersion,
    /// `vm.extfrag_threshold`, 0..=1000: at or below this fragmentation index a failure is for want of
    /// memory, which compaction cannot help.
    pub extfrag_threshold: u32,
    /// `vm.compact_unevictable_allowed`.
    pub compact_unevictable_allowed: bool,
    /// `vm.compaction_proactiveness`, 0..=100.
    pub compaction_proactiveness: u32,
    /// `vm.defrag_mode` (Linux 6.15).
    pub defrag_mode: bool,
    /// Compaction in the background.
    pub background_compaction: BackgroundCompaction,
    /// Compaction.
    pub compaction: CompactionPolicy,
    /// Blocks made by a task for itself.
    pub compaction_capture: CompactionCapture,
    /// Huge pages for anonymous memory.
    pub thp: Thp,
    /// What faults do for them.
    pub thp_defrag: ThpDefrag,
    /// khugepaged.
    pub khugepaged: Khugepaged,
    /// Groups pay for kernel memory at all: not with the boot option `cgroup.memory=nokmem`.
    pub kmem_accounting: bool,
    /// Who pays for objects.
    pub slab_accounting: SlabAccounting,
    /// Use of slabs.
    pub slub: SlubPolicy,
    /// Owners of objects.
    pub slab_owners: SlabOwners,
    /// Owners for which a CPU has bytes in advance, 1..=64, rounded up to a power of two. Linux has one.
    pub objcg_stock_slots: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config::of_pages(PageSize::default())
    }
}

impl Config {
    /// What a machine with pages of this size begins with: what is said in bytes is as many pages as
    /// that makes.
    pub fn of_pages(page_size: PageSize) -> Config {
        let pages = |bytes| page_size.pages_in(bytes) as u32;
        Config {
            page_size,
            swappiness: 60,
            page_cluster: 3,
            fault_around_pages: pages(64 << 10),
            read_ahead_pages: pages(128 << 10),
            dirty_ratio: 20,
            dirty_background_ratio: 10,
            dirty_bytes: 0,
            dirty_background_bytes: 0,
            dirty_writeback_centisecs: 500,
            dirty_expire_centisecs: 3000,
            laptop_mode: 0,
            vfs_cache_pressure: 100,
            swap_rotational: false,
            watermarks: WatermarkInputs::default(),
            kswapd: KswapdPolicy::default(),
            direct_reclaim: DirectReclaimPolicy::default(),
            lru: LruPolicy::default(),
            soft_limit: SoftLimitPolicy::default(),
            soft_limit_root: SoftLimitRoot::default(),
            soft_limit_direct: SoftLimitDirect::default(),
            soft_limit_node: SoftLimitNode::default(),
            shrink_priority: ShrinkPriorityPolicy::default(),
            group_walk: GroupWalkPolicy::default(),
            cgroup: CgroupVersion::default(),
            extfrag_threshold: 500,
            compact_unevictable_allowed: true,
            compaction_proactiveness: 20,
            defrag_mode: false,
            background_compaction: BackgroundCompaction::default(),
            compaction: CompactionPolicy::default(),
            compaction_capture: CompactionCapture::default(),
            thp: Thp::default(),
            thp_defrag: ThpDefrag::default(),
            khugepaged: Khugepaged::default(),
            kmem_accounting: true,
            slab_accounting: SlabAccounting::default(),
            slub: SlubPolicy::default(),
            slab_owners: SlabOwners::default(),
            objcg_stock_slots: 1,
        }
    }
}
