//! The kernel's slab caches: which caches a record reports, and which objects boot left in them.
//!
//! Linux: /proc/slabinfo. File names and pipes use objects of eight caches; with accounting there
//! are also the vectors of object owners (`obj_cgroups`). Both worlds report the same caches under
//! the same keys. Invariant: the reported caches depend only on the setup, not on the run.

/// Caches for the objects of file names and pipes, without those of kmalloc(). The machine has them
/// if a task makes file names or pipes.
pub const OBJECTS: [&str; 6] =
    ["dentry", "inode_cache", "shmem_inode_cache", "filp", "lsm_inode_cache", "lsm_file_cache"];
/// Caches for the variable-size part of a pipe: the first with accounting, the second without.
const OF_PIPES: [[&str; 2]; 2] =
    [["kmalloc-cg-192", "kmalloc-192"], ["kmalloc-cg-1k", "kmalloc-1k"]];
/// Caches that hold the vectors of object owners, one vector for each slab.
const OWNERS: [&str; 4] = ["kmalloc-64", "kmalloc-96", "kmalloc-128", "kmalloc-192"];

/// Caches of the page cache's own objects.
pub const PAGE_CACHE: [&str; 2] = ["radix_tree_node", "buffer_head"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedCache {
    /// As in /proc/slabinfo.
    pub name: &'static str,
    /// Holds objects of file names or pipes, so it counts in `slab_utilisation`.
    pub holds_objects: bool,
}

/// The caches to report for a kernel with or without accounting of kernel memory.
pub fn reported_caches(kmem_accounting: bool) -> Vec<ReportedCache> {
    let of_pipes =
        OF_PIPES.map(|[accounted, plain]| if kmem_accounting { accounted } else { plain });
    let owners = if kmem_accounting { &OWNERS[..] } else { &[] };
    let of_things = OBJECTS.iter().chain(&of_pipes);
    let of_things = of_things.map(|&name| ReportedCache { name, holds_objects: true });
    let owners = owners.iter().map(|&name| ReportedCache { name, holds_objects: false });
    of_things.chain(owners).collect()
}

/// Objects of a cache that boot left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootCache {
    /// As in /proc/slabinfo.
    pub name: String,
    /// Objects in use.
    pub active: u64,
    pub slabs: u64,
}

/// Objects that boot left in all caches. All belong to the root group, and their frames are not
/// free when the run starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootObjects {
    /// The caches with known contents.
    pub caches: Vec<BootCache>,
    /// Pages of all slabs that shrinkers can free, including those of `caches`.
    pub reclaimable_pages: u64,
    /// Pages of all other slabs.
    pub unreclaimable_pages: u64,
}

/// Times of system calls in nanoseconds; `None` lets the world decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTimes {
    /// A call on a file: open, close or unlink.
    pub file: Option<u64>,
    /// A call on a missing name.
    pub missing: Option<u64>,
    /// A call on a pipe: open both ends, or close one.
    pub pipe: Option<u64>,
    /// Work of a task between two phases, to report the first of them.
    pub report: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_reported_once() {
        for accounting in [true, false] {
            let mut names: Vec<_> =
                reported_caches(accounting).into_iter().map(|cache| cache.name).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
            assert_eq!(names.contains(&"kmalloc-cg-1k"), accounting);
        }
    }
}
