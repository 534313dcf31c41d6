//! Input and output of a simulation: scenario files, workloads, run records and timelines.
//!
//! * [`load`]: reads and checks scenario files; [`build`] makes scenarios without a file,
//!   [`diagnostic`] shows mistakes, [`schema`] describes the format.
//! * [`model`]: a checked scenario.
//! * [`names`]: the closed sets of names, and hints for other names.
//! * [`workload`]: the kinds of work; a program turns them into operations ([`op`]).
//! * [`draws`]: pseudo-random numbers.
//! * [`metric`]: metrics, and conditions on them.
//! * [`record`]: the result of a run, and its timeline.

pub mod build;
pub mod diagnostic;
pub mod draws;
pub mod load;
pub mod metric;
pub mod model;
pub mod names;
pub mod op;
pub mod record;
pub mod schema;
pub mod workload;
