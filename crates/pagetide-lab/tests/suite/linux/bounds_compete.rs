//! Bounds of the cases in which two or three programs compete (experiments/verify/compete), written
//! before the kernel's results were known. One change of order changes many of their counters, so a
//! case is bounded by its medians and by the number of counters that are off by more than half.

use super::bounds_6_12::{held, Held};

const BOOSTED_DMA: &str =
    "A fallback boosts zone DMA. On the kernel, kswapd wakes at once for it alone, and passes over all \
    page cache of zone DMA32 once (`pgskip_dma32`). Here it wakes after the step, when DMA is balanced.";

const TURNS: &str =
    "Tasks end their phases in another order, so a phase has more or less of the other's reclaim in it. \
    And zone DMA's boosts, as above.";

const FLUSHER: &str =
    "The kernel's flusher takes three times the CPU time, so the writer and the heap wait for each other longer. \
    Not explained.";

const WHOLE_HUGE_PAGES: &str =
    "Linux swaps huge pages out in one piece, and refaults activate page cache that is not activated here.";

const PRESSURE: &str =
    "Times under pressure are twice the kernel's while a group reads at its limit, and reclaim in the first \
    phases, which the kernel's tasks reach at another moment.";

/// The cases, in order.
pub const CASES_COMPETE: &[Held] = &[
    held("compile-jobs", (14, 0.0), (50, 22.7), 14, TURNS),
    held("copy-a-file", (12, 0.1), (22, 1.4), 8, BOOSTED_DMA),
    held("database-backup", (44, 1.6), (89, 6.0), 14, BOOSTED_DMA),
    held("high-batch", (7, 0.0), (87, 2.1), 20, BOOSTED_DMA),
    held("huge-heap-and-cache", (7, 6.8), (38, 11.2), 14, WHOLE_HUGE_PAGES),
    held("log-and-heap", (26, 24.4), (98, 13.1), 37, FLUSHER),
    held("low-protects", (2, 0.3), (64, 0.4), 9, BOOSTED_DMA),
    held("mail-and-index", (24, 6.2), (200, 1.9), 17, BOOSTED_DMA),
    held("nested-limits", (10, 0.0), (228, 0.2), 12, PRESSURE),
    held("two-heaps", (22, 0.4), (185, 0.8), 10, TURNS),
];
