//! Allocating pages together with their charge to a group: one state machine for all callers.
//!
//! Linux: `__alloc_pages`, and after it `charge_memcg` (faults, files), `__memcg_kmem_charge_page`
//! (page tables), `mem_cgroup_charge` (huge pages: `__do_huge_pmd_anonymous_page`,
//! `alloc_charge_hpage`), `account_slab` (slabs) (6.1). Here an *attempt* takes pages and a charge
//! if both are available at once. If pages are short, or a limit leaves no room, the following
//! steps reclaim; then comes another attempt. If another task has taken what was reclaimed, the
//! state of the earlier attempts is kept.
//!
//! Difference from Linux: there a task keeps the page while it reclaims for the charge. Here a task
//! holds neither page nor charge between two steps, so that a killed task leaves nothing behind.
//!
//! Invariant: between two steps a request holds neither pages nor a charge, and a failed attempt
//! has returned everything that it took.

use crate::frames::gfp::Gfp;
use crate::frames::page_alloc::Memory;
use crate::frames::slowpath::SlowPath;
use crate::groups::charge::{ChargeFailure, ChargePath};
use crate::groups::memcg::ROOT;
use crate::groups::memory_high::OverHigh;
use crate::groups::Groups;
use crate::interface::ctx::Ctx;
use crate::interface::effect::Step;
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::units::digest::State;
use crate::units::{Cpu, MemcgId, Order, Pfn, Requester, HPAGE_PMD_ORDER};
use alloc::boxed::Box;

/// A request for a block of pages, and the group to charge. The caller builds the request again at
/// every step, because the task may have moved to another group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageRequest {
    order: Order,
    gfp: Gfp,
    /// The group to charge; pages of the root are not charged.
    payer: MemcgId,
    first: AttemptStart,
}

/// The resource that the first attempt takes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AttemptStart {
    /// The charge, because a CPU has charges for small pages in stock.
    Charge,
    /// The page, from any node.
    Page,
    /// The page, only from the near node and with little effort (`__GFP_THISNODE | __GFP_NORETRY`).
    /// If this fails and the request may reclaim, it continues as [`AttemptStart::Page`], even on a
    /// machine with one node. Unlike in Linux, the reclaim of the first attempt looks at all nodes.
    NearPage,
}

impl PageRequest {
    /// A request for a page charged to a group.
    pub fn page(gfp: Gfp, payer: MemcgId) -> PageRequest {
        PageRequest { order: 0, gfp, payer, first: AttemptStart::Charge }
    }

    /// A request for a huge page. Its charge bypasses the stock. No task is killed for it, because
    /// the requester can use small pages.
    pub fn huge(gfp: Gfp, payer: MemcgId, first: AttemptStart) -> PageRequest {
        PageRequest { order: HPAGE_PMD_ORDER, gfp, payer, first }
    }

    /// A request for a block that is not charged.
    pub fn unpaid(order: Order, gfp: Gfp) -> PageRequest {
        PageRequest { order, gfp, payer: ROOT, first: AttemptStart::Charge }
    }

    fn nr_pages(&self) -> u64 {
        1 << self.order
    }
}

/// State of a request that did not succeed at once. It is boxed, because most calls do not need it:
/// so a call is small and cheap to copy.
#[derive(Clone, Debug, State)]
pub enum SlowRequest {
    /// Waits for pages: the allocator's slow path.
    Pages(Box<SlowPath>),
    /// Waits for room under a group's limit.
    Room(Box<ChargePath>),
    /// Pays for being above `memory.high`.
    Owing(Box<OverHigh>),
}

impl SlowRequest {
    /// Whether the task is compacting.
    pub fn is_compacting(&self) -> bool {
        match self {
            SlowRequest::Pages(path) => path.is_compacting(),
            SlowRequest::Room(_) | SlowRequest::Owing(_) => false,
        }
    }

    /// Whether the task is reclaiming.
    pub fn is_reclaiming(&self) -> bool {
        match self {
            SlowRequest::Pages(path) => path.is_reclaiming(),
            SlowRequest::Room(_) | SlowRequest::Owing(_) => true,
        }
    }
}

/// The resource that an attempt lacks or, after all attempts, that the request could not get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shortage {
    /// A block of pages.
    Pages(Order, Gfp),
    /// Room for this many pages under the limit of a group.
    Room(MemcgId, u64, Gfp),
    /// The task must first pay for being above `memory.high`; its charge waits in the stock.
    Owing,
    /// Room under a limit: the request may not wait for it, or reclaim could not provide it.
    Denied,
}

/// Result of the work since the last attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AttemptInput {
    /// Nothing: this is the first attempt.
    Nothing,
    /// The block that the last attempt lacked.
    Pages(Pfn),
    /// Room under the limit that the last attempt met.
    Room,
}

/// When to continue a request that got room under one limit and then hit a limit again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RetryTiming {
    /// In the same step, because the attempt only looked at counters.
    SameStep,
    /// In the next step, because the attempt did some work.
    NextStep,
}

impl Groups {
    /// Like [`Self::abandon_slow_request`], for a task that has ended: its compaction was already
    /// ended.
    pub(crate) fn slow_orphaned(&mut self, slow: &SlowRequest) {
        match slow {
            SlowRequest::Pages(path) => self.slowpath_orphaned(path),
            SlowRequest::Room(_) | SlowRequest::Owing(_) => {}
        }
    }
}

impl Memory {
    /// Whether the attempt should be repeated after kswapd has run, because an earlier allocation
    /// of this step boosted a zone. An allocation that may sleep is a preemption point, and kswapd
    /// has slept for long, so it preempts the task before this attempt (Linux `might_alloc`).
    fn lets_kswapd_run(&self, lack: Shortage) -> bool {
        matches!(lack, Shortage::Pages(_, gfp) if gfp.has(Gfp::DIRECT_RECLAIM))
            && !self.wakeups.is_empty()
    }
}

impl Kernel {
    /// Makes one attempt to get a page with its charge, without reclaim.
    fn attempt_page(
        &mut self,
        ctx: &Ctx,
        request: PageRequest,
        given: AttemptInput,
    ) -> Result<Pfn, Shortage> {
        let PageRequest { order, gfp, payer, first } = request;
        let nr = request.nr_pages();
        let given = match given {
            // The block was for an earlier shortage, which has ended in the meantime.
            AttemptInput::Pages(pfn) if self.mem.pages[pfn].order != order => {
                self.mem.free_page(ctx.cpu, pfn, self.mem.pages[pfn].order);
                AttemptInput::Nothing
            }
            given => given,
        };
        let near = match (given, first) {
            (AttemptInput::Pages(pfn), _) => return self.charge_for(ctx, request, pfn),
            (AttemptInput::Room, _) => {
                // There is room for this page only, so no batch is charged for the stock.
                let charged = self.groups.counter_try_charge(payer, nr);
                charged.map_err(|over| Shortage::Room(over, nr, gfp))?;
                self.groups.note_over_high(payer, nr);
                self.groups.pay_first(ctx, payer, nr, gfp).map_err(|_| Shortage::Owing)?;
                return self.page_for_charge(ctx, request);
            }
            (AttemptInput::Nothing, AttemptStart::Charge) => {
                return self.attempt_charge_first(ctx, request)
            }
            (AttemptInput::Nothing, AttemptStart::Page) => gfp,
            (AttemptInput::Nothing, AttemptStart::NearPage) => {
                gfp.with(Gfp::THISNODE).with(Gfp::NORETRY)
            }
        };
        let found = self.mem.alloc_fast(ctx.cpu, ctx.node, order, near);
        let pfn = found.ok_or(Shortage::Pages(order, near))?;
        self.charge_for(ctx, request, pfn)
    }

    #[inline(always)]
    fn attempt_charge_first(&mut self, ctx: &Ctx, request: PageRequest) -> Result<Pfn, Shortage> {
        let nr = request.nr_pages();
        match self.groups.try_charge(ctx, request.payer, nr, request.gfp) {
            Ok(()) => self.page_for_charge(ctx, request),
            Err(ChargeFailure::Limit(over)) => Err(Shortage::Room(over, nr, request.gfp)),
            Err(ChargeFailure::Owing) => Err(Shortage::Owing),
        }
    }

    /// Allocates the page for a charge. If there is no page, cancels the charge.
    #[inline(always)]
    fn page_for_charge(&mut self, ctx: &Ctx, request: PageRequest) -> Result<Pfn, Shortage> {
        let PageRequest { order, gfp, payer, first: _ } = request;
        match self.mem.alloc_fast(ctx.cpu, ctx.node, order, gfp) {
            Some(pfn) => Ok(pfn),
            None => {
                self.groups.cancel_charge(ctx.cpu, payer, request.nr_pages());
                Err(Shortage::Pages(order, gfp))
            }
        }
    }

    /// Charges a page. If there is no room, frees the page.
    fn charge_for(&mut self, ctx: &Ctx, request: PageRequest, pfn: Pfn) -> Result<Pfn, Shortage> {
        let PageRequest { order, gfp, payer, first: _ } = request;
        let nr = request.nr_pages();
        // The page is already allocated, so this charge may not wait; the task pays later.
        let Err(lack) = self.groups.try_charge(ctx, payer, nr, Gfp::NOWAIT) else { return Ok(pfn) };
        self.mem.free_page(ctx.cpu, pfn, order);
        match lack {
            ChargeFailure::Limit(over) if gfp.has(Gfp::DIRECT_RECLAIM) => {
                Err(Shortage::Room(over, nr, gfp))
            }
            ChargeFailure::Limit(_) | ChargeFailure::Owing => Err(Shortage::Denied),
        }
    }

    pub(crate) fn discard_charged(&mut self, cpu: Cpu, pfn: Pfn, memcg: MemcgId) {
        let order = self.mem.pages[pfn].order;
        self.groups.cancel_charge(cpu, memcg, 1 << order);
        self.mem.free_page(cpu, pfn, order);
    }
}

impl<O: Owners> Manager<O> {
    /// Runs one bounded step of a request for a page with its charge. The caller passes both to
    /// [`Kernel::charge`] if there is a group to charge, otherwise to
    /// [`Kernel::discard_charged`].
    #[inline(always)]
    pub(crate) fn request_page(
        &mut self,
        ctx: &Ctx,
        slow: &mut Option<SlowRequest>,
        request: PageRequest,
    ) -> Step<Result<Pfn, Shortage>> {
        if slow.is_none() && request.first == AttemptStart::Charge {
            match self.attempt_charge_first(ctx, request) {
                Ok(pfn) => return Step::Done(Ok(pfn)),
                Err(lack) if self.mem.lets_kswapd_run(lack) => return Step::Continue,
                Err(lack) => self.work_for(ctx, slow, lack),
            }
        }
        self.request_page_slow(ctx, slow, request)
    }

    fn request_page_slow(
        &mut self,
        ctx: &Ctx,
        slow: &mut Option<SlowRequest>,
        mut request: PageRequest,
    ) -> Step<Result<Pfn, Shortage>> {
        loop {
            let step = self.request_step(ctx, slow, RetryTiming::SameStep, |machine, given| {
                machine.attempt_page(ctx, request, given)
            });
            match step {
                Step::Done(Err(Shortage::Pages(_, asked)))
                    if asked.has(Gfp::THISNODE)
                        && !request.gfp.has(Gfp::THISNODE)
                        && request.gfp.has(Gfp::DIRECT_RECLAIM) =>
                {
                    request.first = AttemptStart::Page;
                }
                step => return step,
            }
        }
    }

    /// Runs one bounded step of any request. Makes attempts until one succeeds or needs work.
    /// `Done`: the result of the attempt, or what the request could not get.
    pub(crate) fn request_step<T>(
        &mut self,
        ctx: &Ctx,
        slow: &mut Option<SlowRequest>,
        again: RetryTiming,
        mut attempt: impl FnMut(&mut Self, AttemptInput) -> Result<T, Shortage>,
    ) -> Step<Result<T, Shortage>> {
        loop {
            let given = match slow {
                None => AttemptInput::Nothing,
                Some(SlowRequest::Pages(path)) => match self.slowpath_step(path, ctx) {
                    Step::Continue => return Step::Continue,
                    Step::Wait(wait) => return Step::Wait(wait),
                    Step::Done(Some(pfn)) => AttemptInput::Pages(pfn),
                    Step::Done(None) => {
                        let lack = Shortage::Pages(path.order(), path.gfp());
                        *slow = None;
                        return Step::Done(Err(lack));
                    }
                },
                Some(SlowRequest::Room(path)) => match self.charge_step(path, ctx) {
                    Step::Continue => return Step::Continue,
                    Step::Wait(wait) => return Step::Wait(wait),
                    Step::Done(true) => AttemptInput::Room,
                    Step::Done(false) => {
                        *slow = None;
                        return Step::Done(Err(Shortage::Denied));
                    }
                },
                Some(SlowRequest::Owing(paying)) => match self.over_high_step(paying, ctx) {
                    Step::Continue => return Step::Continue,
                    Step::Wait(wait) => return Step::Wait(wait),
                    Step::Done(()) => AttemptInput::Nothing,
                },
            };
            match (attempt(self, given), &mut *slow) {
                (Ok(got), _) => {
                    *slow = None;
                    return Step::Done(Ok(got));
                }
                (Err(Shortage::Denied), _) => {
                    *slow = None;
                    return Step::Done(Err(Shortage::Denied));
                }
                // Another task took the room; the number of tries continues to count.
                (Err(Shortage::Room(over, nr, gfp)), Some(SlowRequest::Room(path))) => {
                    self.groups.charge_again(path, over, nr, gfp);
                    if again == RetryTiming::NextStep {
                        return Step::Continue;
                    }
                }
                (Err(lack), _) if self.mem.lets_kswapd_run(lack) => {
                    *slow = None;
                    return Step::Continue;
                }
                (Err(lack), _) => self.work_for(ctx, slow, lack),
            }
        }
    }

    /// Called when the request is abandoned: releases what its work holds.
    pub(crate) fn abandon_slow_request(&mut self, slow: &SlowRequest, asker: Requester, cpu: Cpu) {
        match slow {
            SlowRequest::Pages(path) => self.abandon_slowpath(path, asker, cpu),
            // Reclaim for a group's limit has no soft-limit stage, so it holds nothing.
            SlowRequest::Room(_) => {}
            // The task pays later.
            SlowRequest::Owing(paying) => self.owners.note_over_high(asker, paying.nr_pages()),
        }
    }

    #[cold]
    fn work_for(&mut self, ctx: &Ctx, slow: &mut Option<SlowRequest>, lack: Shortage) {
        *slow = match lack {
            Shortage::Pages(order, gfp) => {
                Some(SlowRequest::Pages(Box::new(SlowPath::new(order, gfp))))
            }
            Shortage::Room(over, nr, gfp) => {
                Some(SlowRequest::Room(Box::new(self.groups.charge_path(over, nr, gfp))))
            }
            Shortage::Owing => {
                self.begin_over_high(ctx).map(|paying| SlowRequest::Owing(Box::new(paying)))
            }
            Shortage::Denied => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::frames::node::NodeSpec;
    use crate::frames::page_alloc::Wakeup;
    use crate::frames::zone_type::{ZONE_DMA, ZONE_MOVABLE};
    use crate::groups::memcg::MemoryEvent;
    use crate::interface::outcome::Outcome;
    use crate::process::Machine;
    use crate::process::MmId;
    use crate::process::ProcessCall;
    use crate::units::{NodeId, HPAGE_PMD_NR};

    /// A machine with a group limited to `max` pages, and a task in it.
    fn machine(max: u64) -> (Machine, Ctx) {
        let mut machine =
            Machine::new(&[NodeSpec::x86_64(32 << 20, 0, 0)], 1, Config::default()).unwrap();
        let memcg = machine.create_memcg("group".into(), ROOT).unwrap();
        machine.groups.memcgs[memcg].memory.max = max;
        let mm = machine.create_mm(memcg).unwrap();
        (machine, Ctx { cpu: Cpu(0), node: NodeId(0), now: 0, asker: mm, memcg })
    }

    fn usage(machine: &Machine, ctx: &Ctx) -> u64 {
        machine.groups.memcgs[ctx.memcg].memory.usage
    }

    #[test]
    fn a_discarded_huge_page_goes_back_whole_and_leaves_the_stock_alone() {
        let (mut machine, ctx) = machine(4096);
        let small = PageRequest::page(Gfp::HIGHUSER_MOVABLE, ctx.memcg);
        let Step::Done(Ok(pfn)) = machine.request_page(&ctx, &mut None, small) else { panic!() };
        let (free, used) = (machine.mem.nr_free_pages(), usage(&machine, &ctx));
        let stock = machine.groups.stocks[0].nr_pages;
        assert_eq!((used, stock), (64, 63), "a batch");
        let huge = PageRequest::huge(Gfp::TRANSHUGE, ctx.memcg, AttemptStart::NearPage);
        let Step::Done(Ok(head)) = machine.request_page(&ctx, &mut None, huge) else { panic!() };
        assert_eq!(usage(&machine, &ctx), used + HPAGE_PMD_NR);
        machine.discard_charged(ctx.cpu, head, ctx.memcg);
        machine.mem.drain_all();
        assert_eq!((machine.mem.nr_free_pages(), usage(&machine, &ctx)), (free, used));
        assert_eq!(machine.groups.stocks[0].nr_pages, stock);
        machine.discard_charged(ctx.cpu, pfn, ctx.memcg);
        assert_eq!(
            machine.groups.stocks[0].nr_pages,
            stock + 1,
            "a small page's goes to the stock"
        );
    }

    #[test]
    fn a_huge_page_that_may_not_wait_meets_a_limit_without_an_event() {
        let (mut machine, ctx) = machine(100);
        let free = machine.mem.nr_free_pages();
        let events = |machine: &Machine| {
            machine.groups.memcgs[ctx.memcg].memory_events[MemoryEvent::Max as usize]
        };
        let mut slow = None;
        let light = PageRequest::huge(Gfp::TRANSHUGE_LIGHT, ctx.memcg, AttemptStart::NearPage);
        let step = machine.request_page(&ctx, &mut slow, light);
        assert_eq!(step, Step::Done(Err(Shortage::Denied)));
        assert_eq!((events(&machine), slow.is_some()), (0, false));
        let hard = PageRequest::huge(Gfp::TRANSHUGE, ctx.memcg, AttemptStart::Page);
        let step = machine.request_page(&ctx, &mut slow, hard);
        assert_eq!(step, Step::Continue);
        assert!(events(&machine) > 0 && slow.is_some());
        // The page is not held while the charge waits.
        machine.mem.drain_all();
        assert_eq!((machine.mem.nr_free_pages(), usage(&machine, &ctx)), (free, 0));
    }

    #[test]
    fn kswapd_runs_between_a_boost_and_an_attempt_that_fails() {
        let (mut machine, ctx) = machine(100_000);
        while machine.mem.alloc_fast(ctx.cpu, ctx.node, 0, Gfp::HIGHUSER_MOVABLE).is_some() {}
        let request = PageRequest::page(Gfp::HIGHUSER_MOVABLE, ctx.memcg);
        let at = NodeId(0);
        machine.mem.wakeups.push(Wakeup { node: at, order: 0, highest_zoneidx: ZONE_DMA });
        let mut slow = None;
        assert_eq!(machine.request_page(&ctx, &mut slow, request), Step::Continue);
        assert!(slow.is_none(), "the slow path waits until kswapd has run");
        assert_eq!(machine.mem.pgdat[0].kswapd.highest_zoneidx, None);
        machine.take_effects().discard();
        assert_eq!(
            machine.mem.pgdat[0].kswapd.highest_zoneidx,
            Some(ZONE_DMA),
            "for the boosted zone"
        );
        let step = machine.request_page(&ctx, &mut slow, request);
        assert!(slow.is_some() || matches!(step, Step::Done(Ok(_))));
        assert_eq!(machine.mem.pgdat[0].kswapd.highest_zoneidx, Some(ZONE_MOVABLE));
    }

    #[test]
    fn what_is_asked_of_one_node_alone_is_asked_once() {
        let (mut machine, ctx) = machine(0);
        let gfp = Gfp::KERNEL.with(Gfp::THISNODE).with(Gfp::NORETRY);
        let mut steps = 0;
        let mut ask = |machine: &mut Machine, mm: MmId| {
            let mut call = ProcessCall::alloc_pages(mm, NodeId(0), 3, gfp);
            loop {
                steps += 1;
                assert!(steps < 10_000, "the request never ends");
                let (step, effects) = machine.step(&mut call, Cpu(0), 0);
                effects.discard();
                if let Step::Done(outcome) = step {
                    return outcome;
                }
            }
        };
        while ask(&mut machine, ctx.asker) != Outcome::NoBlock {}
        assert!(machine.mem.nr_free_pages() < 1024, "it gave up early");
        machine.audit().unwrap();
    }
}
