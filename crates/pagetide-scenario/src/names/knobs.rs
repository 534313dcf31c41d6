//! The control files that a scenario may write, of the machine and of groups: name, form, default.
//!
//! Invariant: the core has a control of each name, with the same bounds.

use crate::page_size::PageSize;

/// Least pages that `vm.dirty_bytes` may say.
const DIRTY_PAGES_MIN: u64 = 2;
/// Bytes of an entry of a page table: `vm.fault_around_bytes` may say as many pages as have their
/// entries in a page, and a part of another.
const PTE_BYTES: u64 = 8;

/// The text that a knob takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnobForm {
    /// An integer within bounds, both included; decimal, or with the prefix 0x or 0.
    Integer {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// Integers separated by blanks, at most so many.
    Integers {
        /// How many.
        max: usize,
    },
    /// Bytes with an optional suffix k, m, g, t, p or e; `max` means no limit.
    BytesOrMax,
    /// The same, where `-1` means no limit.
    BytesOrMinusOne,
    /// Bytes with an optional suffix, and perhaps ` swappiness=N` (0 to 200) after them: asks for
    /// something to be done now, and has no value of its own.
    Reclaim,
    /// A number from 1 on, which asks for something to be done now.
    Trigger {
        /// The largest number.
        max: i64,
    },
    /// One of these words.
    Word(&'static [&'static str]),
}

impl KnobForm {
    /// A write asks for something to be done now: it makes no sense before anything runs.
    pub const fn is_action(self) -> bool {
        matches!(self, KnobForm::Reclaim | KnobForm::Trigger { .. })
    }
}

/// A control file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knob {
    /// The kernel's name for it.
    pub name: &'static str,
    /// What it takes.
    pub form: KnobForm,
    /// Unit of the number, empty for a plain one.
    pub unit: &'static str,
    /// Value of a fresh machine or group, in words.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
}

impl Knob {
    /// What it takes on a machine with such pages: two knobs count bytes within a number of pages.
    pub fn form_with(&self, page_size: PageSize) -> KnobForm {
        match (self.name, self.form) {
            ("vm.dirty_bytes", KnobForm::Integer { max, .. }) => {
                KnobForm::Integer { min: page_size.bytes_of(DIRTY_PAGES_MIN) as i64, max }
            }
            ("vm.fault_around_bytes", KnobForm::Integer { min, .. }) => {
                let max = page_size.bytes_of(page_size.bytes() / PTE_BYTES + 1) as i64 - 1;
                KnobForm::Integer { min, max }
            }
            (_, form) => form,
        }
    }
}

pub(super) const fn knob(
    name: &'static str,
    form: KnobForm,
    unit: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Knob {
    Knob { name, form, unit, default, doc }
}

const fn from(min: i64) -> KnobForm {
    KnobForm::Integer { min, max: i32::MAX as i64 }
}

const fn range(min: i64, max: i64) -> KnobForm {
    KnobForm::Integer { min, max }
}

/// The words of a table, as a message has them: `always, madvise or never`.
pub fn listed(words: &[&str]) -> String {
    match words {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        words => words.concat(),
    }
}

/// The system-wide knobs. Most are sysctls: `vm.fault_around_bytes` is a debugfs file in Linux,
/// `block.read_ahead_kb` stands for the file of that name of every disk, and those of
/// `transparent_hugepage` are in /sys/kernel/mm.
pub const SYSCTLS: &[Knob] = &[
    knob(
        "vm.min_free_kbytes",
        from(0),
        "kB",
        "sqrt(16 * lowmem in kB), 128 to 262144",
        "Free memory that only urgent allocations may use; the min watermarks.",
    ),
    knob(
        "vm.watermark_scale_factor",
        range(1, 3000),
        "1/10000 of a zone",
        "10",
        "Distance between the watermarks (policy scale-factor).",
    ),
    knob(
        "vm.watermark_boost_factor",
        from(0),
        "1/10000 of the high mark",
        "15000",
        "How far fragmentation may raise the watermarks for a while; 0 is off.",
    ),
    knob(
        "vm.wmark_min_kbytes",
        from(0),
        "kB",
        "as vm.min_free_kbytes",
        "The min mark of the whole machine (policy apart).",
    ),
    knob(
        "vm.wmark_low_kbytes",
        from(0),
        "kB",
        "1.25 min",
        "The low mark of the whole machine: below it kswapd is woken (policy apart).",
    ),
    knob(
        "vm.wmark_high_kbytes",
        from(0),
        "kB",
        "1.5 min",
        "The high mark of the whole machine: at it kswapd sleeps (policy apart).",
    ),
    knob(
        "vm.extra_free_kbytes",
        from(0),
        "kB",
        "0",
        "Raises the low and high marks and leaves min alone (Rik van Riel's patch of 2011).",
    ),
    knob(
        "vm.lowmem_reserve_ratio",
        KnobForm::Integers { max: 4 },
        "",
        "256 256 32 0",
        "How much of a lower zone is kept from requests that could use a higher one.",
    ),
    knob(
        "vm.swappiness",
        range(0, 200),
        "",
        "60",
        "Cost of swapping against that of reading files: 100 is equal.",
    ),
    knob(
        "vm.vfs_cache_pressure",
        from(0),
        "per cent",
        "100",
        "How hard kept inodes and directory entries are reclaimed, against page cache; 0 is never.",
    ),
    knob(
        "vm.page-cluster",
        range(0, 31),
        "log2 of pages",
        "3",
        "Swap read-ahead: 0 reads one page.",
    ),
    knob(
        "vm.dirty_ratio",
        range(0, 100),
        "per cent",
        "20",
        "Share of dirty memory at which writers are throttled.",
    ),
    knob(
        "vm.dirty_background_ratio",
        range(0, 100),
        "per cent",
        "10",
        "Share of dirty memory at which write-back begins.",
    ),
    knob(
        "vm.dirty_bytes",
        range(8192, i64::MAX),
        "bytes",
        "0 (the ratio counts)",
        "Dirty memory at which writers are throttled, instead of the ratio.",
    ),
    knob(
        "vm.dirty_background_bytes",
        range(1, i64::MAX),
        "bytes",
        "0 (the ratio counts)",
        "Dirty memory at which write-back begins, instead of the ratio.",
    ),
    knob(
        "vm.dirty_writeback_centisecs",
        range(i32::MIN as i64, i32::MAX as i64),
        "1/100 s",
        "500",
        "Time between two rounds of the flusher; 0 is off.",
    ),
    knob(
        "vm.dirty_expire_centisecs",
        from(0),
        "1/100 s",
        "3000",
        "Age at which a dirty page is written back.",
    ),
    knob(
        "vm.laptop_mode",
        range(-8_589_934, 8_589_934),
        "s",
        "0",
        "Delays write-back to let a disk rest.",
    ),
    knob(
        "vm.fault_around_bytes",
        range(0, 2_101_247),
        "bytes",
        "65536",
        "Cached pages around a file fault that are mapped with it; one page is off.",
    ),
    knob("block.read_ahead_kb", range(0, u32::MAX as i64), "kB", "128", "Largest file read-ahead."),
    knob(
        "vm.drop_caches",
        KnobForm::Trigger { max: 4 },
        "",
        "none, it is written only",
        "1 drops clean page cache, 2 kept inodes and directory entries, 3 both (workload write-control \
         only).",
    ),
    knob(
        "vm.compact_memory",
        KnobForm::Trigger { max: 1 },
        "",
        "none, it is written only",
        "Compacts all zones at once (workload write-control only).",
    ),
    knob(
        "vm.extfrag_threshold",
        range(0, 1000),
        "1/1000",
        "500",
        "Fragmentation index up to which a failure is taken for a lack of memory, which compaction \
         cannot help.",
    ),
    knob(
        "vm.compact_unevictable_allowed",
        range(0, 1),
        "",
        "1",
        "Whether compaction moves unevictable pages.",
    ),
    knob(
        "vm.compaction_proactiveness",
        range(0, 100),
        "",
        "20",
        "How eagerly kcompactd compacts before anybody asks; 0 is never.",
    ),
    knob(
        "vm.defrag_mode",
        range(0, 1),
        "",
        "0",
        "Whether requests rather reclaim and compact than mix kinds in a pageblock (Linux 6.15).",
    ),
    knob(
        "transparent_hugepage.enabled",
        KnobForm::Word(&["always", "madvise", "never"]),
        "",
        "never",
        "Which anonymous memory gets huge pages. Any of them raises vm.min_free_kbytes, unless it was \
         written.",
    ),
    knob(
        "transparent_hugepage.defrag",
        KnobForm::Word(&["always", "defer", "defer+madvise", "madvise", "never"]),
        "",
        "madvise",
        "What a fault does when no huge page is free: reclaim and compact, leave that to the daemons \
         (defer), or nothing.",
    ),
    knob(
        "transparent_hugepage.khugepaged.defrag",
        range(0, 1),
        "",
        "1",
        "Whether khugepaged reclaims and compacts.",
    ),
    knob(
        "transparent_hugepage.khugepaged.pages_to_scan",
        range(1, u32::MAX as i64),
        "pages",
        "4096",
        "How much khugepaged looks at in a round.",
    ),
    knob(
        "transparent_hugepage.khugepaged.scan_sleep_millisecs",
        range(0, u32::MAX as i64),
        "ms",
        "10000",
        "Time between two rounds.",
    ),
    knob(
        "transparent_hugepage.khugepaged.alloc_sleep_millisecs",
        range(0, u32::MAX as i64),
        "ms",
        "60000",
        "How long khugepaged waits after it found no huge page.",
    ),
    knob(
        "transparent_hugepage.khugepaged.max_ptes_none",
        range(0, 511),
        "pages",
        "511",
        "So many of the 512 pages may be missing for khugepaged to make a huge one.",
    ),
    knob(
        "transparent_hugepage.khugepaged.max_ptes_swap",
        range(0, 511),
        "pages",
        "64",
        "So many of them may be in swap.",
    ),
];

/// The control files of a group.
pub const GROUP_CONTROLS: &[Knob] = &[
    knob(
        "memory.min",
        KnobForm::BytesOrMax,
        "bytes",
        "0",
        "Memory that is never reclaimed from the group.",
    ),
    knob(
        "memory.low",
        KnobForm::BytesOrMax,
        "bytes",
        "0",
        "Memory that is reclaimed only if nothing else is left.",
    ),
    knob(
        "memory.high",
        KnobForm::BytesOrMax,
        "bytes",
        "max",
        "Above it the group's tasks are throttled and reclaimed from.",
    ),
    knob("memory.max", KnobForm::BytesOrMax, "bytes", "max", "The limit."),
    knob("memory.swap.max", KnobForm::BytesOrMax, "bytes", "max", "The limit of swap."),
    knob(
        "memory.limit_in_bytes",
        KnobForm::BytesOrMinusOne,
        "bytes",
        "-1",
        "The limit (version 1).",
    ),
    knob(
        "memory.kmem.limit_in_bytes",
        KnobForm::BytesOrMinusOne,
        "bytes",
        "-1",
        "The limit of kernel memory (version 1, until Linux 5.15).",
    ),
    knob(
        "memory.soft_limit_in_bytes",
        KnobForm::BytesOrMinusOne,
        "bytes",
        "-1",
        "Groups above their soft limit are reclaimed from first (version 1).",
    ),
    knob("memory.swappiness", range(0, 200), "", "the parent's", "As vm.swappiness (version 1)."),
    knob(
        "memory.global_shrink_priority",
        range(-128, 12),
        "reclaim priority",
        "12",
        "Global reclaim leaves the group alone at priorities above it (patch of 2019). \
         Below 0 with policy shrink_priority = posted only.",
    ),
    knob(
        "memory.reclaim",
        KnobForm::Reclaim,
        "bytes",
        "none, it is written only",
        "Reclaims so much from the group at once (workload write-control only).",
    ),
];

/// The knob called `name` in `table`.
pub fn find_knob(table: &'static [Knob], name: &str) -> Option<&'static Knob> {
    table.iter().find(|knob| knob.name == name)
}
