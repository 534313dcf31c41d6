//! Slab allocation: caches of small objects, and the charging of objects to groups.
//!
//! Linux: mm/slub.c, mm/slab_common.c and the slab part of mm/memcontrol.c. [`kmem_cache`] is one
//! cache and [`cpu_slab`] is a CPU's part of it. [`order`] computes the size of its slabs, and
//! [`partial`] chooses the slab to refill next. [`allocate`] allocates an object, with pages and
//! charges; [`call`] does the same for a task that may sleep. [`objcg`] charges groups by object
//! (since 5.9), and [`per_group`] gives each group its own caches (until 5.8). [`cached`] has the
//! unused objects that the kernel keeps, and [`shrinker`] frees them under pressure. [`slabinfo`]
//! prints, [`breakdown`] divides slab memory by group and cache, and [`at_boot`] has the objects
//! that exist before the first task.
//!
//! Invariant: a frame of a slab has [`PageFlags::SLAB`](crate::frames::page::PageFlags::SLAB); its
//! `mapping` is the cache and its `index` is the slab's slot.

pub(crate) mod allocate;
pub mod at_boot;
pub mod breakdown;
pub mod bulk;
pub mod cached;
mod caches;
pub mod call;
pub(crate) mod cpu_slab;
pub mod kmem_cache;
pub mod objcg;
pub mod object;
pub mod order;
pub(crate) mod partial;
pub(crate) mod per_group;
pub mod shrinker;
pub mod slabinfo;

#[cfg(test)]
mod tests;

use crate::config::{Config, KmemAccounting, SlabAccounting, SlubPolicy};
use crate::groups::memcg::MemcgPosition;
#[cfg(doc)]
use crate::interface::kernel::Kernel;
#[cfg(doc)]
use crate::interface::manager::Manager;
use crate::units::digest::State;
use crate::units::{CacheId, IdVec, Order, Pfn};
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;
use kmem_cache::CacheShape;
pub use kmem_cache::{CacheSpec, KmemCache};
use objcg::ObjCgroups;
use object::Object;

/// Why a cache refuses a request. A refused request has changed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlabError {
    /// The cache does not exist.
    UnknownCache,
    /// The object belongs to another cache.
    WrongCache,
    /// The cache has no such object.
    NotAnObject,
    /// The object is free.
    DoubleFree,
    /// The object is cached ([`Kernel::cache_object`]).
    IsCached,
    /// No block of pages is large enough for an object.
    TooLarge,
    /// Objects must have at least one byte.
    NoSize,
    /// A cache with this name exists.
    DuplicateName,
    /// The CPU does not exist.
    UnknownCpu,
}

impl core::fmt::Display for SlabError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            SlabError::UnknownCache => "there is no such cache",
            SlabError::WrongCache => "the object belongs to another cache",
            SlabError::NotAnObject => "the cache has no such object",
            SlabError::DoubleFree => "the object is free already",
            SlabError::IsCached => "the object is cached: the kernel frees it",
            SlabError::TooLarge => "no block of pages is large enough for an object of this size",
            SlabError::NoSize => "an object needs at least one byte",
            SlabError::DuplicateName => "a cache with this name exists",
            SlabError::UnknownCpu => "there is no such CPU",
        })
    }
}

/// A slab that its cache no longer needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiscardedSlab {
    pub pfn: Pfn,
    pub order: Order,
    pub owner_vector: Object,
}

/// Bytes to record the owner of an object: a pointer in its slab's vector of owners, which is an
/// object itself. (The simulator stores ids.)
pub(crate) const OWNER_BYTES: u32 = 8;

/// Object sizes of the `kmalloc` caches, up to two pages of 4 KiB.
const KMALLOC_SIZES: [u32; 13] = [8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192];

/// The three kinds of `kmalloc` caches: plain, charged to groups, reclaimable. Plain ones come
/// first.
const KMALLOC_KINDS: [(&str, bool, bool); 3] =
    [("kmalloc-", false, false), ("kmalloc-cg-", true, false), ("kmalloc-rcl-", false, true)];

#[derive(Clone, Copy, Debug, State)]
pub(crate) enum DeferredWork {
    /// Create a group's clone of a cache.
    Create { root: CacheId, group: MemcgPosition },
    /// Empty a clone of a removed group.
    Shrink { clone: CacheId },
}

/// All slab caches, and the owners of their objects.
#[derive(Clone, Debug, State)]
pub struct Slabs {
    pub(crate) caches: IdVec<CacheId, KmemCache>,
    /// Caches that are not clones, in creation order.
    roots: Vec<CacheId>,
    /// Ids without a cache.
    free_ids: Vec<u32>,
    /// Ids of plain kmalloc caches, by size.
    kmalloc: Vec<CacheId>,
    /// Cache of page-cache tree nodes.
    pub(crate) tree_node: CacheId,
    /// Cache of buffer heads (file-system data about a dirty page).
    pub(crate) buffer_head: CacheId,
    /// Caches for a clone's own memory: the cache, and its part for each node.
    pub(crate) clone_parts: [CacheId; 2],
    /// Accounting chosen at boot; off if kernel memory is not accounted.
    pub(crate) accounting: SlabAccounting,
    pub(crate) objcgs: ObjCgroups,
    pub(crate) cached: cached::CachedObjects,
    /// Clones to create or to empty.
    pub(crate) deferred: VecDeque<DeferredWork>,
    /// Slabs that caches gave up in the present operation; their pages are not returned yet.
    #[state(skip)] // empty between two steps
    pub(crate) discarded: Vec<DiscardedSlab>,
    /// Buffer for owner vectors that are being freed.
    #[state(skip)] // a buffer
    pub(crate) spare: Vec<Object>,
    /// Whether the world frees objects that RCU would free ([`Kernel::free_late`]).
    pub(crate) defers_frees: bool,
    /// Pages that caches have returned since boot; reclaim reads this number to credit its
    /// shrinkers.
    pub(crate) pages_returned: u64,
    policy: SlubPolicy,
    nr_cpus: u16,
    nr_nodes: usize,
    #[state(skip)] // the machine's
    pub(crate) page_size: u64,
}

impl Slabs {
    /// The caches that every kernel has.
    pub(crate) fn new(config: &Config, nr_cpus: u16, nr_nodes: usize) -> Slabs {
        let accounting = match config.kmem_accounting {
            KmemAccounting::On => config.slab_accounting,
            KmemAccounting::Off => SlabAccounting::Off,
        };
        let mut slabs = Slabs {
            caches: Vec::new().into(),
            roots: Vec::new(),
            free_ids: Vec::new(),
            kmalloc: Vec::new(),
            tree_node: CacheId::NONE,
            buffer_head: CacheId::NONE,
            clone_parts: [CacheId::NONE; 2],
            accounting,
            objcgs: ObjCgroups::new(nr_cpus),
            cached: Default::default(),
            deferred: VecDeque::new(),
            discarded: Vec::new(),
            spare: Vec::new(),
            defers_frees: false,
            pages_returned: 0,
            policy: config.slub,
            nr_cpus,
            nr_nodes,
            page_size: config.page_size.bytes(),
        };
        for (prefix, account, reclaimable) in KMALLOC_KINDS {
            let largest = 2 * slabs.page_size as u32;
            let above = (14..).map(|shift| 1u32 << shift).take_while(|&size| size <= largest);
            for size in KMALLOC_SIZES.into_iter().chain(above) {
                let name = match size {
                    1024.. => format!("{prefix}{}k", size / 1024),
                    _ => format!("{prefix}{size}"),
                };
                let id = slabs.add(CacheSpec { name, object_size: size, reclaimable, account });
                if !account && !reclaimable {
                    slabs.kmalloc.push(id);
                }
            }
        }
        let mut add = |name: &str, object_size, reclaimable, account| {
            slabs.add(CacheSpec { name: name.into(), object_size, reclaimable, account })
        };
        // 576 bytes of node plus 8 bytes for the free pointer: in a cache with a constructor the
        // pointer cannot overlay the object.
        let tree_node = add("radix_tree_node", 584, true, true);
        let buffer_head = add("buffer_head", 104, true, false);
        let clone_parts =
            [add("kmem_cache", 256, false, false), add("kmem_cache_node", 64, false, false)];
        slabs.tree_node = tree_node;
        slabs.buffer_head = buffer_head;
        slabs.clone_parts = clone_parts;
        slabs
    }

    fn shape(&self, object_size: u32) -> Result<CacheShape, SlabError> {
        if object_size == 0 {
            return Err(SlabError::NoSize);
        }
        let size = u64::from(object_size).next_multiple_of(8);
        let order = order::calculate_order(size, self.nr_cpus, self.page_size);
        let min_order = order::smallest_order(size, self.page_size);
        let (Some(order), Some(min_order)) = (order, min_order) else {
            return Err(SlabError::TooLarge);
        };
        let size = u32::try_from(size).map_err(|_| SlabError::TooLarge)?;
        Ok(CacheShape { size, order, min_order, policy: self.policy, page_size: self.page_size })
    }

    /// Adds a cache; its spec must be valid.
    fn add(&mut self, spec: CacheSpec) -> CacheId {
        let shape = self.shape(spec.object_size).expect("the kernel's own caches are small");
        self.insert_root(KmemCache::new(spec, shape, self.nr_cpus, self.nr_nodes))
    }

    /// Adds a cache that the kernel needs later, for objects that are neither reclaimed nor charged.
    pub(crate) fn add_own(&mut self, name: &str, object_size: u32) -> CacheId {
        let (reclaimable, account) = (false, false);
        self.add(CacheSpec { name: name.into(), object_size, reclaimable, account })
    }

    fn insert_root(&mut self, cache: KmemCache) -> CacheId {
        let id = self.insert(cache);
        self.roots.push(id);
        id
    }

    /// Adds a cache as its own root.
    fn insert(&mut self, mut cache: KmemCache) -> CacheId {
        cache.charge_size = cache.size + OWNER_BYTES;
        let id = self.free_ids.pop().unwrap_or(self.caches.len() as u32);
        cache.root = CacheId(id);
        match self.caches.get_mut(id as usize) {
            Some(place) => *place = cache,
            None => self.caches.push(cache),
        }
        CacheId(id)
    }

    /// The cache from which `kmalloc` allocates `bytes` bytes.
    pub fn kmalloc_cache(&self, bytes: u64) -> Option<CacheId> {
        self.kmalloc.iter().copied().find(|id| u64::from(self.caches[*id].size) >= bytes)
    }

    /// Caches that are not clones, in creation order.
    pub fn roots(&self) -> impl Iterator<Item = CacheId> + '_ {
        self.roots.iter().copied()
    }
}

impl KmemCache {
    /// Bytes of its slabs.
    pub fn bytes(&self) -> u64 {
        self.nr_pages * self.page_size()
    }
}

/// Tunables of a cache (Linux: /sys/kernel/slab/CACHE/). `None`: unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheTuning {
    /// log2 of the pages of a slab. It can be set only while the cache has no slab.
    pub order: Option<Order>,
    /// Empty slabs that a node keeps.
    pub min_partial: Option<u32>,
    /// Objects that a CPU's chain may hold; 0: no chains.
    pub cpu_partial: Option<u32>,
}
