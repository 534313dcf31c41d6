//! Runs the fuzz function of slabs over the stored corpus, on stable Rust, with every test run.

#[path = "../../../../fuzz/corpus_runner.rs"]
mod corpus_runner;
#[path = "../../../../fuzz/slab_functions.rs"]
mod slab_functions;

#[test]
fn slab_ops() {
    corpus_runner::run("slab-ops", slab_functions::slab_ops);
}
