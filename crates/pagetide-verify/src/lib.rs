//! `pagetide verify`: compares the records of a scenario on a real kernel and in the simulator.
//!
//! Reading order: [`ask`] runs the scenario on both sides, [`mod@judge`] grades the counters,
//! [`costs`] fits the costs of operations on the kernel, [`compare`] pairs the records of a variant
//! and gives each counter a verdict, [`summary`] computes a few figures of many comparisons, and
//! [`table`], [`json`] and [`csv`] turn a comparison into text.
//!
//! [`measure`] fits the costs of operations on a live machine.
//!
//! A comparison is a pure function of the two lists of records.

pub mod ask;
pub mod compare;
pub mod costs;
pub mod csv;
pub mod expected;
pub mod fitted_costs;
pub mod json;
pub mod judge;
pub mod measure;
mod plug_times;
pub mod summary;
pub mod table;
mod used_costs;

pub use compare::{
    Agreement, ComparedSides, Comparison, CounterComparison, PhaseComparison, VariantComparison,
};
pub use judge::{judge, CounterGrade};
pub use summary::{summarise, ComparisonSummary, GradeScore};

#[cfg(any(test, feature = "testing"))]
pub mod testing;
