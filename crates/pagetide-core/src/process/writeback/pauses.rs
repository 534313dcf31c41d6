//! Pauses of writers: a task's account of dirtied pages, and how long it may pause.
//!
//! Linux: `wb_max_pause`, `wb_min_pause` in mm/page-writeback.c, the fields `nr_dirtied`,
//! `nr_dirtied_pause` and `dirty_paused_when` of `struct task_struct` (6.1). Times are in ticks.
//!
//! Invariant: the shortest pause is not longer than the longest.

use super::bandwidth::{WritebackSpeed, HZ};
use crate::units::digest::State;
use crate::units::page_size::PageSize;

/// Longest pause in ticks (Linux `MAX_PAUSE`).
const MAX_PAUSE: u64 = HZ / 5;
/// Bytes that a task dirties between two checks if it can (Linux `DIRTY_POLL_THRESH`).
pub(super) const DIRTY_POLL_BYTES: u64 = 128 << 10;
/// The account of one task (Linux: `nr_dirtied` and others in `struct task_struct`).
#[derive(Clone, Debug, State)]
pub(crate) struct DirtyAccount {
    /// Pages dirtied since the last pause.
    pub nr_dirtied: u64,
    /// Pages after which the limits are checked.
    pub(super) nr_dirtied_pause: u64,
    /// End of the last pause, in ticks; 0: none yet.
    pub(super) paused_when: u64,
    /// Pages dirtied before a pause at position ratio 0, after which the task checks again.
    pub(super) unbalanced: Option<u64>,
}

impl DirtyAccount {
    pub(crate) fn new(page_size: PageSize) -> DirtyAccount {
        DirtyAccount {
            nr_dirtied: 0,
            nr_dirtied_pause: page_size.pages_in(DIRTY_POLL_BYTES),
            paused_when: 0,
            unbalanced: None,
        }
    }

    /// The pause would be too short: the task pays for the pages later.
    pub(super) fn go_on(&mut self, pause: i64, period: u64, pages_dirtied: u64, now: u64) {
        if pause < -(HZ as i64) {
            self.paused_when = now;
            self.nr_dirtied = 0;
        } else if period > 0 {
            self.paused_when += period;
            self.nr_dirtied = 0;
        } else if self.nr_dirtied_pause <= pages_dirtied {
            self.nr_dirtied_pause += pages_dirtied;
        }
        self.unbalanced = None;
    }
}

/// How long a task pauses, in ticks, and after how many pages it checks again.
pub(super) struct Pauses {
    pub longest: u64,
    pub shortest: i64,
    pub nr_dirtied_pause: u64,
}

impl Pauses {
    /// Linux `wb_max_pause` and `wb_min_pause`.
    pub(super) fn new(
        speed: &WritebackSpeed,
        wb_dirty: u64,
        task_rate: u64,
        poll_pages: u64,
    ) -> Pauses {
        let longest =
            (wb_dirty / (1 + speed.avg_write_bandwidth / (1 + HZ / 8).next_power_of_two()) + 1)
                .min(MAX_PAUSE);
        let rate = speed.dirty_ratelimit;
        let pages_in = |ticks: u64, rate: u64| rate * ticks / HZ.next_power_of_two();
        let mut target = (HZ / 100).max(1);
        let (writes, dirties) = (speed.avg_write_bandwidth.ilog2(), rate.ilog2());
        target += u64::from(writes.saturating_sub(dirties)) * (10 * HZ) / 1024;
        target = target.min(1 + longest / 2);
        let mut pages = pages_in(target, rate);
        if pages < poll_pages {
            target = longest;
            pages = pages_in(target, rate);
            if pages > poll_pages {
                pages = poll_pages;
                target = HZ * poll_pages / rate;
            }
        }
        if HZ * pages / (task_rate + 1) > longest {
            target = longest;
            pages = pages_in(target, task_rate);
        }
        let shortest = if pages >= poll_pages { 1 + target / 2 } else { target };
        Pauses { longest, shortest: shortest as i64, nr_dirtied_pause: pages }
    }
}
