//! `[[expect]]`: conditions that the runs of the scenario must meet.

use crate::load::decode::{table, Label};
use crate::load::span::Spanned;

table! {
    /// A condition that holds in every run.
    ExpectTable as "Expect" {
        /// The condition in words.
        #[schemars(required)]
        text: Spanned<String>,
        /// The condition: a criterion as in `pagetide find`, METRIC OP VALUE, several joined by
        /// `and`.
        #[schemars(required)]
        that: Spanned<String>,
        /// The variants that must meet it (default: all).
        variants: Vec<Spanned<Label>>,
    }
}
