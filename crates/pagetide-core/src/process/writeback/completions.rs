//! Shares of completed writes: which part of a domain's writes each device's writeback has done.
//!
//! Linux: lib/flex_proportions.c, and `wb_domain_writeout_add` in mm/page-writeback.c (6.1). Old
//! events lose weight: every 3 s all counts are halved. A share is the number of a writeback's
//! events divided by the number of all events of the domain.
//!
//! Invariant: `period_end` is 0 exactly while no period runs. Then the next event starts one.

use crate::units::digest::State;
use crate::units::Nanos;

/// Length of a period (Linux `VM_COMPLETIONS_PERIOD_LEN`).
const PERIOD: Nanos = 3_000_000_000;

/// All events of a domain (Linux `struct fprop_global`).
#[derive(Clone, Debug, State)]
pub(super) struct DomainCompletions {
    events: u64,
    period: u32,
    period_end: Nanos,
}

/// The events of one writeback (Linux `struct fprop_local_percpu`).
#[derive(Clone, Copy, Debug, Default, State)]
pub(super) struct LocalCompletions {
    events: u64,
    period: u32,
}

impl Default for DomainCompletions {
    /// Linux starts with one event, which belongs to no writeback.
    fn default() -> Self {
        DomainCompletions { events: 1, period: 0, period_end: 0 }
    }
}

impl DomainCompletions {
    /// Ends the periods that are over.
    fn advance(&mut self, now: Nanos) {
        while self.period_end != 0 && now >= self.period_end {
            if self.events <= 1 {
                self.period_end = 0;
                return;
            }
            self.events /= 2;
            self.period = self.period.wrapping_add(1);
            self.period_end = self.period_end.saturating_add(PERIOD);
        }
    }

    /// Counts the end of one page's write.
    pub(super) fn add(&mut self, local: &mut LocalCompletions, now: Nanos) {
        self.advance(now);
        local.reflect(self.period);
        local.events += 1;
        self.events += 1;
        if self.period_end == 0 {
            self.period_end = now.saturating_add(PERIOD);
        }
    }

    /// The part of `pages` that belongs to a writeback by its share (Linux `__wb_calc_thresh`).
    pub(super) fn share(&mut self, local: &mut LocalCompletions, pages: u64, now: Nanos) -> u64 {
        self.advance(now);
        local.reflect(self.period);
        let all = self.events.max(local.events).max(1);
        pages * local.events / all
    }
}

impl LocalCompletions {
    fn reflect(&mut self, period: u32) {
        let missed = period.wrapping_sub(self.period);
        self.events = self.events.checked_shr(missed).unwrap_or(0);
        self.period = period;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_writes_and_fade() {
        let (mut domain, mut a, mut b) = Default::default();
        let domain: &mut DomainCompletions = &mut domain;
        assert_eq!(domain.share(&mut a, 1000, 0), 0);
        for _ in 0..300 {
            domain.add(&mut a, 1);
        }
        for _ in 0..100 {
            domain.add(&mut b, 1);
        }
        assert_eq!(domain.share(&mut a, 1000, 2), 300 * 1000 / 401);
        assert_eq!(domain.share(&mut b, 1000, 2), 100 * 1000 / 401);
        // Both fade alike. New events of one weigh more.
        for _ in 0..100 {
            domain.add(&mut b, 1 + PERIOD);
        }
        assert_eq!(domain.share(&mut a, 1000, 2 + PERIOD), 150 * 1000 / 300);
        assert_eq!(domain.share(&mut b, 1000, 2 + PERIOD), 150 * 1000 / 300);
        assert_eq!(domain.share(&mut a, 1000, 40 * PERIOD), 0);
    }
}
