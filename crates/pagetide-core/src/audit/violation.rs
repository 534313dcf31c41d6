//! The violation that an audit reports.

use alloc::string::String;

/// The first violated invariant, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(pub String);

impl core::fmt::Display for Violation {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Violation {}

/// Ends an audit with a [`Violation`] unless a condition holds.
macro_rules! check {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::audit::violation::Violation(alloc::format!($($message)+)));
        }
    };
}
pub(crate) use check;
