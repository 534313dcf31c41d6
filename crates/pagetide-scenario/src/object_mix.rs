//! Object mixes: which kernel objects a piece of real work makes, and how long each lives.
//!
//! Linux calls the objects slab objects; scripts/record_objects recorded the mixes from its kmem tracepoints.
//! docs/scenario.md ("kernel-objects") defines the file. All numbers are integers: allocations in
//! thousandths, shares in ten-thousandths.
//!
//! Invariant: the shares of a row add up to [`SHARES`], rows of one cache agree about it, and a unit
//! makes at most [`UNIT_ALLOCS_MAX`] allocations.

/// All of a row's objects.
pub const SHARES: u16 = 10_000;
/// The longest age, in further allocations by the unit, of objects of the first three classes.
pub const WITHIN: [u16; 3] = [16, 256, 4096];
/// Allocations of a unit at most.
pub const UNIT_ALLOCS_MAX: u64 = 1 << 20;

/// A cache of kernel objects, a kmem_cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCache {
    /// Its name, as /proc/slabinfo spells it.
    pub name: String,
    /// Bytes of an object, padding included.
    pub object_size: u32,
    /// Its memory counts as reclaimable (SLAB_RECLAIM_ACCOUNT).
    pub reclaimable: bool,
}

/// What a unit of work allocates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMix {
    /// What was recorded, on which kernel, how and when.
    pub recorded: String,
    pub unit: String,
    /// What the beginning is, if the mix has one.
    pub start: Option<String>,
    /// The objects of a unit.
    pub rows: Vec<ObjectRow>,
    /// The objects of the beginning; empty: there is none.
    pub start_rows: Vec<ObjectRow>,
}

/// Objects of one cache that are charged alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    pub cache: KernelCache,
    /// Charged to the group of whoever allocates them.
    pub account: bool,
    /// Allocations a unit in the mean, in thousandths.
    pub allocs_thousandths: u64,
    /// How long they live.
    pub lifetimes: Lifetimes,
}

/// Shares of a row's objects by lifetime, in ten-thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lifetimes {
    /// Freed within so many further allocations by the unit as [`WITHIN`] says, and not sooner than the
    /// class before.
    pub within: [u16; 3],
    /// Freed when the unit ends, if not within.
    pub unit: u16,
    /// Left to the kernel when the unit ends: nobody uses them, shrinkers may free them.
    pub cached: u16,
    /// Used beyond the unit.
    pub kept: u16,
}

impl ObjectMix {
    /// Whether a group pays for objects of the cache of this name.
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
