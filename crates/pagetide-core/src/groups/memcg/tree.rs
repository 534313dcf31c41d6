//! The tree of groups: creation, removal and walks. A removed group's pages move to its parent.
//!
//! Linux: `mem_cgroup_css_alloc`, `mem_cgroup_css_offline` (mm/memcontrol.c),
//! `css_next_descendant_pre` (kernel/cgroup/cgroup.c, 6.1).

use super::{Memcg, MemcgEvents, MemcgPosition, MemoryEvent, ReclaimScope, ROOT};
use crate::ageing::lruvec::Lruvec;
use crate::ageing::Ageing;
use crate::config::era::Era;
use crate::config::SlabAccounting;
use crate::groups::page_counter::UNLIMITED;
use crate::groups::Groups;
use crate::interface::effect::Effects;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::units::errno::Errno;
use crate::units::{MemcgId, NodeId};
use alloc::string::String;

impl Groups {
    fn children(&self, id: MemcgId) -> impl Iterator<Item = &Memcg> {
        let first = self.memcgs[id].first_child;
        core::iter::successors(self.memcgs.get(first.idx()), |child| {
            self.memcgs.get(child.next_sibling.idx())
        })
    }

    fn unlink(&mut self, id: MemcgId) {
        self.idle_groups.forget();
        let Memcg { parent, prev_sibling, next_sibling, .. } = self.memcgs[id];
        if prev_sibling.is_some() {
            self.memcgs[prev_sibling].next_sibling = next_sibling;
        } else {
            self.memcgs[parent].first_child = next_sibling;
        }
        if next_sibling.is_some() {
            self.memcgs[next_sibling].prev_sibling = prev_sibling;
        } else {
            self.memcgs[parent].last_child = prev_sibling;
        }
    }

    /// The group after `at` in a walk over `root` and its descendants, parents first (Linux
    /// `css_next_descendant_pre`).
    pub(crate) fn next_memcg(&self, root: MemcgId, at: MemcgId) -> Option<MemcgId> {
        let child = self.memcgs[at].first_child;
        if child.is_some() {
            return Some(child);
        }
        let mut at = at;
        while at != root {
            let group = &self.memcgs[at];
            if group.next_sibling.is_some() {
                return Some(group.next_sibling);
            }
            at = group.parent;
        }
        None
    }

    /// The group after a position in a walk over all groups that were not removed; `None`: the first.
    pub(crate) fn next_online(&self, after: Option<MemcgPosition>) -> Option<MemcgId> {
        let Some(after) = after.and_then(|after| self.at_position_in_walk(after)) else {
            return Some(ROOT);
        };
        let next = core::iter::successors(Some(after), |&at| self.next_memcg(ROOT, at)).skip(1);
        next.into_iter().find(|&at| self.memcgs[at].online)
    }

    /// Whether `memcg` is `ancestor` or its descendant.
    pub(crate) fn is_descendant(&self, memcg: MemcgId, ancestor: MemcgId) -> bool {
        ReclaimScope::new(&self.memcgs, Some(ancestor)).contains(|| memcg)
    }

    pub(crate) fn position_of(&self, id: MemcgId) -> MemcgPosition {
        MemcgPosition { id, generation: self.memcgs[id].generation }
    }

    /// The group of a position, unless it was removed.
    pub(crate) fn at_position(&self, position: MemcgPosition) -> Option<MemcgId> {
        let group = &self.memcgs[position.id];
        (group.online && group.generation == position.generation).then_some(position.id)
    }

    /// The same for a walk, which also visits removed groups that their caches keep alive.
    pub(crate) fn at_position_in_walk(&self, position: MemcgPosition) -> Option<MemcgId> {
        let group = &self.memcgs[position.id];
        let exists = group.online || group.dying;
        (exists && group.generation == position.generation).then_some(position.id)
    }

    /// Resets saved walk positions that are at a group that is being removed (Linux
    /// `invalidate_reclaim_iterators`).
    fn forget_positions(&mut self, id: MemcgId) {
        let mut at = id;
        while at.is_some() {
            let group = &mut self.memcgs[at];
            for lruvec in &mut group.lruvecs {
                if lruvec.reclaim_position == id {
                    lruvec.reclaim_position = MemcgId::NONE;
                }
            }
            at = group.parent;
        }
    }

    /// Counts an event of memory.events in a group and its ancestors.
    pub(crate) fn memory_event(&mut self, memcg: MemcgId, event: MemoryEvent) {
        self.memcgs[memcg].memory_events_local[event as usize] += 1;
        let mut at = memcg;
        while at.is_some() {
            self.memcgs[at].memory_events[event as usize] += 1;
            at = self.memcgs[at].parent;
        }
    }

    pub(crate) fn lruvec(&self, memcg: MemcgId, node: NodeId) -> &Lruvec {
        &self.memcgs[memcg].lruvecs[node]
    }

    /// Whether the group exists and has not been removed.
    pub fn memcg_is_online(&self, id: MemcgId) -> bool {
        self.memcgs.get(id.idx()).is_some_and(|memcg| memcg.online)
    }
}

impl Kernel {
    /// Adds a group under `parent` (mkdir).
    ///
    /// # Errors
    ///
    /// ENOENT if the parent does not exist. ENOSPC if there are already 65534 groups, or 65535
    /// groups with objects (a removed group counts while any of its objects exists).
    pub fn create_memcg(&mut self, name: String, parent: MemcgId) -> Result<MemcgId, Errno> {
        if !self.groups.memcg_is_online(parent) {
            return Err(Errno::Enoent);
        }
        let has_owner = self.slabs.accounting == SlabAccounting::PerObject;
        if has_owner && !self.slabs.objcgs.has_room() {
            return Err(Errno::Enospc);
        }
        let nr_nodes = self.mem.pgdat.len();
        let ageing = self.new_ageing();
        let mut group = Memcg::new(name, parent, nr_nodes, ageing);
        group.swappiness = self.groups.memcgs[parent].swappiness;
        let id = match self.groups.free_memcgs.pop() {
            Some(id) => {
                group.generation = self.groups.memcgs[id].generation;
                self.groups.memcgs[id] = group;
                self.groups.parents[id] = parent;
                id
            }
            None => {
                let id = MemcgId(u16::try_from(self.groups.memcgs.len()).unwrap_or(u16::MAX));
                if id.is_none() {
                    return Err(Errno::Enospc);
                }
                self.groups.memcgs.push(group);
                self.groups.parents.push(parent);
                id
            }
        };
        self.groups.idle_groups.forget();
        let last = core::mem::replace(&mut self.groups.memcgs[parent].last_child, id);
        self.groups.memcgs[id].prev_sibling = last;
        if last.is_some() {
            self.groups.memcgs[last].next_sibling = id;
        } else {
            self.groups.memcgs[parent].first_child = id;
        }
        self.groups.memcg_lru.iter_mut().for_each(|list| list.add(id));
        if has_owner {
            self.create_objcg(id);
        }
        Ok(id)
    }

    /// Moves objects and their charges to the parent, unless the group's own caches hold them. In
    /// that case the caches also keep the group alive. Removes what is moved from the group's
    /// counters.
    fn reparent_kernel_memory(&mut self, id: MemcgId, parent: MemcgId) {
        self.reparent_cached(id, parent);
        let keeps = match self.slabs.accounting {
            SlabAccounting::Off => false,
            SlabAccounting::PerObject => {
                self.reparent_objcgs(id, parent);
                false
            }
            SlabAccounting::PerGroupCachesReparent => {
                self.deactivate_clones(id, parent);
                false
            }
            SlabAccounting::PerGroupCaches => {
                self.deactivate_clones(id, parent);
                true
            }
        };
        if !keeps {
            let pages = core::mem::take(&mut self.groups.memcgs[id].kernel_pages);
            self.groups.memcgs[parent].kernel_pages += pages;
        }
        // Memory of dying children stays charged.
        let kept = self.groups.memcgs[id].kernel_pages
            + self.groups.children(id).map(|child| child.memory.usage).sum::<u64>();
        let group = &mut self.groups.memcgs[id];
        let memory = core::mem::replace(&mut group.memory.usage, kept) - kept;
        let kmem = core::mem::replace(&mut group.kmem.usage, kept) - kept;
        let swap = core::mem::take(&mut group.swap.usage);
        if parent == ROOT {
            // The root's own pages and slots are not charged.
            let root = &mut self.groups.memcgs[ROOT];
            root.memory.usage -= memory;
            root.kmem.usage -= kmem;
            root.swap.usage -= swap;
        }
    }

    /// Releases the id of a removed group that nothing keeps alive.
    pub(crate) fn release_memcg_if_unused(&mut self, id: MemcgId) {
        let group = &self.groups.memcgs[id];
        if !group.dying || !group.clones.is_empty() || group.first_child.is_some() {
            return;
        }
        let parent = group.parent;
        self.uncharge_counters(id);
        self.groups.forget_positions(id);
        self.groups.unlink(id);
        let group = &mut self.groups.memcgs[id];
        debug_assert!(group.kernel_pages == 0 && group.memory.usage == 0, "{id:?} has memory");
        let mut events = group.events;
        events.add_all(&group.removed_events);
        let generation = group.generation + 1;
        self.groups.memcgs[id] = Memcg {
            online: false,
            generation,
            ..Memcg::new(String::new(), MemcgId::NONE, 0, Ageing::built_in(&Era::default()))
        };
        self.groups.parents[id] = MemcgId::NONE;
        self.groups.memcgs[parent].removed_events.add_all(&events);
        self.groups.free_memcgs.push(id);
        self.release_memcg_if_unused(parent);
    }

    /// Moves the pages on a group's lists to the tails of its parent's lists.
    fn reparent_lists(&mut self, id: MemcgId, parent: MemcgId) {
        for node in 0..self.mem.pgdat.len() {
            let moved = self.reparent_lruvec(id, parent, NodeId(node as u8));
            self.groups.memcgs[id].charged -= moved;
            self.groups.memcgs[parent].charged += moved;
        }
        // Pages that compaction has isolated will return to the parent's lists.
        for (pfn, _) in self.compactions.in_flight() {
            let page = &mut self.mem.pages[pfn];
            if page.memcg == id {
                page.memcg = parent;
                self.groups.memcgs[id].charged -= 1;
                self.groups.memcgs[parent].charged += 1;
            }
        }
    }

    /// Ids of all groups in walk order, the root first.
    pub fn memcg_ids(&self) -> impl Iterator<Item = MemcgId> + '_ {
        core::iter::successors(Some(ROOT), |&id| self.groups.next_memcg(ROOT, id))
    }

    /// Number of descendants of a group, and of removed descendants that still exist (cgroup.stat).
    pub fn nr_descendants(&self, memcg: MemcgId) -> (u64, u64) {
        let (mut living, mut dying) = (0, 0);
        let mut at = Some(memcg).filter(|id| id.idx() < self.groups.memcgs.len());
        while let Some(next) = at.and_then(|at| self.groups.next_memcg(memcg, at)) {
            let group = &self.groups.memcgs[next];
            living += u64::from(group.online);
            dying += u64::from(group.dying);
            at = Some(next);
        }
        (living, dying)
    }

    /// Swappiness of a group: its own (version 1), or the machine's.
    pub fn memcg_swappiness(&self, memcg: MemcgId) -> u32 {
        self.groups.memcgs[memcg].swappiness.unwrap_or(self.config.swappiness)
    }

    /// Slots that a group may still use (Linux `mem_cgroup_get_nr_swap_pages`). In version 1 swap
    /// alone has no limit.
    pub(crate) fn memcg_swap_left(&self, memcg: MemcgId) -> u64 {
        let mut left = u64::from(self.swap.free());
        if self.era.counts_memory_and_swap {
            return left;
        }
        let mut at = memcg;
        while left > 0 && at.is_some() && at != ROOT {
            left = left.min(self.groups.memcgs[at].swap.margin());
            at = self.groups.memcgs[at].parent;
        }
        left
    }

    /// Counters of a group and its descendants, including removed groups (memory.stat).
    pub fn memcg_events(&self, memcg: MemcgId) -> MemcgEvents {
        let mut sum = MemcgEvents::default();
        let mut at = Some(memcg).filter(|id| id.idx() < self.groups.memcgs.len());
        while let Some(id) = at {
            sum.add_all(&self.groups.memcgs[id].events);
            sum.add_all(&self.groups.memcgs[id].removed_events);
            at = self.groups.next_memcg(memcg, id);
        }
        sum
    }
}

impl<O: Owners> Manager<O> {
    pub(crate) fn do_remove_memcg(&mut self, id: MemcgId) -> Result<Effects<'_>, Errno> {
        if !self.groups.memcg_is_online(id) {
            return Err(Errno::Enoent);
        }
        let group = &self.groups.memcgs[id];
        if id == ROOT || group.nr_tasks > 0 || self.groups.children(id).any(|child| child.online) {
            return Err(Errno::Ebusy);
        }
        let parent = group.parent;
        self.groups.idle_groups.forget();
        self.groups.set_protection(id, 0, 0);
        self.drain_all_stock(id);
        self.lru_add_drain_all();
        self.reparent_lists(id, parent);
        self.groups.memcg_lru.iter_mut().for_each(|list| list.remove(id));
        self.reparent_tables(id, parent);
        // The parent's counts include these pages.
        self.groups.memcgs[id].file_dirty = 0;
        self.groups.memcgs[id].writeback = 0;
        self.groups.memcgs[id].zswap_bytes = 0;
        self.groups.memcgs[id].zswapped = 0;
        if let Some(zswap) = &mut self.swap.zswap {
            zswap.reparent(id, parent);
        }
        O::group_removed(self, id, parent);
        // In version 1 the counter may lack slots of pages that are in memory.
        if self.groups.memcgs[id].swap.usage > 0
            || self.era.counts_memory_and_swap && self.swap.used() > 0
        {
            self.swap.reparent(id, parent);
        }
        self.forget_soft_limit(id);
        self.groups.memcgs[id].soft_limit = UNLIMITED;
        self.reparent_kernel_memory(id, parent);
        let group = &mut self.groups.memcgs[id];
        debug_assert!(group.charged == 0, "{} pages left in a removed group", group.charged);
        group.online = false;
        group.dying = true;
        self.release_memcg_if_unused(id);
        Ok(self.take_effects())
    }

    /// Moves the charges of page tables to the parent. A task that moves to another group leaves
    /// its page tables charged to the old group until that group is removed.
    fn reparent_tables(&mut self, id: MemcgId, parent: MemcgId) {
        if self.groups.memcgs[id].charged == 0 {
            return;
        }
        let (pages, memcgs) = (&mut self.kernel.mem.pages, &mut self.kernel.groups.memcgs);
        self.owners.for_each_table_frame(&mut |table| {
            let page = &mut pages[table];
            if page.memcg == id {
                page.memcg = parent;
                memcgs[id].charged -= 1;
                memcgs[parent].charged += 1;
            }
        });
    }
}
