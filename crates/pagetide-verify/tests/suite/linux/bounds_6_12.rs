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

const KERNEL_MEMORY: &str =
    "The kernel allocates more for itself (requests of files, inodes), and since 6.7 an \
     allocation can take hundreds of pages from movable blocks and boost the watermarks. So kswapd \
     frees more pages each time it wakes.";

const SMALL_LISTS: &str =
    "Lists that are empty on one side, or have a few hundred pages of the guest.";

const COMPACTION: &str =
    "kcompactd and tasks compact at other times and places than in 6.1. Not explained.";

/// The recorded variants with one CPU.
pub const CASES_6_12: &[Held] = &[
    held("anon", (46, 1.3), (77, 11.6), 10, KERNEL_MEMORY),
    held("file", (24, 1.3), (23, 4.2), 5, KERNEL_MEMORY),
    held("group-max", (16, 0.1), (96, 0.4), 9, SMALL_LISTS),
    held("group-reclaim", (20, 0.1), (137, 2.0), 15, SMALL_LISTS),
    held("groups", (78, 4.7), (508, 9.8), 108, KERNEL_MEMORY),
    held("huge", (0, 0.0), (94, 8.4), 28, COMPACTION),
    held("mixed", (72, 4.4), (109, 36.2), 42, KERNEL_MEMORY),
    held("read-ahead", (3, 0.4), (8, 18.4), 2, KERNEL_MEMORY),
    held("scan", (3, 1.3), (8, 2.3), 0, KERNEL_MEMORY),
    held("swap", (20, 4.9), (56, 7.8), 10, KERNEL_MEMORY),
    held("watermarks", (6, 16.8), (30, 8.1), 8, KERNEL_MEMORY),
    held("zipf", (10, 2.0), (34, 64.3), 20, KERNEL_MEMORY),
];
