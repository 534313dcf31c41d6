//! Number of pages to scan on each list: page cache against anonymous memory.
//!
//! Linux: `prepare_scan_count`, `get_scan_count`, `inactive_is_low` (6.1). Cold page cache is
//! scanned first while there is plenty; otherwise both kinds are scanned in proportion to swappiness
//! and inversely to the cost of reclaiming them so far. Groups differ in swappiness, in remaining
//! swap, and in the priority and protection that policies gave them. All arithmetic is integer, in
//! the kernel's order.

use crate::ageing::lruvec::{Lru, LruSizes, Lruvec, NR_EVICTABLE_LISTS};
use crate::frames::gfp::Watermark;
use crate::frames::page_alloc::Memory;
use crate::frames::zone::Zone;
use crate::groups::memcg::ROOT;
use crate::groups::Groups;
use crate::interface::kernel::Kernel;
use crate::reclaim::plugin::GroupPlan;
use crate::reclaim::ScanControl;
use crate::units::{int_sqrt, MemcgId, NodeId, SWAP_CLUSTER_MAX};

/// Pages to scan of the evictable lists, in the order of [`Lru::EVICTABLE`].
pub(in crate::ageing::two_lists) type ScanCounts = [u64; NR_EVICTABLE_LISTS];

/// How anonymous memory and page cache share the pressure (Linux `enum scan_balance`).
#[derive(Clone, Copy)]
pub(in crate::ageing::two_lists) enum ScanBalance {
    /// Both kinds get the full pressure.
    Equal,
    /// Each kind gets its share of `denominator`.
    Fract { anon: u64, file: u64, denominator: u64 },
    /// Only anonymous memory is scanned.
    Anon,
    /// Only page cache is scanned.
    File,
}

impl ScanBalance {
    /// The share of each list in the pages to scan.
    fn share_out(self, scans: ScanCounts) -> ScanCounts {
        match self {
            ScanBalance::Equal => scans,
            ScanBalance::Anon => [scans[0], scans[1], 0, 0],
            ScanBalance::File => [0, 0, scans[2], scans[3]],
            ScanBalance::Fract { anon, file, denominator } => Lru::EVICTABLE.map(|lru| {
                let fraction = if lru.is_file() { file } else { anon };
                scans[lru as usize] * fraction / denominator
            }),
        }
    }
}

impl Groups {
    /// Saves the counts of refault activations, so that the next pass can recognize new ones.
    pub(crate) fn snapshot_refaults(&mut self, target: Option<MemcgId>, node: NodeId) {
        let target = target.unwrap_or(ROOT);
        if !self.memcg_is_online(target) {
            return;
        }
        let lruvec = &mut self.memcgs[target].lruvecs[node];
        // The root's flag is the node's; kswapd clears it when the node is balanced.
        lruvec.congested = false;
        if let Some(two) = lruvec.ageing.two_lists_mut() {
            two.refaults = lruvec.workingset_activate;
        }
    }
}

impl Memory {
    /// Whether an inactive list is too small for its active list (Linux `inactive_is_low`). The
    /// wanted ratio is the square root of ten times the size in GiB.
    pub(crate) fn inactive_is_short(&self, inactive: u64, active: u64) -> bool {
        let gb = (inactive + active) >> (30 - self.page_size.shift());
        let ratio = if gb > 0 { int_sqrt(10 * gb) } else { 1 };
        inactive * ratio < active
    }

    /// Whether the node, or the zone, could not be balanced even if all its page cache were freed.
    pub(in crate::ageing::two_lists) fn is_page_cache_tiny(
        &self,
        node: NodeId,
        zone: Option<usize>,
        free: impl Fn(&Zone) -> u64,
    ) -> bool {
        let zones = match zone {
            Some(zone) => &self.nodes[node].zones[zone..=zone],
            None => &self.nodes[node].zones[..],
        };
        let free: u64 = zones.iter().map(free).sum();
        let high: u64 = zones
            .iter()
            .filter(|zone| zone.is_populated())
            .map(|zone| zone.wmark(Watermark::High))
            .sum();
        let sizes = match zone {
            Some(zone) => LruSizes(self.pgdat[node].zone_lru[zone]),
            None => self.node_lru_sizes(node),
        };
        sizes.file() + free <= high
    }
}

impl Kernel {
    /// Whether the inactive list of one kind of a group's pages is too small for its active list.
    /// `zone`: the lists of only this zone.
    pub(crate) fn inactive_is_low(
        &self,
        memcg: MemcgId,
        node: NodeId,
        zone: Option<usize>,
        file: bool,
    ) -> bool {
        let sizes = match self.era.ages_by_own_lists {
            true => self.groups.lruvec(memcg, node).sizes_of(zone),
            false => self.lru_sizes_below(memcg, node),
        };
        let [inactive_anon, active_anon, inactive_file, active_file, _] = sizes.0;
        match file {
            true if self.era.halves_file_lists => active_file > inactive_file,
            true => self.mem.inactive_is_short(inactive_file, active_file),
            false => self.mem.inactive_is_short(inactive_anon, active_anon),
        }
    }

    /// Inspects the node once before its groups are walked.
    pub(crate) fn prepare_scan_count(&mut self, node: NodeId, sc: &mut ScanControl) {
        let target = sc.goal.target.unwrap_or(ROOT);
        let lruvec = self.groups.lruvec(target, node);
        let Some(two) = lruvec.ageing.two_lists() else { return };
        let found = &mut sc.found.lists;
        found.costs = two.costs;
        let (activated, seen) = (lruvec.workingset_activate, two.refaults);
        // Refaults have activated pages: the active list is stale, so age it.
        found.may_deactivate = [false, true].map(|file| {
            sc.may.force_ageing
                || activated[usize::from(file)] != seen[usize::from(file)]
                || self.inactive_is_low(target, node, None, file)
        });
        let sizes = self.lru_sizes_below(target, node);
        let [may_age_anon, may_age_file] = found.may_deactivate;
        found.cache_trim_mode = sizes.cold_file() >> sc.goal.priority > 0 && !may_age_file;
        found.file_is_tiny = sc.goal.target.is_none()
            && self.mem.is_page_cache_tiny(node, None, |zone| zone.free_pages_counted())
            && !may_age_anon
            && sizes.cold_anon() >> sc.goal.priority > 0;
    }

    /// Calls [`Self::snapshot_refaults`] for every node, at the end of a descent of direct reclaim.
    pub(crate) fn snapshot_all_refaults(&mut self, target: Option<MemcgId>) {
        for node in 0..self.mem.pgdat.len() {
            self.groups.snapshot_refaults(target, NodeId(node as u8));
        }
    }

    /// How anonymous memory and page cache share the pressure.
    fn balance(&self, memcg: MemcgId, sc: &ScanControl, plan: GroupPlan) -> ScanBalance {
        let swappiness = u64::from(self.memcg_swappiness(memcg));
        let may_swap = sc.may.swap && !(sc.goal.is_for_group() && swappiness == 0);
        if !may_swap || self.memcg_swap_left(memcg) == 0 {
            ScanBalance::File
        } else if plan.priority == 0 && swappiness > 0 {
            ScanBalance::Equal
        } else if sc.found.lists.file_is_tiny {
            ScanBalance::Anon
        } else if sc.found.lists.cache_trim_mode {
            ScanBalance::File
        } else {
            let [anon_cost, file_cost] = sc.found.lists.costs;
            let total = anon_cost + file_cost;
            let (anon_cost, file_cost) = (total + anon_cost, total + file_cost);
            let total = anon_cost + file_cost;
            let anon = swappiness * (total + 1) / (anon_cost + 1);
            let file = (200 - swappiness) * (total + 1) / (file_cost + 1);
            ScanBalance::Fract { anon, file, denominator: anon + file }
        }
    }

    /// Scan targets for one group on one node.
    pub(in crate::ageing::two_lists) fn get_scan_count(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
        plan: GroupPlan,
    ) -> ScanCounts {
        let group = &self.groups.memcgs[memcg];
        let lruvec = &group.lruvecs[node];
        let zones = match sc.rules.only_zone {
            None => &lruvec.zone_sizes[..=sc.goal.reclaim_idx],
            Some(zone) => &lruvec.zone_sizes[zone..=zone],
        };
        let scans = Lruvec::sizes_in(zones).map(|size| {
            let size = if plan.protected > 0 {
                // Usage also includes pages on no list: page tables, stocks, other nodes.
                let usage = group.memory.usage.max(plan.protected);
                (size - size * plan.protected / (usage + 1)).max(SWAP_CLUSTER_MAX)
            } else {
                size
            };
            match size >> plan.priority {
                // Linux 3.3 also plans 32 pages of an empty list, except at priority 0.
                0 if size > 0 && self.era.forces_small_scans && sc.goal.is_for_group() => {
                    SWAP_CLUSTER_MAX
                }
                scan => scan,
            }
        });
        let balance = if self.era.balances_by_rotation {
            // The recent counts must age even if there is nothing to scan.
            self.old_balance(memcg, node, sc, plan)
        } else if scans == [0; 4] {
            // With many groups most visits end here: at a mild priority a small group has nothing
            // to scan. Computing the balance would need a walk up the tree.
            return scans;
        } else {
            self.balance(memcg, sc, plan)
        };
        let mut counts = balance.share_out(scans);
        if self.era.forces_idle_scans && sc.goal.is_for_group() && counts == [0; 4] {
            let lruvec = self.groups.lruvec(memcg, node);
            let sizes = lruvec.sizes_of(sc.rules.only_zone);
            let scans = Lru::EVICTABLE.map(|lru| sizes.on(lru).min(SWAP_CLUSTER_MAX));
            counts = balance.share_out(scans);
        }
        if self.era.saves_scans {
            let ageing = &mut self.groups.memcgs[memcg].lruvecs[node].ageing;
            let Some(two) = ageing.two_lists_mut() else { return counts };
            let saved = &mut two.of_zone_mut(sc.rules.only_zone.unwrap_or(0)).saved_scan;
            for (count, saved) in counts.iter_mut().zip(saved) {
                *saved += *count;
                *count = if *saved < SWAP_CLUSTER_MAX { 0 } else { core::mem::take(saved) };
            }
        }
        counts
    }
}
