//! How hard reclaim has to work, told to those who listen.
//!
//! Linux: `vmpressure` (mm/vmpressure.c, 6.1). Each group sums up the pages that were scanned for it. When they fill a
//! window a worker looks at them and begins the next window. Nobody listens here, as on most machines; but the worker
//! runs on the CPU of the reclaimer, and when it has run the CPU chooses anew among those who wait. So kswapd, which
//! would else keep the CPU for its slice, gives way every 512 pages if it has had more than the others. What a write to
//! memory.reclaim scans does not count.
//!
//! Differs from Linux: a task that reclaims at priority 3 or below does not call the worker in each round, whatever it
//! has scanned (`vmpressure_prio`). With that call `file` of experiments/verify, two CPUs, had 42 direct reclaims
//! instead of 6; the kernel has 5.
//!
//! Invariant: a group's sum is less than a window.

use super::ScanControl;
use crate::effect::Effect;
use crate::gfp::Gfp;
use crate::manager::Manager;
use crate::memcg::ROOT;
use crate::owners::Owners;
use crate::units::SWAP_CLUSTER_MAX;

/// Pages scanned after which the worker is called (Linux `vmpressure_win`).
const WINDOW: u64 = SWAP_CLUSTER_MAX * 16;

impl<O: Owners> Manager<O> {
    /// A pass over a node has scanned so much for a group, or for the machine.
    pub(crate) fn vmpressure(&mut self, sc: &ScanControl, scanned: u64) {
        // Others would not be helped by what users can free. (Reclaim for a group is for any memory.)
        let flags = [Gfp::HIGHMEM, Gfp::MOVABLE, Gfp::IO, Gfp::FS];
        let helps = sc.is_for_group() || flags.into_iter().any(|flag| sc.gfp.has(flag));
        if sc.proactive || !helps {
            return;
        }
        let target = sc.target.unwrap_or(ROOT);
        let Some(group) = self.memcgs.get_mut(target.idx()) else { return };
        group.vmpressure_scanned += scanned;
        if group.vmpressure_scanned >= WINDOW {
            group.vmpressure_scanned = 0;
            self.effects.push(Effect::ScheduleWork);
        }
    }
}
