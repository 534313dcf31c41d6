//! Objects that boot allocates, before the first task runs.
//!
//! Linux: the objects that exist after boot, mostly dentries and inodes of /sys and of the first
//! file system. Their number is known, but not their places in the slabs. New objects fill the free
//! places in these slabs.
//!
//! Their slabs use frames that the machine's description reserves for the kernel
//! ([`free_lists`](crate::frames::boot::free_lists)), so the number of free pages does not change. Objects
//! of boot are neither charged nor freed. The free places are spread evenly.
//!
//! Invariant: free pages, and all frames that are not reserved for the kernel, are unchanged.

use super::allocate::slab_stat;
use super::KmemCache;
use crate::frames::page::{PageFlags, Place};
use crate::frames::page_alloc::Memory;
use crate::interface::kernel::Kernel;
use crate::units::{CacheId, Cpu, Order, Pfn};
use alloc::vec::Vec;

impl Memory {
    /// Up to `wanted` aligned blocks of frames that are neither free nor in use, lowest first.
    pub(crate) fn frames_held_by_kernel(&self, order: Order, wanted: u64) -> Vec<Pfn> {
        let pages = &self.pages;
        let is_held = |pfn: usize| {
            let page = pages.peek(pfn);
            page.place == Place::Allocated && page.flags == PageFlags::EMPTY && page.order == 0
        };
        let size = 1usize << order;
        pages
            .with_held()
            .flat_map(|frames| frames.start / size..frames.end / size)
            .map(|block| block * size)
            .filter(|&first| {
                let node = pages.peek(first).node();
                (first..first + size).all(|pfn| is_held(pfn) && pages.peek(pfn).node() == node)
            })
            .take(wanted as usize)
            .map(|pfn| Pfn(pfn as u32))
            .collect()
    }
}

impl Kernel {
    /// Adds `slabs` slabs to a cache, with `active` objects in use and the other objects free. The
    /// slabs are in the state after a shrink of the cache. Call it before any allocation. Returns
    /// the number of added slabs; this is less than `slabs` if the memory reserved for the kernel
    /// has too few contiguous frames.
    pub fn populate_cache(&mut self, cache: CacheId, slabs: u64, active: u64) -> u64 {
        let Some(order) = self.slabs.kmem_cache(cache).map(|it| it.order) else { return 0 };
        let cpu = Cpu(0);
        let frames = self.mem.frames_held_by_kernel(order, slabs);
        let mut objects = Vec::new();
        for &pfn in &frames {
            self.mem.pages.open(pfn);
            let node = self.mem.pages[pfn].node();
            for tail in 1..1 << order {
                let page = &mut self.mem.pages[pfn.idx() + tail];
                page.place = Place::BuddyTail;
            }
            let page = &mut self.mem.pages[pfn];
            page.order = order;
            page.set(PageFlags::SLAB);
            page.mapping = cache.0;
            let it = &mut self.slabs.caches[cache];
            it.deactivate(cpu, &mut self.slabs.discarded);
            let slot = it.install(cpu, pfn, order, node);
            self.mem.pages[pfn].index = slot;
            let stat = slab_stat(it.reclaimable);
            self.mem.pgdat[node].stats[stat as usize] += 1 << order;
            let it: &mut KmemCache = &mut self.slabs.caches[cache];
            for _ in 0..it.objects_per_slab() {
                let next = it.alloc_fast(cpu).or_else(|| it.alloc_slow(cpu, node));
                objects.extend(next);
            }
        }
        let nr_free = (objects.len() as u64).saturating_sub(active);
        let it = &mut self.slabs.caches[cache];
        for hole in 0..nr_free {
            let at = (hole * objects.len() as u64 / nr_free) as usize;
            let freed = it.free(objects[at], cpu, &mut self.slabs.discarded);
            debug_assert_eq!(freed, Ok(()));
        }
        if !self.slabs.discarded.is_empty() {
            self.return_discarded(cpu, cache);
        }
        self.shrink_cache(cache, cpu);
        self.slabs.caches[cache].nr_slabs.into()
    }
}
