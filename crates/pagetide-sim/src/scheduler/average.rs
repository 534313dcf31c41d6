//! Exponentially decaying averages of load.
//!
//! Linux 6.1, kernel/sched/pelt.c (per-entity load tracking): time is divided into periods of 1024
//! us. The weight of a period halves every 32 periods. A *sum* is the decayed integral of a rate (a
//! weight, a number of tasks). The average is the sum divided by the sum of a constant rate of 1.
//!
//! Differs from Linux: periods start at multiples of their length for all sums, so sums can be
//! added and subtracted. In Linux the periods of each entity start at its creation.
//!
//! Invariant: a sum under a rate of at most `r` is at most `r` times [`SUM_MAX`].

use pagetide_core::units::Nanos;

/// log2 of the nanoseconds in a unit; units in a period.
const UNIT_SHIFT: u32 = 10;
const PERIOD: u64 = 1024;
/// Periods after which a contribution has half its weight (`LOAD_AVG_PERIOD`).
const HALF_LIFE: usize = 32;
/// `y^n` for `n` below the half-life, in units of 2^-32, with `y^32 = 1/2`.
const DECAY: [u64; HALF_LIFE] = decays();
/// Limit of the sum of a rate of 1 (`LOAD_AVG_MAX`).
pub(super) const SUM_MAX: u64 = sum_max();

/// The square root, rounded down.
const fn sqrt(value: u128) -> u128 {
    let (mut low, mut high) = (0u128, 1u128 << 64);
    while low + 1 < high {
        let middle = (low + high) / 2;
        if middle * middle <= value {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

const fn decays() -> [u64; HALF_LIFE] {
    // 1/2 and its fifth repeated square root, in units of 2^-62.
    let mut y = 1u128 << 61;
    let mut roots = 0;
    while roots < HALF_LIFE.ilog2() {
        y = sqrt(y << 62);
        roots += 1;
    }
    let mut table = [0; HALF_LIFE];
    let (mut power, mut n) = (1u128 << 62, 0);
    while n < HALF_LIFE {
        let rounded = (power >> 30) as u64;
        table[n] = if rounded > u32::MAX as u64 { u32::MAX as u64 } else { rounded };
        power = (power * y) >> 62;
        n += 1;
    }
    table
}

const fn sum_max() -> u64 {
    let (mut sum, mut last) = (PERIOD, 0);
    while sum != last {
        last = sum;
        sum = ((sum * DECAY[1]) >> 32) + PERIOD;
    }
    sum
}

const fn decay(sum: u64, periods: u64) -> u64 {
    let halvings = periods / HALF_LIFE as u64;
    if halvings >= 64 {
        return 0;
    }
    let factor = DECAY[(periods % HALF_LIFE as u64) as usize] as u128;
    (((sum >> halvings) as u128 * factor) >> 32) as u64
}

/// Time since the last update of a sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct ElapsedLoad {
    periods: u64,
    /// Contribution of a rate of 1 in that time.
    added: u64,
}

impl ElapsedLoad {
    /// The sum after that time with the given rate.
    #[inline]
    pub(super) fn grow(self, sum: u64, rate: u64) -> u64 {
        let old = if self.periods == 0 { sum } else { decay(sum, self.periods) };
        old + rate * self.added
    }
}

/// Time of the last update of a sum, in units.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoadClock(u64);

impl LoadClock {
    /// Advances to `now`; `None` if that is not later.
    #[inline]
    pub(super) fn advance(&mut self, now: Nanos) -> Option<ElapsedLoad> {
        let (from, to) = (self.0, now >> UNIT_SHIFT);
        if to <= from {
            return None;
        }
        self.0 = to;
        let periods = to / PERIOD - from / PERIOD;
        if periods == 0 {
            return Some(ElapsedLoad { periods, added: to - from });
        }
        let first = decay(PERIOD - from % PERIOD, periods);
        let whole = SUM_MAX - decay(SUM_MAX, periods) - PERIOD;
        Some(ElapsedLoad { periods, added: first + whole + to % PERIOD })
    }

    /// The sum of a constant rate of 1 by now.
    #[inline]
    pub(super) fn divider(self) -> u64 {
        SUM_MAX - PERIOD + self.0 % PERIOD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit is the kernel's `LOAD_AVG_MAX`, and a load halves in 32 periods.
    #[test]
    fn sums_grow_and_decay_as_the_kernel_s() {
        assert_eq!(SUM_MAX, 47_742);
        assert!((1u64 << 39) - decay(1 << 40, 32) <= 1 << 8);
        assert_eq!(decay(u64::MAX, 64 * 32), 0);
        let (mut up_to, mut sum) = (LoadClock::default(), 0);
        let period_ns = PERIOD << UNIT_SHIFT;
        sum = up_to.advance(32 * period_ns).unwrap().grow(sum, 1024);
        let average = sum / up_to.divider();
        assert!((505..=520).contains(&average), "{average} after a half-life");
        sum = up_to.advance(1000 * period_ns).unwrap().grow(sum, 1024);
        assert!((1022..=1024).contains(&(sum / up_to.divider())));
        sum = up_to.advance(1032 * period_ns).unwrap().grow(sum, 0);
        assert!((505..=520).contains(&(sum / up_to.divider())));
    }

    /// Except for rounding, a sum does not depend on the number of its updates.
    #[test]
    fn steps_may_be_of_any_length() {
        for step_ns in [1_000, 30_000, 1_048_576, 7_000_000] {
            let (mut often, mut sum) = (LoadClock::default(), 0);
            for now in (0..=280_000_000).step_by(step_ns) {
                if let Some(passed) = often.advance(now) {
                    sum = passed.grow(sum, 1024);
                }
            }
            let (mut once, last) = (LoadClock::default(), 280_000_000 / step_ns * step_ns);
            let whole = once.advance(last as Nanos).unwrap().grow(0, 1024);
            assert!(sum.abs_diff(whole) * 1000 < whole, "{step_ns}: {sum}, {whole}");
        }
    }
}
