//! A PSI monitor: wakes its reader when the stall in a window exceeds a threshold.
//!
//! Linux 6.1: `window_update`, `update_triggers`, `psi_poll_work` (kernel/sched/psi.c). The kernel
//! looks ten times per window while tasks stall, and notifies at most once per window. The first
//! look at a stall after a window without one begins a new window. In Linux the windows of all
//! triggers of a group begin together; here each begins with its own stall.

/// Looks in a window (`UPDATES_PER_WINDOW`).
const UPDATES_PER_WINDOW: u64 = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PsiTrigger {
    threshold_ns: u64,
    window_ns: u64,
    /// Start of the window, the total at its start, and the growth in the window before it.
    start: u64,
    start_total: u64,
    prev_growth: u64,
    last_total: u64,
    /// Without a stall, the kernel looks until then.
    looks_until: Option<u64>,
    last_event: Option<u64>,
    is_pending: bool,
}

impl PsiTrigger {
    /// A trigger made at `now_ns`, when the stall time was `total_ns`.
    pub fn new(threshold_ns: u64, window_ns: u64, now_ns: u64, total_ns: u64) -> PsiTrigger {
        PsiTrigger {
            threshold_ns,
            window_ns,
            start: now_ns,
            start_total: total_ns,
            prev_growth: 0,
            last_total: total_ns,
            looks_until: None,
            last_event: None,
            is_pending: false,
        }
    }

    /// Time between two looks.
    pub fn period_ns(&self) -> u64 {
        self.window_ns / UPDATES_PER_WINDOW
    }

    /// Looks at the stall time so far. Returns whether the reader is notified. A total below an
    /// earlier one counts as that: a world can have counted a stall up to the end of a time slice,
    /// which then ended sooner.
    pub fn look(&mut self, now_ns: u64, total_ns: u64) -> bool {
        let total_ns = total_ns.max(self.last_total);
        let is_new = total_ns > self.last_total;
        self.last_total = total_ns;
        let was_quiet = self.looks_until.is_none_or(|until| now_ns > until);
        if is_new {
            self.looks_until = Some(now_ns + self.window_ns);
        }
        if was_quiet {
            (self.start, self.start_total, self.prev_growth) = (now_ns, total_ns, 0);
            return false;
        }
        if !is_new && !self.is_pending {
            return false;
        }
        if is_new {
            let growth = self.update(now_ns, total_ns);
            self.is_pending |= growth >= self.threshold_ns;
        }
        let is_early = self.last_event.is_some_and(|at| now_ns < at + self.window_ns);
        if !self.is_pending || is_early {
            return false;
        }
        self.is_pending = false;
        self.last_event = Some(now_ns);
        true
    }

    /// Growth in the sliding window: in this window, and the share of the growth before it that is
    /// still inside.
    fn update(&mut self, now_ns: u64, total_ns: u64) -> u64 {
        let elapsed = now_ns - self.start;
        let growth = total_ns - self.start_total;
        if elapsed > self.window_ns {
            (self.start, self.start_total, self.prev_growth) = (now_ns, total_ns, growth);
            return growth;
        }
        let left = u128::from(self.window_ns - elapsed) * u128::from(self.prev_growth);
        growth + (left / u128::from(self.window_ns)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MS, SECOND};

    #[test]
    fn a_total_that_falls_counts_as_the_one_before() {
        let mut trigger = PsiTrigger::new(70 * MS, SECOND, 0, 0);
        for (look, total) in [(1, 10), (2, 30), (3, 5), (4, 31), (5, 29)] {
            assert!(!trigger.look(look * 100 * MS, total * MS));
        }
    }

    #[test]
    fn it_fires_once_per_window_above_the_threshold() {
        let mut trigger = PsiTrigger::new(70 * MS, SECOND, 0, 0);
        let mut fired = Vec::new();
        for look in 1..=30 {
            // A stall of 10 % from 0.5 s on.
            let now = look * 100 * MS;
            let total = (now.saturating_sub(500 * MS)) / 10;
            if trigger.look(now, total) {
                fired.push(now / MS);
            }
        }
        assert_eq!(fired, [1300, 2300]);
    }
}
