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
use super::ScanControl;
use crate::ageing::lruvec::Lru;
use crate::config::LruPolicy;
use crate::frames::gfp::Watermark;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::reclaim::plugin::GroupPlan;
use crate::stats::vmstat::NodeStat;
use crate::units::{MemcgId, NodeId};

impl<O: Owners> Manager<O> {
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
            let recent = &mut self.memcgs[memcg].lruvecs[node].recent;
            recent.recent_scanned[usize::from(file)] += scanned;
            recent.recent_rotated[usize::from(file)] += rotated;
        }
    }

    /// How anonymous memory and page cache of a group share the pressure.
    pub(super) fn old_balance(
        &mut self,
        memcg: MemcgId,
        node: NodeId,
        sc: &ScanControl,
        plan: GroupPlan,
    ) -> ScanBalance {
        let swappiness = u64::from(self.memcg_swappiness(memcg)).min(100);
        let size = |lru: Lru| self.lruvec(memcg, node).size(lru);
        let anon = size(Lru::InactiveAnon) + size(Lru::ActiveAnon);
        let file = size(Lru::InactiveFile) + size(Lru::ActiveFile);
        if !sc.may.swap || self.memcg_swap_left(memcg) == 0 {
            return ScanBalance::File;
        }
        if sc.goal.is_for_group() && swappiness == 0 {
            return ScanBalance::File;
        }
        if plan.priority == 0 && swappiness > 0 {
            return ScanBalance::Equal;
        }
        if !sc.goal.is_for_group() && self.is_page_cache_tiny(node) {
            let enough = self.config.lru == LruPolicy::Linux33
                || (!self.inactive_is_low(memcg, node, false)
                    && size(Lru::InactiveAnon) >> plan.priority > 0);
            if enough {
                return ScanBalance::Anon;
            }
        }
        if self.config.lru == LruPolicy::Linux54
            && !self.is_to_be_aged(memcg, node, true)
            && size(Lru::InactiveFile) >> plan.priority > 0
        {
            return ScanBalance::File;
        }
        let recent = &mut self.memcgs[memcg].lruvecs[node].recent;
        for (kind, pages) in [anon, file].into_iter().enumerate() {
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

    /// Whether the node could not be balanced even if all its page cache were freed.
    fn is_page_cache_tiny(&self, node: NodeId) -> bool {
        let zones = || self.mem.nodes[node].zones.iter().filter(|zone| zone.is_populated());
        let free: u64 = zones().map(|zone| zone.free_pages()).sum();
        let high: u64 = zones().map(|zone| zone.wmark(Watermark::High)).sum();
        let file = self.node_stat(node, NodeStat::NrInactiveFile)
            + self.node_stat(node, NodeStat::NrActiveFile);
        file + free <= high
    }

    /// Whether to age a group's active list (Linux `inactive_list_is_low`; 5.4: also when evicted
    /// pages have returned since reclaim last looked).
    pub(crate) fn is_to_be_aged(&self, memcg: MemcgId, node: NodeId, file: bool) -> bool {
        let lruvec = self.lruvec(memcg, node);
        let kind = usize::from(file);
        let has_refaults = self.config.lru == LruPolicy::Linux54
            && lruvec.workingset_activate[kind] != lruvec.refaults[kind];
        has_refaults || self.inactive_is_low(memcg, node, file)
    }
}
