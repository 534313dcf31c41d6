//! `[[expect]]`: what the scenario says of its own runs.

use crate::load::decode::{table, Label};
use crate::load::span::At;

table! {
    /// Something that holds in every run.
    Expect {
        /// What it is, in words.
        #[schemars(required)]
        text: At<String>,
        /// The criterion, as `pagetide find` takes one: METRIC OP VALUE, several joined by `and`.
        #[schemars(required)]
        that: At<String>,
        /// The variants of which it is expected (default: all).
        variants: Vec<At<Label>>,
    }
}
