//! Traces of a run: one observer per format.
//!
//! [`JsonLines`] writes the events of reclaim. [`Perfetto`] also writes what threads and CPUs do,
//! and the counters of the timeline. docs/outputs.md describes the formats.

mod json_lines;
mod perfetto;

pub use json_lines::JsonLines;
pub use perfetto::{Perfetto, MAGIC as PERFETTO_MAGIC};
