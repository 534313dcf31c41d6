//! The nodes of the swap cache's tree that hold only shadows, and how they are freed.
//!
//! Linux: `workingset_update_node` for the swap cache (mm/swap_state.c, mm/workingset.c, 6.12; not
//! in 6.1). A node has 64 slots. While it has shadows and no page, it is on a list, oldest first.
//! The nodes are not charged, so the list is the root's: the shrinker compares its length with the
//! pages of the root itself. In a machine whose memory belongs to groups that is a small number, so
//! most shadows of swap are lost.
//!
//! Difference from Linux: the nodes are on the list of the first node of the machine, behind those of
//! the root's files. Their memory is in [`super::slot_tree`]. Whether an area frees its shadows is
//! decided when it is added.
//!
//! Invariant: a node is listed exactly while it has shadows and no page.

use crate::ageing::shadow::Shadow;
use crate::units::digest::State;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Slots of a node, as a shift (Linux `XA_CHUNK_SHIFT`).
pub(super) const NODE_SHIFT: u32 = 6;

/// Pages and shadows of a node of the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
struct NodeContent {
    pages: u8,
    shadows: u8,
    /// Number of the listing; 0: it is not listed.
    listing: u64,
}

/// The nodes of a swap area.
#[derive(Clone, Debug, Default, State)]
pub(super) struct SwapShadowNodes {
    nodes: Vec<NodeContent>,
    /// Listed nodes by the number of their listing.
    list: BTreeMap<u64, u32>,
    nr_listings: u64,
}

/// Content of a slot of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TreeSlot {
    Empty,
    Page,
    Shadow,
}

impl TreeSlot {
    #[inline]
    pub fn of(has_page: bool, shadow: Shadow) -> TreeSlot {
        match (has_page, shadow) {
            (true, _) => TreeSlot::Page,
            (false, Shadow::NONE) => TreeSlot::Empty,
            (false, _) => TreeSlot::Shadow,
        }
    }
}

impl SwapShadowNodes {
    /// Listed nodes.
    pub fn len(&self) -> u64 {
        self.list.len() as u64
    }

    /// A slot has changed.
    pub fn changed(&mut self, slot: u32, from: TreeSlot, to: TreeSlot) {
        if from == to {
            return;
        }
        let at = slot >> NODE_SHIFT;
        if self.nodes.len() <= at as usize {
            self.nodes.resize(at as usize + 1, NodeContent::default());
        }
        let node = &mut self.nodes[at as usize];
        match from {
            TreeSlot::Empty => {}
            TreeSlot::Page => node.pages -= 1,
            TreeSlot::Shadow => node.shadows -= 1,
        }
        match to {
            TreeSlot::Empty => {}
            TreeSlot::Page => node.pages += 1,
            TreeSlot::Shadow => node.shadows += 1,
        }
        let is_wanted = node.pages == 0 && node.shadows > 0;
        if is_wanted && node.listing == 0 {
            self.nr_listings += 1;
            node.listing = self.nr_listings;
            self.list.insert(node.listing, at);
        } else if !is_wanted && node.listing != 0 {
            self.list.remove(&core::mem::take(&mut node.listing));
        }
    }

    /// The oldest listed node.
    pub fn oldest(&self) -> Option<u32> {
        self.list.first_key_value().map(|(_, &at)| at)
    }

    /// Whether these are the numbers of pages and shadows of each node.
    pub fn agrees(&self, slots: impl Iterator<Item = TreeSlot>) -> bool {
        let mut counted: Vec<[u8; 2]> = alloc::vec![[0; 2]; self.nodes.len()];
        for (at, slot) in slots.enumerate().filter(|(_, slot)| *slot != TreeSlot::Empty) {
            let Some(node) = counted.get_mut(at >> NODE_SHIFT) else { return false };
            node[usize::from(slot == TreeSlot::Shadow)] += 1;
        }
        let nr_wanted =
            counted.iter().filter(|[pages, shadows]| *pages == 0 && *shadows > 0).count();
        if self.list.len() != nr_wanted {
            return false;
        }
        self.nodes.iter().zip(counted).enumerate().all(|(at, (node, counted))| {
            let is_listed = self.list.get(&node.listing) == Some(&(at as u32));
            [node.pages, node.shadows] == counted
                && is_listed == (counted[0] == 0 && counted[1] > 0)
        })
    }
}
