//! Unused objects that the kernel keeps: names, inodes, and nodes of the page cache that hold only shadows.
//!
//! Linux: the lists of unused dentries and inodes of a super block and of shadow nodes (`list_lru`, fs/dcache.c,
//! fs/inode.c, mm/workingset.c), one for each group and node. An object whose last user is gone goes to the end of
//! its list; an object that was used since then is skipped once. An inode is held by its name and joins its
//! own list when the name is gone. A shadow node has an owner, who takes it off when a page comes back to it.
//!
//! Differs from Linux: one super block; an object joins the list when its last user is gone, not at the
//! second such time.
//!
//! Invariant: an object is on the list of the group that owns it (`memcg_of_object`; of the
//! nearest that still exists) and of its node, and its cache's `entries` names its entry.

mod keep;
mod shadow_nodes;

pub(crate) use shadow_nodes::PAGES_A_SHADOW_NODE;

use super::Object;
use crate::digest::State;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

/// Kinds of objects that are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
#[repr(usize)]
pub enum CachedKind {
    /// A name in a directory.
    Dentry = 0,
    /// What a name stands for.
    Inode = 1,
}

/// Lists of a group on a node: one of each kind, and that of shadow nodes.
pub(crate) const NR_LISTS: usize = 3;
/// The list of shadow nodes, behind those of the kinds.
pub(crate) const SHADOW_NODES: usize = 2;

/// Who shrinks the lists, in the order in which they are asked (Linux `struct shrinker`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
#[repr(usize)]
pub(crate) enum Shrinker {
    /// `workingset_shadow_shrinker`.
    ShadowNodes = 0,
    /// That of the super block: names and inodes.
    SuperBlock = 1,
}

/// Number of shrinkers.
const NR_SHRINKERS: usize = 2;

/// A kept object, as long as it is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CachedId {
    entry: u32,
    generation: u32,
}

#[derive(Clone, Debug, State)]
struct Entry {
    object: Object,
    /// Kept by this one, to be kept on its own afterwards.
    holds: Object,
    prev: u32,
    next: u32,
    generation: u32,
    /// Which list it is on: a [`CachedKind`], or [`SHADOW_NODES`].
    list: usize,
    /// Of a shadow node: tree and number of its first slot there.
    place: (u32, u32),
    /// Used since it was last looked at.
    referenced: bool,
}

/// A list of kept objects (Linux `struct list_lru_one`).
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

/// The kept objects of one group on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
pub(crate) struct CachedLists {
    pub lists: [CachedList; NR_LISTS],
    /// Objects that each [`Shrinker`] should have looked at and did not, being too few for a batch.
    pub deferred: [u64; NR_SHRINKERS],
}

impl CachedLists {
    /// Names and inodes.
    pub fn nr_unused(&self) -> u64 {
        self.lists[..SHADOW_NODES].iter().map(|list| list.len).sum()
    }

    pub fn nr_shadow_nodes(&self) -> u64 {
        self.lists[SHADOW_NODES].len
    }
}

/// Entries of all kept objects.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct CachedObjects {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl CachedObjects {
    fn create(&mut self, object: Object, holds: Object, list: usize, place: (u32, u32)) -> u32 {
        let (prev, next, generation, referenced) = (NONE, NONE, 0, false);
        let entry = Entry { object, holds, prev, next, generation, list, place, referenced };
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
