//! Refault feedback: which kind of pages to evict, and which tiers to protect.
//!
//! Linux: `struct ctrl_pos`, `read_ctrl_pos`, `positive_ctrl_err`, `get_tier_idx`,
//! `get_type_to_scan` (mm/vmscan.c, 6.1). A proportional-integral controller: a tier's share of
//! refaults among its evicted and protected pages is compared with that of the first tier. Tiers
//! that refault more are protected. The kind whose first tier refaults less is evicted.
//!
//! Invariant: counts of the current generation are added to the averages when it ends, which are
//! then halved.

use super::limits::{ByKind, MIN_LRU_BATCH};
use crate::units::digest::State;

/// Number of tiers (Linux `MAX_NR_TIERS`).
pub const MAX_NR_TIERS: usize = 4;

/// Tier of a page with this many uses beyond the first (Linux `lru_tier_from_refs`).
pub(super) const fn tier_of(uses: u32) -> usize {
    (u32::BITS - uses.leading_zeros()) as usize
}

/// Counts by kind and tier.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct RefaultFeedback {
    average_refaulted: ByKind<[u64; MAX_NR_TIERS]>,
    average_total: ByKind<[u64; MAX_NR_TIERS]>,
    /// Pages of the oldest generation that came back while it was the oldest.
    pub refaulted: ByKind<[u64; MAX_NR_TIERS]>,
    /// Pages evicted from the oldest generation.
    pub evicted: ByKind<[u64; MAX_NR_TIERS]>,
    /// Pages that eviction has moved to the next generation.
    pub protected: ByKind<[u64; MAX_NR_TIERS]>,
}

/// State of the controller for one tier.
#[derive(Clone, Copy, Debug)]
struct ControlPosition {
    refaulted: u64,
    total: u64,
    gain: u64,
}

impl ControlPosition {
    /// Whether a tier `pv` may be evicted as freely as this one: it has few refaults, or a lower
    /// share of them.
    fn permits(self, pv: ControlPosition) -> bool {
        pv.refaulted < MIN_LRU_BATCH
            || pv.refaulted.wrapping_mul(self.total + MIN_LRU_BATCH).wrapping_mul(self.gain)
                <= (self.refaulted + 1).wrapping_mul(pv.total).wrapping_mul(pv.gain)
    }
}

impl RefaultFeedback {
    fn position(&self, file: bool, tier: usize, gain: u64) -> ControlPosition {
        let kind = usize::from(file);
        ControlPosition {
            refaulted: self.average_refaulted[kind][tier] + self.refaulted[kind][tier],
            total: self.average_total[kind][tier] + self.total(kind, tier),
            gain,
        }
    }

    /// Pages of the oldest generation that eviction has decided about.
    fn total(&self, kind: usize, tier: usize) -> u64 {
        self.evicted[kind][tier] + self.protected[kind][tier]
    }

    /// The oldest generation of a kind ends (Linux `reset_ctrl_pos` with `carryover`).
    pub(super) fn generation_ends(&mut self, file: bool) {
        let kind = usize::from(file);
        for tier in 0..MAX_NR_TIERS {
            let refaulted = self.average_refaulted[kind][tier] + self.refaulted[kind][tier];
            let total = self.average_total[kind][tier] + self.total(kind, tier);
            self.average_refaulted[kind][tier] = refaulted / 2;
            self.average_total[kind][tier] = total / 2;
        }
        self.refaulted[kind] = [0; MAX_NR_TIERS];
        self.evicted[kind] = [0; MAX_NR_TIERS];
        self.protected[kind] = [0; MAX_NR_TIERS];
    }

    /// The highest tier of a kind to evict, compared with the kind's own first tier (Linux
    /// `get_tier_idx`). The others have twice the gain, as a margin.
    pub(super) fn last_tier(&self, file: bool) -> usize {
        let first = self.position(file, 0, 1);
        self.permitted_tier(first, file, 2)
    }

    fn permitted_tier(&self, setpoint: ControlPosition, file: bool, gain: u64) -> usize {
        let denied =
            (1..MAX_NR_TIERS).find(|&tier| !setpoint.permits(self.position(file, tier, gain)));
        denied.unwrap_or(MAX_NR_TIERS) - 1
    }

    /// Whether to evict page cache, and up to which tier (Linux `get_type_to_scan`).
    pub(super) fn kind_to_evict(&self, swappiness: u64) -> (bool, usize) {
        let gain = |file: bool| if file { 200 - swappiness } else { swappiness };
        let anon = self.position(false, 0, gain(false));
        let file = anon.permits(self.position(true, 0, gain(true)));
        let setpoint = self.position(!file, 0, gain(!file));
        (file, self.permitted_tier(setpoint, file, gain(file)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_are_logarithms_of_uses() {
        assert_eq!([0, 1, 2, 3, 4].map(tier_of), [0, 1, 2, 2, 3]);
    }

    #[test]
    fn a_tier_that_refaults_is_protected_until_the_average_has_forgotten_it() {
        let mut feedback = RefaultFeedback::default();
        feedback.evicted[1] = [1000, 500, 100, 0];
        feedback.refaulted[1] = [10, 200, 0, 0];
        assert_eq!(feedback.last_tier(true), 0);
        assert_eq!(feedback.last_tier(false), 3);
        feedback.generation_ends(true);
        assert_eq!(feedback.last_tier(true), 0);
        feedback.generation_ends(true);
        // 50 refaults are fewer than a batch.
        assert_eq!(feedback.last_tier(true), 3);
    }

    #[test]
    fn the_kind_with_fewer_refaults_is_evicted_weighted_by_swappiness() {
        let feedback = RefaultFeedback {
            evicted: [[1000, 0, 0, 0]; 2],
            refaulted: [[100, 0, 0, 0], [200, 0, 0, 0]],
            ..RefaultFeedback::default()
        };
        assert!(!feedback.kind_to_evict(100).0);
        assert!(feedback.kind_to_evict(20).0);
    }
}
