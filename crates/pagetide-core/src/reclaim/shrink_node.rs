//! Shrinking a node: scans the lists of its groups in batches.
//!
//! Linux: `shrink_node`, `shrink_node_memcgs`, `shrink_lruvec` (6.1). The walk visits the group
//! that is short of memory (the root, if the machine is) and its descendants, parents first. The
//! group policies decide about each group ([`super::group_policy`]). The lists take turns, 32 pages
//! each time, until each list has reached its target. Once enough pages were freed, one kind (page
//! cache or anonymous memory) stops: the one with fewer pages left to scan. The target of the other
//! kind is lowered to the same share.
//!
//! In Linux 5.4 to 6.7 every walk visits all groups. Since 6.8 (a policy here) direct reclaim
//! starts where the last direct reclaimer stopped, and stops when it has freed enough. A walk ends
//! if its current group is removed.
//!
//! Invariant: [`ShrinkNode`] holds the whole state between two batches; a step is one batch.

mod walk;

use super::soft_limit_tree::SoftReclaim;
use crate::groups::memcg::MemcgPosition;
use crate::interface::effect::Sleep;
use crate::reclaim::plugin::GroupPlan;
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
    /// Pages scanned before the walk.
    walk_scanned: u64,
    /// Pages scanned and freed before the pass.
    scanned_before: u64,
    reclaimed_before: u64,
    /// Pages freed from slabs that are not yet added to the scan control (Linux `reclaim_state`).
    reclaimed_slab: u64,
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
    Shrink(MemcgPosition, ShrinkLruvec),
    /// Shrinking a group's cached objects.
    Slab(MemcgPosition, ShrinkSlab),
    /// Done with a group.
    After(MemcgPosition),
}

/// Scan of one group's lists in progress.
#[derive(Clone, Debug, State)]
pub(crate) struct ShrinkLruvec {
    nr: [u64; 4],
    targets: [u64; 4],
    /// Pages freed so far.
    pub nr_reclaimed: u64,
    nr_to_reclaim: u64,
    /// Scan the targets completely, so that both kinds feel equal pressure: direct reclaim at the
    /// mildest priority does this.
    proportional: bool,
    /// List of the next batch.
    at: usize,
    /// Priority of the group's plan, for the event log.
    #[state(skip)] // follows from the targets
    priority: i8,
}

impl ShrinkLruvec {
    pub fn new(
        nr: [u64; 4],
        nr_to_reclaim: u64,
        proportional: bool,
        plan: GroupPlan,
    ) -> ShrinkLruvec {
        let (nr_reclaimed, at, priority) = (0, 0, plan.priority);
        ShrinkLruvec { nr, targets: nr, nr_reclaimed, nr_to_reclaim, proportional, at, priority }
    }
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
            walk_scanned: 0,
            scanned_before: 0,
            reclaimed_before: 0,
            reclaimed_slab: 0,
        }
    }

    /// The node of the pass.
    pub fn node(&self) -> NodeId {
        self.node
    }
}
