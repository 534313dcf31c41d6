//! The reclaim stage of soft limits, and the updates of the trees.
//!
//! Linux: `mem_cgroup_soft_limit_reclaim`, `memcg_check_events`, `mem_cgroup_update_tree`
//! (mm/memcontrol.c, 6.1).

use crate::ageing::generations::memcg_lru::Rotation;
use crate::config::SoftLimitPolicy;
use crate::groups::memcg::ROOT;
use crate::groups::Groups;
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::reclaim::soft_limit_tree::SoftReclaim;
use crate::reclaim::{Reclaimer, ScanControl};
use crate::stats::event::TraceEvent;
use crate::units::{Cpu, MemcgId, NodeId, SWAP_CLUSTER_MAX};

/// Charges and uncharges of a group on a CPU between two checks of thresholds.
const THRESHOLDS_EVENTS_TARGET: u64 = 128;

/// Charges and uncharges of a group on a CPU between two updates of the tree.
const SOFTLIMIT_EVENTS_TARGET: u64 = 1024;

/// Groups tried without result before the stage gives up.
const MAX_SOFT_LIMIT_RECLAIM_LOOPS: u32 = 2;

/// Most rounds over one group's subtree.
const MAX_RECLAIM_LOOPS: u32 = 100;

impl Groups {
    /// A soft limit was set: counts charges from here on.
    pub(crate) fn use_soft_limits(&mut self) {
        self.soft_limit_trees.in_use = true;
    }

    /// The stage is abandoned. Puts back the groups that the stage holds off the tree.
    pub(crate) fn abandon_soft_reclaim(&mut self, state: &SoftReclaim) {
        for held in [state.top.map(|(top, _)| top), state.next].into_iter().flatten() {
            let Some(memcg) = self.at_position(held).filter(|&id| self.memcg_is_online(id)) else {
                continue;
            };
            if self.memcgs[memcg].lruvecs[state.node].soft_limit_key.is_none() {
                let excess = self.memcgs[memcg].soft_limit_excess();
                self.put_on_tree(memcg, state.node, excess);
            }
        }
    }

    fn take_off_tree(&mut self, memcg: MemcgId, node: NodeId) {
        let lruvec = &mut self.memcgs[memcg].lruvecs[node];
        if let Some(key) = lruvec.soft_limit_key.take() {
            self.soft_limit_trees.trees[node].remove(&key);
        }
    }

    /// A group that is on the tree already keeps its key, as in Linux
    /// (`__mem_cgroup_insert_exceeded`): charges may have put back the group that a reclaimer took
    /// off.
    fn put_on_tree(&mut self, memcg: MemcgId, node: NodeId, excess: u64) {
        let is_on = self.memcgs[memcg].lruvecs[node].soft_limit_key.is_some();
        if excess == 0 || is_on {
            return;
        }
        let trees = &mut self.soft_limit_trees;
        trees.arrivals += 1;
        let key = (excess, trees.arrivals);
        trees.trees[node].insert(key, memcg);
        self.memcgs[memcg].lruvecs[node].soft_limit_key = Some(key);
    }

    /// On the memcg LRU a group above its soft limit comes before the others of its generation.
    fn lru_gen_soft_reclaim(&mut self, memcg: MemcgId, node: NodeId) {
        let Some(list) = self.memcg_lru.get_mut(node.idx()) else { return };
        let is_first = list.entry(memcg).and_then(|at| at.segment) == Some(Rotation::Head);
        if memcg != ROOT && !is_first {
            list.rotate(memcg, Rotation::Head);
        }
    }

    /// Takes the group with the largest key off the tree, if it is still over its limit.
    fn largest_soft_limit(&mut self, node: NodeId) -> Option<MemcgId> {
        loop {
            let (_, &memcg) = self.soft_limit_trees.trees[node].last_key_value()?;
            self.take_off_tree(memcg, node);
            if self.memcgs[memcg].soft_limit_excess() > 0 {
                return Some(memcg);
            }
        }
    }

    /// Puts the group back with its present excess. Returns whether the stage is over.
    fn soft_reclaim_of_top_ended(&mut self, state: &mut SoftReclaim) -> bool {
        let Some((top, _)) = state.top.take() else { return true };
        state.nr_reclaimed += state.total;
        // If the group freed nothing, the stage tries the next one.
        let next = if state.total == 0 { self.largest_soft_limit(state.node) } else { None };
        state.next = next.map(|next| self.position_of(next));
        if let Some(top) = self.at_position(top) {
            self.take_off_tree(top, state.node);
            let excess = self.memcgs[top].soft_limit_excess();
            self.put_on_tree(top, state.node, excess);
        }
        state.tried += 1;
        if state.nr_reclaimed > 0 {
            return true;
        }
        let over = next.is_none() || state.tried > MAX_SOFT_LIMIT_RECLAIM_LOOPS;
        if over {
            // The group taken off for the next try goes back.
            if let Some(next) = next {
                let excess = self.memcgs[next].soft_limit_excess();
                self.put_on_tree(next, state.node, excess);
            }
        }
        over
    }
}

impl Kernel {
    /// Counts charges of a group on a CPU; every 1024 charges updates its place in the tree (Linux
    /// `memcg_check_events`).
    pub(crate) fn soft_limit_event(&mut self, cpu: Cpu, memcg: MemcgId, node: NodeId, nr: u64) {
        if self.config.soft_limit != SoftLimitPolicy::Tree {
            return;
        }
        let nr_cpus = self.groups.stocks.len();
        let events = &mut self.groups.memcgs[memcg].cpu_events;
        if events.is_empty() {
            events.resize(nr_cpus, Default::default());
        }
        let events = &mut events[cpu];
        events.nr_page_events += nr;
        let count = events.nr_page_events;
        if events.threshold_target >= count {
            return;
        }
        events.threshold_target = count + THRESHOLDS_EVENTS_TARGET;
        if events.soft_limit_target >= count {
            return;
        }
        events.soft_limit_target = count + SOFTLIMIT_EVENTS_TARGET;
        if self.era.ages_in_eviction {
            if self.groups.memcgs[memcg].soft_limit_excess() > 0 {
                self.groups.lru_gen_soft_reclaim(memcg, node);
            }
            return;
        }
        // The root has no soft limit, whatever value is set there.
        let mut at = memcg;
        while at != ROOT {
            let excess = self.groups.memcgs[at].soft_limit_excess();
            let on_tree = self.groups.memcgs[at].lruvecs[node].soft_limit_key.is_some();
            if excess > 0 || on_tree {
                self.groups.take_off_tree(at, node);
                self.groups.put_on_tree(at, node, excess);
            }
            at = self.groups.memcgs[at].parent;
        }
    }

    /// A task was killed, perhaps while it held the worst group off the tree. Puts missing groups
    /// back.
    pub(crate) fn restore_soft_limits(&mut self) {
        if !self.groups.soft_limit_trees.in_use || self.config.soft_limit != SoftLimitPolicy::Tree {
            return;
        }
        // A removed group is on no tree, even if its caches keep it alive.
        let ids = (1..self.groups.memcgs.len()).map(|id| MemcgId(id as u16));
        let there: alloc::vec::Vec<_> = ids.filter(|&id| self.groups.memcg_is_online(id)).collect();
        for id in there {
            let excess = self.groups.memcgs[id].soft_limit_excess();
            for node in 0..self.groups.memcgs[id].lruvecs.len() {
                if self.groups.memcgs[id].lruvecs[node].soft_limit_key.is_none() {
                    self.groups.put_on_tree(id, NodeId(node as u8), excess);
                }
            }
        }
    }

    pub(crate) fn forget_soft_limit(&mut self, memcg: MemcgId) {
        for node in 0..self.mem.pgdat.len() {
            self.groups.take_off_tree(memcg, NodeId(node as u8));
        }
    }

    /// The stage before a pass over a node, if it has work. `None` for high orders, and for reclaim
    /// at a group's own limit.
    pub(crate) fn begin_soft_reclaim(&self, node: NodeId, sc: &ScanControl) -> Option<SoftReclaim> {
        // Linux 6.12: with generations soft limits only decide the order of groups.
        let wanted = self.config.soft_limit == SoftLimitPolicy::Tree
            && !self.era.ages_in_eviction
            && sc.goal.target.is_none()
            && sc.goal.order == 0
            && (sc.goal.is_kswapd() || !self.era.soft_limits_only_in_kswapd)
            && !self.groups.soft_limit_trees.trees[node].is_empty();
        if !wanted {
            return None;
        }
        let reclaimer = if sc.goal.is_kswapd() { Reclaimer::Kswapd } else { Reclaimer::Direct };
        let mut inner = ScanControl::new(reclaimer, SWAP_CLUSTER_MAX, sc.goal.gfp, 0);
        inner.goal.priority = 0;
        inner.may.overrule_plugins = sc.may.overrule_plugins;
        inner.goal.reclaim_idx = crate::frames::zone_type::MAX_NR_ZONES - 1;
        inner.rules.only_zone = sc.rules.only_zone;
        Some(SoftReclaim {
            node,
            top: None,
            victim: None,
            sc: inner,
            turns: 0,
            total: 0,
            tried: 0,
            next: None,
            nr_reclaimed: 0,
            nr_scanned: 0,
        })
    }

    fn begin_soft_victim(&mut self, state: &mut SoftReclaim, victim: MemcgId) {
        self.mem.work.lruvecs_visited += 1;
        let sc = &mut state.sc;
        // Each member counts as short of memory itself.
        sc.goal.target = Some(victim);
        sc.found.nr_scanned = 0;
        // Since 5.8 this stage never ages lists; the older policies decide list by list.
        sc.found.lists.may_deactivate = [false; 2];
        if let Some((top, excess)) = state.top {
            self.mem.events.record(TraceEvent::MmVmscanMemcgSoftlimitReclaimBegin {
                memcg: victim,
                top: top.id,
                excess,
                order: state.sc.goal.order,
                gfp_flags: state.sc.goal.gfp,
            });
        }
        let sc = &mut state.sc;
        let plan = crate::reclaim::plugin::GroupPlan { skip: false, priority: 0, protected: 0 };
        let scan = self.plan_scan(victim, state.node, sc, plan, SWAP_CLUSTER_MAX);
        state.victim = Some((self.groups.position_of(victim), scan));
    }

    /// Continues with the next member of the subtree. Returns whether the group on top is done.
    fn soft_reclaim_victim_ended(&mut self, state: &mut SoftReclaim, victim: MemcgId) -> bool {
        let Some((top, excess)) = state.top else { return true };
        let Some(top) = self.groups.at_position(top) else { return true };
        if self.groups.memcgs[top].soft_limit_excess() == 0 {
            return true;
        }
        let next = self.groups.next_memcg(top, victim);
        if next.is_none() {
            state.turns += 1;
            // A second round always follows the first, even if the first freed enough.
            let enough =
                state.total == 0 || state.total >= excess >> 2 || state.turns > MAX_RECLAIM_LOOPS;
            if state.turns >= 2 && enough {
                return true;
            }
        }
        self.begin_soft_victim(state, next.unwrap_or(top));
        false
    }
}

impl<O: Owners> Manager<O> {
    /// One batch of the stage. Returns whether it is over.
    pub(crate) fn soft_reclaim_step(&mut self, state: &mut SoftReclaim, ctx: &Ctx) -> bool {
        loop {
            if let Some((at, lruvec)) = &mut state.victim {
                let Some(victim) = self.groups.at_position(*at) else {
                    state.total += lruvec.nr_reclaimed();
                    state.nr_scanned += state.sc.found.nr_scanned;
                    let (memcg, nr_reclaimed) = (at.id, lruvec.nr_reclaimed());
                    self.mem.events.record(TraceEvent::MmVmscanMemcgSoftlimitReclaimEnd {
                        memcg,
                        nr_reclaimed,
                    });
                    state.victim = None;
                    return self.groups.soft_reclaim_of_top_ended(state);
                };
                if self.shrink_lruvec_step(lruvec, victim, state.node, &mut state.sc, ctx) {
                    self.mem.events.record(TraceEvent::MmVmscanMemcgSoftlimitReclaimEnd {
                        memcg: victim,
                        nr_reclaimed: lruvec.nr_reclaimed(),
                    });
                    state.total += lruvec.nr_reclaimed();
                    state.nr_scanned += state.sc.found.nr_scanned;
                    state.victim = None;
                    if self.soft_reclaim_victim_ended(state, victim) {
                        return self.groups.soft_reclaim_of_top_ended(state);
                    }
                }
                return false;
            }
            let Some((top, _)) = state.top else {
                let next = state.next.take().and_then(|next| self.groups.at_position(next));
                let Some(memcg) = next.or_else(|| self.groups.largest_soft_limit(state.node))
                else {
                    return true;
                };
                let excess = self.groups.memcgs[memcg].soft_limit_excess();
                state.top = Some((self.groups.position_of(memcg), excess));
                state.turns = 0;
                state.total = 0;
                self.begin_soft_victim(state, memcg);
                continue;
            };
            if self.groups.at_position(top).is_none() {
                return self.groups.soft_reclaim_of_top_ended(state);
            }
            unreachable!("a group on top has a victim");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, LruPolicy, MglruRules};
    use crate::frames::gfp::Gfp;
    use crate::frames::node::NodeSpec;
    use crate::process::Machine;
    use crate::process::MmId;
    use alloc::vec::Vec;

    #[test]
    fn a_group_that_charges_bring_back_meanwhile_is_on_the_tree_once() {
        let node = NodeId(0);
        let config = Config { soft_limit: SoftLimitPolicy::Tree, ..Config::default() };
        let mut machine = Machine::new(&[NodeSpec::x86_64(8 << 20, 0, 0)], 1, config).unwrap();
        let memcg = machine.create_memcg("group".into(), ROOT).unwrap();
        machine.groups.memcgs[memcg].soft_limit = 0;
        machine.groups.memcgs[memcg].memory.usage = 8;
        machine.groups.put_on_tree(memcg, node, 8);
        let ctx = Ctx { cpu: Cpu(0), node, now: 0, asker: MmId::NONE, memcg: ROOT };
        let sc = ScanControl::new(Reclaimer::Kswapd, SWAP_CLUSTER_MAX, Gfp::KERNEL, 0);
        let mut stage = machine.begin_soft_reclaim(node, &sc).unwrap();
        assert!(!machine.soft_reclaim_step(&mut stage, &ctx));
        assert_eq!(
            machine.groups.soft_limit_trees.of_node(0).count(),
            0,
            "taken off to be worked on"
        );
        // The group has nothing to free: it is tried again and again, and each try puts it back.
        machine.groups.put_on_tree(memcg, node, 9);
        while !machine.soft_reclaim_step(&mut stage, &ctx) {}
        let on_tree: Vec<_> =
            machine.groups.soft_limit_trees.of_node(0).map(|(key, _)| key).collect();
        let known = machine.groups.memcgs[memcg].lruvecs[0].soft_limit_key;
        assert_eq!(on_tree, Vec::from_iter(known));
    }

    #[test]
    fn charges_above_the_soft_limit_bring_a_group_to_the_front() {
        let config = Config {
            lru: LruPolicy::Mglru,
            mglru: MglruRules::Linux612,
            soft_limit: SoftLimitPolicy::Tree,
            ..Config::default()
        };
        let mut machine = Machine::new(&[NodeSpec::x86_64(8 << 20, 0, 0)], 1, config).unwrap();
        let memcg = machine.create_memcg("group".into(), ROOT).unwrap();
        for (limit, segment) in [(8, None), (7, Some(Rotation::Head))] {
            machine.groups.memcgs[memcg].soft_limit = limit;
            machine.groups.memcgs[memcg].memory.usage = 8;
            machine.soft_limit_event(Cpu(0), memcg, NodeId(0), 2000);
            assert_eq!(machine.groups.memcg_lru[0].entry(memcg).unwrap().segment, segment);
        }
    }
}
