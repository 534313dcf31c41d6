//! The partial slabs of a node (slabs with free objects), and the order in which they are used.
//!
//! Linux: `kmem_cache_node::partial`, a list that is used from its head and grows at its tail. The
//! order of use decides how much memory a cache keeps after a burst: in queue order every slab gets
//! some objects, so no slab becomes empty. Pagetide adds two other orders: fullest slab first, and
//! lowest address first (as jemalloc does).
//!
//! Invariant: exactly the slabs of the node with [`SlabSeat::Partial`] are here, each once.

use super::kmem_cache::{Slab, SlabSeat, NO_SLAB};
use crate::config::SlubPolicy;
use crate::units::digest::State;
use alloc::vec::Vec;

const BUCKETS: usize = 8;

#[derive(Clone, Copy, Debug, State)]
struct SlabList {
    head: u32,
    tail: u32,
}

impl SlabList {
    const EMPTY: SlabList = SlabList { head: NO_SLAB, tail: NO_SLAB };

    fn push_back(&mut self, slabs: &mut [Slab], slot: u32) {
        slabs[slot as usize].prev = self.tail;
        slabs[slot as usize].next = NO_SLAB;
        match self.tail {
            NO_SLAB => self.head = slot,
            tail => slabs[tail as usize].next = slot,
        }
        self.tail = slot;
    }

    fn remove(&mut self, slabs: &mut [Slab], slot: u32) {
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
}

#[derive(Clone, Debug, State)]
enum PartialLists {
    /// Slabs in order of arrival.
    Queue(SlabList),
    /// Slabs in classes of fullness, fullest first.
    Fullness([SlabList; BUCKETS]),
    /// Slabs as one bit per slot; all words before `lowest` are 0.
    Address { bits: Vec<u64>, lowest: usize },
}

#[derive(Clone, Debug, State)]
pub(crate) struct NodePartial {
    kept: PartialLists,
    len: u32,
}

/// Fullness class of a slab with free objects: 0 is the fullest.
fn bucket_of(slab: &Slab) -> usize {
    (usize::from(slab.free) - 1) * BUCKETS / usize::from(slab.objects)
}

impl NodePartial {
    pub fn new(policy: SlubPolicy) -> NodePartial {
        let kept = match policy {
            SlubPolicy::Linux61 | SlubPolicy::Linux55 => PartialLists::Queue(SlabList::EMPTY),
            SlubPolicy::Fullest => PartialLists::Fullness([SlabList::EMPTY; BUCKETS]),
            SlubPolicy::Lowest => PartialLists::Address { bits: Vec::new(), lowest: 0 },
        };
        NodePartial { kept, len: 0 }
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    /// The slab to use next.
    pub fn first(&mut self) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        match &mut self.kept {
            PartialLists::Queue(list) => Some(list.head),
            PartialLists::Fullness(lists) => {
                lists.iter().map(|list| list.head).find(|&head| head != NO_SLAB)
            }
            PartialLists::Address { bits, lowest } => {
                while bits[*lowest] == 0 {
                    *lowest += 1;
                }
                Some((*lowest * 64) as u32 + bits[*lowest].trailing_zeros())
            }
        }
    }

    /// Adds a slab with free objects, as the last of its class.
    pub fn add(&mut self, slabs: &mut [Slab], slot: u32) {
        self.len += 1;
        let slab = &mut slabs[slot as usize];
        slab.seat = SlabSeat::Partial;
        match &mut self.kept {
            PartialLists::Queue(list) => list.push_back(slabs, slot),
            PartialLists::Fullness(lists) => {
                let bucket = bucket_of(slab);
                slab.bucket = bucket as u8;
                lists[bucket].push_back(slabs, slot);
            }
            PartialLists::Address { bits, lowest } => {
                let word = slot as usize / 64;
                if bits.len() <= word {
                    bits.resize(word + 1, 0);
                }
                bits[word] |= 1 << (slot % 64);
                *lowest = (*lowest).min(word);
            }
        }
    }

    pub fn remove(&mut self, slabs: &mut [Slab], slot: u32) {
        self.len -= 1;
        let bucket = usize::from(slabs[slot as usize].bucket);
        match &mut self.kept {
            PartialLists::Queue(list) => list.remove(slabs, slot),
            PartialLists::Fullness(lists) => lists[bucket].remove(slabs, slot),
            PartialLists::Address { bits, .. } => bits[slot as usize / 64] &= !(1 << (slot % 64)),
        }
    }

    /// Moves a slab that has one more free object to its class.
    #[inline]
    pub fn refile(&mut self, slabs: &mut [Slab], slot: u32) {
        if let PartialLists::Fullness(lists) = &mut self.kept {
            let slab = &mut slabs[slot as usize];
            let (old, new) = (usize::from(slab.bucket), bucket_of(slab));
            if old != new {
                slab.bucket = new as u8;
                lists[old].remove(slabs, slot);
                lists[new].push_back(slabs, slot);
            }
        }
    }

    /// Removes all slabs and returns them in their order of use.
    pub fn take_all(&mut self, slabs: &mut [Slab]) -> Vec<u32> {
        let mut slots = Vec::with_capacity(self.len as usize);
        while let Some(slot) = self.first() {
            self.remove(slabs, slot);
            slots.push(slot);
        }
        slots
    }

    /// Slots of the slabs, in no particular order.
    pub fn slots(&self, slabs: &[Slab]) -> Vec<u32> {
        match &self.kept {
            PartialLists::Queue(list) => chain(list.head, slabs),
            PartialLists::Fullness(lists) => {
                lists.iter().flat_map(|list| chain(list.head, slabs)).collect()
            }
            PartialLists::Address { bits, .. } => (0..bits.len() as u32 * 64)
                .filter(|&slot| bits[slot as usize / 64] >> (slot % 64) & 1 == 1)
                .collect(),
        }
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
