//! Soft limits as cgroup version 1 has them: trees of groups by excess, and a stage of their own.
//!
//! Linux: mm/memcontrol.c `mem_cgroup_soft_limit_reclaim`, `mem_cgroup_soft_reclaim`,
//! `mem_cgroup_update_tree`, mm/vmscan.c `mem_cgroup_shrink_node` (6.1; since 2.6.31, without much
//! change). On every node the groups that are over their soft limit are in a tree, keyed by their
//! excess at the last update, which is every 1024 charges. Before a node is shrunk for a shortage of
//! the machine, the worst group and everything below it are scanned at priority 0 until a quarter of
//! the excess is gone. The regular reclaim that follows visits all groups.
//!
//! Before 4.8 (policy `kswapd = linux-2.6.37`) zones had lists of their own, and the stage was run for
//! every zone, each time to take a quarter of the whole excess, even from a zone that holds very little
//! of the group.
//!
//! Invariant: a group's lruvec knows its key exactly while the group is on the node's tree.

pub(crate) mod reclaim;

use crate::digest::State;
use crate::memcg::Position;
use crate::reclaim::shrink_node::ShrinkLruvec;
use crate::reclaim::ScanControl;
use crate::units::MemcgId;
use crate::units::NodeId;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The trees, one a node.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct SoftLimitTrees {
    /// Groups by (excess, order of arrival): the last is the next to be reclaimed from.
    trees: Vec<BTreeMap<(u64, u64), MemcgId>>,
    arrivals: u64,
    /// Somebody has set a soft limit: events are counted from then on.
    in_use: bool,
    /// Frame of a zone, counted from its start, where the scan of that zone alone goes on.
    pub zone_cursor: u32,
}

impl SoftLimitTrees {
    pub fn new(nr_nodes: usize) -> SoftLimitTrees {
        SoftLimitTrees {
            trees: alloc::vec![BTreeMap::new(); nr_nodes],
            arrivals: 0,
            in_use: false,
            zone_cursor: 0,
        }
    }

    /// Whether charges have to be counted.
    #[inline]
    pub fn in_use(&self) -> bool {
        self.in_use
    }

    /// The groups on a node's tree, for the audit.
    pub fn of_node(&self, node: usize) -> impl Iterator<Item = ((u64, u64), MemcgId)> + '_ {
        self.trees[node].iter().map(|(&key, &memcg)| (key, memcg))
    }
}

/// The stage in progress on one node.
#[derive(Clone, Debug, State)]
pub(crate) struct SoftReclaim {
    node: NodeId,
    /// The group on top that is worked on, and its excess when that began.
    top: Option<(Position, u64)>,
    /// Member of its subtree that is being scanned.
    victim: Option<(Position, ShrinkLruvec)>,
    /// Control block of the scan.
    sc: ScanControl,
    /// Turns through the subtree that are complete, and what they gave.
    turns: u32,
    total: u64,
    /// Groups that have been on top, and the next one, if the last gave nothing.
    tried: u32,
    next: Option<Position>,
    /// Small zones that still have a stage of their own before the node's, as bits.
    zones_left: u8,
    /// Pages freed in the present zone.
    zone_reclaimed: u64,
    /// Pages the whole stage has freed, and looked at.
    pub nr_reclaimed: u64,
    pub nr_scanned: u64,
}
