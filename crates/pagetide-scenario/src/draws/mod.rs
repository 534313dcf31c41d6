//! Pseudo-random draws, the same on every machine.

pub mod prng;
pub mod zipf;
