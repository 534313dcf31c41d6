//! Stalls: the state changes of a task are reported to its group and to the groups above.
//!
//! Linux: `psi_task_change` (kernel/sched/psi.c, 6.1).

use super::{Machine, MmId};
use crate::memcg::ROOT;
use crate::psi::Psi;
use crate::units::{MemcgId, Nanos};

impl Machine {
    /// Pressure of the whole machine.
    pub fn psi(&self) -> &Psi {
        &self.memcgs[ROOT.idx()].psi
    }

    /// A task began to stall on memory.
    pub fn psi_stall_begin(&mut self, mm: MmId, now: Nanos) {
        self.psi_each(mm, |psi| psi.stall_begin(now));
    }

    /// A task stopped stalling.
    pub fn psi_stall_end(&mut self, mm: MmId, now: Nanos) {
        self.psi_each(mm, |psi| psi.stall_end(now));
    }

    /// A task that is not stalled got a CPU.
    pub fn psi_run_begin(&mut self, mm: MmId, now: Nanos) {
        self.psi_each(mm, |psi| psi.run_begin(now));
    }

    /// A task that is not stalled left its CPU.
    pub fn psi_run_end(&mut self, mm: MmId, now: Nanos) {
        self.psi_each(mm, |psi| psi.run_end(now));
    }

    /// kswapd begins to balance its node, or has done so: it counts as stalled meanwhile, of the machine alone
    /// (`psi_memstall_enter` in `balance_pgdat`).
    pub fn psi_kswapd_stalls(&mut self, begins: bool, now: Nanos) {
        let psi = &mut self.memcgs[ROOT.idx()].psi;
        match begins {
            true => psi.stall_begin(now),
            false => psi.stall_end(now),
        }
    }

    /// Brings all totals up to `now`.
    pub fn psi_flush(&mut self, now: Nanos) {
        self.memcgs.iter_mut().for_each(|memcg| memcg.psi.flush(now));
    }

    fn psi_each(&mut self, mm: MmId, mut f: impl FnMut(&mut Psi)) {
        let Some(mm) = self.owners.mms.get(mm.idx()) else { return };
        let mut at: MemcgId = mm.memcg;
        while at.is_some() {
            f(&mut self.memcgs[at.idx()].psi);
            at = self.memcgs[at.idx()].parent;
        }
    }
}
