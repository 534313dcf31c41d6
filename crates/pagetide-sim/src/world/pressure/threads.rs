//! Finds the state of threads for PSI.
//!
//! Invariant: a thread that has ended is not counted.

use super::PsiReport;
use crate::scheduler::TaskId;
use crate::task::Blocked;
use crate::world::threads::WorldThread;
use crate::world::SimWorld;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::throttle::Throttle;
use pagetide_core::stats::psi::TaskState;

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
        self.pressure.report(id, now, &mut self.machine, self.now);
    }

    /// Reports the threads that the scheduler has woken, blocked or switched.
    pub(crate) fn report_pressures(&mut self) {
        while let Some(id) = self.cpus.scheduler.next_changed() {
            self.report_pressure(id);
        }
    }
}
