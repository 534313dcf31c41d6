//! What a task asks of the memory manager: a fault, a read(), a write(), as resumable state.
//!
//! Linux runs these on the task's stack and sleeps in the middle. Here the middle is a value: a
//! [`Call`] is stepped until done, and every step does a bounded amount of work, so a world may
//! stop, sleep or switch between any two. A page allocation that has to reclaim is part of the
//! call's state ([`SlowPath`]).

use crate::effect::{Step, Wait};
use crate::fault::Fault;
use crate::filemap::{FileRead, FileWrite};
use crate::gfp::Gfp;
use crate::machine::Machine;
use crate::page_table::VmaId;
use crate::readahead::ReadaheadState;
use crate::slowpath::SlowPath;
use crate::units::{Cpu, FileId, MemcgId, MmId, Nanos, NodeId, Pfn};

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
    /// The allocation that is reclaiming at the moment.
    pub(crate) slow: Option<SlowPath>,
    mm: MmId,
    node: NodeId,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Fault(Fault),
    Read(FileRead),
    Write(FileWrite),
}

impl Call {
    /// A page fault of `mm` on a page of one of its mappings, for a task that runs on `node`.
    pub fn fault(mm: MmId, node: NodeId, vma: VmaId, page: u64, write: bool) -> Call {
        Call { kind: Kind::Fault(Fault::new(vma, page, write)), slow: None, mm, node }
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
        Call { kind: Kind::Read(FileRead::new(file, offset, len, readahead)), slow: None, mm, node }
    }

    /// A write() of `len` bytes at `offset`.
    pub fn write(mm: MmId, node: NodeId, file: FileId, offset: u64, len: u64) -> Call {
        Call { kind: Kind::Write(FileWrite::new(file, offset, len)), slow: None, mm, node }
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
        self.slow.as_ref().is_some_and(SlowPath::is_reclaiming)
    }

    /// Whether a fault waits for a page that was in the working set (thrashing).
    pub fn is_thrashing(&self, machine: &Machine, wait: Wait) -> bool {
        match wait {
            Wait::Page(pfn) => machine.mem.pages[pfn.idx()].has(crate::page::PageFlags::WORKINGSET),
            _ => false,
        }
    }
}

/// Result of asking for a page.
pub(crate) enum Alloc {
    /// Here it is.
    Page(Pfn),
    /// Not yet: hand this to the world.
    Pending(Step<Outcome>),
    /// There is none.
    Failed,
}

impl Machine {
    pub(crate) fn call_step(&mut self, call: &mut Call, cpu: Cpu, now: Nanos) -> Step<Outcome> {
        let memcg = self.mms[call.mm.idx()].memcg;
        let ctx = Ctx { cpu, node: call.node, now, mm: call.mm, memcg };
        match &mut call.kind {
            Kind::Fault(fault) => self.fault_step(fault, &mut call.slow, &ctx),
            Kind::Read(read) => self.read_step(read, &mut call.slow, &ctx),
            Kind::Write(write) => self.write_step(write, &mut call.slow, &ctx),
        }
    }

    /// Asks for an order-0 page: the fast path inline, else one step of the slow path.
    #[inline]
    pub(crate) fn alloc_page(&mut self, ctx: &Ctx, slow: &mut Option<SlowPath>, gfp: Gfp) -> Alloc {
        if slow.is_none() {
            if let Some(pfn) = self.mem.alloc_fast(ctx.cpu, ctx.node, 0, gfp) {
                return Alloc::Page(pfn);
            }
            *slow = Some(SlowPath::new(0, gfp));
        }
        let Some(state) = slow else { unreachable!("just set") };
        match self.slowpath_step(state, ctx) {
            Step::Continue => Alloc::Pending(Step::Continue),
            Step::Wait(wait) => Alloc::Pending(Step::Wait(wait)),
            Step::Done(result) => {
                *slow = None;
                match result {
                    Some(pfn) => Alloc::Page(pfn),
                    None => Alloc::Failed,
                }
            }
        }
    }
}
