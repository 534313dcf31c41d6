//! Files that show one run step by step: an observer for each format.
//!
//! [`JsonLines`] and [`Ftrace`] write the events of reclaim, [`Perfetto`] all that threads and CPUs do besides, and
//! the counters of the run's timeline. docs/events.md describes the formats.

mod ftrace;
mod json_lines;
mod perfetto;

pub use ftrace::Ftrace;
pub use json_lines::JsonLines;
pub use perfetto::{Perfetto, MAGIC as PERFETTO_MAGIC};
