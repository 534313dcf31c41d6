//! Swap-in: reads a page from swap into the swap cache, and gives it from there to its owner.
//!
//! Linux 6.1: `__read_swap_cache_async`, second half of `do_swap_page`. The owner adds read-ahead
//! of neighbours.
//!
//! Invariant: a page in the swap cache is locked until its read ends. When a page is mapped again,
//! its slot is used only by the swap cache, or is free.

use crate::frames::gfp::Gfp;
use crate::frames::page::{PageFlags, Place};
use crate::frames::page_request::{PageRequest, SlowRequest};
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Sleep, Step};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::outcome::Outcome;
use crate::interface::owners::{OwnerSlot, Owners};
use crate::interface::throttle::Throttle;
use crate::stats::vmstat::Event;
use crate::units::{MemcgId, Pfn, SwapSlot, TICK};

impl Kernel {
    /// The group that pays for the page of a slot.
    pub(super) fn slot_memcg(&self, slot: SwapSlot, ctx: &Ctx) -> MemcgId {
        if !self.swap[slot].is_mapped(slot) {
            return ctx.memcg;
        }
        let memcg = self.swap[slot].memcg(slot);
        if self.groups.memcg_is_online(memcg) {
            memcg
        } else {
            ctx.memcg
        }
    }

    /// Makes a new, charged page the page of a slot in the swap cache.
    pub(super) fn enter_swap_cache(
        &mut self,
        slot: SwapSlot,
        pfn: Pfn,
        memcg: MemcgId,
        flags: PageFlags,
        ctx: &Ctx,
    ) {
        let cpu = ctx.cpu;
        // A page from zswap may be stored again before its owner maps it.
        let (mapping, index) = self.zswap_owner_slot(slot).unwrap_or((u32::MAX, 0));
        self.mem.init_user_page(pfn, mapping, index, flags);
        self.charge(cpu, pfn, memcg);
        let group = self.swap[slot].memcg(slot);
        self.uncharge_swapped_in(group);
        if self.swap.takes_memory && !self.swap[slot].has_cache_entry(slot) {
            self.add_cache_entry(slot, ctx);
        }
        let shadow = self.swap[slot].add_to_cache(slot, pfn);
        self.mem.mark_swap_cached(pfn, slot);
        self.mem.work.cache_ops += 1;
        self.workingset_refault(pfn, shadow);
        self.folio_add_lru(cpu, pfn);
    }
}

impl<O: Owners> Manager<O> {
    /// Reads a slot's page into the swap cache, locked until the read ends.
    pub(crate) fn read_swap_page(
        &mut self,
        slot: SwapSlot,
        wanted: bool,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Result<(), Option<Step<Outcome>>> {
        // The slot's group pays for the page (Linux `mem_cgroup_swapin_charge_folio`).
        let memcg = self.slot_memcg(slot, ctx);
        let request = PageRequest::page(Gfp::HIGHUSER_MOVABLE, memcg);
        let pfn = match self.request_page(ctx, slow, request) {
            Step::Continue => return Err(Some(Step::Continue)),
            Step::Wait(wait) => return Err(Some(Step::Wait(wait))),
            Step::Done(Ok(pfn)) => pfn,
            // The slot's group is at its limit and has no task to kill. So the fault is tried
            // again, as in Linux, which kills no task for a page of another group.
            Step::Done(Err(_)) if memcg != ctx.memcg => {
                let sleep = Sleep::throttled(ctx.node, Throttle::NoProgress, TICK);
                return Err(Some(Step::Wait(sleep)));
            }
            Step::Done(Err(_)) => return Err(None),
        };
        if !self.swap[slot].is_mapped(slot) || self.swap[slot].cached(slot).is_some() {
            self.discard_charged(ctx.cpu, pfn, memcg);
            return Ok(());
        }
        let mut flags = PageFlags::SWAPBACKED.with(PageFlags::LOCKED);
        if !wanted {
            flags = flags.with(PageFlags::READAHEAD);
            self.mem.vmstat.count(Event::SwapRa);
        }
        self.enter_swap_cache(slot, pfn, memcg, flags, ctx);
        self.swap_load(slot, pfn, ctx);
        Ok(())
    }

    /// Gives a page in the swap cache back to its owner, after an entry maps it again. Its slot is
    /// freed if it is of no use, or if the page does not go through the swap cache (`keeps_slot`).
    pub(crate) fn take_from_swap_cache(
        &mut self,
        pfn: Pfn,
        at: OwnerSlot,
        write: bool,
        keeps_slot: bool,
        ctx: &Ctx,
    ) {
        let page = &mut self.mem.pages[pfn];
        let slot = SwapSlot(page.private);
        page.mapping = at.owner;
        page.index = at.index;
        if write && page.place == Place::LruBatch {
            // A page in a batch has an extra reference, which would make it look shared.
            self.lru_add_drain(ctx.cpu);
        }
        // The entry owns the page again; free the slot when it is no longer useful.
        self.mem.page_add_rmap(pfn);
        let page = &self.mem.pages[pfn];
        // The owner may have locked the page while it was in swap.
        let is_locked = self.is_page_locked(page);
        // A writer must be the only user of its page, so the slot is freed. The slot is also freed
        // if swap is short or the page cannot be swapped (Linux `should_try_to_free_swap`).
        let is_alone = page.place != Place::LruBatch;
        let is_useless = write && is_alone || is_locked || self.swap_is_full(page.memcg);
        let give_up_slot = (is_useless || !keeps_slot) && !page.has(PageFlags::WRITEBACK);
        self.mem.work.rmap_walks += 1;
        self.swap_unmap(slot, ctx.cpu);
        if give_up_slot {
            self.delete_from_swap_cache(pfn, Default::default(), ctx.cpu);
            self.mem.pages[pfn].set(PageFlags::DIRTY);
        }
        if write {
            self.mem.pages[pfn].set(PageFlags::DIRTY);
        }
        self.activate_swapped_in(ctx.cpu, pfn);
        if is_locked {
            self.mlock_page(pfn);
        }
    }
}
