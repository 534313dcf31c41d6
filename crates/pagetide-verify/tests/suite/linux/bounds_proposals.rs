//! Bounds of the cases of the proposals, compared with the patched kernel: medians, and the number
//! of counters that are off by more than half. See `bounds.rs` for the unpatched kernel, where each
//! counter has a bound.

use super::bounds_6_12::{held, Held};

const BOOSTED_DMA: &str =
    "This kernel boots with one block of 256 unmovable pages in zone DMA. The first movable page \
    that falls back into it boosts the zone's watermarks. On the kernel, kswapd sleeps at that time, \
    is woken for this zone alone, and scans all pages of the other zone twice: half of `pgscan_anon` \
    while memory is filled. Our kswapd is already awake.";

const STATES: &str =
    "States of few pages at the end of a phase. Also, while memory is filled (`fill.read`), kswapd \
    scans all pages once for the small DMA zone alone: in each variant about 46 000 (`pgskip_dma32`) \
    of its 62 000 or 63 000 (`pgscan_kswapd`). Our kswapd is already awake then.";

const SMALL_ZONE: &str =
    "Which daemon first finds the small DMA zone short decides how much is swapped out for it. That depends on small \
    differences in costs: with those measured a day earlier the median of the others is 30 %.";

const LAST_PAGES: &str =
    "The kernel has about 1000 more free pages, so the first task that is short of memory swaps out less. Also, \
    reclaim scans the guest's own pages when there are no others.";

/// The cases of experiments/verify/proposals, in order.
pub const CASES_PROPOSALS: &[Held] = &[
    held("kswapd-compaction", (6, 3.0), (51, 27.4), 13, SMALL_ZONE),
    held("shrink-priority", (32, 1.5), (325, 2.9), 51, BOOSTED_DMA),
    held("shrink-priority-guard", (8, 8.1), (482, 1.3), 16, LAST_PAGES),
    held("soft-limit-hierarchical", (91, 3.9), (621, 5.0), 29, BOOSTED_DMA),
    held("soft-limit-two-pass", (69, 3.2), (377, 4.8), 16, BOOSTED_DMA),
    held("watermarks-apart", (9, 4.1), (41, 4.9), 9, STATES),
];
