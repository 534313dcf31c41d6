//! Idle groups: groups in which a walk has nothing to do, known before the walk reaches them.
//!
//! Linux has no such thing: `shrink_node_memcgs` (mm/vmscan.c, 6.1) looks at every group. With many
//! small groups most visits find nothing to do, because at a mild priority `list >> priority` is 0.
//! Here each group has one byte per node: the least priority at which a visit is sure to find
//! nothing. The bytes are in walk order, so a walk skips groups as fast as it reads bytes. Skipped
//! groups still count as visited.
//!
//! A byte that is too large only costs one look at the group; a byte must never be too small. Every
//! change after which a visit may find work raises the byte at once: more new pages than a margin,
//! an anonymous list that needs aging, unused cached objects, a setting. Only a visit that found
//! nothing lowers it.
//!
//! Invariant: unless the order is out of date, a visit to a group at the priority in its byte, or
//! at a higher one, changes only the count of visits; the audit checks this. No decision depends on
//! these bytes.

mod pass;

use crate::config::{ShrinkPriorityPolicy, SoftLimitPolicy};
use crate::units::{IdVec, MemcgId, NodeId};
use alloc::vec::Vec;

/// Higher than any priority: the group must be visited.
const NEVER: u8 = u64::BITS as u8 - 1;

/// Policies that decide which of a group's settings matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IdleRules {
    soft_limit: SoftLimitPolicy,
    shrink_priority: ShrinkPriorityPolicy,
    can_age_anon: bool,
    ages_by_own_lists: bool,
    generations: bool,
}

/// How much may change before a group's byte is invalid.
#[derive(Clone, Copy, Debug, Default)]
struct IdleMargin {
    /// Pages that may arrive before one of the lists is large enough to be scanned.
    arrivals: u32,
    /// Pages that may leave before there are too many shadow nodes.
    departures: u32,
}

/// Idle state of the groups on a node, by place in the walk order.
#[derive(Clone, Debug, Default)]
struct IdleNode {
    /// The least priority at which a visit finds nothing.
    from: Vec<u8>,
    margins: Vec<IdleMargin>,
}

impl IdleNode {
    #[inline]
    fn spend(&mut self, place: usize, nr: u64, of: impl Fn(&mut IdleMargin) -> &mut u32) {
        let margin = of(&mut self.margins[place]);
        if nr <= u64::from(*margin) {
            *margin -= nr as u32;
        } else {
            self.from[place] = NEVER;
        }
    }
}

/// All groups in walk order, with their idle state.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdleGroups {
    /// Rules at the time when the order was built. `None`: since then, groups were created, removed
    /// or changed.
    rules: Option<IdleRules>,
    /// Groups visited since the order went out of date.
    looked_at: usize,
    /// The groups, parents first.
    order: Vec<MemcgId>,
    /// Place of each group in the order, by id.
    places: IdVec<MemcgId, u32>,
    /// First place after a group's subtree, by place.
    ends: Vec<u32>,
    /// Whether a setting of the group or of an ancestor can change its plan, by place.
    has_rules: Vec<bool>,
    nodes: IdVec<NodeId, IdleNode>,
}

impl IdleGroups {
    pub fn new(nr_nodes: usize) -> IdleGroups {
        IdleGroups {
            nodes: alloc::vec![IdleNode::default(); nr_nodes].into(),
            ..IdleGroups::default()
        }
    }

    /// A group was created, removed or changed: the order is out of date.
    pub fn forget(&mut self) {
        self.rules = None;
    }

    /// Pages were added to the lists of a group.
    #[inline]
    pub fn pages_added(&mut self, memcg: MemcgId, node: NodeId, nr: u64) {
        if self.rules.is_some() {
            let place = self.places[memcg] as usize;
            self.nodes[node].spend(place, nr, |margin| &mut margin.arrivals);
        }
    }

    /// Pages left the lists of a group, or the group has new shadow nodes (worth `nr` pages).
    #[inline]
    pub fn pages_removed(&mut self, memcg: MemcgId, node: NodeId, nr: u64) {
        if self.rules.is_some() {
            let place = self.places[memcg] as usize;
            self.nodes[node].spend(place, nr, |margin| &mut margin.departures);
        }
    }

    /// A visit to a group may find work at any priority.
    #[inline]
    pub fn must_visit(&mut self, memcg: MemcgId, node: NodeId) {
        if self.rules.is_some() {
            let place = self.places[memcg] as usize;
            self.nodes[node].from[place] = NEVER;
        }
    }
}

/// The least priority at which no page of a list is scanned.
#[inline]
const fn idle_priority(size: u64) -> u8 {
    let bits = (u64::BITS - size.leading_zeros()) as u8;
    if bits < NEVER {
        bits
    } else {
        NEVER
    }
}

/// Pages that may be added to a list of `size` pages before it is scanned at priority `from`.
const fn arrivals_until(from: u8, size: u64) -> u64 {
    ((1 << from) - 1u64).saturating_sub(size)
}

/// Length of the prefix of entries that are at most `priority`.
#[inline]
fn idle_prefix_len(from: &[u8], priority: u8) -> usize {
    const AT_ONCE: usize = 16;
    let mut passed = 0;
    for some in from.chunks(AT_ONCE) {
        // No early exit, so that the comparison vectorizes.
        if some.iter().fold(false, |any, &from| any | (from > priority)) {
            return passed + some.iter().take_while(|&&from| from <= priority).count();
        }
        passed += some.len();
    }
    passed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ageing::lruvec::Lru;
    use crate::config::Config;
    use crate::frames::node::NodeSpec;
    use crate::groups::memcg::ROOT;
    use crate::process::Machine;
    use crate::swap::SwapOptions;

    /// The wanted ratio of the lists falls from 3 to 1 when they drop below 1 GiB.
    #[test]
    fn an_active_page_that_leaves_may_put_lists_out_of_balance() {
        let mut machine =
            Machine::new(&[NodeSpec::x86_64(64 << 20, 0, 0)], 1, Config::default()).unwrap();
        machine.swapon(SwapOptions::new(1000));
        let (memcg, node) = (machine.create_memcg("group".into(), ROOT).unwrap(), NodeId(0));
        let sizes = &mut machine.groups.memcgs[memcg].lruvecs[0].subtree;
        (sizes[Lru::InactiveAnon as usize], sizes[Lru::ActiveAnon as usize]) = (80_000, 182_145);
        machine.groups.idle_groups.rules = Some(IdleRules {
            soft_limit: SoftLimitPolicy::default(),
            shrink_priority: ShrinkPriorityPolicy::default(),
            can_age_anon: true,
            ages_by_own_lists: false,
            generations: false,
        });
        machine.groups.idle_groups.places = alloc::vec![0, 1].into();
        let margins = alloc::vec![IdleMargin { arrivals: u32::MAX, departures: u32::MAX }; 2];
        machine.groups.idle_groups.nodes[0] = IdleNode { from: alloc::vec![0, 0], margins };
        machine.subtree_sizes_changed(memcg, node, Lru::ActiveAnon, -1);
        assert_eq!(machine.groups.idle_groups.nodes[0].from, [0, 0], "there is a GiB still");
        machine.subtree_sizes_changed(memcg, node, Lru::ActiveAnon, -1);
        assert_eq!(machine.groups.idle_groups.nodes[0].from, [0, NEVER]);
    }
}
