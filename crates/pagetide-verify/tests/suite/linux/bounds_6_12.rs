//! Bounds of the cases of Linux 6.12. Its policies are only partly modelled, so a case is bounded
//! by its medians and by the number of counters that are off by more than half, not per counter.

/// The recorded variants of a case of experiments/verify.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub name: &'static str,
    /// Counters that the kernel repeats to 1 %: number, and median error in per cent.
    pub repeats: (usize, f64),
    /// The others.
    pub varies: (usize, f64),
    /// Number of counters that are off by more than half.
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
    "Since 6.7 a per-CPU list is refilled by up to 32 batches at once (480 pages here) and may keep an eighth of \
    a zone. One refill empties the lists of movable blocks; the rest of it falls back page by page and \
    boosts the watermarks, also of zone DMA. Not modelled.";

const SHADOWS: &str =
    "As for `anon`. With two groups, the kernel counts fewer refaults of anonymous pages than half of the pages \
    that it reads from swap; without groups it counts all. Not explained.";

const QUARTERS: &str =
    "Since 6.9 a write to memory.reclaim reclaims a quarter of the rest at a time, so it exceeds the request only \
    a little. Not modelled.";

const SMALL_LISTS: &str =
    "Lists that are empty on one side, or have a few hundred pages of the guest.";

const COMPACTION: &str =
    "kcompactd and tasks compact at other times and places than in 6.1. Not explained.";

/// The recorded variants with one CPU.
pub const CASES_6_12: &[Held] = &[
    held("anon", (46, 3.0), (77, 13.7), 22, PCP_BATCHES),
    held("file", (24, 1.3), (23, 5.2), 5, PCP_BATCHES),
    held("group-max", (16, 0.1), (96, 0.5), 9, SMALL_LISTS),
    held("group-reclaim", (20, 4.3), (137, 11.1), 33, QUARTERS),
    held("groups", (78, 3.8), (508, 10.4), 143, SHADOWS),
    held("huge", (0, 0.0), (94, 6.6), 32, COMPACTION),
    held("mixed", (72, 7.6), (110, 29.7), 39, PCP_BATCHES),
    held("read-ahead", (3, 0.6), (8, 85.9), 4, PCP_BATCHES),
    held("scan", (3, 1.9), (8, 3.6), 0, PCP_BATCHES),
    held("swap", (20, 10.1), (59, 18.0), 15, PCP_BATCHES),
    held("watermarks", (6, 20.0), (30, 11.5), 8, PCP_BATCHES),
    held("zipf", (10, 2.1), (34, 64.4), 19, PCP_BATCHES),
];
