//! Bounds of the cases with zram and zswap (experiments/verify/compressed), on Linux 6.1 and 6.12.
//! Contents of pages are drawn on each side, so counters scatter by half a per cent. A case is
//! bounded by its medians and by the number of counters that are off by more than half.

use super::bounds_6_12::{held, Held};

const SLABS: &str =
    "Slabs break up blocks of zone DMA on 6.1: its watermarks are boosted, and kswapd walks over all pages of zone \
    DMA32.";

const AGES: &str =
    "As for 6.1; and the policies of 6.12 for the working set are only partly modelled.";

const ROTATES: &str =
    "The shrinker passes over each entry once. On the kernel it comes round the list in one run and not in the \
    other, so its two runs differ by a factor of 10. Here it never comes round.";

const NO_WRITEBACK: &str =
    "As above; and zsmalloc of 6.1 cannot write pages of a full pool back, which is not modelled.";

/// The cases on Linux 6.1.
pub const COMPRESSED_6_1: &[Held] = &[
    held("zram", (90, 0.6), (91, 1.1), 5, SLABS),
    held("zram-disk", (19, 0.5), (22, 1.1), 1, SLABS),
    held("zram-limit", (29, 0.9), (31, 1.1), 2, SLABS),
    held("zswap", (20, 0.4), (100, 2.3), 5, NO_WRITEBACK),
    held("zswap-poor", (7, 0.1), (35, 1.0), 2, SLABS),
];

/// The cases on Linux 6.12.
pub const COMPRESSED_6_12: &[Held] = &[
    held("zram", (60, 1.6), (64, 4.5), 13, AGES),
    held("zswap", (10, 1.0), (47, 2.0), 8, AGES),
    held("zswap-poor", (7, 0.7), (32, 2.4), 3, AGES),
    held("zswap-shrinker", (7, 17.7), (68, 15.9), 17, ROTATES),
];
