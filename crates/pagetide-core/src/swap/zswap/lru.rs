//! The lists of entries: one for each group and node, from the oldest entry to the newest.
//!
//! Linux: `zswap_lru_add`, `zswap_lru_del` (mm/zswap.c, 6.8 to 6.12), mm/list_lru.c. Until 6.7 there is
//! one list; its oldest entry is the oldest of all lists here. A list also counts the pages that its
//! group had to read from disks lately (`nr_disk_swapins`), which protect as many entries from the
//! shrinker.
//!
//! Difference from Linux: the entries of a removed group are merged with its parent's by age; Linux
//! puts them before its parent's.
//!
//! Invariant: the turns of a list rise from its oldest entry to its newest.

use super::{Zswap, ZswapEntryId};
use crate::units::digest::State;
use crate::units::{MemcgId, NodeId};
use alloc::vec::Vec;

/// A list of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub(super) struct ZswapList {
    pub oldest: ZswapEntryId,
    newest: ZswapEntryId,
    pub len: u64,
    /// Pages read from disks since the shrinker last counted.
    pub nr_disk_swapins: u64,
}

impl ZswapList {
    const EMPTY: ZswapList = ZswapList {
        oldest: ZswapEntryId::NONE,
        newest: ZswapEntryId::NONE,
        len: 0,
        nr_disk_swapins: 0,
    };
}

impl Zswap {
    fn list_index(&self, memcg: MemcgId, node: NodeId) -> usize {
        memcg.idx() * self.nr_nodes + node.idx()
    }

    pub(super) fn list_mut(&mut self, memcg: MemcgId, node: NodeId) -> &mut ZswapList {
        let at = self.list_index(memcg, node);
        if self.lists.len() <= at {
            self.lists.resize(at + 1, ZswapList::EMPTY);
        }
        &mut self.lists[at]
    }

    pub(super) fn list(&self, memcg: MemcgId, node: NodeId) -> ZswapList {
        self.lists.get(self.list_index(memcg, node)).copied().unwrap_or(ZswapList::EMPTY)
    }

    /// Adds an entry as the newest of its list.
    pub(super) fn list_add(&mut self, id: ZswapEntryId) {
        let turn = self.next_turn;
        self.next_turn += 1;
        let entry = self.at_mut(id);
        entry.turn = turn;
        let (memcg, node) = (entry.memcg, entry.node);
        self.link_newest(id, memcg, node);
    }

    fn link_newest(&mut self, id: ZswapEntryId, memcg: MemcgId, node: NodeId) {
        let list = self.list_mut(memcg, node);
        let older = core::mem::replace(&mut list.newest, id);
        list.len += 1;
        match older.real() {
            Some(older) => self.at_mut(older).newer = id,
            None => list.oldest = id,
        }
        let entry = self.at_mut(id);
        (entry.older, entry.newer) = (older, ZswapEntryId::NONE);
    }

    pub(super) fn list_remove(&mut self, id: ZswapEntryId) {
        let entry = *self.at(id);
        match entry.older.real() {
            Some(older) => self.at_mut(older).newer = entry.newer,
            None => self.list_mut(entry.memcg, entry.node).oldest = entry.newer,
        }
        match entry.newer.real() {
            Some(newer) => self.at_mut(newer).older = entry.older,
            None => self.list_mut(entry.memcg, entry.node).newest = entry.older,
        }
        self.list_mut(entry.memcg, entry.node).len -= 1;
    }

    /// Makes an entry the newest of its list.
    pub(super) fn rotate(&mut self, id: ZswapEntryId) {
        self.list_remove(id);
        self.list_add(id);
    }

    /// The oldest entry of all lists.
    pub(super) fn oldest(&self) -> Option<ZswapEntryId> {
        let oldest = self.lists.iter().filter_map(|list| list.oldest.real());
        oldest.min_by_key(|&id| self.at(id).turn)
    }

    /// The entries of a list, oldest first.
    pub(super) fn listed(
        &self,
        memcg: MemcgId,
        node: NodeId,
    ) -> impl Iterator<Item = ZswapEntryId> + '_ {
        let first = self.list(memcg, node).oldest.real();
        core::iter::successors(first, |&id| self.at(id).newer.real())
    }

    /// Moves the entries of a group that is removed to its parent.
    pub(crate) fn reparent(&mut self, from: MemcgId, to: MemcgId) {
        for node in (0..self.nr_nodes).map(|node| NodeId(node as u8)) {
            let list = core::mem::replace(self.list_mut(from, node), ZswapList::EMPTY);
            if list.len == 0 {
                continue;
            }
            let moved = core::iter::successors(list.oldest.real(), |&id| self.at(id).newer.real());
            let mut all: Vec<ZswapEntryId> = moved.chain(self.listed(to, node)).collect();
            all.sort_by_key(|&id| self.at(id).turn);
            let nr_disk_swapins = self.list(to, node).nr_disk_swapins;
            *self.list_mut(to, node) = ZswapList { nr_disk_swapins, ..ZswapList::EMPTY };
            for id in all {
                self.at_mut(id).memcg = to;
                self.link_newest(id, to, node);
            }
        }
        // Entries without an object are on no list.
        let filled = self.entries.iter_mut().flatten().filter(|entry| entry.memcg == from);
        filled.for_each(|entry| entry.memcg = to);
    }
}
