//! Runs the fuzz functions over the stored corpus, with stable Rust, in every test run.

#[path = "../../../../fuzz/host_functions.rs"]
mod functions;

use std::path::Path;

/// Runs `function` over each file of fuzz/corpus/NAME, complete and truncated at some places.
fn run(name: &str, function: fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut count = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        function(&bytes);
        for part in 1..8 {
            function(&bytes[..bytes.len() * part / 8]);
        }
        count += 1;
    }
    assert!(count >= 3, "{count} files in {}", dir.display());
}

#[test]
fn host_zoneinfo() {
    run("host-zoneinfo", functions::host_zoneinfo);
}

#[test]
fn host_proc() {
    run("host-proc", functions::host_proc);
}

#[test]
fn host_system() {
    run("host-system", functions::host_system);
}

#[test]
fn guest_report() {
    run("guest-report", functions::guest_report);
}

#[test]
fn reference() {
    run("reference", functions::reference);
}

#[test]
fn start() {
    run("start", functions::start);
}
