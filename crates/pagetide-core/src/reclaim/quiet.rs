//! Groups in which a walk will find nothing to do, known before it gets there.
//!
//! Linux has no such thing: `shrink_node_memcgs` (mm/vmscan.c, 6.1) looks at every group. Where groups are many and
//! small most visits end there, because at a mild priority `list >> priority` is 0. Here each group has one byte a node:
//! the least priority at which a visit is sure to find nothing. The bytes stand in the order of the walk, so that a walk
//! passes groups as fast as it can read bytes. It counts them as visited all the same.
//!
//! A byte may be too large, which costs a look at the group; it must never be too small. So whatever can give a visit
//! something to do raises it at once (more pages than a margin, an anonymous list that is to be aged, kept objects, a
//! setting), and only a visit that has found nothing lowers it.
//!
//! Invariant: unless the order is out of date, a visit to a group at its byte's priority or a higher one changes
//! nothing but the count of visits; the audit compares. No decision depends on what is here.

mod pass;
mod warm;

use crate::config::{ShrinkPriorityPolicy, SoftLimitPolicy};
use crate::units::{MemcgId, NodeId};
use alloc::vec::Vec;

/// No priority is as mild as this: the group must be looked at.
const NEVER: u8 = u64::BITS as u8 - 1;

/// What says which of a group's settings count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rules {
    soft_limit: SoftLimitPolicy,
    shrink_priority: ShrinkPriorityPolicy,
    can_age_anon: bool,
}

/// How long a group's byte holds, whichever of its lists pages come to and leave.
#[derive(Clone, Copy, Debug, Default)]
struct Margin {
    /// Pages that may come before a list is large enough to be scanned.
    arrivals: u32,
    /// Pages that may leave before there are too many shadow nodes.
    departures: u32,
}

/// What a walk needs to know of the groups on a node before it looks, by place.
#[derive(Clone, Debug, Default)]
struct Quiet {
    /// The least priority at which a visit finds nothing.
    from: Vec<u8>,
    margins: Vec<Margin>,
}

impl Quiet {
    #[inline]
    fn spend(&mut self, place: usize, nr: u64, of: impl Fn(&mut Margin) -> &mut u32) {
        let margin = of(&mut self.margins[place]);
        if nr <= u64::from(*margin) {
            *margin -= nr as u32;
        } else {
            self.from[place] = NEVER;
        }
    }
}

/// All groups in the order of a walk, and where there is nothing to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct QuietGroups {
    /// By which rules the order was written down; `None`: groups came, went or got other settings since.
    rules: Option<Rules>,
    /// Groups looked at since the order went out of date.
    looked_at: usize,
    /// The groups, parents first.
    order: Vec<MemcgId>,
    /// Place of each group in the order, by id.
    places: Vec<u32>,
    /// The place behind a group and all below it, by place.
    ends: Vec<u32>,
    /// Whether a setting of the group, or of one above, can change what a walk does with it, by place.
    set_apart: Vec<bool>,
    nodes: Vec<Quiet>,
    /// Up to which place what a walk will look at was loaded.
    warmed: u32,
}

impl QuietGroups {
    /// Nothing known yet.
    pub fn new(nr_nodes: usize) -> QuietGroups {
        QuietGroups { nodes: alloc::vec![Quiet::default(); nr_nodes], ..QuietGroups::default() }
    }

    /// A group came or went, or has another setting.
    pub fn forget(&mut self) {
        self.rules = None;
    }

    /// Pages have come to the lists of a group.
    #[inline]
    pub fn pages_came(&mut self, memcg: MemcgId, node: NodeId, nr: u64) {
        if self.rules.is_some() {
            let place = self.places[memcg.idx()] as usize;
            self.nodes[node.idx()].spend(place, nr, |margin| &mut margin.arrivals);
        }
    }

    /// Pages have left the lists of a group, or it has shadow nodes that need so many more.
    #[inline]
    pub fn pages_left(&mut self, memcg: MemcgId, node: NodeId, nr: u64) {
        if self.rules.is_some() {
            let place = self.places[memcg.idx()] as usize;
            self.nodes[node.idx()].spend(place, nr, |margin| &mut margin.departures);
        }
    }

    /// A visit to a group may find something, whatever the priority.
    #[inline]
    pub fn must_be_looked_at(&mut self, memcg: MemcgId, node: NodeId) {
        if self.rules.is_some() {
            let place = self.places[memcg.idx()] as usize;
            self.nodes[node.idx()].from[place] = NEVER;
        }
    }
}

/// The least priority at which nothing of a list is scanned.
#[inline]
const fn first_to_leave_alone(size: u64) -> u8 {
    let bits = (u64::BITS - size.leading_zeros()) as u8;
    if bits < NEVER {
        bits
    } else {
        NEVER
    }
}

/// Pages that a list of so many may get until it is scanned at that priority.
const fn arrivals_until(from: u8, size: u64) -> u64 {
    ((1 << from) - 1u64).saturating_sub(size)
}

/// How many entries in a row are at most `priority`, from the first on.
#[inline]
fn quiet_in_a_row(from: &[u8], priority: u8) -> usize {
    const AT_ONCE: usize = 16;
    let mut passed = 0;
    for some in from.chunks(AT_ONCE) {
        // Without an exit: compared side by side.
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
    use crate::config::Config;
    use crate::lruvec::Lru;
    use crate::memcg::ROOT;
    use crate::node::NodeSpec;
    use crate::process::Machine;

    /// The ratio of the lists that is wanted falls from 3 to 1 where they lose their last GiB.
    #[test]
    fn an_active_page_that_leaves_may_put_lists_out_of_balance() {
        let mut machine =
            Machine::new(&[NodeSpec::x86_64(64 << 20, 0, 0)], 1, Config::default()).unwrap();
        machine.swapon(1000, 1000, false);
        let (memcg, node) = (machine.create_memcg("group".into(), ROOT).unwrap(), NodeId(0));
        let sizes = &mut machine.memcgs[memcg.idx()].lruvecs[0].subtree;
        (sizes[Lru::InactiveAnon as usize], sizes[Lru::ActiveAnon as usize]) = (80_000, 182_145);
        machine.quiet.rules = Some(Rules {
            soft_limit: SoftLimitPolicy::default(),
            shrink_priority: ShrinkPriorityPolicy::default(),
            can_age_anon: true,
        });
        machine.quiet.places = alloc::vec![0, 1];
        let margins = alloc::vec![Margin { arrivals: u32::MAX, departures: u32::MAX }; 2];
        machine.quiet.nodes[0] = Quiet { from: alloc::vec![0, 0], margins };
        machine.subtree_sizes_changed(memcg, node, Lru::ActiveAnon, -1);
        assert_eq!(machine.quiet.nodes[0].from, [0, 0], "there is a GiB still");
        machine.subtree_sizes_changed(memcg, node, Lru::ActiveAnon, -1);
        assert_eq!(machine.quiet.nodes[0].from, [0, NEVER]);
    }
}
