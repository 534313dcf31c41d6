//! Average loads of CPUs and tasks.
//!
//! Linux 6.1: kernel/sched/pelt.c, and `cpu_load`, `task_h_load`, `calc_group_shares` of
//! kernel/sched/fair.c. The load of a task is its weight times the fraction of time for which it is
//! awake. The load of a CPU is the sum of the tasks that run or wait there, or slept last there. A
//! migrating task takes its load along. A group's weight is divided among CPUs in proportion to the
//! loads of its queues.
//!
//! Differs from Linux: no utilization estimate for waking tasks (`util_est`). Interrupts do not
//! reduce a CPU's capacity. The load of a task in a group is the group's current weight times the
//! task's share of it; Linux also averages the group's own time awake.
//!
//! With a single CPU, loads are not computed.

use super::{GroupId, SchedState, Scheduler, TaskId, ROOT};
use pagetide_core::units::{Cpu, Nanos};

/// Least weight of a group on a CPU (`MIN_SHARES`).
const MIN_SHARES: u64 = 2;

impl Scheduler {
    /// Updates the sums of a CPU, and of a group and its ancestors on it. Call it before their
    /// tasks change.
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
                let is_awake = task.state != SchedState::Asleep;
                task.awake_sum = passed.grow(task.awake_sum, u64::from(is_awake));
            }
        }
    }

    /// Starts a new task with the load of one that has always run (`init_entity_runnable_average`).
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

    /// Contribution of a task to its CPU's load, in weights (`task_h_load`).
    pub(super) fn task_load(&mut self, task: TaskId, now: Nanos) -> u64 {
        self.catch_up_task(task, now);
        let (cpu, group) = (self.task(task).cpu, self.task(task).group);
        self.catch_up(cpu, group, now);
        let divider = self.task(task).up_to.divider();
        self.each_level(task, cpu, |_, _, _| {}) / divider
    }

    pub(super) fn attach_load(&mut self, task: TaskId) {
        let cpu = self.task(task).cpu;
        self.each_level(task, cpu, |this, group, sum| {
            this.queue_mut(cpu, group).load_sum += sum;
        });
    }

    pub(super) fn detach_load(&mut self, task: TaskId) {
        let cpu = self.task(task).cpu;
        self.each_level(task, cpu, |this, group, sum| {
            let queue = this.queue_mut(cpu, group);
            queue.load_sum = queue.load_sum.saturating_sub(sum);
        });
    }

    /// Calls `each` with the task's sum on each queue, from its group's to the root's. Returns the
    /// last.
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

    /// Updates the share of a group's weight on a CPU (`update_cfs_group`).
    pub(super) fn update_share(&mut self, cpu: Cpu, group: GroupId, now: Nanos) {
        let weight = self.groups[group as usize].weight;
        let mut share = weight;
        if self.cpus.len() > 1 {
            self.cpus.iter_mut().for_each(|rq| rq.queues[group as usize].catch_up(now));
            let average = |queue: &super::CfsQueue| queue.load_sum / queue.up_to.divider();
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

    /// Classifies a CPU by its number of tasks and its utilization (`group_is_overloaded`). `pct`
    /// is the domain's `imbalance_pct`.
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

/// Degree of utilization of a CPU (`enum group_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fullness {
    HasSpare,
    FullyBusy,
    Overloaded,
}
