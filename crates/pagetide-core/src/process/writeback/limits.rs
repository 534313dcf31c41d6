//! The limits of a dirty domain: its thresholds, its hard limit, and how near it is to them.
//!
//! Linux: `struct wb_domain`, `struct dirty_throttle_control`, `wb_position_ratio` in
//! mm/page-writeback.c (6.1).
//!
//! Invariant: a domain's hard limit ([`DirtyDomain::dirty_limit`]) is never below its dirty
//! threshold; it follows a falling threshold slowly.

use super::bandwidth::{ticks, HZ};
use super::completions::DomainCompletions;
use crate::units::digest::State;
use crate::units::Nanos;

/// 1 in the fixed-point numbers of the position ratio (Linux `RATELIMIT_CALC_SHIFT`).
const ONE: i64 = 1 << 10;

/// The state of a domain (Linux `struct wb_domain`).
#[derive(Clone, Debug, Default, State)]
pub(super) struct DirtyDomain {
    /// Hard limit in pages.
    dirty_limit: u64,
    /// Time of the last change, in ticks.
    limit_stamp: u64,
    pub completions: DomainCompletions,
}

impl DirtyDomain {
    pub(super) fn dirty_limit(&self) -> u64 {
        self.dirty_limit
    }

    pub(super) fn set_dirty_limit(&mut self, limit: u64) {
        self.dirty_limit = limit;
    }

    /// Follows the threshold: up at once, down by 1/32 of the distance every 200 ms.
    pub(super) fn update_limit(&mut self, levels: &DirtyLevels, now: Nanos) {
        if ticks(now) < self.limit_stamp + HZ / 5 {
            return;
        }
        self.limit_stamp = ticks(now);
        if self.dirty_limit < levels.thresh {
            self.dirty_limit = levels.thresh;
        } else {
            let goal = levels.thresh.max(levels.dirty);
            self.dirty_limit -= self.dirty_limit.saturating_sub(goal) >> 5;
        }
    }
}

/// Dirty pages and limits of one domain at one time (Linux `struct dirty_throttle_control`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DirtyLevels {
    /// Pages that could be dirty: free ones and page cache.
    pub avail: u64,
    /// Dirty pages; for throttling also those under writeback.
    pub dirty: u64,
    /// Dirty threshold.
    pub thresh: u64,
    /// Background threshold.
    pub background: u64,
    /// Hard limit.
    pub limit: u64,
    /// Dirty pages of the writeback that is looked at, and its share of the threshold.
    pub wb_dirty: u64,
    pub wb_thresh: u64,
    /// Speed of writers relative to the rate limit, in 1024ths.
    pub pos_ratio: u64,
}

impl DirtyLevels {
    /// Dirty pages below which no task is throttled (Linux `dirty_freerun_ceiling`).
    pub(super) fn freerun(&self) -> u64 {
        (self.thresh + self.background) / 2
    }

    /// The wanted number of dirty pages.
    pub(super) fn setpoint(&self) -> u64 {
        (self.freerun() + self.limit) / 2
    }

    /// A speed multiplied by the position ratio.
    pub(super) fn scaled(&self, rate: u64) -> u64 {
        ((u128::from(rate) * u128::from(self.pos_ratio)) >> 10) as u64
    }

    /// Computes the position ratio (Linux `wb_position_ratio`): 1 at the set point, 2 at the
    /// free-run ceiling, 0 at the hard limit, then corrected by how far the writeback is from its
    /// own share.
    pub(super) fn find_position(&mut self, write_bandwidth: u64) {
        self.pos_ratio = 0;
        if self.dirty >= self.limit {
            return;
        }
        let setpoint = self.setpoint();
        let global = i128::from(position_polynomial(setpoint, self.dirty, self.limit));
        let wb_thresh = self.wb_thresh.min(self.thresh).max((self.limit - self.dirty) / 8);
        let part = |pages: u64| {
            let x = (u128::from(wb_thresh) << 16) / u128::from(self.thresh | 1);
            ((u128::from(pages) * x) >> 16) as u64
        };
        let wb_setpoint = part(setpoint);
        let span = part((self.thresh + 8 * write_bandwidth).saturating_sub(wb_thresh));
        let intercept = wb_setpoint + span;
        let mut ratio = if self.wb_dirty < intercept - span / 4 {
            global * i128::from(intercept - self.wb_dirty) / i128::from(span | 1)
        } else {
            global / 4
        };
        // The writeback has too little to do: let more come in.
        let reserve = wb_thresh / 2;
        if self.wb_dirty < reserve {
            ratio = match self.wb_dirty > reserve / 8 {
                true => ratio * i128::from(reserve) / i128::from(self.wb_dirty),
                false => ratio * 8,
            };
        }
        self.pos_ratio = ratio.max(0) as u64;
    }
}

/// A cubic curve: 2 at twice the distance below the set point, 1 at the set point, 0 at the limit;
/// in 1024ths (Linux `pos_ratio_polynom`).
fn position_polynomial(setpoint: u64, dirty: u64, limit: u64) -> i64 {
    let x = ((setpoint as i64 - dirty as i64) << 10) / (limit.saturating_sub(setpoint) as i64 | 1);
    // Beyond this distance the result is 0 or 2, and the cube must not overflow.
    let x = x.clamp(-4 * ONE, 4 * ONE);
    let cubed = (((x * x) >> 10) * x) >> 10;
    (cubed + ONE).clamp(0, 2 * ONE)
}

impl DirtyLevels {
    pub(super) fn set_limits(&mut self, thresh: u64, background: u64, hard: u64) {
        let thresh = thresh.min(u32::MAX.into());
        self.thresh = thresh;
        self.background = if background >= thresh { thresh / 2 } else { background };
        self.limit = thresh.max(hard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(dirty: u64, wb_dirty: u64) -> DirtyLevels {
        let (thresh, background, limit) = (2000, 1000, 2000);
        DirtyLevels {
            avail: 10_000,
            dirty,
            thresh,
            background,
            limit,
            wb_dirty,
            wb_thresh: 2000,
            pos_ratio: 0,
        }
    }

    fn ratio(dirty: u64, wb_dirty: u64) -> u64 {
        let mut levels = levels(dirty, wb_dirty);
        levels.find_position(10_000);
        levels.pos_ratio
    }

    #[test]
    fn writers_slow_down_towards_the_limit() {
        assert_eq!(levels(0, 0).setpoint(), 1750);
        let at_setpoint = ratio(1750, 1750);
        assert!((1020..=1028).contains(&at_setpoint), "{at_setpoint}");
        assert!(ratio(1500, 1500) > ratio(1600, 1600));
        assert!(ratio(1900, 1900) < 1000 && ratio(1900, 1900) > 0);
        assert_eq!(ratio(2000, 2000), 0);
        assert_eq!(ratio(1_000_000, 5), 0);
    }

    #[test]
    fn a_writeback_with_little_to_do_lets_more_in() {
        assert!(ratio(1750, 500) > 2 * ratio(1750, 1750));
        assert!(ratio(1750, 50) > ratio(1750, 500));
    }

    #[test]
    fn the_hard_limit_falls_slowly_and_rises_at_once() {
        let mut domain = DirtyDomain::default();
        domain.set_dirty_limit(4000);
        let mut levels = levels(1500, 1500);
        domain.update_limit(&levels, 1_000_000_000);
        assert_eq!(domain.dirty_limit(), 4000 - (2000 >> 5));
        domain.update_limit(&levels, 1_100_000_000);
        assert_eq!(domain.dirty_limit(), 4000 - (2000 >> 5), "only every 200 ms");
        levels.thresh = 9000;
        domain.update_limit(&levels, 1_300_000_000);
        assert_eq!(domain.dirty_limit(), 9000);
    }
}
