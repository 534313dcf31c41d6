//! Tasks: their operations, calls, phases and end.

mod execute;
mod exits;
mod memory;
mod phases;
pub(crate) mod requests;
mod restart;
mod service;
