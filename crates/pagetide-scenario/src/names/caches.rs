//! The slab caches that every kernel has.
//!
//! Linux: /proc/slabinfo. Invariant: a machine has each of these caches that its page size allows.

/// Sizes in the names of kmalloc() caches; the page size limits which of them exist.
const KMALLOC_SIZES: [&str; 17] = [
    "8", "16", "32", "64", "96", "128", "192", "256", "512", "1k", "2k", "4k", "8k", "16k", "32k",
    "64k", "128k",
];
const KMALLOC_PREFIXES: [&str; 3] = ["kmalloc-", "kmalloc-cg-", "kmalloc-rcl-"];
const OTHERS: [&str; 4] = ["radix_tree_node", "buffer_head", "kmem_cache", "kmem_cache_node"];

/// Names of the caches that a kernel has with any load.
pub fn kernel_caches() -> impl Iterator<Item = String> {
    let of = |prefix: &'static str| KMALLOC_SIZES.iter().map(move |size| format!("{prefix}{size}"));
    KMALLOC_PREFIXES.into_iter().flat_map(of).chain(OTHERS.into_iter().map(str::to_owned))
}
