//! Bounds of the cases with the multi-generational LRU (recordings in experiments/verify/mglru), on
//! Linux 6.1 and 6.12. A case is bounded by its medians and by the number of counters that are off
//! by more than half.

use super::bounds_6_12::{held, Held};

const WALKS: &str =
    "A walk over page tables takes no time here, and two reclaimers never walk at once.";

const RANDOM: &str =
    "As above; and pages that faults with random advice read enter the oldest generation, which \
     ends at other moments, so other pages count as active at the end of a phase.";

const REFAULTS: &str =
    "Pagetide counts 1.5 to 2.6 times as many refaults of anonymous pages: not explained.";

const GROUPS: &str =
    "Which group a walk meets first is drawn at random on both sides. The kernel also counts 1000 \
     to 2400 activations a phase, and Pagetide none: not explained.";

/// The cases on Linux 6.1.
pub const MGLRU_6_1: &[Held] = &[
    held("anon", (85, 1.7), (158, 3.4), 13, WALKS),
    held("file", (44, 0.3), (50, 15.8), 20, RANDOM),
    held("mixed", (126, 0.5), (178, 3.0), 22, WALKS),
    held("scan", (4, 0.7), (23, 1.9), 0, WALKS),
    held("zipf", (10, 0.3), (33, 2.0), 0, WALKS),
];

/// The cases on Linux 6.12.
pub const MGLRU_6_12: &[Held] = &[
    held("anon", (92, 3.0), (166, 7.2), 30, REFAULTS),
    held("groups", (78, 5.1), (564, 8.8), 112, GROUPS),
];
