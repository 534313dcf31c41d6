//! Pressure stall information (PSI): how much time tasks lose because memory is short.
//!
//! Linux 6.1: kernel/sched/psi.c. For each CPU, a group counts three kinds of tasks: tasks that are
//! stalled on memory, tasks that run or wait for a CPU, and tasks that wait for a disk. *Some* on a
//! CPU: at least one task is stalled. *Full*: at least one task is stalled and no other task can
//! run, or the running task itself is stalled. The group's totals are means over its CPUs, weighted
//! by the time that each CPU was not idle. The means are computed every two seconds and on every
//! read. The root has the tasks of all groups and the kernel threads.
//!
//! The running averages follow `update_averages` and `calc_avgs`, at the same moments as the means.
//! In Linux a reader also moves the grid of the averages; here a reader computes from a copy.
//!
//! Differences from Linux: kswapd counts as stalled while it works; other daemons do not, not even
//! kcompactd.
//!
//! Invariant: reporting an unchanged state again does not change the totals.

use crate::stats::psi_average::PsiAverages;
use crate::units::digest::State;
use crate::units::{Cpu, IdVec, Nanos, TICK};

/// Interval at which means are computed while a group is not idle (`PSI_FREQ`).
const PERIOD: Nanos = 2_000_000_000;

/// State of a task for pressure accounting (`psi_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskState {
    /// Stalled on memory (`TSK_MEMSTALL`).
    pub stalled: bool,
    /// Runs or waits for a CPU (`TSK_RUNNING`).
    pub running: bool,
    /// Has the CPU (`TSK_ONCPU`).
    pub on_cpu: bool,
    /// Sleeps until a disk request ends (`TSK_IOWAIT`).
    pub io_wait: bool,
}

/// Task counts of a group on a CPU, and times since the last mean.
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

/// Pressure stall information of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, State)]
pub struct Psi {
    /// State of each CPU, up to the highest CPU that the group's tasks have used.
    cpus: IdVec<Cpu, PsiCpu>,
    /// Time at which the next mean is computed; 0: not before a task changes its state.
    due: Nanos,
    /// Nanoseconds in which at least one task was stalled.
    pub some_ns: u64,
    /// Nanoseconds in which tasks were stalled and no other task could run.
    pub full_ns: u64,
    /// Running averages of both.
    pub averages: PsiAverages,
}

/// Means after which the averages no longer depend on earlier ones.
const REMEMBERED: u64 = 4096;

impl Psi {
    /// Changes the state of a task on a CPU.
    pub fn task_change(&mut self, cpu: Cpu, before: TaskState, after: TaskState, now: Nanos) {
        self.catch_up(now);
        self.averages.begin(now);
        if self.cpus.len() <= cpu.idx() {
            let new = PsiCpu { since: now, ..PsiCpu::default() };
            self.cpus.resize(cpu.idx() + 1, new);
        }
        let on_cpu = &mut self.cpus[cpu];
        on_cpu.advance(now);
        on_cpu.count(before, |number| number.saturating_sub(1));
        on_cpu.count(after, |number| number.saturating_add(1));
        if self.due == 0 && !on_cpu.is_idle() {
            self.due = now.saturating_add(PERIOD);
        }
    }

    /// Number of stalled tasks, and of other tasks that can run.
    pub fn nr_tasks(&self) -> (u32, u32) {
        let stalled = self.cpus.iter().map(|cpu| cpu.nr_stalled).sum();
        let running = self.cpus.iter().map(|cpu| cpu.nr_running - cpu.nr_stalled_running).sum();
        (stalled, running)
    }

    /// Updates the totals to time `now`.
    pub fn flush(&mut self, now: Nanos) {
        self.catch_up(now);
        self.take_mean(now);
    }

    /// Computes all means that are due (`psi_avgs_work`).
    fn catch_up(&mut self, now: Nanos) {
        // No state has changed since the last mean, so one mean stands for most of a long time.
        let missed = now.saturating_sub(self.due) / PERIOD;
        if self.due != 0 && missed > REMEMBERED {
            self.due += (missed - REMEMBERED) * PERIOD;
        }
        while self.due != 0 && self.due <= now {
            let at = self.due;
            let was_idle = self.take_mean(at);
            self.due = if was_idle { 0 } else { at.checked_add(PERIOD).unwrap_or(0) };
        }
    }

    /// Adds the mean over the CPUs to the totals. Returns whether all CPUs were idle
    /// (`collect_percpu_times`). The weight of a CPU is its non-idle time in whole ticks, so less
    /// than one tick is lost.
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
        self.averages.update(now, [self.some_ns, self.full_ns]);
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

    #[test]
    fn a_stall_until_the_end_of_time_ends() {
        let mut psi = Psi::default();
        psi.task_change(Cpu(0), NONE, RECLAIMS, 0);
        psi.flush(Nanos::MAX);
        assert!(psi.some_ns > Nanos::MAX - 2 * TICK, "{}", psi.some_ns);
        assert_eq!(psi.averages.some(), psi.averages.full());
        assert!(psi.averages.some()[2] > 9900, "{:?}", psi.averages.some());
    }

    /// Milliseconds of some and full stall after `tasks` were on two CPUs for one second.
    fn second_of(tasks: &[(u16, TaskState)]) -> (u64, u64) {
        let mut psi = Psi::default();
        for (cpu, state) in tasks {
            psi.task_change(Cpu(*cpu), NONE, *state, 0);
        }
        psi.flush(1000 * MS);
        (psi.some_ns / MS, psi.full_ns / MS)
    }

    #[test]
    fn full_counts_when_no_other_task_is_productive() {
        assert_eq!(second_of(&[(0, RUNS)]), (0, 0));
        assert_eq!(second_of(&[(0, SLEEPS)]), (1000, 1000));
        assert_eq!(second_of(&[(0, SLEEPS), (0, RUNS)]), (1000, 0));
        assert_eq!(second_of(&[(0, SLEEPS), (0, QUEUED)]), (1000, 0));
        // A task that waits for the CPU could not run with more memory either.
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
        // Two seconds on one CPU, then two on the other: each window has one busy CPU.
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
        // An idle group has no windows to catch up with; time does not run backwards.
        let year = 365 * 24 * 3_600_000 * MS;
        psi.task_change(Cpu(1), RUNS, NONE, 4000 * MS);
        psi.task_change(Cpu(0), NONE, SLEEPS, year);
        psi.flush(year + 1000 * MS);
        psi.flush(0);
        assert_eq!(psi.some_ns / MS, 3000);
        assert_eq!(psi.nr_tasks(), (1, 0));
    }
}
