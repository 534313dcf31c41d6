//! The daemons of the core as threads, and the times for which they are awake.

mod run;
pub(crate) mod times;
