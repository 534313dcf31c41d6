//! Shrinking a node: every group's lists, in batches.
//!
//! Linux: `shrink_node`, `shrink_node_memcgs`, `shrink_lruvec` (6.1). The groups at and below the one
//! that is short of memory (the root, if the machine is) are visited parents first; the group policies
//! decide about each group ([`super::group_policy`]). Each list is scanned by 32 pages in turn until
//! its target is used up; once enough pages were freed, the kind with fewer pages left to scan stops
//! and the other kind is scaled to the same share.
//!
//! Every walk visits all groups (Linux 5.4 to 6.7). By policy, tasks that reclaim for themselves begin
//! where the last such task stopped, and stop when they have freed enough (since 6.8). A walk whose
//! current group was removed ends.
//!
//! Invariant: [`ShrinkNode`] holds everything between two batches; a step is one batch.

mod walk;

use super::soft_limit_tree::SoftReclaim;
use crate::digest::State;
use crate::effect::Sleep;
use crate::memcg::Position;
use crate::plugin::Plan;
use crate::slab::shrinker::ShrinkSlab;
use crate::units::NodeId;
use alloc::boxed::Box;

/// Groups that a step visits at most, if none of them has anything to scan.
const VISITS_A_STEP: u32 = 32;

/// A node pass in progress.
#[derive(Clone, Debug, State)]
pub struct ShrinkNode {
    node: NodeId,
    stage: Stage,
    /// Number of the walk over the tree, from 0.
    walk: u32,
    /// Pages looked at when the walk began.
    walk_scanned: u64,
    /// Pages looked at and freed when the pass began.
    scanned_before: u64,
    reclaimed_before: u64,
    /// Pages that slabs gave back meanwhile, not told of yet (Linux `reclaim_state`).
    reclaimed_slab: u64,
}

#[derive(Clone, Debug, State)]
enum Stage {
    /// Nothing done yet.
    New,
    /// The soft-limit trees' own stage.
    Soft(Box<SoftReclaim>),
    /// Begin a walk.
    Walk,
    /// At a group, whose lists are not looked at yet.
    At(Position),
    /// A group's lists in progress.
    Shrink(Position, ShrinkLruvec),
    /// The objects kept for a group in progress.
    Slab(Position, ShrinkSlab),
    /// Done with a group.
    After(Position),
}

/// One group's lists in progress.
#[derive(Clone, Debug, State)]
pub(crate) struct ShrinkLruvec {
    nr: [u64; 4],
    targets: [u64; 4],
    /// Pages freed so far.
    pub nr_reclaimed: u64,
    nr_to_reclaim: u64,
    /// Light direct reclaim scans its targets whole, so that both kinds feel equal pressure.
    proportional: bool,
    /// List of the next batch.
    at: usize,
    /// Priority of the group's plan, for the log of events.
    #[state(skip)] // in the targets already
    priority: i8,
}

impl ShrinkLruvec {
    /// Lists of which so much is to be looked at.
    pub fn new(nr: [u64; 4], nr_to_reclaim: u64, proportional: bool, plan: Plan) -> ShrinkLruvec {
        let (nr_reclaimed, at, priority) = (0, 0, plan.priority);
        ShrinkLruvec { nr, targets: nr, nr_reclaimed, nr_to_reclaim, proportional, at, priority }
    }
}

/// Result of one step of a node pass.
pub enum NodeStep {
    /// More to do.
    Continue,
    /// More to do, after this.
    Wait(Sleep),
    /// Finished; sleep first if it says so.
    Done(Option<Sleep>),
}

impl ShrinkNode {
    /// A pass over `node`.
    pub fn new(node: NodeId) -> ShrinkNode {
        ShrinkNode {
            node,
            stage: Stage::New,
            walk: 0,
            walk_scanned: 0,
            scanned_before: 0,
            reclaimed_before: 0,
            reclaimed_slab: 0,
        }
    }

    /// The node.
    pub fn node(&self) -> NodeId {
        self.node
    }
}
