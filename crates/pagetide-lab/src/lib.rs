//! One entry for all worlds: variants x seeds -> records -> statistics -> tables, JSON, CSV.
//!
//! Reading order: [`plan`] says what to run, [`execute`] runs it in parallel, [`report`] gathers
//! the records into columns, [`stats`] summarises samples, and [`table`], [`json`] and [`csv`]
//! turn a report into text; [`timeline`] draws one run over time. [`world`] is the door to whatever performs a run. [`verify`] holds the
//! records of a simulated and of a real kernel against each other.
//!
//! A report is a pure function of the records: the same scenario, seeds and version give the same
//! bytes, whatever the number of threads.

pub mod csv;
pub mod execute;
pub mod json;
pub mod metrics;
pub mod mrc;
pub mod output_schema;
pub mod plan;
pub mod report;
pub mod rows;
pub mod stats;
pub mod table;
pub mod timeline;
pub mod verify;
pub mod why;
pub mod world;

mod format;
mod heading;
mod layout;

#[cfg(test)]
mod testing;

/// The version that every report names.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
