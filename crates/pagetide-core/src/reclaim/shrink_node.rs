//! Shrinking a node: scans the lists of its groups in batches.
//!
//! Linux: `shrink_node`, `shrink_node_memcgs`, `shrink_lruvec` (6.1). The walk visits the group
//! that is short of memory (the root, if the machine is) and its descendants, parents first. The
//! group policies decide about each group ([`super::group_policy`]); [`crate::ageing`] plans the
//! scan of its lists and takes the batches, 32 pages each.
//!
//! In Linux 5.4 to 6.7 every walk visits all groups. Since 6.8 (a policy here) direct reclaim
//! starts where the last direct reclaimer stopped, and stops when it has freed enough. A walk ends
//! if its current group is removed.
//!
//! Invariant: [`ShrinkNode`] holds the whole state between two batches; a step is one batch.

mod shrink_many;
mod walk;

use super::soft_limit_tree::SoftReclaim;
use crate::ageing::generations::memcg_lru::MemcgLruWalk;
use crate::ageing::scan::LruvecScan;
use crate::groups::memcg::MemcgPosition;
use crate::interface::effect::Sleep;
use crate::slab::shrinker::ShrinkSlab;
use crate::units::digest::State;
use crate::units::NodeId;
use alloc::boxed::Box;

/// Most groups that one step visits if none of them has pages to scan.
const VISITS_A_STEP: u32 = 32;

/// A pass over a node in progress.
#[derive(Clone, Debug, State)]
pub struct ShrinkNode {
    node: NodeId,
    stage: NodePassStage,
    /// Number of the walk over the tree, from 0.
    walk: u32,
    /// The walk over the memcg LRU; `None`: the walk follows the tree.
    memcg_lru: Option<MemcgLruWalk>,
    /// Pages scanned before the walk.
    walk_scanned: u64,
    /// Pages scanned and freed before the pass.
    scanned_before: u64,
    reclaimed_before: u64,
    /// Pages freed from slabs that are not yet added to the scan control (Linux `reclaim_state`).
    reclaimed_slab: u64,
    /// Pages that slabs had returned so far at the last look.
    slab_seen: u64,
}

#[derive(Clone, Debug, State)]
enum NodePassStage {
    New,
    /// In the soft-limit tree's stage.
    Soft(Box<SoftReclaim>),
    /// Begin a walk.
    Walk,
    /// At a group, before its lists.
    At(MemcgPosition),
    /// Scanning a group's lists.
    Shrink(MemcgPosition, LruvecScan),
    /// Shrinking a group's cached objects.
    Slab(MemcgPosition, ShrinkSlab),
    /// Done with a group.
    After(MemcgPosition),
}

/// Result of one step of a node pass.
pub enum NodeStep {
    /// More to do.
    Continue,
    /// More to do, after this sleep.
    Wait(Sleep),
    /// Finished, perhaps after a sleep.
    Done(Option<Sleep>),
}

impl ShrinkNode {
    /// A pass over `node` from its start.
    pub fn new(node: NodeId) -> ShrinkNode {
        ShrinkNode {
            node,
            stage: NodePassStage::New,
            walk: 0,
            memcg_lru: None,
            walk_scanned: 0,
            scanned_before: 0,
            reclaimed_before: 0,
            reclaimed_slab: 0,
            slab_seen: 0,
        }
    }

    /// The node of the pass.
    pub fn node(&self) -> NodeId {
        self.node
    }
}
