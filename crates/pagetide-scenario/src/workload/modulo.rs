//! Fast remainders by a divisor that is known long before the dividends.

use crate::draws::prng::mul_high;

/// A divisor with its reciprocal: [`Modulo::of`] multiplies instead of dividing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Modulo {
    divisor: u64,
    /// floor((2^64 - 1) / divisor).
    reciprocal: u64,
}

impl Modulo {
    /// A divisor of 0 counts as 1.
    pub(crate) const fn new(divisor: u64) -> Self {
        let divisor = if divisor == 0 { 1 } else { divisor };
        Self { divisor, reciprocal: u64::MAX / divisor }
    }

    /// `value mod divisor`. The quotient estimate is at most 1 too small.
    #[inline]
    pub(crate) const fn of(&self, value: u64) -> u64 {
        let quotient = mul_high(value, self.reciprocal);
        let rest = value.wrapping_sub(quotient.wrapping_mul(self.divisor));
        if rest >= self.divisor {
            rest - self.divisor
        } else {
            rest
        }
    }

    #[inline]
    pub(crate) const fn divisor(&self) -> u64 {
        self.divisor
    }
}

/// The multiplier that scatters ranks over pages: the 500,000th prime.
pub const SCATTER: u64 = 7_368_787;
/// Replacement if the number of pages is a multiple of [`SCATTER`]: the millionth prime.
pub const SCATTER_ALTERNATE: u64 = 15_485_863;

/// The permutation `i -> i * SCATTER mod pages` of the pages of a region.
///
/// [`SCATTER`] is prime, so this is a permutation unless `pages` is a multiple of it; then
/// [`SCATTER_ALTERNATE`] replaces it. (No region is large enough to be a multiple of both.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scatter {
    multiplier: u64,
    pages: Modulo,
}

impl Scatter {
    pub(crate) const fn new(pages: u64) -> Self {
        let multiplier = if pages.is_multiple_of(SCATTER) { SCATTER_ALTERNATE } else { SCATTER };
        Self { multiplier, pages: Modulo::new(pages) }
    }

    /// The page of `index`, which must be below the number of pages (at most 2^35).
    #[inline]
    pub(crate) const fn page(&self, index: u64) -> u64 {
        self.pages.of(index.wrapping_mul(self.multiplier))
    }

    #[inline]
    pub(crate) const fn pages(&self) -> u64 {
        self.pages.divisor()
    }
}

/// Page of rank `index` in a region of `pages` pages: the permutation that scatters ranks over a
/// region (docs/scenario.md).
pub fn scatter(index: u64, pages: u64) -> u64 {
    Scatter::new(pages).page(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn remainders_are_exact(value: u64, divisor in 1..=u64::MAX) {
            prop_assert_eq!(Modulo::new(divisor).of(value), value % divisor);
        }

        #[test]
        fn remainders_of_small_divisors_are_exact(value: u64, divisor in 1..=4096_u64) {
            prop_assert_eq!(Modulo::new(divisor).of(value), value % divisor);
        }
    }

    #[test]
    fn remainders_at_the_edges() {
        for divisor in [1, 2, 3, 1 << 31, 1 << 63, u64::MAX - 1, u64::MAX] {
            for value in [0, 1, divisor - 1, divisor, divisor.wrapping_add(1), u64::MAX] {
                assert_eq!(Modulo::new(divisor).of(value), value % divisor, "{value} % {divisor}");
            }
        }
    }

    #[test]
    fn scatter_is_a_permutation() {
        for pages in [1_u64, 2, 7, 1000, 49_152, SCATTER, 98_304] {
            let scatter = Scatter::new(pages);
            let mut seen = vec![false; pages as usize];
            for index in 0..pages {
                let page = scatter.page(index) as usize;
                assert!(!std::mem::replace(&mut seen[page], true));
            }
        }
        assert_eq!(Scatter::new(36_864).page(1), SCATTER % 36_864);
    }
}
