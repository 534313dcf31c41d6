//! Kernel memory that the page cache takes for its own bookkeeping.
//!
//! Linux: an xarray a file, whose nodes (`struct xa_node`, 64 slots) come from the slab cache
//! `radix_tree_node`, of reclaimable pages. A node exists as long as one of its slots holds a page or a
//! shadow, and the group of the task that added it pays for it. Nodes are few, one for 64 pages, but
//! their pages have another migrate type than user pages, and come from the free blocks of that type
//! that boot left. So tree nodes decide when these run out and pageblocks begin to change their type.
//!
//! A node that has lost its last page and holds only shadows is on a list of its group, from which a shrinker takes
//! it ([`crate::slab::cached`]). A node goes after a grace period (`radix_tree_node_rcu_free`).
//!
//! Differs from Linux: if no memory is free at once there is no node, where Linux would reclaim; at its
//! group's limit a node is charged beyond it, and the next page makes the room. A node without memory is on no
//! list, and keeps its shadows.
//!
//! Invariant: a node of a file has an object exactly while one of its slots is in use, unless there was
//! no memory for it. It is listed exactly while it has an object and its slots hold shadows alone.

use crate::ctx::Ctx;
use crate::process::Machine;
use crate::slab::Object;
use crate::units::{Cpu, FileId};

impl Machine {
    /// A page was put into a file's tree, which had `before` nodes.
    #[inline]
    pub(crate) fn tree_grew(&mut self, file: FileId, index: u32, before: u64, ctx: &Ctx) {
        if self.owners.files[file.idx()].has_one_page(index) {
            self.unlist_leaf(file, index);
        }
        if self.owners.files[file.idx()].nr_nodes != before {
            for level in 0..2 {
                if self.owners.files[file.idx()].lacks_node(level, index) {
                    let node = self.alloc_tree_node(ctx);
                    self.owners.files[file.idx()].set_node(level, index, node);
                }
            }
        }
    }

    /// A page or a shadow was taken out of a file's tree, which had `before` nodes.
    #[inline]
    pub(crate) fn tree_shrank(&mut self, file: FileId, index: u32, before: u64, cpu: Cpu) {
        if self.owners.files[file.idx()].has_only_shadows(index) {
            self.list_leaf(file, index);
        }
        if self.owners.files[file.idx()].nr_nodes != before {
            for level in 0..2 {
                let node = self.owners.files[file.idx()].take_empty_node(level, index);
                if node.is_some() {
                    if self.is_shadow_node(node) {
                        self.unlist_shadow_node(node);
                    }
                    self.free_by_rcu(node, cpu);
                }
            }
        }
    }

    /// The lowest node above a page has shadows alone (Linux `workingset_update_node`).
    fn list_leaf(&mut self, file: FileId, index: u32) {
        if let Some(node) = self.owners.files[file.idx()].leaf_node(index) {
            if !self.is_shadow_node(node) {
                self.list_shadow_node(node, file.0, index);
            }
        }
    }

    /// The lowest node above a page has a page again.
    fn unlist_leaf(&mut self, file: FileId, index: u32) {
        if let Some(node) = self.owners.files[file.idx()].leaf_node(index) {
            if self.is_shadow_node(node) {
                self.unlist_shadow_node(node);
            }
        }
    }

    /// Forgets the shadows of the lowest node above a page, which has nothing else; it goes, and the node above it if
    /// that is empty now (Linux `xa_delete_node`).
    pub(crate) fn forget_shadows_of_node(&mut self, file: FileId, index: u32, cpu: Cpu) {
        let nodes = self.owners.files[file.idx()].nr_nodes;
        self.owners.files[file.idx()].forget_shadows_of_leaf(index);
        self.tree_shrank(file, index, nodes, cpu);
    }

    /// Forgets all shadows of a file (Linux `clear_shadow_entry`, by truncation and invalidation).
    pub(crate) fn forget_all_shadows(&mut self, file: FileId, cpu: Cpu) {
        for index in self.owners.files[file.idx()].shadows() {
            let nodes = self.owners.files[file.idx()].nr_nodes;
            self.owners.files[file.idx()].forget_shadow(index);
            self.tree_shrank(file, index, nodes, cpu);
        }
    }

    fn alloc_tree_node(&mut self, ctx: &Ctx) -> Object {
        let cache = self.slabs.tree_node;
        if let Some(node) = self.kmem_cache_alloc(cache, ctx.memcg, true, ctx.cpu) {
            return node;
        }
        self.kmem_alloc_beyond(cache, ctx).unwrap_or(Object::NONE)
    }
}
