//! Pressure stall information (PSI): the state of each thread that the machine counts.
//!
//! Linux 6.1: `psi_enqueue`, `psi_dequeue`, `psi_sched_switch` (kernel/sched/stats.h),
//! `psi_memstall_enter`.
//!
//! Invariant: after an event, the last reported state of each thread is its current state.

mod threads;

use crate::scheduler::TaskId;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::process::Machine;
use pagetide_core::stats::psi::TaskState;
use pagetide_core::units::{Cpu, MemcgId, Nanos};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PsiReport {
    memcg: MemcgId,
    cpu: Cpu,
    pub state: TaskState,
}

impl PsiReport {
    /// A thread that neither runs nor waits for anything that PSI counts.
    const NOTHING: PsiReport = PsiReport {
        memcg: ROOT,
        cpu: Cpu(0),
        state: TaskState { stalled: false, running: false, on_cpu: false, io_wait: false },
    };
}

/// The last reported state of each thread.
#[derive(Debug)]
pub(crate) struct PressureReports(Vec<PsiReport>);

impl PressureReports {
    pub fn new(nr_threads: usize) -> PressureReports {
        PressureReports(vec![PsiReport::NOTHING; nr_threads])
    }

    pub fn iter(&self) -> impl Iterator<Item = &PsiReport> {
        self.0.iter()
    }

    /// Reports the change of a thread since its last report.
    fn report(&mut self, id: TaskId, now: PsiReport, machine: &mut Machine, at_ns: Nanos) {
        let before = std::mem::replace(&mut self.0[id as usize], now);
        let none = PsiReport::NOTHING.state;
        if (before.memcg, before.cpu) == (now.memcg, now.cpu) {
            if before.state != now.state {
                let change = [before.state, now.state];
                machine.psi_task_change(now.memcg, now.cpu, change, at_ns);
            }
            return;
        }
        for (at, change) in [(before, [before.state, none]), (now, [none, now.state])] {
            if change[0] != change[1] {
                machine.psi_task_change(at.memcg, at.cpu, change, at_ns);
            }
        }
    }
}
