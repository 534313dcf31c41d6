//! Group policies: which groups reclaim takes memory from, and the facts for the decision.
//!
//! Linux has no such hook: its rules are in `shrink_node_memcgs` (mm/vmscan.c), or in patches to
//! this function. A walk over the groups of a node asks the policy once for each group that it
//! reaches. It reaches parents before children.
//!
//! Invariant: a policy only reads the machine; it changes only its plan and its own state.

use crate::ageing::lruvec::LruSizes;
use crate::ageing::lruvec::{Lru, Lruvec};
use crate::config::{Config, SoftLimitNode};
use crate::frames::page_alloc::Memory;
use crate::groups::memcg::{Memcg, ROOT};
use crate::groups::page_counter::UNLIMITED;
use crate::reclaim::Reclaimer;
use crate::stats::vmstat::Event;
use crate::units::digest::Digest;
use crate::units::{IdVec, MemcgId, NodeId};
use core::fmt;
use core::ops::RangeInclusive;

/// Valid priorities in a plan.
pub const PLAN_PRIORITIES: RangeInclusive<i8> = 0..=24;

/// Largest number of walks over a node's groups in one pass.
pub const WALKS_MAX: u32 = 4;

/// A policy that decides from which groups to reclaim.
pub trait GroupPolicy: fmt::Debug + Send + Sync {
    /// Changes the plan for one group. On entry it is the plan of the built-in rules. The function
    /// is not called for a group that these rules skip, or in a machine that has only the root.
    fn plan(&mut self, visit: &GroupVisit<'_>, plan: &mut GroupPlan);

    /// Whether to visit all groups once more after this walk, before the priority number falls.
    /// There are at most [`WALKS_MAX`] walks in total.
    fn another_walk(&mut self, _walk: &GroupWalk) -> bool {
        false
    }

    /// Hashes all state that a later answer can depend on. A policy without state does nothing
    /// here.
    fn digest(&self, digest: &mut Digest);
}

/// Plan of reclaim for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupPlan {
    /// Skip the group this time.
    pub skip: bool,
    /// Scan `list >> priority` pages of each list.
    pub priority: i8,
    /// Number of the group's pages that are protected from reclaim.
    pub protected: u64,
}

/// A group that a walk has reached.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GroupVisit<'m> {
    /// The group.
    pub group: GroupView<'m>,
    /// The group that is short of memory; the root if the machine is short of memory.
    pub target: GroupView<'m>,
    /// Whether `target` hit its own limit. If not, the machine is short of memory.
    pub is_for_limit: bool,
    /// The reclaimer.
    pub reclaimer: Reclaimer,
    /// The reclaimer's own priority: 12 scans least, 0 scans everything.
    pub priority: i8,
    /// Number of the walk within this pass over the node, from 0.
    pub walk: u32,
    /// Pages wanted.
    pub nr_to_reclaim: u64,
    /// Pages freed since the descent (the scan from priority 12 to 0) began.
    pub nr_reclaimed: u64,
}

/// A walk that has ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GroupWalk {
    /// Number of the walk within the pass over the node, from 0.
    pub number: u32,
    /// Pages scanned by the walk.
    pub scanned: u64,
    /// Pages wanted.
    pub nr_to_reclaim: u64,
    /// Pages freed since the descent (the scan from priority 12 to 0) began.
    pub nr_reclaimed: u64,
}

/// All groups, as seen from one node.
#[derive(Clone, Copy)]
pub(crate) struct GroupViews<'m> {
    pub memcgs: &'m IdVec<MemcgId, Memcg>,
    pub mem: &'m Memory,
    pub config: &'m Config,
    pub node: NodeId,
}

impl<'m> GroupViews<'m> {
    pub fn view(self, id: MemcgId) -> GroupView<'m> {
        GroupView { of: self, id }
    }
}

/// Facts about one group. All sizes are in pages.
#[derive(Clone, Copy)]
pub struct GroupView<'m> {
    of: GroupViews<'m>,
    id: MemcgId,
}

impl fmt::Debug for GroupView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.id, self.name())
    }
}

impl<'m> GroupView<'m> {
    fn group(self) -> &'m Memcg {
        &self.of.memcgs[self.id]
    }

    fn lruvec(self) -> &'m Lruvec {
        &self.group().lruvecs[self.of.node]
    }

    /// A small number that no other existing group has, for use as an index of tables.
    pub fn id(self) -> MemcgId {
        self.id
    }

    /// A number that no other group ever has (ids are reused).
    pub fn key(self) -> u64 {
        u64::from(self.group().generation) << 16 | u64::from(self.id.0)
    }

    /// Its name, without the path.
    pub fn name(self) -> &'m str {
        &self.group().name
    }

    /// The parent; the root has none.
    pub fn parent(self) -> Option<GroupView<'m>> {
        let parent = self.group().parent;
        parent.is_some().then(|| self.of.view(parent))
    }

    /// Whether it is the root.
    pub fn is_root(self) -> bool {
        self.id == ROOT
    }

    /// The group and its ancestors, in this order, up to the root.
    pub fn path(self) -> impl Iterator<Item = GroupView<'m>> {
        core::iter::successors(Some(self), |at| at.parent())
    }

    /// The node on which reclaim works.
    pub fn node(self) -> NodeId {
        self.of.node
    }

    /// Memory in use by the group and its descendants. The root's own pages are not charged.
    pub fn usage(self) -> u64 {
        self.group().memory.usage
    }

    /// `memory.max`; `None`: unlimited.
    pub fn max(self) -> Option<u64> {
        limit(self.group().memory.max)
    }

    /// `memory.high`; `None`: unlimited.
    pub fn high(self) -> Option<u64> {
        limit(self.group().memory.high)
    }

    /// `memory.min`, as set.
    pub fn min(self) -> u64 {
        self.group().memory.min
    }

    /// `memory.low`, as set.
    pub fn low(self) -> u64 {
        self.group().memory.low
    }

    /// Effective `memory.min` and `memory.low` in this reclaim, as the ancestors grant them.
    pub fn protection(self) -> (u64, u64) {
        (self.group().memory.emin, self.group().memory.elow)
    }

    /// `memory.soft_limit_in_bytes`; `None`: unlimited.
    pub fn soft_limit(self) -> Option<u64> {
        limit(self.group().soft_limit)
    }

    /// Pages above the soft limit, on all nodes; only on this node if soft limits are local (policy
    /// `soft_limit_node`). The root has no soft limit.
    pub fn soft_limit_excess(self) -> u64 {
        let group = self.group();
        if self.is_root() || group.soft_limit == UNLIMITED {
            return 0;
        }
        match self.of.config.soft_limit_node {
            SoftLimitNode::Global => group.soft_limit_excess(),
            SoftLimitNode::Local => {
                let sizes = self.sizes_below();
                let here = sizes.anon() + sizes.file();
                let zones = self.of.mem.nodes[self.of.node].zones.iter();
                let node_size: u64 = zones.map(|zone| zone.managed).sum();
                let usage = u128::from(group.memory.usage.max(1));
                let local = u128::from(group.soft_limit) * u128::from(node_size) / usage;
                here.saturating_sub(u64::try_from(local).unwrap_or(u64::MAX))
            }
        }
    }

    /// Swap slots charged to the group and its descendants (`memory.swap.current`): all slots in
    /// use; in version 1 without the slots of pages that are in memory.
    pub fn swap_usage(self) -> u64 {
        self.group().swap.usage
    }

    /// Effective swappiness.
    pub fn swappiness(self) -> u32 {
        self.group().swappiness.unwrap_or(self.of.config.swappiness)
    }

    /// Number of live tasks of the group itself.
    pub fn nr_tasks(self) -> u32 {
        self.group().nr_tasks
    }

    /// Sizes of the group's own lists on this node.
    pub fn sizes(self) -> LruSizes {
        self.lruvec().sizes()
    }

    /// Sizes of the lists of the group and its descendants, on this node.
    pub fn sizes_below(self) -> LruSizes {
        if self.is_root() {
            let stats = &self.of.mem.pgdat[self.of.node].stats;
            return LruSizes(Lru::ALL.map(|lru| stats[lru.stat() as usize]));
        }
        LruSizes(self.lruvec().subtree)
    }

    fn count(self, event: Event) -> u64 {
        self.group().events.get(event)
    }

    /// Page faults of the group's own tasks so far.
    pub fn faults(self) -> u64 {
        self.count(Event::Pgfault)
    }

    /// Faults of the group's own tasks that had to read from a disk.
    pub fn major_faults(self) -> u64 {
        self.count(Event::Pgmajfault)
    }

    /// The group's own pages that were reclaimed and came back: [anonymous, file].
    pub fn refaults(self) -> [u64; 2] {
        [Event::WorkingsetRefaultAnon, Event::WorkingsetRefaultFile].map(|event| self.count(event))
    }

    /// The group's own pages that reclaim has scanned.
    pub fn scanned(self) -> u64 {
        self.count(Event::PgscanKswapd) + self.count(Event::PgscanDirect)
    }

    /// The group's own pages that reclaim has freed.
    pub fn reclaimed(self) -> u64 {
        self.count(Event::PgstealKswapd) + self.count(Event::PgstealDirect)
    }
}

fn limit(pages: u64) -> Option<u64> {
    (pages < UNLIMITED).then_some(pages)
}
