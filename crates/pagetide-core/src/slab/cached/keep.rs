//! Adding objects to the lists of cached objects, using them again, and freeing them.
//!
//! Linux: `dput`, `iput`, `list_lru_add`, `list_lru_del` (6.1).

use super::{CachedEntry, CachedId, CachedKind, NONE, PAGES_A_SHADOW_NODE, SHADOW_NODES};
use crate::interface::effect::Effect;
use crate::interface::kernel::Kernel;
use crate::slab::object::Object;
use crate::slab::SlabError;
use crate::slab::Slabs;
use crate::units::{CacheId, Cpu, MemcgId, NodeId};

impl Slabs {
    /// Checks that an object is in use and not cached.
    fn check_object(&self, object: Object) -> Result<(), SlabError> {
        let it = self.caches.get(object.cache.idx()).ok_or(SlabError::UnknownCache)?;
        it.check_in_use(object.number)?;
        match it.is_cached(object.number) {
            true => Err(SlabError::IsCached),
            false => Ok(()),
        }
    }

    fn note_entry(&mut self, object: Object, at: u32) {
        let it = &mut self.caches[object.cache];
        let number = object.number as usize;
        if it.entries.len() <= number {
            it.entries.resize(number + 1, NONE);
        }
        it.entries[number] = at;
        it.set_returnable(object.number, false);
    }
}

impl Kernel {
    /// Caches an unused object, such as a closed dentry with its inode (`holds`). When memory is
    /// short, the kernel frees the object, and then `holds`.
    ///
    /// # Errors
    ///
    /// [`SlabError::NotAnObject`], [`SlabError::DoubleFree`], [`SlabError::UnknownCache`] if one of
    /// them is not an object in use; [`SlabError::IsCached`] if one is cached already.
    pub fn cache_object(
        &mut self,
        object: Object,
        holds: Option<Object>,
        kind: CachedKind,
    ) -> Result<CachedId, SlabError> {
        self.slabs.check_object(object)?;
        if let Some(holds) = holds {
            self.slabs.check_object(holds)?;
            if holds == object {
                return Err(SlabError::IsCached);
            }
        }
        let at = self.keep(object, holds.unwrap_or(Object::NONE), kind as usize, (0, 0));
        Ok(CachedId { entry: at, generation: self.slabs.cached.entries[at as usize].generation })
    }

    /// Puts an object at the tail of a list of its group and node. Returns its entry.
    pub(super) fn keep(
        &mut self,
        object: Object,
        holds: Object,
        list: usize,
        place: (u32, u32),
    ) -> u32 {
        let at = self.slabs.cached.create(object, holds, list, place);
        self.slabs.note_entry(object, at);
        if holds.is_some() {
            self.slabs.note_entry(holds, at);
        }
        let (memcg, node) = self.list_of(object);
        let lists = &mut self.groups.memcgs[memcg].cached[node];
        self.slabs.cached.push_back(&mut lists.lists[list], at);
        match list {
            SHADOW_NODES => self.groups.idle_groups.pages_removed(memcg, node, PAGES_A_SHADOW_NODE),
            _ => self.groups.idle_groups.must_visit(memcg, node),
        }
        at
    }

    /// Whether a cached object still exists.
    pub fn is_still_cached(&self, id: CachedId) -> bool {
        let entry = self.slabs.cached.entries.get(id.entry as usize);
        entry.is_some_and(|entry| entry.generation == id.generation && entry.object.is_some())
    }

    /// Marks a cached object as used; it stays cached. Returns whether it still exists.
    pub fn use_cached(&mut self, id: CachedId) -> bool {
        let is_there = self.is_still_cached(id);
        if is_there {
            self.slabs.cached.entries[id.entry as usize].referenced = true;
        }
        is_there
    }

    /// If a cached object still exists, takes it, and the object that it holds, out of the cache.
    pub fn uncache(&mut self, id: CachedId) -> Option<(Object, Option<Object>)> {
        if !self.is_still_cached(id) {
            return None;
        }
        let (object, holds) = self.take_entry(id.entry);
        Some((object, Some(holds).filter(|holds| holds.is_some())))
    }

    /// Takes an entry off its list and frees the entry.
    pub(super) fn take_entry(&mut self, at: u32) -> (Object, Object) {
        let CachedEntry { object, holds, list, .. } = self.slabs.cached.entries[at as usize];
        let (memcg, node) = self.list_of(object);
        let list = &mut self.groups.memcgs[memcg].cached[node].lists[list];
        self.slabs.cached.remove(list, at);
        self.slabs.cached.entries[at as usize].object = Object::NONE;
        self.slabs.cached.free.push(at);
        for kept in [object, holds].into_iter().filter(|kept| kept.is_some()) {
            let it = &mut self.slabs.caches[kept.cache];
            it.entries[kept.number as usize] = NONE;
            it.set_returnable(kept.number, true);
        }
        (object, holds)
    }

    /// The group and node of the list that an object is on.
    pub(crate) fn list_of(&self, object: Object) -> (MemcgId, NodeId) {
        let mut memcg = self.memcg_of_object(object);
        // Objects of a removed group are on the lists of its parent, even if the group's caches
        // still exist.
        while self.groups.memcgs[memcg].dying {
            memcg = self.groups.memcgs[memcg].parent;
        }
        (memcg, self.slabs.node_of_object(object))
    }

    /// Moves the cached objects of a removed group to its parent.
    pub(crate) fn reparent_cached(&mut self, memcg: MemcgId, parent: MemcgId) {
        for node in 0..self.mem.pgdat.len() {
            let mut from = core::mem::take(&mut self.groups.memcgs[memcg].cached[node]);
            let to = &mut self.groups.memcgs[parent].cached[node];
            for (from, to) in from.lists.iter_mut().zip(&mut to.lists) {
                self.slabs.cached.splice(from, to);
            }
            to.deferred.iter_mut().zip(from.deferred).for_each(|(to, from)| *to += from);
        }
    }

    /// Scans up to `nr` objects of a list, oldest first: used objects go to the tail, the others
    /// are freed. Returns how many were scanned and how many freed.
    pub(crate) fn prune_cached(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        kind: CachedKind,
        nr: u64,
        cpu: Cpu,
    ) -> (u64, u64) {
        let (mut seen, mut freed) = (0, 0);
        while seen < nr {
            let list = &mut self.groups.memcgs[memcg].cached[node].lists[kind as usize];
            let at = list.head;
            if at == NONE {
                break;
            }
            seen += 1;
            let entry = &mut self.slabs.cached.entries[at as usize];
            if core::mem::take(&mut entry.referenced) {
                self.slabs.cached.remove(list, at);
                self.slabs.cached.push_back(list, at);
                continue;
            }
            let (object, holds) = self.take_entry(at);
            self.mem.work.objects_pruned += 1;
            self.free_by_rcu(object, cpu);
            freed += 1;
            if holds.is_some() {
                let kept = self.cache_object(holds, None, CachedKind::Inode);
                debug_assert!(kept.is_ok(), "{holds:?}: {kept:?}");
            }
        }
        (seen, freed)
    }

    /// From now on, objects that shrinkers free and page-cache nodes stay allocated and charged
    /// until the world frees them on [`Effect::FreeLate`] (Linux: `call_rcu`). If reclaim finds
    /// nothing else, it makes no progress, and a group at its limit may run out of memory.
    pub fn free_late(&mut self) {
        self.slabs.defers_frees = true;
    }

    /// Frees an object that may still have readers (RCU).
    pub(crate) fn free_by_rcu(&mut self, object: Object, cpu: Cpu) {
        match self.slabs.defers_frees {
            true => self.step.effects.push(Effect::FreeLate { object, cpu }),
            false => self.free_known(object, cpu),
        }
    }

    /// Frees an object that certainly exists.
    pub(crate) fn free_known(&mut self, object: Object, cpu: Cpu) {
        let root = self.cache_of_object(object);
        let freed = self.kmem_cache_free(root, object, cpu);
        debug_assert_eq!(freed, Ok(()), "{object:?}");
    }

    /// Number of cached objects of a kind in a group itself.
    pub fn nr_cached(&self, memcg: MemcgId, kind: CachedKind) -> u64 {
        let lists = self.groups.memcgs.get(memcg.idx()).into_iter().flat_map(|memcg| &memcg.cached);
        lists.map(|lists| lists.lists[kind as usize].len).sum()
    }

    /// The kind of a cache's objects, by Linux's name for the cache.
    pub fn cached_kind(&self, cache: CacheId) -> Option<CachedKind> {
        let it = self.slabs.kmem_cache(cache)?;
        match it.name.as_str() {
            "dentry" => Some(CachedKind::Dentry),
            name if name.ends_with("inode_cache") => Some(CachedKind::Inode),
            _ => None,
        }
    }
}
