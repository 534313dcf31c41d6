//! What the cases of the proposals reached on the patched kernel: their medians, and how many counters are off by more
//! than half. The runs are few and disturb each other less than the differences named here; see `bounds.rs` for the
//! kernel as it is, where each counter is held by itself.

use crate::bounds_6_12::{held, Held};

const BOOSTED_DMA: &str =
    "This kernel boots with one block of 256 unmovable pages in zone DMA. The first movable page that falls back into it \
    boosts the zone's marks. If kswapd sleeps then, as it does on the kernel, it is woken for that zone alone and \
    passes over all pages of the other, twice: that is half of `pgscan_anon` while memory is filled. Ours is at work.";

const STATES: &str =
    "The states of few pages at the end of a phase; and direct reclaim's share of what is dropped while the disk fills.";

const SMALL_ZONE: &str =
    "Which of the daemons first finds the small DMA zone short, and so how much is swapped out for its sake.";

/// The cases of experiments/verify/proposals, in order.
pub const CASES_PROPOSALS: &[Held] = &[
    held("kswapd-compaction", (6, 2.0), (51, 5.2), 7, SMALL_ZONE),
    held("shrink-priority", (32, 2.4), (320, 3.7), 73, BOOSTED_DMA),
    held("soft-limit-hierarchical", (93, 4.2), (630, 4.7), 71, BOOSTED_DMA),
    held("soft-limit-two-pass", (69, 4.1), (376, 5.2), 13, BOOSTED_DMA),
    held("watermarks-apart", (9, 3.5), (38, 3.4), 4, STATES),
];
