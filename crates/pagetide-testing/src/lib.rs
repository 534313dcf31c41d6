//! Helpers for the tests of several crates: scenarios from text and their runs, directories for
//! files, the built command.
//!
//! Only a dev-dependency. The unit tests of a crate on which this one depends cannot use a function
//! that returns a type of that crate: it is another type than theirs.

pub mod command;
pub mod directory;
#[cfg(feature = "sim")]
pub mod runs;
pub mod scenarios;

#[cfg(feature = "sim")]
pub use runs::{run_text, value};
pub use scenarios::{experiment, scenario, scenario_in, scenario_with, setup};
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Whether a test writes what it found into its files, instead of comparing.
pub fn accepts() -> bool {
    std::env::var_os("PAGETIDE_ACCEPT").is_some()
}
