//! Runs the fuzz functions over the stored corpus, on stable Rust.

#[path = "../../../../fuzz/trace_functions.rs"]
mod functions;

use std::path::Path;

use pagetide_trace::Format;

/// Runs `function` over each file of fuzz/corpus/NAME, and over seven truncations of each.
fn run(name: &str, function: impl Fn(&[u8])) {
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
fn trace() {
    run("trace", functions::trace);
}

#[test]
fn every_format_that_is_imported() {
    for format in Format::ALL {
        run(format.name(), |bytes| functions::import_of(*format, bytes));
    }
}

#[test]
fn input_of_one_format_taken_for_another() {
    for format in Format::ALL {
        run(format.name(), functions::import_all);
    }
}
