//! Pressure stall information: reports state changes of a task to its group and all groups above.
//!
//! Linux: `psi_task_change` (kernel/sched/psi.c, 6.1).

use crate::groups::memcg::ROOT;
use crate::interface::kernel::Kernel;
use crate::stats::psi::{Psi, TaskState};
use crate::units::{Cpu, MemcgId, Nanos};

impl Kernel {
    /// Pressure stall information of the whole machine.
    pub fn psi(&self) -> &Psi {
        &self.groups.memcgs[ROOT].psi
    }

    /// Changes the state of a task of a group on a CPU. Kernel threads are in the root group. If a
    /// task changes its CPU or group, it leaves the old one and joins the new one in two calls.
    /// Does nothing for an unknown group or CPU.
    pub fn psi_task_change(
        &mut self,
        memcg: MemcgId,
        cpu: Cpu,
        [before, after]: [TaskState; 2],
        now: Nanos,
    ) {
        if cpu.idx() >= usize::from(self.mem.nr_cpus) || memcg.idx() >= self.groups.memcgs.len() {
            return;
        }
        let mut at = memcg;
        while at.is_some() {
            let group = &mut self.groups.memcgs[at];
            group.psi.task_change(cpu, before, after, now);
            at = group.parent;
        }
    }

    /// Brings all totals up to `now`.
    pub fn psi_flush(&mut self, now: Nanos) {
        self.groups.memcgs.iter_mut().for_each(|memcg| memcg.psi.flush(now));
    }
}
