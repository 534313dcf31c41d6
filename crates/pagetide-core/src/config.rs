//! The tunables, under their sysctl names, with Linux 6.1's defaults, and the policies.
//!
//! Control files parse into these ([`crate::control`]); the core reads them and nothing else.

use crate::units::PAGE_SHIFT;
use crate::watermark::WatermarkInputs;

/// How kswapd balances a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KswapdPolicy {
    /// Linux 6.1: one goal a node (the sum of the high marks), priority drops while too little
    /// was scanned, done when any zone is balanced.
    #[default]
    Linux61,
    /// Linux 2.6.37, the time of the tunable-watermarks patch: every zone must reach its high
    /// mark, each round at most 32 reclaimed pages deep before it starts again at priority 12,
    /// 100 ms waits for congestion below priority 10.
    Linux2637,
}

impl DirectReclaimPolicy {
    /// Whether reclaim writes file pages and knows congested disks, as before 3.2.
    pub const fn is_old(self) -> bool {
        match self {
            DirectReclaimPolicy::Linux61 => false,
            DirectReclaimPolicy::Linux2637 | DirectReclaimPolicy::Linux2635 => true,
        }
    }
}

/// How an allocating task reclaims.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SoftLimitPolicy {
    /// Nothing.
    Off,
    /// Linux since 2.6.31 (cgroup version 1): trees of groups by excess, and a stage of reclaim of
    /// their own before the regular one.
    #[default]
    Tree,
    /// The patch of January 2012: one walk, at priority 0 for a group that is over or below one.
    Hierarchical,
    /// The rework of 2013: only groups over their limit; everybody if that looked at nothing.
    TwoPass,
    /// Pagetide's: the priority falls with the relative excess.
    Graded,
}

/// Whether the group that reclaim is about counts as an ancestor over its soft limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SoftLimitRoot {
    /// As agreed in review.
    #[default]
    Excluded,
    /// As posted.
    Included,
}

/// How a task that reclaims for itself heeds soft limits (policy `hierarchical`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SoftLimitNode {
    /// The group's usage decides, wherever it is.
    #[default]
    Global,
    /// soft limit x node's size / group's usage is the limit of what the group has on the node.
    Local,
}

/// What `memory.global_shrink_priority` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ShrinkPriorityPolicy {
    /// Nothing.
    Off,
    /// The patch of December 2019, as it was.
    Posted,
    /// The same, with values from 0, and with a descent that spares nobody when one that spared
    /// somebody has freed nothing.
    #[default]
    Guarded,
    /// Guarded, and a group's value is the least on its path to the root.
    Hierarchical,
}

/// Who visits which groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GroupWalkPolicy {
    /// Linux 5.4 to 6.7: every reclaimer visits every group.
    #[default]
    Whole,
    /// Linux since 6.8: tasks that reclaim for themselves share a position and stop when they have
    /// enough; kswapd visits every group.
    Shared,
}

/// Version of the cgroup interface, which decides a few things that reclaim does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CgroupVersion {
    /// Reclaim for a group waits for pages under writeback.
    V1,
    /// It does not.
    #[default]
    V2,
}

/// Everything that can be tuned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
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
    /// `vm.vfs_cache_pressure` in per cent. Nothing heeds it before there are shrinkers.
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
}

impl Default for Config {
    fn default() -> Self {
        Config {
            swappiness: 60,
            page_cluster: 3,
            fault_around_pages: (64 * 1024) >> PAGE_SHIFT,
            read_ahead_pages: (128 * 1024) >> PAGE_SHIFT,
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
        }
    }
}
