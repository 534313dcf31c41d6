//! One entry for all worlds: variants x seeds -> records -> statistics -> tables, JSON, CSV.
//!
//! Reading order: [`plan`] says what to run, [`execute`] runs it in parallel, [`report`] gathers
//! the records into columns, [`stats`] summarises samples, and [`table`], [`json`] and [`csv`]
//! turn a report into text; [`verdict`] says which variant is better at what; [`timeline`] draws one run over time,
//! [`traces`] writes it down step by step. [`world`] is the door to whatever performs a run.
//! [`find`] searches the value of a knob, [`sweep`] runs grids of knobs and keeps them, [`compare`] holds two
//! results against each other. [`explain`] says what a name means, [`select`] which metrics a pattern means,
//! [`openmetrics`] writes a timeline for Prometheus. [`verify`] holds the records of a simulated and of a real
//! kernel against each other; [`measure`] solves for what operations cost on a live machine.
//!
//! A report is a pure function of the records: the same scenario, seeds and version give the same
//! bytes, whatever the number of threads.

pub mod compare;
pub mod csv;
pub mod execute;
pub mod expect;
pub mod explain;
pub mod find;
pub mod gather;
pub mod html;
pub mod json;
pub mod knob;
pub mod measure;
pub mod metrics;
pub mod mrc;
pub mod openmetrics;
pub mod output_schema;
pub mod pattern;
pub mod plan;
pub mod report;
pub mod rows;
pub mod select;
pub mod stats;
pub mod sweep;
pub mod table;
pub mod timeline;
pub mod traces;
pub mod verdict;
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
