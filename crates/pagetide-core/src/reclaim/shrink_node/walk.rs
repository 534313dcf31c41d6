//! Steps of a pass over a node: the walk over the groups, the lists of each, and the waits of
//! reclaim.
//!
//! Linux: `shrink_node`, `shrink_node_memcgs`, `shrink_lruvec`, `reclaim_throttle` (mm/vmscan.c,
//! 6.1).

use super::{NodePassStage, NodeStep, ShrinkNode, VISITS_A_STEP};
use crate::ageing::generations::memcg_lru::{Rotation, Verdict};
use crate::ageing::scan::{LruvecScan, ScanBatch};
use crate::compaction::suitable::{compact_gap, compaction_suitable};
use crate::compaction::CompactResult;
use crate::config::era::CongestionNap;
use crate::frames::gfp::{AllocFlags, Watermark};
use crate::frames::page::PageFlags;
use crate::frames::page_alloc::Memory;
use crate::groups::memcg::ROOT;
use crate::groups::Groups;
use crate::interface::ctx::Ctx;
use crate::interface::effect::Sleep;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::interface::throttle::Throttle;
use crate::reclaim::plan::{VisitedGroup, WalkResult};
use crate::reclaim::plugin::GroupPlan;
use crate::reclaim::{ReclaimGoal, ScanControl};
use crate::stats::event::TraceEvent;
use crate::stats::vmstat::Event;
use crate::units::{MemcgId, NodeId, DEF_PRIORITY, PAGE_ALLOC_COSTLY_ORDER, TICK};
use alloc::boxed::Box;

impl Groups {
    /// The pass is abandoned: if its soft-limit stage holds a group, the group returns to the tree.
    pub(crate) fn abandon_shrink_node(&mut self, pass: &ShrinkNode) {
        match &pass.stage {
            NodePassStage::Soft(soft) => self.abandon_soft_reclaim(soft),
            NodePassStage::New
            | NodePassStage::Walk
            | NodePassStage::At(_)
            | NodePassStage::Slab(..)
            | NodePassStage::After(_)
            | NodePassStage::Shrink(..) => {}
        }
    }
}

impl Memory {
    /// Puts the reclaimer to sleep (Linux `reclaim_throttle`).
    pub(crate) fn reclaim_throttle(
        &mut self,
        node: NodeId,
        reason: Throttle,
        timeout: u64,
    ) -> Sleep {
        self.vmstat.count(Event::MmVmscanThrottled);
        let usec_timeout = timeout / 1000;
        self.events.record(TraceEvent::MmVmscanThrottled { nid: node, usec_timeout, reason });
        Sleep::throttled(node, reason, timeout)
    }
}

impl Kernel {
    /// Whether to continue for a block of high order (Linux `should_continue_reclaim`): pages were
    /// reclaimed, no zone can be compacted yet, and enough pages are not in use.
    fn should_continue_reclaim(&self, pass: &ShrinkNode, sc: &ScanControl) -> bool {
        let for_compaction = sc.goal.order > PAGE_ALLOC_COSTLY_ORDER
            || sc.goal.order > 0 && sc.goal.priority < DEF_PRIORITY - 2;
        // Linux 6.12 returns before this question if pages are ordered by generation.
        let is_left_out = self.era.ages_in_eviction && sc.goal.is_global();
        if !for_compaction || is_left_out || sc.found.nr_reclaimed == pass.reclaimed_before {
            return false;
        }
        let sizes = self.mem.node_lru_sizes(pass.node);
        let can_swap = self.swap.free() > 0;
        let cold = sizes.cold_file() + if can_swap { sizes.cold_anon() } else { 0 };
        let gap = compact_gap(sc.goal.order);
        if self.era.reclaims_to_gap && sc.found.nr_reclaimed >= gap {
            return false;
        }
        let flags = AllocFlags::at(Watermark::Min);
        let node = &self.mem.nodes[pass.node];
        let zones = match sc.rules.only_zone {
            Some(zone) => &node.zones[zone..=zone],
            None => &node.zones[..=sc.goal.reclaim_idx],
        };
        let ready = zones.iter().any(|zone| {
            zone.is_populated()
                && compaction_suitable(
                    zone,
                    &self.config,
                    &self.era,
                    sc.goal.order,
                    flags,
                    sc.goal.reclaim_idx,
                ) != CompactResult::Skipped
        });
        !ready && cold > gap
    }

    /// Starts the regular pass, after the soft-limit stage.
    fn shrink_node_begin(&mut self, pass: &mut ShrinkNode, sc: &mut ScanControl) {
        pass.reclaimed_before = sc.found.nr_reclaimed;
        pass.scanned_before = sc.found.nr_scanned;
        pass.walk = 0;
        pass.walk_scanned = sc.found.nr_scanned;
        sc.found.tally = Default::default();
        sc.found.generations.has_open_walk = false;
        self.prepare_scan_count(pass.node, sc);
        pass.stage = NodePassStage::Walk;
    }

    /// In version 1 tasks that dirty the pages of a group are not throttled. So reclaim for such a
    /// group waits for a page that it meets a second time under writeback. (kswapd waits for any
    /// write.)
    pub(crate) fn legacy_wait(&mut self, goal: &ReclaimGoal, node: NodeId) -> NodeStep {
        match self.step.legacy_wait.take() {
            None => NodeStep::Continue,
            Some(_) if goal.is_kswapd() => {
                NodeStep::Wait(self.mem.reclaim_throttle(node, Throttle::Writeback, 100_000_000))
            }
            Some(pfn) => {
                self.mem.pages[pfn].set(PageFlags::WAITERS);
                NodeStep::Wait(Sleep::on_page(pfn))
            }
        }
    }

    /// Whether this reclaimer shares its walk with others and may leave it early.
    fn walks_in_part(&self, goal: &ReclaimGoal) -> bool {
        self.era.shares_walks && !goal.is_kswapd() && !goal.full_walk
    }

    fn first_of_walk(&mut self, pass: &mut ShrinkNode, sc: &ScanControl) -> Option<MemcgId> {
        pass.memcg_lru = None;
        if self.walks_memcg_lru(sc) {
            return self.first_of_memcg_lru(pass);
        }
        let root = sc.goal.target.unwrap_or(ROOT);
        if !self.groups.memcg_is_online(root) {
            return None;
        }
        if self.walks_in_part(&sc.goal) {
            let remembered = self.groups.memcgs[root].lruvecs[pass.node].reclaim_position;
            if remembered.is_some() {
                return self.groups.next_memcg(root, remembered).or(Some(root));
            }
        }
        Some(root)
    }

    fn note_reclaimed_slab(&self, pass: &mut ShrinkNode) {
        pass.reclaimed_slab += self.slabs.pages_returned - pass.slab_seen;
        pass.slab_seen = self.slabs.pages_returned;
    }

    /// Goes on to the next group, or ends the pass.
    fn next_of_walk(
        &mut self,
        pass: &mut ShrinkNode,
        memcg: MemcgId,
        sc: &mut ScanControl,
    ) -> Option<NodeStep> {
        let root = sc.goal.target.unwrap_or(ROOT);
        let next = match pass.memcg_lru {
            Some(_) => self.next_of_memcg_lru(pass, memcg, sc),
            None => self.groups.next_memcg(root, memcg),
        };
        if self.era.ages_in_eviction && sc.goal.is_global() {
            self.note_reclaimed_slab(pass);
            sc.found.nr_reclaimed += core::mem::take(&mut pass.reclaimed_slab);
            if self.should_abort_6_12(sc.found.nr_reclaimed, pass.node, sc) {
                return Some(NodeStep::Done(self.shrink_node_end(pass, sc)));
            }
        }
        if pass.memcg_lru.is_none() && self.walks_in_part(&sc.goal) {
            let enough = sc.found.nr_reclaimed >= sc.goal.nr_to_reclaim;
            let remembered = if next.is_some() { memcg } else { MemcgId::NONE };
            self.groups.memcgs[root].lruvecs[pass.node].reclaim_position = remembered;
            if enough {
                return Some(NodeStep::Done(self.shrink_node_end(pass, sc)));
            }
        }
        match next {
            Some(next) => pass.stage = NodePassStage::At(self.groups.position_of(next)),
            None => {
                let scanned = sc.found.nr_scanned - pass.walk_scanned;
                if !self.another_walk(WalkResult { number: pass.walk, scanned }, sc) {
                    return Some(NodeStep::Done(self.shrink_node_end(pass, sc)));
                }
                pass.walk += 1;
                pass.walk_scanned = sc.found.nr_scanned;
                pass.stage = NodePassStage::Walk;
            }
        }
        None
    }

    /// After all groups: sets node flags, and decides whether the reclaimer should sleep.
    fn shrink_node_end(&mut self, pass: &ShrinkNode, sc: &ScanControl) -> Option<Sleep> {
        let node = pass.node;
        if sc.found.nr_reclaimed > pass.reclaimed_before {
            self.mem.pgdat[node].kswapd.failures = 0;
        }
        // Linux 6.12 does no more if generations order pages.
        if self.era.ages_in_eviction && sc.goal.is_global() {
            return None;
        }
        self.vmpressure(&sc.goal, sc.found.nr_scanned.saturating_sub(pass.scanned_before));
        let tally = &sc.found.tally;
        let state = &mut self.mem.pgdat[node];
        let mut wait = None;
        if sc.goal.is_kswapd() {
            if tally.writeback > 0 && tally.writeback == tally.taken {
                state.writeback = true;
            }
            if tally.unqueued_dirty == tally.file_taken && tally.file_taken > 0 {
                state.dirty = true;
            }
            if tally.immediate > 0 {
                wait = Some((Throttle::Writeback, 100_000_000));
            }
        }
        // A group of version 1 stalls in writeback itself, page by page.
        let is_congested = tally.dirty > 0 && tally.dirty == tally.congested;
        let target = sc
            .goal
            .target
            .and_then(|target| self.groups.memcgs[target].lruvecs.get_mut(node.idx()));
        let congested = match target {
            None => &mut state.congested,
            Some(lruvec) => &mut lruvec.congested,
        };
        if is_congested && (sc.goal.target.is_none() || !self.era.group_reclaim_awaits_writes) {
            *congested = true;
        }
        if !sc.goal.is_kswapd() && *congested && self.era.congestion_nap == CongestionNap::Never {
            wait = Some((Throttle::Congested, TICK));
        }
        wait.map(|(reason, timeout)| self.mem.reclaim_throttle(node, reason, timeout))
    }
}

impl<O: Owners> Manager<O> {
    /// One step of a pass. For a block of high order the pass repeats while compaction needs more
    /// pages and the node can give them.
    pub(crate) fn shrink_node_step(
        &mut self,
        pass: &mut ShrinkNode,
        sc: &mut ScanControl,
        ctx: &Ctx,
    ) -> NodeStep {
        pass.slab_seen = self.slabs.pages_returned;
        let step = self.shrink_node_once(pass, sc, ctx);
        self.note_reclaimed_slab(pass);
        if matches!(step, NodeStep::Done(_)) {
            sc.found.nr_reclaimed += core::mem::take(&mut pass.reclaimed_slab);
        }
        match step {
            NodeStep::Done(wait) if self.should_continue_reclaim(pass, sc) => {
                self.shrink_node_begin(pass, sc);
                wait.map_or(NodeStep::Continue, NodeStep::Wait)
            }
            step => step,
        }
    }

    fn shrink_node_once(
        &mut self,
        pass: &mut ShrinkNode,
        sc: &mut ScanControl,
        ctx: &Ctx,
    ) -> NodeStep {
        let mut visits = 0;
        loop {
            match &mut pass.stage {
                // A kswapd that works by zone runs the soft-limit stage itself.
                NodePassStage::New if self.era.lists_by_zone && sc.goal.is_kswapd() => {
                    self.shrink_node_begin(pass, sc);
                }
                NodePassStage::New => match self.begin_soft_reclaim(pass.node, sc) {
                    Some(soft) => pass.stage = NodePassStage::Soft(Box::new(soft)),
                    None => self.shrink_node_begin(pass, sc),
                },
                NodePassStage::Soft(soft) => {
                    if self.soft_reclaim_step(soft, ctx) {
                        sc.found.nr_reclaimed += soft.nr_reclaimed;
                        // kswapd judges its round by the regular scan alone.
                        if !sc.goal.is_kswapd() {
                            sc.found.nr_scanned += soft.nr_scanned;
                        }
                        self.shrink_node_begin(pass, sc);
                    }
                    return self.legacy_wait(&sc.goal, pass.node);
                }
                // Linux 6.12: clean and unmapped pages are taken first anyway.
                NodePassStage::Walk
                    if self.era.ages_in_eviction
                        && sc.goal.is_global()
                        && !(sc.may.writepage && sc.may.unmap) =>
                {
                    return NodeStep::Done(self.shrink_node_end(pass, sc));
                }
                NodePassStage::Walk => {
                    self.walk_begins();
                    if self.era.ages_in_eviction && sc.goal.is_global() {
                        self.set_initial_priority(pass.node, sc);
                    }
                    match self.first_of_walk(pass, sc) {
                        Some(at) => pass.stage = NodePassStage::At(self.groups.position_of(at)),
                        None => return NodeStep::Done(self.shrink_node_end(pass, sc)),
                    }
                }
                NodePassStage::At(at) => {
                    let position = *at;
                    let Some(memcg) = self.groups.at_position_in_walk(position) else {
                        return NodeStep::Done(self.shrink_node_end(pass, sc));
                    };
                    if visits == VISITS_A_STEP {
                        return NodeStep::Continue;
                    }
                    // A reclaimer with enough pages leaves after one group.
                    let leaves = self.walks_in_part(&sc.goal)
                        && sc.found.nr_reclaimed >= sc.goal.nr_to_reclaim;
                    let most = if leaves { 1 } else { VISITS_A_STEP - visits };
                    let root = sc.goal.target.unwrap_or(ROOT);
                    let idle = match pass.memcg_lru {
                        Some(_) => None,
                        None => self.skip_idle_groups(root, memcg, pass.node, sc, most),
                    };
                    if let Some((passed, last)) = idle {
                        visits += passed;
                        self.mem.work.lruvecs_visited += passed;
                        if let Some(done) = self.next_of_walk(pass, last, sc) {
                            return done;
                        }
                        continue;
                    }
                    visits += 1;
                    self.mem.work.lruvecs_visited += 1;
                    self.groups.note_group_visit();
                    let visit = VisitedGroup { memcg, node: pass.node, walk: pass.walk };
                    let as_is = GroupPlan { skip: false, priority: sc.goal.priority, protected: 0 };
                    let plan = match &mut pass.memcg_lru {
                        Some(walk) => match self.plan_of_listed(visit, sc) {
                            Ok(plan) => plan,
                            Err(rotation) => {
                                walk.verdict = Verdict::Skipped(rotation);
                                GroupPlan { skip: true, ..as_is }
                            }
                        },
                        None if self.has_no_rules(memcg, sc) => as_is,
                        None => self.plan_group(visit, sc),
                    };
                    if plan.skip {
                        if let Some(done) = self.next_of_walk(pass, memcg, sc) {
                            return done;
                        }
                        continue;
                    }
                    let wanted = sc.goal.nr_to_reclaim;
                    let scan = self.plan_scan(memcg, pass.node, sc, plan, wanted);
                    // Small groups have nothing to scan at mild priorities, and there may be many.
                    let zone = sc.rules.only_zone;
                    let must_age = self.must_age_anon(memcg, pass.node, zone);
                    if memcg != ROOT && scan.is_empty() && !must_age {
                        let priority = self.slab_priority(memcg, sc);
                        if let Some(slab) =
                            self.begin_shrink_slab(memcg, pass.node, priority, sc.goal.gfp)
                        {
                            pass.stage = NodePassStage::Slab(position, slab);
                            continue;
                        }
                        if pass.memcg_lru.is_none() {
                            self.note_idle_group(memcg, pass.node);
                        }
                        if let Some(done) = self.next_of_walk(pass, memcg, sc) {
                            return done;
                        }
                        continue;
                    }
                    pass.stage = NodePassStage::Shrink(position, scan);
                }
                NodePassStage::Slab(at, slab) => {
                    let position = *at;
                    let is_there = self.groups.at_position_in_walk(position).is_some();
                    if is_there && !self.shrink_slab_step(slab, ctx.cpu) {
                        return NodeStep::Continue;
                    }
                    pass.stage = NodePassStage::After(position);
                }
                NodePassStage::After(at) => {
                    let Some(memcg) = self.groups.at_position_in_walk(*at) else {
                        return NodeStep::Done(self.shrink_node_end(pass, sc));
                    };
                    if let Some(done) = self.next_of_walk(pass, memcg, sc) {
                        return done;
                    }
                }
                NodePassStage::Shrink(at, lruvec) => {
                    // A removed group passes its lists to its parent.
                    let Some(memcg) = self.groups.at_position_in_walk(*at) else {
                        sc.found.nr_reclaimed += lruvec.nr_reclaimed();
                        return NodeStep::Done(self.shrink_node_end(pass, sc));
                    };
                    if self.shrink_lruvec_step(lruvec, memcg, pass.node, sc, ctx) {
                        sc.found.nr_reclaimed += lruvec.nr_reclaimed();
                        match &mut pass.memcg_lru {
                            Some(walk) if lruvec.is_aged() => walk.verdict = Verdict::Aged,
                            // Reclaim for a group that has aged it spares it the next global walk.
                            None if lruvec.is_aged() => {
                                let list = self.groups.memcg_lru.get_mut(pass.node.idx());
                                list.into_iter().for_each(|it| it.rotate(memcg, Rotation::Young));
                            }
                            _ => {}
                        }
                        let position = *at;
                        let priority = self.slab_priority(memcg, sc);
                        pass.stage =
                            match self.begin_shrink_slab(memcg, pass.node, priority, sc.goal.gfp) {
                                Some(slab) => NodePassStage::Slab(position, slab),
                                None => NodePassStage::After(position),
                            };
                    }
                    return self.legacy_wait(&sc.goal, pass.node);
                }
            }
        }
    }

    /// One batch of a scan of a group's lists. Returns whether the scan is over.
    pub(crate) fn shrink_lruvec_step(
        &mut self,
        scan: &mut LruvecScan,
        memcg: MemcgId,
        node: NodeId,
        sc: &mut ScanControl,
        ctx: &Ctx,
    ) -> bool {
        self.mem.events.priority = scan.priority();
        match self.next_batch(scan, memcg, node, sc, ctx) {
            ScanBatch::Evict(batch) => {
                let nr = self.shrink_batch(batch, memcg, node, sc, ctx);
                scan.add_reclaimed(nr);
            }
            ScanBatch::Aged => {}
            ScanBatch::Done => {
                // Linux 6.12 with generations asks here, else after each batch.
                let tally = &sc.found.tally;
                let all_dirty =
                    tally.unqueued_dirty > 0 && tally.unqueued_dirty == tally.file_taken;
                if self.era.evicts_unwritten && all_dirty {
                    O::wake_writeback(self);
                }
                return true;
            }
        }
        self.step.plugged = true;
        false
    }
}
