//! Restart of a killed task: a new program in a new address space.
//!
//! Linux: `Restart=always` of a service, or the restart of a container. Counters go on; the results
//! of the requests of earlier lives are kept.
//!
//! Invariant: between its end and its restart, a task is over.

use crate::scheduler::TaskId;
use crate::task::SimTask;
use crate::world::{SimWorld, WorldEvent, WorldThread};
use pagetide_core::groups::memcg::ROOT;
use pagetide_scenario::workload::Program;

impl SimWorld {
    /// Whether a program that has just ended will start again. If so, the start is scheduled.
    pub(crate) fn schedules_restart(&mut self, id: usize) -> bool {
        let task = &mut self.tasks[id];
        let Some(pause) = self.setup.tasks[id].restart_ns else { return false };
        if task.stopped || task.ended_by().is_none() {
            return false;
        }
        task.will_restart = true;
        self.queue.push(self.now.saturating_add(pause), WorldEvent::Start(id));
        true
    }

    /// Makes a program that is over ready to start again.
    pub(crate) fn revive(&mut self, id: usize) {
        let setup = &self.setup.tasks[id];
        let Ok(program) = Program::new(&self.setup, id, self.seed) else { return };
        let payer = self.groups.charged(&self.setup, setup.group);
        let Ok(mm) = self.machine.create_mm(payer.unwrap_or(ROOT)) else { return };
        let adjusted = self.machine.set_oom_score_adj(mm, setup.settings.oom_score_adj);
        debug_assert!(adjusted.is_ok(), "it was just made");
        let (nr_files, nice) = (self.setup.files.len(), setup.settings.nice);
        let old = &mut self.tasks[id];
        let mut new = SimTask::new(old.name.clone(), program, mm, nr_files, old.background);
        new.succeed(old);
        new.group = setup.group;
        *old = new;
        let helpers = self.tasks[id].helpers.clone();
        for helper in helpers {
            self.tasks[helper] = self.tasks[id].new_thread(nr_files);
        }
        let threads: Vec<usize> = self.threads_of(id).collect();
        for thread in threads {
            self.waits.cancel_timer(WorldThread::Task(thread), &mut self.queue);
            self.cpus.scheduler.add_task(thread as TaskId, nice, None);
            self.cpus.move_to_group(thread, self.tasks[id].group, self.now);
            self.report_pressure(thread as TaskId);
        }
    }
}
