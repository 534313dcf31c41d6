//! Balance of page cache and anonymous memory before 5.8.
//!
//! Linux: `get_scan_count` and `struct zone_reclaim_stat` of 2.6.37 to 5.4 (policy `lru`). If many
//! pages of a kind (anonymous memory or page cache) are in use (rotated), the kind is scanned less.
//! Each group's lists have recent counts of pages scanned and rotated, which are halved when they
//! exceed a quarter of the lists. Since 3.10 there are three shortcuts. Only anonymous memory is
//! scanned when there is very little page cache, only page cache while there is enough cold page
//! cache, and all lists at priority 0.
//!
//! Invariant: used only with these policies. With them the costs of 6.1 are not kept.

use super::scan_count::ScanBalance;
use crate::interface::kernel::Kernel;
use crate::reclaim::plugin::GroupPlan;
use crate::reclaim::ScanControl;
use crate::units::{MemcgId, NodeId};

impl Kernel {
    /// Records scanned and rotated pages of a kind and zone.
    pub(crate) fn note_recent(
        &mut self,
        memcg: MemcgId,
        (node, zone): (NodeId, usize),
        file: bool,
        scanned: u64,
        rotated: u64,
    ) {
        if self.era.balances_by_rotation {
            let ageing = &mut self.groups.memcgs[memcg].lruvecs[node].ageing;
            let Some(two) = ageing.two_lists_mut() else { return };
            let recent = &mut two.of_zone_mut(zone).recent;
            recent.recent_scanned[usize::from(file)] += scanned;
            recent.recent_rotated[usize::from(file)] += rotated;
        }
    }

    /// How anonymous memory and page cache of a group share the pressure.
    pub(in crate::ageing::two_lists) fn old_balance(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
        plan: GroupPlan,
    ) -> ScanBalance {
        let swappiness = u64::from(self.memcg_swappiness(memcg)).min(100);
        let zone = sc.rules.only_zone;
        let sizes = self.groups.lruvec(memcg, node).sizes_of(zone);
        if !sc.may.swap || self.memcg_swap_left(memcg) == 0 {
            return ScanBalance::File;
        }
        // Up to 3.9 swappiness 0 is no special case.
        let may_swap = swappiness > 0 || self.era.keeps_cold_cache;
        if sc.goal.is_for_group() && !may_swap {
            return ScanBalance::File;
        }
        if plan.priority == 0 && may_swap {
            return ScanBalance::Equal;
        }
        if !sc.goal.is_for_group()
            && self.mem.is_page_cache_tiny(node, zone, |zone| zone.free_pages())
        {
            let enough = self.era.ages_without_refaults
                || (!self.inactive_is_low(memcg, node, zone, false)
                    && sizes.cold_anon() >> plan.priority > 0);
            if enough {
                return ScanBalance::Anon;
            }
        }
        if !self.era.keeps_cold_cache
            && !self.is_to_be_aged(memcg, node, zone, true)
            && sizes.cold_file() >> plan.priority > 0
        {
            return ScanBalance::File;
        }
        let ageing = &mut self.groups.memcgs[memcg].lruvecs[node].ageing;
        let Some(two) = ageing.two_lists_mut() else { return ScanBalance::Equal };
        let recent = &mut two.of_zone_mut(zone.unwrap_or(0)).recent;
        for (kind, pages) in [sizes.anon(), sizes.file()].into_iter().enumerate() {
            if recent.recent_scanned[kind] > pages / 4 {
                recent.recent_scanned[kind] /= 2;
                recent.recent_rotated[kind] /= 2;
            }
        }
        let one = u64::from(self.era.keeps_cold_cache);
        let share = |weight: u64, kind: usize| {
            (weight + one) * (recent.recent_scanned[kind] + 1) / (recent.recent_rotated[kind] + 1)
        };
        let (anon, file) = (share(swappiness, 0), share(200 - swappiness, 1));
        ScanBalance::Fract { anon, file, denominator: anon + file + 1 }
    }

    /// Whether to age a group's active list (Linux `inactive_list_is_low`; 5.4: also when evicted
    /// pages have returned since reclaim last looked).
    pub(in crate::ageing::two_lists) fn is_to_be_aged(
        &self,
        memcg: MemcgId,
        node: NodeId,
        zone: Option<usize>,
        file: bool,
    ) -> bool {
        let lruvec = self.groups.lruvec(memcg, node);
        let kind = usize::from(file);
        let seen = lruvec.ageing.two_lists().map(|two| two.refaults[kind]);
        let has_refaults = !self.era.ages_without_refaults
            && seen.is_some_and(|seen| lruvec.workingset_activate[kind] != seen);
        has_refaults || self.inactive_is_low(memcg, node, zone, file)
    }
}
