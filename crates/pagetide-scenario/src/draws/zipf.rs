//! Zipf-distributed ranks in integer arithmetic, with a small table for any number of ranks.
//!
//! Rank `k` of `1..=n` has weight `k^-s`. Ranks are grouped into buckets in which the weight hardly
//! changes: every rank below 128 alone, and each further octave `[2^j, 2^(j+1))` in 64 buckets of
//! equal width. A draw picks a bucket by its upper bound (width times the weight of its first
//! rank), then a rank within it, and keeps the rank with probability `(first / k)^s`, which is at
//! least `(64/65)^s`; otherwise it starts again. So the distribution is exact up to the precision
//! of the weights (about 32 bits). The table has at most 2048 entries of 24 bytes for any `n`: a
//! draw stays in the first-level cache and takes a few nanoseconds.
//!
//! docs/scenario.md, "Order zipf", defines the draws so that another program can repeat them.

use crate::draws::prng::{mul_high, SplitMix64};

/// Largest number of ranks.
pub const ZIPF_RANKS_MAX: u64 = 1 << 35;
/// Largest exponent, in hundredths.
pub const ZIPF_EXPONENT_HUNDREDTHS_MAX: u32 = 1000;

/// log2 of the number of buckets in an octave.
const SUB_BUCKET_SHIFT: u32 = 6;
/// Fractional bits of logarithms.
const LOG_SHIFT: u32 = 32;
/// A weight of 1.
const ONE: u64 = 1 << 63;
/// log2 of the number of entries of the guide into the bucket table.
const GUIDE_SHIFT: u32 = 12;

/// A table for drawing ranks.
#[derive(Clone, Debug)]
pub struct Zipf {
    buckets: Vec<Bucket>,
    exponent_hundredths: u64,
    /// Sum of all bucket weights.
    total: u64,
    /// `guide[u >> guide_down]` is a bucket at or before the one that `u` falls into.
    guide: Vec<u16>,
    guide_down: u32,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Sum of the weights up to and including this bucket.
    cumulated: u64,
    /// First rank of the bucket.
    first: u64,
    /// Ranks in the bucket.
    width: u32,
    /// Draws below this (in 32 bits) keep any rank of the bucket.
    keep_any: u32,
}

impl Zipf {
    /// Ranks `1..=ranks` with exponent `exponent_hundredths / 100`. `None`: zero or above the
    /// limit.
    pub fn new(ranks: u64, exponent_hundredths: u32) -> Option<Self> {
        if ranks == 0 || ranks > ZIPF_RANKS_MAX {
            return None;
        }
        if exponent_hundredths == 0 || exponent_hundredths > ZIPF_EXPONENT_HUNDREDTHS_MAX {
            return None;
        }
        let exponent = u64::from(exponent_hundredths);
        let mut weights: Vec<u128> = Vec::new();
        let mut buckets: Vec<Bucket> = Vec::new();
        let mut first = 1;
        while first <= ranks {
            let octave = first.ilog2();
            let width = 1_u64 << octave.saturating_sub(SUB_BUCKET_SHIFT);
            let width = width.min(ranks - first + 1);
            let last = first + width - 1;
            let keep_any = power_of_ratio(first, last, exponent) >> 31;
            weights.push(u128::from(power_of_ratio(1, first, exponent)) * u128::from(width));
            buckets.push(Bucket {
                cumulated: 0,
                first,
                width: width as u32,
                keep_any: u32::try_from(keep_any).unwrap_or(u32::MAX),
            });
            first += width;
        }
        let sum: u128 = weights.iter().sum();
        // Leaves space for the product with a 64-bit draw without a carry: the sum fits in 60 bits.
        let down = (128 - sum.leading_zeros()).saturating_sub(60);
        let mut total = 0;
        for (bucket, weight) in buckets.iter_mut().zip(&weights) {
            total += (weight >> down) as u64;
            bucket.cumulated = total;
        }
        assert!(total > 0);
        let guide_down = (64 - total.leading_zeros()).saturating_sub(GUIDE_SHIFT);
        let mut guide = Vec::with_capacity((total >> guide_down) as usize + 1);
        let mut bucket = 0;
        for slot in 0..=(total >> guide_down) {
            while buckets[bucket].cumulated <= slot << guide_down && bucket + 1 < buckets.len() {
                bucket += 1;
            }
            guide.push(bucket as u16);
        }
        Some(Self { buckets, exponent_hundredths: exponent, total, guide, guide_down })
    }

    /// Draws a rank, `1..=ranks`.
    #[inline]
    pub fn draw(&self, prng: &mut SplitMix64) -> u64 {
        loop {
            let u = mul_high(prng.next_u64(), self.total);
            let mut index = usize::from(self.guide[(u >> self.guide_down) as usize]);
            while self.buckets[index].cumulated <= u {
                index += 1;
            }
            let bucket = &self.buckets[index];
            let product = u128::from(prng.next_u64()) * u128::from(bucket.width);
            let rank = bucket.first + (product >> 64) as u64;
            let chance = (product as u64) >> 1;
            let keep = ((chance >> 31) as u32) < bucket.keep_any
                || chance < power_of_ratio(bucket.first, rank, self.exponent_hundredths);
            if keep {
                return rank;
            }
        }
    }
}

/// `(small / large)^(exponent_hundredths / 100)` in units of 2^-63, rounded down.
fn power_of_ratio(small: u64, large: u64, exponent_hundredths: u64) -> u64 {
    debug_assert!(0 < small);
    debug_assert!(small <= large);
    let log = (log2(large) - log2(small)) * exponent_hundredths / 100;
    let whole = log >> LOG_SHIFT;
    if whole >= 64 {
        return 0;
    }
    let mut power = ONE;
    for bit in 0..LOG_SHIFT {
        if log >> (LOG_SHIFT - 1 - bit) & 1 == 1 {
            power = ((u128::from(power) * u128::from(ROOTS[bit as usize])) >> 63) as u64;
        }
    }
    power >> whole
}

/// log2 with 32 fractional bits, rounded down, by repeated squaring.
pub(crate) fn log2(value: u64) -> u64 {
    let whole = value.ilog2();
    let mut log = u64::from(whole) << LOG_SHIFT;
    // The mantissa, in units of 2^-63.
    let mut mantissa = value << (63 - whole);
    for bit in 1..=LOG_SHIFT {
        let square = u128::from(mantissa) * u128::from(mantissa);
        if square >> 127 == 1 {
            log |= 1 << (LOG_SHIFT - bit);
            mantissa = (square >> 64) as u64;
        } else {
            mantissa = (square >> 63) as u64;
        }
    }
    log
}

/// `ROOTS[i]` is 2^-(2^-(i+1)) in units of 2^-63: each is the square root of the one before.
const ROOTS: [u64; LOG_SHIFT as usize] = {
    let mut roots = [0; LOG_SHIFT as usize];
    let mut square = (ONE as u128) / 2;
    let mut i = 0;
    while i < LOG_SHIFT as usize {
        let root = (square << 63).isqrt();
        roots[i] = root as u64;
        square = root;
        i += 1;
    }
    roots
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_and_powers_are_right_to_eight_digits() {
        for value in [1_u64, 2, 3, 5, 100, 7_368_787, (1 << 35) - 1, 1 << 35] {
            let ours = log2(value) as f64 / (1_u64 << 32) as f64;
            assert!((ours - (value as f64).log2()).abs() < 1e-8, "{value}");
        }
        for (small, large, exponent) in [(1, 2, 100), (1, 3, 50), (64, 65, 1000), (3, 1000, 123)] {
            let ours = power_of_ratio(small, large, exponent) as f64 / ONE as f64;
            let exact = (small as f64 / large as f64).powf(exponent as f64 / 100.0);
            assert!((ours / exact - 1.0).abs() < 1e-7, "{small} {large} {exponent}");
        }
        assert_eq!(power_of_ratio(7, 7, 100), ONE);
        assert_eq!(power_of_ratio(1, 1 << 35, 1000), 0);
    }

    #[test]
    fn first_draws_are_pinned() {
        let zipf = Zipf::new(1_000_000, 100).unwrap();
        let mut prng = SplitMix64::new(1);
        let ranks: Vec<u64> = (0..8).map(|_| zipf.draw(&mut prng)).collect();
        // A separate program written from docs/scenario.md gives the same values.
        assert_eq!(ranks, [1979, 659_000, 343, 171_055, 35, 193, 398, 300]);
        let zipf = Zipf::new(1 << 31, 75).unwrap();
        let mut prng = SplitMix64::new(5);
        let ranks: Vec<u64> = (0..4).map(|_| zipf.draw(&mut prng)).collect();
        assert_eq!(ranks, [49_677_497, 6_625_646, 2_863_287, 2_021_840_780]);
    }

    #[test]
    fn frequencies_follow_the_law() {
        for (ranks, exponent) in [(1000_u64, 100), (1000, 50), (300, 250), (1, 100), (200, 1)] {
            let zipf = Zipf::new(ranks, exponent).unwrap();
            let mut prng = SplitMix64::new(7);
            let draws = 400_000;
            let mut seen = vec![0_u32; ranks as usize + 1];
            for _ in 0..draws {
                seen[zipf.draw(&mut prng) as usize] += 1;
            }
            assert_eq!(seen[0], 0);
            let weight = |k: u64| (k as f64).powf(-f64::from(exponent) / 100.0);
            let sum: f64 = (1..=ranks).map(weight).sum();
            for k in 1..=ranks {
                let expected = f64::from(draws) * weight(k) / sum;
                let slack = 6.0 * expected.sqrt() + 6.0;
                let got = f64::from(seen[k as usize]);
                assert!(
                    (got - expected).abs() < slack,
                    "n {ranks} s {exponent} k {k}: {got} {expected}"
                );
            }
        }
    }

    #[test]
    fn the_table_is_small_and_covers_every_rank() {
        for ranks in [1, 63, 64, 65, 127, 128, 129, 1 << 20, (1 << 31) + 1, ZIPF_RANKS_MAX] {
            let zipf = Zipf::new(ranks, 100).unwrap();
            assert!(zipf.buckets.len() <= 2048, "{ranks}: {}", zipf.buckets.len());
            let mut next = 1;
            for bucket in &zipf.buckets {
                assert_eq!(bucket.first, next);
                next += u64::from(bucket.width);
            }
            assert_eq!(next, ranks + 1);
        }
    }

    #[test]
    fn limits_are_enforced() {
        assert!(Zipf::new(0, 100).is_none());
        assert!(Zipf::new(ZIPF_RANKS_MAX + 1, 100).is_none());
        assert!(Zipf::new(10, 0).is_none());
        assert!(Zipf::new(10, ZIPF_EXPONENT_HUNDREDTHS_MAX + 1).is_none());
        // Extremes still draw.
        let mut prng = SplitMix64::new(3);
        for (ranks, exponent) in [(ZIPF_RANKS_MAX, 1), (ZIPF_RANKS_MAX, 1000), (2, 1000)] {
            let zipf = Zipf::new(ranks, exponent).unwrap();
            for _ in 0..1000 {
                assert!((1..=ranks).contains(&zipf.draw(&mut prng)));
            }
        }
    }
}
