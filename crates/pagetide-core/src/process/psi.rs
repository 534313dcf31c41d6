//! Stalls: the state changes of a task are reported to its group and to the groups above.
//!
//! Linux: `psi_task_change` (kernel/sched/psi.c, 6.1).

use super::Machine;
use crate::memcg::ROOT;
use crate::psi::{Psi, TaskState};
use crate::units::{Cpu, MemcgId, Nanos};

impl Machine {
    /// Pressure of the whole machine.
    pub fn psi(&self) -> &Psi {
        &self.memcgs[ROOT.idx()].psi
    }

    /// A task of a group, on this CPU, is no longer in the one state but in the other. The kernel's threads are in
    /// the root. Who changes its CPU or its group leaves the one in its state and comes to the other. Nothing
    /// happens if there is no such group or CPU.
    pub fn psi_task_change(
        &mut self,
        memcg: MemcgId,
        cpu: Cpu,
        [before, after]: [TaskState; 2],
        now: Nanos,
    ) {
        if cpu.idx() >= usize::from(self.mem.nr_cpus) || memcg.idx() >= self.memcgs.len() {
            return;
        }
        let mut at = memcg;
        while at.is_some() {
            let group = &mut self.memcgs[at.idx()];
            group.psi.task_change(cpu, before, after, now);
            at = group.parent;
        }
    }

    /// Brings all totals up to `now`.
    pub fn psi_flush(&mut self, now: Nanos) {
        self.memcgs.iter_mut().for_each(|memcg| memcg.psi.flush(now));
    }
}
