//! Kernel memory that the page cache takes for its own bookkeeping.
//!
//! Linux: an xarray a file, whose nodes (`struct xa_node`, 64 slots) come from the slab cache
//! `radix_tree_node`, of reclaimable pages. A node exists as long as one of its slots holds a page or a
//! shadow, and the group of the task that added it pays for it. Nodes are few, one for 64 pages, but
//! their pages have another migrate type than user pages, and come from the free blocks of that type
//! that boot left. So tree nodes decide when these run out and pageblocks begin to change their type.
//!
//! Differs from Linux: if no memory is free at once there is no node, where Linux would reclaim; at its
//! group's limit a node is charged to no group; nodes that hold only shadows are not shrunk.
//!
//! Invariant: a node of a file has an object exactly while one of its slots is in use, unless there was
//! no memory for it.

use crate::ctx::Ctx;
use crate::gfp::Gfp;
use crate::memcg::ROOT;
use crate::process::Machine;
use crate::slab::Object;
use crate::units::{Cpu, FileId};

impl Machine {
    /// A page was put into a file's tree, which had `before` nodes.
    #[inline]
    pub(crate) fn tree_grew(&mut self, file: FileId, index: u32, before: u64, ctx: &Ctx) {
        if self.owners.files[file.idx()].nr_nodes != before {
            for level in 0..2 {
                if self.owners.files[file.idx()].lacks_node(level, index) {
                    let node = self.alloc_tree_node(ctx);
                    self.owners.files[file.idx()].set_node(level, index, node);
                }
            }
        }
    }

    /// A page was taken out of a file's tree, which had `before` nodes.
    #[inline]
    pub(crate) fn tree_shrank(&mut self, file: FileId, index: u32, before: u64, cpu: Cpu) {
        if self.owners.files[file.idx()].nr_nodes != before {
            for level in 0..2 {
                let node = self.owners.files[file.idx()].take_empty_node(level, index);
                if node.is_some() {
                    self.free_known(node, cpu);
                }
            }
        }
    }

    fn alloc_tree_node(&mut self, ctx: &Ctx) -> Object {
        let cache = self.slabs.tree_node;
        if let Some(node) = self.kmem_cache_alloc(cache, ctx.memcg, true, ctx.cpu) {
            return node;
        }
        let gfp = Gfp::NOWAIT;
        let paid = self.kmem_alloc_now(cache, true, gfp, ctx);
        paid.or_else(|_| self.kmem_alloc_now(cache, true, gfp, &Ctx { memcg: ROOT, ..*ctx }))
            .unwrap_or(Object::NONE)
    }
}
