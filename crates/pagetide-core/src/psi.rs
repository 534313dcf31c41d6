//! Pressure stall information: time lost to memory shortage.
//!
//! Linux: kernel/sched/psi.c. *Some*: at least one task was stalled. *Full*: a task was stalled and no
//! other task ran. The world reports state changes with their time; integration is exact. Every group
//! has its own totals, over its tasks and those of the groups below; the root's are the machine's.
//!
//! Differences from Linux: no weighting by CPU (there kswapd on one of two CPUs beside a task that runs on the
//! other makes both half of the time; here *some* is all of it and *full* nothing), and no running averages; totals only. Of the daemons only kswapd
//! counts as stalled while it works; kcompactd does not.

use crate::digest::State;
use crate::units::Nanos;

/// Totals of stalled time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
pub struct Psi {
    nr_stalled: u32,
    nr_running: u32,
    since: Nanos,
    /// Nanoseconds in which at least one task was stalled.
    pub some_ns: u64,
    /// Nanoseconds in which a task was stalled and no unstalled task ran.
    pub full_ns: u64,
}

impl Psi {
    fn advance(&mut self, now: Nanos) {
        let elapsed = now.saturating_sub(self.since);
        self.since = self.since.max(now);
        if self.nr_stalled > 0 {
            self.some_ns += elapsed;
            if self.nr_running == 0 {
                self.full_ns += elapsed;
            }
        }
    }

    /// A task began to stall on memory.
    pub fn stall_begin(&mut self, now: Nanos) {
        self.advance(now);
        self.nr_stalled = self.nr_stalled.saturating_add(1);
    }

    /// A task stopped stalling.
    pub fn stall_end(&mut self, now: Nanos) {
        self.advance(now);
        self.nr_stalled = self.nr_stalled.saturating_sub(1);
    }

    /// A task that is not stalled got a CPU.
    pub fn run_begin(&mut self, now: Nanos) {
        self.advance(now);
        self.nr_running = self.nr_running.saturating_add(1);
    }

    /// A task that is not stalled left its CPU.
    pub fn run_end(&mut self, now: Nanos) {
        self.advance(now);
        self.nr_running = self.nr_running.saturating_sub(1);
    }

    /// Tasks stalled, and tasks that run and are not.
    pub fn nr_tasks(&self) -> (u32, u32) {
        (self.nr_stalled, self.nr_running)
    }

    /// Brings the totals up to `now`.
    pub fn flush(&mut self, now: Nanos) {
        self.advance(now);
    }
}
