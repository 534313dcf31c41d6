//! The free ids of a table.
//!
//! Linux: `get_unused_fd`, the pid allocator (the lowest free number).
//!
//! Invariant: no free id is given out twice.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// `born` of a request that has not begun.
pub(super) const NOT_BEGUN: u64 = u64::MAX;

/// Free ids of one table, and the number of entries ever created.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdPool {
    free: BinaryHeap<Reverse<u32>>,
    nr_born: u64,
}

impl IdPool {
    /// The lowest free id of a table of `len` entries, and the new entry's generation.
    pub fn take(&mut self, len: usize) -> (u32, u64) {
        let born = self.nr_born;
        self.nr_born += 1;
        (self.free.pop().map_or(len as u32, |Reverse(id)| id), born)
    }

    /// Frees an id.
    pub fn give_back(&mut self, id: u32) {
        self.free.push(Reverse(id));
    }

    /// Free ids, unordered, for the audit.
    pub fn free(&self) -> impl Iterator<Item = u32> + '_ {
        self.free.iter().map(|&Reverse(id)| id)
    }
}

/// Stores an entry at its id.
pub(crate) fn put<T>(table: &mut Vec<T>, id: u32, entry: T) {
    match table.get_mut(id as usize) {
        Some(place) => *place = entry,
        None => table.push(entry),
    }
}
