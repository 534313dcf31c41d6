//! Shrinking a node: every group's lists, in batches.
//!
//! Linux: `shrink_node`, `shrink_node_memcgs`, `shrink_lruvec` (6.1). Groups are visited in
//! pre-order, each list by 32 pages in turn until its target is used up; once enough was freed,
//! the kind with less left stops and the other is scaled to the same share.
//!
//! Invariant: [`ShrinkNode`] holds everything between two batches; a step is one batch.

use super::ScanControl;
use crate::call::Ctx;
use crate::config::DirectReclaimPolicy;
use crate::digest::Digest;
use crate::effect::{Throttle, Wait};
use crate::lruvec::Lru;
use crate::machine::Machine;
use crate::units::{MemcgId, NodeId, DEF_PRIORITY, SWAP_CLUSTER_MAX};
use crate::vmstat::Event;

/// One timer tick of the kernel (250 HZ as distributions configure it), for throttles that are
/// given in ticks.
pub const TICK: u64 = 4_000_000;

/// A node pass in progress.
#[derive(Clone, Debug)]
pub struct ShrinkNode {
    node: NodeId,
    memcg: u16,
    lruvec: Option<ShrinkLruvec>,
    begun: bool,
    reclaimed_before: u64,
}

/// One group's lists in progress.
#[derive(Clone, Debug)]
struct ShrinkLruvec {
    nr: [u64; 4],
    targets: [u64; 4],
    nr_reclaimed: u64,
    nr_to_reclaim: u64,
    /// Light direct reclaim scans its targets whole, so that both kinds feel equal pressure.
    proportional: bool,
    /// List of the next batch.
    at: usize,
}

/// Result of one step of a node pass.
pub enum NodeStep {
    /// More to do.
    Continue,
    /// Finished; sleep first if it says so.
    Done(Option<Wait>),
}

impl ShrinkNode {
    /// A pass over `node`.
    pub fn new(node: NodeId) -> ShrinkNode {
        ShrinkNode { node, memcg: 0, lruvec: None, begun: false, reclaimed_before: 0 }
    }

    /// Mixes the state into `digest`.
    pub(crate) fn digest(&self, digest: &mut Digest) {
        let ShrinkNode { node, memcg, lruvec, begun, reclaimed_before } = self;
        digest.write_all(&[u64::from(node.0), u64::from(*memcg), u64::from(*begun)]);
        digest.write_all(&[*reclaimed_before, u64::from(lruvec.is_some())]);
        if let Some(lruvec) = lruvec {
            let ShrinkLruvec { nr, targets, nr_reclaimed, nr_to_reclaim, proportional, at } =
                lruvec;
            digest.write_all(nr);
            digest.write_all(targets);
            digest.write_all(&[*nr_reclaimed, *nr_to_reclaim]);
            digest.write_all(&[u64::from(*proportional), *at as u64]);
        }
    }

    /// The node.
    pub fn node(&self) -> NodeId {
        self.node
    }
}

impl Machine {
    pub(crate) fn shrink_node_step(
        &mut self,
        pass: &mut ShrinkNode,
        sc: &mut ScanControl,
        ctx: &Ctx,
    ) -> NodeStep {
        if !pass.begun {
            pass.begun = true;
            pass.reclaimed_before = sc.nr_reclaimed;
            sc.tally = Default::default();
            self.prepare_scan_count(pass.node, sc);
        }
        loop {
            if let Some(lruvec) = &mut pass.lruvec {
                let memcg = MemcgId(pass.memcg);
                if self.shrink_lruvec_step(lruvec, memcg, pass.node, sc, ctx) {
                    sc.nr_reclaimed += lruvec.nr_reclaimed;
                    pass.lruvec = None;
                    pass.memcg += 1;
                }
                return NodeStep::Continue;
            }
            if usize::from(pass.memcg) >= self.memcgs.len() {
                return NodeStep::Done(self.shrink_node_end(pass, sc));
            }
            let memcg = MemcgId(pass.memcg);
            self.mem.work.lruvecs_visited += 1;
            let nr = self.get_scan_count(memcg, pass.node, sc);
            pass.lruvec = Some(ShrinkLruvec {
                nr,
                targets: nr,
                nr_reclaimed: 0,
                nr_to_reclaim: sc.nr_to_reclaim,
                proportional: !sc.is_kswapd() && sc.priority == DEF_PRIORITY,
                at: 0,
            });
        }
    }

    /// One batch of one group. Returns whether the group is finished.
    fn shrink_lruvec_step(
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
        loop {
            if state.at == 0
                && state.nr[INACTIVE_ANON] == 0
                && state.nr[ACTIVE_FILE] == 0
                && state.nr[INACTIVE_FILE] == 0
            {
                // Also without inactive pages to scan, keep the anonymous lists in balance.
                if self.can_age_anon_pages() && self.inactive_is_low(memcg, node, false) {
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
        if tally.dirty > 0 && tally.dirty == tally.congested {
            state.congested = true;
        }
        if !sc.is_kswapd() && state.congested && direct == DirectReclaimPolicy::Linux61 {
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
        let state = &self.nodes[node.idx()];
        match reason {
            Throttle::Writeback => state.nr_writeback_throttled,
            Throttle::Reserves => state.nr_reserve_throttled,
            _ => 0,
        }
    }

    /// A reclaimer that slept for writeback woke up. Worlds call this when such a wait ends.
    pub fn throttle_ended(&mut self, node: NodeId, reason: Throttle) {
        let state = &mut self.nodes[node.idx()];
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
