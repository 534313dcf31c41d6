//! Draws without a random generator: numbers that look random, made from a position.
//!
//! Linux: `get_random_u32`, where it only spreads things. Invariant: equal positions give equal
//! numbers on any machine.

/// A permutation of all 64-bit values without visible order (the finaliser of splitmix64).
pub(crate) const fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
