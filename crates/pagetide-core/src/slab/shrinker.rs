//! Reclaim of kept objects, in proportion to the pressure on pages.
//!
//! Linux: `shrink_slab`, `do_shrink_slab` (mm/vmscan.c, 6.1), `super_cache_count` and
//! `super_cache_scan` (fs/super.c), `scan_shadow_nodes` (mm/workingset.c). Each time reclaim has looked at a group's
//! lists it looks at the group's kept objects. Of the shadow nodes that are too many it scans half, in batches of
//! 128: they cost nobody I/O. Then it scans 4 / 2^priority of names and inodes, halved, in batches of 1024. A rest
//! that is less than a batch is put off.
//!
//! Invariant: a step looks at one batch of one shrinker.

mod shrink;

use super::cached::Shrinker;
use crate::digest::State;
use crate::units::{MemcgId, NodeId};

/// How much a name or an inode is worth: looked at by `4 / seeks` parts (Linux `DEFAULT_SEEKS`).
const SEEKS: u64 = 2;

impl Shrinker {
    /// Objects looked at in one go (Linux `SHRINK_BATCH`, `alloc_super`).
    const fn batch(self) -> u64 {
        match self {
            Shrinker::ShadowNodes => 128,
            Shrinker::SuperBlock => 1024,
        }
    }

    /// The function of the kernel that looks at them.
    const fn name(self) -> &'static str {
        match self {
            Shrinker::ShadowNodes => "scan_shadow_nodes",
            Shrinker::SuperBlock => "super_cache_scan",
        }
    }

    /// Who is asked next.
    const fn next(self) -> Option<Shrinker> {
        match self {
            Shrinker::ShadowNodes => Some(Shrinker::SuperBlock),
            Shrinker::SuperBlock => None,
        }
    }
}

/// A group's kept objects, being shrunk.
#[derive(Clone, Copy, Debug, State)]
pub(crate) struct ShrinkSlab {
    shrinker: Shrinker,
    memcg: MemcgId,
    node: NodeId,
    priority: i8,
    freeable: u64,
    /// Still to be looked at.
    total_scan: u64,
    /// What was put off before, and what this time adds.
    owed: u64,
    /// What was put off before.
    deferred: u64,
    scanned: u64,
    /// Objects freed, by all shrinkers so far and by the ones before.
    pub freed: u64,
    freed_before: u64,
}
