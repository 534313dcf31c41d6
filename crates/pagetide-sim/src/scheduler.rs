//! The CPU scheduler.
//!
//! Linux 6.1, kernel/sched/fair.c: the Completely Fair Scheduler (about the same rules and
//! constants from 2.6.38 to 6.5). Each CPU has a queue ordered by virtual run time: CPU time
//! divided by weight. The task with the least virtual run time runs next, until a tick finds that
//! its slice (`sched_slice`) is used up or that another task is a slice behind it. A waking task is
//! placed at most half a latency period behind the queue (`GENTLE_FAIR_SLEEPERS`). It preempts the
//! running task if it is further behind than the wake-up granularity. `placement` selects the CPU
//! of a waking task, `balance` moves tasks between CPUs, and `load` computes the loads that both
//! compare. Groups with cpu.weight and cpu.max (`group`) have a queue on each CPU; there, a group
//! is one entity of its parent's queue (`queue`). Since 6.6 the rules are those of `eevdf`.
//!
//! Constants, from fair.c (`get_update_sysctl_factor` for the factor): latency 6 ms, minimum
//! granularity 0.75 ms and wake-up granularity 1 ms, each times `1 + ilog2(min(CPUs, 8))`. Weights
//! are `sched_prio_to_weight` of kernel/sched/core.c: 1.25 a nice level. The tick is Debian's, 250
//! a second.
//!
//! Differs from Linux: one flat domain (no NUMA, SMT or shared-cache domains), no last buddy
//! (`LAST_BUDDY`, used from 8 tasks on a queue), no autogroups, no real-time or idle classes, and
//! migration has no cost. The modules named above list further differences. The caller charges
//! context switches (see `cost`).
//!
//! # Use in a discrete-event simulation
//!
//! A running task executes in time slices. After each, the world calls [`Scheduler::account`], then
//! [`Scheduler::block`] if the task sleeps. Otherwise it calls [`Scheduler::balance`], which may
//! move another task to this CPU, and [`Scheduler::should_resched`]. It calls
//! [`Scheduler::pick_next`] after a block, after a yield, if `should_resched` returns true, and for
//! a CPU that [`Scheduler::wake`] returns. A time slice of pure computation should end at
//! [`next_tick`] or earlier. If groups have quotas, the world also polls [`Scheduler::next_timer`]
//! and [`Scheduler::next_called`] after each of these calls.
//!
//! Invariant: a task is asleep, on one queue, or running on one CPU. Its CPU is an allowed one.
//! `min_vruntime` never decreases. After the tasks are created, only the queues allocate memory.

use pagetide_core::config::SchedulerPolicy;
use pagetide_core::units::{Cpu, IdVec, Nanos};
use std::ops::Range;

mod average;
mod balance;
mod eevdf;
mod group;
mod load;
mod placement;
mod queue;
#[cfg(test)]
mod tests;
mod tick;

pub use group::{CpuQuota, GroupStats, WEIGHT_DEFAULT};
pub use placement::WakeSource;

use average::LoadClock;
use balance::Balancing;
use group::SchedGroup;
use placement::Wakees;
use queue::{CfsQueue, CpuRunQueue, EntityId, SchedEntity};

/// Number of a task, chosen by the caller; small and dense.
pub type TaskId = u32;
/// Number of a group: 0 is the root; others are numbered in the order of creation.
pub type GroupId = u32;

pub const ROOT: GroupId = 0;

/// Length of a tick: 250 Hz.
pub const TICK_NS: Nanos = 4_000_000;
/// Period in which every task should run once, before the factor for CPUs.
pub const LATENCY_NS: Nanos = 6_000_000;
/// Time for which a task runs before a tick may preempt it, before the factor for CPUs.
pub const MIN_GRANULARITY_NS: Nanos = 750_000;
/// Lag at which a waking task preempts the running one, before the factor for CPUs.
pub const WAKEUP_GRANULARITY_NS: Nanos = 1_000_000;
/// With more tasks than this the period grows (`sched_nr_latency`).
const NR_LATENCY: u64 = LATENCY_NS / MIN_GRANULARITY_NS;
const FACTOR_CPUS_MAX: u16 = 8;
/// Load of a CPU relative to another from which they count as unbalanced, in percent
/// (`imbalance_pct`).
const IMBALANCE_PCT: u64 = 117;
const NICE_0_WEIGHT: u64 = 1024;

/// Weights from nice -20 to 19 (`sched_prio_to_weight`).
const WEIGHTS: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

pub const fn next_tick(now: Nanos) -> Nanos {
    (now / TICK_NS + 1) * TICK_NS
}

/// Scheduler statistics of a task. Linux: /proc/PID/schedstat and status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskStats {
    /// CPU time.
    pub exec_ns: Nanos,
    /// Time spent waiting on a queue (`run_delay`).
    pub wait_ns: Nanos,
    /// Number of sleeps.
    pub nr_voluntary_switches: u64,
    /// Number of preemptions.
    pub nr_involuntary_switches: u64,
    pub nr_migrations: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SchedState {
    Asleep,
    Queued,
    Running,
}

#[derive(Clone, Debug)]
struct SchedTask {
    entity: SchedEntity,
    group: GroupId,
    /// The group to which it moves when it next leaves its CPU.
    moves_to: Option<GroupId>,
    allowed: Range<u16>,
    state: SchedState,
    /// CPU on which it runs or waits, or ran last.
    cpu: Cpu,
    /// It has been woken before.
    is_placed: bool,
    /// Start of its wait on a queue.
    waits_since: Nanos,
    /// Last accounted time at which it ran on this CPU; 0: it has not run there.
    ran_until: Nanos,
    /// Sequence number of its last enqueue or run, for the order of the CPU's list.
    listed: u64,
    /// Decaying sum of its time awake.
    awake_sum: u64,
    up_to: LoadClock,
    wakees: Wakees,
    stats: TaskStats,
}

/// The scheduler of all CPUs. See the module documentation.
#[derive(Clone, Debug)]
pub struct Scheduler {
    cpus: IdVec<Cpu, CpuRunQueue>,
    tasks: Vec<Option<SchedTask>>,
    groups: Vec<SchedGroup>,
    rules: SchedulerPolicy,
    factor: u64,
    next_sequence: u64,
    next_list: u64,
    /// Period timers for the world to start.
    timers: Vec<(GroupId, Nanos)>,
    /// Idle CPUs for the world to wake.
    called: Vec<Cpu>,
    /// Tasks with a changed state, for the world to report; may have duplicates.
    changed: Vec<TaskId>,
}

impl Scheduler {
    /// A scheduler of `cpus` idle CPUs.
    pub fn new(cpus: u16, rules: SchedulerPolicy) -> Self {
        assert!(cpus > 0);
        let idle = CpuRunQueue {
            queues: vec![CfsQueue::new(NICE_0_WEIGHT)],
            balancing: Balancing::new(cpus),
            ..CpuRunQueue::default()
        };
        Self {
            cpus: vec![idle; usize::from(cpus)].into(),
            tasks: Vec::new(),
            groups: vec![SchedGroup::new(ROOT, 0)],
            rules,
            factor: 1 + u64::from(cpus.min(FACTOR_CPUS_MAX).ilog2()),
            next_sequence: 0,
            next_list: 1,
            timers: Vec::new(),
            called: Vec::with_capacity(usize::from(cpus)),
            changed: Vec::new(),
        }
    }

    pub fn nr_cpus(&self) -> u16 {
        self.cpus.len() as u16
    }

    /// Adds a sleeping task. `nice` is clamped to -20..=19. `allowed` is its CPU affinity; `None`:
    /// all CPUs.
    ///
    /// # Panics
    /// If the number is in use, or no CPU is allowed.
    pub fn add_task(&mut self, task: TaskId, nice: i8, allowed: Option<Range<u16>>) {
        let allowed = allowed.unwrap_or(0..self.nr_cpus());
        assert!(!allowed.is_empty() && allowed.end <= self.nr_cpus(), "task {task}: {allowed:?}");
        let index = task as usize;
        if self.tasks.len() <= index {
            self.tasks.resize(index + 1, None);
        }
        assert!(self.tasks[index].is_none(), "task {task} exists");
        self.tasks[index] = Some(SchedTask {
            entity: SchedEntity::new(WEIGHTS[(nice.clamp(-20, 19) + 20) as usize]),
            group: ROOT,
            moves_to: None,
            cpu: Cpu(allowed.start),
            allowed,
            state: SchedState::Asleep,
            is_placed: false,
            waits_since: 0,
            ran_until: 0,
            listed: 0,
            awake_sum: 0,
            up_to: LoadClock::default(),
            wakees: Wakees::default(),
            stats: TaskStats::default(),
        });
        let nr_tasks = self.tasks.len();
        self.cpus.iter_mut().for_each(|rq| rq.tasks.reserve(nr_tasks));
    }

    /// Adds a task that has run before, such as a kernel thread: its first wake-up places it as a
    /// sleeper, not as a new task.
    pub fn add_sleeper(&mut self, task: TaskId, nice: i8, allowed: Option<Range<u16>>) {
        self.add_task(task, nice, allowed);
        self.task_mut(task).is_placed = true;
    }

    /// Moves a task to another group; a running task moves when it leaves its CPU.
    pub fn move_task(&mut self, task: TaskId, group: GroupId, now: Nanos) {
        self.task_mut(task).moves_to = Some(group);
        match self.task(task).state {
            SchedState::Asleep => self.settle(task, now),
            SchedState::Queued => {
                self.dequeue(task, now);
                self.settle(task, now);
                self.enqueue(task, now);
            }
            SchedState::Running => {
                let cpu = self.task(task).cpu;
                self.rq_mut(cpu).needs_resched = true;
            }
        }
    }

    /// Completes the move of a dequeued task to another group; it keeps its lead or lag.
    fn settle(&mut self, task: TaskId, now: Nanos) {
        let Some(group) = self.task_mut(task).moves_to.take() else { return };
        let (cpu, from) = (self.task(task).cpu, self.task(task).group);
        let is_placed = self.task(task).is_placed;
        self.catch_up_task(task, now);
        self.catch_up(cpu, from, now);
        self.catch_up(cpu, group, now);
        if is_placed {
            self.detach_load(task);
        }
        let shift = self.origin(cpu, group) - self.origin(cpu, from);
        let moved = self.task_mut(task);
        moved.group = group;
        moved.entity.shift(if is_placed { shift } else { 0 });
        if is_placed {
            self.attach_load(task);
        }
    }

    /// Removes a task in any state and returns its statistics. If it was running, its CPU must pick
    /// the next task.
    pub fn remove_task(&mut self, task: TaskId) -> TaskStats {
        let cpu = self.task(task).cpu;
        let now = self.rq(cpu).accounted_until;
        match self.task(task).state {
            SchedState::Asleep => {}
            SchedState::Queued => self.dequeue(task, now),
            SchedState::Running => self.take_off(task),
        }
        if self.task(task).is_placed {
            self.detach_load(task);
        }
        self.changed.push(task);
        let gone = self.tasks[task as usize].take();
        gone.expect("looked up above").stats
    }

    /// Makes a sleeping task runnable; no effect on an awake task. Returns the CPU that must call
    /// [`pick_next`](Self::pick_next), if any: an idle CPU at once, a busy CPU at the end of its
    /// time slice (which the world may preempt).
    pub fn wake(&mut self, now: Nanos, task: TaskId, waker: Option<WakeSource>) -> Option<Cpu> {
        if self.task(task).state != SchedState::Asleep {
            return None;
        }
        let cpu = self.select_cpu(task, waker, now);
        self.place(task, cpu, now);
        let was_idle = self.rq(cpu).is_idle();
        self.task_mut(task).waits_since = now;
        self.enqueue(task, now);
        if was_idle {
            return (!self.rq(cpu).is_idle()).then_some(cpu);
        }
        self.check_preempt(task, cpu, now).then_some(cpu)
    }

    /// Puts the running task, if any, back on its queue, and picks the task that should run;
    /// `None`: the CPU is idle. It may be the same task as before.
    pub fn pick_next(&mut self, cpu: Cpu, now: Nanos) -> Option<TaskId> {
        self.catch_up(cpu, ROOT, now);
        if self.rules == SchedulerPolicy::Linux612 {
            self.leave_eevdf(cpu);
        }
        let previous = self.rq_mut(cpu).current.take();
        if let Some(previous) = previous {
            self.put_previous(cpu, now);
            self.task_mut(previous).waits_since = now;
            if self.task(previous).moves_to.is_some() {
                self.dequeue(previous, now);
                self.settle(previous, now);
                self.enqueue(previous, now);
            }
            self.check_quota(cpu, self.task(previous).group, now);
        }
        if self.rq(cpu).is_idle() && self.cpus.len() > 1 {
            self.pull(cpu, now);
        }
        self.rq_mut(cpu).needs_resched = false;
        let picked = self.choose_down(cpu, now)?;
        self.put_on(cpu, picked, now);
        if let Some(previous) = previous.filter(|previous| *previous != picked) {
            self.task_mut(previous).stats.nr_involuntary_switches += 1;
        }
        Some(picked)
    }

    /// Puts the running task to sleep and returns it. The CPU must pick the next task.
    pub fn block(&mut self, cpu: Cpu) -> TaskId {
        let task = self.rq(cpu).current.expect("a task runs");
        self.take_off(task);
        self.task_mut(task).stats.nr_voluntary_switches += 1;
        task
    }

    /// Yields the running task (`sched_yield`): the next pick skips it once, unless all others are
    /// too far ahead of it. The CPU must pick the next task.
    pub fn yield_(&mut self, cpu: Cpu) {
        let rq = self.rq_mut(cpu);
        rq.needs_resched = rq.current.is_some();
        if self.rules == SchedulerPolicy::Linux612 {
            if let Some(task) = self.rq(cpu).current {
                self.yield_eevdf(cpu, task);
            }
            return;
        }
        let mut group = ROOT;
        while let Some(who) = self.queue(cpu, group).current {
            self.queue_mut(cpu, group).skip_buddy = Some(who);
            match who {
                EntityId::Task(_) => return,
                EntityId::Group(below) => group = below,
            }
        }
    }

    /// Makes a CPU pick again, after a thread outside this scheduler ran on it for a moment.
    pub fn resched(&mut self, cpu: Cpu) {
        let rq = self.rq_mut(cpu);
        rq.needs_resched = rq.current.is_some();
    }

    pub fn current(&self, cpu: Cpu) -> Option<TaskId> {
        self.rq(cpu).current
    }

    /// Number of tasks on a CPU, running or waiting.
    pub fn nr_running(&self, cpu: Cpu) -> usize {
        self.rq(cpu).nr_running()
    }

    /// The CPU on which a task runs or waits, or ran last.
    pub fn cpu_of(&self, task: TaskId) -> Cpu {
        self.task(task).cpu
    }

    pub fn is_asleep(&self, task: TaskId) -> bool {
        self.task(task).state == SchedState::Asleep
    }

    /// Takes a task whose state has changed (asleep, queued, running).
    pub fn next_changed(&mut self) -> Option<TaskId> {
        self.changed.pop()
    }

    /// Statistics of a task. Waiting time is added at the end of the wait.
    pub fn stats(&self, task: TaskId) -> TaskStats {
        self.task(task).stats
    }

    fn put_on(&mut self, cpu: Cpu, task: TaskId, now: Nanos) {
        self.touch_list(task);
        self.changed.push(task);
        let picked = self.task_mut(task);
        picked.state = SchedState::Running;
        picked.stats.wait_ns += now - picked.waits_since;
        let mut group = picked.group;
        let rq = self.rq_mut(cpu);
        rq.current = Some(task);
        rq.picked_at = now;
        rq.accounted_until = now;
        self.update_min_vruntime(cpu, group);
        while group != ROOT {
            group = self.groups[group as usize].parent;
            self.update_min_vruntime(cpu, group);
        }
    }

    /// Takes a running task off its CPU and its queues.
    fn take_off(&mut self, task: TaskId) {
        let cpu = self.task(task).cpu;
        if self.rules == SchedulerPolicy::Linux612 {
            self.leave_eevdf(cpu);
        }
        let now = self.rq(cpu).accounted_until;
        self.dequeue(task, now);
        let rq = self.rq_mut(cpu);
        assert_eq!(rq.current.take(), Some(task));
        rq.needs_resched = false;
        // Its groups may have other tasks to run, if their quotas are not used up.
        self.put_previous(cpu, now);
        self.check_quota(cpu, self.task(task).group, now);
        self.settle(task, now);
    }

    /// Virtual time of a queue, to which the positions of its entities are relative.
    fn origin(&self, cpu: Cpu, group: GroupId) -> i64 {
        match self.rules {
            SchedulerPolicy::Linux61 => self.queue(cpu, group).min_vruntime,
            SchedulerPolicy::Linux612 => self.average_vruntime(cpu, group),
        }
    }

    fn queue(&self, cpu: Cpu, group: GroupId) -> &CfsQueue {
        &self.rq(cpu).queues[group as usize]
    }

    fn queue_mut(&mut self, cpu: Cpu, group: GroupId) -> &mut CfsQueue {
        &mut self.rq_mut(cpu).queues[group as usize]
    }

    fn rq(&self, cpu: Cpu) -> &CpuRunQueue {
        &self.cpus[cpu]
    }

    fn rq_mut(&mut self, cpu: Cpu) -> &mut CpuRunQueue {
        &mut self.cpus[cpu]
    }

    #[track_caller]
    fn task(&self, task: TaskId) -> &SchedTask {
        let found = self.tasks.get(task as usize).and_then(Option::as_ref);
        found.unwrap_or_else(|| panic!("no task {task}"))
    }

    #[track_caller]
    fn task_mut(&mut self, task: TaskId) -> &mut SchedTask {
        let found = self.tasks.get_mut(task as usize).and_then(Option::as_mut);
        found.unwrap_or_else(|| panic!("no task {task}"))
    }
}
