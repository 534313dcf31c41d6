//! Shrinkers: reclaim cached objects in proportion to the reclaim of pages.
//!
//! Linux: `shrink_slab`, `do_shrink_slab` (mm/vmscan.c, 6.1), `super_cache_count` and
//! `super_cache_scan` (fs/super.c), `scan_shadow_nodes` (mm/workingset.c). After each scan of a
//! group's lists reclaim scans the group's cached objects. First come half of the excess shadow
//! nodes, in batches of 128 (they cost no I/O to recreate). Then come dentries and inodes: half of
//! 4 / 2^priority of them, in batches of 1024. A remainder of less than a batch is deferred.
//! With the root's objects the pools of compressed pages are compacted as a whole, if enough of their
//! pages could become free (`zs_shrinker_scan`, mm/zsmalloc.c). The last is zswap's shrinker, if
//! it is on (`zswap_shrinker_scan`, mm/zswap.c).
//!
//! Invariant: a step scans one batch of one shrinker.

mod shrink;

use super::cached::Shrinker;
use crate::frames::gfp::Gfp;
use crate::units::digest::State;
use crate::units::{MemcgId, NodeId};

/// Cost of recreating a dentry or an inode: a scan takes `4 / SEEKS` parts (Linux `DEFAULT_SEEKS`).
const SEEKS: u64 = 2;

impl Shrinker {
    /// Objects scanned at a time (Linux `SHRINK_BATCH`, `alloc_super`).
    const fn batch(self) -> u64 {
        match self {
            Shrinker::ShadowNodes | Shrinker::Zsmalloc | Shrinker::Zswap => 128,
            Shrinker::SuperBlock => 1024,
        }
    }

    /// The kernel function that scans the objects.
    const fn name(self) -> &'static str {
        match self {
            Shrinker::ShadowNodes => "scan_shadow_nodes",
            Shrinker::SuperBlock => "super_cache_scan",
            Shrinker::Zsmalloc => "zs_shrinker_scan",
            Shrinker::Zswap => "zswap_shrinker_scan",
        }
    }

    const fn next(self) -> Option<Shrinker> {
        match self {
            Shrinker::ShadowNodes => Some(Shrinker::SuperBlock),
            Shrinker::SuperBlock => Some(Shrinker::Zsmalloc),
            Shrinker::Zsmalloc => Some(Shrinker::Zswap),
            Shrinker::Zswap => None,
        }
    }
}

/// State of the shrinking of a group's cached objects.
#[derive(Clone, Copy, Debug, State)]
pub(crate) struct ShrinkSlab {
    shrinker: Shrinker,
    memcg: MemcgId,
    node: NodeId,
    priority: i8,
    /// Flags of the request for which memory is reclaimed.
    gfp: Gfp,
    freeable: u64,
    /// Objects still to be scanned.
    total_scan: u64,
    /// Objects deferred by earlier scans, plus the objects of this scan.
    owed: u64,
    /// Objects deferred by earlier scans.
    deferred: u64,
    scanned: u64,
    /// Objects freed by all shrinkers so far, including the present shrinker.
    pub freed: u64,
    freed_before: u64,
}
