//! CPUs and who runs on them.
//!
//! Linux 6.1, kernel/sched/fair.c (the Completely Fair Scheduler; the same rules and constants from
//! 2.6.38 or so to 6.5), reduced to what decides when kswapd and the tasks it serves run. Each
//! CPU has a queue ordered by virtual run time: CPU time divided by weight. The task furthest
//! behind runs next, until the tick finds that it has had its slice or that another is a slice
//! behind it. A task that wakes is placed at most half a latency period behind the queue
//! (`GENTLE_FAIR_SLEEPERS`), goes to its last CPU if that is idle, else to any idle one, else to
//! the least loaded, and takes the CPU at once if it is further behind than the wake-up
//! granularity. A CPU that runs out of work takes a task from the busiest queue, and a busy one evens
//! out loads from time to time (`balance`).
//!
//! Constants, from fair.c (`get_update_sysctl_factor` for the factor): latency 6 ms, minimum
//! granularity 0.75 ms and wake-up granularity 1 ms, each times `1 + ilog2(min(CPUs, 8))`. Weights
//! are `sched_prio_to_weight` of kernel/sched/core.c: 1.25 a nice level. The tick is Debian's, 250
//! a second.
//!
//! Differs from Linux: one flat domain (no NUMA, SMT or cache sharing), no task groups, no last
//! buddy, no load averages (a CPU's load is the weight it has to run), no periodic look of an idle
//! CPU (it looks when it runs out of work; wake-ups fill idle CPUs), and moving a task costs nothing. When
//! nothing is idle a task goes to the least loaded CPU, where Linux weighs only the last CPU
//! against the waker's. Switching costs are the caller's (see `cost`).
//!
//! # How a discrete-event world uses it
//!
//! A running task executes in pieces. After each piece the world calls [`Scheduler::account`],
//! then, if the task goes on, asks [`Scheduler::should_resched`]; if it sleeps,
//! [`Scheduler::block`]. Before it asks, [`Scheduler::balance`] may bring the CPU another task to
//! choose from. After a block, a yield or a `true`, and for a CPU that [`Scheduler::wake`]
//! names, it calls [`Scheduler::pick_next`]. A piece of pure computation should end at
//! [`next_tick`] at the latest.
//!
//! Invariant: a task is in one place: asleep, on one queue, or running on one CPU; its CPU is one
//! it may use; a CPU that picked nothing had nothing it could take; `min_vruntime` never falls.

use pagetide_core::units::{Cpu, Nanos};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

mod balance;
#[cfg(test)]
mod tests;

use balance::Balancing;

/// A task's number, chosen by the caller; small and dense.
pub type TaskId = u32;

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
    weight: u64,
    allowed: Range<u16>,
    state: State,
    /// Where it runs, waits, or ran last.
    cpu: Cpu,
    /// CPU time over weight, in nanoseconds of a task with nice 0.
    vruntime: i64,
    /// What division has left over: below `weight`.
    vruntime_remainder: u64,
    /// Place in its queue among equal vruntimes.
    queue_sequence: u64,
    /// It has been woken before, here or at boot.
    is_placed: bool,
    /// Since when it waits.
    waits_since: Nanos,
    /// When it last came to a CPU.
    picked_at: Nanos,
    /// Until when it has run, as far as accounted.
    ran_until: Nanos,
    stats: TaskStats,
}

/// Position in a queue: vruntime, then first come first served.
type Place = (i64, u64, TaskId);

#[derive(Clone, Debug)]
struct RunQueue {
    current: Option<TaskId>,
    queue: BTreeSet<Place>,
    /// Sum of weights, the running task's included.
    load: u64,
    min_vruntime: i64,
    /// When the running task was picked.
    picked_at: Nanos,
    /// Until when the running task's time is accounted.
    accounted_until: Nanos,
    needs_resched: bool,
    /// A woken task that is to run next unless that is too unfair (`cfs_rq->next`).
    next_buddy: Option<TaskId>,
    /// A task that yielded (`cfs_rq->skip`).
    skip_buddy: Option<TaskId>,
    balancing: Balancing,
}

impl RunQueue {
    fn nr_running(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }

    fn is_idle(&self) -> bool {
        self.nr_running() == 0
    }
}

/// All CPUs of a machine. See the file's first paragraphs.
#[derive(Clone, Debug)]
pub struct Scheduler {
    cpus: Vec<RunQueue>,
    tasks: Vec<Option<Task>>,
    factor: u64,
    next_sequence: u64,
}

impl Scheduler {
    /// A machine with `cpus` idle CPUs.
    pub fn new(cpus: u16) -> Self {
        assert!(cpus > 0);
        let idle = RunQueue {
            current: None,
            queue: BTreeSet::new(),
            load: 0,
            min_vruntime: 0,
            picked_at: 0,
            accounted_until: 0,
            needs_resched: false,
            next_buddy: None,
            skip_buddy: None,
            balancing: Balancing::new(cpus),
        };
        Self {
            cpus: vec![idle; usize::from(cpus)],
            tasks: Vec::new(),
            factor: 1 + u64::from(cpus.min(FACTOR_CPUS_MAX).ilog2()),
            next_sequence: 0,
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
            weight: WEIGHTS[(nice.clamp(-20, 19) + 20) as usize],
            cpu: Cpu(allowed.start),
            allowed,
            state: State::Asleep,
            vruntime: 0,
            vruntime_remainder: 0,
            queue_sequence: 0,
            is_placed: false,
            waits_since: 0,
            picked_at: 0,
            ran_until: 0,
            stats: TaskStats::default(),
        });
    }

    /// Makes a task that has run before, as the kernel's threads have when the first program starts:
    /// it is placed as a sleeper when it first wakes, not as a new task.
    pub fn add_sleeper(&mut self, task: TaskId, nice: i8, allowed: Option<Range<u16>>) {
        self.add_task(task, nice, allowed);
        self.task_mut(task).is_placed = true;
    }

    /// Forgets a task, wherever it is; its last counters. If it was running, its CPU must pick.
    pub fn remove_task(&mut self, task: TaskId) -> TaskStats {
        match self.task(task).state {
            State::Asleep => {}
            State::Queued => self.dequeue(task),
            State::Running => self.take_off(task),
        }
        let gone = self.tasks[task as usize].take();
        gone.expect("looked up above").stats
    }

    /// Makes a sleeping task able to run. The CPU that must act on it, if any: an idle one must
    /// [`pick_next`](Self::pick_next) now, a busy one at the end of the piece it is executing
    /// (which the world may cut short). No effect on a task that is awake.
    pub fn wake(&mut self, now: Nanos, task: TaskId) -> Option<Cpu> {
        if self.task(task).state != State::Asleep {
            return None;
        }
        let cpu = self.select_cpu(task);
        self.place(task, cpu);
        let was_idle = self.rq(cpu).is_idle();
        self.task_mut(task).waits_since = now;
        self.enqueue(task);
        if was_idle {
            return Some(cpu);
        }
        self.check_preempt(task, cpu, now).then_some(cpu)
    }

    /// Whether a task that has just come to a queue takes the CPU from the running one
    /// (`check_preempt_wakeup`).
    fn check_preempt(&mut self, task: TaskId, cpu: Cpu, now: Nanos) -> bool {
        let Some(current) = self.rq(cpu).current else {
            return false;
        };
        let current_vruntime = self.vruntime_now(cpu, current, now);
        let takes_over = self.is_far_behind(task, current_vruntime);
        if takes_over {
            let rq = self.rq_mut(cpu);
            rq.needs_resched = true;
            rq.next_buddy = Some(task);
        }
        takes_over
    }

    /// Puts the running task, if any, back on its queue and lets the CPU take the task that should
    /// run; `None` leaves it idle. The caller tells a switch from a renewed slice by comparing.
    pub fn pick_next(&mut self, cpu: Cpu, now: Nanos) -> Option<TaskId> {
        let previous = self.rq(cpu).current;
        if let Some(previous) = previous {
            self.take_off(previous);
            self.task_mut(previous).waits_since = now;
            self.task_mut(previous).state = State::Queued;
            self.enqueue(previous);
        }
        if self.rq(cpu).queue.is_empty() {
            self.pull(cpu);
        }
        let picked = self.choose(cpu);
        let rq = self.rq_mut(cpu);
        rq.needs_resched = false;
        rq.skip_buddy = None;
        rq.next_buddy = rq.next_buddy.filter(|buddy| picked != Some(*buddy));
        let picked = picked?;
        self.dequeue(picked);
        self.put_on(cpu, picked, now);
        if let Some(previous) = previous.filter(|previous| *previous != picked) {
            self.task_mut(previous).stats.nr_involuntary_switches += 1;
        }
        Some(picked)
    }

    /// Charges the running task for `ran_ns` of CPU time.
    pub fn account(&mut self, cpu: Cpu, task: TaskId, ran_ns: Nanos) {
        assert_eq!(self.rq(cpu).current, Some(task), "{cpu:?} runs another task");
        let charged = self.task_mut(task);
        charged.stats.exec_ns += ran_ns;
        let scaled = ran_ns * NICE_0_WEIGHT + charged.vruntime_remainder;
        charged.vruntime += (scaled / charged.weight) as i64;
        charged.vruntime_remainder = scaled % charged.weight;
        let rq = self.rq_mut(cpu);
        rq.accounted_until += ran_ns;
        let ran_until = rq.accounted_until;
        self.task_mut(task).ran_until = ran_until;
        self.update_min_vruntime(cpu);
    }

    /// Whether the CPU should call [`pick_next`](Self::pick_next): a woken task takes over, or the
    /// last tick found the slice used up or another task too far behind. The tick is evaluated
    /// at the first question after it, on the queue as it is then.
    pub fn should_resched(&self, cpu: Cpu, now: Nanos) -> bool {
        let rq = self.rq(cpu);
        let Some(current) = rq.current else {
            return !rq.queue.is_empty();
        };
        if rq.needs_resched {
            return true;
        }
        let Some(&(first_vruntime, ..)) = rq.queue.first() else {
            return false;
        };
        let tick = now / TICK_NS * TICK_NS;
        if tick <= rq.picked_at {
            return false;
        }
        let ran_ns = tick - rq.picked_at;
        let slice_ns = self.slice(rq.nr_running(), self.task(current).weight, rq.load);
        if ran_ns > slice_ns {
            return true;
        }
        let behind_ns = self.task(current).vruntime - first_vruntime;
        ran_ns >= MIN_GRANULARITY_NS * self.factor && behind_ns > slice_ns as i64
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
        rq.skip_buddy = rq.current;
        rq.needs_resched = rq.current.is_some();
    }

    /// The task that runs on a CPU.
    pub fn current(&self, cpu: Cpu) -> Option<TaskId> {
        self.rq(cpu).current
    }

    /// An idle CPU that could take a task that waits elsewhere. Wake-ups and [`Self::pick_next`]
    /// leave none, except when a task bound to its CPU has pushed another from it. A world with
    /// bound tasks asks at the tick, as Linux's idle balancer does, and lets the CPU pick.
    pub fn idle_balance(&self) -> Option<Cpu> {
        let mut idle = (0..self.nr_cpus()).map(Cpu).filter(|cpu| self.rq(*cpu).is_idle());
        idle.find(|cpu| self.busiest(*cpu).is_some())
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

    /// A task's counters. Waiting time is counted when the wait ends.
    pub fn stats(&self, task: TaskId) -> TaskStats {
        self.task(task).stats
    }

    /// The wall-clock slice of a task with `weight` of `load` among `nr_running` (`sched_slice`).
    fn slice(&self, nr_running: usize, weight: u64, load: u64) -> Nanos {
        let shares = (nr_running as u64).max(NR_LATENCY);
        let granularity_ns = MIN_GRANULARITY_NS * self.factor;
        (shares * granularity_ns * weight / load).max(granularity_ns)
    }

    /// Whether `task` is behind `vruntime` by more than the wake-up granularity, which is longer in
    /// virtual time for a light task (`wakeup_preempt_entity`).
    fn is_far_behind(&self, task: TaskId, vruntime: i64) -> bool {
        let task = self.task(task);
        let granularity_ns = WAKEUP_GRANULARITY_NS * self.factor * NICE_0_WEIGHT / task.weight;
        vruntime - task.vruntime > granularity_ns as i64
    }

    /// The running task's vruntime with the time not yet accounted.
    fn vruntime_now(&self, cpu: Cpu, current: TaskId, now: Nanos) -> i64 {
        let running_ns = now.saturating_sub(self.rq(cpu).accounted_until);
        let current = self.task(current);
        current.vruntime + (running_ns * NICE_0_WEIGHT / current.weight) as i64
    }

    /// Where a woken task goes.
    fn select_cpu(&self, task: TaskId) -> Cpu {
        let task = self.task(task);
        let (start, len) = (task.allowed.start, task.allowed.len() as u16);
        // The last CPU first, then the others in turn.
        let candidates = |i: u16| Cpu(start + (task.cpu.0 - start + i) % len);
        let idle = (0..len).map(candidates).find(|cpu| self.rq(*cpu).is_idle());
        idle.unwrap_or_else(|| {
            let least = (0..len).map(candidates).min_by_key(|cpu| self.rq(*cpu).load);
            least.expect("at least one CPU is allowed")
        })
    }

    /// Moves a sleeping task to `cpu` and gives it its place in the queue (`place_entity`): a new
    /// task a slice ahead of it unless it is alone, a sleeper at most half a period behind it.
    fn place(&mut self, task: TaskId, cpu: Cpu) {
        self.migrate(task, cpu);
        let min_vruntime = self.rq(cpu).min_vruntime;
        let weight = self.task(task).weight;
        if self.task(task).is_placed {
            let credit_ns = (LATENCY_NS * self.factor / 2) as i64;
            let placed = self.task_mut(task);
            placed.vruntime = placed.vruntime.max(min_vruntime - credit_ns);
        } else {
            let rq = self.rq(cpu);
            let debit_ns = match rq.is_idle() {
                true => 0,
                false => self.slice(rq.nr_running() + 1, weight, rq.load + weight),
            };
            let placed = self.task_mut(task);
            placed.vruntime = min_vruntime + (debit_ns * NICE_0_WEIGHT / weight) as i64;
            placed.is_placed = true;
        }
        self.task_mut(task).state = State::Queued;
    }

    /// Changes the CPU of a task that is on no queue, keeping its lead or lag.
    fn migrate(&mut self, task: TaskId, cpu: Cpu) {
        let from = self.task(task).cpu;
        if from == cpu {
            return;
        }
        let shift = self.rq(cpu).min_vruntime - self.rq(from).min_vruntime;
        let moved = self.task_mut(task);
        moved.cpu = cpu;
        if moved.is_placed {
            moved.vruntime += shift;
            moved.stats.nr_migrations += 1;
        }
    }

    /// An idle CPU takes a task from the queue with most tasks; of those it may take, the one that
    /// has been off a CPU longest.
    fn pull(&mut self, cpu: Cpu) {
        let Some(busiest) = self.busiest(cpu) else {
            return;
        };
        let coldest = self.movable(busiest, cpu).min_by_key(|task| {
            let task = self.task(*task);
            (task.picked_at, task.queue_sequence)
        });
        let task = coldest.expect("the busiest queue has a task to spare");
        self.dequeue(task);
        self.migrate(task, cpu);
        self.task_mut(task).state = State::Queued;
        self.enqueue(task);
    }

    /// The CPU with most tasks, at least two, of which `cpu` may take one.
    fn busiest(&self, cpu: Cpu) -> Option<Cpu> {
        let others = (0..self.nr_cpus()).map(Cpu).filter(|from| *from != cpu);
        let spare = others.filter(|from| {
            self.rq(*from).nr_running() > 1 && self.movable(*from, cpu).next().is_some()
        });
        spare.min_by_key(|from| (Reverse(self.rq(*from).nr_running()), *from))
    }

    /// Tasks waiting on `from` that may run on `to`.
    fn movable(&self, from: Cpu, to: Cpu) -> impl Iterator<Item = TaskId> + '_ {
        let waiting = self.rq(from).queue.iter().map(|place| place.2);
        waiting.filter(move |task| self.task(*task).allowed.contains(&to.0))
    }

    /// The task of a queue that should run (`pick_next_entity`).
    fn choose(&self, cpu: Cpu) -> Option<TaskId> {
        let rq = self.rq(cpu);
        let mut places = rq.queue.iter();
        let &(left_vruntime, _, left) = places.next()?;
        let mut chosen = left;
        if rq.skip_buddy == Some(left) {
            // The yielder is passed over unless it is far behind the second.
            if let Some(&(second_vruntime, _, second)) = places.next() {
                if !self.is_far_behind(left, second_vruntime) {
                    chosen = second;
                }
            }
        }
        if let Some(buddy) = rq.next_buddy {
            let is_here = self.task(buddy).state == State::Queued && self.task(buddy).cpu == cpu;
            let buddy_vruntime = self.task(buddy).vruntime;
            debug_assert!(is_here && buddy_vruntime >= left_vruntime);
            if !self.is_far_behind(left, buddy_vruntime) {
                chosen = buddy;
            }
        }
        Some(chosen)
    }

    fn put_on(&mut self, cpu: Cpu, task: TaskId, now: Nanos) {
        let picked = self.task_mut(task);
        picked.state = State::Running;
        picked.stats.wait_ns += now - picked.waits_since;
        picked.picked_at = now;
        let weight = picked.weight;
        let rq = self.rq_mut(cpu);
        rq.current = Some(task);
        rq.load += weight;
        rq.picked_at = now;
        rq.accounted_until = now;
        self.update_min_vruntime(cpu);
    }

    /// Takes a running task off its CPU, to sleep.
    fn take_off(&mut self, task: TaskId) {
        let (cpu, weight) = (self.task(task).cpu, self.task(task).weight);
        self.task_mut(task).state = State::Asleep;
        let rq = self.rq_mut(cpu);
        assert_eq!(rq.current.take(), Some(task));
        rq.load -= weight;
        rq.needs_resched = false;
    }

    fn enqueue(&mut self, task: TaskId) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let queued = self.task_mut(task);
        debug_assert_eq!(queued.state, State::Queued);
        queued.queue_sequence = sequence;
        let (cpu, weight) = (queued.cpu, queued.weight);
        let place = (queued.vruntime, sequence, task);
        let rq = self.rq_mut(cpu);
        assert!(rq.queue.insert(place));
        rq.load += weight;
    }

    fn dequeue(&mut self, task: TaskId) {
        let queued = self.task_mut(task);
        debug_assert_eq!(queued.state, State::Queued);
        queued.state = State::Asleep;
        let (cpu, weight) = (queued.cpu, queued.weight);
        let place = (queued.vruntime, queued.queue_sequence, task);
        let rq = self.rq_mut(cpu);
        assert!(rq.queue.remove(&place));
        rq.load -= weight;
        rq.next_buddy = rq.next_buddy.filter(|buddy| *buddy != task);
        rq.skip_buddy = rq.skip_buddy.filter(|buddy| *buddy != task);
    }

    fn update_min_vruntime(&mut self, cpu: Cpu) {
        let rq = self.rq(cpu);
        let running = rq.current.map(|current| self.task(current).vruntime);
        let first = rq.queue.first().map(|place| place.0);
        if let Some(least) = running.into_iter().chain(first).min() {
            let rq = self.rq_mut(cpu);
            rq.min_vruntime = rq.min_vruntime.max(least);
        }
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
