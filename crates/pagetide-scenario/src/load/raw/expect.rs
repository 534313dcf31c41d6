//! `[[expect]]`: conditions that the runs of the scenario must meet.

use crate::load::decode::{table, Label};
use crate::load::span::At;

table! {
    /// A condition that holds in every run.
    Expect {
        /// The condition in words.
        #[schemars(required)]
        text: At<String>,
        /// The condition: a criterion as in `pagetide find`, METRIC OP VALUE, several joined by
        /// `and`.
        #[schemars(required)]
        that: At<String>,
        /// The variants that must meet it (default: all).
        variants: Vec<At<Label>>,
    }
}
