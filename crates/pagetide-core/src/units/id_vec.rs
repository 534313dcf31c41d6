//! A table that is indexed by ids of one type.
//!
//! Linux: `NODE_DATA(nid)`, `pfn_to_page(pfn)`, `mem_cgroup_from_id(id)`.
//!
//! Invariant: an id of another type does not compile. Loops over all entries may use plain numbers.

use super::digest::{Digest, State};
use super::Id;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut, Index, IndexMut};

/// A vector of `T`, indexed by ids of type `I`.
///
/// ```
/// use pagetide_core::units::{IdVec, NodeId};
/// let nodes: IdVec<NodeId, u64> = vec![10, 20].into();
/// assert_eq!(nodes[NodeId(1)], 20);
/// ```
///
/// ```compile_fail
/// # use pagetide_core::units::{Cpu, IdVec, NodeId};
/// # let nodes: IdVec<NodeId, u64> = vec![10, 20].into();
/// nodes[Cpu(1)];
/// ```
pub struct IdVec<I, T> {
    entries: Vec<T>,
    ids: PhantomData<fn(I)>,
}

impl<I, T> From<Vec<T>> for IdVec<I, T> {
    fn from(entries: Vec<T>) -> IdVec<I, T> {
        IdVec { entries, ids: PhantomData }
    }
}

impl<I, T> FromIterator<T> for IdVec<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(all: A) -> IdVec<I, T> {
        IdVec::from(Vec::from_iter(all))
    }
}

impl<I, T> Default for IdVec<I, T> {
    fn default() -> IdVec<I, T> {
        IdVec::from(Vec::new())
    }
}

impl<I, T: Clone> Clone for IdVec<I, T> {
    fn clone(&self) -> IdVec<I, T> {
        IdVec::from(self.entries.clone())
    }
}

impl<I, T: PartialEq> PartialEq for IdVec<I, T> {
    fn eq(&self, other: &IdVec<I, T>) -> bool {
        self.entries == other.entries
    }
}

impl<I, T: Eq> Eq for IdVec<I, T> {}

impl<I, T: fmt::Debug> fmt::Debug for IdVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.fmt(f)
    }
}

impl<I, T: State> State for IdVec<I, T> {
    fn digest(&self, digest: &mut Digest) {
        self.entries.digest(digest);
    }
}

impl<I, T> Deref for IdVec<I, T> {
    type Target = Vec<T>;

    #[inline]
    fn deref(&self) -> &Vec<T> {
        &self.entries
    }
}

impl<I, T> DerefMut for IdVec<I, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.entries
    }
}

impl<I: Id, T> Index<I> for IdVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, at: I) -> &T {
        &self.entries[at.place()]
    }
}

impl<I: Id, T> IndexMut<I> for IdVec<I, T> {
    #[inline]
    fn index_mut(&mut self, at: I) -> &mut T {
        &mut self.entries[at.place()]
    }
}

impl<I: Id, T> Index<usize> for IdVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        &self.entries[at]
    }
}

impl<I: Id, T> IndexMut<usize> for IdVec<I, T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        &mut self.entries[at]
    }
}

impl<'a, I, T> IntoIterator for &'a IdVec<I, T> {
    type Item = &'a T;
    type IntoIter = core::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

impl<'a, I, T> IntoIterator for &'a mut IdVec<I, T> {
    type Item = &'a mut T;
    type IntoIter = core::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter_mut()
    }
}
