//! Balance of page cache and anonymous memory before 5.8.
//!
//! Linux: `get_scan_count` and `struct zone_reclaim_stat` of 3.3 and of 5.4 (policy `lru`). If many
//! pages of a kind (anonymous memory or page cache) are in use (rotated), the kind is scanned less.
//! Each group's lists have recent counts of pages scanned and rotated, which are halved when they
//! exceed a quarter of the lists. 5.4 adds three shortcuts. It scans only anonymous memory when
//! there is very little page cache, only page cache while there is enough cold page cache, and all
//! lists at priority 0.
//!
//! Invariant: used only with these policies. With them the costs of 6.1 are not kept.

use super::scan_count::ScanBalance;
use crate::ageing::Ageing;
use crate::config::LruPolicy;
use crate::interface::kernel::Kernel;
use crate::reclaim::plugin::GroupPlan;
use crate::reclaim::ScanControl;
use crate::units::{MemcgId, NodeId};

impl Kernel {
    /// Records scanned and rotated pages of a kind.
    pub(crate) fn note_recent(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        file: bool,
        scanned: u64,
        rotated: u64,
    ) {
        if self.era.balances_by_rotation {
            let Ageing::TwoLists(two) = &mut self.groups.memcgs[memcg].lruvecs[node].ageing;
            let recent = &mut two.recent;
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
        let sizes = self.groups.lruvec(memcg, node).sizes();
        if !sc.may.swap || self.memcg_swap_left(memcg) == 0 {
            return ScanBalance::File;
        }
        if sc.goal.is_for_group() && swappiness == 0 {
            return ScanBalance::File;
        }
        if plan.priority == 0 && swappiness > 0 {
            return ScanBalance::Equal;
        }
        if !sc.goal.is_for_group() && self.mem.is_page_cache_tiny(node, |zone| zone.free_pages()) {
            let enough = self.config.lru == LruPolicy::Linux33
                || (!self.inactive_is_low(memcg, node, false)
                    && sizes.cold_anon() >> plan.priority > 0);
            if enough {
                return ScanBalance::Anon;
            }
        }
        if self.config.lru == LruPolicy::Linux54
            && !self.is_to_be_aged(memcg, node, true)
            && sizes.cold_file() >> plan.priority > 0
        {
            return ScanBalance::File;
        }
        let Ageing::TwoLists(two) = &mut self.groups.memcgs[memcg].lruvecs[node].ageing;
        let recent = &mut two.recent;
        for (kind, pages) in [sizes.anon(), sizes.file()].into_iter().enumerate() {
            if recent.recent_scanned[kind] > pages / 4 {
                recent.recent_scanned[kind] /= 2;
                recent.recent_rotated[kind] /= 2;
            }
        }
        // 3.3 adds one to each weight, so that none is ever 0.
        let one = u64::from(self.config.lru == LruPolicy::Linux33);
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
        file: bool,
    ) -> bool {
        let lruvec = self.groups.lruvec(memcg, node);
        let kind = usize::from(file);
        let Ageing::TwoLists(two) = &lruvec.ageing;
        let has_refaults = self.config.lru == LruPolicy::Linux54
            && lruvec.workingset_activate[kind] != two.refaults[kind];
        has_refaults || self.inactive_is_low(memcg, node, file)
    }
}
