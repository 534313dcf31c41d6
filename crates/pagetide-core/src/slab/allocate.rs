//! Allocating and freeing objects, with the CPU's slab, new pages and charges.
//!
//! Linux: `slab_alloc_node`, `new_slab`, `allocate_slab`, `memcg_slab_pre_alloc_hook`,
//! `memcg_slab_post_alloc_hook`, `memcg_slab_free_hook`, `discard_slab` (6.1).
//! [`Kernel::kmem_cache_alloc`] is the fast path that every allocation tries first: it takes
//! neither pages nor charges. The other paths may take both, but only a [`Call`](crate::interface::call::Call)
//! reclaims.
//!
//! Invariant: an allocation that returns no object leaves no charge.

use super::objcg::NO_OWNER;
use super::{SlabError, OWNER_BYTES};
use crate::config::SlabAccounting;
use crate::frames::gfp::{AllocFlags, Gfp};
use crate::frames::page::{PageFlags, Place};
use crate::frames::page_alloc::Memory;
use crate::groups::memcg::ROOT;
use crate::interface::bad_id::BadId;
use crate::interface::ctx::Ctx;
use crate::interface::kernel::Kernel;
use crate::slab::object::Object;
use crate::slab::Slabs;
use crate::stats::vmstat::NodeStat;
use crate::units::{CacheId, Cpu, MemcgId, NodeId, Order, Pfn};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlabShortage {
    /// A block for a slab of this cache.
    Pages(CacheId, Order),
    /// Room for this many pages under the limit of a group.
    Charge(MemcgId, u64),
    /// The task must first pay for being above `memory.high`.
    Owing,
    /// Something that reclaim cannot provide: a limit of kernel memory was met.
    Denied,
}

impl Memory {
    /// Takes pages for a slab, without reclaim: a block of the cache's preferred order if one is
    /// free, otherwise of the minimum order.
    fn slab_pages(
        &mut self,
        order: Order,
        min_order: Order,
        gfp: Gfp,
        ctx: &Ctx,
    ) -> Option<(Pfn, Order)> {
        if let Some(pfn) = self.alloc_fast(ctx.cpu, ctx.node, order, gfp) {
            return Some((pfn, order));
        }
        if order > min_order {
            // The preferred order only saves memory, so it wakes no daemon and reclaims nothing.
            let flags = AllocFlags::slow(gfp);
            let pfn = self.get_page_from_freelist(ctx.cpu, ctx.node, order, gfp, flags);
            if let Some(pfn) = pfn {
                return Some((pfn, order));
            }
            let pfn = self.alloc_fast(ctx.cpu, ctx.node, min_order, gfp)?;
            return Some((pfn, min_order));
        }
        None
    }
}

impl Slabs {
    pub(crate) fn node_of_object(&self, object: Object) -> NodeId {
        let it = &self.caches[object.cache];
        it.slabs[it.place_of(object.number).0].node
    }
}

impl Kernel {
    /// Allocates an object if the CPU has a free one. If it is charged to `memcg`, the CPU must
    /// also have enough bytes in stock. If this fails, make a
    /// [`Call::kmem_alloc`](crate::interface::call::Call::kmem_alloc).
    #[inline(always)]
    pub fn kmem_cache_alloc(
        &mut self,
        cache: CacheId,
        memcg: MemcgId,
        account: bool,
        cpu: Cpu,
    ) -> Option<Object> {
        let it = self.slabs.caches.get_mut(cache.idx())?;
        let mine = it.cpus.get_mut(cpu.idx())?;
        if memcg == ROOT || !(account || it.account) {
            let number = mine.alloc_from_word()?;
            return Some(Object { cache, number });
        }
        if self.slabs.accounting != SlabAccounting::PerObject {
            return self.alloc_not_owned(cache, memcg, cpu);
        }
        let owner = self.groups.memcgs.get(memcg.idx())?.objcg;
        // The CPU must have enough bytes of the group's owner in stock.
        let stock = self.slabs.objcgs.stock_of(cpu);
        let size = it.charge_size;
        if stock.objcg != owner || stock.nr_bytes < size || !mine.has_owners {
            return None;
        }
        let number = mine.alloc_from_word()?;
        it.owners[number as usize] = owner;
        stock.take(size, it.reclaimable);
        Some(Object { cache, number })
    }

    /// Allocates an object without an owner. With per-group accounting it comes from the group's
    /// clone, if the clone exists.
    fn alloc_not_owned(&mut self, cache: CacheId, memcg: MemcgId, cpu: Cpu) -> Option<Object> {
        if !self.groups.has_cpu(cpu) {
            return None;
        }
        let it = &mut self.slabs.caches[cache];
        let cache = match self.slabs.accounting {
            SlabAccounting::Off | SlabAccounting::PerObject => cache,
            SlabAccounting::PerGroupCaches | SlabAccounting::PerGroupCachesReparent => {
                *it.clones.get(memcg.idx())?
            }
        };
        let number = self.slabs.caches.get_mut(cache.idx())?.alloc_fast(cpu)?;
        Some(Object { cache, number })
    }

    /// Frees an object. `cache` is the cache that it was requested from, not a group's clone of it.
    ///
    /// # Errors
    ///
    /// [`SlabError::UnknownCache`], [`SlabError::WrongCache`], [`SlabError::NotAnObject`],
    /// [`SlabError::DoubleFree`], [`SlabError::IsCached`]: nothing has changed.
    #[inline(always)]
    pub fn kmem_cache_free(
        &mut self,
        cache: CacheId,
        object: Object,
        cpu: Cpu,
    ) -> Result<(), SlabError> {
        let Object { cache: home, number } = object;
        if let Some(it) = self.slabs.caches.get_mut(home.idx()) {
            if let (true, Some(mine)) = (it.root == cache, it.cpus.get_mut(cpu.idx())) {
                if mine.take_back(number) {
                    if let Some(owner) = it.take_owner(number) {
                        let (size, reclaimable) = (it.charge_size, it.reclaimable);
                        self.obj_uncharge(cpu, owner, size, reclaimable);
                    }
                    return Ok(());
                }
            }
        }
        self.kmem_cache_free_slow(cache, object, cpu)
    }

    /// Frees an object that the fast path does not accept: it is not among the (at most 64) objects
    /// of the active slab that the CPU now allocates from, or the free is an error.
    #[cold]
    fn kmem_cache_free_slow(
        &mut self,
        cache: CacheId,
        object: Object,
        cpu: Cpu,
    ) -> Result<(), SlabError> {
        let Object { cache: home, number } = object;
        if !self.groups.has_cpu(cpu) {
            return Err(SlabError::UnknownCpu);
        }
        let Some(it) = self.slabs.caches.get_mut(home.idx()) else {
            return Err(SlabError::UnknownCache);
        };
        if it.root != cache {
            return Err(match self.slabs.kmem_cache(cache) {
                Some(_) => SlabError::WrongCache,
                None => SlabError::UnknownCache,
            });
        }
        if it.is_cached(number) {
            return Err(SlabError::IsCached);
        }
        // Reading the owner before the slab lets the two loads overlap.
        let owner = it.owners.get(number as usize).copied().unwrap_or(NO_OWNER);
        it.free_slow(number, cpu, &mut self.slabs.discarded)?;
        if owner != NO_OWNER {
            it.owners[number as usize] = NO_OWNER;
            let (size, reclaimable) = (it.charge_size, it.reclaimable);
            self.obj_uncharge(cpu, owner, size, reclaimable);
        }
        if !self.slabs.discarded.is_empty() {
            self.return_discarded(cpu, home);
        }
        Ok(())
    }

    /// Allocates an object for a user that must get one. If necessary, it is charged beyond the
    /// group's limit; if pages are short, it is not charged (Linux `__GFP_NOFAIL`).
    pub(crate) fn kmem_alloc_beyond(&mut self, cache: CacheId, ctx: &Ctx) -> Option<Object> {
        let gfp = Gfp::NOWAIT;
        let mut paid = self.kmem_alloc_now(cache, true, gfp, ctx);
        if let Err(SlabShortage::Charge(_, nr)) = paid {
            self.groups.force_charge(ctx.cpu, ctx.memcg, nr);
            paid = self.kmem_alloc_now(cache, true, gfp, ctx);
        }
        paid.or_else(|_| self.kmem_alloc_now(cache, true, gfp, &Ctx { memcg: ROOT, ..*ctx })).ok()
    }

    /// Allocates an object. Adds a slab or charges pages if necessary, but does not reclaim.
    pub(crate) fn kmem_alloc_now(
        &mut self,
        cache: CacheId,
        account: bool,
        gfp: Gfp,
        ctx: &Ctx,
    ) -> Result<Object, SlabShortage> {
        let it = &self.slabs.caches[cache];
        let accounting = match ctx.memcg != ROOT && (account || it.account) {
            true => self.slabs.accounting,
            false => SlabAccounting::Off,
        };
        match accounting {
            SlabAccounting::Off => self.alloc_object(cache, gfp, ctx),
            SlabAccounting::PerGroupCaches | SlabAccounting::PerGroupCachesReparent => {
                match self.slabs.clone_of(cache, ctx.memcg) {
                    Some(clone) => self.alloc_object(clone, gfp, ctx),
                    None => {
                        // Until the clone exists, the group's objects are not charged.
                        self.request_clone(cache, ctx.memcg);
                        self.alloc_object(cache, gfp, ctx)
                    }
                }
            }
            SlabAccounting::PerObject => {
                let owner = self.groups.memcgs[ctx.memcg].objcg;
                let (size, reclaimable) = (it.charge_size, it.reclaimable);
                self.obj_charge(ctx, owner, size, reclaimable, gfp)?;
                match self.alloc_object(cache, gfp, ctx) {
                    Ok(object) => {
                        // If there is no memory to record its owner, an object is not charged.
                        if !self.set_owner(object, owner, ctx) {
                            self.obj_uncharge(ctx.cpu, owner, size, reclaimable);
                        }
                        Ok(object)
                    }
                    Err(lack) => {
                        self.obj_uncharge(ctx.cpu, owner, size, reclaimable);
                        Err(lack)
                    }
                }
            }
        }
    }

    /// Allocates an object that no group pays for. Adds a slab if necessary, but does not reclaim.
    pub(crate) fn alloc_object(
        &mut self,
        cache: CacheId,
        gfp: Gfp,
        ctx: &Ctx,
    ) -> Result<Object, SlabShortage> {
        let it = &mut self.slabs.caches[cache];
        if let Some(number) = it.alloc_fast(ctx.cpu) {
            return Ok(Object { cache, number });
        }
        self.mem.work.slab_refills += 1;
        let it = &mut self.slabs.caches[cache];
        if let Some(number) = it.alloc_slow(ctx.cpu, ctx.node) {
            return Ok(Object { cache, number });
        }
        let (order, min_order) = (it.order, it.min_order);
        let gfp = gfp.with(if it.reclaimable { Gfp::RECLAIMABLE } else { Gfp::EMPTY });
        let Some((pfn, order)) = self.mem.slab_pages(order, min_order, gfp, ctx) else {
            return Err(SlabShortage::Pages(cache, min_order));
        };
        self.add_slab(cache, pfn, order, ctx)?;
        let it = &mut self.slabs.caches[cache];
        let number = it.alloc_slow(ctx.cpu, ctx.node).expect("a new slab has a free object");
        Ok(Object { cache, number })
    }

    /// The same in reclaim: a new slab may use the reserves.
    pub(crate) fn alloc_object_in_reclaim(
        &mut self,
        cache: CacheId,
        gfp: Gfp,
        ctx: &Ctx,
    ) -> Option<Object> {
        match self.alloc_object(cache, gfp, ctx) {
            Ok(object) => Some(object),
            Err(SlabShortage::Pages(..)) => {
                let pfn = self.alloc_in_reclaim(gfp, ctx)?;
                self.add_slab(cache, pfn, 0, ctx).ok()?;
                self.alloc_object(cache, gfp, ctx).ok()
            }
            Err(_) => None,
        }
    }

    /// Adds a block to a cache as a slab; a slab of a clone is charged to the clone's group. On
    /// error the block is freed, and the error says what is missing.
    pub(crate) fn add_slab(
        &mut self,
        cache: CacheId,
        pfn: Pfn,
        order: Order,
        ctx: &Ctx,
    ) -> Result<(), SlabShortage> {
        let nr = 1u64 << order;
        let memcg = self.slabs.caches[cache].memcg;
        if !self.slabs.caches[cache].has_room() {
            self.mem.free_page(ctx.cpu, pfn, order);
            return Err(SlabShortage::Denied);
        }
        if memcg.is_some() {
            // The pages are already allocated, so this charge may not wait; the task pays later.
            if let Err(lack) = self.groups.charge_kernel_pages(ctx, memcg, nr, Gfp::NOWAIT) {
                self.mem.free_page(ctx.cpu, pfn, order);
                return Err(lack);
            }
        }
        let node = self.mem.pages[pfn].node();
        // The task may have slept and moved to another CPU, or this CPU has a new active slab.
        let it = &mut self.slabs.caches[cache];
        it.deactivate(ctx.cpu, &mut self.slabs.discarded);
        let slot = it.install(ctx.cpu, pfn, order, node);
        let stat = slab_stat(it.reclaimable);
        let page = &mut self.mem.pages[pfn];
        debug_assert_eq!(page.place, Place::Allocated);
        page.set(PageFlags::SLAB);
        page.mapping = cache.0;
        page.index = slot;
        self.mem.pgdat[node].stats[stat as usize] += nr;
        self.return_discarded(ctx.cpu, cache);
        Ok(())
    }

    /// Returns the pages of slabs that `cache` has discarded. Owner vectors are objects, too, so
    /// freeing one may empty a slab of another cache.
    pub(crate) fn return_discarded(&mut self, cpu: Cpu, cache: CacheId) {
        let mut home = cache;
        let mut vectors = core::mem::take(&mut self.slabs.spare);
        loop {
            while let Some(slab) = self.slabs.discarded.pop() {
                self.return_slab(cpu, home, slab.pfn, slab.order);
                if slab.owner_vector.is_some() {
                    vectors.push(slab.owner_vector);
                }
            }
            let Some(vector) = vectors.pop() else { break };
            home = vector.cache;
            let it = &mut self.slabs.caches[home];
            it.free(vector.number, cpu, &mut self.slabs.discarded).expect("an owner vector in use");
        }
        self.slabs.spare = vectors;
        self.destroy_if_empty(cache, cpu);
    }

    fn return_slab(&mut self, cpu: Cpu, cache: CacheId, pfn: Pfn, order: Order) {
        let nr = 1u64 << order;
        let it = &self.slabs.caches[cache];
        let (memcg, stat) = (it.memcg, slab_stat(it.reclaimable));
        let page = &mut self.mem.pages[pfn];
        page.clear(PageFlags::SLAB);
        page.mapping = u32::MAX;
        page.index = 0;
        let node = page.node();
        self.mem.pgdat[node].stats[stat as usize] -= nr;
        if memcg.is_some() {
            self.groups.uncharge_kernel_pages(memcg, nr);
        }
        self.slabs.pages_returned += nr;
        self.mem.free_page(cpu, pfn, order);
    }

    /// Records the owner of an object. Returns `false` if there was no memory for it.
    pub(super) fn set_owner(&mut self, object: Object, owner: u16, ctx: &Ctx) -> bool {
        let it = &mut self.slabs.caches[object.cache];
        if it.owners.is_empty() {
            it.owners.resize(it.slabs.len() << it.shift, NO_OWNER);
        }
        let (slot, _) = it.place_of(object.number);
        let slab = &it.slabs[slot];
        if !slab.owner_vector.is_some() {
            let bytes = u64::from(slab.objects) * u64::from(OWNER_BYTES);
            let Some(cache) = self.slabs.kmalloc_cache(bytes) else { return false };
            let Ok(vector) = self.alloc_object(cache, Gfp::NOWAIT, ctx) else { return false };
            let it = &mut self.slabs.caches[object.cache];
            it.slabs[slot].owner_vector = vector;
            for cpu in it.cpus.iter_mut().filter(|cpu| cpu.slot == slot as u32) {
                cpu.has_owners = true;
            }
        }
        self.slabs.caches[object.cache].owners[object.number as usize] = owner;
        true
    }

    /// The group of an object: the group that is charged for it, or the group of the clone, or the
    /// root.
    pub fn memcg_of_object(&self, object: Object) -> MemcgId {
        let Some(it) = self.slabs.caches.get(object.cache.idx()) else { return ROOT };
        if it.memcg.is_some() {
            return it.memcg;
        }
        it.owner_of(object.number).map_or(ROOT, |owner| self.slabs.objcgs.memcg_of(owner))
    }

    /// Location of an object's bytes: the frame and the offset of its first byte. If a slab has
    /// several frames, the object may extend into the next frame. (Linux uses a pointer.)
    ///
    /// # Errors
    ///
    /// [`BadId::Object`] if there is no such object in use.
    pub fn address_of(&self, object: Object) -> Result<(Pfn, u32), BadId> {
        let it = self.slabs.caches.get(object.cache.idx());
        let it = it.filter(|it| it.check_in_use(object.number).is_ok());
        let it = it.ok_or(BadId::Object(object))?;
        let (slot, index) = it.place_of(object.number);
        let at = u64::from(index) * u64::from(it.size);
        let page_size = it.page_size();
        let pfn = Pfn(it.slabs[slot].pfn.0 + (at / page_size) as u32);
        Ok((pfn, (at % page_size) as u32))
    }

    /// The cache that an object was requested from, not a clone.
    pub fn cache_of_object(&self, object: Object) -> CacheId {
        self.slabs.caches.get(object.cache.idx()).map_or(CacheId::NONE, |cache| cache.root)
    }

    /// Discards the empty slabs of a cache and of its clones (Linux: a write to
    /// /sys/kernel/slab/CACHE/shrink).
    pub fn shrink_cache(&mut self, cache: CacheId, cpu: Cpu) {
        if !self.groups.has_cpu(cpu) {
            return;
        }
        for id in 0..self.slabs.caches.len() {
            let it = &mut self.slabs.caches[id];
            if it.root == cache {
                it.shrink(&mut self.slabs.discarded);
                self.return_discarded(cpu, CacheId(id as u32));
            }
        }
    }
}

/// The node statistic that counts the pages of a cache.
pub(crate) fn slab_stat(reclaimable: bool) -> NodeStat {
    match reclaimable {
        true => NodeStat::NrSlabReclaimable,
        false => NodeStat::NrSlabUnreclaimable,
    }
}
