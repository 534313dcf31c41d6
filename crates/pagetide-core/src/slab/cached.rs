//! Unused objects that the kernel keeps: names and inodes.
//!
//! Linux: the lists of unused dentries and inodes of a super block (`list_lru`, fs/dcache.c,
//! fs/inode.c), one for each group and node. An object whose last user is gone goes to the end of its
//! list; an object that was used since then is skipped once. An inode is held by its name and joins its
//! own list when the name is gone.
//!
//! Differs from Linux: one super block; an object joins the list when its last user is gone, not at the
//! second such time.
//!
//! Invariant: an object is on the list of the group that owns it (`memcg_of_object`; of the
//! nearest that still exists) and of its node, and its cache's `entries` names its entry.

mod keep;

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

/// Number of kinds.
pub(crate) const NR_KINDS: usize = 2;

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
    kind: CachedKind,
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
#[derive(Clone, Debug, Default, State)]
pub(crate) struct CachedObjects {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl CachedObjects {
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
