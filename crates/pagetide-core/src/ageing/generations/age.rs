//! Ageing: begins a new youngest generation.
//!
//! Linux: `should_run_aging`, `try_to_inc_max_seq`, `inc_max_seq`, `inc_min_seq`,
//! `try_to_inc_min_seq`, `lru_gen_age_node` (mm/vmscan.c, 6.1).
//!
//! From Linux 6.4 on, reclaimers of a group share a walk: each takes the next address space, and the
//! one that finds none left begins the new generation ([`Manager::walk_on`]).
//!
//! Difference from Linux: before 6.4, and for a command, a walk is one step. There the reclaimers
//! that take part in a walk wait for its end.

use super::limits::{MAX_NR_GENS, MIN_LRU_BATCH, MIN_NR_GENS};
use super::table_walk::{TableWalk, WalkScope};
use super::window::{place_of, Generations, ListEnd};
use crate::ageing::lruvec::Lru;
use crate::frames::page_alloc::OomRequest;
use crate::frames::zone_type::MAX_NR_ZONES;
use crate::groups::memcg::ROOT;
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::reclaim::ScanControl;
use crate::units::{MemcgId, NodeId, DEF_PRIORITY};

impl Generations {
    /// Pages to scan at a priority, and whether the group must be aged first. Eviction needs three
    /// generations, of about the same size.
    pub(super) fn wants_ageing(&self, can_swap: bool, priority: i8) -> (u64, bool) {
        let (mut total, mut young, mut old) = (0, 0, 0);
        for file in [false, true].into_iter().filter(|&file| file || can_swap) {
            for seq in self.seqs(file) {
                let size = self.size(file, seq);
                total += size;
                if seq == self.max_seq {
                    young += size;
                } else if seq + MIN_NR_GENS == self.max_seq {
                    old += size;
                }
            }
        }
        let oldest = self.min_seq[usize::from(!can_swap)];
        let wants = match (oldest + MIN_NR_GENS).cmp(&self.max_seq) {
            core::cmp::Ordering::Greater => true,
            core::cmp::Ordering::Less => false,
            core::cmp::Ordering::Equal => {
                young * MIN_NR_GENS > total || old * (MIN_NR_GENS + 2) < total
            }
        };
        (total >> priority.max(0), wants)
    }

    /// Ends oldest generations that have no page. Returns whether one has ended.
    pub(super) fn try_to_inc_min_seq(&mut self, can_swap: bool) -> bool {
        let mut min_seq = self.min_seq;
        for (kind, seq) in min_seq.iter_mut().enumerate().skip(usize::from(!can_swap)) {
            let is_empty = |seq| {
                let lists = &self.lists[usize::from(place_of(seq))][kind];
                lists.iter().all(|list| list.is_empty())
            };
            while *seq + MIN_NR_GENS <= self.max_seq && is_empty(*seq) {
                *seq += 1;
            }
        }
        if can_swap {
            let [anon, file] = min_seq;
            let anon = anon.min(file);
            min_seq = [anon, anon.max(self.min_seq[1])];
        }
        let mut has_ended = false;
        for file in [false, true].into_iter().filter(|&file| file || can_swap) {
            let kind = usize::from(file);
            if min_seq[kind] != self.min_seq[kind] {
                self.feedback.generation_ends(file);
                self.min_seq[kind] = min_seq[kind];
                has_ended = true;
            }
        }
        has_ended
    }
}

impl Kernel {
    /// Ends the oldest generation of a kind: its pages enter the next one.
    fn inc_min_seq(&mut self, memcg: MemcgId, node: NodeId, file: bool, can_swap: bool) {
        let kind = usize::from(file);
        loop {
            let Some(generations) = self.groups.generations_mut(memcg, node) else { return };
            let place = usize::from(place_of(generations.min_seq[kind]));
            let mut lists = generations.lists[place][kind].iter();
            // Anonymous pages that cannot be swapped stay on their list, as in Linux: they become
            // the youngest.
            let next = lists.find(|list| !list.is_empty()).filter(|_| file || can_swap);
            let Some(pfn) = next.map(|list| list.tail) else {
                generations.feedback.generation_ends(file);
                generations.min_seq[kind] += 1;
                return;
            };
            self.mem.work.lru_moves += 1;
            self.next_generation(pfn, memcg, node);
            if let Some(generations) = self.groups.generations_mut(memcg, node) {
                generations.relist(&mut self.mem.pages, pfn, ListEnd::Tail);
            }
        }
    }

    /// Begins a new youngest generation.
    fn inc_max_seq(&mut self, memcg: MemcgId, ctx: &Ctx, can_swap: bool) {
        let node = ctx.node;
        for file in [true, false] {
            let Some(generations) = self.groups.generations(memcg, node) else { return };
            if generations.nr_generations(file) == MAX_NR_GENS as u64 {
                self.inc_min_seq(memcg, node, file, can_swap);
            }
        }
        let Some(generations) = self.groups.generations_mut(memcg, node) else { return };
        let (past, next) = (place_of(generations.max_seq - 1), place_of(generations.max_seq + 1));
        generations.births[usize::from(next)] = ctx.now;
        generations.max_seq += 1;
        let sizes = [past, next].map(|place| generations.nr_pages[usize::from(place)]);
        // The second youngest generation stops being active. The place of the new one may hold
        // anonymous pages that cannot be swapped.
        for (kind, zone) in (0..2).flat_map(|kind| (0..MAX_NR_ZONES).map(move |zone| (kind, zone)))
        {
            let change = sizes[0][kind][zone] as i64 - sizes[1][kind][zone] as i64;
            let (cold, hot) =
                [(Lru::InactiveAnon, Lru::ActiveAnon), (Lru::InactiveFile, Lru::ActiveFile)][kind];
            if change != 0 {
                self.count_pages(memcg, (node, zone), cold, change);
                self.count_pages(memcg, (node, zone), hot, -change);
            }
        }
    }

    /// Pages to scan of a group, and whether it must be aged first.
    pub(super) fn generations_to_scan(
        &self,
        memcg: MemcgId,
        node: NodeId,
        can_swap: bool,
        priority: i8,
    ) -> (u64, bool) {
        let Some(generations) = self.groups.generations(memcg, node) else { return (0, false) };
        generations.wants_ageing(can_swap, priority)
    }

    /// The swappiness of a group; 0 if it cannot swap (Linux `get_swappiness`).
    pub(super) fn generations_swappiness(&self, memcg: MemcgId) -> u64 {
        match self.memcg_swap_left(memcg) < MIN_LRU_BATCH {
            true => 0,
            false => u64::from(self.memcg_swappiness(memcg)),
        }
    }
}

impl<O: Owners> Manager<O> {
    /// Looks for used pages in the page tables of a group, and begins a new generation with them
    /// (Linux `try_to_inc_max_seq`). `force`: reads tables that the filter lacks, too.
    pub(crate) fn age_group(&mut self, memcg: MemcgId, ctx: &Ctx, can_swap: bool, force: bool) {
        while self.walk_next(memcg, ctx, can_swap, force) {}
        self.inc_max_seq(memcg, ctx, can_swap);
    }

    /// One step of an ageing that several reclaimers share. `seq`: the youngest generation when this
    /// reclaimer began with it. Returns whether the new generation has begun, and by this reclaimer;
    /// `None`: there is more to walk (Linux `try_to_inc_max_seq` from 6.4 on).
    pub(super) fn walk_on(
        &mut self,
        memcg: MemcgId,
        ctx: &Ctx,
        can_swap: bool,
        seq: u64,
    ) -> Option<bool> {
        let generations = self.groups.generations(memcg, ctx.node);
        if generations.is_none_or(|generations| generations.max_seq != seq) {
            return Some(false);
        }
        if self.walk_next(memcg, ctx, can_swap, false) {
            return None;
        }
        self.inc_max_seq(memcg, ctx, can_swap);
        Some(true)
    }

    /// Walks the next address space of a group. Returns whether there was one.
    fn walk_next(&mut self, memcg: MemcgId, ctx: &Ctx, can_swap: bool, force: bool) -> bool {
        let node = ctx.node;
        if !self.era.walks_tables && !force {
            if let Some(generations) = self.groups.generations_mut(memcg, node) {
                (generations.walks.first_new, generations.walks.next_mm) = (0, 0);
            }
            return false;
        }
        self.step.mm_walk = Some(can_swap);
        if ctx.asker.is_none() {
            self.mem.pgdat[node].mm_walk_can_swap = can_swap;
        }
        let Manager { kernel, owners } = self;
        let Kernel { groups, mem, era, .. } = kernel;
        let Some(generations) = groups.generations_mut(memcg, node) else { return false };
        let scope = WalkScope {
            memcg,
            node,
            can_swap,
            filters: era.filters_tables && !force,
            skips_unused: era.reads_table_use,
            table_len: mem.page_size.ptrs_per_pte(),
        };
        let seq = generations.max_seq;
        let read = |walk: &mut TableWalk<'_>| owners.walk_tables(walk);
        let walks = &mut generations.walks;
        let Some(used) = walks.walk_next(seq, scope, &mem.pages, &mut mem.work, read) else {
            return false;
        };
        for pfn in used {
            kernel.update_generation(pfn, memcg, node, place_of(seq));
        }
        true
    }

    /// kswapd ages all groups of its node before a round. Kills a task if every generation is
    /// younger than `lru_gen.min_ttl_ms` (Linux `lru_gen_age_node`).
    pub(crate) fn lru_gen_age_node(&mut self, sc: &mut ScanControl, ctx: &Ctx) {
        sc.found.generations.reclaimed_before = sc.found.nr_reclaimed;
        if self.era.ages_in_eviction {
            return self.lru_gen_prepare_node(sc, ctx);
        }
        // Ageing costs much, so it is left out once after eviction has found enough.
        if !core::mem::replace(&mut sc.found.generations.needs_ageing, true) {
            return;
        }
        let min_ttl = u64::from(self.config.lru_gen_min_ttl_ms) * 1_000_000;
        let mut success = false;
        let mut next = Some(ROOT);
        while let Some(memcg) = next {
            next = self.groups.next_memcg(ROOT, memcg);
            success |= self.age_lruvec(memcg, sc, min_ttl, ctx);
        }
        self.step.mm_walk = None;
        if !success && min_ttl > 0 && sc.goal.order == 0 {
            self.kill_for_min_ttl(sc, min_ttl, ctx);
        }
    }

    /// Kills a task, because no group may be taken from: each is too young, too small or protected.
    fn kill_for_min_ttl(&mut self, sc: &ScanControl, min_ttl: u64, ctx: &Ctx) {
        let (order, gfp) = (sc.goal.order, sc.goal.gfp);
        let is_young = |memcg| {
            self.groups.generations(memcg, ctx.node).is_some_and(|generations| {
                let oldest = usize::from(place_of(generations.min_seq[1]));
                generations.births[oldest] + min_ttl >= ctx.now
            })
        };
        let can_swap = |memcg| self.generations_swappiness(memcg) > 0;
        let has_pages = |memcg| self.generations_to_scan(memcg, ctx.node, can_swap(memcg), 0).0 > 0;
        let for_min_ttl = self.memcg_ids().any(|memcg| is_young(memcg) && has_pages(memcg));
        self.mem.last_oom = Some(OomRequest { order, gfp, scope: ROOT, for_min_ttl });
        O::out_of_memory(self, ROOT, ctx.asker);
    }

    /// The same in Linux 6.12: chooses the first priority, and only looks for groups that may be
    /// taken from.
    fn lru_gen_prepare_node(&mut self, sc: &mut ScanControl, ctx: &Ctx) {
        self.set_initial_priority(ctx.node, sc);
        let min_ttl = u64::from(self.config.lru_gen_min_ttl_ms) * 1_000_000;
        let mut may_take = min_ttl == 0;
        let mut next = Some(ROOT);
        while let Some(memcg) = next {
            next = self.groups.next_memcg(ROOT, memcg);
            self.calculate_protection(ROOT, memcg);
            may_take = may_take || self.is_reclaimable(memcg, sc, min_ttl, ctx);
        }
        if !may_take {
            self.kill_for_min_ttl(sc, min_ttl, ctx);
        }
    }

    /// Whether a group has enough memory that is older than `min_ttl` (Linux
    /// `lruvec_is_reclaimable`).
    fn is_reclaimable(&self, memcg: MemcgId, sc: &ScanControl, min_ttl: u64, ctx: &Ctx) -> bool {
        let counter = &self.groups.memcgs[memcg].memory;
        if counter.emin > 0 && counter.usage <= counter.emin {
            return false;
        }
        let can_swap = sc.may.swap && self.generations_swappiness(memcg) > 0;
        let (size, _) = self.generations_to_scan(memcg, ctx.node, can_swap, sc.goal.priority);
        let Some(generations) = self.groups.generations(memcg, ctx.node) else { return false };
        let birth = generations.births[usize::from(place_of(generations.min_seq[1]))];
        size > 0 && birth + min_ttl < ctx.now
    }

    /// Ages one group if it needs it. Returns whether the group has memory that may be taken.
    fn age_lruvec(&mut self, memcg: MemcgId, sc: &ScanControl, min_ttl: u64, ctx: &Ctx) -> bool {
        self.calculate_protection(ROOT, memcg);
        let counter = &self.groups.memcgs[memcg].memory;
        if counter.emin > 0 && counter.usage <= counter.emin {
            return false;
        }
        let can_swap = self.generations_swappiness(memcg) > 0;
        let (nr_to_scan, needs_ageing) =
            self.generations_to_scan(memcg, ctx.node, can_swap, sc.goal.priority);
        if let Some(generations) =
            self.groups.generations(memcg, ctx.node).filter(|_| self.config.lru_gen_min_ttl_ms > 0)
        {
            let oldest = usize::from(place_of(generations.min_seq[1]));
            if generations.births[oldest] + min_ttl > ctx.now {
                return false;
            }
            if nr_to_scan == 0 && sc.goal.priority != DEF_PRIORITY {
                return false;
            }
        }
        if needs_ageing {
            self.age_group(memcg, ctx, can_swap, false);
        }
        true
    }
}

impl Kernel {
    /// The first priority of a reclaimer in Linux 6.12, from its goal and the size of the inactive
    /// lists.
    pub(crate) fn set_initial_priority(&self, node: NodeId, sc: &mut ScanControl) {
        if sc.goal.priority != DEF_PRIORITY || sc.goal.nr_to_reclaim < MIN_LRU_BATCH {
            return;
        }
        let sizes = self.mem.node_lru_sizes(node);
        let can_swap = self.swap.free() > 0;
        let reclaimable = sizes.cold_file() + if can_swap { sizes.cold_anon() } else { 0 };
        let bits = |number: u64| i64::from(u64::BITS - number.leading_zeros());
        let priority = bits(reclaimable) - 1 - bits(sc.goal.nr_to_reclaim - 1);
        sc.goal.priority = priority.clamp(i64::from(DEF_PRIORITY / 2), DEF_PRIORITY.into()) as i8;
    }
}
