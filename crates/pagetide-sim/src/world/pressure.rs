//! Pressure stall information (PSI): the state of each thread that the machine counts.
//!
//! Linux 6.1: `psi_enqueue`, `psi_dequeue`, `psi_sched_switch` (kernel/sched/stats.h),
//! `psi_memstall_enter`.
//!
//! Invariant: after an event, the last reported state of each thread is its current state.

use crate::scheduler::TaskId;
use crate::task::Blocked;
use crate::world::{SimWorld, WorldThread};
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
pub(crate) struct PressureReports(pub Vec<PsiReport>);

impl PressureReports {
    pub fn new(nr_threads: usize) -> PressureReports {
        PressureReports(vec![PsiReport::NOTHING; nr_threads])
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

impl SimWorld {
    pub(crate) fn pressure_of(&self, id: TaskId) -> PsiReport {
        let (memcg, stalled, waits) = match self.cpus.numbers.thread(id) {
            WorldThread::Task(at) => {
                let task = &self.tasks[at];
                if task.is_over() {
                    return PsiReport::NOTHING;
                }
                let waits = match task.blocked {
                    Blocked::Page | Blocked::Disk => true,
                    Blocked::Throttled(_, reason) => reason.is_dirty(),
                    Blocked::No | Blocked::Sleeping | Blocked::Exited => false,
                };
                (self.machine.mm_memcg(task.mm).unwrap_or(ROOT), task.stalled, waits)
            }
            WorldThread::Daemon(daemon) => {
                let state = self.daemons.of(daemon);
                (ROOT, state.stalled, state.waits_for_disk)
            }
        };
        let cpu = self.cpus.scheduler.cpu_of(id);
        let running = !self.cpus.scheduler.is_asleep(id);
        let on_cpu = self.cpus.scheduler.current(cpu) == Some(id);
        let state = TaskState { stalled, running, on_cpu, io_wait: waits && !running };
        if state == PsiReport::NOTHING.state {
            return PsiReport::NOTHING;
        }
        PsiReport { memcg, cpu, state }
    }

    pub(crate) fn report_pressure(&mut self, id: TaskId) {
        let now = self.pressure_of(id);
        self.pressure.report(id, now, &mut self.machine, self.now);
    }

    /// Reports the threads that the scheduler has woken, blocked or switched.
    pub(crate) fn report_pressures(&mut self) {
        while let Some(id) = self.cpus.scheduler.next_changed() {
            self.report_pressure(id);
        }
    }
}
