//! What each case of Linux 6.12 reached. The policies of that kernel are known in part, so a case is held to its
//! medians and to how many of its counters are off by more than half, not counter by counter.

/// The recorded variants of a case of experiments/verify.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub name: &'static str,
    /// Counters that the kernel repeats to 1 %: how many, and the median of their errors in per cent.
    pub repeats: (usize, f64),
    /// The others.
    pub varies: (usize, f64),
    /// Counters that are off by more than half.
    pub beyond: usize,
    /// The mechanism.
    pub why: &'static str,
}

pub const fn held(
    name: &'static str,
    repeats: (usize, f64),
    varies: (usize, f64),
    beyond: usize,
    why: &'static str,
) -> Held {
    Held { name, repeats, varies, beyond, why }
}

const PCP_BATCHES: &str =
    "Since 6.7 a CPU's list is refilled by up to 32 batches at once, 480 pages here, and may keep an eighth of \
    a zone. One refill empties the lists of movable blocks; the rest of it falls back, page by page, and \
    boosts the marks, that of zone DMA as well. Not modelled, and not tried.";

const SHADOWS: &str =
    "As for `anon`; and the kernel counts less than half as many refaults of anonymous pages as it reads from \
    swap with two groups, but all of them with none. Not explained.";

const QUARTERS: &str =
    "Since 6.9 a write to memory.reclaim asks for a quarter of the rest at a time, so it takes little more than \
    was asked for. Not modelled.";

const SMALL_LISTS: &str =
    "Lists that are empty on one side or have some hundred pages of the guest's own.";

const COMPACTION: &str =
    "kcompactd and tasks compact at other times and find other places than 6.1's. Not explained.";

/// The variants with one CPU that are recorded.
pub const CASES_6_12: &[Held] = &[
    held("anon", (46, 3.3), (77, 11.8), 22, PCP_BATCHES),
    held("file", (24, 1.6), (23, 5.2), 5, PCP_BATCHES),
    held("group-max", (16, 0.1), (96, 0.5), 9, SMALL_LISTS),
    held("group-reclaim", (20, 4.3), (137, 11.1), 33, QUARTERS),
    held("groups", (78, 4.8), (508, 10.9), 144, SHADOWS),
    held("huge", (0, 0.0), (94, 6.6), 32, COMPACTION),
    held("mixed", (72, 7.6), (110, 29.4), 39, PCP_BATCHES),
    held("read-ahead", (3, 0.6), (8, 85.9), 4, PCP_BATCHES),
    held("scan", (3, 1.8), (8, 7.1), 2, PCP_BATCHES),
    held("swap", (20, 10.1), (59, 17.9), 15, PCP_BATCHES),
    held("watermarks", (6, 17.0), (30, 10.3), 6, PCP_BATCHES),
    held("zipf", (10, 2.1), (34, 60.7), 19, PCP_BATCHES),
];
