//! The command `pagetide`, started by a script of the Python package.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the command with these arguments (the first is the name of the command) and returns its
/// exit code.
///
/// ^C and SIGTERM work as in the native program: the command handles them instead of Python.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| pagetide::main_of(arguments))
}
