//! Runs experiments and reports their results: variants x seeds -> records -> statistics -> tables,
//! JSON, CSV.
//!
//! Reading order: [`plan`] lists the runs, [`execute`] makes them in parallel, [`report`] gathers
//! the records into columns, [`stats`] summarises samples, and [`table`], [`json`] and [`csv`] turn
//! a report into text; [`report_format`] lists the formats for programs. [`facts`] compares
//! variants and explains differences, [`timeline`] draws one run over time. [`world`] is the
//! interface to the simulator. [`find`] searches the value of a knob, [`sweep`] runs grids of knobs
//! and stores the rows, [`compare`] compares two results. [`explain`] describes names, [`select`]
//! matches metrics. HTML pages, traces and the comparison with a kernel are crates of their own.
//!
//! A report is a pure function of the records: the same scenario, seeds and version give the same
//! bytes, with any number of threads.

pub mod across;
pub mod compare;
pub mod csv;
pub mod dagger;
pub mod execute;
pub mod expect;
pub mod explain;
pub mod facts;
pub mod find;
pub mod format;
pub mod gather;
pub mod heading;
pub mod json;
pub mod knob;
pub mod layout;
pub mod metrics;
pub mod mrc;
pub mod pathology;
pub mod pattern;
pub mod plan;
pub mod report;
pub mod report_format;
pub mod rows;
pub mod select;
pub mod stats;
pub mod sweep;
pub mod table;
pub mod timeline;
pub mod world;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

/// The version that every report names.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
