//! An allocation of an object that may sleep.
//!
//! Linux: `kmem_cache_alloc` with `GFP_KERNEL`. A slab of the order that the cache wants is taken if there is
//! one; for one that holds a single object the task reclaims, and for its group's limit as well.
//!
//! Invariant: between two steps the task holds neither pages nor a charge.

use super::allocate::Lack;
use crate::call::Outcome;
use crate::charge::Slow;
use crate::ctx::Ctx;
use crate::effect::Step;
use crate::gfp::Gfp;
use crate::manager::Manager;
use crate::owners::Owners;
use crate::slowpath::SlowPath;
use crate::units::{CacheId, Order};

/// An allocation of an object in progress.
#[derive(Clone, Copy, Debug)]
pub struct KmemAlloc {
    cache: CacheId,
    account: bool,
    gfp: Gfp,
    /// What a slab is being sought for: the cache or a group's clone of it.
    seeking: Option<(CacheId, Order)>,
}

impl KmemAlloc {
    pub(crate) fn new(cache: CacheId, account: bool, gfp: Gfp) -> KmemAlloc {
        KmemAlloc { cache, account, gfp, seeking: None }
    }
}

impl<O: Owners> Manager<O> {
    pub(crate) fn kmem_alloc_step(
        &mut self,
        wanted: &mut KmemAlloc,
        slow: &mut Option<Slow>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        if !self.is_root_cache(wanted.cache) {
            return Step::Done(Outcome::NoCache);
        }
        if self.owners.payer(ctx.asker).is_none() {
            return Step::Done(Outcome::NoObject);
        }
        loop {
            let lack = match slow {
                None => match self.kmem_alloc_now(wanted.cache, wanted.account, wanted.gfp, ctx) {
                    Ok(object) => return Step::Done(Outcome::Object(object)),
                    Err(lack) => lack,
                },
                Some(Slow::Alloc(path)) => match self.slowpath_step(path, ctx) {
                    Step::Continue => return Step::Continue,
                    Step::Wait(wait) => return Step::Wait(wait),
                    Step::Done(found) => {
                        *slow = None;
                        let (Some(pfn), Some((cache, order))) = (found, wanted.seeking.take())
                        else {
                            return Step::Done(Outcome::NoObject);
                        };
                        // A clone may have gone with its group meanwhile.
                        let is_there = self.kmem_cache(cache).is_some_and(|it| {
                            let is_ours = it.memcg.is_none() || it.memcg == ctx.memcg;
                            is_ours && !it.dying && it.root == wanted.cache && it.min_order == order
                        });
                        if !is_there {
                            self.mem.free_page(ctx.cpu, pfn, order);
                            continue;
                        }
                        match self.add_slab(cache, pfn, order, ctx) {
                            Ok(()) => continue,
                            Err(lack) => lack,
                        }
                    }
                },
                Some(Slow::Charge(path)) => match self.charge_step(path, ctx) {
                    Step::Continue => return Step::Continue,
                    Step::Wait(wait) => return Step::Wait(wait),
                    Step::Done(false) => {
                        *slow = None;
                        return Step::Done(Outcome::NoObject);
                    }
                    Step::Done(true) => {
                        match self.kmem_alloc_now(wanted.cache, wanted.account, wanted.gfp, ctx) {
                            Ok(object) => {
                                *slow = None;
                                return Step::Done(Outcome::Object(object));
                            }
                            // Somebody was faster; what was tried so far counts.
                            Err(Lack::Charge(over, nr)) => {
                                let Some(Slow::Charge(path)) = slow else { continue };
                                self.charge_again(path, over, nr, wanted.gfp);
                                return Step::Continue;
                            }
                            Err(lack) => lack,
                        }
                    }
                },
            };
            *slow = Some(match lack {
                Lack::Denied => return Step::Done(Outcome::NoObject),
                Lack::Charge(over, nr) => Slow::Charge(self.charge_path(over, nr, wanted.gfp)),
                Lack::Pages(cache, order) => {
                    wanted.seeking = Some((cache, order));
                    let reclaimable = self.slabs.caches[cache.idx()].reclaimable;
                    let kind = if reclaimable { Gfp::RECLAIMABLE } else { Gfp::EMPTY };
                    Slow::Alloc(SlowPath::new(order, wanted.gfp.with(kind)))
                }
            });
        }
    }
}
