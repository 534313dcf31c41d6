//! Writes that do more than set a value.
//!
//! Linux: the handlers that sysctls name instead of `proc_dointvec_minmax` (6.1):
//! `watermark_boost_factor` of mm/page_alloc.c, the dirty limits of mm/page-writeback.c,
//! `compaction_proactiveness_sysctl_handler` (mm/compaction.c), `drop_caches_sysctl_handler`
//! (fs/drop_caches.c), and `enabled_store` (mm/huge_memory.c).

use crate::config::Thp;
use crate::manager::Manager;
use crate::owners::Owners;
use crate::units::Cpu;
use crate::vmstat::{Event, NodeStat};
use crate::watermark;

impl<O: Owners> Manager<O> {
    /// The factor is looked at when a zone is boosted: marks, and a boost that is there, stay.
    pub(super) fn set_watermark_boost_factor(&mut self, factor: u32) {
        self.config.watermarks.watermark_boost_factor = factor;
        for zone in self.mem.nodes.iter_mut().flat_map(|node| &mut node.zones) {
            zone.watermark_boost_factor = factor;
        }
    }

    /// Switches the limit in bytes off, but only if the ratio changes (`dirty_ratio_handler`; the
    /// background limits do it always).
    pub(super) fn set_dirty_ratio(&mut self, ratio: u32) {
        if self.config.dirty_ratio != ratio {
            self.config.dirty_ratio = ratio;
            self.config.dirty_bytes = 0;
        }
    }

    pub(super) fn set_dirty_bytes(&mut self, bytes: u64) {
        if self.config.dirty_bytes != bytes {
            self.config.dirty_bytes = bytes;
            self.config.dirty_ratio = 0;
        }
    }

    /// A new interval takes effect at once: Linux writes everything now and counts from here.
    pub(super) fn set_dirty_writeback_centisecs(&mut self, interval: i32) {
        let interval = interval as u32;
        let old = core::mem::replace(&mut self.config.dirty_writeback_centisecs, interval);
        // With nothing to write and a timer that runs, the next round sees the new interval.
        let needs_waking = old == 0 || self.global_node_stat(NodeStat::NrDirty) > 0;
        if interval != 0 && interval != old && needs_waking {
            O::wake_writeback(self);
        }
    }

    /// `echo N >/proc/sys/vm/drop_caches`: 1 drops page cache, 2 the names and inodes that the
    /// kernel keeps, 4 is to be silent about it.
    pub(super) fn drop_caches(&mut self, what: u32) {
        if what & 1 != 0 {
            O::drop_caches(self, Cpu(0));
            self.mem.vmstat.count(Event::DropPagecache);
        }
        if what & 2 != 0 {
            self.drop_kept_objects(Cpu(0));
            self.mem.vmstat.count(Event::DropSlab);
        }
    }

    /// A share above 0 has every node looked at now, not at the next of kcompactd's rounds.
    pub(super) fn set_compaction_proactiveness(&mut self, share: u32) {
        self.config.compaction_proactiveness = share;
        if share > 0 {
            self.wake_all_kcompactds();
        }
    }

    /// Also what the policy `thp` does. Huge pages need a larger reserve, which comes and goes with
    /// them (`start_stop_khugepaged`).
    pub(super) fn set_thp(&mut self, thp: Thp) {
        let was_on = self.config.thp.is_on();
        self.config.thp = thp;
        let inputs = &mut self.config.watermarks;
        let page_size = self.mem.page_size;
        watermark::switch_thp(&mut self.mem.nodes, inputs, was_on, thp.is_on(), page_size);
        if thp.is_on() {
            O::huge_pages_on(self);
        }
    }
}
