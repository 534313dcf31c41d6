//! What the cases of the proposals reached on the patched kernel: their medians, and how many counters are off by more
//! than half. The runs are few and disturb each other less than the differences named here; see `bounds.rs` for the
//! kernel as it is, where each counter is held by itself.

use super::bounds_6_12::{held, Held};

const BOOSTED_DMA: &str =
    "This kernel boots with one block of 256 unmovable pages in zone DMA. The first movable page that falls back into it \
    boosts the zone's marks. If kswapd sleeps then, as it does on the kernel, it is woken for that zone alone and \
    passes over all pages of the other, twice: that is half of `pgscan_anon` while memory is filled. Ours is at work.";

const STATES: &str =
    "The states of few pages at the end of a phase; and while memory is filled (`fill.read`) kswapd passes once over all \
    pages for the small DMA zone alone: in each variant some 46 000 (`pgskip_dma32`) of the 62 000 or 63 000 that it scans \
    (`pgscan_kswapd`). Here it is at work then, and does not.";

const SMALL_ZONE: &str =
    "Which of the daemons first finds the small DMA zone short, and so how much is swapped out for its sake. Small \
    differences in prices decide it: with those measured a day before the median of the others is 30 %.";

const LAST_PAGES: &str =
    "The kernel has some 1000 pages more to give, so the first task that is short of memory swaps out less; and the \
    guest's own pages, which reclaim looks at when there is nothing else.";

/// The cases of experiments/verify/proposals, in order.
pub const CASES_PROPOSALS: &[Held] = &[
    held("kswapd-compaction", (6, 2.2), (51, 8.6), 11, SMALL_ZONE),
    held("shrink-priority", (32, 1.5), (325, 2.4), 51, BOOSTED_DMA),
    held("shrink-priority-guard", (8, 4.7), (482, 1.1), 7, LAST_PAGES),
    held("soft-limit-hierarchical", (91, 2.3), (621, 4.8), 47, BOOSTED_DMA),
    held("soft-limit-two-pass", (69, 3.5), (377, 4.8), 15, BOOSTED_DMA),
    held("watermarks-apart", (9, 3.9), (41, 6.3), 13, STATES),
];
