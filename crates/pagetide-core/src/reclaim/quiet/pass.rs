//! Skipping of idle groups, and the updates that find out which groups are idle.
//!
//! Linux: nothing; see the parent module.

use super::{arrivals_until, idle_prefix_len, idle_priority, IdleMargin, IdleRules, NEVER};
use crate::config::{ShrinkPriorityPolicy, SoftLimitPolicy};
use crate::groups::memcg::ROOT;
use crate::groups::page_counter::UNLIMITED;
use crate::groups::Groups;
use crate::interface::kernel::Kernel;
use crate::reclaim::{ReclaimGoal, ScanControl};
use crate::slab::cached::PAGES_A_SHADOW_NODE;
use crate::units::{MemcgId, NodeId, DEF_PRIORITY};

impl Groups {
    /// Whether a setting of a group can change the plan for it and its descendants.
    fn is_set_apart(&self, memcg: MemcgId, rules: IdleRules) -> bool {
        let group = &self.memcgs[memcg];
        let counter = &group.memory;
        let heeds_soft_limits = match rules.soft_limit {
            SoftLimitPolicy::Off | SoftLimitPolicy::Tree => false,
            SoftLimitPolicy::Hierarchical | SoftLimitPolicy::TwoPass => true,
        };
        let heeds_shrink_priority = rules.shrink_priority != ShrinkPriorityPolicy::Off;
        [counter.min, counter.low, counter.emin, counter.elow] != [0; 4]
            || heeds_soft_limits && group.soft_limit != UNLIMITED
            || heeds_shrink_priority && group.shrink_priority != DEF_PRIORITY
    }

    #[inline]
    pub(in crate::reclaim) fn note_group_visit(&mut self) {
        self.idle_groups.looked_at += 1;
    }
}

impl Kernel {
    fn rules_of_walks(&self) -> IdleRules {
        IdleRules {
            soft_limit: self.config.soft_limit,
            shrink_priority: self.config.shrink_priority,
            can_age_anon: self.can_age_anon_pages(),
            ages_by_own_lists: self.era.ages_by_own_lists,
            generations: self.leaves_two_lists,
        }
    }

    /// A walk begins: rebuilds the order if that pays.
    pub(in crate::reclaim) fn walk_begins(&mut self) {
        // Rebuilding costs as much as a walk. So it waits until the number of visits without the
        // order reaches the number of groups.
        let is_due = self.groups.idle_groups.rules.is_none()
            && self.groups.idle_groups.looked_at >= self.groups.memcgs.len();
        let has_changed =
            self.groups.idle_groups.rules.is_some_and(|rules| rules != self.rules_of_walks());
        if is_due || has_changed {
            self.rebuild_walk_order();
        }
    }

    fn rebuild_walk_order(&mut self) {
        let mut quiet = core::mem::take(&mut self.groups.idle_groups);
        quiet.order.clear();
        quiet.order.extend(self.memcg_ids());
        let nr = quiet.order.len();
        let rules = self.rules_of_walks();
        quiet.places.clear();
        quiet.places.resize(self.groups.memcgs.len(), 0);
        quiet.has_rules.clear();
        for (place, &id) in quiet.order.iter().enumerate() {
            quiet.places[id] = place as u32;
            let parent = self.groups.memcgs[id].parent;
            let above = parent.is_some() && quiet.has_rules[quiet.places[parent] as usize];
            quiet.has_rules.push(above || self.groups.is_set_apart(id, rules));
        }
        // Backwards: the end of a subtree is known before its parent.
        quiet.ends.clear();
        quiet.ends.extend(1..=nr as u32);
        for place in (1..nr).rev() {
            let parent = self.groups.memcgs[quiet.order[place]].parent;
            let above = quiet.places[parent] as usize;
            quiet.ends[above] = quiet.ends[above].max(quiet.ends[place]);
        }
        for node in &mut quiet.nodes {
            node.from.clear();
            node.from.resize(nr, NEVER);
            node.margins.clear();
            node.margins.resize(nr, IdleMargin::default());
        }
        quiet.rules = Some(rules);
        quiet.looked_at = 0;
        self.groups.idle_groups = quiet;
    }

    /// Whether walks of this kind may skip groups at all.
    fn may_pass(&self, goal: &ReclaimGoal) -> bool {
        // Old kernels age their counts of a group at each visit. The first of two passes records
        // which groups it skips. Plug-ins are asked about each group. Generations have no rule yet for
        // a visit without work.
        self.groups.idle_groups.rules == Some(self.rules_of_walks())
            && goal.priority >= 0
            && !self.era.balances_by_rotation
            && !self.era.lists_by_zone
            && !self.leaves_two_lists
            && self.config.soft_limit != SoftLimitPolicy::TwoPass
            && self.plugin.policy.is_none()
    }

    /// Number of groups from `memcg` on (at most `most`) that a walk over `root` may count as
    /// visited without looking at them, and the last of these groups.
    #[inline]
    pub(in crate::reclaim) fn skip_idle_groups(
        &self,
        root: MemcgId,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
        most: u32,
    ) -> Option<(u32, MemcgId)> {
        if !self.may_pass(&sc.goal) {
            return None;
        }
        let quiet = &self.groups.idle_groups;
        let place = quiet.places[memcg] as usize;
        let end = quiet.ends[quiet.places[root] as usize] as usize;
        let end = end.min(place + most as usize);
        let row = quiet.nodes[node].from.get(place..end)?;
        let passed = idle_prefix_len(row, sc.goal.priority as u8);
        let last = place + passed.checked_sub(1)?;
        Some((passed as u32, quiet.order[last]))
    }

    /// Whether nothing can change the plan of the group: no setting of it or of an ancestor, and no
    /// plug-in.
    #[inline]
    pub(in crate::reclaim) fn has_no_rules(&self, memcg: MemcgId, sc: &ScanControl) -> bool {
        self.may_pass(&sc.goal)
            && !self.groups.idle_groups.has_rules[self.groups.idle_groups.places[memcg] as usize]
    }

    /// A visit has found nothing. Records the least priority at which the next one finds nothing.
    pub(in crate::reclaim) fn note_idle_group(&mut self, memcg: MemcgId, node: NodeId) {
        if self.groups.idle_groups.rules.is_none() || self.leaves_two_lists {
            return;
        }
        let (largest, departures) = self.idle_lists(memcg, node).unwrap_or((u64::MAX, 0));
        let place = self.groups.idle_groups.places[memcg] as usize;
        let from = idle_priority(largest);
        let quiet = &mut self.groups.idle_groups.nodes[node];
        quiet.from[place] = from;
        quiet.margins[place] = IdleMargin {
            arrivals: as_margin(arrivals_until(from, largest)),
            departures: as_margin(departures),
        };
    }

    /// For a group that is idle while its lists are too small to be scanned: the size of its
    /// largest list, and how many pages may leave while the group stays idle. `None`: always visit.
    fn idle_lists(&self, memcg: MemcgId, node: NodeId) -> Option<(u64, u64)> {
        let group = &self.groups.memcgs[memcg];
        let place = self.groups.idle_groups.places[memcg] as usize;
        let lruvec = group.lruvecs.get(node.idx())?;
        let kept = group.cached.get(node.idx())?;
        let listed = lruvec.sizes().0.iter().sum::<u64>();
        let departures = listed.checked_sub(kept.nr_shadow_nodes() * PAGES_A_SHADOW_NODE)?;
        // A visit to the root has no early exit, so the root is always visited.
        let must_look = memcg == ROOT
            || self.groups.idle_groups.has_rules[place]
            || kept.nr_unused() > 0
            || self.has_zswap_to_shrink(memcg, node)
            || self.must_age_anon(memcg, node, None);
        (!must_look).then_some((lruvec.largest_evictable(), departures))
    }

    /// Checks that the order is the walk order and that no byte is too small.
    pub(crate) fn audit_idle_groups(&self) -> Result<(), alloc::string::String> {
        let quiet = &self.groups.idle_groups;
        if quiet.rules != Some(self.rules_of_walks()) {
            return Ok(());
        }
        if !self.memcg_ids().eq(quiet.order.iter().copied()) {
            return Err("the order of idle groups is not the walk order".into());
        }
        for (place, &id) in quiet.order.iter().enumerate() {
            let mut below = quiet.order[place..].iter();
            let nr = below.by_ref().take_while(|&&at| self.groups.is_descendant(at, id)).count();
            if quiet.ends[place] as usize != place + nr || quiet.places[id] as usize != place {
                return Err(alloc::format!("{id:?} is at {place}, with {nr} groups"));
            }
            let parent = self.groups.memcgs[id].parent;
            let above = parent.is_some() && quiet.has_rules[quiet.places[parent] as usize];
            let set_apart = above || self.groups.is_set_apart(id, self.rules_of_walks());
            if set_apart && !quiet.has_rules[place] {
                return Err(alloc::format!("{id:?} has settings that walks would skip"));
            }
            for (node, at) in quiet.nodes.iter().enumerate() {
                let (from, margin) = (at.from[place], at.margins[place]);
                if from == NEVER {
                    continue;
                }
                let found = self.idle_lists(id, NodeId(node as u8));
                let holds = found.is_some_and(|(largest, departures)| {
                    from >= idle_priority(largest)
                        && u64::from(margin.arrivals) <= arrivals_until(from, largest)
                        && u64::from(margin.departures) <= departures
                });
                if !holds {
                    return Err(alloc::format!(
                        "{id:?} node{node}: idle from {from}, {margin:?}, not {found:?}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Margins saturate: a smaller margin is safe.
fn as_margin(pages: u64) -> u32 {
    u32::try_from(pages).unwrap_or(u32::MAX)
}
