//! Soft limits of cgroup version 1: a tree of groups by excess per node, and a reclaim stage before
//! the walk.
//!
//! Linux: mm/memcontrol.c `mem_cgroup_soft_limit_reclaim`, `mem_cgroup_soft_reclaim`,
//! `mem_cgroup_update_tree`, mm/vmscan.c `mem_cgroup_shrink_node` (6.1; little changed since
//! 2.6.31). Each node has a tree of the groups that are over their soft limit, keyed by their
//! excess. A key is updated every 1024 charges. Before a node is shrunk for a shortage of the
//! machine, the group with the largest excess and its descendants are scanned at priority 0 until a
//! quarter of the excess is gone. The regular reclaim that follows visits all groups.
//!
//! Up to 4.7 zones have lists of their own. The stage runs for every zone, each time to take a
//! quarter of the whole excess, even from a zone with very little memory of the group.
//!
//! Differs from Linux: up to 4.7 each zone has a tree; here a node has one.
//!
//! Invariant: a group's lruvec has a key exactly while the group is on the node's tree.

pub(crate) mod reclaim;

use crate::ageing::scan::LruvecScan;
use crate::groups::memcg::MemcgPosition;
use crate::reclaim::ScanControl;
use crate::units::digest::State;
use crate::units::{IdVec, MemcgId, NodeId};
use alloc::collections::BTreeMap;

#[derive(Clone, Debug, Default, State)]
pub(crate) struct SoftLimitTrees {
    /// Groups by (excess, order of arrival): the last is the next to be reclaimed from.
    trees: IdVec<NodeId, BTreeMap<(u64, u64), MemcgId>>,
    arrivals: u64,
    /// A soft limit was set: from then on charges are counted.
    in_use: bool,
}

impl SoftLimitTrees {
    pub fn new(nr_nodes: usize) -> SoftLimitTrees {
        SoftLimitTrees {
            trees: alloc::vec![BTreeMap::new(); nr_nodes].into(),
            arrivals: 0,
            in_use: false,
        }
    }

    #[inline]
    pub fn in_use(&self) -> bool {
        self.in_use
    }

    pub fn of_node(&self, node: usize) -> impl Iterator<Item = ((u64, u64), MemcgId)> + '_ {
        self.trees[node].iter().map(|(&key, &memcg)| (key, memcg))
    }
}

/// The soft-limit stage in progress on one node.
#[derive(Clone, Debug, State)]
pub(crate) struct SoftReclaim {
    node: NodeId,
    /// The group being worked on, and its excess at the start.
    top: Option<(MemcgPosition, u64)>,
    /// Member of its subtree that is being scanned.
    victim: Option<(MemcgPosition, LruvecScan)>,
    sc: ScanControl,
    /// Complete rounds over the subtree, and the pages that they freed.
    turns: u32,
    total: u64,
    /// Groups tried so far, and the next one if the last freed nothing.
    tried: u32,
    next: Option<MemcgPosition>,
    /// Pages that the whole stage has freed and scanned.
    pub nr_reclaimed: u64,
    pub nr_scanned: u64,
}
