//! Groups (memory cgroups): the tree, charges, counters, stocks, `memory.high`.
//!
//! Linux: `mm/memcontrol.c`, `mm/page_counter.c`.
//!
//! Invariant: `parents` has the parent of each group of `memcgs`.

pub mod charge;
pub mod memcg;
pub(crate) mod memcg_stock;
pub(crate) mod memory_high;
pub mod page_counter;

use crate::ageing::generations::memcg_lru::MemcgLru;
use crate::ageing::Ageing;
use crate::groups::memcg::Memcg;
use crate::groups::memcg_stock::Stock;
use crate::reclaim::quiet::IdleGroups;
use crate::reclaim::soft_limit_tree::SoftLimitTrees;
use crate::units::digest::State;
use crate::units::{Cpu, IdVec, MemcgId};
use alloc::vec::Vec;

/// All groups, and the pages that are charged in advance.
#[derive(Clone, Debug, State)]
pub struct Groups {
    /// The groups, by id; removed groups are not `online`.
    pub memcgs: IdVec<MemcgId, Memcg>,
    /// Parent of each group, by id ([`Memcg::parent`]). Walks to the root read this table, so that
    /// loads of the groups need not wait for each other.
    #[state(skip)] // also in the groups
    pub(crate) parents: IdVec<MemcgId, MemcgId>,
    /// Ids of removed groups, for reuse.
    pub(crate) free_memcgs: Vec<MemcgId>,
    /// Groups in which a walk would find nothing to do.
    #[state(skip)] // follows from the groups
    pub(crate) idle_groups: IdleGroups,
    /// Pages charged in advance, by CPU.
    pub(crate) stocks: IdVec<Cpu, Stock>,
    pub(crate) soft_limit_trees: SoftLimitTrees,
    /// Pages of the root, on its first node, that programs outside the simulation keep locked.
    pub(crate) locked_elsewhere: u64,
    /// By node; empty: walks follow the tree.
    pub(crate) memcg_lru: Vec<MemcgLru>,
    /// Decides the bins that the memcg LRU draws.
    pub(crate) memcg_lru_seed: u64,
    /// Pages above `memory.high` that the running call must still pay for; saved in the `Call`
    /// between steps.
    #[state(skip)] // zero between two steps
    pub(crate) nr_over_high: u64,
}

impl Groups {
    pub(crate) fn new(nr_nodes: usize, nr_cpus: u16, ageing: Ageing) -> Groups {
        let root = Memcg::new("root".into(), MemcgId::NONE, nr_nodes, ageing);
        Groups {
            memcgs: alloc::vec![root].into(),
            parents: alloc::vec![MemcgId::NONE].into(),
            free_memcgs: Vec::new(),
            idle_groups: IdleGroups::new(nr_nodes),
            stocks: (0..nr_cpus).map(|_| Stock::EMPTY).collect(),
            soft_limit_trees: SoftLimitTrees::new(nr_nodes),
            locked_elsewhere: 0,
            memcg_lru: Vec::new(),
            memcg_lru_seed: 0,
            nr_over_high: 0,
        }
    }
}
