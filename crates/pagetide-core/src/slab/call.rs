//! An object allocation that may sleep.
//!
//! Linux: `kmem_cache_alloc` with `GFP_KERNEL`. The task takes a slab of the cache's preferred
//! order if such a block is free. Otherwise it needs a block of the minimum order and reclaims for
//! it. It also reclaims for its group's limit.
//!
//! Invariant: between two steps the task holds neither pages nor a charge.

use super::allocate::SlabShortage;
use crate::frames::gfp::Gfp;
use crate::frames::page_request::{AttemptInput, RetryTiming, Shortage, SlowRequest};
use crate::interface::ctx::Ctx;
use crate::interface::effect::Step;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::outcome::Outcome;
use crate::interface::owners::Owners;
use crate::slab::object::Object;
use crate::units::digest::State;
use crate::units::{CacheId, Order, Pfn};

/// An object allocation in progress.
#[derive(Clone, Copy, Debug, State)]
pub struct KmemAlloc {
    cache: CacheId,
    account: bool,
    gfp: Gfp,
    /// The cache (or clone) that needs a slab, and the slab's order.
    seeking: Option<(CacheId, Order)>,
}

impl KmemAlloc {
    pub(crate) fn new(cache: CacheId, account: bool, gfp: Gfp) -> KmemAlloc {
        KmemAlloc { cache, account, gfp, seeking: None }
    }
}

impl Kernel {
    pub(crate) fn attempt_object(
        &mut self,
        wanted: &mut KmemAlloc,
        given: AttemptInput,
        ctx: &Ctx,
    ) -> Result<Object, Shortage> {
        let KmemAlloc { cache, account, gfp, .. } = *wanted;
        let result = match given {
            AttemptInput::Pages(pfn) => self.use_pages(wanted, pfn, ctx),
            AttemptInput::Nothing | AttemptInput::Room => Ok(()),
        };
        let result = result.and_then(|()| self.kmem_alloc_now(cache, account, gfp, ctx));
        result.map_err(|lack| match lack {
            SlabShortage::Denied => Shortage::Denied,
            SlabShortage::Owing => Shortage::Owing,
            SlabShortage::Charge(over, nr) => Shortage::Room(over, nr, gfp),
            SlabShortage::Pages(cache, order) => {
                wanted.seeking = Some((cache, order));
                let reclaimable = self.slabs.caches[cache].reclaimable;
                let kind = if reclaimable { Gfp::RECLAIMABLE } else { Gfp::EMPTY };
                Shortage::Pages(order, gfp.with(kind))
            }
        })
    }

    /// Adds the allocated pages to their cache. Frees them if the cache no longer exists: it may be
    /// a clone that was removed.
    fn use_pages(
        &mut self,
        wanted: &mut KmemAlloc,
        pfn: Pfn,
        ctx: &Ctx,
    ) -> Result<(), SlabShortage> {
        let Some((cache, order)) = wanted.seeking.take() else {
            // The pages were for an earlier shortage, which has ended in the meantime.
            self.mem.free_page(ctx.cpu, pfn, self.mem.pages[pfn].order);
            return Ok(());
        };
        let is_there = self.slabs.kmem_cache(cache).is_some_and(|it| {
            let is_ours = it.memcg.is_none() || it.memcg == ctx.memcg;
            is_ours && !it.dying && it.root == wanted.cache && it.min_order == order
        });
        if !is_there {
            self.mem.free_page(ctx.cpu, pfn, order);
            return Ok(());
        }
        self.add_slab(cache, pfn, order, ctx)
    }
}

impl<O: Owners> Manager<O> {
    pub(crate) fn kmem_alloc_step(
        &mut self,
        wanted: &mut KmemAlloc,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        if !self.slabs.is_root_cache(wanted.cache) {
            return Step::Done(Outcome::NoCache);
        }
        if self.owners.payer(ctx.asker).is_none() {
            return Step::Done(Outcome::NoObject);
        }
        let step = self.request_step(ctx, slow, RetryTiming::NextStep, |machine, given| {
            machine.attempt_object(wanted, given, ctx)
        });
        match step {
            Step::Continue => Step::Continue,
            Step::Wait(wait) => Step::Wait(wait),
            Step::Done(Ok(object)) => Step::Done(Outcome::Object(object)),
            Step::Done(Err(_)) => Step::Done(Outcome::NoObject),
        }
    }
}
