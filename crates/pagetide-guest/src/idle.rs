//! Waits until the kernel has finished its own work after boot.
//!
//! For some seconds after boot, threads of the kernel initialise. The longest work is that of 6.12's
//! `cryptomgr_test`, which tests each cipher when its module is loaded. In a run it would take CPU
//! time from the tasks.
//!
//! Invariant: the wait is bounded, so that a kernel with constant work of its own also runs.

use std::time::{Duration, Instant};

/// Length of an interval of which the idle time is measured.
const INTERVAL: Duration = Duration::from_millis(250);
/// Successive intervals that must be idle.
const INTERVALS: u32 = 4;
/// Idle share of such an interval, in percent. The kernel counts idle time in units of 10 ms.
const IDLE_PERCENT: f64 = 95.0;
const LIMIT: Duration = Duration::from_secs(20);

/// Returns whether the kernel became idle within the limit, or true if it does not report its idle
/// time.
pub fn wait(cpus: u16) -> bool {
    let began = Instant::now();
    let mut idle_intervals = 0;
    while began.elapsed() < LIMIT {
        let (Some(before), at) = (idle_seconds(), Instant::now()) else { return true };
        std::thread::sleep(INTERVAL);
        let all = at.elapsed().as_secs_f64() * f64::from(cpus);
        let idle = idle_seconds().unwrap_or(before) - before;
        idle_intervals = if idle * 100.0 >= all * IDLE_PERCENT { idle_intervals + 1 } else { 0 };
        if idle_intervals == INTERVALS {
            return true;
        }
    }
    false
}

/// Idle time of all CPUs since boot. Linux: the second number of /proc/uptime.
fn idle_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/uptime").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}
