//! Creating, tuning and removing caches.
//!
//! Linux: mm/slab_common.c (6.1).

use super::order;
use super::{CacheSpec, CacheTuning, KmemCache, SlabError, Slabs, OWNER_BYTES};
use crate::interface::kernel::Kernel;
use crate::units::errno::Errno;
use crate::units::{CacheId, Cpu};

impl Slabs {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (CacheId, &KmemCache)> {
        let caches = self.caches.iter().enumerate();
        caches.filter(|(_, cache)| !cache.name.is_empty()).map(|(id, c)| (CacheId(id as u32), c))
    }

    /// Whether the cache exists and is not a clone.
    pub(crate) fn is_root_cache(&self, cache: CacheId) -> bool {
        self.kmem_cache(cache).is_some_and(|it| it.root == cache)
    }

    /// The cache with this name; clones are ignored.
    pub fn find_cache(&self, name: &str) -> Option<CacheId> {
        self.roots().find(|id| self.caches[*id].name == name)
    }

    /// The cache with this id; `None` if there is none.
    pub fn kmem_cache(&self, cache: CacheId) -> Option<&KmemCache> {
        self.caches.get(cache.idx()).filter(|cache| !cache.name.is_empty())
    }

    /// All caches, clones included.
    pub fn kmem_caches(&self) -> impl Iterator<Item = (CacheId, &KmemCache)> {
        self.iter()
    }
}

impl Kernel {
    /// Whether there are no objects, no groups, and no caches except the kernel's own.
    pub(crate) fn slabs_are_as_at_boot(&self) -> bool {
        let none = Slabs::new(&self.config, self.slabs.nr_cpus, self.slabs.nr_nodes);
        self.groups.memcgs.len() == 1
            && self.slabs.caches.len() == none.caches.len() + self.swap.caches.count()
            && self.slabs.caches.iter().all(|cache| cache.slabs.is_empty())
    }

    pub(crate) fn reset_slabs(&mut self) {
        self.slabs = Slabs::new(&self.config, self.slabs.nr_cpus, self.slabs.nr_nodes);
        self.swap.caches = Default::default();
        self.add_swap_caches();
    }

    /// Creates a cache (Linux `kmem_cache_create`).
    ///
    /// # Errors
    /// [`SlabError::NoSize`], [`SlabError::TooLarge`], [`SlabError::DuplicateName`].
    pub fn create_cache(&mut self, spec: CacheSpec) -> Result<CacheId, SlabError> {
        let shape = self.slabs.shape(spec.object_size)?;
        if spec.name.is_empty() || self.slabs.find_cache(&spec.name).is_some() {
            return Err(SlabError::DuplicateName);
        }
        let (nr_cpus, nr_nodes) = (self.slabs.nr_cpus, self.slabs.nr_nodes);
        Ok(self.slabs.insert_root(KmemCache::new(spec, shape, nr_cpus, nr_nodes)))
    }

    /// Tunes a cache.
    ///
    /// # Errors
    ///
    /// ENOENT if the cache does not exist; EINVAL if the order is too small for an object or larger
    /// than any block; EBUSY if the cache has slabs of another order. In these cases nothing has
    /// changed.
    pub fn tune_cache(&mut self, cache: CacheId, tuning: CacheTuning) -> Result<(), Errno> {
        let Some(it) = self.slabs.caches.get_mut(cache.idx()).filter(|it| !it.name.is_empty())
        else {
            return Err(Errno::Enoent);
        };
        if let Some(order) = tuning.order {
            if order < it.min_order || order > crate::units::MAX_PAGE_ORDER {
                return Err(Errno::Einval);
            }
            // The vector of owners of a slab's objects must fit in the largest object of kmalloc.
            let objects = (it.page_size() << order) / u64::from(it.size);
            let owners = objects * u64::from(OWNER_BYTES);
            if objects > order::MAX_OBJECTS || owners > 2 * it.page_size() {
                return Err(Errno::Einval);
            }
            if !it.slabs.is_empty() && order != it.order {
                return Err(Errno::Ebusy);
            }
            it.set_order(order);
        }
        if let Some(min_partial) = tuning.min_partial {
            it.min_partial = min_partial;
        }
        if let Some(objects) = tuning.cpu_partial {
            it.set_cpu_partial(objects);
            let discarded = &mut self.slabs.discarded;
            for cpu in 0..it.cpus.len() {
                it.flush_cpu(Cpu(cpu as u16), discarded);
            }
            self.return_discarded(Cpu(0), cache);
        }
        Ok(())
    }
}
