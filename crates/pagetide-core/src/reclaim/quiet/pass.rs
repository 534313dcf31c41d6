//! Skipping of idle groups, and the updates that find out which groups are idle.
//!
//! Linux: nothing; see the parent module.

use super::{arrivals_until, first_to_leave_alone, quiet_in_a_row, IdleMargin, IdleRules, NEVER};
use crate::config::{ShrinkPriorityPolicy, SoftLimitPolicy};
use crate::lruvec::Lru;
use crate::manager::Manager;
use crate::memcg::ROOT;
use crate::owners::Owners;
use crate::page_counter::UNLIMITED;
use crate::reclaim::ScanControl;
use crate::slab::cached::PAGES_A_SHADOW_NODE;
use crate::units::{MemcgId, NodeId, DEF_PRIORITY};

impl<O: Owners> Manager<O> {
    fn rules_of_walks(&self) -> IdleRules {
        IdleRules {
            soft_limit: self.config.soft_limit,
            shrink_priority: self.config.shrink_priority,
            can_age_anon: self.can_age_anon_pages(),
        }
    }

    /// A walk begins: rebuilds the order if that pays.
    pub(in crate::reclaim) fn walk_begins(&mut self) {
        self.quiet.warmed = 0;
        // Rebuilding costs as much as a walk: only after as many groups were visited without the
        // order.
        let is_due = self.quiet.rules.is_none() && self.quiet.looked_at >= self.memcgs.len();
        let has_changed = self.quiet.rules.is_some_and(|rules| rules != self.rules_of_walks());
        if is_due || has_changed {
            self.write_down_walk();
        }
    }

    fn write_down_walk(&mut self) {
        let mut quiet = core::mem::take(&mut self.quiet);
        quiet.order.clear();
        quiet.order.extend(self.memcg_ids());
        let nr = quiet.order.len();
        let rules = self.rules_of_walks();
        quiet.places.clear();
        quiet.places.resize(self.memcgs.len(), 0);
        quiet.set_apart.clear();
        for (place, &id) in quiet.order.iter().enumerate() {
            quiet.places[id.idx()] = place as u32;
            let parent = self.memcgs[id.idx()].parent;
            let above = parent.is_some() && quiet.set_apart[quiet.places[parent.idx()] as usize];
            quiet.set_apart.push(above || self.is_set_apart(id, rules));
        }
        // Backwards: the end of a subtree is known before its parent.
        quiet.ends.clear();
        quiet.ends.extend(1..=nr as u32);
        for place in (1..nr).rev() {
            let parent = self.memcgs[quiet.order[place].idx()].parent;
            let above = quiet.places[parent.idx()] as usize;
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
        self.quiet = quiet;
    }

    /// Whether a setting of a group can change the plan for it and its descendants.
    fn is_set_apart(&self, memcg: MemcgId, rules: IdleRules) -> bool {
        let group = &self.memcgs[memcg.idx()];
        let counter = &group.memory;
        let heeds_soft_limits = match rules.soft_limit {
            SoftLimitPolicy::Off | SoftLimitPolicy::Tree => false,
            SoftLimitPolicy::Hierarchical | SoftLimitPolicy::TwoPass | SoftLimitPolicy::Graded => {
                true
            }
        };
        let heeds_shrink_priority = rules.shrink_priority != ShrinkPriorityPolicy::Off;
        [counter.min, counter.low, counter.emin, counter.elow] != [0; 4]
            || heeds_soft_limits && group.soft_limit != UNLIMITED
            || heeds_shrink_priority && group.shrink_priority != DEF_PRIORITY
    }

    /// Whether walks of this kind may skip groups at all.
    fn may_pass(&self, sc: &ScanControl) -> bool {
        // Old kernels age their counts of a group at each visit. The first of two passes records
        // which groups it skips. Plug-ins are asked about each group.
        self.quiet.rules == Some(self.rules_of_walks())
            && sc.priority >= 0
            && !self.era.balances_by_rotation
            && self.config.soft_limit != SoftLimitPolicy::TwoPass
            && self.plugins.groups.is_none()
            && self.plugins.pages.is_none()
    }

    /// How many groups from `memcg` on (at most `most`) a walk over `root` may count as visited
    /// without a look, and the last of them.
    #[inline]
    pub(in crate::reclaim) fn pass_quiet(
        &self,
        root: MemcgId,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
        most: u32,
    ) -> Option<(u32, MemcgId)> {
        if !self.may_pass(sc) {
            return None;
        }
        let quiet = &self.quiet;
        let place = quiet.places[memcg.idx()] as usize;
        let end = quiet.ends[quiet.places[root.idx()] as usize] as usize;
        let end = end.min(place + most as usize);
        let row = quiet.nodes[node.idx()].from.get(place..end)?;
        let passed = quiet_in_a_row(row, sc.priority as u8);
        let last = place + passed.checked_sub(1)?;
        Some((passed as u32, quiet.order[last]))
    }

    /// Whether nothing can change the plan of the group: no setting of it or of an ancestor, and no
    /// plug-in.
    #[inline]
    pub(in crate::reclaim) fn has_no_rules(&self, memcg: MemcgId, sc: &ScanControl) -> bool {
        self.may_pass(sc) && !self.quiet.set_apart[self.quiet.places[memcg.idx()] as usize]
    }

    #[inline]
    pub(in crate::reclaim) fn looked_at_group(&mut self) {
        self.quiet.looked_at += 1;
    }

    /// A visit has found nothing: records from which priority on that stays so.
    pub(in crate::reclaim) fn found_nothing(&mut self, memcg: MemcgId, node: NodeId) {
        if self.quiet.rules.is_none() || self.plugins.pages.is_some() {
            return;
        }
        let (largest, departures) = self.quiet_lists(memcg, node).unwrap_or((u64::MAX, 0));
        let place = self.quiet.places[memcg.idx()] as usize;
        let from = first_to_leave_alone(largest);
        let quiet = &mut self.quiet.nodes[node.idx()];
        quiet.from[place] = from;
        quiet.margins[place] = IdleMargin {
            arrivals: as_margin(arrivals_until(from, largest)),
            departures: as_margin(departures),
        };
    }

    /// For a group that is idle while its lists are too small to be scanned: the size of its
    /// largest list, and the pages that may leave before the group is not idle. `None`: always
    /// visit.
    fn quiet_lists(&self, memcg: MemcgId, node: NodeId) -> Option<(u64, u64)> {
        let group = &self.memcgs[memcg.idx()];
        let place = self.quiet.places[memcg.idx()] as usize;
        let lruvec = group.lruvecs.get(node.idx())?;
        let kept = group.cached.get(node.idx())?;
        let sizes = Lru::EVICTABLE.map(|lru| lruvec.size(lru));
        let listed = sizes.iter().sum::<u64>() + lruvec.size(Lru::Unevictable);
        let departures = listed.checked_sub(kept.nr_shadow_nodes() * PAGES_A_SHADOW_NODE)?;
        // The root has no quick way out, so it is always visited.
        let must_look = memcg == ROOT
            || self.quiet.set_apart[place]
            || kept.nr_unused() > 0
            || self.can_age_anon_pages() && self.inactive_is_low(memcg, node, false);
        let largest = sizes.into_iter().max()?;
        (!must_look).then_some((largest, departures))
    }

    /// Checks that the order is the walk order and that no byte is too small.
    pub(crate) fn audit_quiet(&self) -> Result<(), alloc::string::String> {
        let quiet = &self.quiet;
        if quiet.rules != Some(self.rules_of_walks()) || self.plugins.pages.is_some() {
            return Ok(());
        }
        if !self.memcg_ids().eq(quiet.order.iter().copied()) {
            return Err("the order of idle groups is not the walk order".into());
        }
        for (place, &id) in quiet.order.iter().enumerate() {
            let mut below = quiet.order[place..].iter();
            let nr = below.by_ref().take_while(|&&at| self.is_descendant(at, id)).count();
            if quiet.ends[place] as usize != place + nr || quiet.places[id.idx()] as usize != place
            {
                return Err(alloc::format!("{id:?} is at {place}, with {nr} groups"));
            }
            let parent = self.memcgs[id.idx()].parent;
            let above = parent.is_some() && quiet.set_apart[quiet.places[parent.idx()] as usize];
            let set_apart = above || self.is_set_apart(id, self.rules_of_walks());
            if set_apart && !quiet.set_apart[place] {
                return Err(alloc::format!("{id:?} has settings that walks would skip"));
            }
            for (node, at) in quiet.nodes.iter().enumerate() {
                let (from, margin) = (at.from[place], at.margins[place]);
                if from == NEVER {
                    continue;
                }
                let found = self.quiet_lists(id, NodeId(node as u8));
                let holds = found.is_some_and(|(largest, departures)| {
                    from >= first_to_leave_alone(largest)
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
