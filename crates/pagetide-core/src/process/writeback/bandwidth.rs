//! The measured speed of writes, and the speed at which tasks may dirty pages.
//!
//! Linux: `__wb_update_bandwidth`, `wb_update_write_bandwidth`, `wb_update_dirty_ratelimit` in
//! mm/page-writeback.c (6.1). All speeds are in pages per second; times are in ticks, because the
//! results depend on that granularity.
//!
//! Invariant: every speed is at least one page per second.

use super::limits::DirtyLevels;
use crate::units::digest::State;
use crate::units::page_size::PageSize;
use crate::units::{Nanos, TICK};

/// Ticks in a second.
pub(super) const HZ: u64 = 1_000_000_000 / TICK;
/// Interval of the estimate in ticks (Linux `BANDWIDTH_INTERVAL`).
const INTERVAL: u64 = HZ / 5;
/// An estimate after a longer idle time starts again (Linux `WB_BANDWIDTH_IDLE_JIF`).
const IDLE: u64 = HZ;
/// Ticks over which the speed of writes is averaged: 3 s, rounded up to a power of two.
const PERIOD: u64 = (3 * HZ).next_power_of_two();
/// Assumed speed before the first write, in bytes per second (Linux `INIT_BW`).
const INIT_BANDWIDTH: u64 = 100 << 20;

/// A time in ticks; never 0, which stands for "no time".
pub(super) const fn ticks(now: Nanos) -> u64 {
    now / TICK + 1
}

/// Speeds of the writeback of one device and group.
#[derive(Clone, Debug, State)]
pub(super) struct WritebackSpeed {
    /// End of the last interval, in ticks, and the counts of pages at that time.
    stamp: u64,
    dirtied_stamp: u64,
    written_stamp: u64,
    write_bandwidth: u64,
    /// Speed of writes, smoothed twice.
    pub avg_write_bandwidth: u64,
    /// Speed at which one task may dirty pages if the number of dirty pages is as wanted.
    pub dirty_ratelimit: u64,
    balanced_dirty_ratelimit: u64,
    /// Time of the update that follows the last write of a file (Linux `bw_dwork`).
    update_at: Nanos,
}

impl WritebackSpeed {
    pub(super) fn new(page_size: PageSize, now: Nanos) -> WritebackSpeed {
        let bandwidth = page_size.pages_in(INIT_BANDWIDTH);
        WritebackSpeed {
            stamp: ticks(now),
            dirtied_stamp: 0,
            written_stamp: 0,
            write_bandwidth: bandwidth,
            avg_write_bandwidth: bandwidth,
            dirty_ratelimit: bandwidth,
            balanced_dirty_ratelimit: bandwidth,
            update_at: Nanos::MAX,
        }
    }

    pub(super) fn is_due(&self, now: Nanos) -> bool {
        ticks(now) > self.stamp + INTERVAL
    }

    /// Ends the interval. `dirtied` and `written` are the counts of pages since the start.
    pub(super) fn update(
        &mut self,
        now: Nanos,
        dirtied: u64,
        written: u64,
        levels: [Option<&DirtyLevels>; 2],
    ) {
        let elapsed = ticks(now).saturating_sub(self.stamp).max(1);
        for level in levels.into_iter().flatten() {
            self.update_dirty_ratelimit(level, dirtied, elapsed);
        }
        self.update_write_bandwidth(written, elapsed);
        self.stamp = ticks(now);
        self.dirtied_stamp = dirtied;
        self.written_stamp = written;
    }

    /// Does the delayed update if its time has come.
    pub(super) fn settle(&mut self, now: Nanos, dirtied: u64, written: u64) {
        if now >= self.update_at {
            let at = core::mem::replace(&mut self.update_at, Nanos::MAX);
            self.update(at, dirtied, written, [None; 2]);
        }
    }

    /// Plans an update for when no page of a file is under writeback any more.
    pub(super) fn update_later(&mut self, now: Nanos) {
        self.update_at = self.update_at.min(now.saturating_add(INTERVAL * TICK));
    }

    /// Starts a new interval if the device has been idle.
    pub(super) fn begin(&mut self, now: Nanos, is_idle: bool, dirtied: u64, written: u64) {
        if is_idle && ticks(now) > self.stamp + IDLE {
            self.stamp = ticks(now);
            self.dirtied_stamp = dirtied;
            self.written_stamp = written;
        }
    }

    fn update_write_bandwidth(&mut self, written: u64, elapsed: u64) {
        let in_interval = (written - self.written_stamp) * HZ;
        if elapsed > PERIOD {
            self.write_bandwidth = in_interval / elapsed;
            self.avg_write_bandwidth = self.write_bandwidth.max(1);
            return;
        }
        let old = self.write_bandwidth;
        let new = (in_interval + old * (PERIOD - elapsed)) / PERIOD;
        let average = self.avg_write_bandwidth;
        if average > old && old >= new {
            self.avg_write_bandwidth -= (average - old) >> 3;
        }
        if average < old && old <= new {
            self.avg_write_bandwidth += (old - average) >> 3;
        }
        self.avg_write_bandwidth = self.avg_write_bandwidth.max(1);
        self.write_bandwidth = new;
    }

    /// Moves the rate limit towards the speed at which the writers together dirty as many pages as
    /// the device writes, in steps that shrink near the goal.
    fn update_dirty_ratelimit(&mut self, level: &DirtyLevels, dirtied: u64, elapsed: u64) {
        let dirty_rate = (dirtied - self.dirtied_stamp) * HZ / elapsed;
        let rate = self.dirty_ratelimit;
        let task_rate = level.scaled(rate) + 1;
        let balanced = u128::from(task_rate) * u128::from(self.avg_write_bandwidth)
            / u128::from(dirty_rate | 1);
        let balanced = balanced.min(u128::from(self.avg_write_bandwidth)) as u64;
        let three = [self.balanced_dirty_ratelimit, balanced, task_rate];
        let step = if level.dirty < level.setpoint() {
            three.into_iter().min().unwrap_or(rate).saturating_sub(rate)
        } else {
            rate.saturating_sub(three.into_iter().max().unwrap_or(rate))
        };
        let shift = (rate / (2 * step + 1)).min(64) as u32;
        let step = step.checked_shr(shift).unwrap_or(0).div_ceil(8);
        let moved = if rate < balanced { rate + step } else { rate.saturating_sub(step) };
        self.dirty_ratelimit = moved.max(1);
        self.balanced_dirty_ratelimit = balanced;
    }
}
