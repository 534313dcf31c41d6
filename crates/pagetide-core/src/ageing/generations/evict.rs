//! Eviction: scans one group's oldest generation.
//!
//! Linux: `lru_gen_shrink_lruvec`, `evict_folios`, `isolate_folios`, `get_nr_to_scan`,
//! `should_abort_scan` (mm/vmscan.c, 6.1).

use super::limits::{MIN_LRU_BATCH, MIN_NR_GENS};
use super::scan::GenerationScan;
use super::sort::SortedPages;
use crate::ageing::scan::{EvictionBatch, ScanBatch};
use crate::frames::gfp::{AllocFlags, Gfp, Watermark};
use crate::frames::watermark::zone_watermark_ok;
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::reclaim::ScanControl;
use crate::units::{MemcgId, NodeId, Pfn, DEF_PRIORITY};
use alloc::vec::Vec;

impl Kernel {
    /// Whether a scan of a group at a priority would find nothing to do.
    pub(crate) fn has_nothing_to_evict(&self, memcg: MemcgId, node: NodeId, priority: i8) -> bool {
        let can_swap = self.generations_swappiness(memcg) > 0;
        self.generations_to_scan(memcg, node, can_swap, priority) == (0, false)
    }

    /// Whether a group has pages to scan at a priority (Linux `lruvec_is_sizable`).
    pub(crate) fn is_sizable(&self, memcg: MemcgId, node: NodeId, priority: i8) -> bool {
        let can_swap = self.generations_swappiness(memcg) > 0;
        self.generations_to_scan(memcg, node, can_swap, priority).0 > 0
    }

    /// Whether the group has come down to its protection since its scan began.
    fn is_protected(&self, memcg: MemcgId, sc: &ScanControl) -> bool {
        // Since 6.2 a group is not protected from reclaim for itself.
        if self.era.ages_in_eviction && sc.goal.target == Some(memcg) {
            return false;
        }
        let counter = &self.groups.memcgs[memcg].memory;
        let is_below = |protected: u64| protected > 0 && counter.usage <= protected;
        let spares_low = !self.era.ages_in_eviction && !sc.may.memcg_low;
        is_below(counter.emin) || spares_low && is_below(counter.elow)
    }

    /// Whether to end the scan although pages are left to scan.
    fn should_abort_scan(
        &self,
        scan: &mut GenerationScan,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
    ) -> bool {
        let nr_reclaimed = sc.found.nr_reclaimed + scan.nr_reclaimed;
        if self.era.ages_in_eviction {
            return self.should_abort_6_12(nr_reclaimed, node, sc);
        }
        let nr_to_reclaim = sc.goal.nr_to_reclaim;
        if sc.goal.is_kswapd() {
            if nr_reclaimed - sc.found.generations.reclaimed_before < nr_to_reclaim {
                return false;
            }
        } else {
            // Each group is aged at most once, to be fair to the others.
            let max_seq = self.groups.generations(memcg, node).map_or(0, |it| it.max_seq);
            // After a switch the numbers begin again.
            if max_seq.saturating_sub(scan.max_seq.unwrap_or(max_seq)) > 1 {
                return true;
            }
            if nr_reclaimed >= nr_to_reclaim && scan.has_swapped {
                return true;
            }
            if sc.goal.is_for_group() {
                return false;
            }
        }
        if sc.goal.priority > DEF_PRIORITY - 2 {
            return false;
        }
        let mark = if sc.goal.is_kswapd() { Watermark::High } else { Watermark::Low };
        let zones = &self.mem.nodes[node].zones[..=sc.goal.reclaim_idx];
        let is_short = |zone: &&crate::frames::zone::Zone| {
            zone.is_populated() && zone.wmark(mark) > zone.free_pages_counted()
        };
        if zones.iter().any(|zone| is_short(&zone)) {
            return false;
        }
        // The reclaimer has done its part, so this counts as progress.
        scan.nr_reclaimed += MIN_LRU_BATCH;
        true
    }

    /// The same in Linux 6.12: reclaim for a group never stops, another reclaimer when it has freed
    /// enough, and kswapd when all zones are safe.
    pub(crate) fn should_abort_6_12(
        &self,
        nr_reclaimed: u64,
        node: NodeId,
        sc: &ScanControl,
    ) -> bool {
        if !sc.goal.is_global() {
            return false;
        }
        let before = match sc.goal.is_kswapd() {
            true => sc.found.generations.reclaimed_before,
            false => 0,
        };
        if nr_reclaimed - before >= sc.goal.nr_with_gap() {
            return true;
        }
        if !sc.goal.is_kswapd() || sc.goal.order > 0 {
            return false;
        }
        let idx = sc.goal.reclaim_idx;
        self.mem.nodes[node].zones[..=idx].iter().filter(|zone| zone.is_populated()).all(|zone| {
            let mark = zone.wmark(Watermark::High) + MIN_LRU_BATCH;
            zone_watermark_ok(zone, 0, mark, idx, AllocFlags::at(Watermark::High))
        })
    }

    /// Takes pages of the kind that refaults less.
    fn isolate_oldest(
        &mut self,
        (memcg, node): (MemcgId, NodeId),
        sc: &ScanControl,
        swappiness: u64,
        taken: &mut Vec<Pfn>,
    ) -> (bool, SortedPages) {
        let Some(generations) = self.groups.generations(memcg, node) else {
            return (true, SortedPages::default());
        };
        let [anon, page_cache] = generations.min_seq;
        let mut tier = None;
        let mut file = match swappiness {
            0 => true,
            _ if anon < page_cache => false,
            1 => true,
            200 => false,
            _ if self.era.ages_in_eviction && !sc.goal.gfp.has(Gfp::IO) => true,
            _ => {
                let (file, last) = generations.feedback.kind_to_evict(swappiness);
                tier = Some(last);
                file
            }
        };
        let mut sorted = SortedPages::default();
        for _ in 0..if swappiness == 0 { 1 } else { 2 } {
            let Some(generations) = self.groups.generations(memcg, node) else { break };
            let last = tier.take().unwrap_or_else(|| generations.feedback.last_tier(file));
            sorted = self.scan_oldest((memcg, node), sc, file, last, taken);
            if sorted.nr_scanned > 0 {
                break;
            }
            file = !file;
        }
        (file, sorted)
    }

    /// Takes a batch from the oldest generation. Returns the pages scanned, too; 0: eviction cannot
    /// go on (Linux `evict_folios`, its first part).
    pub(super) fn evict_oldest(
        &mut self,
        (memcg, node): (MemcgId, NodeId),
        sc: &ScanControl,
        swappiness: u64,
    ) -> (u64, Option<EvictionBatch>) {
        let can_swap = swappiness > 0;
        let mut taken = core::mem::take(&mut self.step.scratch);
        let (file, sorted) = self.isolate_oldest((memcg, node), sc, swappiness, &mut taken);
        let mut nr_scanned = 0;
        if let Some(generations) = self.groups.generations_mut(memcg, node) {
            let has_ended = generations.try_to_inc_min_seq(can_swap);
            if generations.nr_generations(!can_swap) != MIN_NR_GENS {
                nr_scanned = sorted.nr_scanned + u64::from(has_ended);
            }
        }
        if taken.is_empty() {
            self.step.scratch = taken;
            return (nr_scanned, None);
        }
        let nr_taken = sorted.nr_taken;
        (nr_scanned, Some(EvictionBatch { file, nr_scanned: nr_taken, nr_taken, taken }))
    }
}

impl<O: Owners> Manager<O> {
    /// Pages to scan of a group; ages it first if it has too few old pages.
    fn nr_to_scan(
        &mut self,
        scan: &mut GenerationScan,
        memcg: MemcgId,
        can_swap: bool,
        sc: &mut ScanControl,
        ctx: &Ctx,
    ) -> u64 {
        let node = ctx.node;
        if self.is_protected(memcg, sc) {
            scan.is_aged = true;
            return 0;
        }
        let (nr_to_scan, needs_ageing) =
            self.generations_to_scan(memcg, node, can_swap, scan.priority);
        scan.needs_ageing = needs_ageing;
        if self.era.ages_in_eviction {
            let Some(generations) = self.groups.generations(memcg, node) else { return 0 };
            let oldest = generations.min_seq[usize::from(!can_swap)];
            let is_out = oldest + MIN_NR_GENS > generations.max_seq;
            if !needs_ageing || scan.priority == DEF_PRIORITY {
                return if is_out { 0 } else { nr_to_scan };
            }
            scan.walks_for = Some(generations.max_seq);
            sc.found.generations.has_open_walk |= self.era.walks_tables && sc.goal.is_global();
            return 0;
        }
        if !needs_ageing {
            return nr_to_scan;
        }
        if scan.priority != DEF_PRIORITY {
            // kswapd ages before its next round.
            if sc.goal.is_kswapd() {
                return 0;
            }
            self.age_group(memcg, ctx, can_swap, false);
            if self.era.walks_tables {
                scan.walk = Some(can_swap);
            }
            return nr_to_scan;
        }
        let Some(generations) = self.groups.generations(memcg, node) else { return 0 };
        let oldest = generations.min_seq[usize::from(!can_swap)];
        match oldest + MIN_NR_GENS <= generations.max_seq {
            true => nr_to_scan,
            false => 0,
        }
    }

    /// The next batch of a scan.
    pub(crate) fn next_batch_of_generations(
        &mut self,
        scan: &mut GenerationScan,
        memcg: MemcgId,
        node: NodeId,
        sc: &mut ScanControl,
        ctx: &Ctx,
    ) -> ScanBatch {
        let ctx = &Ctx { node, ..*ctx };
        if scan.max_seq.is_none() {
            self.lru_add_drain(ctx.cpu);
            scan.max_seq = self.groups.generations(memcg, node).map(|it| it.max_seq);
            if sc.goal.is_kswapd() {
                scan.walk = Some(self.mem.pgdat[node].mm_walk_can_swap);
            } else if sc.goal.proactive && self.era.activates_neighbours {
                scan.walk = Some(true);
            }
        }
        if let Some((nr_scanned, nr_to_scan)) = scan.last.take() {
            if nr_scanned == 0 {
                return ScanBatch::Done;
            }
            scan.nr_scanned += nr_scanned;
            if scan.nr_scanned >= nr_to_scan || self.should_abort_scan(scan, memcg, node, sc) {
                if scan.nr_reclaimed >= MIN_LRU_BATCH && !scan.needs_ageing {
                    sc.found.generations.needs_ageing = false;
                }
                return ScanBatch::Done;
            }
        }
        // Linux 6.12 asks once for the whole scan.
        let swappiness = match scan.swappiness.filter(|_| self.era.ages_in_eviction) {
            Some(swappiness) => swappiness,
            None => match self.generations_swappiness(memcg) {
                swappiness if sc.may.swap => swappiness,
                _ if self.era.ages_in_eviction => 0,
                swappiness if swappiness > 0 && !sc.goal.is_for_group() => 1,
                _ => 0,
            },
        };
        scan.swappiness = Some(swappiness);
        let can_swap = swappiness > 0;
        let nr_to_scan = match scan.walks_for {
            Some(_) => 0,
            None => self.nr_to_scan(scan, memcg, can_swap, sc, ctx),
        };
        if let Some(seq) = scan.walks_for {
            let Some(is_aged) = self.walk_on(memcg, ctx, can_swap, seq) else {
                return ScanBatch::Aged;
            };
            scan.is_aged = is_aged;
        }
        if nr_to_scan == 0 {
            return ScanBatch::Done;
        }
        let (nr_scanned, batch) = self.evict_oldest((memcg, node), sc, swappiness);
        scan.last = Some((nr_scanned, nr_to_scan));
        let Some(batch) = batch else { return ScanBatch::Aged };
        scan.has_swapped |= !batch.file;
        let is_open = sc.found.generations.has_open_walk;
        self.step.mm_walk = scan.walk.or(is_open.then_some(true));
        ScanBatch::Evict(batch)
    }
}
