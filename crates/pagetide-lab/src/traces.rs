//! Traces of a run: one observer per format.
//!
//! [`JsonLines`] and [`Ftrace`] write the events of reclaim. [`Perfetto`] also writes what threads
//! and CPUs do, and the counters of the timeline. docs/outputs.md describes the formats.

mod ftrace;
mod json_lines;
mod perfetto;

pub use ftrace::Ftrace;
pub use json_lines::JsonLines;
pub use perfetto::{Perfetto, MAGIC as PERFETTO_MAGIC};
