//! Loads of CPUs and tasks, averaged over time.
//!
//! Linux 6.1: kernel/sched/pelt.c, and `cpu_load`, `task_h_load`, `calc_group_shares` of kernel/sched/fair.c.
//! A task's load is its weight times the share of time that it is awake. A CPU's load is that of the tasks that
//! run, wait or slept last there. A task that changes CPU takes its load along. A group's weight is divided
//! among CPUs as the loads of its queues are.
//!
//! Differs from Linux: there is no estimate of use for tasks that wake (`util_est`); interrupts take nothing of
//! a CPU's capacity; of a task in a group, the CPU counts the group's present weight times the task's share in
//! it, where Linux also averages the group's own time awake.
//!
//! One CPU has nothing to compare loads with: there are none then.

use super::{GroupId, Scheduler, State, TaskId, ROOT};
use pagetide_core::units::{Cpu, Nanos};

/// Least weight of a group on a CPU (`MIN_SHARES`).
const MIN_SHARES: u64 = 2;

impl Scheduler {
    /// Brings the sums of a CPU, and of a group on it, up to date, before its tasks change.
    pub(super) fn catch_up(&mut self, cpu: Cpu, mut group: GroupId, now: Nanos) {
        if self.cpus.len() == 1 {
            return;
        }
        while group != ROOT {
            self.queue_mut(cpu, group).catch_up(now);
            group = self.groups[group as usize].parent;
        }
        let rq = self.rq_mut(cpu);
        if let Some(passed) = rq.up_to.advance(now) {
            let own = &mut rq.queues[ROOT as usize];
            own.load_sum = passed.grow(own.load_sum, own.load);
            rq.runnable_sum = passed.grow(rq.runnable_sum, own.nr_tasks as u64);
            rq.busy_sum = passed.grow(rq.busy_sum, u64::from(rq.current.is_some()));
        }
    }

    pub(super) fn catch_up_task(&mut self, task: TaskId, now: Nanos) {
        if self.cpus.len() > 1 {
            let task = self.task_mut(task);
            if let Some(passed) = task.up_to.advance(now) {
                let is_awake = task.state != State::Asleep;
                task.awake_sum = passed.grow(task.awake_sum, u64::from(is_awake));
            }
        }
    }

    /// A new task counts as one that has always run (`init_entity_runnable_average`).
    pub(super) fn begin_load(&mut self, task: TaskId, now: Nanos) {
        let task = self.task_mut(task);
        let _ = task.up_to.advance(now);
        task.awake_sum = task.up_to.divider();
    }

    /// Load of a CPU, in weights (`cpu_load`).
    pub(super) fn cpu_load(&mut self, cpu: Cpu, now: Nanos) -> u64 {
        self.catch_up(cpu, ROOT, now);
        let rq = self.rq(cpu);
        rq.queues[ROOT as usize].load_sum / rq.up_to.divider()
    }

    /// Load of a task as its CPU counts it, in weights (`task_h_load`).
    pub(super) fn task_load(&mut self, task: TaskId, now: Nanos) -> u64 {
        self.catch_up_task(task, now);
        let (cpu, group) = (self.task(task).cpu, self.task(task).group);
        self.catch_up(cpu, group, now);
        let divider = self.task(task).up_to.divider();
        self.each_level(task, cpu, |_, _, _| {}) / divider
    }

    /// A task's load comes to its CPU.
    pub(super) fn attach_load(&mut self, task: TaskId) {
        let cpu = self.task(task).cpu;
        self.each_level(task, cpu, |this, group, sum| {
            this.queue_mut(cpu, group).load_sum += sum;
        });
    }

    /// A task's load leaves its CPU.
    pub(super) fn detach_load(&mut self, task: TaskId) {
        let cpu = self.task(task).cpu;
        self.each_level(task, cpu, |this, group, sum| {
            let queue = this.queue_mut(cpu, group);
            queue.load_sum = queue.load_sum.saturating_sub(sum);
        });
    }

    /// Tells what a task's sum is on each queue, from its group's to the CPU's; the last.
    fn each_level(
        &mut self,
        task: TaskId,
        cpu: Cpu,
        mut each: impl FnMut(&mut Scheduler, GroupId, u64),
    ) -> u64 {
        let (mut group, weight) = (self.task(task).group, self.task(task).entity.weight);
        let mut sum = weight * self.task(task).awake_sum;
        loop {
            let queue = self.queue(cpu, group);
            let divider = queue.up_to.divider();
            let whole = queue.load.max(queue.load_sum / divider).max(weight);
            each(self, group, sum);
            if group == ROOT {
                return sum;
            }
            sum = sum * self.queue(cpu, group).entity.weight / whole;
            group = self.groups[group as usize].parent;
        }
    }

    /// Gives a group on a CPU its part of the group's weight (`update_cfs_group`).
    pub(super) fn update_share(&mut self, cpu: Cpu, group: GroupId, now: Nanos) {
        let weight = self.groups[group as usize].weight;
        let mut share = weight;
        if self.cpus.len() > 1 {
            self.cpus.iter_mut().for_each(|rq| rq.queues[group as usize].catch_up(now));
            let average = |queue: &super::Queue| queue.load_sum / queue.up_to.divider();
            let here = self.queue(cpu, group);
            let load = here.load.max(average(here));
            let others = self.cpus.iter().map(|rq| average(&rq.queues[group as usize]));
            let all = others.sum::<u64>() - average(here) + load;
            share = (weight * load).checked_div(all).unwrap_or(weight);
            share = share.clamp(MIN_SHARES, weight.max(MIN_SHARES));
        }
        let parent = self.groups[group as usize].parent;
        let queue = self.queue_mut(cpu, group);
        let old = std::mem::replace(&mut queue.entity.weight, share);
        if queue.is_on_parent {
            let parent = self.queue_mut(cpu, parent);
            parent.load = parent.load - old + share;
        }
    }

    /// Whether a CPU with several tasks has too many (`group_is_overloaded`), given the percentage of its
    /// capacity above which it is full.
    pub(super) fn fullness(&mut self, cpu: Cpu, pct: u64, now: Nanos) -> Fullness {
        self.catch_up(cpu, ROOT, now);
        let rq = self.rq(cpu);
        let capacity = rq.up_to.divider();
        let is_busy = capacity * 100 < rq.busy_sum * pct;
        let is_crowded = capacity * pct < rq.runnable_sum * 100;
        match rq.nr_running() {
            0 => Fullness::HasSpare,
            1 if is_busy || is_crowded => Fullness::FullyBusy,
            _ if is_busy || is_crowded => Fullness::Overloaded,
            _ => Fullness::HasSpare,
        }
    }
}

/// How much a CPU has to do (`enum group_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fullness {
    HasSpare,
    FullyBusy,
    Overloaded,
}
