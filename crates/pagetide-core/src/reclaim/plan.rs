//! The question of a walk over the groups of a node: skip this group, or scan it at a priority?
//!
//! Linux has no such thing: its rules are in `shrink_node_memcgs` (mm/vmscan.c). The answer is a
//! [`crate::plugin::Plan`].

use crate::units::{MemcgId, NodeId};

/// The group that a walk has come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupAt {
    /// The group.
    pub memcg: MemcgId,
    /// The node whose lists are shrunk.
    pub node: NodeId,
    /// Number of the walk over the tree within this pass over the node, from 0.
    pub walk: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkEnded {
    /// Its number within the pass over the node, from 0.
    pub number: u32,
    /// Pages that it looked at.
    pub scanned: u64,
}
