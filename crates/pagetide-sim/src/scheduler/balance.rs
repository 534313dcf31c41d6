//! Load balancing: a CPU pulls waiting tasks from a busier CPU.
//!
//! Linux 6.1, kernel/sched/fair.c: `load_balance`, `rebalance_domains`, `newidle_balance`,
//! `nohz_balancer_kick`, `find_busiest_group`, `calculate_imbalance`, `detach_tasks`, on one domain
//! whose groups are single CPUs.
//!
//! * A CPU that becomes idle pulls a task from a CPU with two.
//! * At ticks, each CPU periodically balances with the busiest CPU. If both have too many tasks, it
//!   pulls the load that moves both toward the average. A task with a larger load moves only after
//!   attempts that moved nothing: so three tasks on two CPUs take turns at having a CPU alone, and
//!   each gets two thirds of a CPU.
//! * An idle CPU has no ticks. A CPU with two tasks wakes an idle one at its own tick, to balance.
//!
//! Constants, from `sd_init` (kernel/sched/topology.c) and fair.c: the interval is the number of
//! CPUs in milliseconds, up to twice that while nothing is unbalanced, times 16 on a busy CPU
//! (`busy_factor`), less a tick. CPUs are unbalanced from 117 % (`imbalance_pct`). A task that ran
//! within the last 0.5 ms is not moved (`sysctl_sched_migration_cost`), unless two attempts have
//! failed (`cache_nice_tries`).
//!
//! Differs from Linux: a running task is never moved (`active_load_balance`, which Linux uses if a
//! waiting task may use no other CPU). A newly idle CPU balances even if its idle times are short
//! (no `avg_idle`). Only one idle CPU is woken at a tick, and it balances only for itself.
//!
//! Invariant: a task moves only from the queue of a CPU that keeps running another task.

use super::load::Fullness;
use super::{Scheduler, TaskId, IMBALANCE_PCT, TICK_NS};
use pagetide_core::units::{Cpu, Nanos};

/// Ratio of the balancing intervals of busy and idle CPUs.
const BUSY_FACTOR: Nanos = 16;
/// Time since its last run for which a task counts as cache-hot.
const MIGRATION_COST_NS: Nanos = 500_000;
/// Failed attempts after which cache-hot tasks move too.
const CACHE_NICE_TRIES: u32 = 1;
/// Most tasks examined in one attempt (`sysctl_sched_nr_migrate`).
const NR_MIGRATE: usize = 32;
const MS: Nanos = 1_000_000;

/// State of the CPU that balances (`enum cpu_idle_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CpuIdleType {
    Busy,
    Idle,
    NewlyIdle,
}

/// Amount to pull (`migration_type`, `imbalance`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Imbalance {
    Load(u64),
    Tasks(usize),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Balancing {
    last: Nanos,
    interval_ms: Nanos,
    nr_failed: u32,
    /// The last tick at which the CPU woke an idle one.
    called_at: Nanos,
}

impl Balancing {
    pub(super) fn new(nr_cpus: u16) -> Balancing {
        Balancing { interval_ms: Nanos::from(nr_cpus), ..Balancing::default() }
    }

    /// Tick of the next attempt (`get_sd_balance_interval`).
    fn next(&self, is_busy: bool) -> Nanos {
        let interval_ms = if is_busy { self.interval_ms * BUSY_FACTOR } else { self.interval_ms };
        let ticks = (interval_ms * MS).div_ceil(TICK_NS) - Nanos::from(is_busy);
        self.last + ticks.max(1) * TICK_NS
    }
}

impl Scheduler {
    /// Balances a CPU if its interval has passed. The world calls it between two time slices; a
    /// tick is evaluated by the first call after it. Returns an idle CPU that should balance too:
    /// the world must call this and `pick_next` for it.
    pub fn balance(&mut self, cpu: Cpu, now: Nanos) -> Option<Cpu> {
        if self.cpus.len() == 1 {
            return None;
        }
        let tick = now / TICK_NS * TICK_NS;
        let rq = self.rq(cpu);
        let is_busy = !rq.is_idle();
        if tick >= rq.balancing.next(is_busy) {
            let why = if is_busy { CpuIdleType::Busy } else { CpuIdleType::Idle };
            self.try_balance(cpu, why, now);
            self.rq_mut(cpu).balancing.last = tick;
        }
        let rq = self.rq_mut(cpu);
        if rq.nr_running() < 2 || tick <= rq.balancing.called_at {
            return None;
        }
        rq.balancing.called_at = tick;
        let mut idle = (0..self.nr_cpus()).map(Cpu).filter(|cpu| self.rq(*cpu).is_idle());
        idle.find(|idle| tick >= self.rq(*idle).balancing.next(false))
    }

    /// Pulls a task to a CPU that becomes idle (`newidle_balance`).
    pub(super) fn pull(&mut self, cpu: Cpu, now: Nanos) {
        if self.cpus.iter().any(|rq| rq.nr_running() > 1) {
            self.try_balance(cpu, CpuIdleType::NewlyIdle, now);
        }
    }

    /// `load_balance`.
    fn try_balance(&mut self, cpu: Cpu, why: CpuIdleType, now: Nanos) {
        let nr_cpus = Nanos::from(self.nr_cpus());
        let Some((busiest, imbalance)) = self.busiest(cpu, why, now) else {
            let balancing = &mut self.rq_mut(cpu).balancing;
            balancing.nr_failed = 0;
            if why != CpuIdleType::NewlyIdle {
                balancing.interval_ms = (2 * balancing.interval_ms).min(2 * nr_cpus);
            }
            return;
        };
        let has_moved = self.take(busiest, cpu, imbalance, why, now);
        let balancing = &mut self.rq_mut(cpu).balancing;
        balancing.interval_ms = nr_cpus;
        if has_moved {
            balancing.nr_failed = 0;
        } else if why != CpuIdleType::NewlyIdle {
            balancing.nr_failed += 1;
        }
    }

    /// The CPU to pull from, and the amount (`find_busiest_group`, `calculate_imbalance`).
    fn busiest(&mut self, cpu: Cpu, why: CpuIdleType, now: Nanos) -> Option<(Cpu, Imbalance)> {
        let own = self.fullness(cpu, IMBALANCE_PCT, now);
        let own_load = self.cpu_load(cpu, now);
        let mut all = own_load;
        let mut found: Option<(Fullness, u64, Cpu)> = None;
        for from in (0..self.nr_cpus()).map(Cpu).filter(|from| *from != cpu) {
            let load = self.cpu_load(from, now);
            all += load;
            if !self.has_movable(from, cpu) {
                continue;
            }
            let fullness = self.fullness(from, IMBALANCE_PCT, now);
            // Of overloaded CPUs prefer the one with most load, else the one with most tasks.
            let measure = match fullness {
                Fullness::Overloaded => load,
                Fullness::FullyBusy | Fullness::HasSpare => self.rq(from).nr_running() as u64,
            };
            if found.is_none_or(|(most, of, _)| (fullness, measure) > (most, of)) {
                found = Some((fullness, measure, from));
            }
        }
        let (fullness, _, from) = found?;
        let (load, average) = (self.cpu_load(from, now), all / u64::from(self.nr_cpus()));
        if own > fullness || fullness != Fullness::Overloaded && why == CpuIdleType::Busy {
            return None;
        }
        if own == Fullness::HasSpare {
            let more = self.rq(from).nr_running().saturating_sub(self.rq(cpu).nr_running());
            return (more > 1).then_some((from, Imbalance::Tasks(more / 2)));
        }
        let is_close = own == Fullness::Overloaded && 100 * load <= IMBALANCE_PCT * own_load;
        if own_load >= load || own_load >= average || is_close {
            return None;
        }
        // A CPU below the average (if a heavy task occupies a third CPU) gives as much as
        // requested, because Linux's unsigned subtraction wraps.
        let above = load.checked_sub(average).unwrap_or(u64::MAX);
        Some((from, Imbalance::Load(above.min(average - own_load))))
            .filter(|it| it.1 != Imbalance::Load(0))
    }

    /// True if a task that may run on `to` waits on `from`.
    pub(super) fn has_movable(&self, from: Cpu, to: Cpu) -> bool {
        let rq = self.rq(from);
        let may = |task: &TaskId| self.task(*task).allowed.contains(&to.0);
        rq.nr_running() > 1 && rq.tasks.iter().any(|task| may(task) && self.is_waiting(*task))
    }

    /// The first task in the list of `from` that waits, may run on `to`, and was listed before
    /// `end`.
    fn oldest(&self, from: Cpu, to: Cpu, end: u64) -> Option<TaskId> {
        let of = |task: &TaskId| {
            let it = self.task(*task);
            it.listed < end && it.allowed.contains(&to.0) && self.is_waiting(*task)
        };
        let waiting = self.rq(from).tasks.iter().copied().filter(of);
        waiting.min_by_key(|task| self.task(*task).listed)
    }

    /// Pulls waiting tasks from `from` up to the wanted amount. Returns true if any moved
    /// (`detach_tasks`).
    fn take(
        &mut self,
        from: Cpu,
        to: Cpu,
        mut wanted: Imbalance,
        why: CpuIdleType,
        now: Nanos,
    ) -> bool {
        let nr_failed = self.rq(to).balancing.nr_failed;
        let end = self.next_list;
        let mut has_moved = false;
        for _ in 0..NR_MIGRATE.min(self.rq(from).nr_running()) {
            if why != CpuIdleType::Busy && self.rq(from).nr_running() <= 1 {
                break;
            }
            let Some(task) = self.oldest(from, to, end) else { break };
            // A task that is not moved is tried last the next time.
            self.touch_list(task);
            let is_hot = now.saturating_sub(self.task(task).ran_until) < MIGRATION_COST_NS;
            if is_hot && nr_failed <= CACHE_NICE_TRIES {
                continue;
            }
            let is_enough = match &mut wanted {
                Imbalance::Load(left) => {
                    let load = self.task_load(task, now).max(1);
                    if load >> nr_failed.min(u64::BITS - 1) > *left {
                        continue;
                    }
                    *left = left.saturating_sub(load);
                    *left == 0
                }
                Imbalance::Tasks(left) => {
                    *left -= 1;
                    *left == 0
                }
            };
            self.take_waiting(task, to, now);
            has_moved = true;
            if is_enough || why == CpuIdleType::NewlyIdle {
                break;
            }
        }
        has_moved
    }

    /// Moves a waiting task to another CPU; it may preempt there like a waking task.
    fn take_waiting(&mut self, task: TaskId, to: Cpu, now: Nanos) {
        self.dequeue(task, now);
        self.migrate(task, to, now);
        self.enqueue(task, now);
        self.check_preempt(task, to, now);
    }
}
