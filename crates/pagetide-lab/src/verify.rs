//! A scenario held against a real kernel: the records of both worlds, counter by counter.
//!
//! Reading order: [`ask`] has both worlds run the scenario, [`mod@judge`] says which counters count, [`costs`] what
//! operations cost on the kernel, [`compare`] pairs the records of a variant and gives each counter a verdict,
//! [`summary`] boils many comparisons down to a few figures, and [`table`], [`json`] and [`csv`] turn a comparison
//! into text.
//!
//! A comparison is a pure function of the two lists of records: who made them, and where, enters
//! only as text.

pub mod ask;
pub mod compare;
pub mod costs;
pub mod csv;
pub mod expected;
pub mod fitted_costs;
pub mod json;
pub mod judge;
pub mod summary;
pub mod table;
mod used_costs;

pub use compare::{Comparison, Counter, Phase, Sides, VariantComparison, Verdict};
pub use judge::{judge, Judgement};
pub use summary::{summarise, Score, Summary};

#[cfg(test)]
pub(crate) mod testing;
