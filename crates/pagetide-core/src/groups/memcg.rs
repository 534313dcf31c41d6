//! Memory groups (memory cgroups): a tree of groups, each with counters and one [`Lruvec`] per
//! node.
//!
//! Linux: `struct mem_cgroup`, mm/memcontrol.c, kernel/cgroup/cgroup.c. The lists and counters of
//! the core are kept by group and node. Group 0 is the root; it owns all pages that no other group
//! owns. Groups are created and removed while the machine runs. A removed group's pages, slots and
//! counts go to its parent, and its id is reused.
//!
//! Difference from Linux 6.1: there a removed group continues to exist, without a name, until its
//! last page is reclaimed. Here its pages move to the parent at once, as in later patches. This
//! costs a walk over the pages.
//!
//! Invariant: the links form a tree of the groups that are `online` or `dying`. A group in neither
//! state has no pages, slots or tasks. A dying group has slabs or dying children, but no page,
//! slot, task or stock.

pub mod events;
mod percpu;
mod tree;

use crate::ageing::lruvec::Lruvec;
use crate::ageing::Ageing;
use crate::groups::memcg_stock::CpuEvents;
use crate::groups::page_counter::{PageCounter, UNLIMITED};
use crate::slab::cached::CachedLists;
use crate::slab::objcg::NO_OWNER;
use crate::stats::psi::Psi;
use crate::units::digest::State;
use crate::units::{CacheId, Cpu, IdVec, MemcgId, NodeId, DEF_PRIORITY};
use alloc::string::String;
use alloc::vec::Vec;
pub use events::MemcgEvents;

/// Events of memory.events (Linux `enum memcg_memory_event`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum MemoryEvent {
    /// Memory was reclaimed from the group in spite of `memory.low`.
    Low = 0,
    /// The group was above `memory.high`, so it was reclaimed from and throttled.
    High = 1,
    /// The group hit its limit.
    Max = 2,
    /// The group was out of memory: reclaim found nothing more.
    Oom = 3,
    /// A task of the group was OOM-killed.
    OomKill = 4,
    /// All its tasks were killed together (`memory.oom.group`).
    OomGroupKill = 5,
    /// A page was not swapped out because of a swap limit (memory.swap.events).
    SwapMax = 6,
    /// A page was not swapped out: a swap limit was met, or no slot was free (memory.swap.events).
    SwapFail = 7,
}

/// Number of [`MemoryEvent`]s.
pub const NR_MEMORY_EVENTS: usize = 8;

/// One memory group.
#[derive(Clone, Debug, State)]
pub struct Memcg {
    /// Name, without the path.
    #[state(skip)] // for reports
    pub name: String,
    /// Not removed.
    pub online: bool,
    /// Removed, but kept alive by its caches ([`crate::slab`], per_group). It cannot be found by
    /// name, but walks visit it.
    pub dying: bool,
    /// Number of earlier groups with this id. A saved position uses it to detect that its group is
    /// gone.
    pub(crate) generation: u32,
    /// Parent, also in [`Manager::parents`](crate::interface::manager::Manager). Root: [`MemcgId::NONE`].
    pub parent: MemcgId,
    pub(crate) first_child: MemcgId,
    pub(crate) last_child: MemcgId,
    pub(crate) prev_sibling: MemcgId,
    pub(crate) next_sibling: MemcgId,
    /// LRU lists, by node.
    pub lruvecs: IdVec<NodeId, Lruvec>,
    /// Pages charged to this group itself (without children and stocks).
    pub charged: u64,
    /// Memory in use by the group and its descendants, its limits and protections. The root's own
    /// pages are not charged, as in Linux.
    pub memory: PageCounter,
    /// Swap slots charged to the group and its descendants, and their limit. Version 1 charges a
    /// slot only while its page is not in memory, and has no limit.
    pub swap: PageCounter,
    /// `memory.soft_limit_in_bytes`, in pages.
    pub soft_limit: u64,
    /// `memory.swappiness`; `None`: the machine's (cgroup version 2).
    pub swappiness: Option<u32>,
    /// `memory.global_shrink_priority`.
    pub shrink_priority: i8,
    /// Address spaces of live tasks.
    pub nr_tasks: u32,
    /// Event counters of the group itself.
    pub events: MemcgEvents,
    /// Event counters of removed descendants.
    pub(crate) removed_events: MemcgEvents,
    /// `memory.events`, including descendants, by [`MemoryEvent`].
    pub memory_events: [u64; NR_MEMORY_EVENTS],
    /// `memory.events.local`: without descendants.
    pub memory_events_local: [u64; NR_MEMORY_EVENTS],
    /// `memory.oom.group`: the OOM killer kills all tasks of the group and its descendants, or
    /// none.
    pub oom_group: bool,
    /// Pressure stall information of the tasks in the group and its descendants.
    pub psi: Psi,
    /// Pages scanned for this group in the present vmpressure window.
    pub(crate) vmpressure_scanned: u64,
    /// Kernel memory in use by the group and its descendants: slabs and page tables.
    pub kmem: PageCounter,
    /// Dirty pages of files charged to the group and its descendants.
    pub(crate) file_dirty: u64,
    /// Pages under writeback, also to swap, charged to the group and its descendants.
    pub(crate) writeback: u64,
    /// Bytes of compressed pages in zswap that are charged to the group and its descendants.
    pub(crate) zswap_bytes: u64,
    /// Number of these pages, including those without bytes.
    pub(crate) zswapped: u64,
    /// `memory.zswap.max`, in pages.
    pub(crate) zswap_max: u64,
    /// `memory.zswap.writeback`.
    pub(crate) zswap_writeback: bool,
    /// Pages charged to this group itself for slabs and zswap.
    pub kernel_pages: u64,
    /// Bytes of objects charged to this group itself, as [unreclaimable, reclaimable]. Changes that
    /// are still in stocks are missing.
    pub(crate) slab_bytes: [i64; 2],
    /// Owner of new objects.
    pub(crate) objcg: u16,
    /// All owners that are charged to this group.
    pub(crate) objcgs: Vec<u16>,
    /// Owner that pays for the memory of this group's own counters.
    pub(crate) counters_owner: u16,
    /// Bytes charged for these counters.
    pub(crate) counters_bytes: u32,
    /// Its clones of caches.
    pub(crate) clones: Vec<CacheId>,
    /// Unused objects cached by the kernel, by node.
    pub(crate) cached: IdVec<NodeId, CachedLists>,
    /// Charges and uncharges by CPU; counted only while a soft limit is set.
    pub(crate) cpu_events: IdVec<Cpu, CpuEvents>,
}

/// The root group.
pub const ROOT: MemcgId = MemcgId(0);

impl Memcg {
    /// An empty group with lists of this kind on `nr_nodes` nodes.
    pub fn new(name: String, parent: MemcgId, nr_nodes: usize, ageing: Ageing) -> Memcg {
        Memcg {
            name,
            online: true,
            dying: false,
            generation: 0,
            parent,
            first_child: MemcgId::NONE,
            last_child: MemcgId::NONE,
            prev_sibling: MemcgId::NONE,
            next_sibling: MemcgId::NONE,
            lruvecs: alloc::vec![Lruvec::new(ageing); nr_nodes].into(),
            charged: 0,
            memory: PageCounter::default(),
            swap: PageCounter::default(),
            soft_limit: UNLIMITED,
            swappiness: None,
            shrink_priority: DEF_PRIORITY,
            nr_tasks: 0,
            events: MemcgEvents::default(),
            removed_events: MemcgEvents::default(),
            memory_events: [0; NR_MEMORY_EVENTS],
            memory_events_local: [0; NR_MEMORY_EVENTS],
            oom_group: false,
            psi: Psi::default(),
            vmpressure_scanned: 0,
            kmem: PageCounter::default(),
            file_dirty: 0,
            writeback: 0,
            zswap_bytes: 0,
            zswapped: 0,
            zswap_max: UNLIMITED,
            zswap_writeback: true,
            kernel_pages: 0,
            slab_bytes: [0; 2],
            objcg: NO_OWNER,
            objcgs: Vec::new(),
            counters_owner: NO_OWNER,
            counters_bytes: 0,
            clones: Vec::new(),
            cached: alloc::vec![CachedLists::default(); nr_nodes].into(),
            cpu_events: Vec::new().into(),
        }
    }

    /// Pages by which the group is over its soft limit (Linux `soft_limit_excess`).
    pub const fn soft_limit_excess(&self) -> u64 {
        self.memory.usage.saturating_sub(self.soft_limit)
    }
}

/// A saved place in a walk over the tree, valid even if its group is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub(crate) struct MemcgPosition {
    pub id: MemcgId,
    pub generation: u32,
}

/// The groups that a reclaim targets: all groups, or one group with its descendants.
#[derive(Clone, Copy, Debug)]
pub struct ReclaimScope<'m> {
    memcgs: &'m IdVec<MemcgId, Memcg>,
    target: Option<MemcgId>,
    counts_random: bool,
}

impl<'m> ReclaimScope<'m> {
    pub(crate) fn new(
        memcgs: &'m IdVec<MemcgId, Memcg>,
        target: Option<MemcgId>,
    ) -> ReclaimScope<'m> {
        ReclaimScope { memcgs, target, counts_random: true }
    }

    /// The same scope, in which references through mappings with random advice do not count.
    /// (References through mappings with sequential advice never count.)
    pub(crate) fn without_random(self) -> ReclaimScope<'m> {
        ReclaimScope { counts_random: false, ..self }
    }

    /// Whether references through a mapping with this advice count (Linux 6.3 `vma_has_recency`).
    pub(crate) fn has_recency(&self, is_sequential: bool, is_random: bool) -> bool {
        !is_sequential && (self.counts_random || !is_random)
    }

    /// Whether a group is in the scope. `memcg` is called only if the scope is not the whole
    /// machine.
    #[inline]
    pub fn contains(&self, memcg: impl FnOnce() -> MemcgId) -> bool {
        let Some(target) = self.target else { return true };
        let mut at = memcg();
        while at.is_some() {
            if at == target {
                return true;
            }
            at = self.memcgs[at].parent;
        }
        false
    }
}
