//! Pseudo-random generators whose numbers do not change with library versions or machines.
//!
//! Two generators, both small enough to write down in any language:
//!
//! * [`Lcg`]: the generator of the hot/cold working set. The reference data of real kernels were
//!   made with it, so its constants and the order of its draws are part of the workload's
//!   definition.
//! * [`SplitMix64`]: for everything else (Steele, Lea, Flood: "Fast splittable pseudorandom number
//!   generators", 2014). One word of state, no bad seeds.
//!
//! Bounded draws use integers only. [`sub_seed`] derives the seeds of the parts of a run by name,
//! so that a new draw in one part does not shift the others.

/// `x <- x * 6364136223846793005 + 1442695040888963407 mod 2^64`; a draw is the new `x >> 33`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lcg {
    x: u64,
}

impl Lcg {
    pub const fn new(seed: u64) -> Self {
        Self { x: seed }
    }

    /// The next draw, a number below 2^31.
    #[inline]
    pub fn draw(&mut self) -> u64 {
        self.x =
            self.x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.x >> 33
    }
}

/// The 64-bit finaliser of [`SplitMix64`]: a bijection that spreads every input bit.
#[inline]
pub const fn mix64(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub(crate) const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// `state <- state + 0x9e3779b97f4a7c15`; a draw is `mix64(state)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next draw: 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN_GAMMA);
        mix64(self.state)
    }

    /// A number below `bound`: the high word of `draw * bound`. It takes exactly one draw; the bias
    /// is below `bound / 2^64`. A `bound` of 0 gives 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        mul_high(self.next_u64(), bound)
    }
}

/// The high word of the 128-bit product.
#[inline]
pub(crate) const fn mul_high(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// The seed of the part called `name` of a run with seed `seed`:
/// `mix64(mix64(seed + 0x9e3779b97f4a7c15) ^ fnv1a64(name))`.
pub fn sub_seed(seed: u64, name: &str) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in name.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    mix64(mix64(seed.wrapping_add(GOLDEN_GAMMA)) ^ hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lcg_draws_are_the_documented_ones() {
        let mut lcg = Lcg::new(1);
        // (6364136223846793005 + 1442695040888963407) >> 33, and so on.
        assert_eq!(lcg.draw(), 7_806_831_264_735_756_412 >> 33);
        let draws: Vec<u64> = (0..3).map(|_| lcg.draw()).collect();
        let mut x: u128 = 7_806_831_264_735_756_412;
        for draw in draws {
            x = (x * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % (1 << 64);
            assert_eq!(u128::from(draw), x >> 33);
        }
    }

    #[test]
    fn split_mix_matches_the_published_sequence() {
        // Seed 1234567, first outputs of the reference implementation.
        let mut prng = SplitMix64::new(1_234_567);
        assert_eq!(prng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(prng.next_u64(), 3_203_168_211_198_807_973);
        assert_eq!(prng.next_u64(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn bounded_draws_stay_below_the_bound() {
        let mut prng = SplitMix64::new(0);
        for bound in [1, 2, 3, 1000, u64::MAX] {
            for _ in 0..100 {
                assert!(prng.below(bound) < bound);
            }
        }
        assert_eq!(prng.below(0), 0);
    }

    #[test]
    fn sub_seeds_differ_by_name_and_by_seed() {
        assert_ne!(sub_seed(1, "a"), sub_seed(1, "b"));
        assert_ne!(sub_seed(1, "a"), sub_seed(2, "a"));
        assert_eq!(sub_seed(1, "a"), sub_seed(1, "a"));
    }
}
