//! Memory of pools of compressed pages: taken from the allocator by reclaim, given back when unused.
//!
//! Linux: `alloc_zspage`, `free_zspage`, `cache_alloc_handle`, `zs_page_migrate` (mm/zsmalloc.c,
//! 6.1). A zspage's pages are allocated one by one, for the CPU's node, and charged to no group.
//! Compaction may move them. A handle is an object of the cache `zs_handle`, and a zspage has one of
//! the cache `zspage` ([`super::swap_caches`]).
//!
//! Invariant: a pool's page is [`PageFlags::ZSPAGE`], with its pool in `mapping` and
//! its zspage in `index`, and counted in its zone's `nr_zspages`.

use super::swap_caches::{self, SwapCaches};
use super::zsmalloc::{ZsHandle, ZsPool, ZspageMemory};
use crate::frames::gfp::Gfp;
use crate::frames::page::PageFlags;
use crate::frames::page_alloc::Memory;
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::units::digest::State;
use crate::units::{CacheId, Cpu, Pfn};
use alloc::vec::Vec;

/// Names a pool: the pool of a swap area, by the area's position, or the pool of zswap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub(crate) struct ZsPoolId(pub u32);

impl ZsPoolId {
    /// The pool of zswap.
    pub const ZSWAP: ZsPoolId = ZsPoolId(u32::MAX);
}

impl Memory {
    /// The counter of pages of pools in the zone of a page.
    fn zspages_beside(&mut self, pfn: Pfn) -> &mut u64 {
        let page = &self.pages[pfn];
        &mut self.nodes[page.node()].zones[page.zone()].nr_zspages
    }

    /// Pages of pools, of the whole machine (`nr_zspages`).
    pub fn nr_zspages(&self) -> u64 {
        self.nodes.iter().flat_map(|node| &node.zones).map(|zone| zone.nr_zspages).sum()
    }
}

impl Kernel {
    fn pool_mut(&mut self, pool: ZsPoolId) -> Option<&mut ZsPool> {
        match pool {
            ZsPoolId::ZSWAP => self.swap.zswap.as_mut().map(|zswap| &mut zswap.pool),
            ZsPoolId(area) => self.swap.zram_mut(area as usize).map(|zram| &mut zram.pool),
        }
    }

    /// Adds the caches that swap needs and that do not exist yet.
    pub(crate) fn add_swap_caches(&mut self) {
        let mut caches = self.swap.caches;
        let mut add = |cache: &mut CacheId, name, bytes| {
            if !cache.is_some() {
                *cache = self.slabs.add_own(name, bytes);
            }
        };
        if self.swap.has_pools() {
            add(&mut caches.handle, "zs_handle", swap_caches::HANDLE_BYTES);
            add(&mut caches.descriptor, "zspage", swap_caches::DESCRIPTOR_BYTES);
        }
        if self.swap.zswap.is_some() {
            add(&mut caches.entry, "zswap_entry", swap_caches::entry_bytes(self.config.zswap));
        }
        let has_disk = self.swap.areas().iter().any(|area| !area.is_synchronous());
        if self.era.swap_takes_memory && has_disk {
            add(&mut caches.bio, "bio-192", swap_caches::BIO_BYTES);
        }
        self.swap.caches = caches;
        self.swap.takes_memory |= caches.count() > 0;
    }

    /// Stores an object. `None`: there is no memory for it.
    pub(super) fn zs_malloc(
        &mut self,
        id: ZsPoolId,
        size: u32,
        gfp: Gfp,
        ctx: &Ctx,
    ) -> Option<ZsHandle> {
        let pool = self.pool_mut(id)?;
        let (nr, zspage) = (pool.pages_wanted(size), pool.next_zspage());
        let SwapCaches { handle, descriptor, .. } = self.swap.caches;
        let object_gfp = gfp.without(Gfp::HIGHMEM).without(Gfp::MOVABLE);
        let word = self.alloc_object_in_reclaim(handle, object_gfp, ctx)?;
        let mut memory = ZspageMemory::NONE;
        let mut has_memory = true;
        if nr > 0 {
            match self.alloc_object_in_reclaim(descriptor, object_gfp, ctx) {
                Some(object) => memory.descriptor = object,
                None => has_memory = false,
            }
        }
        for _ in 0..nr {
            match self.alloc_in_reclaim(gfp, ctx).filter(|_| has_memory) {
                Some(pfn) => {
                    self.mark_pool_page(pfn, id, zspage);
                    memory.push(pfn);
                }
                None => has_memory = false,
            }
        }
        if !has_memory {
            self.free_zspage(&memory, ctx.cpu);
            self.free_known(word, ctx.cpu);
            return None;
        }
        self.pool_mut(id).map(|pool| pool.insert(size, word, memory))
    }

    /// Frees an object, and the memory of its zspage if that is empty.
    pub(super) fn zs_free(&mut self, id: ZsPoolId, handle: ZsHandle, cpu: Cpu) {
        if let Some(pool) = self.pool_mut(id) {
            let (word, freed) = pool.remove(handle);
            self.free_zspage(&freed, cpu);
            self.free_known(word, cpu);
        }
    }

    fn mark_pool_page(&mut self, pfn: Pfn, pool: ZsPoolId, zspage: u32) {
        let page = &mut self.mem.pages[pfn];
        page.set(PageFlags::ZSPAGE);
        page.mapping = pool.0;
        page.index = zspage;
        *self.mem.zspages_beside(pfn) += 1;
    }

    fn free_zspage(&mut self, memory: &ZspageMemory, cpu: Cpu) {
        for &pfn in memory.as_slice() {
            self.mem.pages[pfn].clear(PageFlags::ZSPAGE);
            *self.mem.zspages_beside(pfn) -= 1;
            self.mem.free_page(cpu, pfn, 0);
        }
        if memory.descriptor.is_some() {
            self.free_known(memory.descriptor, cpu);
        }
    }

    /// Compacts all pools and frees their empty pages. Returns the number of pages.
    pub(crate) fn compact_pools(&mut self, cpu: Cpu) -> u64 {
        let mut nr_freed = 0;
        let nr_areas = self.swap.areas().len();
        for area in 0..=nr_areas {
            let mut freed = Vec::new();
            let moved = if let Some(zram) = self.swap.zram_mut(area) {
                zram.compact(&mut freed)
            } else if let Some(zswap) = self.swap.zswap.as_mut().filter(|_| area == nr_areas) {
                zswap.pool.compact(&mut freed)
            } else {
                continue;
            };
            let moved = u32::try_from(moved).unwrap_or(u32::MAX);
            self.mem.work.bytes_copied = self.mem.work.bytes_copied.saturating_add(moved);
            for memory in &freed {
                self.free_zspage(memory, cpu);
                nr_freed += memory.as_slice().len() as u64;
            }
        }
        nr_freed
    }

    /// Moves a page of a pool to another frame, for compaction. The old frame is free to be freed.
    pub(crate) fn move_pool_page(&mut self, from: Pfn, to: Pfn) {
        let page = &mut self.mem.pages[from];
        page.clear(PageFlags::ZSPAGE);
        let (pool, zspage) = (ZsPoolId(page.mapping), page.index);
        *self.mem.zspages_beside(from) -= 1;
        self.mark_pool_page(to, pool, zspage);
        if let Some(pool) = self.pool_mut(pool) {
            pool.replace_page(zspage, from, to);
        }
    }
}
