//! Page-cache tree nodes: kernel memory for the bookkeeping of the page cache.
//!
//! Linux: one xarray per file; its nodes (`struct xa_node`, 64 slots) come from the slab cache
//! `radix_tree_node`, in reclaimable pages. A node exists as long as one of its slots holds a page
//! or a shadow. The group of the task that added the node pays for it. Nodes are few (one for 64
//! pages). But their pages have another migrate type than user pages, and come from the free blocks
//! of that type that boot left. So tree nodes decide when these blocks are used up and pageblocks
//! begin to change their type.
//!
//! A node without pages that still has shadows is on a list of its group, and a shrinker frees it
//! ([`crate::slab::cached`]). A node is freed after a grace period (`radix_tree_node_rcu_free`).
//!
//! Differences from Linux: if no memory is free at once, the node gets no object; Linux would
//! reclaim. If its group is at the limit, a node is charged beyond the limit, and the charge of the
//! next page reclaims. A node without an object is on no list and keeps its shadows.
//!
//! Invariant: a node has an object exactly while one of its slots is in use, unless no memory was
//! free. It is listed exactly while it has an object and its slots hold only shadows.

use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::process::Machine;
use crate::slab::object::Object;
use crate::units::{Cpu, FileId};

impl Kernel {
    fn alloc_tree_node(&mut self, ctx: &Ctx) -> Object {
        let cache = self.slabs.tree_node;
        if let Some(node) = self.kmem_cache_alloc(cache, ctx.memcg, true, ctx.cpu) {
            return node;
        }
        self.kmem_alloc_beyond(cache, ctx).unwrap_or(Object::NONE)
    }
}

impl Machine {
    /// Allocates missing nodes after a page was added to a file's tree. `before`: nodes until then.
    #[inline]
    pub(crate) fn tree_grew(&mut self, file: FileId, index: u32, before: u64, ctx: &Ctx) {
        if self.owners.files[file].has_one_page(index) {
            self.unlist_leaf(file, index);
        }
        if self.owners.files[file].nr_nodes != before {
            for level in 0..2 {
                if self.owners.files[file].lacks_node(level, index) {
                    let node = self.alloc_tree_node(ctx);
                    self.owners.files[file].set_node(level, index, node);
                }
            }
        }
    }

    /// Frees empty nodes after a page or shadow left a file's tree. `before`: nodes until then.
    #[inline]
    pub(crate) fn tree_shrank(&mut self, file: FileId, index: u32, before: u64, cpu: Cpu) {
        if self.owners.files[file].has_only_shadows(index) {
            self.list_leaf(file, index);
        }
        if self.owners.files[file].nr_nodes != before {
            for level in 0..2 {
                let node = self.owners.files[file].take_empty_node(level, index);
                if node.is_some() {
                    if self.slabs.is_shadow_node(node) {
                        self.unlist_shadow_node(node);
                    }
                    self.free_by_rcu(node, cpu);
                }
            }
        }
    }

    /// Lists a lowest node with only shadows (Linux `workingset_update_node`).
    fn list_leaf(&mut self, file: FileId, index: u32) {
        if let Some(node) = self.owners.files[file].leaf_node(index) {
            if !self.slabs.is_shadow_node(node) {
                self.list_shadow_node(node, file.0, index);
            }
        }
    }

    /// Unlists a lowest node that has a page again.
    fn unlist_leaf(&mut self, file: FileId, index: u32) {
        if let Some(node) = self.owners.files[file].leaf_node(index) {
            if self.slabs.is_shadow_node(node) {
                self.unlist_shadow_node(node);
            }
        }
    }

    /// Clears the shadows of the lowest node above a page; the node must hold nothing else. Frees
    /// this node, and then its parent if that is empty (Linux `xa_delete_node`).
    pub(crate) fn forget_shadows_of_node(&mut self, file: FileId, index: u32, cpu: Cpu) {
        let nodes = self.owners.files[file].nr_nodes;
        self.owners.files[file].forget_shadows_of_leaf(index);
        self.tree_shrank(file, index, nodes, cpu);
    }

    /// Clears all shadows of a file (Linux `clear_shadow_entry`, for truncation and invalidation).
    pub(crate) fn forget_all_shadows(&mut self, file: FileId, cpu: Cpu) {
        for index in self.owners.files[file].shadows() {
            let nodes = self.owners.files[file].nr_nodes;
            self.owners.files[file].forget_shadow(index);
            self.tree_shrank(file, index, nodes, cpu);
        }
    }
}
