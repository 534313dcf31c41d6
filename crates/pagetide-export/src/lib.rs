//! A simulated run over time, in the formats of other tools.
//!
//! [`JsonLines`] and [`Perfetto`] observe a run: the first writes the events of reclaim, the second
//! also what threads and CPUs do, and the counters of the timeline. [`openmetrics`] writes the
//! timeline for Prometheus. docs/outputs.md describes the formats.

mod json_lines;
pub mod openmetrics;
mod perfetto;

pub use json_lines::JsonLines;
pub use perfetto::{Perfetto, MAGIC as PERFETTO_MAGIC};
