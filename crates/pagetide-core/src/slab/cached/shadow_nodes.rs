//! The list of shadow nodes (page-cache nodes that hold only shadows), and how many a group may
//! have.
//!
//! Linux: `workingset_update_node`, `count_shadow_nodes`, `shadow_lru_isolate` (mm/workingset.c,
//! 6.1). While a node has shadows and no page, it is on the list of the group that is charged for
//! it, oldest first. A group needs no more shadows than it can have pages. Because nodes may have
//! few slots in use, a group may keep one node per eight pages. When a node is freed, its shadows
//! are lost. Difference from Linux: with several nodes a group's slab memory counts on each of them
//! as an equal share.
//!
//! Invariant: the owner of a tree lists a node exactly while the node is allocated and holds only
//! shadows.

use super::{NONE, SHADOW_NODES};
use crate::groups::memcg::ROOT;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::slab::object::Object;
use crate::slab::Slabs;
use crate::stats::vmstat::Event;
use crate::units::{Cpu, MemcgId, NodeId};

/// Pages per shadow node, as a shift: a node has 64 slots; perhaps only an eighth of them is in use
/// (Linux `XA_CHUNK_SHIFT - 3`).
const PAGES_SHIFT: u32 = 6 - 3;
pub(crate) const PAGES_A_SHADOW_NODE: u64 = 1 << PAGES_SHIFT;

impl Slabs {
    pub(crate) fn is_shadow_node(&self, node: Object) -> bool {
        self.caches[node.cache].is_cached(node.number)
    }
}

impl Kernel {
    /// Notes pages that programs outside the simulation keep locked in the root, on the first node.
    /// They count where a size of the root limits what it keeps.
    pub fn note_locked_elsewhere(&mut self, pages: u64) {
        self.groups.locked_elsewhere = pages;
    }

    /// Lists a node that has lost its last page and still has shadows. `tree` and `index` say where
    /// the node is.
    pub(crate) fn list_shadow_node(&mut self, node: Object, tree: u32, index: u32) {
        debug_assert!(!self.slabs.is_shadow_node(node), "{node:?} is already listed");
        self.keep(node, Object::NONE, SHADOW_NODES, (tree, index));
    }

    /// Unlists a node that has a page again, or is empty.
    pub(crate) fn unlist_shadow_node(&mut self, node: Object) {
        let entry = self.slabs.caches[node.cache].entries[node.number as usize];
        self.take_entry(entry);
    }

    /// Shadow nodes of all groups (`workingset_nodes`).
    pub(crate) fn nr_shadow_nodes(&self, node: NodeId) -> u64 {
        let lists = self.groups.memcgs.iter().filter_map(|memcg| memcg.cached.get(node.idx()));
        lists.map(|lists| lists.nr_shadow_nodes()).sum::<u64>()
            + self.nr_swap_shadow_nodes(ROOT, node)
    }

    /// Shadow nodes of swap: the root's, on the first node.
    fn nr_swap_shadow_nodes(&self, memcg: MemcgId, node: NodeId) -> u64 {
        let is_there = memcg == ROOT && node == NodeId(0) && self.era.shrinks_swap_shadows;
        if is_there {
            self.swap.nr_shadow_nodes()
        } else {
            0
        }
    }

    /// Number of shadow nodes of a group beyond those that it needs.
    pub(crate) fn count_shadow_nodes(&self, memcg: MemcgId, node: NodeId) -> u64 {
        let group = &self.groups.memcgs[memcg];
        let of_files = group.cached.get(node.idx()).map_or(0, |lists| lists.nr_shadow_nodes());
        let nodes = of_files + self.nr_swap_shadow_nodes(memcg, node);
        if nodes == 0 {
            return 0;
        }
        // Quick check that ignores huge pages and slabs: usually there are not too many nodes.
        let elsewhere = match (memcg, node) {
            (ROOT, NodeId(0)) => self.groups.locked_elsewhere,
            _ => 0,
        };
        let entries: u64 = group.lruvecs[node].nr_entries() + elsewhere;
        if nodes <= entries >> PAGES_SHIFT {
            return 0;
        }
        let listed: u64 = group.lruvecs[node].zone_sizes.iter().flatten().sum();
        let clones = group.clones.iter().map(|clone| self.slabs.caches[*clone].bytes());
        let slabs = group.slab_bytes.map(|bytes| bytes.max(0) as u64).iter().sum::<u64>();
        let slabs = (slabs + clones.sum::<u64>()) / self.nr_nodes() as u64 / self.slabs.page_size;
        nodes.saturating_sub((listed + elsewhere + slabs) >> PAGES_SHIFT)
    }
}

impl<O: Owners> Manager<O> {
    /// Makes the owners drop the shadows of up to `nr` nodes, oldest first. Returns how many nodes
    /// were freed.
    pub(crate) fn scan_shadow_nodes(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        nr: u64,
        cpu: Cpu,
    ) -> u64 {
        for freed in 0..nr {
            let at = self.groups.memcgs[memcg].cached[node].lists[SHADOW_NODES].head;
            if at != NONE {
                let (tree, index) = self.slabs.cached.entries[at as usize].place;
                self.take_entry(at);
                O::forget_shadows(self, tree, index, cpu);
            } else if self.nr_swap_shadow_nodes(memcg, node) == 0
                || !self.forget_swap_shadow_node(cpu)
            {
                return freed;
            }
            self.mem.vmstat.count(Event::WorkingsetNodereclaim);
            self.groups.memcgs[memcg].events.count(Event::WorkingsetNodereclaim);
        }
        nr
    }
}
