//! Trees over the slots of an area: kernel memory for what is kept beside the slots.
//!
//! Linux: the swap cache (`swapper_spaces`, mm/swap_state.c, 6.1) has an xarray for each 64 MiB of an
//! area, with an entry for each slot whose page is in the swap cache or has left a shadow. zswap of
//! 6.12 has the same for its entries (`zswap_trees`). The nodes have 64 places and come from the
//! cache `radix_tree_node`, as those of files ([`crate::process`]), but no group pays for them.
//!
//! Differences from Linux: before 6.12 an area on a disk without zswap has no nodes here. They would
//! take 0.2 % of what is swapped out. On 6.12 they matter, because a refill for one of them can take
//! many pages from movable blocks, and boosts the watermarks. Whether an area has nodes is decided
//! when it is added. If no memory is free at once, the node gets no object; Linux does not swap the
//! page out. A tree has always three levels.
//!
//! Invariant: a node counts the entries below it, and has an object only while there are any.

use crate::slab::object::Object;
use crate::units::digest::State;
use alloc::vec::Vec;

/// Slots below a node of each level, the lowest first; the highest is one tree.
const SLOTS_BELOW: [u32; 3] = [64, 4096, 16384];

/// The trees of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlotTreeKind {
    SwapCache = 0,
    Zswap = 1,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
struct SlotNode {
    /// Entries or nodes of the next lower level.
    nr_used: u32,
    object: Object,
}

/// A tree; slots are numbered from the start of the area.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct SlotTree {
    levels: [Vec<SlotNode>; SLOTS_BELOW.len()],
}

impl SlotTree {
    /// Number of levels.
    pub const NR_LEVELS: usize = SLOTS_BELOW.len();

    /// Adds an entry. Returns whether a node is new.
    pub fn add(&mut self, slot: u32) -> bool {
        for (level, (nodes, below)) in self.levels.iter_mut().zip(SLOTS_BELOW).enumerate() {
            let at = (slot / below) as usize;
            if nodes.len() <= at {
                nodes.resize(at + 1, SlotNode { nr_used: 0, object: Object::NONE });
            }
            nodes[at].nr_used += 1;
            if nodes[at].nr_used > 1 {
                return level > 0;
            }
        }
        true
    }

    /// Removes an entry. Returns whether a node is now empty.
    pub fn remove(&mut self, slot: u32) -> bool {
        for (level, (nodes, below)) in self.levels.iter_mut().zip(SLOTS_BELOW).enumerate() {
            let node = &mut nodes[(slot / below) as usize];
            node.nr_used -= 1;
            if node.nr_used > 0 {
                return level > 0;
            }
        }
        true
    }

    fn node(&mut self, level: usize, slot: u32) -> &mut SlotNode {
        &mut self.levels[level][(slot / SLOTS_BELOW[level]) as usize]
    }

    /// Whether the node above a slot has entries and no object.
    pub fn lacks_object(&mut self, level: usize, slot: u32) -> bool {
        let node = self.node(level, slot);
        node.nr_used > 0 && !node.object.is_some()
    }

    pub fn set_object(&mut self, level: usize, slot: u32, object: Object) {
        self.node(level, slot).object = object;
    }

    /// Takes the object of the node above a slot, if the node is empty.
    pub fn take_unused(&mut self, level: usize, slot: u32) -> Object {
        let node = self.node(level, slot);
        match node.nr_used {
            0 => core::mem::replace(&mut node.object, Object::NONE),
            _ => Object::NONE,
        }
    }

    /// The objects of all nodes.
    pub fn objects(&self) -> impl Iterator<Item = Object> + '_ {
        self.levels.iter().flatten().map(|node| node.object).filter(|object| object.is_some())
    }

    /// Checks the counts against the entries, and that empty nodes have no object.
    pub fn has_exactly(&self, slots: impl Iterator<Item = u32>) -> bool {
        let mut wanted = SlotTree::default();
        for slot in slots {
            wanted.add(slot);
        }
        self.levels.iter().zip(&wanted.levels).all(|(nodes, wanted)| {
            let wanted = wanted.iter().map(|node| node.nr_used).chain(core::iter::repeat(0));
            nodes.iter().zip(wanted).all(|(node, wanted)| {
                node.nr_used == wanted && (wanted > 0 || !node.object.is_some())
            })
        }) && self.levels[0].len() >= wanted.levels[0].len()
    }
}
