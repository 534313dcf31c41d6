//! The command `pagetide`, as a script of the Python package starts it.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command with these arguments (the first is the name of the command) and returns its exit code.
///
/// ^C and SIGTERM end it as they end the program itself: they are not Python's while it runs.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| pagetide::main_of(arguments))
}
