//! Caches of kernel objects: those that every kernel has, and the control files of each.
//!
//! Linux: /proc/slabinfo and /sys/kernel/slab/CACHE/. A file of a cache is written as `slab.CACHE.FILE`.
//!
//! Invariant: the core has each of these caches, and each of these files, with the same bounds.

use super::knobs::{find_knob, knob, Knob, KnobForm, SYSCTLS};

/// What the names of files of caches begin with.
const PREFIX: &str = "slab.";

const UINT_MAX: i64 = u32::MAX as i64;

/// The files of a cache that can be written.
pub const CACHE_CONTROLS: &[Knob] = &[
    knob(
        "min_partial",
        KnobForm::Integer { min: 0, max: UINT_MAX },
        "slabs",
        "log2 of the object's size, halved, 5 to 10",
        "Slabs that a node keeps though they are empty.",
    ),
    knob(
        "cpu_partial",
        KnobForm::Integer { min: 0, max: UINT_MAX },
        "objects",
        "6 to 120, by the object's size",
        "Free objects that may wait on a CPU's chain of slabs; 0 does without (policy slub = fullest \
         and lowest: 0 only).",
    ),
    knob(
        "shrink",
        KnobForm::Trigger { max: 1 },
        "",
        "none, it is written only",
        "Gives empty slabs back (workload write-control only).",
    ),
];

/// Sizes of kmalloc(), as its caches have them in their names; how many there are goes by the page.
const KMALLOC_SIZES: [&str; 17] = [
    "8", "16", "32", "64", "96", "128", "192", "256", "512", "1k", "2k", "4k", "8k", "16k", "32k",
    "64k", "128k",
];
const KMALLOC_PREFIXES: [&str; 3] = ["kmalloc-", "kmalloc-cg-", "kmalloc-rcl-"];
const OTHERS: [&str; 3] = ["radix_tree_node", "kmem_cache", "kmem_cache_node"];

/// Names of the caches that a kernel has whatever runs.
pub fn kernel_caches() -> impl Iterator<Item = String> {
    let of = |prefix: &'static str| KMALLOC_SIZES.iter().map(move |size| format!("{prefix}{size}"));
    KMALLOC_PREFIXES.into_iter().flat_map(of).chain(OTHERS.into_iter().map(str::to_owned))
}

/// The cache and the file of a name like `slab.dentry.min_partial`. `None`: it is no such name.
pub fn cache_and_file(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(PREFIX)?.rsplit_once('.')
}

/// The control file of the machine that is called so, one of [`SYSCTLS`] or a file of a cache.
pub fn find_sysctl(name: &str) -> Option<&'static Knob> {
    match cache_and_file(name) {
        Some((_, file)) => find_knob(CACHE_CONTROLS, file),
        None => find_knob(SYSCTLS, name),
    }
}
