//! Objects that nobody uses at the moment and that the kernel keeps: names and inodes.
//!
//! Linux: the lists of unused dentries and inodes of a super block (`list_lru`, fs/dcache.c, fs/inode.c),
//! one for each group and node. An object that is left to the kernel goes to the end of its list; one that
//! was used since is passed over once. An inode is held by its name and joins its own list when the name
//! is gone.
//!
//! Differs from Linux: one super block; an object is on the list from the moment it is left, not from
//! the second.
//!
//! Invariant: an object is on the list of the group that owns it ([`Manager::memcg_of_object`]; of the
//! nearest that still exists) and of its node, and its cache's `entries` names its entry.

use super::{Object, SlabError};
use crate::digest::Digest;
use crate::effect::Effect;
use crate::manager::Manager;
use crate::owners::Owners;
use crate::units::{CacheId, Cpu, MemcgId, NodeId};
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

/// Kinds of objects that are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum CachedKind {
    /// A name in a directory.
    Dentry = 0,
    /// What a name stands for.
    Inode = 1,
}

/// Number of kinds.
pub(crate) const NR_KINDS: usize = 2;

/// A kept object, as long as it is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CachedId {
    entry: u32,
    generation: u32,
}

#[derive(Clone, Debug)]
struct Entry {
    object: Object,
    /// Kept by this one, to be kept on its own afterwards.
    holds: Object,
    prev: u32,
    next: u32,
    generation: u32,
    kind: CachedKind,
    /// Used since it was last looked at.
    referenced: bool,
}

/// A list of kept objects (Linux `struct list_lru_one`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CachedList {
    head: u32,
    tail: u32,
    pub len: u64,
}

impl Default for CachedList {
    fn default() -> Self {
        CachedList { head: NONE, tail: NONE, len: 0 }
    }
}

/// The kept objects of one group on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CachedLists {
    pub lists: [CachedList; NR_KINDS],
    /// Objects that the shrinker should have looked at and did not, being too few for a batch.
    pub deferred: u64,
}

impl CachedLists {
    pub fn len(&self) -> u64 {
        self.lists.iter().map(|list| list.len).sum()
    }
}

/// Entries of all kept objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedObjects {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl CachedObjects {
    pub fn digest(&self, digest: &mut Digest) {
        digest.write_all(&[self.entries.len() as u64, self.free.len() as u64]);
        self.free.iter().for_each(|&at| digest.write_u64(at.into()));
        for (at, entry) in self.entries.iter().enumerate() {
            if !entry.object.is_some() {
                continue;
            }
            digest.write_u64(at as u64);
            let Entry { object, holds, prev, next, generation, kind, referenced } = entry;
            digest.write_all(&[object.number.into(), object.cache.0.into(), holds.number.into()]);
            digest.write_u64(holds.cache.0.into());
            digest.write_all(&[u64::from(*prev), u64::from(*next), u64::from(*generation)]);
            digest.write_all(&[*kind as u64, u64::from(*referenced)]);
        }
    }

    fn create(&mut self, object: Object, holds: Object, kind: CachedKind) -> u32 {
        let generation = 0;
        let entry =
            Entry { object, holds, prev: NONE, next: NONE, generation, kind, referenced: false };
        match self.free.pop() {
            Some(at) => {
                let generation = self.entries[at as usize].generation + 1;
                self.entries[at as usize] = Entry { generation, ..entry };
                at
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        }
    }

    fn push_back(&mut self, list: &mut CachedList, at: u32) {
        self.entries[at as usize].prev = list.tail;
        self.entries[at as usize].next = NONE;
        match list.tail {
            NONE => list.head = at,
            tail => self.entries[tail as usize].next = at,
        }
        list.tail = at;
        list.len += 1;
    }

    fn remove(&mut self, list: &mut CachedList, at: u32) {
        let Entry { prev, next, .. } = self.entries[at as usize];
        match prev {
            NONE => list.head = next,
            prev => self.entries[prev as usize].next = next,
        }
        match next {
            NONE => list.tail = prev,
            next => self.entries[next as usize].prev = prev,
        }
        list.len -= 1;
    }

    /// Puts all of `from` behind `to`, in the time of one (Linux `list_splice`).
    fn splice(&mut self, from: &mut CachedList, to: &mut CachedList) {
        let moved = core::mem::take(from);
        if moved.head == NONE {
            return;
        }
        match to.tail {
            NONE => to.head = moved.head,
            tail => {
                self.entries[tail as usize].next = moved.head;
                self.entries[moved.head as usize].prev = tail;
            }
        }
        to.tail = moved.tail;
        to.len += moved.len;
    }

    /// Objects of a list, in its order. A loop in the links ends it.
    pub fn objects(&self, list: &CachedList) -> impl Iterator<Item = (Object, Object)> + '_ {
        let first = Some(list.head).filter(|&at| at != NONE);
        core::iter::successors(first, |&at| {
            Some(self.entries[at as usize].next).filter(|&at| at != NONE)
        })
        .take(self.entries.len() + 1)
        .map(|at| (self.entries[at as usize].object, self.entries[at as usize].holds))
    }
}

impl<O: Owners> Manager<O> {
    /// Leaves an object to the kernel, which frees it when memory is short and `holds` after it: a name
    /// that nobody has open any more, and its inode.
    ///
    /// # Errors
    /// [`SlabError::NotAnObject`], [`SlabError::DoubleFree`], [`SlabError::UnknownCache`] if one of them is
    /// not an object in use; [`SlabError::IsCached`] if one is kept already.
    pub fn cache_object(
        &mut self,
        object: Object,
        holds: Option<Object>,
        kind: CachedKind,
    ) -> Result<CachedId, SlabError> {
        self.check_object(object)?;
        if let Some(holds) = holds {
            self.check_object(holds)?;
            if holds == object {
                return Err(SlabError::IsCached);
            }
        }
        let at = self.slabs.cached.create(object, holds.unwrap_or(Object::NONE), kind);
        self.note_entry(object, at);
        if let Some(holds) = holds {
            self.note_entry(holds, at);
        }
        let (memcg, node) = self.list_of(object);
        let list = &mut self.memcgs[memcg.idx()].cached[node.idx()].lists[kind as usize];
        self.slabs.cached.push_back(list, at);
        Ok(CachedId { entry: at, generation: self.slabs.cached.entries[at as usize].generation })
    }

    /// Whether a kept object is still there.
    pub fn is_kept(&self, id: CachedId) -> bool {
        let entry = self.slabs.cached.entries.get(id.entry as usize);
        entry.is_some_and(|entry| entry.generation == id.generation && entry.object.is_some())
    }

    /// Uses a kept object, which stays kept. Says if it is still there.
    pub fn use_cached(&mut self, id: CachedId) -> bool {
        let is_there = self.is_kept(id);
        if is_there {
            self.slabs.cached.entries[id.entry as usize].referenced = true;
        }
        is_there
    }

    /// Takes a kept object, and what it holds, back from the kernel, if it is still there.
    pub fn uncache(&mut self, id: CachedId) -> Option<(Object, Option<Object>)> {
        if !self.is_kept(id) {
            return None;
        }
        let (object, holds) = self.take_entry(id.entry);
        Some((object, Some(holds).filter(|holds| holds.is_some())))
    }

    /// Whether an object is in use and not kept.
    fn check_object(&self, object: Object) -> Result<(), SlabError> {
        let it = self.slabs.caches.get(object.cache.idx()).ok_or(SlabError::UnknownCache)?;
        it.check_in_use(object.number)?;
        match it.is_cached(object.number) {
            true => Err(SlabError::IsCached),
            false => Ok(()),
        }
    }

    fn note_entry(&mut self, object: Object, at: u32) {
        let it = &mut self.slabs.caches[object.cache.idx()];
        let number = object.number as usize;
        if it.entries.len() <= number {
            it.entries.resize(number + 1, NONE);
        }
        it.entries[number] = at;
        it.set_returnable(object.number, false);
    }

    /// Takes an entry off its list and forgets it.
    fn take_entry(&mut self, at: u32) -> (Object, Object) {
        let Entry { object, holds, kind, .. } = self.slabs.cached.entries[at as usize];
        let (memcg, node) = self.list_of(object);
        let list = &mut self.memcgs[memcg.idx()].cached[node.idx()].lists[kind as usize];
        self.slabs.cached.remove(list, at);
        self.slabs.cached.entries[at as usize].object = Object::NONE;
        self.slabs.cached.free.push(at);
        for kept in [object, holds].into_iter().filter(|kept| kept.is_some()) {
            let it = &mut self.slabs.caches[kept.cache.idx()];
            it.entries[kept.number as usize] = NONE;
            it.set_returnable(kept.number, true);
        }
        (object, holds)
    }

    /// The group and node whose list an object is on.
    pub(crate) fn list_of(&self, object: Object) -> (MemcgId, NodeId) {
        let mut memcg = self.memcg_of_object(object);
        // The lists of a group that is gone are its parent's, even if its caches are not.
        while self.memcgs[memcg.idx()].dying {
            memcg = self.memcgs[memcg.idx()].parent;
        }
        (memcg, self.node_of_object(object))
    }

    /// The kept objects of a group that goes are its parent's.
    pub(crate) fn reparent_cached(&mut self, memcg: MemcgId, parent: MemcgId) {
        for node in 0..self.nodes.len() {
            let mut from = core::mem::take(&mut self.memcgs[memcg.idx()].cached[node]);
            let to = &mut self.memcgs[parent.idx()].cached[node];
            for (from, to) in from.lists.iter_mut().zip(&mut to.lists) {
                self.slabs.cached.splice(from, to);
            }
            to.deferred += from.deferred;
        }
    }

    /// Looks at up to `nr` objects of a list, oldest first: those used since go to its end, the others
    /// are freed. Returns how many were looked at and how many freed.
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
            let list = &mut self.memcgs[memcg.idx()].cached[node.idx()].lists[kind as usize];
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
            match self.slabs.shrunk_wait {
                true => self.effects.push(Effect::FreeLate { object, cpu }),
                false => self.free_known(object, cpu),
            }
            freed += 1;
            if holds.is_some() {
                let kept = self.cache_object(holds, None, CachedKind::Inode);
                debug_assert!(kept.is_ok(), "{holds:?}: {kept:?}");
            }
        }
        (seen, freed)
    }

    /// From now on what shrinkers free stays allocated, and charged, until the world frees it, which
    /// [`Effect::FreeLate`] asks for (Linux: names and inodes go by `call_rcu`). Reclaim that finds nothing
    /// else then makes no progress, and a group at its limit may run out of memory.
    pub fn free_shrunk_late(&mut self) {
        self.slabs.shrunk_wait = true;
    }

    /// Frees an object that is known to be one.
    pub(crate) fn free_known(&mut self, object: Object, cpu: Cpu) {
        let root = self.cache_of_object(object);
        let freed = self.kmem_cache_free(root, object, cpu);
        debug_assert_eq!(freed, Ok(()), "{object:?}");
    }

    /// Objects of a kind that are kept for a group itself.
    pub fn nr_cached(&self, memcg: MemcgId, kind: CachedKind) -> u64 {
        let lists = self.memcgs[memcg.idx()].cached.iter();
        lists.map(|lists| lists.lists[kind as usize].len).sum()
    }

    /// The kind of objects that a cache of this name has, by the names that Linux gives them.
    pub fn cached_kind(&self, cache: CacheId) -> Option<CachedKind> {
        let it = self.kmem_cache(cache)?;
        match it.name.as_str() {
            "dentry" => Some(CachedKind::Dentry),
            name if name.ends_with("inode_cache") => Some(CachedKind::Inode),
            _ => None,
        }
    }
}
