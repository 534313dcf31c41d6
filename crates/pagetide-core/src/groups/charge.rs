//! Charging pages to groups: per-CPU stocks, limits, and what a task does when it hits a limit.
//!
//! Linux: mm/memcontrol.c `try_charge_memcg`, `consume_stock`, `refill_stock`, `drain_all_stock`
//! (6.1). A charge takes 64 pages at a time and leaves the unused ones in the CPU's stock. If a
//! task hits a limit, it reclaims from the group that has the limit, drains the stocks, and tries
//! again, up to 16 times. In the end the OOM killer chooses a task of the group.
//!
//! `page_request` allocates pages together with their charge.
//!
//! Invariant: a stock's pages are charged to its group's counters and to no page.

mod kernel;

use crate::frames::gfp::Gfp;
use crate::frames::page_alloc::OomRequest;
use crate::groups::memcg::{MemcgPosition, MemoryEvent, ROOT};
use crate::groups::memcg_stock::{Stock, MEMCG_CHARGE_BATCH};
use crate::groups::Groups;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Sleep, Step};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::interface::planted::Defect;
use crate::interface::throttle::Throttle;
use crate::reclaim::direct::DirectReclaim;
use crate::units::digest::State;
use crate::units::{Cpu, MemcgId, Order, Pfn, Requester, PAGE_ALLOC_COSTLY_ORDER, TICK};
use alloc::vec::Vec;

/// Number of reclaims in a row without progress after which the group is out of memory.
pub(crate) const MAX_RECLAIM_RETRIES: u32 = 16;

/// State of a charge that hit a limit.
#[derive(Clone, Debug, State)]
pub struct ChargePath {
    /// The group that has the limit.
    over: MemcgPosition,
    nr: u64,
    gfp: Gfp,
    retries_left: u32,
    drained: bool,
    reclaim: DirectReclaim,
    oom_wait: bool,
}

/// Why a charge fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChargeFailure {
    Limit(MemcgId),
    /// The task must first reclaim for being above `memory.high`, then charge again.
    Owing,
}

impl Groups {
    /// Charges `nr` pages, from the CPU's stock if possible. Pages of the root are not charged.
    ///
    /// # Errors
    ///
    /// The limit that the charge would exceed, or that the task must first reclaim because it is
    /// above `memory.high`. A request that may not wait (`gfp`) never has to reclaim first.
    #[inline]
    pub(crate) fn try_charge(
        &mut self,
        ctx: &Ctx,
        memcg: MemcgId,
        nr: u64,
        gfp: Gfp,
    ) -> Result<(), ChargeFailure> {
        if memcg == ROOT {
            return Ok(());
        }
        let stock = &mut self.stocks[ctx.cpu];
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
    ) -> Result<(), ChargeFailure> {
        let mut batch = nr.max(MEMCG_CHARGE_BATCH);
        if let Err(over) = self.counter_try_charge(memcg, batch) {
            if batch == nr {
                return Err(ChargeFailure::Limit(over));
            }
            batch = nr;
            self.counter_try_charge(memcg, batch).map_err(ChargeFailure::Limit)?;
        }
        self.note_over_high(memcg, batch);
        self.pay_first(ctx, memcg, batch, gfp)?;
        if batch > nr {
            self.refill_stock(ctx.cpu, memcg, batch - nr);
        }
        Ok(())
    }

    /// Decides whether a task that has just charged `batch` pages may continue with `nr` of them.
    /// If it must first pay for being above `memory.high`, all pages go into the stock, and the
    /// task takes them from there when it has paid. (Linux pays at the end of `try_charge_memcg`
    /// and keeps the charge.)
    pub(crate) fn pay_first(
        &mut self,
        ctx: &Ctx,
        memcg: MemcgId,
        batch: u64,
        gfp: Gfp,
    ) -> Result<(), ChargeFailure> {
        // Charges larger than a stock (a huge page) are paid for when the call returns. A daemon
        // never pays.
        let may_pay = gfp.has(Gfp::DIRECT_RECLAIM)
            && batch <= MEMCG_CHARGE_BATCH
            && ctx.asker != Requester::NONE;
        if !may_pay || !self.owes_too_much() {
            return Ok(());
        }
        self.refill_stock(ctx.cpu, memcg, batch);
        Err(ChargeFailure::Owing)
    }

    /// Charges the counters of a group and its ancestors (Linux `page_counter_try_charge`). The
    /// root's own pages are not counted. They are charged if a task moved to the root after it met
    /// a limit.
    pub(crate) fn counter_try_charge(&mut self, memcg: MemcgId, nr: u64) -> Result<(), MemcgId> {
        if memcg == ROOT {
            return Ok(());
        }
        let mut at = memcg;
        while at.is_some() {
            let counter = &mut self.memcgs[at].memory;
            if counter.usage + nr > counter.max {
                counter.failcnt += 1;
                return Err(at);
            }
            at = self.parents[at];
        }
        self.change_usage(memcg, nr as i64);
        Ok(())
    }

    /// Charges pages whatever the limits are: those that exist before the first task runs, and those
    /// that reclaim itself needs (Linux: `PF_MEMALLOC`).
    pub(crate) fn charge_over_limits(&mut self, memcg: MemcgId, nr: u64) {
        self.change_usage(memcg, nr as i64);
    }

    /// Uncharges `nr` pages from the counters of a group and its ancestors.
    pub(crate) fn uncharge_counter(&mut self, memcg: MemcgId, nr: u64) {
        self.change_usage(memcg, -(nr as i64));
    }

    fn change_usage(&mut self, memcg: MemcgId, change: i64) {
        let mut at = memcg;
        while at.is_some() {
            let parent = self.parents[at];
            let counter = &mut self.memcgs[at].memory;
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
                let counter = &mut self.memcgs[parent].memory;
                counter.child_protection_changed(before, after);
            }
            at = parent;
        }
    }

    /// Charges slots to a group and its ancestors, without checking limits.
    fn charge_swap(&mut self, memcg: MemcgId, nr: u64) {
        if memcg == ROOT {
            return;
        }
        let mut at = memcg;
        while at.is_some() {
            let counter = &mut self.memcgs[at].swap;
            counter.usage += nr;
            counter.peak = counter.peak.max(counter.usage);
            at = self.parents[at];
        }
    }

    /// Uncharges a slot from a group and its ancestors.
    pub(crate) fn uncharge_swap(&mut self, memcg: MemcgId) {
        if memcg == ROOT {
            return;
        }
        let mut at = memcg;
        while at.is_some() {
            self.memcgs[at].swap.usage -= 1;
            at = self.parents[at];
        }
    }

    pub(crate) fn set_protection(&mut self, memcg: MemcgId, min: u64, low: u64) {
        let group = &mut self.memcgs[memcg];
        let before = group.memory.protected_usage();
        group.memory.min = min;
        group.memory.low = low;
        self.idle_groups.forget();
        let after = group.memory.protected_usage();
        let parent = group.parent;
        if parent.is_some() {
            self.memcgs[parent].memory.child_protection_changed(before, after);
        }
    }

    /// Puts charged pages into a CPU's stock, which belongs to one group and holds up to 64 pages
    /// (Linux `refill_stock`).
    pub(crate) fn refill_stock(&mut self, cpu: Cpu, memcg: MemcgId, nr: u64) {
        if self.stocks[cpu].memcg != memcg {
            self.drain_stock(cpu);
            self.stocks[cpu].memcg = memcg;
        }
        self.stocks[cpu].nr_pages += nr;
        if self.stocks[cpu].nr_pages > MEMCG_CHARGE_BATCH {
            self.drain_stock(cpu);
        }
    }

    /// Returns a charge if no page was allocated for it. More pages than a stock holds bypass the
    /// stock.
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
        let stock = core::mem::replace(&mut self.stocks[cpu], Stock::EMPTY);
        if stock.nr_pages > 0 {
            self.uncharge_counter(stock.memcg, stock.nr_pages);
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

    /// Continues a charge that has hit a limit again, the same limit or another one.
    pub(crate) fn charge_again(&mut self, path: &mut ChargePath, over: MemcgId, nr: u64, gfp: Gfp) {
        path.over = self.position_of(over);
        path.nr = nr;
        path.reclaim = self.begin_limit_reclaim(over, nr, gfp);
    }

    fn begin_limit_reclaim(&mut self, over: MemcgId, nr: u64, gfp: Gfp) -> DirectReclaim {
        self.memory_event(over, MemoryEvent::Max);
        DirectReclaim::of_group(self.position_of(over), nr, gfp)
    }
}

impl Kernel {
    /// Assigns a page to `memcg`. The page was allocated together with its charge.
    pub(crate) fn charge(&mut self, cpu: Cpu, pfn: Pfn, memcg: MemcgId) {
        let page = &mut self.mem.pages[pfn];
        page.memcg = memcg;
        let (node, nr) = (page.node(), page.nr_pages());
        self.groups.memcgs[memcg].charged += nr;
        if memcg != ROOT {
            // A huge page counts as one page charged.
            self.mem.work.pages_charged += 1;
        }
        if self.groups.soft_limit_trees.in_use() {
            self.soft_limit_event(cpu, memcg, node, nr);
        }
    }

    pub(crate) fn uncharge(&mut self, cpu: Cpu, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn];
        let memcg = core::mem::replace(&mut page.memcg, MemcgId::NONE);
        if memcg.is_none() {
            return;
        }
        let (node, nr) = (page.node(), page.nr_pages());
        self.groups.memcgs[memcg].charged -= nr;
        if memcg != ROOT {
            if self.is_planted(Defect::LeakedCharge) {
                return;
            }
            self.groups.uncharge_counter(memcg, nr);
            if self.groups.soft_limit_trees.in_use() {
                self.soft_limit_event(cpu, memcg, node, nr);
            }
        }
    }

    /// Uncharges a page table from its group. The charge returns to the stock, as for all kernel
    /// memory.
    pub(crate) fn uncharge_table(&mut self, cpu: Cpu, pfn: Pfn) {
        let memcg = core::mem::replace(&mut self.mem.pages[pfn].memcg, MemcgId::NONE);
        if memcg.is_some() {
            self.groups.memcgs[memcg].charged -= 1;
            self.groups.change_kmem(memcg, -1);
            self.groups.cancel_charge(cpu, memcg, 1);
        }
    }

    /// Uncharges pages of one group and node together (Linux `mem_cgroup_uncharge_list`).
    pub(crate) fn uncharge_batch(&mut self, cpu: Cpu, pfns: &[Pfn], memcg: MemcgId) {
        let Some(&first) = pfns.first() else { return };
        for &pfn in pfns {
            debug_assert_eq!(self.mem.pages[pfn].memcg, memcg);
            self.mem.pages[pfn].memcg = MemcgId::NONE;
        }
        let nr = pfns.len() as u64;
        self.groups.memcgs[memcg].charged -= nr;
        if memcg != ROOT {
            if self.is_planted(Defect::LeakedCharge) {
                return;
            }
            self.groups.uncharge_counter(memcg, nr);
            if self.groups.soft_limit_trees.in_use() {
                let node = self.mem.pages[first].node();
                self.soft_limit_event(cpu, memcg, node, nr);
            }
        }
    }

    /// Charges `nr` swap slots to a group and its ancestors, for a page that is about to be
    /// written. Returns false if a swap limit is met.
    pub(crate) fn try_charge_swap(&mut self, memcg: MemcgId, nr: u64) -> bool {
        if self.era.counts_memory_and_swap || memcg == ROOT {
            return true;
        }
        let mut at = memcg;
        while at.is_some() {
            let counter = &mut self.groups.memcgs[at].swap;
            if counter.usage.saturating_add(nr) > counter.max {
                counter.failcnt += 1;
                self.groups.memory_event(memcg, MemoryEvent::SwapMax);
                return false;
            }
            at = self.groups.parents[at];
        }
        self.groups.charge_swap(memcg, nr);
        true
    }

    /// Uncharges the freed slot of a page in the swap cache.
    pub(crate) fn uncharge_cached_swap(&mut self, memcg: MemcgId) {
        if !self.era.counts_memory_and_swap {
            self.groups.uncharge_swap(memcg);
        }
    }

    /// Called when a page has left the swap cache and its slot stays in use (Linux
    /// `mem_cgroup_swapout`).
    pub(crate) fn charge_swapped_out(&mut self, memcg: MemcgId) {
        if self.era.counts_memory_and_swap {
            self.groups.charge_swap(memcg, 1);
        }
    }

    /// Called when a page that was read from a slot is charged (Linux
    /// `mem_cgroup_swapin_uncharge_swap`).
    pub(crate) fn uncharge_swapped_in(&mut self, memcg: MemcgId) {
        if self.era.counts_memory_and_swap {
            self.groups.uncharge_swap(memcg);
        }
    }

    /// Called when the cgroup version has changed: charges or uncharges the slots of pages in
    /// memory.
    pub(crate) fn recount_cached_swap(&mut self) {
        let mut cached = Vec::new();
        self.swap.for_each_owner(|memcg, is_cached| {
            if is_cached {
                cached.push(memcg);
            }
        });
        for memcg in cached {
            match self.era.counts_memory_and_swap {
                true => self.groups.uncharge_swap(memcg),
                false => self.groups.charge_swap(memcg, 1),
            }
        }
    }

    /// Whether to free a slot as soon as its page is back in memory: less than half of the swap
    /// area is free, or a group uses half of its swap limit (Linux `mem_cgroup_swap_full`).
    pub(crate) fn swap_is_full(&self, memcg: MemcgId) -> bool {
        if self.swap.is_half_full() {
            return true;
        }
        if self.era.counts_memory_and_swap {
            return false;
        }
        let mut at = memcg;
        while at.is_some() && at != ROOT {
            let counter = &self.groups.memcgs[at].swap;
            if counter.usage >= counter.max.div_ceil(2) {
                return true;
            }
            at = self.groups.parents[at];
        }
        false
    }

    /// Drains the CPUs' stocks of a group and its descendants.
    pub(crate) fn drain_all_stock(&mut self, memcg: MemcgId) {
        // Draining object stocks moves whole pages into the page stocks, so it comes first.
        self.drain_obj_stocks(memcg);
        for cpu in 0..self.groups.stocks.len() {
            let stock = self.groups.stocks[cpu];
            if stock.memcg.is_some() && self.groups.is_descendant(stock.memcg, memcg) {
                self.groups.drain_stock(Cpu(cpu as u16));
            }
        }
    }
}

impl<O: Owners> Manager<O> {
    /// Runs one bounded step. `Done(true)`: the charge can be tried again; `Done(false)`: it fails.
    pub(crate) fn charge_step(&mut self, path: &mut ChargePath, ctx: &Ctx) -> Step<bool> {
        let Some(over) = self.groups.at_position(path.over) else { return Step::Done(true) };
        let is_victim = self.owners.is_dying(ctx.asker);
        if is_victim || !path.gfp.has(Gfp::DIRECT_RECLAIM) {
            return Step::Done(false);
        }
        if path.oom_wait {
            path.oom_wait = false;
            if self.groups.memcgs[over].memory.margin() >= path.nr {
                return Step::Done(true);
            }
            path.reclaim = self.groups.begin_limit_reclaim(over, path.nr, path.gfp);
        }
        let reclaimed = match self.direct_reclaim_step(&mut path.reclaim, ctx) {
            Step::Continue => return Step::Continue,
            Step::Wait(wait) => return Step::Wait(wait),
            Step::Done(reclaimed) => reclaimed,
        };
        if self.groups.memcgs[over].memory.margin() >= path.nr {
            return Step::Done(true);
        }
        if !path.drained {
            path.drained = true;
            self.drain_all_stock(over);
            if self.groups.memcgs[over].memory.margin() >= path.nr {
                return Step::Done(true);
            }
        } else if path.gfp.has(Gfp::NORETRY) {
            return Step::Done(false);
        } else if reclaimed == 0 || path.nr > 1 << PAGE_ALLOC_COSTLY_ORDER {
            // So close to the limit a huge page is unlikely to fit, so progress of reclaim does not
            // count.
            if path.retries_left == 0 {
                return self.memcg_out_of_memory(path, over, ctx);
            }
            path.retries_left -= 1;
        }
        path.reclaim = self.groups.begin_limit_reclaim(over, path.nr, path.gfp);
        Step::Continue
    }

    fn memcg_out_of_memory(
        &mut self,
        path: &mut ChargePath,
        over: MemcgId,
        ctx: &Ctx,
    ) -> Step<bool> {
        // No task is killed to make room for a huge page.
        if path.gfp.has(Gfp::RETRY_MAYFAIL) || path.nr > 1 << PAGE_ALLOC_COSTLY_ORDER {
            return Step::Done(false);
        }
        self.groups.memory_event(over, MemoryEvent::Oom);
        let order = path.nr.next_power_of_two().ilog2() as Order;
        let gfp = path.gfp;
        self.mem.last_oom = Some(OomRequest { order, gfp, scope: over, for_min_ttl: false });
        if !O::out_of_memory(self, over, ctx.asker) {
            return Step::Done(false);
        }
        path.retries_left = MAX_RECLAIM_RETRIES;
        path.oom_wait = true;
        Step::Wait(Sleep::throttled(ctx.node, Throttle::NoProgress, TICK))
    }
}
