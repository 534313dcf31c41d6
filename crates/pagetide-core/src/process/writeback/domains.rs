//! Dirty domains: how many dirty pages the machine and a group may have.
//!
//! Linux: `domain_dirty_limits`, `mdtc_calc_avail` in mm/page-writeback.c, `mem_cgroup_wb_stats` in
//! mm/memcontrol.c (6.1). The machine is one domain. In cgroup version 2 each group is a domain,
//! too: its limits are shares of its page cache and of the clean page cache that it could still
//! get. A task must keep the limits of both domains.
//!
//! Invariant: reading a domain changes nothing.

use super::limits::{DirtyDomain, DirtyLevels};
use crate::config::Config;
use crate::frames::page_alloc::Memory;
use crate::groups::Groups;
use crate::interface::kernel::Kernel;
use crate::process::Machine;
use crate::stats::vmstat::NodeStat;
use crate::units::MemcgId;

impl Groups {
    /// Pages that a group may still be charged, by its limits and those of its ancestors.
    fn headroom(&self, memcg: MemcgId) -> u64 {
        let mut headroom = u64::MAX;
        let mut at = memcg;
        while self.memcgs[at].parent.is_some() {
            let group = &self.memcgs[at];
            let ceiling = group.memory.max.min(group.memory.high);
            headroom = headroom.min(ceiling.saturating_sub(group.memory.usage));
            at = group.parent;
        }
        headroom
    }
}

impl Memory {
    /// A percentage of pages; Linux computes with bytes of a page instead of hundredths.
    fn part_of_avail(&self, percent: u32, avail: u64) -> u64 {
        let page_bytes = self.page_size.bytes();
        u64::from(percent) * page_bytes / 100 * avail / page_bytes
    }
}

impl Config {
    /// `dirty_bytes` and `dirty_ratio`, then the same of the background.
    fn dirty_ratios(&self) -> [(u64, u32); 2] {
        let config = &self;
        [
            (config.dirty_bytes, config.dirty_ratio),
            (config.dirty_background_bytes, config.dirty_background_ratio),
        ]
    }
}

impl Kernel {
    /// The dirty and the background threshold if this number of pages could be dirty.
    pub(in crate::process) fn machine_thresholds(&self, avail: u64) -> [u64; 2] {
        self.config.dirty_ratios().map(|(bytes, ratio)| match bytes {
            0 => self.mem.part_of_avail(ratio, avail),
            _ => bytes.div_ceil(self.mem.page_size.bytes()),
        })
    }
}

impl Machine {
    /// Background and dirty threshold of the machine, in pages (Linux `global_dirty_limits`).
    pub fn dirty_limits(&self) -> (u64, u64) {
        let levels = self.machine_levels();
        (levels.background, levels.thresh)
    }

    /// The domain of the machine: its dirty pages without those under writeback, and its limits.
    pub(super) fn machine_levels(&self) -> DirtyLevels {
        let reserve: u64 = self.mem.nodes.iter().map(|node| node.totalreserve_pages).sum();
        let file = self.mem.global_lru_sizes().file();
        let free = self.mem.nr_free_pages().saturating_sub(reserve) + file;
        let avail = free.saturating_sub(self.mem.highmem_dirtyable_pages()) + 1;
        let mut levels = DirtyLevels {
            avail,
            dirty: self.mem.global_node_stat(NodeStat::NrDirty),
            ..DirtyLevels::default()
        };
        let [thresh, background] = self.machine_thresholds(avail);
        levels.set_limits(thresh, background, self.owners.writeback.machine.dirty_limit());
        levels
    }

    /// The domain of a group with `dirty` pages. If they include those under writeback, then those
    /// of `machine` do so, too.
    pub(super) fn group_levels(
        &self,
        memcg: MemcgId,
        dirty: u64,
        machine: &DirtyLevels,
    ) -> DirtyLevels {
        let filepages: u64 = self.memcg_lru_sizes(memcg).file();
        let clean = filepages.saturating_sub(dirty);
        let machine_clean = machine.avail.saturating_sub(machine.dirty);
        let other_clean = machine_clean.saturating_sub(clean);
        let avail = filepages + other_clean.min(self.groups.headroom(memcg));
        let mut levels = DirtyLevels { avail, dirty, ..DirtyLevels::default() };
        // Limits in bytes are the machine's. A group gets the same proportion of its pages.
        let page_bytes = self.mem.page_size.bytes();
        let [thresh, background] = self.config.dirty_ratios().map(|(bytes, ratio)| match bytes {
            0 => self.mem.part_of_avail(ratio, avail),
            _ => bytes.div_ceil(machine.avail).min(page_bytes) * avail / page_bytes,
        });
        let hard = self.owners.writeback.group_domain(memcg).map_or(0, DirtyDomain::dirty_limit);
        levels.set_limits(thresh, background, hard);
        levels
    }
}
