//! Allocation and freeing of many objects at once, with one charge and one uncharge.
//!
//! Linux: `kmem_cache_alloc_bulk`, `kmem_cache_free_bulk` (mm/slub.c), `memcg_slab_pre_alloc_hook`
//! with a count (6.1). Linux charges objects together but uncharges them one by one. Here they are
//! also uncharged together, if consecutive objects belong to the same owner.
//!
//! Invariant: exactly the objects that were allocated are charged.

use super::objcg::NO_OWNER;
use super::SlabError;
use crate::config::SlabAccounting;
use crate::frames::gfp::Gfp;
use crate::groups::memcg::ROOT;
use crate::groups::memcg_stock::MEMCG_CHARGE_BATCH;
use crate::interface::ctx::Ctx;
use crate::interface::effect::Effects;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::slab::object::Object;
use crate::slab::Slabs;
use crate::units::{CacheId, Cpu, Requester};
use alloc::vec::Vec;

impl Slabs {
    /// Removes the owner of an object; the caller uncharges its bytes later.
    fn disown(&mut self, object: Object) -> u16 {
        let it = self.caches.get_mut(object.cache.idx());
        it.and_then(|it| it.take_owner(object.number)).unwrap_or(NO_OWNER)
    }

    fn own_again(&mut self, object: Object, owner: u16) {
        let it = self.caches.get_mut(object.cache.idx());
        if let Some(place) = it.and_then(|it| it.owners.get_mut(object.number as usize)) {
            *place = owner;
        }
    }
}

impl Kernel {
    /// Allocates objects that are not charged, or objects of a clone, where the slabs are charged.
    fn alloc_unowned(
        &mut self,
        cache: CacheId,
        account: bool,
        ctx: &Ctx,
        nr: usize,
        objects: &mut Vec<Object>,
    ) -> usize {
        for got in 0..nr {
            match self.kmem_alloc_now(cache, account, Gfp::NOWAIT, ctx) {
                Ok(object) => objects.push(object),
                Err(_) => return got,
            }
        }
        nr
    }

    /// Allocates objects with one charge for all of them. If the charge fails, allocates none; if
    /// memory is short, allocates fewer. Objects that are not allocated are uncharged again.
    fn alloc_owned(
        &mut self,
        cache: CacheId,
        ctx: &Ctx,
        nr: usize,
        objects: &mut Vec<Object>,
    ) -> usize {
        let it = &self.slabs.caches[cache];
        let (size, reclaimable) = (it.charge_size, it.reclaimable);
        let owner = self.groups.memcgs[ctx.memcg].objcg;
        let bytes = size * nr as u32;
        if self.obj_charge(ctx, owner, bytes, reclaimable, Gfp::NOWAIT).is_err() {
            return 0;
        }
        let (mut got, mut owned) = (0, 0);
        while got < nr {
            match self.alloc_object(cache, Gfp::NOWAIT, ctx) {
                Ok(object) => {
                    owned += u32::from(self.set_owner(object, owner, ctx));
                    objects.push(object);
                }
                Err(_) => break,
            }
            got += 1;
        }
        let unused = bytes - owned * size;
        if unused > 0 {
            self.obj_uncharge(ctx.cpu, owner, unused, reclaimable);
        }
        got
    }

    /// Frees objects of a cache.
    ///
    /// # Errors
    ///
    /// Index and error of the first object that was refused ([`Kernel::kmem_cache_free`]). Earlier
    /// objects are freed; this object and later ones are unchanged.
    pub fn kmem_cache_free_bulk(
        &mut self,
        cache: CacheId,
        objects: &[Object],
        cpu: Cpu,
    ) -> Result<(), (usize, SlabError)> {
        if !self.groups.has_cpu(cpu) {
            return Err((0, SlabError::UnknownCpu));
        }
        let (mut owner, mut bytes) = (NO_OWNER, 0);
        let (size, reclaimable) = match self.slabs.kmem_cache(cache) {
            Some(it) => (it.charge_size, it.reclaimable),
            None if objects.is_empty() => return Ok(()),
            None => return Err((0, SlabError::UnknownCache)),
        };
        let mut result = Ok(());
        for (at, &object) in objects.iter().enumerate() {
            let owner_of_this = self.slabs.disown(object);
            if let Err(error) = self.kmem_cache_free(cache, object, cpu) {
                self.slabs.own_again(object, owner_of_this);
                result = Err((at, error));
                break;
            }
            if owner_of_this == NO_OWNER {
                continue;
            }
            if owner_of_this != owner || bytes + size > self.slabs.page_size as u32 {
                if bytes > 0 {
                    self.obj_uncharge(cpu, owner, bytes, reclaimable);
                }
                (owner, bytes) = (owner_of_this, 0);
            }
            bytes += size;
        }
        if bytes > 0 {
            self.obj_uncharge(cpu, owner, bytes, reclaimable);
        }
        result
    }
}

impl<O: Owners> Manager<O> {
    /// Allocates up to `nr` objects for `asker` and appends them to `objects`. Does not reclaim and
    /// respects the group's limit. Returns the number of objects and the effects for the world.
    ///
    /// # Errors
    ///
    /// [`SlabError::UnknownCache`] if the cache does not exist or is a group's clone;
    /// [`SlabError::UnknownCpu`].
    pub fn kmem_cache_alloc_bulk(
        &mut self,
        cache: CacheId,
        asker: Requester,
        account: bool,
        cpu: Cpu,
        nr: usize,
        objects: &mut Vec<Object>,
    ) -> Result<(usize, Effects<'_>), SlabError> {
        let got = self.alloc_bulk(cache, asker, account, cpu, nr, objects)?;
        let nr_over_high = core::mem::take(&mut self.groups.nr_over_high);
        // This function is not a `Call`, so the task pays in its next call.
        self.owners.note_over_high(asker, nr_over_high);
        Ok((got, self.take_effects()))
    }

    fn alloc_bulk(
        &mut self,
        cache: CacheId,
        asker: Requester,
        account: bool,
        cpu: Cpu,
        nr: usize,
        objects: &mut Vec<Object>,
    ) -> Result<usize, SlabError> {
        if !self.slabs.is_root_cache(cache) {
            return Err(SlabError::UnknownCache);
        }
        if !self.groups.has_cpu(cpu) {
            return Err(SlabError::UnknownCpu);
        }
        let Some(memcg) = self.owners.payer(asker) else { return Ok(0) };
        let it = &self.slabs.caches[cache];
        let (size, account) = (u64::from(it.charge_size), account || it.account);
        let ctx = Ctx { cpu, node: self.mem.cpu_node(cpu), now: 0, asker, memcg };
        let owned = account && memcg != ROOT && self.slabs.accounting == SlabAccounting::PerObject;
        if !owned {
            return Ok(self.alloc_unowned(cache, account, &ctx, nr, objects));
        }
        // At most a batch of pages per charge.
        let chunk = (MEMCG_CHARGE_BATCH * self.slabs.page_size / size).max(1) as usize;
        let mut got = 0;
        while got < nr {
            let wanted = chunk.min(nr - got);
            let now = self.alloc_owned(cache, &ctx, wanted, objects);
            got += now;
            if now < wanted {
                break;
            }
        }
        Ok(got)
    }
}
