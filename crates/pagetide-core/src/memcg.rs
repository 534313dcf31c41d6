//! Memory groups: a tree, each with one [`Lruvec`] a node.
//!
//! Linux: `struct mem_cgroup`. Everything the core does is keyed by group and node from the
//! start. Group 0 is the root and owns what nobody else does.
//!
//! Invariant: a parent's id is smaller than its children's, so walking ids upwards visits parents
//! before children.

use crate::lruvec::Lruvec;
use crate::units::MemcgId;
use alloc::string::String;
use alloc::vec::Vec;

/// Counters kept for each group (names as in memory.stat).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemcgEvents {
    /// Page faults of the group's tasks.
    pub pgfault: u64,
    /// Faults that had to read.
    pub pgmajfault: u64,
    /// Inactive pages scanned by kswapd.
    pub pgscan_kswapd: u64,
    /// Inactive pages scanned by direct reclaim.
    pub pgscan_direct: u64,
    /// Pages reclaimed by kswapd.
    pub pgsteal_kswapd: u64,
    /// Pages reclaimed by direct reclaim.
    pub pgsteal_direct: u64,
    /// Active pages looked at.
    pub pgrefill: u64,
    /// Pages moved to an active list.
    pub pgactivate: u64,
    /// Pages moved from an active list.
    pub pgdeactivate: u64,
    /// Refaults, anonymous and file.
    pub workingset_refault: [u64; 2],
    /// Refaults that were activated.
    pub workingset_activate: [u64; 2],
    /// Refaults of former working-set pages.
    pub workingset_restore: [u64; 2],
}

/// One group.
#[derive(Clone, Debug)]
pub struct Memcg {
    /// Name, for reports.
    pub name: String,
    /// Parent; [`MemcgId::NONE`] for the root.
    pub parent: MemcgId,
    /// Lists, one set a node.
    pub lruvecs: Vec<Lruvec>,
    /// Pages charged to this group itself (children not included).
    pub charged: u64,
    /// Counters.
    pub events: MemcgEvents,
}

/// The root group.
pub const ROOT: MemcgId = MemcgId(0);

impl Memcg {
    /// A group with empty lists on `nr_nodes` nodes.
    pub fn new(name: String, parent: MemcgId, nr_nodes: usize) -> Memcg {
        Memcg {
            name,
            parent,
            lruvecs: alloc::vec![Lruvec::new(); nr_nodes],
            charged: 0,
            events: MemcgEvents::default(),
        }
    }
}
