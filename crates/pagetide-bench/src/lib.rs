//! Shared code of the benches: a world without time, streams of requests, and clocks.
//!
//! Benches themselves are in `benches/` (criterion) and `src/bin/` (long runs and peers).
//! docs/benchmarks.md has the commands and results.

#![forbid(unsafe_code)]

pub mod clock;
pub mod driver;
pub mod no_bytes;
pub mod objects;
pub mod stream;
