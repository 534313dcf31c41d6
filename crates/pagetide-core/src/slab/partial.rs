//! The partial slabs of a node (slabs with free objects), in the order in which they are used.
//!
//! Linux: `kmem_cache_node::partial`, a list that is used from its head and grows at its tail. So
//! after a burst every slab gets some objects, and no slab becomes empty.
//!
//! Invariant: exactly the slabs of the node with [`SlabSeat::Partial`] are here, each once.

use super::kmem_cache::{Slab, SlabSeat, NO_SLAB};
use crate::units::digest::State;
use alloc::vec::Vec;

#[derive(Clone, Debug, State)]
pub(crate) struct NodePartial {
    head: u32,
    tail: u32,
    len: u32,
}

impl NodePartial {
    pub const EMPTY: NodePartial = NodePartial { head: NO_SLAB, tail: NO_SLAB, len: 0 };

    pub fn len(&self) -> u32 {
        self.len
    }

    /// The slab to use next.
    pub fn first(&self) -> Option<u32> {
        Some(self.head).filter(|&slot| slot != NO_SLAB)
    }

    /// Adds a slab with free objects as the last.
    pub fn add(&mut self, slabs: &mut [Slab], slot: u32) {
        self.len += 1;
        let slab = &mut slabs[slot as usize];
        slab.seat = SlabSeat::Partial;
        slab.prev = self.tail;
        slab.next = NO_SLAB;
        match self.tail {
            NO_SLAB => self.head = slot,
            tail => slabs[tail as usize].next = slot,
        }
        self.tail = slot;
    }

    pub fn remove(&mut self, slabs: &mut [Slab], slot: u32) {
        self.len -= 1;
        let Slab { prev, next, .. } = slabs[slot as usize];
        match prev {
            NO_SLAB => self.head = next,
            prev => slabs[prev as usize].next = next,
        }
        match next {
            NO_SLAB => self.tail = prev,
            next => slabs[next as usize].prev = prev,
        }
    }

    /// Slots of the slabs, in their order of use.
    pub fn slots(&self, slabs: &[Slab]) -> Vec<u32> {
        chain(self.head, slabs)
    }
}

/// Slots of a chain, starting with `slot`. A loop in the links ends the chain.
pub(crate) fn chain(slot: u32, slabs: &[Slab]) -> Vec<u32> {
    core::iter::successors(Some(slot).filter(|&slot| slot != NO_SLAB), |&slot| {
        Some(slabs[slot as usize].next).filter(|&next| next != NO_SLAB)
    })
    .take(slabs.len() + 1)
    .collect()
}
