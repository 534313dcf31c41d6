//! Histogram of latencies, with buckets of about 0.1 % width.
//!
//! It corresponds to bpftrace's `hist()`, or to the HDR histogram of a load generator on a real
//! machine.
//!
//! Invariant: `max`, `min`, `sum` and `count` are exact. Percentiles are upper bounds, at most 0.1
//! % above a recorded value and never above `max`. No decision of the simulator depends on a
//! histogram.

use hdrhistogram::Histogram;
use pagetide_core::units::Nanos;

/// Three significant digits: 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    buckets: Histogram<u64>,
    sum_ns: u128,
    min_ns: Nanos,
    max_ns: Nanos,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self::new()
    }
}

impl LatencyHistogram {
    pub fn new() -> Self {
        let buckets = Histogram::new(SIGNIFICANT_DIGITS).expect("three digits are allowed");
        Self { buckets, sum_ns: 0, min_ns: Nanos::MAX, max_ns: 0 }
    }

    pub fn record(&mut self, latency_ns: Nanos) {
        self.buckets.record(latency_ns).expect("the histogram resizes itself");
        self.sum_ns += u128::from(latency_ns);
        self.min_ns = self.min_ns.min(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
    }

    pub fn merge(&mut self, other: &LatencyHistogram) {
        self.buckets.add(&other.buckets).expect("both histograms resize themselves");
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Upper bound (in nanoseconds) and count of each bucket for output. These buckets are the same
    /// in every run and less than 1 % wide: steps of 1/128 of the power of two below.
    pub fn buckets(&self) -> Vec<(Nanos, u64)> {
        let mut out: Vec<(Nanos, u64)> = Vec::new();
        for bucket in self.buckets.iter_recorded() {
            let value = bucket.value_iterated_to();
            let width = (value.max(1).ilog2()).saturating_sub(7);
            let bound = ((value >> width) << width) + ((1 << width) - 1);
            let count = bucket.count_since_last_iteration();
            match out.last_mut() {
                Some((last, sum)) if *last == bound => *sum += count,
                _ => out.push((bound, count)),
            }
        }
        out
    }

    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    pub fn sum(&self) -> u128 {
        self.sum_ns
    }

    /// Mean, rounded down; 0 if empty.
    pub fn mean(&self) -> Nanos {
        self.sum_ns.checked_div(u128::from(self.count())).unwrap_or(0) as Nanos
    }

    /// Smallest latency; 0 if empty.
    pub fn min(&self) -> Nanos {
        if self.is_empty() {
            0
        } else {
            self.min_ns
        }
    }

    /// Largest latency, exact; 0 if empty.
    pub fn max(&self) -> Nanos {
        self.max_ns
    }

    /// The value at or below which `permyriad` of 10 000 latencies are; 0 if empty.
    ///
    /// Uses integers only: the rank is `ceil(count * permyriad / 10000)`, at least 1.
    pub fn permyriad(&self, permyriad: u32) -> Nanos {
        assert!(permyriad <= 10_000);
        let count = u128::from(self.count());
        let rank = (count * u128::from(permyriad)).div_ceil(10_000).max(1);
        let mut seen = 0u128;
        for bucket in self.buckets.iter_recorded() {
            seen += u128::from(bucket.count_since_last_iteration());
            if seen >= rank {
                return self
                    .buckets
                    .highest_equivalent(bucket.value_iterated_to())
                    .min(self.max_ns);
            }
        }
        self.max_ns
    }

    pub fn p50(&self) -> Nanos {
        self.permyriad(5_000)
    }

    pub fn p99(&self) -> Nanos {
        self.permyriad(9_900)
    }

    pub fn p999(&self) -> Nanos {
        self.permyriad(9_990)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_histogram_says_zero() {
        let histogram = LatencyHistogram::new();
        assert!(histogram.is_empty());
        let all =
            [histogram.p50(), histogram.p999(), histogram.max(), histogram.min(), histogram.mean()];
        assert_eq!(all, [0; 5]);
    }

    #[test]
    fn percentiles_of_one_to_a_thousand_microseconds() {
        let mut histogram = LatencyHistogram::new();
        for us in (1..=1000).rev() {
            histogram.record(us * 1000);
        }
        let near = |value: Nanos, expected: Nanos| {
            assert!(value >= expected, "{value} is below {expected}");
            assert!(value - expected <= expected / 1000 + 1, "{value} is far above {expected}");
        };
        near(histogram.p50(), 500_000);
        near(histogram.p99(), 990_000);
        near(histogram.p999(), 999_000);
        assert_eq!(histogram.permyriad(10_000), 1_000_000);
        assert_eq!(histogram.max(), 1_000_000);
        assert_eq!(histogram.min(), 1000);
        assert_eq!(histogram.mean(), 500_500);
        assert_eq!(histogram.count(), 1000);
    }

    #[test]
    fn buckets_hold_everything_and_are_narrow() {
        let mut histogram = LatencyHistogram::new();
        let values: Vec<Nanos> = (0..5000).map(|i| i * i * i).collect();
        values.iter().for_each(|&value| histogram.record(value));
        let buckets = histogram.buckets();
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 5000);
        assert!(buckets.windows(2).all(|pair| pair[0].0 < pair[1].0));
        // A value is in the first bucket with a bound that is not below it, within the 0.1 % of the
        // histogram.
        for value in [0, 1, 125, 216, 1_000_000, 4999 * 4999 * 4999_u64] {
            let bound = buckets.iter().map(|(bound, _)| *bound).find(|bound| *bound >= value);
            let bound = bound.unwrap_or(buckets.last().unwrap().0);
            assert!(bound as f64 <= value as f64 * 1.01 + 1.0, "{value} is in {bound}");
        }
    }

    #[test]
    fn small_and_huge_values_are_kept() {
        let mut histogram = LatencyHistogram::new();
        histogram.record(0);
        histogram.record(3_600_000_000_000);
        assert_eq!(histogram.p50(), 0);
        assert_eq!(histogram.max(), 3_600_000_000_000);
        assert_eq!(histogram.p99(), 3_600_000_000_000);
    }

    #[test]
    fn merging_is_recording_both() {
        let (mut a, mut b, mut both) =
            (LatencyHistogram::new(), LatencyHistogram::new(), LatencyHistogram::new());
        for i in 0..1000 {
            let value = i * i * 17;
            if i % 2 == 0 { &mut a } else { &mut b }.record(value);
            both.record(value);
        }
        a.merge(&b);
        assert_eq!(a.count(), both.count());
        for permyriad in [1, 100, 5000, 9000, 9990, 10_000] {
            assert_eq!(a.permyriad(permyriad), both.permyriad(permyriad));
        }
        assert_eq!((a.min(), a.max(), a.sum()), (both.min(), both.max(), both.sum()));
    }
}
