//! Pressure stall information: time lost to memory shortage.
//!
//! Linux 6.1: kernel/sched/psi.c. Each group counts, for each CPU, its tasks that are stalled on memory, that run or
//! wait to run, and that wait for a disk. *Some* on a CPU: one of them is stalled. *Full*: one is stalled and none
//! that is not can run, or the one that runs is stalled, so that no other can. What a group has lost is the mean over
//! its CPUs, each weighted by how long it was not idle. It is taken every two seconds and whenever somebody reads it.
//! The root has the tasks of all groups, and the kernel's threads.
//!
//! Differences from Linux: no running averages, totals only. Of the daemons only kswapd counts as stalled while it
//! works; kcompactd does not.
//!
//! Invariant: the totals do not depend on when a state is reported again that has not changed.

use crate::digest::State;
use crate::units::{Cpu, Nanos, TICK};
use alloc::vec::Vec;

/// How often the means are taken while a group is not idle (`PSI_FREQ`).
const PERIOD: Nanos = 2_000_000_000;

/// What pressure accounting knows of a task (`psi_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskState {
    /// It is stalled on memory (`TSK_MEMSTALL`).
    pub stalled: bool,
    /// It runs or waits for a CPU (`TSK_RUNNING`).
    pub running: bool,
    /// It has the CPU (`TSK_ONCPU`).
    pub on_cpu: bool,
    /// It sleeps until a disk has done something (`TSK_IOWAIT`).
    pub io_wait: bool,
}

/// The tasks of a group on a CPU, and the time since the mean was last taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
struct PsiCpu {
    nr_stalled: u32,
    nr_running: u32,
    nr_stalled_running: u32,
    nr_stalled_on_cpu: u32,
    nr_io_wait: u32,
    since: Nanos,
    some_ns: Nanos,
    full_ns: Nanos,
    nonidle_ns: Nanos,
}

impl PsiCpu {
    fn is_idle(&self) -> bool {
        self.nr_stalled == 0 && self.nr_running == 0 && self.nr_io_wait == 0
    }

    fn advance(&mut self, now: Nanos) {
        let elapsed = now.saturating_sub(self.since);
        self.since = self.since.max(now);
        if self.is_idle() {
            return;
        }
        self.nonidle_ns += elapsed;
        if self.nr_stalled > 0 {
            self.some_ns += elapsed;
            if self.nr_running == self.nr_stalled_running || self.nr_stalled_on_cpu > 0 {
                self.full_ns += elapsed;
            }
        }
    }

    fn count(&mut self, task: TaskState, change: impl Fn(u32) -> u32) {
        let TaskState { stalled, running, on_cpu, io_wait } = task;
        for (is, number) in [
            (stalled, &mut self.nr_stalled),
            (running, &mut self.nr_running),
            (stalled && running, &mut self.nr_stalled_running),
            (stalled && on_cpu, &mut self.nr_stalled_on_cpu),
            (io_wait, &mut self.nr_io_wait),
        ] {
            if is {
                *number = change(*number);
            }
        }
    }
}

/// Stalls of a group's tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, State)]
pub struct Psi {
    /// As far as its tasks have been on them.
    cpus: Vec<PsiCpu>,
    /// When the mean is taken next; 0: not before something happens.
    due: Nanos,
    /// Nanoseconds in which at least one task was stalled.
    pub some_ns: u64,
    /// Nanoseconds in which tasks were stalled and nobody else could do anything.
    pub full_ns: u64,
}

impl Psi {
    /// A task on this CPU is no longer in the one state but in the other.
    pub fn task_change(&mut self, cpu: Cpu, before: TaskState, after: TaskState, now: Nanos) {
        self.catch_up(now);
        if self.cpus.len() <= cpu.idx() {
            let new = PsiCpu { since: now, ..PsiCpu::default() };
            self.cpus.resize(cpu.idx() + 1, new);
        }
        let on_cpu = &mut self.cpus[cpu.idx()];
        on_cpu.advance(now);
        on_cpu.count(before, |number| number.saturating_sub(1));
        on_cpu.count(after, |number| number.saturating_add(1));
        if self.due == 0 && !on_cpu.is_idle() {
            self.due = now.saturating_add(PERIOD);
        }
    }

    /// Tasks that are stalled, and those that are not and can run.
    pub fn nr_tasks(&self) -> (u32, u32) {
        let stalled = self.cpus.iter().map(|cpu| cpu.nr_stalled).sum();
        let running = self.cpus.iter().map(|cpu| cpu.nr_running - cpu.nr_stalled_running).sum();
        (stalled, running)
    }

    /// Brings the totals up to `now`, as a reader does.
    pub fn flush(&mut self, now: Nanos) {
        self.catch_up(now);
        self.take_mean(now);
    }

    /// Takes the means that are due (`psi_avgs_work`).
    fn catch_up(&mut self, now: Nanos) {
        while self.due != 0 && self.due <= now {
            let at = self.due;
            let was_idle = self.take_mean(at);
            self.due = if was_idle { 0 } else { at.saturating_add(PERIOD) };
        }
    }

    /// Adds the mean over CPUs since it was last taken; whether all were idle (`collect_percpu_times`). A CPU has the
    /// weight of the whole ticks in which it was not idle: with less than one its time is lost.
    fn take_mean(&mut self, now: Nanos) -> bool {
        let (mut some, mut full, mut ticks, mut was_idle) = (0u128, 0u128, 0u128, true);
        for cpu in &mut self.cpus {
            cpu.advance(now);
            let weight = u128::from(cpu.nonidle_ns / TICK);
            was_idle &= cpu.nonidle_ns == 0;
            some += u128::from(cpu.some_ns) * weight;
            full += u128::from(cpu.full_ns) * weight;
            ticks += weight;
            (cpu.some_ns, cpu.full_ns, cpu.nonidle_ns) = (0, 0, 0);
        }
        self.some_ns += some.checked_div(ticks).unwrap_or(0) as u64;
        self.full_ns += full.checked_div(ticks).unwrap_or(0) as u64;
        was_idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;
    const NONE: TaskState =
        TaskState { stalled: false, running: false, on_cpu: false, io_wait: false };
    const RUNS: TaskState = TaskState { running: true, on_cpu: true, ..NONE };
    const QUEUED: TaskState = TaskState { running: true, ..NONE };
    const RECLAIMS: TaskState = TaskState { stalled: true, running: true, on_cpu: true, ..NONE };
    const SLEEPS: TaskState = TaskState { stalled: true, io_wait: true, ..NONE };

    /// Milliseconds of some and of full after one second in which each of `tasks` was on a CPU, of two.
    fn second_of(tasks: &[(u16, TaskState)]) -> (u64, u64) {
        let mut psi = Psi::default();
        for (cpu, state) in tasks {
            psi.task_change(Cpu(*cpu), NONE, *state, 0);
        }
        psi.flush(1000 * MS);
        (psi.some_ns / MS, psi.full_ns / MS)
    }

    #[test]
    fn full_is_when_nobody_else_could_do_anything() {
        assert_eq!(second_of(&[(0, RUNS)]), (0, 0));
        assert_eq!(second_of(&[(0, SLEEPS)]), (1000, 1000));
        assert_eq!(second_of(&[(0, SLEEPS), (0, RUNS)]), (1000, 0));
        assert_eq!(second_of(&[(0, SLEEPS), (0, QUEUED)]), (1000, 0));
        // Who waits for the CPU could not do anything if he had more memory, either.
        assert_eq!(second_of(&[(0, RECLAIMS), (0, QUEUED)]), (1000, 1000));
    }

    #[test]
    fn cpus_count_by_the_time_in_which_they_are_not_idle() {
        assert_eq!(second_of(&[(0, RECLAIMS), (1, RUNS)]), (500, 500));
        assert_eq!(
            second_of(&[(0, RECLAIMS), (1, NONE)]),
            (1000, 1000),
            "an idle CPU has no weight"
        );
        let mut psi = Psi::default();
        psi.task_change(Cpu(0), NONE, RECLAIMS, 0);
        psi.task_change(Cpu(1), NONE, RUNS, 0);
        psi.task_change(Cpu(1), RUNS, NONE, 250 * MS);
        psi.flush(1000 * MS);
        assert_eq!(psi.some_ns / MS, 801, "250 ticks of 312");
    }

    #[test]
    fn means_are_taken_every_two_seconds_and_by_readers() {
        // Two seconds on one CPU, then two on the other: each window has a CPU of its own.
        let mut psi = Psi::default();
        psi.task_change(Cpu(0), NONE, RECLAIMS, 0);
        psi.task_change(Cpu(0), RECLAIMS, NONE, 2000 * MS);
        psi.task_change(Cpu(1), NONE, RUNS, 2000 * MS);
        let mut read = psi.clone();
        psi.flush(4000 * MS);
        assert_eq!(psi.some_ns / MS, 2000);
        read.flush(3000 * MS);
        read.flush(4000 * MS);
        assert_eq!(read.some_ns / MS, 2000);
        // Less than a tick has no weight.
        let mut short = Psi::default();
        short.task_change(Cpu(0), NONE, RECLAIMS, 0);
        short.flush(3 * MS);
        assert_eq!(short.some_ns, 0);
        // A group that was idle for a year has no windows to catch up with, and time does not run backwards.
        let year = 365 * 24 * 3_600_000 * MS;
        psi.task_change(Cpu(1), RUNS, NONE, 4000 * MS);
        psi.task_change(Cpu(0), NONE, SLEEPS, year);
        psi.flush(year + 1000 * MS);
        psi.flush(0);
        assert_eq!(psi.some_ns / MS, 3000);
        assert_eq!(psi.nr_tasks(), (1, 0));
    }
}
