//! The requests that only processes make: a fault, a read(), a write(), a part of a mapping made present.

use super::fault::Fault;
use super::filemap::{FileRead, FileWrite};
use super::kernel_block::KernelAlloc;
use super::madvise::Leave;
use super::madvise_collapse::MadviseCollapse;
use super::page_table::VmaId;
use super::populate::Populate;
use super::readahead::ReadaheadState;
use super::MmId;
use crate::gfp::Gfp;
use crate::units::{FileId, NodeId, Order};
use alloc::boxed::Box;

/// A request in progress, of a process.
pub type Call = crate::call::Call<Request>;

/// What only a process asks for.
#[derive(Clone, Debug)]
pub enum Request {
    /// A page fault.
    Fault(Fault),
    /// A read().
    Read(FileRead),
    /// A write().
    Write(FileWrite),
    /// A block of kernel memory.
    KernelAlloc(KernelAlloc),
    /// Pages of a mapping, made present.
    Populate(Box<Populate>),
    /// Pages of a mapping, on their way out of memory.
    Leave(Leave),
    /// Regions of a mapping, made huge pages.
    Collapse(Box<MadviseCollapse>),
}

impl Call {
    /// A page fault of `mm` on a page of one of its mappings, for a task that runs on `node`.
    pub fn fault(mm: MmId, node: NodeId, vma: VmaId, page: u64, write: bool) -> Call {
        Call::of_owner(mm, node, Request::Fault(Fault::new(vma, page, write)))
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
        Call::of_owner(mm, node, Request::Read(FileRead::new(file, offset, len, readahead)))
    }

    /// A write() of `len` bytes at `offset`. A world lets one write() at a time into a file (Linux: the inode's
    /// lock).
    pub fn write(mm: MmId, node: NodeId, file: FileId, offset: u64, len: u64) -> Call {
        Call::of_owner(mm, node, Request::Write(FileWrite::new(file, offset, len)))
    }

    /// The file of a read() or write(), and how far in it the call has come: the next effect for bytes
    /// ([`Effect::ReadOut`](crate::effect::Effect::ReadOut), `WriteIn`) begins there.
    pub fn position(&self) -> Option<(FileId, u64)> {
        match self.owners_request() {
            Some(Request::Read(read)) => Some((read.file, read.pos)),
            Some(Request::Write(write)) => Some((write.file, write.pos)),
            _ => None,
        }
    }

    /// A request for 2^`order` contiguous frames of kernel memory, which `mm` holds until it frees them
    /// ([`Machine::free_kernel_block`]) or ends. Ends as [`Outcome::Block`] or [`Outcome::NoBlock`].
    pub fn alloc_pages(mm: MmId, node: NodeId, order: Order, gfp: Gfp) -> Call {
        Call::of_owner(mm, node, Request::KernelAlloc(KernelAlloc::new(order, gfp)))
    }

    /// The open file's read-ahead state after a read.
    pub fn readahead(&self) -> Option<ReadaheadState> {
        match self.owners_request() {
            Some(Request::Read(read)) => Some(read.readahead),
            _ => None,
        }
    }
}
