//! Kernel memory that the page cache takes for its own bookkeeping.
//!
//! Linux: an xarray a file, whose nodes (`struct xa_node`, 64 slots) come from the slab cache
//! `radix_tree_node`, of reclaimable pages. A node exists as long as one of its slots holds a page or
//! a shadow. Nodes are few, one for 64 pages, but their pages are of another migrate type than user
//! pages and are taken from what boot left free of it, so they decide when that runs out and
//! pageblocks begin to change hands.
//!
//! Differs from Linux: nodes are packed, so slabs are never left half empty by nodes that went in
//! another order than they came; a node that finds no memory at once is owed, where Linux would
//! reclaim for it; shadows are not shrunk; groups are not charged.
//!
//! Invariant: `live` is the number of nodes of all files. There are slabs for all of them but those
//! that are owed; after the caches were dropped at most [`MIN_PARTIAL`] more.

use crate::call::Ctx;
use crate::digest::Digest;
use crate::gfp::{AllocFlags, Gfp};
use crate::machine::Machine;
use crate::page_size::PageSize;
use crate::units::{Cpu, NodeId, Order, Pfn};
use crate::vmstat::NodeStat;
use alloc::vec::Vec;

/// Bytes of a node in its slab: 576, and the pointer to the next free one, which cannot share the
/// space of an object that has a constructor.
const NODE_SIZE: u64 = 584;
/// Slots of a node (Linux `XA_CHUNK_SIZE`).
pub const SLOTS: u64 = 64;
/// Largest slab that is made for the sake of density (Linux `slub_max_order`).
const MAX_ORDER: Order = 3;
/// Empty slabs that are kept (Linux `MIN_PARTIAL`).
const MIN_PARTIAL: u64 = 5;

/// The nodes of all files.
#[derive(Clone, Debug)]
pub(crate) struct TreeNodes {
    /// Nodes that exist.
    live: u64,
    order: Order,
    per_slab: u64,
    /// First pages of the slabs, oldest first.
    slabs: Vec<Pfn>,
}

impl TreeNodes {
    /// None yet, on a machine of so many CPUs.
    pub(crate) fn new(nr_cpus: u16, page_size: PageSize) -> TreeNodes {
        let order = slab_order(NODE_SIZE, nr_cpus, page_size);
        let per_slab = page_size.bytes_of(1 << order) / NODE_SIZE;
        TreeNodes { live: 0, order, per_slab, slabs: Vec::new() }
    }

    /// Nodes of all files.
    pub(crate) fn live(&self) -> u64 {
        self.live
    }

    /// First pages of the slabs, and their order.
    pub(crate) fn slabs(&self) -> (&[Pfn], Order) {
        (&self.slabs, self.order)
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        let TreeNodes { live, order, per_slab, slabs } = self;
        digest.write_all(&[*live, u64::from(*order), *per_slab, slabs.len() as u64]);
        for slab in slabs {
            digest.write_u64(slab.0.into());
        }
    }
}

/// Order of the slabs of objects of `size` bytes (Linux `calculate_order`): the smallest that holds
/// as many objects as suit the number of CPUs and wastes at most a sixteenth.
fn slab_order(size: u64, nr_cpus: u16, page_size: PageSize) -> Order {
    let min_objects = 4 * (u64::from(u16::BITS - nr_cpus.leading_zeros()) + 1);
    let min_objects = min_objects.min(page_size.bytes_of(1 << MAX_ORDER) / size);
    let fits = |order: &Order| {
        let bytes = page_size.bytes_of(1 << order);
        bytes >= min_objects * size && bytes % size <= bytes / 16
    };
    (0..=MAX_ORDER).find(fits).unwrap_or(MAX_ORDER)
}

impl Machine {
    /// A file's tree has grown from `before` to `after` nodes.
    #[inline]
    pub(crate) fn tree_grew(&mut self, before: u64, after: u64, ctx: &Ctx) {
        if after != before {
            self.tree_nodes.live += after - before;
            self.take_slabs(ctx);
        }
    }

    /// A file's tree has shrunk from `before` to `after` nodes.
    #[inline]
    pub(crate) fn tree_shrank(&mut self, before: u64, after: u64) {
        self.tree_nodes.live -= before - after;
    }

    fn take_slabs(&mut self, ctx: &Ctx) {
        let gfp = Gfp::NOWAIT.with(Gfp::RECLAIMABLE);
        while self.tree_nodes.live > self.tree_nodes.slabs.len() as u64 * self.tree_nodes.per_slab {
            let order = self.tree_nodes.order;
            let pfn = match self.mem.alloc_fast(ctx.cpu, ctx.node, order, gfp) {
                Some(pfn) => Some(pfn),
                None => {
                    for i in 0..self.nodes.len() {
                        let node = NodeId(((ctx.node.idx() + i) % self.nodes.len()) as u8);
                        self.wakeup_kswapd(node, order, gfp.highest_zone(), false);
                    }
                    let flags = AllocFlags::slow(gfp);
                    self.mem.get_page_from_freelist(ctx.cpu, ctx.node, order, gfp, flags)
                }
            };
            let Some(pfn) = pfn else { return };
            self.tree_nodes.slabs.push(pfn);
            let node = self.mem.pages[pfn.idx()].node();
            self.nodes[node.idx()].stats[NodeStat::NrSlabReclaimable as usize] += 1 << order;
        }
    }

    /// Gives back slabs that have been empty for good. To be called when files have shrunk.
    pub(crate) fn give_slabs_back(&mut self, cpu: Cpu) {
        let TreeNodes { live, per_slab, order, .. } = self.tree_nodes;
        let keep = live.div_ceil(per_slab) + MIN_PARTIAL;
        while self.tree_nodes.slabs.len() as u64 > keep {
            let Some(pfn) = self.tree_nodes.slabs.pop() else { return };
            let node = self.mem.pages[pfn.idx()].node();
            self.nodes[node.idx()].stats[NodeStat::NrSlabReclaimable as usize] -= 1 << order;
            self.mem.free_page(cpu, pfn, order);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_are_as_large_as_the_number_of_cpus_wants() {
        // What /proc/slabinfo shows: 14 objects of 8 kB on one or two CPUs, 28 of 16 kB on more.
        assert_eq!(
            [1, 2, 3, 4, 8, 16].map(|cpus| slab_order(NODE_SIZE, cpus, PageSize::Kib4)),
            [1, 1, 1, 2, 2, 2]
        );
        assert_eq!(TreeNodes::new(1, PageSize::Kib4).per_slab, 14);
        assert_eq!(TreeNodes::new(8, PageSize::Kib4).per_slab, 28);
        // A slab of one page of 64 KiB holds enough for anybody.
        assert_eq!(TreeNodes::new(256, PageSize::Kib64).order, 0);
    }
}
