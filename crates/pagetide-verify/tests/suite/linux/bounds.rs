//! Bounds of each case, and its exceptions.

/// Counters of a grade ([`pagetide_verify::judge`]) in all variants and phases of a case.
#[derive(Clone, Copy, Debug)]
pub struct Grade {
    /// Number of judged counters.
    pub counters: usize,
    /// Median error, in per cent.
    pub median_percent: f64,
    /// Largest factor of those that are neither within noise nor exceptions.
    pub worst: f64,
}

/// Timed counters of all variants and phases of a case. Only the median is bounded: one phase has
/// few.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// How many are judged.
    pub counters: usize,
    /// Median error, in per cent.
    pub median_percent: f64,
    /// Number of counters that are off by more than half.
    pub beyond: usize,
}

/// Counters of a phase that are off by more than half.
#[derive(Clone, Copy, Debug)]
pub struct Off {
    pub variant: &'static str,
    /// `TASK.PHASE` or `TASK.PHASE.GROUP`.
    pub phase: &'static str,
    /// Counters with their largest allowed factor.
    pub counters: &'static [(&'static str, f64)],
    /// The mechanism.
    pub why: &'static str,
}

/// A case of experiments/verify.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    /// Counters that the kernel repeats to 1 %.
    pub repeats: Grade,
    /// The others.
    pub varies: Grade,
    pub timed: Time,
    pub off: &'static [Off],
}

const fn grade(counters: usize, median_percent: f64, worst: f64) -> Grade {
    Grade { counters, median_percent, worst }
}

const fn time(counters: usize, median_percent: f64, beyond: usize) -> Time {
    Time { counters, median_percent, beyond }
}

const fn case(
    name: &'static str,
    repeats: Grade,
    varies: Grade,
    timed: Time,
    off: &'static [Off],
) -> Case {
    Case { name, repeats, varies, timed, off }
}

const fn off(
    variant: &'static str,
    phase: &'static str,
    why: &'static str,
    counters: &'static [(&'static str, f64)],
) -> Off {
    Off { variant, phase, counters, why }
}

/// Pagetide has 0.
const WHERE_THEY_MEET: &str =
    "Not explained: the scanners of compaction meet later than on the kernel, which moves as many pages.";

const KEPT_BLOCKS: &str =
    "Not explained: since per-CPU lists keep huge pages the second touch finds all its blocks ready here; the \
    kernel, whose lists keep them too, has to compact in each run.";

const GIVES_WAY: &str =
    "Not explained: in one phase reclaim drops less page cache than on the kernel, and swaps more. \
    Over all phases, pages stolen are within 1 %.";

const GRACE_PERIOD: &str =
    "Two CPUs are emulated with the host's clock: a call takes 20 to 140 microseconds. \
    The number of objects that wait for RCU depends on that.";

const GRACE_TICK: &str =
    "Files closed late in the phase wait for RCU. The 4 ms tick ends the grace period before or after the \
    end of the phase: recordings of the kernel have both.";

const SEVERAL_CPUS: &str =
    "Not explained. Two CPUs are emulated with the host's clock, so costs are known only to 10 %.";

const CUT_IN_TIME: &str =
    "The end of one task's phase shows the other group at that time; the phase takes 0.5 times as long here.";

/// In the order of their names. `cargo test -p pagetide-verify --test suite linux -- --nocapture` prints
/// each line.
pub const CASES: &[Case] = &[
    case(
        "anon",
        grade(92, 0.8, 1.10),
        grade(162, 2.5, 1.43),
        time(110, 7.8, 2),
        &[off("1.5x-2cpus", "wset.acc1", SEVERAL_CPUS, &[("nr_active_anon", 1.60)])],
    ),
    case("collapse-swap", grade(2, 0.0, 1.00), grade(40, 0.0, 1.15), time(2, 8.3, 0), &[]),
    case("file", grade(48, 0.2, 1.01), grade(65, 0.8, 1.22), time(50, 6.6, 2), &[]),
    case("group-max", grade(32, 0.1, 1.01), grade(198, 0.2, 1.03), time(33, 17.1, 13), &[]),
    case("group-reclaim", grade(20, 0.0, 1.01), grade(153, 0.2, 1.09), time(11, 2.1, 0), &[]),
    case(
        "group-soft-limit",
        grade(96, 1.3, 1.19),
        grade(562, 2.4, 1.41),
        time(104, 7.8, 3),
        &[
            off("soft-2cpus", "a.populate", SEVERAL_CPUS, &[("pgscan_total", 4.50)]),
            off("soft-2cpus", "b.populate", SEVERAL_CPUS, &[("pgscan_total", 4.50)]),
            off(
                "soft-2cpus",
                "a.acc0",
                SEVERAL_CPUS,
                &[("nr_active_anon", 1.68), ("pgactivate", 1.71)],
            ),
            off("soft-2cpus", "a.acc0.modest", SEVERAL_CPUS, &[("active_anon", 1.97)]),
            off("soft-2cpus", "a.acc2", SEVERAL_CPUS, &[("pgactivate", 1.69)]),
        ],
    ),
    case(
        "group-writers",
        grade(0, 0.0, 1.00),
        grade(201, 0.1, 1.07),
        time(57, 15.1, 3),
        &[
            off("heap", "backup.heap", CUT_IN_TIME, &[("nr_inactive_file", 2.06)]),
            off(
                "heap",
                "backup.heap.log",
                CUT_IN_TIME,
                &[
                    ("file", 2.06),
                    ("inactive_file", 2.06),
                    ("memory.current", 2.06),
                    ("slab", 2.06),
                    ("slab_reclaimable", 2.06),
                ],
            ),
        ],
    ),
    case("group-writers-v1", grade(0, 0.0, 1.00), grade(48, 0.0, 1.04), time(29, 10.9, 0), &[]),
    case("groups", grade(153, 2.1, 1.08), grade(1048, 3.3, 1.44), time(140, 6.8, 6), &[]),
    case("high-read", grade(0, 0.0, 1.00), grade(26, 0.3, 1.02), time(8, 4.7, 1), &[]),
    case(
        "huge",
        grade(0, 0.0, 1.00),
        grade(93, 1.8, 1.26),
        time(47, 5.7, 2),
        &[
            off("always", "t.second", KEPT_BLOCKS, &[("compact_free_scanned", 10.62)]),
            off("full", "t.compact", WHERE_THEY_MEET, &[("compact_migrate_scanned", 1.87)]),
        ],
    ),
    case(
        "mixed",
        grade(148, 0.6, 1.07),
        grade(243, 2.6, 1.22),
        time(95, 5.6, 2),
        &[off("sw150", "wset.acc1", GIVES_WAY, &[("pgsteal_file", 2.20)])],
    ),
    case(
        "objects",
        grade(0, 0.0, 1.00),
        grade(3505, 0.3, 1.56),
        time(118, 10.0, 31),
        &[
            off("accounted", "t0.missing.g0", GRACE_TICK, &[("slab_unreclaimable", 1.82)]),
            off("accounted", "t1.missing.g1", GRACE_TICK, &[("slab_unreclaimable", 1.82)]),
            off("accounted", "t2.missing.g2", GRACE_TICK, &[("slab_unreclaimable", 1.82)]),
            off("accounted", "t3.missing.g3", GRACE_TICK, &[("slab_unreclaimable", 1.83)]),
            off("accounted", "t4.missing.g4", GRACE_TICK, &[("slab_unreclaimable", 1.83)]),
            off(
                "accounted",
                "t5.files.g5",
                GRACE_TICK,
                &[("slab", 1.56), ("slab_reclaimable", 1.55), ("slab_unreclaimable", 1.56)],
            ),
            off("accounted", "t5.missing.g5", GRACE_TICK, &[("slab_unreclaimable", 1.82)]),
            off("accounted", "t6.missing.g6", GRACE_TICK, &[("slab_unreclaimable", 1.83)]),
            off(
                "accounted",
                "t7.files.g7",
                GRACE_TICK,
                &[("slab", 1.53), ("slab_reclaimable", 1.52), ("slab_unreclaimable", 1.53)],
            ),
            off("accounted", "t7.missing.g7", GRACE_TICK, &[("slab_unreclaimable", 1.82)]),
            off(
                "accounted-2cpus",
                "t6.pipes",
                GRACE_PERIOD,
                &[("slabinfo.filp.active_objs", 1.58)],
            ),
            off("nokmem-2cpus", "t6.pipes", GRACE_PERIOD, &[("slabinfo.filp.active_objs", 1.56)]),
            off(
                "accounted",
                "t0.files.g0",
                GRACE_TICK,
                &[("slab", 1.56), ("slab_reclaimable", 1.53), ("slab_unreclaimable", 1.56)],
            ),
            off("accounted", "t2.files.g2", GRACE_TICK, &[("slab_unreclaimable", 1.52)]),
        ],
    ),
    case("objects-max", grade(0, 0.0, 1.00), grade(48, 0.1, 1.02), time(10, 42.7, 4), &[]),
    case("read-ahead", grade(6, 0.2, 1.01), grade(16, 0.2, 1.01), time(20, 2.4, 0), &[]),
    case("scan", grade(6, 0.2, 1.01), grade(16, 0.2, 1.01), time(24, 3.1, 0), &[]),
    case("swap", grade(20, 0.7, 1.03), grade(53, 2.0, 1.18), time(53, 7.7, 0), &[]),
    case("swap-max", grade(12, 0.1, 1.00), grade(97, 0.2, 1.02), time(26, 13.8, 0), &[]),
    case("watermarks", grade(12, 4.1, 1.20), grade(56, 1.9, 1.42), time(69, 9.6, 5), &[]),
    case("watermarks-long", grade(12, 0.4, 1.30), grade(33, 0.7, 1.30), time(48, 13.0, 4), &[]),
    case("zipf", grade(10, 0.3, 1.02), grade(34, 1.4, 1.07), time(29, 1.7, 0), &[]),
];
