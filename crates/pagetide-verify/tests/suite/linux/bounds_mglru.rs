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

/// Three runs of one boot agree, but those of another boot do not: two recordings differ by 15.5 % in
/// the median of the counters that vary, and Pagetide is 0.3 % from two that begin 7 and 23 ms later.
const BOOT: &str = "The state of a boot decides how many generations follow; see docs/mglru.md.";

const REFAULTS: &str =
    "Pagetide counts 1.5 to 2.6 times as many refaults of anonymous pages: not explained.";

const GROUPS: &str =
    "Which group a walk meets first is drawn at random on both sides, and the kernel's runs differ by \
     half in activations and sorted pages.";

/// The cases on Linux 6.1.
pub const MGLRU_6_1: &[Held] = &[
    held("anon", (85, 1.7), (158, 3.4), 13, WALKS),
    held("file", (44, 0.3), (50, 15.8), 20, BOOT),
    held("mixed", (126, 0.5), (178, 3.0), 22, WALKS),
    held("scan", (4, 0.7), (23, 1.9), 0, WALKS),
    held("zipf", (10, 0.3), (33, 2.0), 0, WALKS),
];

/// The cases on Linux 6.12.
pub const MGLRU_6_12: &[Held] = &[
    held("anon", (92, 1.2), (160, 5.5), 16, REFAULTS),
    held("file", (48, 0.7), (48, 1.5), 1, RANDOM),
    held("groups", (76, 3.1), (542, 5.3), 50, GROUPS),
    held("mixed", (144, 2.0), (170, 6.7), 18, WALKS),
    held("scan", (6, 0.7), (22, 2.6), 6, WALKS),
    held("zipf", (10, 0.8), (30, 3.4), 1, WALKS),
];
