//! How hard reclaim has to work, told to those who listen.
//!
//! Linux: `vmpressure` (mm/vmpressure.c, 6.1). Each group sums up the pages that were scanned for it. When they fill a
//! window a worker looks at them and begins the next window. Nobody listens here, as on most machines; but the worker
//! runs on the CPU of the reclaimer, and when it has run the CPU chooses anew among those who wait. So kswapd, which
//! would else keep the CPU for its slice, gives way every 512 pages if it has had more than the others.
//!
//! Invariant: a group's sum is less than a window.

use crate::effect::Effect;
use crate::manager::Manager;
use crate::memcg::ROOT;
use crate::owners::Owners;
use crate::units::{MemcgId, SWAP_CLUSTER_MAX};

/// Pages scanned after which the worker is called (Linux `vmpressure_win`).
const WINDOW: u64 = SWAP_CLUSTER_MAX * 16;

impl<O: Owners> Manager<O> {
    /// A pass over a node has scanned so much for a group, or for the machine.
    pub(crate) fn vmpressure(&mut self, target: Option<MemcgId>, scanned: u64) {
        let Some(group) = self.memcgs.get_mut(target.unwrap_or(ROOT).idx()) else { return };
        group.vmpressure_scanned += scanned;
        if group.vmpressure_scanned >= WINDOW {
            group.vmpressure_scanned = 0;
            self.effects.push(Effect::ScheduleWork);
        }
    }
}
