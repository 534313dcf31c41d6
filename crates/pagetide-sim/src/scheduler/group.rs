//! Groups of tasks: CPU weights and CPU quotas.
//!
//! Linux 6.1: `struct task_group`; `cpu.weight` and `cpu.max` of cgroup version 2
//! (kernel/sched/core.c), the bandwidth control of kernel/sched/fair.c (`__assign_cfs_rq_runtime`,
//! `throttle_cfs_rq`, `do_sched_cfs_period_timer`). In each period a group has a quota of CPU time
//! for all CPUs together. A CPU takes 5 ms of it at a time. If it has overdrawn its share at a
//! tick, the excess counts against the next period. A CPU that gets no quota dequeues the group's
//! tasks until the period ends.
//!
//! Differs from Linux: no burst (`cpu.max.burst`), no `cpu.idle`. When the group's last task on a
//! CPU sleeps, the CPU's unused quota except 1 ms goes to throttled CPUs at once, not 5 ms later.
//!
//! Invariant: `nr_throttled_queues` is the number of CPUs on which the group is throttled. The
//! timer runs while the group has used a part of its quota.

use super::{GroupId, Scheduler, NICE_0_WEIGHT, ROOT};
use pagetide_core::units::{Cpu, Nanos};

/// Amount of a group's quota that a CPU takes at a time (`sched_cfs_bandwidth_slice_us`).
const SLICE_NS: Nanos = 5_000_000;
/// Amount that a CPU keeps when it returns unused quota (`min_cfs_rq_runtime`).
const KEPT_NS: i64 = 1_000_000;
/// Default period of `cpu.max` (`default_cfs_period`).
const PERIOD_NS: Nanos = 100_000_000;
/// `cpu.weight` that equals the weight of a task with nice 0 (`CGROUP_WEIGHT_DFL`).
pub const WEIGHT_DEFAULT: u64 = 100;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupStats {
    /// CPU time of the tasks in the group and its descendants.
    pub usage_ns: Nanos,
    /// Periods in which the group had a quota and runnable tasks.
    pub nr_periods: u64,
    /// Periods in which it was throttled.
    pub nr_throttled: u64,
    /// Throttled time, summed over CPUs.
    pub throttled_ns: Nanos,
}

/// A group may use `quota_ns` of CPU time in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuQuota {
    pub quota_ns: Nanos,
    pub period_ns: Nanos,
}

#[derive(Clone, Debug, Default)]
pub(super) struct SchedGroup {
    pub(super) parent: GroupId,
    depth: u32,
    pub(super) weight: u64,
    quota: Option<CpuQuota>,
    /// The period, also while there is no quota.
    period_ns: Nanos,
    /// Quota not yet taken by a CPU in this period.
    runtime_ns: Nanos,
    /// End of the period, if the timer runs.
    period_ends: Option<Nanos>,
    is_idle: bool,
    nr_throttled_queues: u32,
    stats: GroupStats,
}

impl SchedGroup {
    pub(super) fn new(parent: GroupId, depth: u32) -> SchedGroup {
        SchedGroup {
            parent,
            depth,
            weight: NICE_0_WEIGHT,
            period_ns: PERIOD_NS,
            is_idle: true,
            ..SchedGroup::default()
        }
    }
}

impl Scheduler {
    /// Adds a child group. Groups are numbered from 1 in the order of creation.
    pub fn add_group(&mut self, parent: GroupId) -> GroupId {
        let depth = self.groups[parent as usize].depth + 1;
        let id = self.groups.len() as GroupId;
        self.groups.push(SchedGroup::new(parent, depth));
        for rq in &mut self.cpus {
            rq.queues.push(super::queue::CfsQueue::new(NICE_0_WEIGHT));
        }
        // Each group may start a timer before the world polls them.
        self.timers.reserve(self.groups.len());
        id
    }

    /// Writes `cpu.weight`: 1 to 10000, in hundredths of the weight of a task with nice 0.
    pub fn set_weight(&mut self, group: GroupId, weight: u64, now: Nanos) {
        let scaled = (weight * NICE_0_WEIGHT + WEIGHT_DEFAULT / 2) / WEIGHT_DEFAULT;
        self.groups[group as usize].weight = scaled.max(2);
        for cpu in (0..self.nr_cpus()).map(Cpu) {
            self.catch_up(cpu, group, now);
            self.update_share(cpu, group, now);
        }
    }

    /// Writes `cpu.max`. Unthrottles the group and starts a new period.
    pub fn set_quota(&mut self, group: GroupId, quota: Option<CpuQuota>, now: Nanos) {
        let it = &mut self.groups[group as usize];
        it.quota = quota;
        it.runtime_ns = quota.map_or(0, |quota| quota.quota_ns);
        it.period_ends = None;
        for cpu in (0..self.nr_cpus()).map(Cpu) {
            self.queue_mut(cpu, group).runtime_left = 0;
            if self.queue(cpu, group).throttled_since.is_some() {
                self.unthrottle(cpu, group, now);
            }
        }
        if quota.is_some() {
            self.start_timer(group, now);
        }
    }

    /// The current period of a group, used if a write to `cpu.max` omits it.
    pub fn period(&self, group: GroupId) -> Nanos {
        self.groups[group as usize].period_ns
    }

    /// Sets the period; it takes effect with the next quota.
    pub fn set_period(&mut self, group: GroupId, period_ns: Nanos) {
        self.groups[group as usize].period_ns = period_ns;
    }

    /// Resets a group without tasks to the state of a new group.
    pub fn reset_group(&mut self, group: GroupId, now: Nanos) {
        self.set_quota(group, None, now);
        self.set_weight(group, WEIGHT_DEFAULT, now);
        let it = &mut self.groups[group as usize];
        (it.period_ns, it.stats) = (PERIOD_NS, GroupStats::default());
    }

    pub fn group_stats(&self, group: GroupId) -> GroupStats {
        self.groups[group as usize].stats
    }

    /// Takes a started timer: a group and the end of its period, at which the world must call
    /// [`Scheduler::period_ended`].
    pub fn next_timer(&mut self) -> Option<(GroupId, Nanos)> {
        self.timers.pop()
    }

    /// Takes an idle CPU that has runnable tasks again because a group was unthrottled.
    pub fn next_called(&mut self) -> Option<Cpu> {
        self.called.pop()
    }

    /// Ends a group's period (`do_sched_cfs_period_timer`).
    pub fn period_ended(&mut self, group: GroupId, now: Nanos) {
        let it = &mut self.groups[group as usize];
        let Some(quota) = it.quota.filter(|_| it.period_ends.is_some_and(|at| at <= now)) else {
            return;
        };
        let is_throttled = it.nr_throttled_queues > 0;
        it.period_ends = None;
        it.stats.nr_periods += 1;
        it.runtime_ns = quota.quota_ns;
        if it.is_idle && !is_throttled {
            return;
        }
        it.is_idle = !is_throttled;
        it.stats.nr_throttled += u64::from(is_throttled);
        self.start_timer(group, now);
        self.distribute(group, now);
    }

    fn start_timer(&mut self, group: GroupId, now: Nanos) {
        let it = &mut self.groups[group as usize];
        let Some(quota) = it.quota.filter(|_| it.period_ends.is_none()) else { return };
        let ends = (now / quota.period_ns + 1) * quota.period_ns;
        it.period_ends = Some(ends);
        self.timers.push((group, ends));
    }

    /// Gives each throttled CPU enough quota to pay its excess and run again, as far as the quota
    /// suffices.
    fn distribute(&mut self, group: GroupId, now: Nanos) {
        for cpu in (0..self.nr_cpus()).map(Cpu) {
            let queue = self.queue(cpu, group);
            if queue.throttled_since.is_none() {
                continue;
            }
            let wanted = (1 - queue.runtime_left).max(0) as Nanos;
            let it = &mut self.groups[group as usize];
            let given = wanted.min(it.runtime_ns);
            it.runtime_ns -= given;
            let queue = self.queue_mut(cpu, group);
            queue.runtime_left += given as i64;
            if queue.runtime_left > 0 {
                self.unthrottle(cpu, group, now);
            }
        }
    }

    /// Fills a CPU's share of the quota up to `wanted`, as far as the quota suffices. Returns true
    /// if the CPU may run the group.
    fn assign(&mut self, cpu: Cpu, group: GroupId, wanted: Nanos, now: Nanos) -> bool {
        self.start_timer(group, now);
        let left = self.queue(cpu, group).runtime_left;
        let it = &mut self.groups[group as usize];
        let given = ((wanted as i64 - left).max(0) as Nanos).min(it.runtime_ns);
        if given > 0 {
            it.runtime_ns -= given;
            it.is_idle = false;
        }
        let queue = self.queue_mut(cpu, group);
        queue.runtime_left += given as i64;
        queue.runtime_left > 0
    }

    pub(super) fn has_quota(&self, group: GroupId) -> bool {
        self.groups[group as usize].quota.is_some()
    }

    /// Called when the first task of a group is enqueued on a CPU (`check_enqueue_throttle`).
    pub(super) fn begin_to_use_quota(&mut self, cpu: Cpu, group: GroupId, now: Nanos) {
        let queue = self.queue(cpu, group);
        if !self.has_quota(group) || queue.throttled_since.is_some() || queue.runtime_left > 0 {
            return;
        }
        if !self.assign(cpu, group, SLICE_NS, now) {
            self.throttle(cpu, group, now);
        }
    }

    /// Charges CPU time of the running task to the quotas of its groups (`account_cfs_rq_runtime`).
    /// Returns true if one of them is used up at this tick.
    pub(super) fn use_quota(
        &mut self,
        cpu: Cpu,
        mut group: GroupId,
        ran_ns: Nanos,
        tick: Option<Nanos>,
    ) -> bool {
        let mut is_exhausted = false;
        while group != ROOT {
            self.groups[group as usize].stats.usage_ns += ran_ns;
            if self.has_quota(group) {
                let queue = self.queue_mut(cpu, group);
                queue.runtime_left -= ran_ns as i64;
                if let Some(now) = tick.filter(|_| queue.runtime_left <= 0) {
                    is_exhausted |= !self.assign(cpu, group, SLICE_NS, now);
                }
            }
            group = self.groups[group as usize].parent;
        }
        is_exhausted
    }

    /// Throttles the groups of a task that have no quota left, when the task leaves its CPU
    /// (`check_cfs_rq_runtime`), even if a group has no more tasks there.
    pub(super) fn check_quota(&mut self, cpu: Cpu, mut group: GroupId, now: Nanos) {
        while group != ROOT {
            let queue = self.queue(cpu, group);
            let is_due =
                self.has_quota(group) && queue.throttled_since.is_none() && queue.runtime_left <= 0;
            if is_due && !self.assign(cpu, group, 1, now) {
                self.throttle(cpu, group, now);
            }
            group = self.groups[group as usize].parent;
        }
    }

    fn throttle(&mut self, cpu: Cpu, group: GroupId, now: Nanos) {
        self.catch_up(cpu, group, now);
        self.groups[group as usize].nr_throttled_queues += 1;
        let queue = self.queue_mut(cpu, group);
        queue.throttled_since = Some(now);
        let (nr, parent) = (queue.nr_tasks, self.groups[group as usize].parent);
        if self.queue(cpu, group).is_on_parent {
            self.take_from_parent(cpu, group);
            self.sub_runnable(cpu, parent, nr, now);
        }
    }

    fn unthrottle(&mut self, cpu: Cpu, group: GroupId, now: Nanos) {
        self.catch_up(cpu, group, now);
        let queue = self.queue_mut(cpu, group);
        let since = queue.throttled_since.take().expect("it was throttled");
        // Count the tasks again, as if they had just been enqueued.
        let nr = std::mem::take(&mut queue.nr_tasks);
        let it = &mut self.groups[group as usize];
        it.nr_throttled_queues -= 1;
        it.stats.throttled_ns += now.saturating_sub(since);
        if nr > 0 {
            let was_idle = self.rq(cpu).is_idle();
            self.add_runnable(cpu, group, nr, now);
            if was_idle && !self.rq(cpu).is_idle() && !self.called.contains(&cpu) {
                self.called.push(cpu);
            }
        }
    }

    /// Returns a CPU's unused quota after the group's last task there sleeps
    /// (`return_cfs_rq_runtime`).
    pub(super) fn give_back_quota(&mut self, cpu: Cpu, group: GroupId, now: Nanos) {
        let spare = self.queue(cpu, group).runtime_left - KEPT_NS;
        if !self.has_quota(group) || spare <= 0 {
            return;
        }
        self.queue_mut(cpu, group).runtime_left -= spare;
        let it = &mut self.groups[group as usize];
        it.runtime_ns += spare as Nanos;
        if it.nr_throttled_queues > 0 && it.runtime_ns > SLICE_NS {
            self.distribute(group, now);
        }
    }

    /// True if a group or an ancestor is throttled on a CPU.
    pub(super) fn is_throttled(&self, cpu: Cpu, mut group: GroupId) -> bool {
        while group != ROOT {
            if self.queue(cpu, group).throttled_since.is_some() {
                return true;
            }
            group = self.groups[group as usize].parent;
        }
        false
    }

    pub(super) fn depth(&self, group: GroupId) -> u32 {
        self.groups[group as usize].depth
    }
}
