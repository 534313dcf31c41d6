//! Placement of a waking task: its CPU, its position in the queue, and preemption of the running
//! task.
//!
//! Linux 6.1, kernel/sched/fair.c: `select_task_rq_fair`, `wake_wide`, `wake_affine`,
//! `select_idle_sibling`, `find_idlest_cpu`, `place_entity`, `check_preempt_wakeup`. A waking task
//! goes to its last CPU, or to the waker's CPU if that has less load, or to an idle CPU if there is
//! one. A waker of many different tasks does not pull them to its own CPU. A new task goes to an
//! idle CPU, or else to the least loaded one.
//!
//! Differs from Linux: all CPUs share a cache and are in one domain. The search for an idle CPU
//! covers all CPUs, starting at the last one (no `recent_used_cpu`, no search limit). No wake-up is
//! synchronous; in Linux, those of reclaim and writeback are not either.
//!
//! Invariant: a woken task is on an allowed CPU.

use super::queue::EntityId;
use super::{SchedState, Scheduler, TaskId, IMBALANCE_PCT, NICE_0_WEIGHT, WAKEUP_GRANULARITY_NS};
use pagetide_core::config::SchedulerPolicy;
use pagetide_core::units::{Cpu, Nanos};

/// Interval at which a waker's flips are halved.
const FLIPS_DECAY_NS: Nanos = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeSource {
    pub cpu: Cpu,
    /// The waking task, which still runs on `cpu`; `None`: an interrupt.
    pub task: Option<TaskId>,
}

/// Record of the tasks that a task wakes (`wakee_flips`, `last_wakee`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wakees {
    last: Option<TaskId>,
    nr_flips: u32,
    decayed_at: Nanos,
}

impl Scheduler {
    pub(super) fn select_cpu(
        &mut self,
        task: TaskId,
        waker: Option<WakeSource>,
        now: Nanos,
    ) -> Cpu {
        let woken = self.task(task);
        let previous = woken.cpu;
        if woken.allowed.len() == 1 {
            return Cpu(woken.allowed.start);
        }
        // A task that wakes itself has not left its CPU yet.
        if waker.is_some_and(|waker| waker.task == Some(task)) {
            return previous;
        }
        if !woken.is_placed {
            return self.idlest_cpu(task, now);
        }
        let is_allowed = |waker: &WakeSource| woken.allowed.contains(&waker.cpu.0);
        let mut target = previous;
        if let Some(waker) = waker.filter(is_allowed) {
            let is_wide = waker.task.is_some_and(|by| self.record_wakee(by, task, now));
            if !is_wide && waker.cpu != previous && self.wake_affine(task, waker, now) {
                target = waker.cpu;
            }
        }
        // The waker still occupies its CPU, even if it is about to sleep.
        let busy = waker.filter(|waker| waker.task.is_some()).map(|waker| waker.cpu);
        let is_idle = |cpu: &Cpu| busy != Some(*cpu) && self.rq(*cpu).is_idle();
        let ahead = [target, previous].into_iter().find(is_idle);
        ahead.or_else(|| self.allowed_from(task, target).find(is_idle)).unwrap_or(target)
    }

    /// The allowed CPUs of a task, cyclically from `first`.
    fn allowed_from(&self, task: TaskId, first: Cpu) -> impl Iterator<Item = Cpu> + use<> {
        let allowed = &self.task(task).allowed;
        let (start, len) = (allowed.start, allowed.len() as u16);
        (0..len).map(move |i| Cpu(start + (first.0 - start + i) % len))
    }

    /// Records a wake-up. Returns true if the waker wakes so many tasks in turn that they should
    /// stay on their CPUs (`wake_wide`).
    fn record_wakee(&mut self, waker: TaskId, task: TaskId, now: Nanos) -> bool {
        let factor = u32::from(self.nr_cpus());
        let slave = self.task(task).wakees.nr_flips;
        let wakees = &mut self.task_mut(waker).wakees;
        if now > wakees.decayed_at + FLIPS_DECAY_NS {
            wakees.nr_flips >>= 1;
            wakees.decayed_at = now;
        }
        if wakees.last != Some(task) {
            wakees.last = Some(task);
            wakees.nr_flips += 1;
        }
        let (most, least) = (wakees.nr_flips.max(slave), wakees.nr_flips.min(slave));
        least >= factor && most >= least * factor
    }

    /// True if the waker's CPU with the task would have less load than the previous CPU without it
    /// (`wake_affine`).
    fn wake_affine(&mut self, task: TaskId, waker: WakeSource, now: Nanos) -> bool {
        let previous = self.task(task).cpu;
        if waker.task.is_none() && self.rq(waker.cpu).is_idle() {
            return !self.rq(previous).is_idle();
        }
        if self.rq(previous).is_idle() {
            return false;
        }
        let load = self.task_load(task, now);
        let there = self.cpu_load(waker.cpu, now) + load;
        let here = self.cpu_load(previous, now).saturating_sub(load);
        there * 100 < here * (100 + (IMBALANCE_PCT - 100) / 2)
    }

    /// The CPU for a new task.
    fn idlest_cpu(&mut self, task: TaskId, now: Nanos) -> Cpu {
        let first = self.task(task).cpu;
        let mut idle = self.allowed_from(task, first).filter(|cpu| self.rq(*cpu).is_idle());
        if let Some(idle) = idle.next() {
            return idle;
        }
        drop(idle);
        let cpus = self.allowed_from(task, first);
        let least = cpus.min_by_key(|cpu| self.cpu_load(*cpu, now));
        least.expect("at least one CPU is allowed")
    }

    /// Moves a sleeping task to `cpu` and sets its vruntime (`place_entity`): a new task starts a
    /// slice ahead of the queue, unless the queue is empty; a sleeper at most half a period behind
    /// it.
    pub(super) fn place(&mut self, task: TaskId, cpu: Cpu, now: Nanos) {
        self.migrate(task, cpu, now);
        let group = self.task(task).group;
        if self.rules == SchedulerPolicy::Linux612 {
            let is_new = !self.task(task).is_placed;
            if is_new {
                self.begin_load(task, now);
                self.attach_load(task);
                self.task_mut(task).is_placed = true;
            }
            return self.place_by_lag(cpu, group, EntityId::Task(task), now, is_new);
        }
        let min_vruntime = self.queue(cpu, group).min_vruntime;
        if self.task(task).is_placed {
            let least = min_vruntime - self.sleeper_credit();
            let entity = &mut self.task_mut(task).entity;
            entity.vruntime = entity.vruntime.max(least);
            return;
        }
        let weight = self.task(task).entity.weight;
        let queue = self.queue(cpu, group);
        let debit_ns = match queue.is_empty() {
            true => 0,
            false => self.slice(cpu, group, weight, queue.load + weight, 1),
        };
        self.begin_load(task, now);
        self.attach_load(task);
        let placed = self.task_mut(task);
        placed.entity.vruntime = min_vruntime + (debit_ns * NICE_0_WEIGHT / weight) as i64;
        placed.is_placed = true;
    }

    /// Changes the CPU of a dequeued task; it keeps its lead or lag.
    pub(super) fn migrate(&mut self, task: TaskId, cpu: Cpu, now: Nanos) {
        let (from, group) = (self.task(task).cpu, self.task(task).group);
        if from == cpu {
            return;
        }
        self.catch_up_task(task, now);
        self.catch_up(from, group, now);
        self.catch_up(cpu, group, now);
        let is_placed = self.task(task).is_placed;
        if is_placed {
            self.detach_load(task);
        }
        let shift = self.origin(cpu, group) - self.origin(from, group);
        let moved = self.task_mut(task);
        moved.cpu = cpu;
        if is_placed {
            moved.entity.shift(shift);
            moved.stats.nr_migrations += 1;
            // Its caches are cold on the new CPU.
            moved.ran_until = 0;
            self.attach_load(task);
        }
    }

    /// True if a task that has just been enqueued preempts the running one
    /// (`check_preempt_wakeup`). Compares the tasks, or their ancestors, that are on the same
    /// queue.
    pub(super) fn check_preempt(&mut self, task: TaskId, cpu: Cpu, now: Nanos) -> bool {
        let Some(current) = self.rq(cpu).current else {
            return false;
        };
        if self.is_throttled(cpu, self.task(task).group) {
            return false;
        }
        // An earlier preemption stands.
        if self.rq(cpu).needs_resched {
            return true;
        }
        let (mut woken, mut running) = (EntityId::Task(task), EntityId::Task(current));
        let (mut group, mut group_of_running) = (self.group_of(woken), self.group_of(running));
        while group != group_of_running {
            let depths = (self.depth(group), self.depth(group_of_running));
            if depths.0 >= depths.1 {
                woken = EntityId::Group(group);
                group = self.group_of(woken);
            }
            if depths.1 >= depths.0 {
                running = EntityId::Group(group_of_running);
                group_of_running = self.group_of(running);
            }
        }
        if self.rules == SchedulerPolicy::Linux612 {
            let takes_over = self.preempts_eevdf(cpu, group, woken, now);
            self.rq_mut(cpu).needs_resched = takes_over;
            return takes_over;
        }
        let running_ns = now.saturating_sub(self.rq(cpu).accounted_until);
        let vruntime = self.entity(cpu, running).vruntime_after(running_ns);
        let takes_over = self.is_far_behind(cpu, woken, vruntime);
        if takes_over {
            self.rq_mut(cpu).needs_resched = true;
            loop {
                let group = self.group_of(woken);
                self.queue_mut(cpu, group).next_buddy = Some(woken);
                if group == super::ROOT {
                    break;
                }
                woken = EntityId::Group(group);
            }
        }
        takes_over
    }

    /// True if an entity is behind `vruntime` by more than the wake-up granularity, which is longer
    /// in virtual time for a light entity (`wakeup_preempt_entity`).
    pub(super) fn is_far_behind(&self, cpu: Cpu, who: EntityId, vruntime: i64) -> bool {
        let entity = self.entity(cpu, who);
        let granularity_ns = WAKEUP_GRANULARITY_NS * self.factor * NICE_0_WEIGHT / entity.weight;
        vruntime - entity.vruntime > granularity_ns as i64
    }

    /// True if a task waits for a CPU, not for its group's quota.
    pub(super) fn is_waiting(&self, task: TaskId) -> bool {
        let it = self.task(task);
        it.state == SchedState::Queued && !self.is_throttled(it.cpu, it.group)
    }
}
