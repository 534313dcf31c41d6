//! Memory of the nodes of slot trees: taken when an entry needs a new node, freed with its last entry.
//!
//! Linux: `add_to_swap_cache`, `__delete_from_swap_cache`, `clear_shadow_from_swap_cache`
//! (mm/swap_state.c, 6.1); `zswap_store`, `zswap_invalidate` (6.12). A node of the swap cache may use
//! half of the minimum reserve, one of zswap all of it. A node is freed after a grace period.
//!
//! Invariant: a tree has an entry for each slot that the swap cache, or zswap, has an entry for.

use super::slot_tree::{SlotTree, SlotTreeKind};
use crate::frames::gfp::Gfp;
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::units::{Cpu, SwapSlot};

/// Rights of a node of the swap cache (Linux `add_to_swap`).
const CACHE_NODE_GFP: Gfp = Gfp::HIGH.with(Gfp::NOMEMALLOC).with(Gfp::NOWARN);

impl Kernel {
    /// Adds an entry of the swap cache.
    pub(crate) fn add_cache_entry(&mut self, slot: SwapSlot, ctx: &Ctx) {
        self.add_slot_entry(SlotTreeKind::SwapCache, slot, ctx);
    }

    /// Removes an entry of the swap cache.
    pub(crate) fn remove_cache_entry(&mut self, slot: SwapSlot, cpu: Cpu) {
        self.remove_slot_entry(SlotTreeKind::SwapCache, slot, cpu);
    }

    /// Frees a node of the swap cache that has only shadows. Returns whether there was one.
    pub(crate) fn forget_swap_shadow_node(&mut self, cpu: Cpu) -> bool {
        let Some(slots) = self.swap.forget_shadow_node() else { return false };
        for slot in slots {
            self.remove_cache_entry(slot, cpu);
        }
        true
    }

    /// Adds an entry, with the nodes that it needs.
    pub(super) fn add_slot_entry(&mut self, kind: SlotTreeKind, slot: SwapSlot, ctx: &Ctx) {
        if !self.swap.tree_of(kind, slot).is_some_and(|(tree, at)| tree.add(at)) {
            return;
        }
        let cache = self.slabs.tree_node;
        for level in 0..SlotTree::NR_LEVELS {
            let tree = self.swap.tree_of(kind, slot);
            if !tree.is_some_and(|(tree, at)| tree.lacks_object(level, at)) {
                continue;
            }
            let object = match kind {
                SlotTreeKind::SwapCache => self.alloc_object(cache, CACHE_NODE_GFP, ctx).ok(),
                SlotTreeKind::Zswap => self.alloc_object_in_reclaim(cache, Gfp::KERNEL, ctx),
            };
            if let (Some(object), Some((tree, at))) = (object, self.swap.tree_of(kind, slot)) {
                tree.set_object(level, at, object);
            }
        }
    }

    /// Removes an entry, with the nodes that are then empty.
    pub(super) fn remove_slot_entry(&mut self, kind: SlotTreeKind, slot: SwapSlot, cpu: Cpu) {
        if !self.swap.tree_of(kind, slot).is_some_and(|(tree, at)| tree.remove(at)) {
            return;
        }
        for level in 0..SlotTree::NR_LEVELS {
            let unused = |(tree, at): (&mut SlotTree, u32)| tree.take_unused(level, at);
            let object = self.swap.tree_of(kind, slot).map(unused);
            if let Some(object) = object.filter(|object| object.is_some()) {
                self.free_by_rcu(object, cpu);
            }
        }
    }
}
