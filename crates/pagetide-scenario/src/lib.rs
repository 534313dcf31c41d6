//! What to run and what came out: scenario files, workloads as streams of accesses, page traces,
//! run records.

pub mod model;
pub mod op;
pub mod prng;
pub mod record;
pub mod workload;
pub mod zipf;
