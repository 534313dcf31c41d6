//! Runs a fuzz function over the stored corpus with stable Rust. Tests of several crates include it.

use std::path::Path;

/// Runs `function` over each file of fuzz/corpus/NAME, complete and truncated at seven places.
pub fn run(name: &str, function: impl Fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut count = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        function(&bytes);
        for part in 1..8 {
            function(&bytes[..bytes.len() * part / 8]);
        }
        count += 1;
    }
    assert!(count >= 3, "{count} files in {}", dir.display());
}
