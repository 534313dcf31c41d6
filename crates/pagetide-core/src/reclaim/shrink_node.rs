//! Shrinking a node: every group's lists, in batches.
//!
//! Linux: `shrink_node`, `shrink_node_memcgs`, `shrink_lruvec` (6.1). The groups at and below the
//! one that is short of memory (the root, if the machine is) are visited parents first; what to do
//! with each is asked of the group policies ([`super::group_policy`]). Each list is scanned by 32
//! pages in turn until its target is used up; once enough was freed, the kind with less left stops
//! and the other is scaled to the same share.
//!
//! Every walk visits everybody (Linux 5.4 to 6.7), or, by policy, tasks that reclaim for themselves
//! take up where the last one stopped and stop themselves when they have enough (since 6.8). A walk
//! that finds its place removed ends there.
//!
//! Invariant: [`ShrinkNode`] holds everything between two batches; a step is one batch.

use super::group_policy::{Plan, Visit, Walk};
use super::soft_limit_tree::SoftReclaim;
use super::ScanControl;
use crate::compaction::suitable::{compact_gap, compaction_suitable};
use crate::compaction::CompactResult;
use crate::config::{CgroupVersion, CompactionPolicy, DirectReclaimPolicy, GroupWalkPolicy};
use crate::ctx::Ctx;
use crate::digest::Digest;
use crate::effect::{Throttle, Wait};
use crate::event::TraceEvent;
use crate::gfp::{AllocFlags, Watermark};
use crate::lruvec::Lru;
use crate::manager::Manager;
use crate::memcg::{Position, ROOT};
use crate::owners::Owners;
use crate::page::PageFlags;
use crate::slab::shrinker::ShrinkSlab;
use crate::units::{MemcgId, NodeId, DEF_PRIORITY, PAGE_ALLOC_COSTLY_ORDER, SWAP_CLUSTER_MAX};
use crate::vmstat::{Event, NodeStat};
use alloc::boxed::Box;

/// One timer tick of the kernel (250 HZ as distributions configure it), for throttles that are
/// given in ticks.
pub const TICK: u64 = 4_000_000;

/// Groups that a step visits at most, if none of them has anything to scan.
const VISITS_A_STEP: u32 = 32;

/// A node pass in progress.
#[derive(Clone, Debug)]
pub struct ShrinkNode {
    node: NodeId,
    stage: Stage,
    /// Number of the walk over the tree, from 0.
    walk: u32,
    /// Pages looked at and freed when the walk began.
    walk_scanned: u64,
    reclaimed_before: u64,
    /// Pages that slabs gave back meanwhile, not told of yet (Linux `reclaim_state`).
    reclaimed_slab: u64,
}

#[derive(Clone, Debug)]
enum Stage {
    /// Nothing done yet.
    New,
    /// The soft-limit trees' own stage.
    Soft(Box<SoftReclaim>),
    /// Begin a walk.
    Walk,
    /// At a group, whose lists are not looked at yet.
    At(Position),
    /// A group's lists in progress.
    Shrink(Position, ShrinkLruvec),
    /// The objects kept for a group in progress.
    Slab(Position, ShrinkSlab),
    /// Done with a group.
    After(Position),
}

/// One group's lists in progress.
#[derive(Clone, Debug)]
pub(crate) struct ShrinkLruvec {
    nr: [u64; 4],
    targets: [u64; 4],
    /// Pages freed so far.
    pub nr_reclaimed: u64,
    nr_to_reclaim: u64,
    /// Light direct reclaim scans its targets whole, so that both kinds feel equal pressure.
    proportional: bool,
    /// List of the next batch.
    at: usize,
    /// Priority of the group's plan, for the log of events.
    priority: i8,
}

impl ShrinkLruvec {
    /// Lists of which so much is to be looked at.
    pub fn new(nr: [u64; 4], nr_to_reclaim: u64, proportional: bool, plan: Plan) -> ShrinkLruvec {
        let (nr_reclaimed, at, priority) = (0, 0, plan.priority);
        ShrinkLruvec { nr, targets: nr, nr_reclaimed, nr_to_reclaim, proportional, at, priority }
    }

    pub fn digest(&self, digest: &mut Digest) {
        // The priority is in the targets, and decides nothing any more.
        let ShrinkLruvec {
            nr,
            targets,
            nr_reclaimed,
            nr_to_reclaim,
            proportional,
            at,
            priority: _,
        } = self;
        digest.write_all(nr);
        digest.write_all(targets);
        digest.write_all(&[*nr_reclaimed, *nr_to_reclaim]);
        digest.write_all(&[u64::from(*proportional), *at as u64]);
    }
}

/// Result of one step of a node pass.
pub enum NodeStep {
    /// More to do.
    Continue,
    /// More to do, after this.
    Wait(Wait),
    /// Finished; sleep first if it says so.
    Done(Option<Wait>),
}

impl ShrinkNode {
    /// A pass over `node`.
    pub fn new(node: NodeId) -> ShrinkNode {
        ShrinkNode {
            node,
            stage: Stage::New,
            walk: 0,
            walk_scanned: 0,
            reclaimed_before: 0,
            reclaimed_slab: 0,
        }
    }

    /// Mixes the state into `digest`.
    pub(crate) fn digest(&self, digest: &mut Digest) {
        let ShrinkNode { node, stage, walk, walk_scanned, reclaimed_before, reclaimed_slab } = self;
        digest.write_all(&[u64::from(node.0), u64::from(*walk), *walk_scanned]);
        digest.write_all(&[*reclaimed_before, *reclaimed_slab]);
        match stage {
            Stage::New => digest.write_u64(0),
            Stage::Soft(soft) => {
                digest.write_u64(1);
                soft.digest(digest);
            }
            Stage::Walk => digest.write_u64(2),
            Stage::At(at) => digest.write_all(&[3, at.id.0.into(), at.generation.into()]),
            Stage::Shrink(at, lruvec) => {
                digest.write_all(&[4, at.id.0.into(), at.generation.into()]);
                lruvec.digest(digest);
            }
            Stage::Slab(at, slab) => {
                digest.write_all(&[6, at.id.0.into(), at.generation.into()]);
                slab.digest(digest);
            }
            Stage::After(at) => digest.write_all(&[5, at.id.0.into(), at.generation.into()]),
        }
    }

    /// The node.
    pub fn node(&self) -> NodeId {
        self.node
    }
}

impl<O: Owners> Manager<O> {
    /// One step of a pass. A pass for a block of high order goes on with the node while that promises to
    /// give compaction what it needs.
    pub(crate) fn shrink_node_step(
        &mut self,
        pass: &mut ShrinkNode,
        sc: &mut ScanControl,
        ctx: &Ctx,
    ) -> NodeStep {
        let returned = self.slabs.pages_returned;
        let step = self.shrink_node_once(pass, sc, ctx);
        pass.reclaimed_slab += self.slabs.pages_returned - returned;
        if matches!(step, NodeStep::Done(_)) {
            sc.nr_reclaimed += core::mem::take(&mut pass.reclaimed_slab);
        }
        match step {
            NodeStep::Done(wait) if self.should_continue_reclaim(pass, sc) => {
                self.shrink_node_begin(pass, sc);
                wait.map_or(NodeStep::Continue, NodeStep::Wait)
            }
            step => step,
        }
    }

    /// Whether the node has more of what a block of high order needs (Linux
    /// `should_continue_reclaim`): pages were reclaimed, no zone can be compacted yet, and the inactive
    /// lists are long enough.
    fn should_continue_reclaim(&self, pass: &ShrinkNode, sc: &ScanControl) -> bool {
        let for_compaction =
            sc.order > PAGE_ALLOC_COSTLY_ORDER || sc.order > 0 && sc.priority < DEF_PRIORITY - 2;
        if !for_compaction || sc.nr_reclaimed == pass.reclaimed_before {
            return false;
        }
        let stat = |stat| self.node_stat(pass.node, stat);
        let mut inactive = stat(NodeStat::NrInactiveFile);
        if self.swap.free() > 0 {
            inactive += stat(NodeStat::NrInactiveAnon);
        }
        let gap = compact_gap(sc.order);
        // Up to 5.3 what compaction needs was enough, whatever the zone looked like.
        if self.config.compaction == CompactionPolicy::Linux45 && sc.nr_reclaimed >= gap {
            return false;
        }
        let flags = AllocFlags::at(Watermark::Min);
        let node = &self.mem.nodes[pass.node.idx()];
        let zones = match sc.only_zone {
            Some(zone) => &node.zones[zone..=zone],
            None => &node.zones[..=sc.reclaim_idx],
        };
        let ready = zones.iter().any(|zone| {
            zone.is_populated()
                && compaction_suitable(zone, &self.config, sc.order, flags, sc.reclaim_idx)
                    != CompactResult::Skipped
        });
        !ready && inactive > gap
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
                Stage::New => match self.begin_soft_reclaim(pass.node, sc) {
                    Some(soft) => pass.stage = Stage::Soft(Box::new(soft)),
                    None => self.shrink_node_begin(pass, sc),
                },
                Stage::Soft(soft) => {
                    if self.soft_reclaim_step(soft, ctx) {
                        sc.nr_reclaimed += soft.nr_reclaimed;
                        // kswapd judges its round by the regular scan alone.
                        if !sc.is_kswapd() {
                            sc.nr_scanned += soft.nr_scanned;
                        }
                        self.shrink_node_begin(pass, sc);
                    }
                    return self.legacy_wait(sc, pass.node);
                }
                Stage::Walk => match self.first_of_walk(pass, sc) {
                    Some(at) => pass.stage = Stage::At(self.position_of(at)),
                    None => return NodeStep::Done(self.shrink_node_end(pass, sc)),
                },
                Stage::At(at) => {
                    let position = *at;
                    let Some(memcg) = self.at_position_in_walk(position) else {
                        return NodeStep::Done(self.shrink_node_end(pass, sc));
                    };
                    if visits == VISITS_A_STEP {
                        return NodeStep::Continue;
                    }
                    visits += 1;
                    self.mem.work.lruvecs_visited += 1;
                    let visit = Visit { memcg, node: pass.node, walk: pass.walk };
                    let plan = self.plan_group(visit, sc);
                    if plan.skip {
                        if let Some(done) = self.next_of_walk(pass, memcg, sc) {
                            return done;
                        }
                        continue;
                    }
                    let counts = self.get_scan_count(memcg, pass.node, sc, plan);
                    // Small groups have nothing to scan at mild priorities, and there may be many.
                    if memcg != ROOT && counts == [0; 4] && !self.must_age_anon(memcg, pass.node) {
                        if let Some(slab) = self.begin_shrink_slab(memcg, pass.node, sc.priority) {
                            pass.stage = Stage::Slab(position, slab);
                            continue;
                        }
                        if let Some(done) = self.next_of_walk(pass, memcg, sc) {
                            return done;
                        }
                        continue;
                    }
                    let proportional =
                        !sc.is_kswapd() && sc.target.is_none() && plan.priority == DEF_PRIORITY;
                    let lruvec = ShrinkLruvec::new(counts, sc.nr_to_reclaim, proportional, plan);
                    pass.stage = Stage::Shrink(position, lruvec);
                }
                Stage::Slab(at, slab) => {
                    let position = *at;
                    let is_there = self.at_position_in_walk(position).is_some();
                    if is_there && !self.shrink_slab_step(slab, ctx.cpu) {
                        return NodeStep::Continue;
                    }
                    pass.stage = Stage::After(position);
                }
                Stage::After(at) => {
                    let Some(memcg) = self.at_position_in_walk(*at) else {
                        return NodeStep::Done(self.shrink_node_end(pass, sc));
                    };
                    if let Some(done) = self.next_of_walk(pass, memcg, sc) {
                        return done;
                    }
                }
                Stage::Shrink(at, lruvec) => {
                    // A group that goes takes its lists to its parent.
                    let Some(memcg) = self.at_position_in_walk(*at) else {
                        sc.nr_reclaimed += lruvec.nr_reclaimed;
                        return NodeStep::Done(self.shrink_node_end(pass, sc));
                    };
                    if self.shrink_lruvec_step(lruvec, memcg, pass.node, sc, ctx) {
                        sc.nr_reclaimed += lruvec.nr_reclaimed;
                        let position = *at;
                        pass.stage = match self.begin_shrink_slab(memcg, pass.node, sc.priority) {
                            Some(slab) => Stage::Slab(position, slab),
                            None => Stage::After(position),
                        };
                    }
                    return self.legacy_wait(sc, pass.node);
                }
            }
        }
    }

    /// After the soft-limit stage: the regular pass.
    fn shrink_node_begin(&mut self, pass: &mut ShrinkNode, sc: &mut ScanControl) {
        pass.reclaimed_before = sc.nr_reclaimed;
        pass.walk_scanned = sc.nr_scanned;
        sc.tally = Default::default();
        self.prepare_scan_count(pass.node, sc);
        pass.stage = Stage::Walk;
    }

    /// Reclaim for a group of version 1 waits for a page that it meets a second time under
    /// writeback, as dirtiers of such groups are not throttled otherwise. (kswapd: for any writes.)
    fn legacy_wait(&mut self, sc: &ScanControl, node: NodeId) -> NodeStep {
        match self.legacy_wait.take() {
            None => NodeStep::Continue,
            Some(_) if sc.is_kswapd() => {
                NodeStep::Wait(self.reclaim_throttle(node, Throttle::Writeback, 100_000_000))
            }
            Some(pfn) => {
                self.mem.pages[pfn.idx()].set(PageFlags::WAITERS);
                NodeStep::Wait(Wait::Page(pfn))
            }
        }
    }

    /// Whether this reclaimer shares its walk with others and may leave it early.
    fn walks_in_part(&self, sc: &ScanControl) -> bool {
        self.config.group_walk == GroupWalkPolicy::Shared && !sc.is_kswapd() && !sc.full_walk
    }

    fn first_of_walk(&mut self, pass: &ShrinkNode, sc: &ScanControl) -> Option<MemcgId> {
        let root = sc.target.unwrap_or(ROOT);
        if !self.memcg_is_online(root) {
            return None;
        }
        if self.walks_in_part(sc) {
            let remembered = self.memcgs[root.idx()].lruvecs[pass.node.idx()].reclaim_position;
            if remembered.is_some() {
                return self.next_memcg(root, remembered).or(Some(root));
            }
        }
        Some(root)
    }

    /// Goes on from a group to the next, or ends the pass.
    fn next_of_walk(
        &mut self,
        pass: &mut ShrinkNode,
        memcg: MemcgId,
        sc: &ScanControl,
    ) -> Option<NodeStep> {
        let root = sc.target.unwrap_or(ROOT);
        let next = self.next_memcg(root, memcg);
        if self.walks_in_part(sc) {
            let enough = sc.nr_reclaimed >= sc.nr_to_reclaim;
            let remembered = if next.is_some() { memcg } else { MemcgId::NONE };
            self.memcgs[root.idx()].lruvecs[pass.node.idx()].reclaim_position = remembered;
            if enough {
                return Some(NodeStep::Done(self.shrink_node_end(pass, sc)));
            }
        }
        match next {
            Some(next) => pass.stage = Stage::At(self.position_of(next)),
            None => {
                let scanned = sc.nr_scanned - pass.walk_scanned;
                if !self.another_walk(Walk { number: pass.walk, scanned }, sc) {
                    return Some(NodeStep::Done(self.shrink_node_end(pass, sc)));
                }
                pass.walk += 1;
                pass.walk_scanned = sc.nr_scanned;
                pass.stage = Stage::Walk;
            }
        }
        None
    }

    /// Whether a group's active anonymous list has outgrown its inactive one.
    fn must_age_anon(&self, memcg: MemcgId, node: NodeId) -> bool {
        self.can_age_anon_pages() && self.inactive_is_low(memcg, node, false)
    }

    /// One batch of one group. Returns whether the group is finished.
    pub(crate) fn shrink_lruvec_step(
        &mut self,
        state: &mut ShrinkLruvec,
        memcg: MemcgId,
        node: NodeId,
        sc: &mut ScanControl,
        ctx: &Ctx,
    ) -> bool {
        const INACTIVE_ANON: usize = Lru::InactiveAnon as usize;
        const ACTIVE_FILE: usize = Lru::ActiveFile as usize;
        const INACTIVE_FILE: usize = Lru::InactiveFile as usize;
        self.events.priority = state.priority;
        loop {
            if state.at == 0
                && state.nr[INACTIVE_ANON] == 0
                && state.nr[ACTIVE_FILE] == 0
                && state.nr[INACTIVE_FILE] == 0
            {
                // Also without inactive pages to scan, keep the anonymous lists in balance.
                if self.must_age_anon(memcg, node) {
                    self.shrink_active_list(
                        Lru::ActiveAnon,
                        SWAP_CLUSTER_MAX,
                        memcg,
                        node,
                        sc,
                        ctx,
                    );
                }
                return true;
            }
            let mut scanned = false;
            if state.at < 4 {
                let lru = Lru::EVICTABLE[state.at];
                state.at += 1;
                let left = &mut state.nr[lru as usize];
                if *left > 0 {
                    let batch = (*left).min(SWAP_CLUSTER_MAX);
                    *left -= batch;
                    state.nr_reclaimed += self.shrink_list(lru, batch, memcg, node, sc, ctx);
                    scanned = true;
                }
            }
            if state.at == 4 {
                // A round over all lists is complete.
                state.at = 0;
                if state.nr_reclaimed >= state.nr_to_reclaim && !state.proportional {
                    self.balance_targets(state);
                }
            }
            if scanned {
                return false;
            }
        }
    }

    /// Enough was freed: stop the kind with less left to scan and scale the other, so that both
    /// have been scanned to the same share of their targets.
    fn balance_targets(&mut self, state: &mut ShrinkLruvec) {
        let nr_anon = state.nr[0] + state.nr[1];
        let nr_file = state.nr[2] + state.nr[3];
        if nr_anon == 0 || nr_file == 0 {
            state.nr = [0; 4];
            return;
        }
        let (stop, keep, left) = if nr_file > nr_anon { (0, 2, nr_anon) } else { (2, 0, nr_file) };
        let target = state.targets[stop] + state.targets[stop + 1] + 1;
        let percentage = left * 100 / target;
        state.nr[stop] = 0;
        state.nr[stop + 1] = 0;
        for lru in [keep, keep + 1] {
            let scanned = state.targets[lru] - state.nr[lru];
            let scaled = state.targets[lru] * (100 - percentage) / 100;
            state.nr[lru] = scaled - scaled.min(scanned);
        }
    }

    /// After all groups: node flags, and whether the reclaimer should sleep.
    fn shrink_node_end(&mut self, pass: &ShrinkNode, sc: &ScanControl) -> Option<Wait> {
        let tally = &sc.tally;
        let node = pass.node;
        let direct = self.config.direct_reclaim;
        let state = &mut self.nodes[node.idx()];
        let mut wait = None;
        if sc.is_kswapd() {
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
        let target =
            sc.target.and_then(|target| self.memcgs[target.idx()].lruvecs.get_mut(node.idx()));
        let congested = match target {
            None => &mut state.congested,
            Some(lruvec) => &mut lruvec.congested,
        };
        if is_congested && (sc.target.is_none() || self.config.cgroup == CgroupVersion::V2) {
            *congested = true;
        }
        if !sc.is_kswapd() && *congested && direct == DirectReclaimPolicy::Linux61 {
            wait = Some((Throttle::Congested, TICK));
        }
        if sc.nr_reclaimed > pass.reclaimed_before {
            state.kswapd.failures = 0;
        }
        wait.map(|(reason, timeout)| self.reclaim_throttle(node, reason, timeout))
    }

    /// Puts the reclaimer to sleep (Linux `reclaim_throttle`).
    pub(crate) fn reclaim_throttle(
        &mut self,
        node: NodeId,
        reason: Throttle,
        timeout: u64,
    ) -> Wait {
        self.mem.vmstat.count(Event::MmVmscanThrottled);
        let usec_timeout = timeout / 1000;
        self.events.record(TraceEvent::MmVmscanThrottled { nid: node, usec_timeout, reason });
        if reason == Throttle::Writeback {
            let state = &mut self.nodes[node.idx()];
            if state.nr_writeback_throttled == 0 {
                state.nr_written_while_throttled = 0;
            }
            state.nr_writeback_throttled += 1;
        }
        Wait::Throttled { node, reason, timeout }
    }

    /// Who sleeps on a node for [`Throttle::Writeback`] or [`Throttle::Reserves`]; others are not
    /// counted.
    pub fn nr_throttled(&self, node: NodeId, reason: Throttle) -> u32 {
        let Some(state) = self.nodes.get(node.idx()) else { return 0 };
        match reason {
            Throttle::Writeback => state.nr_writeback_throttled,
            Throttle::Reserves => state.nr_reserve_throttled,
            _ => 0,
        }
    }

    /// A reclaimer that slept for writeback woke up. Worlds call this when such a wait ends.
    pub fn throttle_ended(&mut self, node: NodeId, reason: Throttle) {
        let Some(state) = self.nodes.get_mut(node.idx()) else { return };
        match reason {
            Throttle::Writeback => {
                state.nr_writeback_throttled = state.nr_writeback_throttled.saturating_sub(1);
            }
            Throttle::Reserves => {
                state.nr_reserve_throttled = state.nr_reserve_throttled.saturating_sub(1);
            }
            _ => {}
        }
    }
}
