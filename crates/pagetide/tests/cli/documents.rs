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

/// Experiments of the README and of pages that take minutes.
mod long {
    use super::follow;

    #[test]
    #[cfg_attr(debug_assertions, ignore = "takes minutes: make test-docs")]
    fn readme() {
        follow("README.md");
    }

    #[test]
    #[cfg_attr(debug_assertions, ignore = "takes minutes: make test-docs")]
    fn experiments() {
        follow("docs/experiments.md");
    }

    #[test]
    #[cfg_attr(debug_assertions, ignore = "takes minutes: make test-docs")]
    fn find() {
        follow("docs/find.md");
    }

    #[test]
    #[cfg_attr(debug_assertions, ignore = "takes minutes: make test-docs")]
    fn sweep() {
        follow("docs/sweep.md");
    }
}
