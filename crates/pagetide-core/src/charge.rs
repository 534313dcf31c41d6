//! Charging pages to groups: stocks, limits, and the steps of a task that meets a limit.
//!
//! Linux: mm/memcontrol.c `try_charge_memcg`, `consume_stock`, `refill_stock`, `drain_all_stock` (6.1).
//! A charge takes 64 pages at a time and leaves the pages that it does not need in the CPU's stock.
//! When a limit is met the task reclaims from the group that has it, has the stocks drained, and tries
//! again up to 16 times. In the end the OOM killer chooses a task of the group.
//!
//! `page_request` allocates pages together with their charge.
//!
//! Invariant: a stock's pages are charged to its group's counters and to no page.

mod kernel;

use crate::ctx::Ctx;
use crate::digest::State;
use crate::effect::{Sleep, Step, Throttle};
use crate::gfp::Gfp;
use crate::manager::Manager;
use crate::memcg::{MemoryEvent, Position, ROOT};
use crate::memcg_stock::{Stock, MEMCG_CHARGE_BATCH};
use crate::owners::Owners;
use crate::planted::Defect;
use crate::reclaim::direct::DirectReclaim;
use crate::units::{Asker, Cpu, MemcgId, Pfn, PAGE_ALLOC_COSTLY_ORDER, TICK};
use alloc::vec::Vec;

/// Fruitless reclaims before the group is out of memory.
pub(crate) const MAX_RECLAIM_RETRIES: u32 = 16;

/// A charge that met a limit.
#[derive(Clone, Debug, State)]
pub struct ChargePath {
    /// The group whose limit it is.
    over: Position,
    /// Pages wanted.
    nr: u64,
    gfp: Gfp,
    retries_left: u32,
    drained: bool,
    reclaim: DirectReclaim,
    oom_wait: bool,
}

/// What is in the way of a charge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Uncharged {
    /// The limit of this group.
    Limit(MemcgId),
    /// What the task owes for being above `memory.high`: it pays, and charges again.
    Owing,
}

impl<O: Owners> Manager<O> {
    /// Makes a page, which was allocated with its charge, that of `memcg`.
    pub(crate) fn charge(&mut self, cpu: Cpu, pfn: Pfn, memcg: MemcgId) {
        let page = &mut self.mem.pages[pfn.idx()];
        page.memcg = memcg;
        let (node, nr) = (page.node(), page.nr_pages());
        self.memcgs[memcg.idx()].charged += nr;
        if memcg != ROOT {
            // A huge page is charged as one.
            self.mem.work.pages_charged += 1;
        }
        if self.soft_limit_trees.in_use() {
            self.soft_limit_event(cpu, memcg, node, nr);
        }
    }

    /// Takes a page off its group's bill.
    pub(crate) fn uncharge(&mut self, cpu: Cpu, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn.idx()];
        let memcg = core::mem::replace(&mut page.memcg, MemcgId::NONE);
        if memcg.is_none() {
            return;
        }
        let (node, nr) = (page.node(), page.nr_pages());
        self.memcgs[memcg.idx()].charged -= nr;
        if memcg != ROOT {
            if self.is_planted(Defect::LeakedCharge) {
                return;
            }
            self.uncharge_counter(memcg, nr);
            if self.soft_limit_trees.in_use() {
                self.soft_limit_event(cpu, memcg, node, nr);
            }
        }
    }

    /// Takes a page table off its group's bill: kernel memory goes back through the stock.
    pub(crate) fn uncharge_table(&mut self, cpu: Cpu, pfn: Pfn) {
        let memcg = core::mem::replace(&mut self.mem.pages[pfn.idx()].memcg, MemcgId::NONE);
        if memcg.is_some() {
            self.memcgs[memcg.idx()].charged -= 1;
            self.change_kmem(memcg, -1);
            self.cancel_charge(cpu, memcg, 1);
        }
    }

    /// Takes pages of one group and node off its bill together (Linux `mem_cgroup_uncharge_list`).
    pub(crate) fn uncharge_batch(&mut self, cpu: Cpu, pfns: &[Pfn], memcg: MemcgId) {
        let Some(&first) = pfns.first() else { return };
        for &pfn in pfns {
            debug_assert_eq!(self.mem.pages[pfn.idx()].memcg, memcg);
            self.mem.pages[pfn.idx()].memcg = MemcgId::NONE;
        }
        let nr = pfns.len() as u64;
        self.memcgs[memcg.idx()].charged -= nr;
        if memcg != ROOT {
            if self.is_planted(Defect::LeakedCharge) {
                return;
            }
            self.uncharge_counter(memcg, nr);
            if self.soft_limit_trees.in_use() {
                let node = self.mem.pages[first.idx()].node();
                self.soft_limit_event(cpu, memcg, node, nr);
            }
        }
    }

    /// Charges `nr` pages, from the CPU's stock if it can. The root's pages are charged to nobody.
    ///
    /// # Errors
    /// What is in the way. Nobody has to pay first who may not wait (`gfp`).
    #[inline]
    pub(crate) fn try_charge(
        &mut self,
        ctx: &Ctx,
        memcg: MemcgId,
        nr: u64,
        gfp: Gfp,
    ) -> Result<(), Uncharged> {
        if memcg == ROOT {
            return Ok(());
        }
        let stock = &mut self.stocks[ctx.cpu.idx()];
        if stock.memcg == memcg && stock.nr_pages >= nr {
            stock.nr_pages -= nr;
            return Ok(());
        }
        self.try_charge_counters(ctx, memcg, nr, gfp)
    }

    fn try_charge_counters(
        &mut self,
        ctx: &Ctx,
        memcg: MemcgId,
        nr: u64,
        gfp: Gfp,
    ) -> Result<(), Uncharged> {
        let mut batch = nr.max(MEMCG_CHARGE_BATCH);
        if let Err(over) = self.counter_try_charge(memcg, batch) {
            if batch == nr {
                return Err(Uncharged::Limit(over));
            }
            batch = nr;
            self.counter_try_charge(memcg, batch).map_err(Uncharged::Limit)?;
        }
        self.note_over_high(memcg, batch);
        self.pay_first(ctx, memcg, batch, gfp)?;
        if batch > nr {
            self.refill_stock(ctx.cpu, memcg, batch - nr);
        }
        Ok(())
    }

    /// Whether a task that has just charged `batch` pages may go on with `nr` of them. If it owes too much
    /// for being above `memory.high` all of them go into the stock, and it takes them from there when it
    /// has paid (Linux: the end of `try_charge_memcg`, with the charge in its hands).
    pub(crate) fn pay_first(
        &mut self,
        ctx: &Ctx,
        memcg: MemcgId,
        batch: u64,
        gfp: Gfp,
    ) -> Result<(), Uncharged> {
        // What no stock holds is paid for when the call returns: a huge page is all of a call.
        // A daemon pays for nobody.
        let may_pay =
            gfp.has(Gfp::DIRECT_RECLAIM) && batch <= MEMCG_CHARGE_BATCH && ctx.asker != Asker::NONE;
        if !may_pay || !self.owes_too_much() {
            return Ok(());
        }
        self.refill_stock(ctx.cpu, memcg, batch);
        Err(Uncharged::Owing)
    }

    /// Charges a group's counter and those above (Linux `page_counter_try_charge`). The root's own
    /// pages are not counted: a task may have moved there since it met a limit.
    pub(crate) fn counter_try_charge(&mut self, memcg: MemcgId, nr: u64) -> Result<(), MemcgId> {
        if memcg == ROOT {
            return Ok(());
        }
        let mut at = memcg;
        while at.is_some() {
            let counter = &mut self.memcgs[at.idx()].memory;
            if counter.usage + nr > counter.max {
                counter.failcnt += 1;
                return Err(at);
            }
            at = self.parents[at.idx()];
        }
        self.change_usage(memcg, nr as i64);
        Ok(())
    }

    /// Takes `nr` pages off a group's counter and those above.
    pub(crate) fn uncharge_counter(&mut self, memcg: MemcgId, nr: u64) {
        self.change_usage(memcg, -(nr as i64));
    }

    fn change_usage(&mut self, memcg: MemcgId, change: i64) {
        let mut at = memcg;
        while at.is_some() {
            let parent = self.parents[at.idx()];
            let counter = &mut self.memcgs[at.idx()].memory;
            let before = counter.usage;
            debug_assert!(before as i64 + change >= 0, "{at:?} is uncharged too much");
            counter.usage = before.wrapping_add_signed(change);
            counter.peak = counter.peak.max(counter.usage);
            if counter.min == 0 && counter.low == 0 {
                at = parent;
                continue;
            }
            let before = counter.protected_part(before);
            let after = counter.protected_usage();
            if before != after && parent.is_some() {
                let counter = &mut self.memcgs[parent.idx()].memory;
                counter.child_protection_changed(before, after);
            }
            at = parent;
        }
    }

    /// Charges the slot of a page that is about to be written to swap to a group and those above. Refused at a limit of
    /// swap.
    pub(crate) fn try_charge_swap(&mut self, memcg: MemcgId) -> bool {
        if self.era.counts_memory_and_swap || memcg == ROOT {
            return true;
        }
        let mut at = memcg;
        while at.is_some() {
            let counter = &mut self.memcgs[at.idx()].swap;
            if counter.usage + 1 > counter.max {
                counter.failcnt += 1;
                self.memory_event(memcg, MemoryEvent::SwapMax);
                return false;
            }
            at = self.parents[at.idx()];
        }
        self.charge_swap(memcg);
        true
    }

    /// Charges a slot to a group and those above, whatever their limits.
    fn charge_swap(&mut self, memcg: MemcgId) {
        if memcg == ROOT {
            return;
        }
        let mut at = memcg;
        while at.is_some() {
            let counter = &mut self.memcgs[at.idx()].swap;
            counter.usage += 1;
            counter.peak = counter.peak.max(counter.usage);
            at = self.parents[at.idx()];
        }
    }

    /// The slot of a page in the swap cache was freed.
    pub(crate) fn uncharge_cached_swap(&mut self, memcg: MemcgId) {
        if !self.era.counts_memory_and_swap {
            self.uncharge_swap(memcg);
        }
    }

    /// A page has left the swap cache, and its slot stays in use (Linux `mem_cgroup_swapout`).
    pub(crate) fn page_went_to_swap(&mut self, memcg: MemcgId) {
        if self.era.counts_memory_and_swap {
            self.charge_swap(memcg);
        }
    }

    /// A page is charged that comes back from a slot (Linux `mem_cgroup_swapin_uncharge_swap`).
    pub(crate) fn page_came_from_swap(&mut self, memcg: MemcgId) {
        if self.era.counts_memory_and_swap {
            self.uncharge_swap(memcg);
        }
    }

    /// Groups are of the other version from now on: slots whose pages are in memory count, or count no more.
    pub(crate) fn recount_cached_swap(&mut self) {
        let mut cached = Vec::new();
        self.swap.for_each_owner(|memcg, is_cached| {
            if is_cached {
                cached.push(memcg);
            }
        });
        for memcg in cached {
            match self.era.counts_memory_and_swap {
                true => self.uncharge_swap(memcg),
                false => self.charge_swap(memcg),
            }
        }
    }

    /// Whether the slots of pages that come back are given up at once: less than half of the swap area is free, or a
    /// group has half of what it may have (Linux `mem_cgroup_swap_full`).
    pub(crate) fn swap_is_full(&self, memcg: MemcgId) -> bool {
        if self.swap.is_half_full() {
            return true;
        }
        if self.era.counts_memory_and_swap {
            return false;
        }
        let mut at = memcg;
        while at.is_some() && at != ROOT {
            let counter = &self.memcgs[at.idx()].swap;
            if counter.usage >= counter.max.div_ceil(2) {
                return true;
            }
            at = self.parents[at.idx()];
        }
        false
    }

    /// Takes the charge of a slot from its group and those above.
    pub(crate) fn uncharge_swap(&mut self, memcg: MemcgId) {
        if memcg == ROOT {
            return;
        }
        let mut at = memcg;
        while at.is_some() {
            self.memcgs[at.idx()].swap.usage -= 1;
            at = self.parents[at.idx()];
        }
    }

    /// Sets what of a group is protected, in pages.
    pub(crate) fn set_protection(&mut self, memcg: MemcgId, min: u64, low: u64) {
        let group = &mut self.memcgs[memcg.idx()];
        let before = group.memory.protected_usage();
        group.memory.min = min;
        group.memory.low = low;
        self.quiet.forget();
        let after = group.memory.protected_usage();
        let parent = group.parent;
        if parent.is_some() {
            self.memcgs[parent.idx()].memory.child_protection_changed(before, after);
        }
    }

    /// Puts charges into a CPU's stock, which is of one group and holds 64 (Linux `refill_stock`).
    pub(crate) fn refill_stock(&mut self, cpu: Cpu, memcg: MemcgId, nr: u64) {
        if self.stocks[cpu.idx()].memcg != memcg {
            self.drain_stock(cpu);
            self.stocks[cpu.idx()].memcg = memcg;
        }
        self.stocks[cpu.idx()].nr_pages += nr;
        if self.stocks[cpu.idx()].nr_pages > MEMCG_CHARGE_BATCH {
            self.drain_stock(cpu);
        }
    }

    /// Takes back a charge for which there is no page: more than a stock holds goes past it.
    pub(crate) fn cancel_charge(&mut self, cpu: Cpu, memcg: MemcgId, nr: u64) {
        if memcg == ROOT {
            return;
        }
        if nr > MEMCG_CHARGE_BATCH {
            self.uncharge_counter(memcg, nr);
        } else {
            self.refill_stock(cpu, memcg, nr);
        }
    }

    fn drain_stock(&mut self, cpu: Cpu) {
        let stock = core::mem::replace(&mut self.stocks[cpu.idx()], Stock::EMPTY);
        if stock.nr_pages > 0 {
            self.uncharge_counter(stock.memcg, stock.nr_pages);
        }
    }

    /// Takes back what CPUs hold for a group and those below it.
    pub(crate) fn drain_all_stock(&mut self, memcg: MemcgId) {
        // Whole pages of these go to the others.
        self.drain_obj_stocks(memcg);
        for cpu in 0..self.stocks.len() {
            let stock = self.stocks[cpu];
            if stock.memcg.is_some() && self.is_descendant(stock.memcg, memcg) {
                self.drain_stock(Cpu(cpu as u16));
            }
        }
    }

    pub(crate) fn charge_path(&mut self, over: MemcgId, nr: u64, gfp: Gfp) -> ChargePath {
        ChargePath {
            over: self.position_of(over),
            nr,
            gfp,
            retries_left: MAX_RECLAIM_RETRIES,
            drained: false,
            reclaim: self.begin_limit_reclaim(over, nr, gfp),
            oom_wait: false,
        }
    }

    /// Goes on for a limit that is in the way still, or again.
    pub(crate) fn charge_again(&mut self, path: &mut ChargePath, over: MemcgId, nr: u64, gfp: Gfp) {
        path.over = self.position_of(over);
        path.nr = nr;
        path.reclaim = self.begin_limit_reclaim(over, nr, gfp);
    }

    fn begin_limit_reclaim(&mut self, over: MemcgId, nr: u64, gfp: Gfp) -> DirectReclaim {
        self.memory_event(over, MemoryEvent::Max);
        DirectReclaim::of_group(self.position_of(over), nr, gfp)
    }

    /// One bounded step. Done: whether there is room now.
    pub(crate) fn charge_step(&mut self, path: &mut ChargePath, ctx: &Ctx) -> Step<bool> {
        let Some(over) = self.at_position(path.over) else { return Step::Done(true) };
        let is_victim = self.owners.is_dying(ctx.asker);
        if is_victim || !path.gfp.has(Gfp::DIRECT_RECLAIM) {
            return Step::Done(false);
        }
        if path.oom_wait {
            path.oom_wait = false;
            if self.memcgs[over.idx()].memory.margin() >= path.nr {
                return Step::Done(true);
            }
            path.reclaim = self.begin_limit_reclaim(over, path.nr, path.gfp);
        }
        let reclaimed = match self.direct_reclaim_step(&mut path.reclaim, ctx) {
            Step::Continue => return Step::Continue,
            Step::Wait(wait) => return Step::Wait(wait),
            Step::Done(reclaimed) => reclaimed,
        };
        if self.memcgs[over.idx()].memory.margin() >= path.nr {
            return Step::Done(true);
        }
        if !path.drained {
            path.drained = true;
            self.drain_all_stock(over);
            if self.memcgs[over.idx()].memory.margin() >= path.nr {
                return Step::Done(true);
            }
        } else if path.gfp.has(Gfp::NORETRY) {
            return Step::Done(false);
        } else if reclaimed == 0 || path.nr > 1 << PAGE_ALLOC_COSTLY_ORDER {
            // So close to a limit a huge page is a small chance: what was reclaimed does not count.
            if path.retries_left == 0 {
                return self.memcg_out_of_memory(path, over, ctx);
            }
            path.retries_left -= 1;
        }
        path.reclaim = self.begin_limit_reclaim(over, path.nr, path.gfp);
        Step::Continue
    }

    fn memcg_out_of_memory(
        &mut self,
        path: &mut ChargePath,
        over: MemcgId,
        ctx: &Ctx,
    ) -> Step<bool> {
        // Nobody is killed for a huge page.
        if path.gfp.has(Gfp::RETRY_MAYFAIL) || path.nr > 1 << PAGE_ALLOC_COSTLY_ORDER {
            return Step::Done(false);
        }
        self.memory_event(over, MemoryEvent::Oom);
        if !O::out_of_memory(self, over, ctx.asker) {
            return Step::Done(false);
        }
        path.retries_left = MAX_RECLAIM_RETRIES;
        path.oom_wait = true;
        Step::Wait(Sleep::throttled(ctx.node, Throttle::NoProgress, TICK))
    }
}
