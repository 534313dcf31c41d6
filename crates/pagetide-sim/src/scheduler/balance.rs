//! A busy CPU takes a waiting task from a busier one.
//!
//! Linux 6.1, kernel/sched/fair.c: `rebalance_domains`, `load_balance`, `find_busiest_group`,
//! `calculate_imbalance`, `detach_tasks`, on one domain whose groups are single CPUs. From time to
//! time, at the tick, a CPU looks for the most loaded CPU on which a task waits. It takes of it what
//! brings either nearer to the average. A task of a larger load than that is taken only after a
//! look that moved nothing: so three tasks on two CPUs take turns at having a CPU for themselves,
//! and each gets two thirds of one.
//!
//! Constants, from `sd_init` (kernel/sched/topology.c) and fair.c: the interval is the number of CPUs
//! in milliseconds, up to twice that while there is nothing to do, times 16 on a busy CPU
//! (`busy_factor`), less a tick. 117 % is imbalance enough (`imbalance_pct`). Who ran within 0.5 ms is
//! left where it is (`sysctl_sched_migration_cost`), unless two looks have failed
//! (`cache_nice_tries`).
//!
//! Differs from Linux: loads and counts are those of the moment, where Linux has an average over
//! some 30 ms; so a CPU that is idle half of the time and busy at the tick counts as busy. No task
//! is taken off the CPU it runs on (`active_load_balance`).
//!
//! Invariant: a task moves only from a queue of a CPU that keeps running another one.

use super::{next_tick, Scheduler, State, TaskId, TICK_NS};
use pagetide_core::units::{Cpu, Nanos};

/// Looks of a busy CPU are further apart by so much than those of an idle one.
const BUSY_FACTOR: Nanos = 16;
/// By how much a CPU must be more loaded, in per cent.
const IMBALANCE_PCT: u64 = 117;
/// How long what a task has in the caches makes it worth leaving where it is.
const MIGRATION_COST_NS: Nanos = 500_000;
/// Failed looks after which the caches do not count.
const CACHE_NICE_TRIES: u32 = 1;
/// Most tasks taken at a time (`sysctl_sched_nr_migrate`).
const NR_MIGRATE: usize = 32;
const MS: Nanos = 1_000_000;

/// When a CPU looks next, and how its last looks ended.
#[derive(Clone, Debug)]
pub(super) struct Balancing {
    last: Nanos,
    interval_ms: Nanos,
    nr_failed: u32,
}

impl Balancing {
    pub(super) fn new(nr_cpus: u16) -> Balancing {
        Balancing { last: 0, interval_ms: Nanos::from(nr_cpus), nr_failed: 0 }
    }

    /// The first tick at which a busy CPU looks again (`get_sd_balance_interval`).
    fn next(&self) -> Nanos {
        let ticks = (self.interval_ms * BUSY_FACTOR * MS).div_ceil(TICK_NS) - 1;
        self.last + ticks.max(1) * TICK_NS
    }
}

impl Scheduler {
    /// Lets a busy CPU look for work of others if it is time. The world asks between two pieces;
    /// as with slices, the tick is evaluated at the first question after it. No other CPU has to
    /// be told.
    pub fn balance(&mut self, cpu: Cpu, now: Nanos) {
        let nr_cpus = self.nr_cpus();
        let tick = next_tick(now) - TICK_NS;
        let rq = self.rq(cpu);
        if nr_cpus == 1 || rq.is_idle() || tick < rq.balancing.next() {
            return;
        }
        let (least_ms, most_ms) = (Nanos::from(nr_cpus), 2 * Nanos::from(nr_cpus));
        let Some((busiest, imbalance)) = self.imbalance(cpu) else {
            let balancing = &mut self.rq_mut(cpu).balancing;
            balancing.last = tick;
            balancing.nr_failed = 0;
            balancing.interval_ms = (2 * balancing.interval_ms).min(most_ms);
            return;
        };
        let moved = self.take_load(busiest, cpu, imbalance, now);
        let balancing = &mut self.rq_mut(cpu).balancing;
        balancing.last = tick;
        balancing.interval_ms = least_ms;
        balancing.nr_failed = if moved { 0 } else { balancing.nr_failed + 1 };
    }

    /// The CPU to take load from, and how much.
    fn imbalance(&self, cpu: Cpu) -> Option<(Cpu, u64)> {
        let waits = |from: &Cpu| self.rq(*from).nr_running() > 1;
        let load = |from: &Cpu| self.rq(*from).load;
        let all = || (0..self.nr_cpus()).map(Cpu);
        // The lowest number of those with most load.
        let others = all().rev().filter(|from| *from != cpu && waits(from));
        let busiest = others.max_by_key(load)?;
        let (most, own) = (load(&busiest), load(&cpu));
        let average = all().map(|from| load(&from)).sum::<u64>() / u64::from(self.nr_cpus());
        let is_close = waits(&cpu) && 100 * most <= IMBALANCE_PCT * own;
        if own >= most || own >= average || is_close {
            return None;
        }
        // A queue below the average, while a heavy task has a third CPU to itself, gives as much as is
        // wanted: Linux subtracts without a sign.
        let above = most.checked_sub(average).unwrap_or(u64::MAX);
        Some((busiest, above.min(average - own)))
    }

    /// Takes waiting tasks of `from`, the one that has been off a CPU longest first, until their
    /// load is `imbalance`. Whether there were any.
    fn take_load(&mut self, from: Cpu, to: Cpu, mut imbalance: u64, now: Nanos) -> bool {
        let nr_failed = self.rq(to).balancing.nr_failed;
        let mut waiting: Vec<TaskId> = self.movable(from, to).collect();
        waiting.sort_by_key(|task| {
            let task = self.task(*task);
            (task.ran_until, task.queue_sequence)
        });
        let mut moved = false;
        for task in waiting.into_iter().take(NR_MIGRATE) {
            let waiter = self.task(task);
            let is_hot = now.saturating_sub(waiter.ran_until) < MIGRATION_COST_NS;
            let load = waiter.weight >> nr_failed.min(u64::BITS - 1);
            if load > imbalance || is_hot && nr_failed <= CACHE_NICE_TRIES {
                continue;
            }
            imbalance = imbalance.saturating_sub(waiter.weight);
            self.take_waiting(task, to, now);
            moved = true;
            if imbalance == 0 {
                break;
            }
        }
        moved
    }

    /// Moves a task from one queue to another; it takes the CPU as one that wakes would.
    fn take_waiting(&mut self, task: TaskId, to: Cpu, now: Nanos) {
        self.dequeue(task);
        self.migrate(task, to);
        self.task_mut(task).state = State::Queued;
        self.enqueue(task);
        self.check_preempt(task, to, now);
    }
}
