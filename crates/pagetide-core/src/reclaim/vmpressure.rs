//! vmpressure: notices when reclaim has to work hard.
//!
//! Linux: `vmpressure` (mm/vmpressure.c, 6.1). Each group sums up the pages that were scanned for
//! it. When the sum fills a window, a worker evaluates it and starts the next window. No listener
//! exists here, as on most machines. But the worker runs on the CPU of the reclaimer, and after the
//! worker the scheduler chooses a task again. Without the worker kswapd would keep the CPU for its
//! time slice. With the worker it yields every 512 pages, if it has had more CPU time than the
//! other tasks. Pages scanned for memory.reclaim do not count.
//!
//! Differs from Linux: a task that reclaims at priority 3 or below does not call the worker in each
//! round (`vmpressure_prio`). With that call, the case `file` of experiments/verify (two CPUs) had
//! 42 direct reclaims instead of 6; the kernel has 5.
//!
//! Invariant: a group's sum is less than a window.

use super::ReclaimGoal;
use crate::frames::gfp::Gfp;
use crate::groups::memcg::ROOT;
use crate::interface::effect::Effect;
use crate::interface::kernel::Kernel;
use crate::units::SWAP_CLUSTER_MAX;

/// Scanned pages after which the worker is called (Linux `vmpressure_win`).
const WINDOW: u64 = SWAP_CLUSTER_MAX * 16;

impl Kernel {
    /// A pass over a node has scanned `scanned` pages for a group or for the machine.
    pub(crate) fn vmpressure(&mut self, goal: &ReclaimGoal, scanned: u64) {
        // Freeing user memory helps only requests with one of these flags. (Reclaim for a group is
        // for any memory.)
        let flags = [Gfp::HIGHMEM, Gfp::MOVABLE, Gfp::IO, Gfp::FS];
        let helps = goal.is_for_group() || flags.into_iter().any(|flag| goal.gfp.has(flag));
        if goal.proactive || !helps {
            return;
        }
        let target = goal.target.unwrap_or(ROOT);
        let Some(group) = self.groups.memcgs.get_mut(target.idx()) else { return };
        group.vmpressure_scanned += scanned;
        if group.vmpressure_scanned >= WINDOW {
            group.vmpressure_scanned = 0;
            self.step.effects.push(Effect::ScheduleWork);
        }
    }
}
