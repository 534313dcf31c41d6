//! Tasks: their operations, calls, phases and end.

pub(crate) mod blocks;
mod execute;
mod exits;
mod madvise;
mod phases;
pub(crate) mod requests;
mod service;
