//! Runs the fuzz function of slabs over the stored corpus, on stable Rust, with every test run.

#[path = "../../../../fuzz/slab_functions.rs"]
mod slab_functions;

use std::path::Path;

#[test]
fn slab_ops() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/slab-ops");
    let mut count = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        slab_functions::slab_ops(&bytes);
        for part in 1..4 {
            slab_functions::slab_ops(&bytes[..bytes.len() * part / 4]);
        }
        count += 1;
    }
    assert!(count >= 3, "{count} files in {}", dir.display());
}
