//! The question of a walk over the groups of a node and its answer: skip this group, or scan it at a
//! priority.
//!
//! Linux has no such thing: its rules are in `shrink_node_memcgs` (mm/vmscan.c).

use crate::units::{MemcgId, NodeId};

/// The group that a walk has come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    /// The group.
    pub memcg: MemcgId,
    /// The node whose lists are shrunk.
    pub node: NodeId,
    /// Number of the walk over the tree within this pass over the node, from 0.
    pub walk: u32,
}

/// What to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Leave it alone this time.
    pub skip: bool,
    /// Look at `list >> priority` pages of each list.
    pub priority: i8,
    /// Pages of the group's usage that pressure does not count.
    pub protected: u64,
}

/// A walk that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    /// Its number within the pass over the node, from 0.
    pub number: u32,
    /// Pages that it looked at.
    pub scanned: u64,
}
