//! `pagetide fuzz`: draws scenarios until one shows a pathology, and shrinks that one.
//!
//! Not to be mixed up with the fuzz targets of the repository (`fuzz/`), which feed bytes to single
//! functions, nor with the storms, which test the core with random machines.

pub mod hunt;
pub mod objective;
pub mod output;
mod queue;

#[cfg(test)]
mod hunt_tests;
