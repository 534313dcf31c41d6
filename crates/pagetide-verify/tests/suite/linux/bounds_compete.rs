//! Bounds of the cases in which two or three programs compete (experiments/verify/compete), written
//! before the kernel's results were known. One change of order changes many of their counters, so a
//! case is bounded by its medians and by the number of counters that are off by more than half.

use super::bounds_6_12::{held, Held};

const NONE: &str = "No counter is off by more than half.";

const TURNS: &str =
    "Tasks end their phases in another order, so a phase has more or less of the other's reclaim in it.";

const FLUSHER: &str =
    "The kernel's flusher takes three times the CPU time, so the writer and the heap wait for each other longer. \
    Not explained.";

const ACTIVATED: &str =
    "Refaults activate page cache that is not activated here, or the other way round. The kernel's three runs \
    differ in it, too.";

/// The cases, in order.
pub const CASES_COMPETE: &[Held] = &[
    held("compile-jobs", (14, 0.0), (49, 11.2), 7, TURNS),
    held("copy-a-file", (12, 0.0), (22, 1.5), 0, NONE),
    held("database-backup", (46, 1.1), (90, 3.8), 0, NONE),
    held("high-batch", (8, 1.1), (89, 4.8), 12, TURNS),
    held("huge-heap-and-cache", (7, 11.0), (38, 11.4), 10, ACTIVATED),
    held("log-and-heap", (26, 2.9), (100, 6.4), 14, FLUSHER),
    held("low-protects", (2, 0.4), (58, 0.4), 0, NONE),
    held("mail-and-index", (18, 2.1), (192, 0.8), 4, TURNS),
    held("nested-limits", (10, 0.0), (234, 0.1), 0, NONE),
    held("two-heaps", (22, 0.3), (185, 0.5), 1, TURNS),
];
