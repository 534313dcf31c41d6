//! Memory groups: a tree of groups; each has its counters and one [`Lruvec`] for each node.
//!
//! Linux: `struct mem_cgroup`, mm/memcontrol.c, kernel/cgroup/cgroup.c. Everything the core does is
//! keyed by group and node. Group 0 is the root; it owns all pages that no other group owns. Groups
//! come and go while the machine runs; a removed group's pages, slots and counts go to its parent, and
//! its id is reused.
//!
//! Difference from Linux 6.1: there a removed group lives on, without a name, until its last page is
//! reclaimed; here its pages move to the parent at once, as in later patches, at the cost of a walk over
//! these pages.
//!
//! Invariant: links form a tree of the groups that are `online` or `dying`; a group in neither state has no
//! pages, slots or tasks. A dying group has slabs, or dying groups below it, and no page, slot, task or
//! stock.

pub mod events;
mod percpu;
mod tree;

use crate::digest::State;
use crate::lruvec::{Lruvec, NR_LRU_LISTS};
use crate::memcg_stock::CpuEvents;
use crate::page_counter::{PageCounter, UNLIMITED};
use crate::psi::Psi;
use crate::slab::cached::CachedLists;
use crate::slab::objcg::NO_OWNER;
use crate::units::{CacheId, MemcgId, NodeId, DEF_PRIORITY};
use crate::vmstat::Event;
use crate::zone::MAX_NR_ZONES;
use alloc::string::String;
use alloc::vec::Vec;
pub use events::MemcgEvents;

/// What happened to a group, as memory.events lists it (Linux `enum memcg_memory_event`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum MemoryEvent {
    /// Reclaimed from although below `memory.low`.
    Low = 0,
    /// Above `memory.high`: reclaimed from and throttled.
    High = 1,
    /// Met its limit.
    Max = 2,
    /// Out of memory: reclaim found nothing more.
    Oom = 3,
    /// A task of the group was killed for it.
    OomKill = 4,
    /// All its tasks were killed together (`memory.oom.group`).
    OomGroupKill = 5,
    /// A page was not swapped out, for a limit of swap (memory.swap.events).
    SwapMax = 6,
    /// A page was not swapped out, for a limit or for lack of slots (memory.swap.events).
    SwapFail = 7,
}

/// Number of [`MemoryEvent`]s.
pub const NR_MEMORY_EVENTS: usize = 8;

/// One group.
#[derive(Clone, Debug, State)]
pub struct Memcg {
    /// Name, for reports.
    #[state(skip)] // for reports
    pub name: String,
    /// It exists: not removed.
    pub online: bool,
    /// Removed, but still held by its caches ([`crate::slab`], per_group): nobody finds it by name, but
    /// walks meet it.
    pub dying: bool,
    /// How many groups had this id before: tells a position in a walk that its group is gone.
    pub(crate) generation: u32,
    /// Parent, also in [`Manager::parents`](crate::manager::Manager); [`MemcgId::NONE`] for the root.
    pub parent: MemcgId,
    pub(crate) first_child: MemcgId,
    pub(crate) last_child: MemcgId,
    pub(crate) prev_sibling: MemcgId,
    pub(crate) next_sibling: MemcgId,
    /// Lists, one set a node.
    pub lruvecs: Vec<Lruvec>,
    /// Pages charged to this group itself (children and stocks not included).
    pub charged: u64,
    /// Memory in use here and below, its limits and protections. The root's is never charged by its
    /// own pages, as in Linux.
    pub memory: PageCounter,
    /// Swap slots charged here and below, and their limit. Version 1 charges a slot while its page is out of memory,
    /// and has no limit.
    pub swap: PageCounter,
    /// `memory.soft_limit_in_bytes`, in pages.
    pub soft_limit: u64,
    /// `memory.swappiness`; `None`: that of the machine (cgroup version 2).
    pub swappiness: Option<u32>,
    /// `memory.global_shrink_priority`.
    pub shrink_priority: i8,
    /// Address spaces of live tasks.
    pub nr_tasks: u32,
    /// Counters of the group itself.
    pub events: MemcgEvents,
    /// Counters of groups below that were removed.
    pub(crate) removed_events: MemcgEvents,
    /// `memory.events`, with those of the groups below, by [`MemoryEvent`].
    pub memory_events: [u64; NR_MEMORY_EVENTS],
    /// `memory.events.local`: those of the group itself.
    pub memory_events_local: [u64; NR_MEMORY_EVENTS],
    /// `memory.oom.group`: its tasks, and those of the groups below, are killed all or none.
    pub oom_group: bool,
    /// Pressure stall information of the group's tasks and those below.
    pub psi: Psi,
    /// Pages scanned for its sake in the present window.
    pub(crate) vmpressure_scanned: u64,
    /// Kernel memory in use here and below: slabs and page tables.
    pub kmem: PageCounter,
    /// Pages charged to this group itself for slabs.
    pub kernel_pages: u64,
    /// Bytes of objects charged to this group itself, unreclaimable and reclaimable, as far as stocks have
    /// written them down.
    pub(crate) slab_bytes: [i64; 2],
    /// Owner of new objects, and all owners that the group pays for.
    pub(crate) objcg: u16,
    pub(crate) objcgs: Vec<u16>,
    /// Who pays for its counters, and for how many bytes.
    pub(crate) counters_owner: u16,
    pub(crate) counters_bytes: u32,
    /// Caches of its own.
    pub(crate) clones: Vec<CacheId>,
    /// Objects that the kernel keeps for it, by node.
    pub(crate) cached: Vec<CachedLists>,
    /// Charges and uncharges by CPU, when somebody has a soft limit.
    pub(crate) cpu_events: Vec<CpuEvents>,
}

/// The root group.
pub const ROOT: MemcgId = MemcgId(0);

impl Memcg {
    /// A group with empty lists on `nr_nodes` nodes.
    pub fn new(name: String, parent: MemcgId, nr_nodes: usize) -> Memcg {
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
            lruvecs: alloc::vec![Lruvec::new(); nr_nodes],
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
            kernel_pages: 0,
            slab_bytes: [0; 2],
            objcg: NO_OWNER,
            objcgs: Vec::new(),
            counters_owner: NO_OWNER,
            counters_bytes: 0,
            clones: Vec::new(),
            cached: alloc::vec![CachedLists::default(); nr_nodes],
            cpu_events: Vec::new(),
        }
    }

    /// Loads what a batch of reclaim looks at, line by line. Returns anything that depends on it.
    #[inline]
    pub(crate) fn warm(&self, node: NodeId) -> u64 {
        let own = self.memory.usage ^ self.memory.peak ^ self.charged ^ self.nr_tasks as u64;
        let counted = self.events.get(Event::PgscanKswapd) ^ self.events.get(Event::Pgactivate);
        let (Some(lruvec), Some(kept)) =
            (self.lruvecs.get(node.idx()), self.cached.get(node.idx()))
        else {
            return own ^ counted;
        };
        let [first, .., last] = &lruvec.zone_sizes;
        let sizes = first[0] ^ lruvec.zone_sizes[MAX_NR_ZONES / 2][0] ^ last[NR_LRU_LISTS - 1];
        let clocks = lruvec.subtree[0] ^ lruvec.nonresident_age ^ lruvec.file_cost;
        own ^ counted ^ sizes ^ clocks ^ kept.nr_unused() ^ kept.nr_shadow_nodes()
    }

    /// Pages by which the group is over its soft limit (Linux `soft_limit_excess`).
    pub const fn soft_limit_excess(&self) -> u64 {
        self.memory.usage.saturating_sub(self.soft_limit)
    }
}

/// A place in a walk over the tree that may outlive the group it is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub(crate) struct Position {
    pub id: MemcgId,
    pub generation: u32,
}

/// The groups that reclaim is for: all of them, or one and what is below it.
#[derive(Clone, Copy, Debug)]
pub struct Within<'m> {
    memcgs: &'m [Memcg],
    target: Option<MemcgId>,
    heeds_random: bool,
}

impl<'m> Within<'m> {
    pub(crate) fn new(memcgs: &'m [Memcg], target: Option<MemcgId>) -> Within<'m> {
        Within { memcgs, target, heeds_random: true }
    }

    /// The same, where references of mappings with advice random do not count, as those with advice sequential
    /// never do.
    pub(crate) fn without_random(self) -> Within<'m> {
        Within { heeds_random: false, ..self }
    }

    /// Whether references of a mapping with this advice count (Linux 6.3 `vma_has_recency`).
    pub(crate) fn heeds(&self, is_sequential: bool, is_random: bool) -> bool {
        !is_sequential && (self.heeds_random || !is_random)
    }

    /// Whether a group is one of them; it is asked for only if that makes a difference.
    #[inline]
    pub fn contains(&self, memcg: impl FnOnce() -> MemcgId) -> bool {
        let Some(target) = self.target else { return true };
        let mut at = memcg();
        while at.is_some() {
            if at == target {
                return true;
            }
            at = self.memcgs[at.idx()].parent;
        }
        false
    }
}
