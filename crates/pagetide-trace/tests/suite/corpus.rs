//! Runs the fuzz functions over the stored corpus, on stable Rust.

#[path = "../../../../fuzz/corpus_runner.rs"]
mod corpus_runner;
#[path = "../../../../fuzz/trace_functions.rs"]
mod functions;

use corpus_runner::run;
use pagetide_trace::Format;

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
