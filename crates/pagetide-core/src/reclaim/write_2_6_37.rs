//! Reclaim that writes file pages and naps for disks, as up to Linux 3.1.
//!
//! Linux: `shrink_page_list`, `may_write_to_queue`, `wait_iff_congested`, `congestion_wait`
//! (2.6.37, and 2.6.35). A reclaimer writes dirty pages; a task does so only if the disk is not
//! congested. Pages under writeback are skipped. A task naps when all dirty pages of a list wait
//! for a congested disk.
//!
//! Invariant: under Linux 6.1 this file writes no page, skips no page and makes no task nap.

use super::ReclaimGoal;
use crate::config::era::CongestionNap;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::units::NodeId;

impl Kernel {
    /// Whether this reclaimer writes any dirty file page (old kernels).
    #[inline]
    pub(super) fn writes_files(&self, goal: &ReclaimGoal) -> bool {
        if goal.is_kswapd() {
            self.era.kswapd_writes_files
        } else {
            self.era.tasks_write_files
        }
    }
}

impl<O: Owners> Manager<O> {
    /// Whether a file page may be written now: only kswapd writes to a congested disk (Linux
    /// `may_write_to_queue`).
    pub(super) fn may_write_to_queue(&self, goal: &ReclaimGoal) -> bool {
        goal.is_kswapd() || !self.owners.is_write_congested()
    }

    /// Whether a direct reclaimer that freed little sleeps until the disks are less busy.
    pub(crate) fn waits_for_congestion(&self, node: NodeId) -> bool {
        match self.era.congestion_nap {
            CongestionNap::Never => false,
            CongestionNap::IfCongested => {
                self.mem.pgdat[node].congested && self.owners.is_write_congested()
            }
            CongestionNap::Always => true,
        }
    }
}
