//! Input of a group plan: a group that a walk has reached, and the end of a walk.
//!
//! Linux has no such types: its rules are in `shrink_node_memcgs` (mm/vmscan.c). The plan is a
//! [`crate::reclaim::plugin::GroupPlan`].

use crate::units::{MemcgId, NodeId};

#[derive(Clone, Copy, Debug)]
pub(crate) struct VisitedGroup {
    pub memcg: MemcgId,
    /// The node being reclaimed.
    pub node: NodeId,
    /// Number of the walk within this pass over the node, from 0.
    pub walk: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkResult {
    /// Number of the walk within the pass over the node, from 0.
    pub number: u32,
    /// Pages that the walk scanned.
    pub scanned: u64,
}
