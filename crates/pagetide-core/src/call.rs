//! What is asked of the memory manager, as resumable state: memory of the kernel's, objects, a write to a
//! control file, and what the owners of pages ask for (a process: a fault, a read(), a write()).
//!
//! Linux runs these on the task's stack and sleeps in the middle. Here the middle is a value: a
//! [`Call`] is stepped until done, and every step does a bounded amount of work, so a world may
//! stop, sleep or switch between any two. A page allocation that has to reclaim, for the machine or for
//! a group's limit, is part of the call's state, and so is what its task owes for being above
//! `memory.high`.

use crate::bad_id::BadId;
use crate::compaction::CompactMemory;
use crate::control::{Errno, GroupWrite};
use crate::ctx::Ctx;
use crate::effect::{Step, Wait};
use crate::gfp::Gfp;
use crate::manager::Manager;
use crate::memory_high::OverHigh;
use crate::owners::Owners;
use crate::page_request::SlowRequest;
use crate::slab::call::KmemAlloc;
use crate::slab::Object;
use crate::units::{Asker, CacheId, Cpu, Nanos, NodeId, Pfn};
use alloc::boxed::Box;

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Nothing had to be read.
    Minor,
    /// Something had to be read from a disk.
    Major,
    /// A read failed; the task gets SIGBUS or EIO.
    IoError,
    /// No memory; the task has been or will be killed.
    NoMemory,
    /// Kernel memory: the first frame of the block.
    Block(Pfn),
    /// No block of kernel memory of that order is to be had.
    NoBlock,
    /// An object of a cache.
    Object(Object),
    /// No object of a cache is to be had.
    NoObject,
    /// There is no such cache, or it is a group's own, from which only the group's tasks get objects.
    NoCache,
    /// A write to a group's control file was refused, and has changed nothing.
    Refused(Errno),
    /// There is no such thing as the call names: nothing has changed.
    BadId(BadId),
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
    over_high: Option<(Outcome, OverHigh)>,
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
        Call { kind, slow: None, over_high: None, asker, tenure: NOT_BEGUN, node }
    }

    /// How a call ends whose asker has ended before it: what it had is given back or, if the asker held it,
    /// gone.
    #[cold]
    fn orphaned(&self) -> Outcome {
        match (&self.over_high, &self.kind) {
            (Some((Outcome::Block(_), _)), _) => Outcome::NoBlock,
            (Some((outcome, _)), _) => *outcome,
            (None, Kind::KmemAlloc(_)) => Outcome::NoObject,
            (None, Kind::Owner(_) | Kind::GroupWrite(_) | Kind::CompactMemory(_)) => {
                Outcome::NoMemory
            }
        }
    }

    /// Whether the call is inside direct reclaim at the moment.
    pub fn is_reclaiming(&self) -> bool {
        self.slow.as_ref().is_some_and(SlowRequest::is_reclaiming)
            || self.over_high.is_some()
            || matches!(self.kind, Kind::GroupWrite(_))
    }

    /// Whether the call is compacting for its task at the moment.
    pub fn is_compacting(&self) -> bool {
        self.slow.as_ref().is_some_and(SlowRequest::is_compacting)
            || matches!(self.kind, Kind::CompactMemory(_))
    }

    /// Whether a fault waits for a page that was in the working set (thrashing).
    pub fn is_thrashing<O: Owners>(&self, machine: &Manager<O>, wait: Wait) -> bool {
        match wait {
            Wait::Page(pfn) => machine.mem.pages[pfn.idx()].has(crate::page::PageFlags::WORKINGSET),
            _ => false,
        }
    }
}

impl<O: Owners> Manager<O> {
    pub(crate) fn call_step(
        &mut self,
        call: &mut Call<O::Request>,
        cpu: Cpu,
        now: Nanos,
    ) -> Step<Outcome> {
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
                Some(_) | None => return Step::Done(call.orphaned()),
            }
        }
        let memcg = self.owners.asks(call.asker);
        let ctx = Ctx { cpu, node: call.node, now, asker: call.asker, memcg };
        if let Some((outcome, paying)) = &mut call.over_high {
            return match self.over_high_step(paying, &ctx) {
                Step::Continue => Step::Continue,
                Step::Wait(wait) => Step::Wait(wait),
                Step::Done(()) => Step::Done(*outcome),
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
                call.over_high = Some((outcome, paying));
                Step::Continue
            }
        }
    }
}
