//! Requests to the memory manager as resumable state. A request is for kernel memory, a slab object
//! or a write to a control file, or it is a request of an owner of pages (for a process: fault,
//! read(), write()).
//!
//! Linux runs a request on the task's stack and sleeps in the middle. Here the intermediate state
//! is a value: a [`Call`] is stepped until it is done. Each step does a bounded amount of work, so
//! a world may stop, sleep or switch tasks between any two steps. A call also contains the state of
//! two kinds of reclaim that it may need: reclaim for a page allocation, because the machine or a
//! group is short of memory, and reclaim because the task's group is above `memory.high`.

use crate::ageing::generations::command::{LruGenRun, LruGenWrite};
use crate::compaction::CompactMemory;
use crate::control::GroupWrite;
use crate::frames::gfp::Gfp;
use crate::frames::page::PageFlags;
use crate::frames::page_request::SlowRequest;
use crate::groups::memory_high::OverHigh;
use crate::interface::bad_id::BadId;
use crate::interface::ctx::Ctx;
use crate::interface::daemon::ThrottleQueue;
use crate::interface::effect::{Effects, Sleep, Step, Token};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::outcome::Outcome;
use crate::interface::owners::Owners;
use crate::interface::throttle::Throttle;
use crate::slab::call::KmemAlloc;
use crate::swap::zram::writeback::ZramWriteback;
use crate::swap::zram::ZramWritebackMode;
use crate::units::{CacheId, Cpu, Nanos, NodeId, Requester};
use alloc::boxed::Box;
use core::fmt::Debug;

/// Owners that have their own kind of request, in addition to requests for kernel memory.
pub trait RequestOwners: Owners {
    /// A request of these owners.
    type Request: Clone + Debug;

    /// Runs one bounded step of a request.
    fn request_step(
        manager: &mut Manager<Self>,
        request: &mut Self::Request,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome>;
}

/// `Call::generation` before the first step.
const NOT_BEGUN: u64 = u64::MAX;

/// A request in progress.
#[derive(Clone, Debug)]
pub struct Call<R> {
    pub(crate) kind: RequestKind<R>,
    /// The page allocation, if it did not succeed at once.
    pub(crate) slow: Option<SlowRequest>,
    /// Set when the request is done but its task must still reclaim for `memory.high`.
    over_high: Option<(Outcome, Box<OverHigh>)>,
    /// Pages charged above `memory.high` that the task has not paid for yet.
    nr_over_high: u64,
    /// Throttle queue whose sleeper count includes this call.
    throttle_queue: ThrottleQueue,
    requester: Requester,
    /// Generation of the requester at the first step ([`Owners::generation`]), because ids are
    /// reused.
    generation: u64,
    node: NodeId,
}

#[derive(Clone, Debug)]
pub(crate) enum RequestKind<R> {
    Owner(R),
    GroupWrite(Box<GroupWrite>),
    KmemAlloc(KmemAlloc),
    CompactMemory(CompactMemory),
    ZramWriteback(ZramWriteback),
    LruGen(LruGenRun),
}

impl<R> Call<R> {
    /// A request of the owner's kind.
    pub fn for_owner(asker: Requester, node: NodeId, request: R) -> Call<R> {
        Call::new(RequestKind::Owner(request), asker, node)
    }

    /// The owner's request; `None` for another kind of call.
    pub fn owner_request(&self) -> Option<&R> {
        match &self.kind {
            RequestKind::Owner(request) => Some(request),
            _ => None,
        }
    }

    /// The part of a write to a group's control file that has to reclaim
    /// ([`Kernel::write_group_control`]).
    pub fn group_write(asker: Requester, node: NodeId, write: GroupWrite) -> Call<R> {
        Call::new(RequestKind::GroupWrite(Box::new(write)), asker, node)
    }

    /// Allocates an object of `cache` for `asker`. The requester's group is charged if `account` is
    /// set or the cache is accounted. Ends as [`Outcome::Object`], [`Outcome::NoObject`] or
    /// [`Outcome::NoCache`]. The receiver must free the object ([`Kernel::kmem_cache_free`]); it
    /// is not freed when `asker` ends.
    pub fn kmem_alloc(
        asker: Requester,
        node: NodeId,
        cache: CacheId,
        account: bool,
        gfp: Gfp,
    ) -> Call<R> {
        Call::new(RequestKind::KmemAlloc(KmemAlloc::new(cache, account, gfp)), asker, node)
    }

    /// A write of 1 to `vm.compact_memory`: compacts all zones before the call ends.
    pub fn compact_memory(asker: Requester, node: NodeId) -> Call<R> {
        Call::new(RequestKind::CompactMemory(CompactMemory::default()), asker, node)
    }

    /// A write to `writeback` of the zram devices: ends when all such pages are on their disks, or as
    /// [`Outcome::Refused`].
    pub fn zram_writeback(asker: Requester, node: NodeId, mode: ZramWritebackMode) -> Call<R> {
        Call::new(RequestKind::ZramWriteback(ZramWriteback::new(mode)), asker, node)
    }

    /// A write of commands to `lru_gen`. Ends as [`Outcome::Refused`] if one of them fails; those
    /// before it have been done.
    pub fn lru_gen(asker: Requester, node: NodeId, write: LruGenWrite) -> Call<R> {
        Call::new(RequestKind::LruGen(LruGenRun::new(write)), asker, node)
    }

    fn new(kind: RequestKind<R>, asker: Requester, node: NodeId) -> Call<R> {
        Call {
            kind,
            slow: None,
            over_high: None,
            nr_over_high: 0,
            throttle_queue: None,
            requester: asker,
            generation: NOT_BEGUN,
            node,
        }
    }

    /// Outcome of a call whose requester ended before it; the call has no resources any more.
    #[cold]
    fn orphan_outcome(&self) -> Outcome {
        match (&self.over_high, &self.kind) {
            (Some((Outcome::Block(_), _)), _) => Outcome::NoBlock,
            (Some((Outcome::Got(_), _)), _) => Outcome::NoMemory,
            (Some((outcome, _)), _) => *outcome,
            (None, RequestKind::KmemAlloc(_)) => Outcome::NoObject,
            (
                None,
                RequestKind::Owner(_)
                | RequestKind::GroupWrite(_)
                | RequestKind::CompactMemory(_)
                | RequestKind::ZramWriteback(_)
                | RequestKind::LruGen(_),
            ) => Outcome::NoMemory,
        }
    }

    /// Whether the call is in direct reclaim.
    pub fn is_reclaiming(&self) -> bool {
        self.lacks_memory() || self.reclaims_by_request()
    }

    /// Whether the call reclaims because memory is short, or reclaims for `memory.high` (Linux
    /// `psi_memstall_enter`).
    fn lacks_memory(&self) -> bool {
        self.slow.as_ref().is_some_and(SlowRequest::is_reclaiming) || self.over_high.is_some()
    }

    /// Whether the call reclaims for a write to a control file. This is not a memory stall.
    fn reclaims_by_request(&self) -> bool {
        matches!(self.kind, RequestKind::GroupWrite(_) | RequestKind::LruGen(_))
            && self.over_high.is_none()
    }

    /// Whether the call's task is stalled on memory: it reclaims because memory is short, is
    /// throttled for that reason, or waits for a page that was in the working set. Linux 6.1 calls
    /// `psi_memstall_enter` in `__perform_reclaim`, `try_charge_memcg` and `reclaim_high`, but not
    /// in `try_to_free_mem_cgroup_pages`, nor where a write to a control file reclaims.
    pub fn is_stalled(&self, kernel: &Kernel, waiting: Option<Sleep>) -> bool {
        if self.reclaims_by_request() {
            return false;
        }
        match waiting {
            Some(Sleep { token: Token::Throttled(_, reason), .. }) => !reason.is_dirty(),
            Some(sleep) => self.lacks_memory() || self.is_thrashing(kernel, sleep),
            None => self.lacks_memory(),
        }
    }

    /// Whether the call is in direct compaction.
    pub fn is_compacting(&self) -> bool {
        self.slow.as_ref().is_some_and(SlowRequest::is_compacting)
            || matches!(self.kind, RequestKind::CompactMemory(_))
    }

    /// Whether a fault waits for a page that was in the working set (thrashing).
    pub fn is_thrashing(&self, kernel: &Kernel, sleep: Sleep) -> bool {
        match sleep.token {
            Token::Page(pfn) => {
                let page = kernel.mem.pages.get(pfn.idx());
                page.is_some_and(|page| page.has(PageFlags::WORKINGSET))
            }
            Token::Throttled(..) | Token::Daemon(_) => false,
        }
    }

    /// Whether the sleepers of a node's throttle queue include this call
    /// ([`Kernel::nr_throttled`]).
    pub fn is_counted_in(&self, node: NodeId, reason: Throttle) -> bool {
        self.throttle_queue == Some((node, reason))
    }
}

impl<O: RequestOwners> Manager<O> {
    pub(crate) fn do_step(
        &mut self,
        call: &mut Call<O::Request>,
        cpu: Cpu,
        now: Nanos,
    ) -> (Step<Outcome>, Effects<'_>) {
        let step = self.call_step(call, cpu, now);
        (step, self.take_effects())
    }

    pub(crate) fn do_cancel(&mut self, call: Call<O::Request>, cpu: Cpu) -> Effects<'_> {
        self.cancel_call(call, cpu);
        self.take_effects()
    }

    pub(crate) fn call_step(
        &mut self,
        call: &mut Call<O::Request>,
        cpu: Cpu,
        now: Nanos,
    ) -> Step<Outcome> {
        self.mem.leave_queue(call.throttle_queue.take());
        self.groups.nr_over_high = call.nr_over_high;
        self.step.plugged = false;
        let step = self.call_work(call, cpu, now);
        call.nr_over_high = core::mem::take(&mut self.groups.nr_over_high);
        if let Step::Wait(sleep) = step {
            call.throttle_queue = self.mem.enter_queue(sleep);
        }
        step
    }

    #[inline]
    fn call_work(&mut self, call: &mut Call<O::Request>, cpu: Cpu, now: Nanos) -> Step<Outcome> {
        if !self.groups.has_cpu(cpu) {
            return Step::Done(Outcome::BadId(BadId::Cpu(cpu)));
        }
        if !self.mem.has_node(call.node) {
            return Step::Done(Outcome::BadId(BadId::Node(call.node)));
        }
        let tenure = self.owners.generation(call.requester);
        if tenure != Some(call.generation) {
            match tenure {
                Some(tenure) if call.generation == NOT_BEGUN => call.generation = tenure,
                None if call.generation == NOT_BEGUN => {
                    return Step::Done(Outcome::BadId(BadId::Mm(call.requester)));
                }
                // The state of the unfinished work was freed when the requester ended.
                Some(_) | None => {
                    if let Some(slow) = call.slow.take() {
                        self.groups.slow_orphaned(&slow);
                    }
                    return Step::Done(call.orphan_outcome());
                }
            }
        }
        let memcg = self.owners.note_request(call.requester);
        let ctx = Ctx { cpu, node: call.node, now, asker: call.requester, memcg };
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
            RequestKind::Owner(request) => O::request_step(self, request, &mut call.slow, &ctx),
            RequestKind::GroupWrite(write) => self.group_write_step(write, &ctx),
            RequestKind::CompactMemory(state) => self.compact_memory_step(state, &ctx),
            RequestKind::LruGen(run) => self.lru_gen_step(run, &ctx),
            RequestKind::KmemAlloc(wanted) => self.kmem_alloc_step(wanted, &mut call.slow, &ctx),
            RequestKind::ZramWriteback(state) => {
                self.zram_writeback_step(state, &mut call.slow, &ctx)
            }
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

    /// [`Manager::cancel`] without returning its effects.
    pub(crate) fn cancel_call(&mut self, call: Call<O::Request>, cpu: Cpu) {
        let Call {
            kind,
            slow,
            over_high,
            nr_over_high,
            throttle_queue: counted,
            requester: asker,
            generation: tenure,
            node: _,
        } = call;
        self.mem.leave_queue(counted);
        // Freed pages go to the lists of some CPU.
        let cpu = if self.groups.has_cpu(cpu) { cpu } else { Cpu(0) };
        if self.owners.generation(asker) != Some(tenure) {
            // The requester's resources were freed when it ended, and its id may belong to another
            // requester now.
            if let Some(slow) = slow {
                self.groups.slow_orphaned(&slow);
            }
            if let Some((Outcome::Object(object), _)) = over_high {
                self.free_known(object, cpu);
            }
            return;
        }
        if let Some(slow) = slow {
            self.abandon_slow_request(&slow, asker, cpu);
        }
        // The task pays for these pages in a later call.
        self.owners.note_over_high(asker, nr_over_high);
        match kind {
            RequestKind::CompactMemory(state) => self.cancel_compact_memory(&state, asker, cpu),
            // These requests hold no resources between two steps.
            RequestKind::Owner(_)
            | RequestKind::GroupWrite(_)
            | RequestKind::KmemAlloc(_)
            | RequestKind::ZramWriteback(_)
            | RequestKind::LruGen(_) => {}
        }
        let Some((outcome, paying)) = over_high else { return };
        self.owners.note_over_high(asker, paying.nr_pages());
        match outcome {
            Outcome::Object(object) => self.free_known(object, cpu),
            outcome => O::undo_outcome(self, asker, outcome, cpu),
        }
    }
}
