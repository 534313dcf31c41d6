//! Requests to the memory manager as resumable state: kernel memory, objects, a write to a control
//! file, and the requests of the owners of pages (a process asks for a fault, a read(), a write()).
//!
//! Linux runs these on the task's stack and sleeps in the middle. Here the state in the middle is a
//! value: a [`Call`] is stepped until it is done. Every step does a bounded amount of work, so a world
//! may stop, sleep or switch between any two steps. A page allocation that has to reclaim, for the
//! machine or for a group's limit, is part of the call's state, and so is the reclaim that its task
//! owes for being above `memory.high`.

use crate::bad_id::BadId;
use crate::compaction::CompactMemory;
use crate::control::GroupWrite;
use crate::ctx::Ctx;
use crate::daemon::CountedIn;
use crate::effect::{Effects, Sleep, Step, Throttle, Token};
use crate::gfp::Gfp;
use crate::manager::Manager;
use crate::memory_high::OverHigh;
use crate::outcome::Outcome;
use crate::owners::Owners;
use crate::page::PageFlags;
use crate::page_request::SlowRequest;
use crate::slab::call::KmemAlloc;
use crate::units::{Asker, CacheId, Cpu, Nanos, NodeId};
use alloc::boxed::Box;
use core::fmt::Debug;

/// Owners whose askers ask for more than memory of the kernel's: pages of theirs.
pub trait Asks: Owners {
    /// What they may ask for.
    type Request: Clone + Debug;

    /// One bounded step of it.
    fn request_step(
        manager: &mut Manager<Self>,
        request: &mut Self::Request,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome>;
}

/// What a call has that has not begun instead of its asker's tenure.
const NOT_BEGUN: u64 = u64::MAX;

/// A request in progress.
#[derive(Clone, Debug)]
pub struct Call<R> {
    pub(crate) kind: Kind<R>,
    /// The request for a page that did not succeed at once.
    pub(crate) slow: Option<SlowRequest>,
    /// The call itself is done; its task pays for being above `memory.high` before it goes on.
    over_high: Option<(Outcome, Box<OverHigh>)>,
    /// Pages charged above `memory.high` that are not paid for yet.
    nr_over_high: u64,
    /// The queue that it is counted in while it sleeps.
    counted: CountedIn,
    asker: Asker,
    /// The asker's, since the first step: another may have its name later ([`Owners::tenure`]).
    tenure: u64,
    node: NodeId,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind<R> {
    Owner(R),
    GroupWrite(Box<GroupWrite>),
    KmemAlloc(KmemAlloc),
    CompactMemory(CompactMemory),
}

impl<R> Call<R> {
    /// What only these owners' askers ask for.
    pub fn of_owner(asker: Asker, node: NodeId, request: R) -> Call<R> {
        Call::new(Kind::Owner(request), asker, node)
    }

    /// The request of the owner's kind, if it is one.
    pub fn owners_request(&self) -> Option<&R> {
        match &self.kind {
            Kind::Owner(request) => Some(request),
            _ => None,
        }
    }

    /// A write to a group's control file that has to reclaim: what
    /// [`Manager::write_group_control`] gave.
    pub fn group_write(asker: Asker, node: NodeId, write: GroupWrite) -> Call<R> {
        Call::new(Kind::GroupWrite(Box::new(write)), asker, node)
    }

    /// A request for an object of `cache` on behalf of `asker`, whose group is to pay for it if `account` says
    /// so or the cache does. Ends as [`Outcome::Object`],
    /// [`Outcome::NoObject`] or [`Outcome::NoCache`]. Whoever gets it frees
    /// it ([`Manager::kmem_cache_free`]); it does not end with `asker`.
    pub fn kmem_alloc(
        asker: Asker,
        node: NodeId,
        cache: CacheId,
        account: bool,
        gfp: Gfp,
    ) -> Call<R> {
        Call::new(Kind::KmemAlloc(KmemAlloc::new(cache, account, gfp)), asker, node)
    }

    /// A write of 1 to `vm.compact_memory`: all that can be moved is, before the call is done.
    pub fn compact_memory(asker: Asker, node: NodeId) -> Call<R> {
        Call::new(Kind::CompactMemory(CompactMemory::default()), asker, node)
    }

    fn new(kind: Kind<R>, asker: Asker, node: NodeId) -> Call<R> {
        Call {
            kind,
            slow: None,
            over_high: None,
            nr_over_high: 0,
            counted: None,
            asker,
            tenure: NOT_BEGUN,
            node,
        }
    }

    /// How a call ends whose asker has ended before it: what it had is given back or, if the asker held it,
    /// gone.
    #[cold]
    fn orphaned(&self) -> Outcome {
        match (&self.over_high, &self.kind) {
            (Some((Outcome::Block(_), _)), _) => Outcome::NoBlock,
            (Some((Outcome::Got(_), _)), _) => Outcome::NoMemory,
            (Some((outcome, _)), _) => *outcome,
            (None, Kind::KmemAlloc(_)) => Outcome::NoObject,
            (None, Kind::Owner(_) | Kind::GroupWrite(_) | Kind::CompactMemory(_)) => {
                Outcome::NoMemory
            }
        }
    }

    /// Whether the call is inside direct reclaim at the moment.
    pub fn is_reclaiming(&self) -> bool {
        self.is_held_up() || self.reclaims_by_request()
    }

    /// Whether the call reclaims at the moment, or pays, because it lacks memory (Linux `psi_memstall_enter`).
    fn is_held_up(&self) -> bool {
        self.slow.as_ref().is_some_and(SlowRequest::is_reclaiming) || self.over_high.is_some()
    }

    /// Whether the call is a write to a control file that reclaims: its writer does what he has asked for.
    fn reclaims_by_request(&self) -> bool {
        matches!(self.kind, Kind::GroupWrite(_)) && self.over_high.is_none()
    }

    /// Whether the call's task is stalled on memory: it reclaims because it lacks some, is throttled for that, or waits
    /// for a page that was in the working set (Linux 6.1: `psi_memstall_enter` is in `__perform_reclaim`,
    /// `try_charge_memcg` and `reclaim_high`, and neither in `try_to_free_mem_cgroup_pages` nor in what writes to
    /// control files call).
    pub fn is_stalled<O: Owners>(&self, machine: &Manager<O>, waiting: Option<Sleep>) -> bool {
        if self.reclaims_by_request() {
            return false;
        }
        match waiting {
            Some(Sleep { token: Token::Throttled(_, reason), .. }) => reason != Throttle::Dirty,
            Some(sleep) => self.is_held_up() || self.is_thrashing(machine, sleep),
            None => self.is_held_up(),
        }
    }

    /// Whether the call is compacting for its task at the moment.
    pub fn is_compacting(&self) -> bool {
        self.slow.as_ref().is_some_and(SlowRequest::is_compacting)
            || matches!(self.kind, Kind::CompactMemory(_))
    }

    /// Whether a fault waits for a page that was in the working set (thrashing).
    pub fn is_thrashing<O: Owners>(&self, machine: &Manager<O>, sleep: Sleep) -> bool {
        match sleep.token {
            Token::Page(pfn) => {
                let page = machine.mem.pages.get(pfn.idx());
                page.is_some_and(|page| page.has(PageFlags::WORKINGSET))
            }
            Token::Throttled(..) | Token::Daemon(_) => false,
        }
    }

    /// Whether the call is counted among those who sleep in a node's queue ([`Manager::nr_throttled`]).
    pub fn is_counted_in(&self, node: NodeId, reason: Throttle) -> bool {
        self.counted == Some((node, reason))
    }
}

impl<O: Asks> Manager<O> {
    /// Runs one bounded step of a task's call.
    pub fn step(
        &mut self,
        call: &mut Call<O::Request>,
        cpu: Cpu,
        now: Nanos,
    ) -> (Step<Outcome>, Effects<'_>) {
        let step = self.call_step(call, cpu, now);
        (step, self.hand_out())
    }

    /// Gives up a call that is not done, or was not asked for its outcome: what it holds half-way goes back,
    /// and nobody has to end for it. What it has finished stays, as the pages that a read() has brought.
    pub fn cancel(&mut self, call: Call<O::Request>, cpu: Cpu) -> Effects<'_> {
        self.call_given_up(call, cpu);
        self.hand_out()
    }

    pub(crate) fn call_step(
        &mut self,
        call: &mut Call<O::Request>,
        cpu: Cpu,
        now: Nanos,
    ) -> Step<Outcome> {
        self.leave_queue(call.counted.take());
        self.nr_over_high = call.nr_over_high;
        let step = self.call_work(call, cpu, now);
        call.nr_over_high = core::mem::take(&mut self.nr_over_high);
        if let Step::Wait(sleep) = step {
            call.counted = self.enter_queue(sleep);
        }
        step
    }

    #[inline]
    fn call_work(&mut self, call: &mut Call<O::Request>, cpu: Cpu, now: Nanos) -> Step<Outcome> {
        if !self.has_cpu(cpu) {
            return Step::Done(Outcome::BadId(BadId::Cpu(cpu)));
        }
        if !self.has_node(call.node) {
            return Step::Done(Outcome::BadId(BadId::Node(call.node)));
        }
        let tenure = self.owners.tenure(call.asker);
        if tenure != Some(call.tenure) {
            match tenure {
                Some(tenure) if call.tenure == NOT_BEGUN => call.tenure = tenure,
                None if call.tenure == NOT_BEGUN => {
                    return Step::Done(Outcome::BadId(BadId::Mm(call.asker)));
                }
                // What it had under way went with its asker.
                Some(_) | None => {
                    if let Some(slow) = call.slow.take() {
                        self.slow_orphaned(&slow);
                    }
                    return Step::Done(call.orphaned());
                }
            }
        }
        let memcg = self.owners.asks(call.asker);
        let ctx = Ctx { cpu, node: call.node, now, asker: call.asker, memcg };
        if let Some((outcome, paying)) = &mut call.over_high {
            let outcome = *outcome;
            return match self.over_high_step(paying, &ctx) {
                Step::Continue => Step::Continue,
                Step::Wait(wait) => Step::Wait(wait),
                Step::Done(()) => {
                    call.over_high = None;
                    Step::Done(outcome)
                }
            };
        }
        let step = match &mut call.kind {
            Kind::Owner(request) => O::request_step(self, request, &mut call.slow, &ctx),
            Kind::GroupWrite(write) => self.group_write_step(write, &ctx),
            Kind::CompactMemory(state) => self.compact_memory_step(state, &ctx),
            Kind::KmemAlloc(wanted) => self.kmem_alloc_step(wanted, &mut call.slow, &ctx),
        };
        let Step::Done(outcome) = step else { return step };
        match self.begin_over_high(&ctx) {
            None => step,
            Some(paying) => {
                call.over_high = Some((outcome, Box::new(paying)));
                Step::Continue
            }
        }
    }

    /// What [`Manager::cancel`] does, without its effects.
    pub(crate) fn call_given_up(&mut self, call: Call<O::Request>, cpu: Cpu) {
        let Call { kind, slow, over_high, nr_over_high, counted, asker, tenure, node: _ } = call;
        self.leave_queue(counted);
        // Freed pages go to some CPU's lists.
        let cpu = if self.has_cpu(cpu) { cpu } else { Cpu(0) };
        if self.owners.tenure(asker) != Some(tenure) {
            // What its asker held went with the asker, whose name may be another's by now.
            if let Some(slow) = slow {
                self.slow_orphaned(&slow);
            }
            if let Some((Outcome::Object(object), _)) = over_high {
                self.free_known(object, cpu);
            }
            return;
        }
        if let Some(slow) = slow {
            self.slow_given_up(&slow, asker, cpu);
        }
        // The task pays another time.
        self.owners.note_over_high(asker, nr_over_high);
        match kind {
            Kind::CompactMemory(state) => self.compact_memory_given_up(&state, asker, cpu),
            // These hold nothing of their own between two steps.
            Kind::Owner(_) | Kind::GroupWrite(_) | Kind::KmemAlloc(_) => {}
        }
        let Some((outcome, paying)) = over_high else { return };
        self.owners.note_over_high(asker, paying.nr_pages());
        match outcome {
            Outcome::Object(object) => self.free_known(object, cpu),
            outcome => O::take_back(self, asker, outcome, cpu),
        }
    }
}
