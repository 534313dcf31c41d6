//! What documents show is what their commands print, and their links lead somewhere.
//!
//! `PAGETIDE_ACCEPT=1` writes what is printed into the documents. Those with experiments take minutes and are left
//! to the release build: `make test-docs`.

use crate::document::follow;

#[test]
fn node_watermarks() {
    follow("docs/tutorials/node-watermarks.md");
}

#[test]
fn protect_a_service() {
    follow("docs/tutorials/protect-a-service.md");
}

#[test]
fn mm_developer() {
    follow("docs/tutorials/mm-developer.md");
}

#[test]
fn trace_study() {
    follow("docs/tutorials/trace-study.md");
}
