//! What the cases of the proposals reached, and their exceptions: `bounds.rs` for the patched kernel.

use crate::bounds::{case, grade, time, Case};

/// The cases of experiments/verify/proposals, in order.
pub const CASES_PROPOSALS: &[Case] = &[
    case("kswapd-compaction", grade(0, 0.0, 1.00), grade(0, 0.0, 1.00), time(0, 0.0, 0), &[]),
    case("shrink-priority", grade(0, 0.0, 1.00), grade(0, 0.0, 1.00), time(0, 0.0, 0), &[]),
    case("soft-limit-hierarchical", grade(0, 0.0, 1.00), grade(0, 0.0, 1.00), time(0, 0.0, 0), &[]),
    case("soft-limit-two-pass", grade(0, 0.0, 1.00), grade(0, 0.0, 1.00), time(0, 0.0, 0), &[]),
    case("watermarks-apart", grade(0, 0.0, 1.00), grade(0, 0.0, 1.00), time(0, 0.0, 0), &[]),
];
