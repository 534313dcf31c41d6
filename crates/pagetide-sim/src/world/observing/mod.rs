//! What observers and tests see of a run.

pub(crate) mod decisions;
pub(crate) mod observations;
