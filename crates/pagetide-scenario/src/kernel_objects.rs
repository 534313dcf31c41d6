//! The kernel's caches of objects: which of them a record has, and what boot has left in them.
//!
//! Linux: /proc/slabinfo. Names and pipes are made of objects of eight caches; with accounting there are
//! the vectors besides that say whose each object is. Both worlds report the same caches under the
//! same keys. Invariant: which caches are reported depends on the setup alone, not on what a run did.

/// Caches of the objects that names and pipes are made of, beside those of kmalloc(). A machine has them as
/// soon as a task makes either.
pub const OBJECTS: [&str; 6] =
    ["dentry", "inode_cache", "shmem_inode_cache", "filp", "lsm_inode_cache", "lsm_file_cache"];
/// And those of what a pipe has by size: with accounting the first, else the second.
const OF_PIPES: [[&str; 2]; 2] =
    [["kmalloc-cg-192", "kmalloc-192"], ["kmalloc-cg-1k", "kmalloc-1k"]];
/// Where the kernel keeps whose each object of a slab is: a vector a slab, an object of these caches.
const OWNERS: [&str; 4] = ["kmalloc-64", "kmalloc-96", "kmalloc-128", "kmalloc-192"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedCache {
    /// As in /proc/slabinfo.
    pub name: &'static str,
    /// It has objects of names and pipes, not only vectors: it counts in `slab_utilisation`.
    pub is_of_things: bool,
}

/// The caches that are reported of a kernel that accounts its memory to groups, or does not.
pub fn reported_caches(kmem_accounting: bool) -> Vec<ReportedCache> {
    let of_pipes =
        OF_PIPES.map(|[accounted, plain]| if kmem_accounting { accounted } else { plain });
    let owners = if kmem_accounting { &OWNERS[..] } else { &[] };
    let of_things = OBJECTS.iter().chain(&of_pipes);
    let of_things = of_things.map(|&name| ReportedCache { name, is_of_things: true });
    let owners = owners.iter().map(|&name| ReportedCache { name, is_of_things: false });
    of_things.chain(owners).collect()
}

/// What boot has left in a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootCache {
    /// As in /proc/slabinfo.
    pub name: String,
    /// Objects in use.
    pub active: u64,
    pub slabs: u64,
}

/// What boot has left in all caches. All of it is the root group's, and held by frames that are not
/// free when the run starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BootObjects {
    /// Caches of which that is known.
    pub caches: Vec<BootCache>,
    /// Pages of all slabs that shrinkers can free, those caches' among them.
    pub reclaimable_pages: u64,
    /// Pages of all others.
    pub unreclaimable_pages: u64,
}

/// How long system calls take, in nanoseconds; `None` leaves that to the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTimes {
    /// On a file: to open it, to close it, to remove it.
    pub file: Option<u64>,
    /// On a name in vain.
    pub missing: Option<u64>,
    /// On a pipe: to open both ends, to close one.
    pub pipe: Option<u64>,
    /// Not on a thing: what a task does between two phases, to report the first of them.
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
