//! Documents show the actual output of their commands, and their links resolve.
//!
//! `PAGETIDE_ACCEPT=1` writes the output into the documents. Documents with long experiments run in
//! the release build only: `make test-docs`.

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

/// Documents with experiments that take minutes.
mod long {
    use super::follow;

    #[test]
    #[cfg_attr(debug_assertions, ignore = "takes minutes: make test-docs")]
    fn readme() {
        follow("README.md");
    }

    #[test]
    #[cfg_attr(debug_assertions, ignore = "takes minutes: make test-docs")]
    fn questions() {
        follow("docs/questions.md");
    }
}
