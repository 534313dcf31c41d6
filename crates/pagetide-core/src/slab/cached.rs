//! Cached objects: unused dentries and inodes, and page-cache nodes that hold only shadows.
//!
//! Linux: the lists of unused dentries and inodes of a super block and of shadow nodes (`list_lru`,
//! fs/dcache.c, fs/inode.c, mm/workingset.c), one per group and node. When the last user of an
//! object is gone, the object goes to the tail of its list. If it has been used since, the shrinker
//! skips it once. An inode is held by its dentry; it joins its own list when the dentry is freed. A
//! shadow node has an owner, which takes it off the list when the node gets a page again.
//!
//! Differences from Linux: there is one super block. An object joins the list the first time that
//! its last user is gone, not the second time.
//!
//! Invariant: an object is on the list of its node and of its group (`memcg_of_object`, or the
//! nearest ancestor that exists), and its cache's `entries` has the index of its entry.

mod keep;
mod shadow_nodes;

pub(crate) use shadow_nodes::PAGES_A_SHADOW_NODE;

use crate::slab::object::Object;
use crate::units::digest::State;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

/// Kinds of cached objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
#[repr(usize)]
pub enum CachedKind {
    /// A directory entry.
    Dentry = 0,
    /// An inode.
    Inode = 1,
}

/// Number of lists of a group on a node: one for each kind, and one for shadow nodes.
pub(crate) const NR_LISTS: usize = 3;
/// Index of the list of shadow nodes, after the lists of the kinds.
pub(crate) const SHADOW_NODES: usize = 2;

/// The shrinkers of the lists, in the order in which reclaim calls them (Linux `struct shrinker`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
#[repr(usize)]
pub(crate) enum Shrinker {
    /// `workingset_shadow_shrinker`.
    ShadowNodes = 0,
    /// The super block's: dentries and inodes.
    SuperBlock = 1,
    /// The pools of compressed pages: it compacts them. Only the root has it.
    Zsmalloc = 2,
    /// zswap's: it writes entries to their disks.
    Zswap = 3,
}

const NR_SHRINKERS: usize = 4;

/// Handle of a cached object, valid while it is cached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CachedId {
    entry: u32,
    generation: u32,
}

#[derive(Clone, Debug, State)]
struct CachedEntry {
    object: Object,
    /// Object that this object holds. When the holder is freed, the held object is cached.
    holds: Object,
    prev: u32,
    next: u32,
    generation: u32,
    /// The list it is on: a [`CachedKind`], or [`SHADOW_NODES`].
    list: usize,
    /// For a shadow node: its tree, and the index of any page in the node's range.
    place: (u32, u32),
    /// Whether it was used since the last check by the shrinker.
    referenced: bool,
}

/// A list of cached objects (Linux `struct list_lru_one`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
pub(crate) struct CachedLists {
    pub lists: [CachedList; NR_LISTS],
    /// Number of scans that each [`Shrinker`] has deferred because they were fewer than a batch.
    pub deferred: [u64; NR_SHRINKERS],
}

impl CachedLists {
    /// Number of cached dentries and inodes.
    pub fn nr_unused(&self) -> u64 {
        self.lists[..SHADOW_NODES].iter().map(|list| list.len).sum()
    }

    pub fn nr_shadow_nodes(&self) -> u64 {
        self.lists[SHADOW_NODES].len
    }
}

#[derive(Clone, Debug, Default, State)]
pub(crate) struct CachedObjects {
    entries: Vec<CachedEntry>,
    free: Vec<u32>,
}

impl CachedObjects {
    fn create(&mut self, object: Object, holds: Object, list: usize, place: (u32, u32)) -> u32 {
        let (prev, next, generation, referenced) = (NONE, NONE, 0, false);
        let entry = CachedEntry { object, holds, prev, next, generation, list, place, referenced };
        match self.free.pop() {
            Some(at) => {
                let generation = self.entries[at as usize].generation + 1;
                self.entries[at as usize] = CachedEntry { generation, ..entry };
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
        let CachedEntry { prev, next, .. } = self.entries[at as usize];
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

    /// Appends all of `from` to `to`, in constant time (Linux `list_splice`).
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

    /// Objects of a list, in order. A loop in the links ends the iteration.
    pub fn objects(&self, list: &CachedList) -> impl Iterator<Item = (Object, Object)> + '_ {
        let first = Some(list.head).filter(|&at| at != NONE);
        core::iter::successors(first, |&at| {
            Some(self.entries[at as usize].next).filter(|&at| at != NONE)
        })
        .take(self.entries.len() + 1)
        .map(|at| (self.entries[at as usize].object, self.entries[at as usize].holds))
    }
}
