//! CPUs and who runs on them.
//!
//! Linux 6.1, kernel/sched/fair.c (the Completely Fair Scheduler; the same rules and constants from
//! 2.6.38 or so to 6.5). Each CPU has a queue ordered by virtual run time: CPU time divided by weight. The
//! task furthest behind runs next, until the tick finds that it has had its slice or that another is a slice
//! behind it. A task that wakes is placed at most half a latency period behind the queue
//! (`GENTLE_FAIR_SLEEPERS`), and takes the CPU at once if it is further behind than the wake-up granularity.
//! Where it goes is in `placement`, how CPUs take tasks from each other in `balance`, the loads that both
//! compare in `load`. Groups with cpu.weight and cpu.max (`group`) have a queue on each CPU; on a CPU a group is
//! one entity of its parent's queue (`queue`).
//!
//! Constants, from fair.c (`get_update_sysctl_factor` for the factor): latency 6 ms, minimum
//! granularity 0.75 ms and wake-up granularity 1 ms, each times `1 + ilog2(min(CPUs, 8))`. Weights
//! are `sched_prio_to_weight` of kernel/sched/core.c: 1.25 a nice level. The tick is Debian's, 250
//! a second.
//!
//! Differs from Linux: one flat domain (no NUMA, SMT or parts of a cache), no last buddy (`LAST_BUDDY`, from 8
//! tasks on a queue), no autogroups, no real-time or idle classes, and moving a task costs nothing. The files named
//! above say what each leaves out. Switching costs are the caller's (see `cost`).
//!
//! # How a discrete-event world uses it
//!
//! A running task executes in pieces. After each piece the world calls [`Scheduler::account`],
//! then, if the task goes on, asks [`Scheduler::should_resched`]; if it sleeps,
//! [`Scheduler::block`]. Before it asks, [`Scheduler::balance`] may bring the CPU another task to
//! choose from. After a block, a yield or a `true`, and for a CPU that [`Scheduler::wake`]
//! names, it calls [`Scheduler::pick_next`]. A piece of pure computation should end at
//! [`next_tick`] at the latest. If groups have quotas, it asks for timers and for CPUs to call
//! ([`Scheduler::next_timer`], [`Scheduler::next_called`]) after each of these.
//!
//! Invariant: a task is in one place: asleep, on one queue, or running on one CPU; its CPU is one
//! it may use; `min_vruntime` never falls. Nothing is allocated after the tasks are made, but for the queues'
//! own growth.

use pagetide_core::units::{Cpu, Nanos};
use std::ops::Range;

mod average;
mod balance;
mod group;
mod load;
mod placement;
mod queue;
#[cfg(test)]
mod tests;
mod tick;

pub use group::{GroupStats, Quota, WEIGHT_DEFAULT};
pub use placement::Waker;

use average::UpTo;
use balance::Balancing;
use group::Group;
use placement::Wakees;
use queue::{Entity, Queue, RunQueue, Who};

/// A task's number, chosen by the caller; small and dense.
pub type TaskId = u32;
/// A group's number: 0 is the root, the others are counted as they are made.
pub type GroupId = u32;

/// The group of tasks that are in none.
pub const ROOT: GroupId = 0;

/// Length of a tick: 250 Hz.
pub const TICK_NS: Nanos = 4_000_000;
/// Period in which every task should run once, before the factor for CPUs.
pub const LATENCY_NS: Nanos = 6_000_000;
/// What a task may run before another may take over, before the factor for CPUs.
pub const MIN_GRANULARITY_NS: Nanos = 750_000;
/// What a woken task must be behind to take the CPU, before the factor for CPUs.
pub const WAKEUP_GRANULARITY_NS: Nanos = 1_000_000;
/// With more tasks than this the period grows (`sched_nr_latency`).
const NR_LATENCY: u64 = LATENCY_NS / MIN_GRANULARITY_NS;
/// CPUs counted for the factor at most.
const FACTOR_CPUS_MAX: u16 = 8;
/// By how much a CPU must be more loaded than another, in per cent (`imbalance_pct`).
const IMBALANCE_PCT: u64 = 117;
/// Weight of a task with nice 0.
const NICE_0_WEIGHT: u64 = 1024;

/// Weights from nice -20 to 19 (`sched_prio_to_weight`).
const WEIGHTS: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

/// The first tick after `now`.
pub const fn next_tick(now: Nanos) -> Nanos {
    (now / TICK_NS + 1) * TICK_NS
}

/// What a task has had of the CPUs. Linux: /proc/PID/schedstat and status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskStats {
    /// CPU time.
    pub exec_ns: Nanos,
    /// Time spent waiting on a queue (`run_delay`).
    pub wait_ns: Nanos,
    /// Times it slept.
    pub nr_voluntary_switches: u64,
    /// Times it was taken off a CPU while it could run.
    pub nr_involuntary_switches: u64,
    /// Times it changed CPU.
    pub nr_migrations: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Asleep,
    Queued,
    Running,
}

#[derive(Clone, Debug)]
struct Task {
    entity: Entity,
    group: GroupId,
    /// The group that it is in when it next leaves its CPU.
    moves_to: Option<GroupId>,
    allowed: Range<u16>,
    state: State,
    /// Where it runs, waits, or ran last.
    cpu: Cpu,
    /// It has been woken before, here or at boot.
    is_placed: bool,
    /// Since when it waits.
    waits_since: Nanos,
    /// Until when it has run on this CPU, as far as accounted; 0: not yet.
    ran_until: Nanos,
    /// When it came to its CPU's list, or ran last, in the order of such events.
    listed: u64,
    /// Time that it was awake, over time.
    awake_sum: u64,
    up_to: UpTo,
    wakees: Wakees,
    stats: TaskStats,
}

/// All CPUs of a machine. See the file's first paragraphs.
#[derive(Clone, Debug)]
pub struct Scheduler {
    cpus: Vec<RunQueue>,
    tasks: Vec<Option<Task>>,
    groups: Vec<Group>,
    factor: u64,
    next_sequence: u64,
    next_list: u64,
    /// What the world has to be told of groups.
    timers: Vec<(GroupId, Nanos)>,
    called: Vec<Cpu>,
    /// Whose place has changed since the world asked, some several times.
    changed: Vec<TaskId>,
}

impl Scheduler {
    /// A machine with `cpus` idle CPUs.
    pub fn new(cpus: u16) -> Self {
        assert!(cpus > 0);
        let idle = RunQueue {
            queues: vec![Queue::new(NICE_0_WEIGHT)],
            current: None,
            tasks: Vec::new(),
            picked_at: 0,
            accounted_until: 0,
            needs_resched: false,
            up_to: UpTo::default(),
            runnable_sum: 0,
            busy_sum: 0,
            balancing: Balancing::new(cpus),
        };
        Self {
            cpus: vec![idle; usize::from(cpus)],
            tasks: Vec::new(),
            groups: vec![Group::new(ROOT, 0)],
            factor: 1 + u64::from(cpus.min(FACTOR_CPUS_MAX).ilog2()),
            next_sequence: 0,
            next_list: 1,
            timers: Vec::new(),
            called: Vec::with_capacity(usize::from(cpus)),
            changed: Vec::new(),
        }
    }

    /// Number of CPUs.
    pub fn nr_cpus(&self) -> u16 {
        self.cpus.len() as u16
    }

    /// Makes a sleeping task. `nice` is cut to -20..=19. `allowed` are the CPUs it may use, all if
    /// `None` (kswapd of a node is bound to the node's CPUs).
    ///
    /// # Panics
    /// If the number is taken or no CPU is allowed.
    pub fn add_task(&mut self, task: TaskId, nice: i8, allowed: Option<Range<u16>>) {
        let allowed = allowed.unwrap_or(0..self.nr_cpus());
        assert!(!allowed.is_empty() && allowed.end <= self.nr_cpus(), "task {task}: {allowed:?}");
        let index = task as usize;
        if self.tasks.len() <= index {
            self.tasks.resize(index + 1, None);
        }
        assert!(self.tasks[index].is_none(), "task {task} exists");
        self.tasks[index] = Some(Task {
            entity: Entity::new(WEIGHTS[(nice.clamp(-20, 19) + 20) as usize]),
            group: ROOT,
            moves_to: None,
            cpu: Cpu(allowed.start),
            allowed,
            state: State::Asleep,
            is_placed: false,
            waits_since: 0,
            ran_until: 0,
            listed: 0,
            awake_sum: 0,
            up_to: UpTo::default(),
            wakees: Wakees::default(),
            stats: TaskStats::default(),
        });
        let nr_tasks = self.tasks.len();
        self.cpus.iter_mut().for_each(|rq| rq.tasks.reserve(nr_tasks));
    }

    /// Makes a task that has run before, as the kernel's threads have when the first program starts:
    /// it is placed as a sleeper when it first wakes, not as a new task.
    pub fn add_sleeper(&mut self, task: TaskId, nice: i8, allowed: Option<Range<u16>>) {
        self.add_task(task, nice, allowed);
        self.task_mut(task).is_placed = true;
    }

    /// Moves a task to another group: at once if it sleeps, else when it next leaves its CPU or queue.
    pub fn move_task(&mut self, task: TaskId, group: GroupId, now: Nanos) {
        self.task_mut(task).moves_to = Some(group);
        match self.task(task).state {
            State::Asleep => self.settle(task, now),
            State::Queued => {
                self.dequeue(task, now);
                self.settle(task, now);
                self.enqueue(task, now);
            }
            State::Running => {
                let cpu = self.task(task).cpu;
                self.rq_mut(cpu).needs_resched = true;
            }
        }
    }

    /// Puts a task that is on no queue into the group to which it moves, keeping its lead or lag.
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
        let shift = self.queue(cpu, group).min_vruntime - self.queue(cpu, from).min_vruntime;
        let moved = self.task_mut(task);
        moved.group = group;
        moved.entity.shift(if is_placed { shift } else { 0 });
        if is_placed {
            self.attach_load(task);
        }
    }

    /// Forgets a task, wherever it is; its last counters. If it was running, its CPU must pick.
    pub fn remove_task(&mut self, task: TaskId) -> TaskStats {
        let cpu = self.task(task).cpu;
        let now = self.rq(cpu).accounted_until;
        match self.task(task).state {
            State::Asleep => {}
            State::Queued => self.dequeue(task, now),
            State::Running => self.take_off(task),
        }
        if self.task(task).is_placed {
            self.detach_load(task);
        }
        self.changed.push(task);
        let gone = self.tasks[task as usize].take();
        gone.expect("looked up above").stats
    }

    /// Makes a sleeping task able to run. The CPU that must act on it, if any: an idle one must
    /// [`pick_next`](Self::pick_next) now, a busy one at the end of the piece it is executing
    /// (which the world may cut short). No effect on a task that is awake.
    pub fn wake(&mut self, now: Nanos, task: TaskId, waker: Option<Waker>) -> Option<Cpu> {
        if self.task(task).state != State::Asleep {
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

    /// Puts the running task, if any, back on its queue and lets the CPU take the task that should
    /// run; `None` leaves it idle. The caller tells a switch from a renewed slice by comparing.
    pub fn pick_next(&mut self, cpu: Cpu, now: Nanos) -> Option<TaskId> {
        self.catch_up(cpu, ROOT, now);
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

    /// The running task goes to sleep; it. The CPU must pick.
    pub fn block(&mut self, cpu: Cpu) -> TaskId {
        let task = self.rq(cpu).current.expect("a task runs that can sleep");
        self.take_off(task);
        self.task_mut(task).stats.nr_voluntary_switches += 1;
        task
    }

    /// The running task lets others go first (`sched_yield`): the next pick passes it over once, if
    /// another is not too far ahead of it. The CPU must pick.
    pub fn yield_(&mut self, cpu: Cpu) {
        let rq = self.rq_mut(cpu);
        rq.needs_resched = rq.current.is_some();
        let mut group = ROOT;
        while let Some(who) = self.queue(cpu, group).current {
            self.queue_mut(cpu, group).skip_buddy = Some(who);
            match who {
                Who::Task(_) => return,
                Who::Group(below) => group = below,
            }
        }
    }

    /// Somebody has run on a CPU for a moment and sleeps again. The CPU must pick.
    pub fn resched(&mut self, cpu: Cpu) {
        let rq = self.rq_mut(cpu);
        rq.needs_resched = rq.current.is_some();
    }

    /// The task that runs on a CPU.
    pub fn current(&self, cpu: Cpu) -> Option<TaskId> {
        self.rq(cpu).current
    }

    /// Tasks on a CPU, running or waiting.
    pub fn nr_running(&self, cpu: Cpu) -> usize {
        self.rq(cpu).nr_running()
    }

    /// The CPU on which a task runs or waits, or ran last.
    pub fn cpu_of(&self, task: TaskId) -> Cpu {
        self.task(task).cpu
    }

    /// Whether a task sleeps.
    pub fn is_asleep(&self, task: TaskId) -> bool {
        self.task(task).state == State::Asleep
    }

    /// A task that has come to a CPU or a queue, or has left one, since this was asked last.
    pub fn next_changed(&mut self) -> Option<TaskId> {
        self.changed.pop()
    }

    /// A task's counters. Waiting time is counted when the wait ends.
    pub fn stats(&self, task: TaskId) -> TaskStats {
        self.task(task).stats
    }

    fn put_on(&mut self, cpu: Cpu, task: TaskId, now: Nanos) {
        self.touch_list(task);
        self.changed.push(task);
        let picked = self.task_mut(task);
        picked.state = State::Running;
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

    /// Takes a running task off its CPU, to sleep.
    fn take_off(&mut self, task: TaskId) {
        let cpu = self.task(task).cpu;
        let now = self.rq(cpu).accounted_until;
        self.dequeue(task, now);
        let rq = self.rq_mut(cpu);
        assert_eq!(rq.current.take(), Some(task));
        rq.needs_resched = false;
        // Its groups may have others to run, if they have not used up their quotas.
        self.put_previous(cpu, now);
        self.check_quota(cpu, self.task(task).group, now);
        self.settle(task, now);
    }

    fn queue(&self, cpu: Cpu, group: GroupId) -> &Queue {
        &self.rq(cpu).queues[group as usize]
    }

    fn queue_mut(&mut self, cpu: Cpu, group: GroupId) -> &mut Queue {
        &mut self.rq_mut(cpu).queues[group as usize]
    }

    fn rq(&self, cpu: Cpu) -> &RunQueue {
        &self.cpus[cpu.idx()]
    }

    fn rq_mut(&mut self, cpu: Cpu) -> &mut RunQueue {
        &mut self.cpus[cpu.idx()]
    }

    #[track_caller]
    fn task(&self, task: TaskId) -> &Task {
        let found = self.tasks.get(task as usize).and_then(Option::as_ref);
        found.unwrap_or_else(|| panic!("no task {task}"))
    }

    #[track_caller]
    fn task_mut(&mut self, task: TaskId) -> &mut Task {
        let found = self.tasks.get_mut(task as usize).and_then(Option::as_mut);
        found.unwrap_or_else(|| panic!("no task {task}"))
    }
}
