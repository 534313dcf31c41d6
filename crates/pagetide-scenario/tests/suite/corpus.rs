//! Runs the fuzz functions over the stored corpus, on stable, in every test run.

#[path = "../../../../fuzz/functions.rs"]
mod functions;

use std::path::Path;

/// Runs `function` over fuzz/corpus/NAME: each file, whole and cut at several positions.
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
fn scenario() {
    run("scenario", functions::scenario);
}

#[test]
fn object_mix() {
    run("object-mix", functions::object_mix);
}
