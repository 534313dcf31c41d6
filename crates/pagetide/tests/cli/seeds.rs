//! docs/seeds.md and the calibrated scenarios match their records, and the records match the
//! experiments: scripts/seeds/seeds.py. Without Python 3.11 the tests print a message and pass.

use pagetide_testing::{accepts, root};
use std::process::{Command, Output};

/// Runs the script with the built command, or reports that Python is missing.
fn script(arguments: &[&str]) -> Option<Output> {
    let python = std::env::var("PAGETIDE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_toml = Command::new(&python).args(["-c", "import tomllib"]).output();
    if !has_toml.is_ok_and(|ran| ran.status.success()) {
        eprintln!("skipped: {python} is no Python 3.11 or newer");
        return None;
    }
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).to_string();
    let ran = Command::new(python)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg(root().join("scripts/seeds/seeds.py"))
        .args(["--pagetide", env!("CARGO_BIN_EXE_pagetide"), "--jobs", &jobs])
        .args(arguments)
        .output();
    Some(ran.expect("Python has just run"))
}

#[track_caller]
fn succeeds(arguments: &[&str]) {
    if let Some(ran) = script(arguments) {
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
}

#[test]
fn the_page_is_what_the_records_give() {
    succeeds(&["check"]);
}

/// The name makes `make test-docs` run it. `PAGETIDE_ACCEPT=1` records again, `PAGETIDE_ONLY=NAME`
/// selects one experiment.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes: make test-docs")]
fn records_of_documents_are_what_the_experiments_give() {
    let only = std::env::var("PAGETIDE_ONLY").ok();
    let experiments = [
        "soft-limit",
        "kcompactd",
        "slab-boot",
        "slab-sysbench",
        "slab-build",
        "tunable-watermarks",
        "tunable-watermarks-4g",
        "shrink-priority",
    ];
    let wanted =
        experiments.into_iter().filter(|name| only.as_deref().is_none_or(|one| one == *name));
    let names: Vec<&str> = wanted.collect();
    if names.is_empty() {
        return;
    }
    succeeds(&[&[if accepts() { "run" } else { "compare" }], names.as_slice()].concat());
    if accepts() {
        succeeds(&["page"]);
    }
}
