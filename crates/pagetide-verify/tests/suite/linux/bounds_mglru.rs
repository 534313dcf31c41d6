//! Bounds of the cases with the multi-generational LRU (recordings in experiments/verify/mglru), on
//! Linux 6.1 and 6.12. A case is bounded by its medians and by the number of counters that are off
//! by more than half.

use super::bounds_6_12::{held, Held};

const WALKS: &str =
    "A walk over page tables takes no time here. With the rules of 6.1 two reclaimers never walk at \
     once.";

const RANDOM: &str =
    "As above; and pages that faults with random advice read enter the oldest generation, which \
     ends at other moments, so other pages count as active at the end of a phase.";

const MOMENTS: &str =
    "Generations end at other moments, so other pages count as active at the end of a phase. \
     Look-around activates fewer pages: not explained.";

const GROUPS: &str =
    "Which group a walk meets first is drawn at random. On the kernel a group that is ahead stays so \
     for longer: boots differ twice as much as seeds do here. Not explained.";

/// The cases on Linux 6.1.
pub const MGLRU_6_1: &[Held] = &[
    held("anon", (85, 1.5), (158, 3.7), 12, WALKS),
    held("file", (44, 0.2), (50, 0.8), 6, WALKS),
    held("mixed", (126, 0.5), (178, 3.0), 22, WALKS),
    held("scan", (4, 0.3), (23, 2.0), 0, WALKS),
    held("zipf", (10, 0.3), (33, 2.0), 0, WALKS),
];

/// The cases on Linux 6.12.
pub const MGLRU_6_12: &[Held] = &[
    held("anon", (92, 0.7), (159, 6.3), 12, MOMENTS),
    held("file", (48, 0.9), (48, 2.1), 0, RANDOM),
    held("groups", (80, 4.6), (552, 6.6), 59, GROUPS),
    held("mixed", (144, 0.7), (166, 4.0), 9, MOMENTS),
    held("scan", (6, 0.2), (23, 1.4), 4, MOMENTS),
    held("zipf", (10, 0.6), (32, 4.2), 1, MOMENTS),
];
