//! Reports the state of each thread to PSI (pressure stall information).
//!
//! Linux 6.1: `psi_enqueue`, `psi_dequeue`, `psi_sched_switch` (kernel/sched/stats.h),
//! `psi_memstall_enter`.
//!
//! Invariant: after an event, the last reported state of each thread is its current state.

use super::{SimWorld, WorldThread};
use crate::scheduler::TaskId;
use crate::task::Blocked;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::throttle::Throttle;
use pagetide_core::stats::psi::TaskState;
use pagetide_core::units::{Cpu, MemcgId};

/// PSI state of a thread, with its memcg and CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PsiReport {
    memcg: MemcgId,
    cpu: Cpu,
    pub(crate) state: TaskState,
}

impl PsiReport {
    /// A thread that neither runs nor waits for anything that PSI counts.
    pub(crate) const NOTHING: PsiReport = PsiReport {
        memcg: ROOT,
        cpu: Cpu(0),
        state: TaskState { stalled: false, running: false, on_cpu: false, io_wait: false },
    };
}

impl SimWorld {
    /// The current state of a thread.
    pub(crate) fn pressure_of(&self, id: TaskId) -> PsiReport {
        let (memcg, stalled, waits) = match self.cpus.numbers.thread(id) {
            WorldThread::Task(at) => {
                let task = &self.tasks[at];
                if task.is_over() {
                    return PsiReport::NOTHING;
                }
                let waits = match task.blocked {
                    Blocked::Page | Blocked::Disk => true,
                    Blocked::Throttled(_, reason) => reason == Throttle::Dirty,
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

    /// Reports the change of a thread since its last report.
    pub(crate) fn report_pressure(&mut self, id: TaskId) {
        let now = self.pressure_of(id);
        let before = std::mem::replace(&mut self.reported[id as usize], now);
        let none = PsiReport::NOTHING.state;
        if (before.memcg, before.cpu) == (now.memcg, now.cpu) {
            if before.state != now.state {
                let change = [before.state, now.state];
                self.machine.psi_task_change(now.memcg, now.cpu, change, self.now);
            }
            return;
        }
        for (at, change) in [(before, [before.state, none]), (now, [none, now.state])] {
            if change[0] != change[1] {
                self.machine.psi_task_change(at.memcg, at.cpu, change, self.now);
            }
        }
    }

    /// Reports the threads that the scheduler has woken, blocked or switched.
    pub(crate) fn report_pressures(&mut self) {
        while let Some(id) = self.cpus.scheduler.next_changed() {
            self.report_pressure(id);
        }
    }
}
