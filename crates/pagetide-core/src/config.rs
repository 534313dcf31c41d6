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
        }
    }
}
