//! Passing groups in which there is nothing to do, and finding out which those are.
//!
//! Linux: nothing; see the parent.

use super::{first_to_leave_alone, quiet_in_a_row, Rules, NEVER};
use crate::config::{ShrinkPriorityPolicy, SoftLimitPolicy};
use crate::lruvec::{Lru, NR_LRU_LISTS};
use crate::manager::Manager;
use crate::memcg::ROOT;
use crate::owners::Owners;
use crate::page_counter::UNLIMITED;
use crate::reclaim::ScanControl;
use crate::slab::cached::PAGES_A_SHADOW_NODE;
use crate::units::{MemcgId, NodeId, DEF_PRIORITY};

impl<O: Owners> Manager<O> {
    fn rules_of_walks(&self) -> Rules {
        Rules {
            soft_limit: self.config.soft_limit,
            shrink_priority: self.config.shrink_priority,
            can_age_anon: self.can_age_anon_pages(),
        }
    }

    /// A walk begins: writes its order down, if that pays.
    pub(in crate::reclaim) fn walk_begins(&mut self) {
        self.quiet.warmed = 0;
        // To write it down takes as long as a walk: no more often than so many groups were looked at without.
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
        // From the last group back: what is below a group is known before it.
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
            node.spare.clear();
            node.spare.resize(nr, 0);
        }
        quiet.rules = Some(rules);
        quiet.looked_at = 0;
        self.quiet = quiet;
    }

    /// Whether a setting of a group can change what a walk does with it and with those below.
    fn is_set_apart(&self, memcg: MemcgId, rules: Rules) -> bool {
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

    /// Whether walks of this kind may pass groups at all.
    fn may_pass(&self, sc: &ScanControl) -> bool {
        #[cfg(test)]
        if self.quiet.is_off {
            return false;
        }
        // Old kernels age what they remember of a group at each visit. The first of two passes takes note of whom
        // it passes over. Policies from outside are asked about each group.
        self.quiet.rules == Some(self.rules_of_walks())
            && sc.priority >= 0
            && !self.era.balances_by_rotation
            && self.config.soft_limit != SoftLimitPolicy::TwoPass
            && self.plugins.groups.is_none()
            && self.plugins.pages.is_none()
    }

    /// How many groups from `memcg` on, at most `most`, a walk over `root` may count as visited without a look, and
    /// the last of them.
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

    /// Whether no setting of the group or of one above can change the plan for it: there are none, and nobody from
    /// outside is asked.
    #[inline]
    pub(in crate::reclaim) fn has_no_rules(&self, memcg: MemcgId, sc: &ScanControl) -> bool {
        self.may_pass(sc) && !self.quiet.set_apart[self.quiet.places[memcg.idx()] as usize]
    }

    /// A group is looked at.
    #[inline]
    pub(in crate::reclaim) fn looked_at_group(&mut self) {
        self.quiet.looked_at += 1;
    }

    /// A visit has found nothing to do: from which priority on that will be so again.
    pub(in crate::reclaim) fn found_nothing(&mut self, memcg: MemcgId, node: NodeId) {
        if self.quiet.rules.is_none() || self.plugins.pages.is_some() {
            return;
        }
        let (from, spare) = self.quiet_from(memcg, node);
        let place = self.quiet.places[memcg.idx()] as usize;
        let quiet = &mut self.quiet.nodes[node.idx()];
        quiet.from[place] = from;
        quiet.spare[place] = spare;
    }

    /// The least priority at which a visit to a group finds nothing, and the pages that may leave its lists
    /// before that may be otherwise.
    fn quiet_from(&self, memcg: MemcgId, node: NodeId) -> (u8, u64) {
        let group = &self.memcgs[memcg.idx()];
        let place = self.quiet.places[memcg.idx()] as usize;
        let (Some(lruvec), Some(kept)) =
            (group.lruvecs.get(node.idx()), group.cached.get(node.idx()))
        else {
            return (NEVER, 0);
        };
        let mut sizes = [0; NR_LRU_LISTS];
        for zone in &lruvec.zone_sizes {
            sizes.iter_mut().zip(zone).for_each(|(size, zone)| *size += zone);
        }
        let listed: u64 = sizes.iter().sum();
        let needed = kept.nr_shadow_nodes() * PAGES_A_SHADOW_NODE;
        // The root is always looked at: it has no quick way out.
        let must_look = memcg == ROOT
            || self.quiet.set_apart[place]
            || kept.nr_unused() > 0
            || needed > listed
            || self.can_age_anon_pages() && self.inactive_is_low(memcg, node, false);
        if must_look {
            return (NEVER, 0);
        }
        let largest = Lru::EVICTABLE.into_iter().map(|lru| sizes[lru as usize]).max();
        (first_to_leave_alone(largest.unwrap_or(0)), listed - needed)
    }

    /// The order is that of a walk, and no byte is too small. Says which.
    pub(crate) fn audit_quiet(&self) -> Result<(), alloc::string::String> {
        let quiet = &self.quiet;
        if quiet.rules != Some(self.rules_of_walks()) || self.plugins.pages.is_some() {
            return Ok(());
        }
        if !self.memcg_ids().eq(quiet.order.iter().copied()) {
            return Err("the order is not that of a walk".into());
        }
        for (place, &id) in quiet.order.iter().enumerate() {
            let mut below = quiet.order[place..].iter();
            let nr = below.by_ref().take_while(|&&at| self.is_descendant(at, id)).count();
            if quiet.ends[place] as usize != place + nr || quiet.places[id.idx()] as usize != place {
                return Err(alloc::format!("{id:?} is at {place}, with {nr} groups"));
            }
            let parent = self.memcgs[id.idx()].parent;
            let above = parent.is_some() && quiet.set_apart[quiet.places[parent.idx()] as usize];
            let set_apart = above || self.is_set_apart(id, self.rules_of_walks());
            if set_apart && !quiet.set_apart[place] {
                return Err(alloc::format!("{id:?} has settings that walks would pass"));
            }
            for (node, at) in quiet.nodes.iter().enumerate() {
                let (from, spare) = self.quiet_from(id, NodeId(node as u8));
                if at.from[place] != NEVER && (at.from[place] < from || at.spare[place] > spare) {
                    let known = (at.from[place], at.spare[place]);
                    return Err(alloc::format!(
                        "{id:?} node{node}: quiet from {known:?}, not {:?}",
                        (from, spare)
                    ));
                }
            }
        }
        Ok(())
    }
}
