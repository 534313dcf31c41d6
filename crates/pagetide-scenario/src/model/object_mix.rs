//! Object mixes: the kernel objects that a unit of real work allocates, and their lifetimes.
//!
//! Linux calls them slab objects; scripts/record_objects recorded the mixes from its kmem
//! tracepoints. docs/scenario.md ("kernel-objects") defines the file. All numbers are integers:
//! allocations in thousandths, shares in ten-thousandths.
//!
//! Invariant: the shares of a row add up to [`SHARES`], the rows of one cache agree on its size and
//! kind, and a unit makes at most [`UNIT_ALLOCS_MAX`] allocations.

/// Sum of the shares of a row.
pub const SHARES: u16 = 10_000;
/// Largest age of objects of the first three classes, in further allocations by the unit.
pub const WITHIN: [u16; 3] = [16, 256, 4096];
/// Largest number of allocations of a unit.
pub const UNIT_ALLOCS_MAX: u64 = 1 << 20;

/// A kmem_cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCache {
    /// Name as in /proc/slabinfo.
    pub name: String,
    /// Bytes of an object, padding included.
    pub object_size: u32,
    /// Its memory counts as reclaimable (SLAB_RECLAIM_ACCOUNT).
    pub reclaimable: bool,
}

/// The allocations of a unit of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMix {
    /// Source of the recording: program, kernel, method and date.
    pub recorded: String,
    pub unit: String,
    /// Definition of the start-up part, if the mix has one.
    pub start: Option<String>,
    pub rows: Vec<ObjectRow>,
    /// The objects of the start-up part; empty if there is none.
    pub start_rows: Vec<ObjectRow>,
}

/// Objects of one cache with the same accounting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    pub cache: KernelCache,
    /// Whether they are charged to the group of the allocating task.
    pub account: bool,
    /// Mean number of allocations per unit, in thousandths.
    pub allocs_thousandths: u64,
    pub lifetimes: Lifetimes,
}

/// Shares of a row's objects by lifetime, in ten-thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetimes {
    /// Freed within as many further allocations by the unit as [`WITHIN`] says, but not within the
    /// limit of the class before.
    pub within: [u16; 3],
    /// Freed when the unit ends, if not within the limits above.
    pub unit: u16,
    /// Left to the kernel when the unit ends: no task uses them, shrinkers may free them.
    pub cached: u16,
    /// In use beyond the end of the unit.
    pub kept: u16,
}

impl ObjectMix {
    /// Whether objects of the cache with this name are charged to a group.
    pub fn charges(&self, name: &str) -> bool {
        let mut rows = self.rows.iter().chain(&self.start_rows);
        rows.any(|row| row.account && row.cache.name == name)
    }

    /// Its caches, each once, in the order of the file.
    pub fn caches(&self) -> Vec<KernelCache> {
        let mut caches: Vec<KernelCache> = Vec::new();
        for row in self.rows.iter().chain(&self.start_rows) {
            if !caches.iter().any(|known| known.name == row.cache.name) {
                caches.push(row.cache.clone());
            }
        }
        caches
    }
}
