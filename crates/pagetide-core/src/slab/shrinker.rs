//! Reclaim of kept objects, in proportion to the pressure on pages.
//!
//! Linux: `shrink_slab`, `do_shrink_slab` (mm/vmscan.c, 6.1), `super_cache_count` and
//! `super_cache_scan` (fs/super.c). Each time reclaim has looked at a group's lists it looks at the
//! group's kept objects: it scans 4 / 2^priority of these objects, halved, in batches of 1024. A rest
//! that is less than a batch is put off.
//!
//! Differs from Linux: page-cache tree nodes that hold only shadows have no shrinker.
//!
//! Invariant: a step looks at one batch.

mod shrink;

use crate::digest::State;
use crate::units::{MemcgId, NodeId};

/// How much a kept object is worth: looked at by `4 / seeks` parts (Linux `DEFAULT_SEEKS`).
const SEEKS: u64 = 2;
/// Objects looked at in one go (Linux: `alloc_super`).
const BATCH: u64 = 1024;

/// A group's kept objects, being shrunk.
#[derive(Clone, Copy, Debug, State)]
pub(crate) struct ShrinkSlab {
    memcg: MemcgId,
    node: NodeId,
    freeable: u64,
    /// Still to be looked at.
    total_scan: u64,
    /// What was put off before, and what this time adds.
    owed: u64,
    /// What was put off before.
    deferred: u64,
    scanned: u64,
    /// Objects freed.
    pub freed: u64,
}
