//! What a task asks of the memory manager: a fault, a read(), a write(), as resumable state.
//!
//! Linux runs these on the task's stack and sleeps in the middle. Here the middle is a value: a
//! [`Call`] is stepped until done, and every step does a bounded amount of work, so a world may
//! stop, sleep or switch between any two. A page allocation that has to reclaim, for the machine or for
//! a group's limit, is part of the call's state, and so is what its task owes for being above
//! `memory.high`.

use crate::compaction::CompactMemory;
use crate::control::{Errno, GroupWrite};
use crate::effect::{Step, Wait};
use crate::fault::Fault;
use crate::filemap::{FileRead, FileWrite};
use crate::gfp::Gfp;
use crate::kernel_block::KernelAlloc;
use crate::machine::Machine;
use crate::memory_high::OverHigh;
use crate::page_request::SlowRequest;
use crate::page_table::VmaId;
use crate::readahead::ReadaheadState;
use crate::slab::call::KmemAlloc;
use crate::slab::Object;
use crate::units::{CacheId, Cpu, FileId, MemcgId, MmId, Nanos, NodeId, Order, Pfn};
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
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ctx {
    pub cpu: Cpu,
    pub node: NodeId,
    pub now: Nanos,
    pub mm: MmId,
    pub memcg: MemcgId,
}

/// A request in progress.
#[derive(Clone, Debug)]
pub struct Call {
    pub(crate) kind: Kind,
    /// The request for a page that did not succeed at once.
    pub(crate) slow: Option<SlowRequest>,
    /// The call itself is done; its task pays for being above `memory.high` before it goes on.
    over_high: Option<(Outcome, OverHigh)>,
    mm: MmId,
    node: NodeId,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Fault(Fault),
    Read(FileRead),
    Write(FileWrite),
    GroupWrite(Box<GroupWrite>),
    KernelAlloc(KernelAlloc),
    KmemAlloc(KmemAlloc),
    CompactMemory(CompactMemory),
}

impl Call {
    /// A page fault of `mm` on a page of one of its mappings, for a task that runs on `node`.
    pub fn fault(mm: MmId, node: NodeId, vma: VmaId, page: u64, write: bool) -> Call {
        Call::new(Kind::Fault(Fault::new(vma, page, write)), mm, node)
    }

    /// A read() of `len` bytes at `offset`. `readahead` is the open file's state; take it back
    /// with [`Call::readahead`] when the call is done.
    pub fn read(
        mm: MmId,
        node: NodeId,
        file: FileId,
        offset: u64,
        len: u64,
        readahead: ReadaheadState,
    ) -> Call {
        Call::new(Kind::Read(FileRead::new(file, offset, len, readahead)), mm, node)
    }

    /// A write() of `len` bytes at `offset`.
    pub fn write(mm: MmId, node: NodeId, file: FileId, offset: u64, len: u64) -> Call {
        Call::new(Kind::Write(FileWrite::new(file, offset, len)), mm, node)
    }

    /// A write to a group's control file that has to reclaim: what
    /// [`Machine::write_group_control`] gave.
    pub fn group_write(mm: MmId, node: NodeId, write: GroupWrite) -> Call {
        Call::new(Kind::GroupWrite(Box::new(write)), mm, node)
    }

    /// A request for 2^`order` contiguous frames of kernel memory, which `mm` holds until it frees them
    /// ([`Machine::free_kernel_block`]) or ends. Ends as [`Outcome::Block`] or [`Outcome::NoBlock`].
    pub fn alloc_pages(mm: MmId, node: NodeId, order: Order, gfp: Gfp) -> Call {
        Call::new(Kind::KernelAlloc(KernelAlloc::new(order, gfp)), mm, node)
    }

    /// A request for an object of `cache` on behalf of `mm`, whose group is to pay for it if `account` says
    /// so or the cache does. Ends as [`Outcome::Object`],
    /// [`Outcome::NoObject`] or [`Outcome::NoCache`]. Whoever gets it frees
    /// it ([`Machine::kmem_cache_free`]); it does not end with `mm`.
    pub fn kmem_alloc(mm: MmId, node: NodeId, cache: CacheId, account: bool, gfp: Gfp) -> Call {
        Call::new(Kind::KmemAlloc(KmemAlloc::new(cache, account, gfp)), mm, node)
    }

    /// A write of 1 to `vm.compact_memory`: all that can be moved is, before the call is done.
    pub fn compact_memory(mm: MmId, node: NodeId) -> Call {
        Call::new(Kind::CompactMemory(CompactMemory::default()), mm, node)
    }

    fn new(kind: Kind, mm: MmId, node: NodeId) -> Call {
        Call { kind, slow: None, over_high: None, mm, node }
    }

    /// The open file's read-ahead state after a read.
    pub fn readahead(&self) -> Option<ReadaheadState> {
        match &self.kind {
            Kind::Read(read) => Some(read.readahead),
            _ => None,
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
    pub fn is_thrashing(&self, machine: &Machine, wait: Wait) -> bool {
        match wait {
            Wait::Page(pfn) => machine.mem.pages[pfn.idx()].has(crate::page::PageFlags::WORKINGSET),
            _ => false,
        }
    }
}

impl Machine {
    pub(crate) fn call_step(&mut self, call: &mut Call, cpu: Cpu, now: Nanos) -> Step<Outcome> {
        let mm = &mut self.mms[call.mm.idx()];
        mm.begun = true;
        let memcg = mm.memcg;
        let ctx = Ctx { cpu, node: call.node, now, mm: call.mm, memcg };
        if let Some((outcome, paying)) = &mut call.over_high {
            return match self.over_high_step(paying, &ctx) {
                Step::Continue => Step::Continue,
                Step::Wait(wait) => Step::Wait(wait),
                Step::Done(()) => Step::Done(*outcome),
            };
        }
        let step = match &mut call.kind {
            Kind::Fault(fault) => self.fault_step(fault, &mut call.slow, &ctx),
            Kind::Read(read) => self.read_step(read, &mut call.slow, &ctx),
            Kind::Write(write) => self.write_step(write, &mut call.slow, &ctx),
            Kind::GroupWrite(write) => self.group_write_step(write, &ctx),
            Kind::CompactMemory(state) => self.compact_memory_step(state, &ctx),
            Kind::KmemAlloc(wanted) => self.kmem_alloc_step(wanted, &mut call.slow, &ctx),
            Kind::KernelAlloc(wanted) => self.kernel_alloc_step(*wanted, &mut call.slow, &ctx),
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
