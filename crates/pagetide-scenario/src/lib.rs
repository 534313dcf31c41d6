//! Input and output of a simulation: scenario files, workloads, run records and timelines.

pub mod build;
pub mod costs;
pub mod criterion;
pub mod diagnostic;
pub mod kernel_objects;
pub mod latency_shape;
pub mod load;
pub mod metric;
pub mod model;
pub mod names;
pub mod near;
pub mod object_mix;
pub mod op;
pub mod policies;
pub mod prng;
pub mod quantity;
pub mod record;
pub mod schema;
pub mod switches;
pub mod takes;
pub mod timeline;
pub mod unmodelled;
pub mod workload;
pub mod zipf;
