//! Runs the fuzz functions over the stored corpus, on stable, in every test run.

#[path = "../../../../fuzz/corpus_runner.rs"]
mod corpus_runner;
#[path = "../../../../fuzz/functions.rs"]
mod functions;

use corpus_runner::run;

#[test]
fn scenario() {
    run("scenario", functions::scenario);
}

#[test]
fn object_mix() {
    run("object-mix", functions::object_mix);
}
