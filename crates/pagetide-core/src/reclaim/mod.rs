//! Page reclaim (mm/vmscan.c).
//!
//! Linux: 6.1. [`ScanControl`] has the goal and the results of one reclaimer; `shrink_node` walks
//! the groups of a node; [`crate::ageing`] chooses the pages of a group, 32 at a time;
//! `shrink_list` decides about each page. The two reclaimers are `direct` and `kswapd`.
//!
//! Words: a *walk* visits the groups of a node. A *pass* scans one node at one priority, in one or
//! more walks. A *round* is a pass over each eligible node (for kswapd: over its own node). A
//! *descent* is a series of rounds with falling priority, from [`DEF_PRIORITY`] until enough pages
//! are freed or the last priority is done. A *kind* is either anonymous memory or page cache.
//!
//! All state is resumable: one step scans one batch of
//! [`SWAP_CLUSTER_MAX`](crate::units::SWAP_CLUSTER_MAX) pages.

pub mod direct;
pub(crate) mod group_policy;
pub mod kswapd;
mod kswapd_by_zone;
mod kswapd_compacts;
pub(crate) mod plan;
pub mod plugin;
mod protection;
pub(crate) mod quiet;
mod reclaim_pages;
pub mod shrink_list;
pub mod shrink_node;
mod shrink_priority;
mod soft_limit;
pub(crate) mod soft_limit_tree;
mod vmpressure;
mod write_2_6_37;

use crate::ageing::generations::window::GenerationFindings;
use crate::ageing::two_lists::findings::ListFindings;
use crate::compaction::suitable::compact_gap;
use crate::frames::gfp::Gfp;
use crate::groups::memcg::ROOT;
use crate::units::digest::State;
use crate::units::{MemcgId, Order, DEF_PRIORITY};

/// The kind of reclaimer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub enum Reclaimer {
    /// The daemon of the node.
    Kswapd,
    /// A task that allocates.
    Direct,
}

/// Pages of the current node pass, by state (Linux `sc->nr`).
#[derive(Clone, Copy, Debug, Default, State)]
pub struct NodeTally {
    /// Dirty or under writeback.
    pub dirty: u64,
    /// Dirty and not yet under writeback.
    pub unqueued_dirty: u64,
    /// Under writeback and already marked for reclaim.
    pub congested: u64,
    /// Under writeback.
    pub writeback: u64,
    /// Under writeback and already marked for reclaim, on a node where all pages at the tail are
    /// under writeback: kswapd should wait.
    pub immediate: u64,
    /// File pages isolated.
    pub file_taken: u64,
    /// Pages isolated.
    pub taken: u64,
}

/// The goal of a reclaimer.
#[derive(Clone, Copy, Debug, State)]
pub struct ReclaimGoal {
    /// The reclaimer.
    pub reclaimer: Reclaimer,
    /// The group that is short of memory; `None`: the machine.
    pub target: Option<MemcgId>,
    /// Pages wanted.
    pub nr_to_reclaim: u64,
    /// Flags of the allocation.
    pub gfp: Gfp,
    /// Order wanted.
    pub order: Order,
    /// A pass scans `list >> priority` pages.
    pub priority: i8,
    /// Highest zone that the request can use.
    pub reclaim_idx: usize,
    /// The reclaim is for a write to memory.reclaim: nothing is short of memory.
    pub proactive: bool,
    /// Visit every group, even where walks are shared.
    pub full_walk: bool,
}

impl ReclaimGoal {
    /// Whether the shortage is the machine's: no target, or the root.
    pub fn is_global(&self) -> bool {
        self.target.is_none_or(|target| target == ROOT)
    }

    /// Pages wanted, at least as many as compaction needs for a block (Linux 6.12).
    pub(crate) fn nr_with_gap(&self) -> u64 {
        self.nr_to_reclaim.max(compact_gap(self.order))
    }

    /// Whether this counts as reclaim for a group (Linux `cgroup_reclaim`).
    pub fn is_for_group(&self) -> bool {
        self.target.is_some()
    }

    /// Whether the reclaimer is kswapd.
    pub fn is_kswapd(&self) -> bool {
        self.reclaimer == Reclaimer::Kswapd
    }
}

/// Permissions of a reclaimer.
#[derive(Clone, Copy, Debug, State)]
pub struct ReclaimPermissions {
    /// Write pages.
    pub writepage: bool,
    /// Unmap pages.
    pub unmap: bool,
    /// Swap.
    pub swap: bool,
    /// Age pages in use even if there are enough others (Linux `force_deactivate`).
    pub force_ageing: bool,
    /// Last resort: take from groups below their `memory.low`.
    pub memcg_low: bool,
    /// Ignore references: the caller names the pages (MADV_PAGEOUT).
    pub ignore_references: bool,
    /// Last resort: plug-ins are not asked.
    pub overrule_plugins: bool,
}

/// Findings of a reclaimer so far.
#[derive(Clone, Copy, Debug, Default, State)]
pub struct ReclaimFindings {
    /// Pages in use were not aged (Linux `skipped_deactivate`).
    pub skipped_ageing: bool,
    /// Findings about the lists of the current node.
    pub lists: ListFindings,
    /// Findings about the generations.
    pub generations: GenerationFindings,
    /// A group was skipped for its `memory.low`.
    pub memcg_low_skipped: bool,
    /// A plug-in has spared a group that the built-in rules would have taken.
    pub plugin_spared: bool,
    /// A zone is ready for compaction: reclaim ends with the round.
    pub compaction_ready: bool,
    /// Pages scanned.
    pub nr_scanned: u64,
    /// Pages freed.
    pub nr_reclaimed: u64,
    /// Page states of the current node pass.
    pub tally: NodeTally,
}

/// State that only older kernels and the proposals have.
#[derive(Clone, Copy, Debug, Default, State)]
pub struct OtherRules {
    /// The zone whose lists the pass scans, where zones have lists of their own (up to 4.7).
    pub only_zone: Option<usize>,
    /// Last resort: ignore shrink priorities.
    pub ignore_shrink_priority: bool,
    /// A group was skipped for its shrink priority.
    pub shrink_priority_spared: bool,
    /// Last resort: no group is skipped for soft limits.
    pub ignore_soft_limit: bool,
    /// The first of two walks (only groups over their soft limit) scanned pages and skipped groups.
    pub soft_limit_skipped: bool,
    /// The first of two walks is in progress, and has skipped groups.
    pub soft_limit_passed_over: bool,
}

/// State of one reclaimer (Linux `struct scan_control`).
#[derive(Clone, Copy, Debug, State)]
pub struct ScanControl {
    /// Its goal.
    pub goal: ReclaimGoal,
    /// Its permissions.
    pub may: ReclaimPermissions,
    /// Its findings so far.
    pub found: ReclaimFindings,
    /// State that only older kernels and the proposals have.
    pub rules: OtherRules,
}

impl ScanControl {
    /// A scan control that may do everything, at the mildest priority.
    pub fn new(reclaimer: Reclaimer, nr_to_reclaim: u64, gfp: Gfp, order: Order) -> ScanControl {
        ScanControl {
            goal: ReclaimGoal {
                reclaimer,
                target: None,
                nr_to_reclaim,
                gfp,
                order,
                priority: DEF_PRIORITY,
                reclaim_idx: gfp.highest_zone(),
                proactive: false,
                full_walk: false,
            },
            may: ReclaimPermissions {
                writepage: true,
                unmap: true,
                swap: true,
                force_ageing: false,
                memcg_low: false,
                ignore_references: false,
                overrule_plugins: false,
            },
            found: ReclaimFindings::default(),
            rules: OtherRules::default(),
        }
    }

    /// Called after a descent that freed nothing. If a policy without protection skipped groups,
    /// restarts at `DEF_PRIORITY` without that exception and returns true.
    pub(crate) fn stop_sparing_groups(&mut self) -> bool {
        if core::mem::take(&mut self.rules.soft_limit_skipped) {
            self.rules.ignore_soft_limit = true;
        } else if core::mem::take(&mut self.rules.shrink_priority_spared) {
            self.rules.ignore_shrink_priority = true;
        } else {
            return false;
        }
        self.goal.priority = DEF_PRIORITY;
        true
    }

    /// Like [`Self::stop_sparing_groups`], for groups that a plug-in has spared.
    pub(crate) fn overrule_plugins(&mut self) -> bool {
        let again = core::mem::take(&mut self.found.plugin_spared);
        if again {
            self.may.overrule_plugins = true;
            self.goal.priority = DEF_PRIORITY;
        }
        again
    }

    /// Whether a group was spared that a last resort would take.
    pub(crate) fn has_spared(&self) -> bool {
        self.rules.soft_limit_skipped
            || self.rules.shrink_priority_spared
            || self.found.plugin_spared
    }
}
