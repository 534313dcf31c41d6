//! The slabs of one node that have free objects, and which of them is used next.
//!
//! Linux: `kmem_cache_node::partial`, a list that is used from its head and grows at its tail. The slab
//! that is refilled first decides how much memory a cache holds after a burst: in the order of a queue
//! every slab gets some objects, so no slab becomes empty. Two other orders are Pagetide's: the fullest
//! first, and the lowest address first (as jemalloc does).
//!
//! Invariant: exactly the slabs with [`Seat::Partial`] of the node are here, each once.

use super::kmem_cache::{Seat, Slab, NO_SLAB};
use crate::config::SlubPolicy;
use crate::digest::State;
use alloc::vec::Vec;

/// Classes of fullness: eighths.
const BUCKETS: usize = 8;

#[derive(Clone, Copy, Debug, State)]
struct List {
    head: u32,
    tail: u32,
}

impl List {
    const EMPTY: List = List { head: NO_SLAB, tail: NO_SLAB };

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
enum Kept {
    /// In the order of their coming.
    Queue(List),
    /// By fullness, the fullest in the first list.
    Fullness([List; BUCKETS]),
    /// A bit a slot; no slot below `lowest` words is here.
    Address { bits: Vec<u64>, lowest: usize },
}

/// Partial slabs of a node.
#[derive(Clone, Debug, State)]
pub(crate) struct NodePartial {
    kept: Kept,
    len: u32,
}

/// Class of a slab that has free objects: 0 is the fullest.
fn bucket_of(slab: &Slab) -> usize {
    (usize::from(slab.free) - 1) * BUCKETS / usize::from(slab.objects)
}

impl NodePartial {
    pub fn new(policy: SlubPolicy) -> NodePartial {
        let kept = match policy {
            SlubPolicy::Linux61 | SlubPolicy::Linux55 => Kept::Queue(List::EMPTY),
            SlubPolicy::Fullest => Kept::Fullness([List::EMPTY; BUCKETS]),
            SlubPolicy::Lowest => Kept::Address { bits: Vec::new(), lowest: 0 },
        };
        NodePartial { kept, len: 0 }
    }

    /// Slabs here.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// The slab to be used next.
    pub fn first(&mut self) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        match &mut self.kept {
            Kept::Queue(list) => Some(list.head),
            Kept::Fullness(lists) => {
                lists.iter().map(|list| list.head).find(|&head| head != NO_SLAB)
            }
            Kept::Address { bits, lowest } => {
                while bits[*lowest] == 0 {
                    *lowest += 1;
                }
                Some((*lowest * 64) as u32 + bits[*lowest].trailing_zeros())
            }
        }
    }

    /// Adds a slab that has free objects, as the last of its kind.
    pub fn add(&mut self, slabs: &mut [Slab], slot: u32) {
        self.len += 1;
        let slab = &mut slabs[slot as usize];
        slab.seat = Seat::Partial;
        match &mut self.kept {
            Kept::Queue(list) => list.push_back(slabs, slot),
            Kept::Fullness(lists) => {
                let bucket = bucket_of(slab);
                slab.bucket = bucket as u8;
                lists[bucket].push_back(slabs, slot);
            }
            Kept::Address { bits, lowest } => {
                let word = slot as usize / 64;
                if bits.len() <= word {
                    bits.resize(word + 1, 0);
                }
                bits[word] |= 1 << (slot % 64);
                *lowest = (*lowest).min(word);
            }
        }
    }

    /// Takes a slab out.
    pub fn remove(&mut self, slabs: &mut [Slab], slot: u32) {
        self.len -= 1;
        let bucket = usize::from(slabs[slot as usize].bucket);
        match &mut self.kept {
            Kept::Queue(list) => list.remove(slabs, slot),
            Kept::Fullness(lists) => lists[bucket].remove(slabs, slot),
            Kept::Address { bits, .. } => bits[slot as usize / 64] &= !(1 << (slot % 64)),
        }
    }

    /// A slab that is here has one more free object.
    #[inline]
    pub fn refile(&mut self, slabs: &mut [Slab], slot: u32) {
        if let Kept::Fullness(lists) = &mut self.kept {
            let slab = &mut slabs[slot as usize];
            let (old, new) = (usize::from(slab.bucket), bucket_of(slab));
            if old != new {
                slab.bucket = new as u8;
                lists[old].remove(slabs, slot);
                lists[new].push_back(slabs, slot);
            }
        }
    }

    /// All slabs in the order in which they would be used; none is left.
    pub fn take_all(&mut self, slabs: &mut [Slab]) -> Vec<u32> {
        let mut slots = Vec::with_capacity(self.len as usize);
        while let Some(slot) = self.first() {
            self.remove(slabs, slot);
            slots.push(slot);
        }
        slots
    }

    /// Slots of the slabs here.
    pub fn slots(&self, slabs: &[Slab]) -> Vec<u32> {
        match &self.kept {
            Kept::Queue(list) => chain(list.head, slabs),
            Kept::Fullness(lists) => {
                lists.iter().flat_map(|list| chain(list.head, slabs)).collect()
            }
            Kept::Address { bits, .. } => (0..bits.len() as u32 * 64)
                .filter(|&slot| bits[slot as usize / 64] >> (slot % 64) & 1 == 1)
                .collect(),
        }
    }
}

/// Slots from `slot` on. A loop in the links ends it.
pub(crate) fn chain(slot: u32, slabs: &[Slab]) -> Vec<u32> {
    core::iter::successors(Some(slot).filter(|&slot| slot != NO_SLAB), |&slot| {
        Some(slabs[slot as usize].next).filter(|&next| next != NO_SLAB)
    })
    .take(slabs.len() + 1)
    .collect()
}
