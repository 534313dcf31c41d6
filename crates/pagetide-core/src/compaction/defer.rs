//! Deferral: after a failure, compaction skips the zone for a number of requests.
//!
//! Linux: `defer_compaction`, `compaction_deferred`, `compaction_defer_reset`,
//! `compaction_restarting` (mm/compaction.c, 6.1). Only failures of synchronous runs defer, because
//! a failed asynchronous run does not show that no block can be made. After n failures in a row,
//! 2^n requests (at most 64) skip the zone.
//!
//! Invariant: a request below the lowest order that failed is never deferred.

use super::zone_state::ZoneCompaction;
use crate::units::Order;

/// log2 of the largest number of requests that skip a zone.
pub(crate) const COMPACT_MAX_DEFER_SHIFT: u32 = 6;

impl ZoneCompaction {
    /// Notes that a synchronous run over the whole zone made no block of `order`.
    pub(crate) fn defer(&mut self, order: Order) {
        self.considered = 0;
        self.defer_shift = (self.defer_shift + 1).min(COMPACT_MAX_DEFER_SHIFT);
        self.order_failed = self.order_failed.min(order);
    }

    /// Whether a request of `order` must skip the zone. Counts the request.
    pub(crate) fn is_deferred(&mut self, order: Order) -> bool {
        if order < self.order_failed {
            return false;
        }
        let limit = 1 << self.defer_shift;
        self.considered = (self.considered + 1).min(limit);
        self.considered < limit
    }

    /// Notes that a block of `order` is available. `allocated`: the task has got the block.
    pub(crate) fn defer_reset(&mut self, order: Order, allocated: bool) {
        if allocated {
            self.considered = 0;
            self.defer_shift = 0;
        }
        if order >= self.order_failed {
            self.order_failed = order + 1;
        }
    }

    /// Whether this is the first run after the longest deferral.
    pub(super) fn is_restarting(&self, order: Order) -> bool {
        order >= self.order_failed
            && self.defer_shift == COMPACT_MAX_DEFER_SHIFT
            && self.considered >= 1 << self.defer_shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deferred(zone: &mut ZoneCompaction, order: Order) -> u32 {
        (0..).take_while(|_| zone.is_deferred(order)).count() as u32
    }

    #[test]
    fn each_failure_doubles_the_requests_that_pass() {
        let mut zone = ZoneCompaction::new(0, 4096, 8);
        assert_eq!(deferred(&mut zone, 9), 0);
        for passed in [1, 3, 7, 15, 31, 63, 63] {
            zone.defer(9);
            assert_eq!(deferred(&mut zone, 9), passed);
        }
        assert!(zone.is_restarting(9));
        zone.defer_reset(9, true);
        assert_eq!(deferred(&mut zone, 9), 0);
    }

    #[test]
    fn lower_orders_are_never_deferred_and_a_likely_success_ends_it_for_its_order() {
        let mut zone = ZoneCompaction::new(0, 4096, 8);
        zone.defer_reset(9, false);
        assert_eq!(zone.order_failed, 10);
        zone.defer(5);
        assert!(!zone.is_deferred(4));
        assert!(zone.is_deferred(5));
        zone.defer(5);
        zone.defer_reset(5, false);
        assert!(!zone.is_deferred(5), "below the lowest order that failed");
        assert!(zone.is_deferred(6));
    }
}
