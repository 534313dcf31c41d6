//! Bounds of the cases with zram and zswap (experiments/verify/compressed), on Linux 6.1 and 6.12.
//! Contents of pages are drawn on each side, so counters scatter by half a per cent. A case is
//! bounded by its medians and by the number of counters that are off by more than half.

use super::bounds_6_12::{held, Held};

const SLABS: &str =
    "Handles, descriptors and entries take no slabs here, so 1 to 6 % fewer pages are swapped. Their slabs break up \
    blocks of zone DMA on 6.1: its watermarks are boosted, and kswapd walks over all pages of zone DMA32.";

const AGES: &str =
    "As for 6.1; and the policies of 6.12 for the working set and per-CPU lists are only partly modelled.";

const ROTATES: &str =
    "The shrinker passes over each entry once. On the kernel it comes round the list in one run and not in the \
    other, so its two runs differ by a factor of 10. Here it never comes round.";

const NO_WRITEBACK: &str =
    "As above; and zsmalloc of 6.1 cannot write pages of a full pool back, which is not modelled.";

/// The cases on Linux 6.1.
pub const COMPRESSED_6_1: &[Held] = &[
    held("zram", (90, 2.0), (91, 3.2), 5, SLABS),
    held("zram-disk", (19, 0.6), (22, 1.5), 1, SLABS),
    held("zram-limit", (29, 1.4), (31, 1.0), 2, SLABS),
    held("zswap", (20, 1.3), (100, 4.2), 5, NO_WRITEBACK),
    held("zswap-poor", (7, 2.0), (35, 2.5), 2, SLABS),
];

/// The cases on Linux 6.12.
pub const COMPRESSED_6_12: &[Held] = &[
    held("zram", (60, 3.0), (64, 5.7), 17, AGES),
    held("zswap", (10, 2.1), (47, 5.7), 8, AGES),
    held("zswap-poor", (7, 1.0), (32, 5.0), 3, AGES),
    held("zswap-shrinker", (7, 31.6), (68, 15.5), 24, ROTATES),
];
