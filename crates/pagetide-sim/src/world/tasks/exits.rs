//! Exit of tasks: done, stopped because another task ended, or killed by the OOM killer.
//!
//! Invariant: a task that must exit is awake, even if it waited for something.

use crate::scheduler::TaskId;
use crate::task::{difference, Blocked, MachineCounts};
use crate::world::{SimWorld, WorldEvent, WorldThread};
use pagetide_core::frames::page_alloc::OomRequest;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::process::MmId;
use pagetide_core::units::Cpu;
use pagetide_scenario::names::{NameSet, ZoneName};

impl SimWorld {
    /// Ends a thread, and makes the other threads of its program exit. The program ends with its
    /// last thread.
    pub(crate) fn exit_task(&mut self, id: usize, cpu: Cpu) {
        // Cancel the call in progress, which also ends its stall.
        if let Some(held) = self.tasks[id].call.take() {
            let effects = self.machine.cancel(held.0, cpu);
            self.cpus.hold(effects, cpu);
        }
        self.update_stall(id, None);
        let task = &mut self.tasks[id];
        task.call_of = None;
        task.blocked = Blocked::Exited;
        task.ended = Some(self.now);
        self.report_pressure(id as TaskId);
        self.show_exit(id);
        let task = &self.tasks[id];
        let (leader, killed) = (task.leader, task.killed);
        // Requests arrive until the last thread has ended; this one must get none.
        if let Some(service) = &mut self.tasks[leader].service {
            service.forget(id);
        }
        let mut is_last = true;
        for other in self.threads_of(leader) {
            let task = &mut self.tasks[other];
            if !task.is_over() {
                is_last = false;
                task.stopped |= !killed;
                task.killed |= killed;
                self.interrupt(other);
            }
        }
        if is_last {
            self.exit_program(leader, cpu);
        }
    }

    /// Ends a program after its last thread.
    pub(crate) fn exit_program(&mut self, id: usize, cpu: Cpu) {
        let killed = self.threads_of(id).any(|thread| self.tasks[thread].killed);
        let crashed = self.threads_of(id).any(|thread| self.tasks[thread].crashed);
        let task = &mut self.tasks[id];
        (task.killed, task.crashed) = (killed, crashed);
        task.ended = Some(self.now);
        task.vmstat = difference(&self.machine.mem.vmstat, &task.vmstat);
        let ended_by = task.ended_by();
        self.count_unfinished(id);
        let task = &mut self.tasks[id];
        if let Some(phase) = task.phases.last_mut().filter(|phase| phase.ended.is_none()) {
            phase.cut_short = ended_by;
            let phase = phase.phase;
            self.end_phase(id, phase, 0);
        }
        let task = &self.tasks[id];
        let mm = task.mm;
        let restarts = self.schedules_restart(id);
        let task = &self.tasks[id];
        if !task.background && !restarts {
            self.results.nr_unfinished -= 1;
            if ended_by.is_none() {
                self.machine.psi_flush(self.now);
                self.results.done = Some(MachineCounts::of(&self.machine));
            }
        }
        self.free_all_objects(id, cpu);
        self.close_all_pipes(id, cpu);
        let effects = self.machine.exit_mm(mm, cpu).expect("a task ends once");
        self.cpus.hold(effects, cpu);
        self.cpus.owe(cpu, self.machine.take_work());
        if restarts {
            return;
        }
        for other in 0..self.setup.tasks.len() {
            let task = &self.setup.tasks[other];
            if task.start.after == Some(id) {
                let at = self.now + task.start.delay_ns + self.tasks[other].start_jitter;
                self.queue.push(at, WorldEvent::Start(other));
            }
            if task.until == Some(id) {
                self.stop(other, cpu);
            }
        }
    }

    /// Ends a task with `until`, because that other task has ended.
    pub(crate) fn stop(&mut self, id: usize, cpu: Cpu) {
        let task = &mut self.tasks[id];
        if task.is_over() {
            task.will_restart = false;
            return;
        }
        task.stopped = true;
        let has_begun = task.began.is_some();
        // A task killed before its start is also on a CPU, to exit.
        let thread = WorldThread::Task(id);
        if has_begun || self.cpus.has_slice(thread) {
            self.interrupt(id);
        } else {
            // It has not started and never will, so it must exit here.
            self.exit_task(id, cpu);
            self.cpus.scheduler.remove_task(id as TaskId);
        }
    }

    /// Describes the last request for which memory ran out: its order and flags, and the limit of the
    /// group, or the free memory of the zones.
    pub(crate) fn out_of_memory(&self) -> Option<String> {
        let OomRequest { order, gfp, scope, for_min_ttl } = self.machine.mem.last_oom()?;
        if for_min_ttl {
            let min_ttl_ms = self.machine.config.lru_gen_min_ttl_ms;
            return Some(format!(
                "there is memory to reclaim, but it is younger than lru_gen.min_ttl_ms, {min_ttl_ms} ms"
            ));
        }
        let size = self.machine.page_size();
        let show = |pages: u64| format!("{} kB", size.bytes_of(pages) >> 10);
        let mut text = format!("order {order}, {gfp}");
        if scope != ROOT {
            let name = self.groups.iter().find(|&(_, id)| id == scope);
            let name = name.map_or("", |(group, _)| &self.setup.groups[group].name);
            let memory = &self.machine.groups.memcgs[scope].memory;
            text += &format!("; group `{name}` has {} of {}", show(memory.usage), show(memory.max));
            return Some(text);
        }
        let nodes = &self.machine.mem.nodes;
        let is_single = nodes.len() == 1;
        for node in nodes.iter() {
            for (index, zone) in node.zones.iter().enumerate().filter(|(_, it)| it.managed > 0) {
                let of = if is_single { String::new() } else { format!("node {} ", node.id.0) };
                let (free, min) = (show(zone.free_pages()), show(zone.watermark_min));
                text += &format!("; {of}{}: free {free}, min {min}", ZoneName::ALL[index].name());
                if order > 0 {
                    let large = zone.buddyinfo()[usize::from(order)..].iter().sum::<u64>();
                    text += &format!(", {large} blocks of order {order} or more");
                }
            }
        }
        Some(text)
    }

    pub(crate) fn oom_kill(&mut self, mm: MmId) {
        let Some(id) = self.tasks.iter().position(|task| task.mm == mm) else { return };
        self.tasks[id].killed_for = self.out_of_memory();
        if let Some(pathologies) = &mut self.results.pathologies {
            let scope = self.machine.mem.last_oom().map_or(ROOT, |request| request.scope);
            pathologies.note_oom(&self.machine, scope);
        }
        for thread in self.threads_of(id) {
            if !self.tasks[thread].is_over() {
                self.tasks[thread].killed = true;
                self.interrupt(thread);
            }
        }
    }

    /// Wakes a task that must exit from any wait.
    pub(crate) fn interrupt(&mut self, id: usize) {
        let thread = WorldThread::Task(id);
        match self.tasks[id].blocked {
            Blocked::Exited | Blocked::No => {}
            Blocked::Throttled(..) => self.end_throttle(thread),
            Blocked::Disk => self.end_disk_wait(thread),
            Blocked::Page => {
                self.waits.cancel_page(thread);
                self.end_page_wait(id);
                self.wake(thread);
            }
            Blocked::Sleeping => self.wake_sleeper(id),
        }
    }
}
