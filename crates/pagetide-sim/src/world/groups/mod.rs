//! The groups of the setup, and operations on them.

pub(crate) mod operations;
