//! Calls of a process: page fault, read(), write(), kernel memory, madvise.

use super::collapse::{Collapse, CollapseError};
use super::fault::Fault;
use super::filemap::{ReadCall, WriteCall};
use super::id_pool::NOT_BEGUN;
use super::kernel_block::KernelAlloc;
use super::page_table::VmaId;
use super::readahead::{ReadaheadState, ReadaheadWindow};
#[cfg(doc)]
use super::Machine;
use super::MmId;
use crate::frames::gfp::Gfp;
#[cfg(doc)]
use crate::interface::outcome::Outcome;
use crate::units::{FileId, NodeId, Order};
use alloc::boxed::Box;
use core::ops::Range;

/// A call of a process in progress.
pub type ProcessCall = crate::interface::call::Call<ProcessRequest>;

/// Kinds of calls that only processes make.
#[derive(Clone, Debug)]
pub enum ProcessRequest {
    /// A page fault.
    Fault(Fault),
    /// A read().
    Read(ReadCall),
    /// A write().
    Write(WriteCall),
    /// An allocation of a kernel block.
    KernelAlloc(KernelAlloc),
    /// Populate a range of a mapping, or read it ahead.
    Populate(Box<Populate>),
    /// MADV_COLD or MADV_PAGEOUT.
    MadviseLru(MadviseLru),
    /// MADV_COLLAPSE.
    Collapse(Box<MadviseCollapse>),
}

/// A call that populates a range of a mapping.
#[derive(Clone, Debug)]
pub struct Populate {
    pub(super) vma: VmaId,
    /// Generation of the mapping, known once the call has begun. Another mapping may get its id.
    pub(super) born: u64,
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) how: PopulateMode,
    pub(super) major: bool,
}
#[derive(Clone, Debug)]
pub(super) enum PopulateMode {
    /// By page faults: the fault in progress, and whether the faults write.
    Faults(Option<Fault>, bool),
    /// By reading into the page cache: the window in progress.
    Read(Option<ReadaheadWindow>),
}

/// A call of MADV_COLD or MADV_PAGEOUT on a range.
#[derive(Clone, Debug)]
pub struct MadviseLru {
    pub(super) vma: VmaId,
    /// Generation of the mapping once the call has begun.
    pub(super) born: u64,
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) how: MadviseLruMode,
    /// Pages of the present page table were unmapped, and the TLBs are not flushed yet.
    pub(super) is_unmapped: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MadviseLruMode {
    /// Deactivate (MADV_COLD).
    Cold,
    /// Reclaim (MADV_PAGEOUT).
    PageOut,
}

/// A call of MADV_COLLAPSE on a range.
#[derive(Clone, Debug)]
pub struct MadviseCollapse {
    pub(super) vma: VmaId,
    /// Generation of the mapping once the call has begun.
    pub(super) born: u64,
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) collapse: Option<Collapse>,
    /// Error of the last region that failed.
    pub(super) failed: Option<CollapseError>,
}

impl ProcessCall {
    /// A page fault of `mm`, for a task that runs on `node`.
    pub fn fault(mm: MmId, node: NodeId, vma: VmaId, page: u64, write: bool) -> ProcessCall {
        ProcessCall::for_owner(mm, node, ProcessRequest::Fault(Fault::new(vma, page, write)))
    }

    /// A read() of `len` bytes at `offset`. `readahead` is the open file's state; get it back with
    /// [`ProcessCall::readahead`] when the call is done.
    pub fn read(
        mm: MmId,
        node: NodeId,
        file: FileId,
        offset: u64,
        len: u64,
        readahead: ReadaheadState,
    ) -> ProcessCall {
        ProcessCall::for_owner(
            mm,
            node,
            ProcessRequest::Read(ReadCall::new(file, offset, len, readahead)),
        )
    }

    /// A write() of `len` bytes at `offset`. A file has one at a time (Linux: the inode's lock).
    pub fn write(mm: MmId, node: NodeId, file: FileId, offset: u64, len: u64) -> ProcessCall {
        ProcessCall::for_owner(mm, node, ProcessRequest::Write(WriteCall::new(file, offset, len)))
    }

    /// The file of a read() or write() and the current offset, where the next effect on contents
    /// ([`Effect::ReadOut`](crate::interface::effect::Effect::ReadOut), `WriteIn`) begins.
    pub fn position(&self) -> Option<(FileId, u64)> {
        match self.owner_request() {
            Some(ProcessRequest::Read(read)) => Some((read.file, read.pos)),
            Some(ProcessRequest::Write(write)) => Some((write.file, write.pos)),
            _ => None,
        }
    }

    /// Allocates 2^`order` contiguous frames of kernel memory. `mm` holds them until it frees them
    /// ([`Machine::free_kernel_block`]) or ends. Ends as [`Outcome::Block`] or
    /// [`Outcome::NoBlock`].
    pub fn alloc_pages(mm: MmId, node: NodeId, order: Order, gfp: Gfp) -> ProcessCall {
        ProcessCall::for_owner(mm, node, ProcessRequest::KernelAlloc(KernelAlloc::new(order, gfp)))
    }

    /// The open file's read-ahead state after a read.
    pub fn readahead(&self) -> Option<ReadaheadState> {
        match self.owner_request() {
            Some(ProcessRequest::Read(read)) => Some(read.readahead),
            _ => None,
        }
    }

    /// Populates a range by faults that write (MADV_POPULATE_WRITE) or read (MADV_POPULATE_READ).
    /// For MAP_POPULATE and mlock() the faults write if the mapping is private and writable. Ends
    /// as [`Outcome::Minor`], [`Outcome::Major`], or the outcome of the first fault that fails.
    pub fn populate(
        mm: MmId,
        node: NodeId,
        vma: VmaId,
        pages: Range<u64>,
        write: bool,
    ) -> ProcessCall {
        ProcessCall::of_part(mm, node, vma, pages, PopulateMode::Faults(None, write))
    }

    /// Starts reading pages of a mapped file that are not in memory (MADV_WILLNEED). Ends as
    /// [`Outcome::Minor`] without waiting for the reads.
    pub fn will_need(mm: MmId, node: NodeId, vma: VmaId, pages: Range<u64>) -> ProcessCall {
        ProcessCall::of_part(mm, node, vma, pages, PopulateMode::Read(None))
    }

    fn of_part(
        mm: MmId,
        node: NodeId,
        vma: VmaId,
        pages: Range<u64>,
        how: PopulateMode,
    ) -> ProcessCall {
        let (next, end) = (pages.start, pages.end);
        let populate = Populate { vma, born: NOT_BEGUN, next, end, how, major: false };
        ProcessCall::for_owner(mm, node, ProcessRequest::Populate(Box::new(populate)))
    }

    /// Treats pages of a range as not in use (MADV_COLD). Ends as [`Outcome::Minor`], or as
    /// [`Outcome::Refused`] with EINVAL at the first locked page.
    pub fn cold(mm: MmId, node: NodeId, vma: VmaId, pages: Range<u64>) -> ProcessCall {
        ProcessCall::leave(mm, node, vma, pages, MadviseLruMode::Cold)
    }

    /// Reclaims pages of a range (MADV_PAGEOUT). Clean pages are freed. Anonymous pages are written
    /// to swap, and a later reclaim frees them. Ends like [`ProcessCall::cold`].
    pub fn page_out(mm: MmId, node: NodeId, vma: VmaId, pages: Range<u64>) -> ProcessCall {
        ProcessCall::leave(mm, node, vma, pages, MadviseLruMode::PageOut)
    }

    fn leave(
        mm: MmId,
        node: NodeId,
        vma: VmaId,
        pages: Range<u64>,
        how: MadviseLruMode,
    ) -> ProcessCall {
        let (next, end) = (pages.start, pages.end);
        let leave = MadviseLru { vma, born: NOT_BEGUN, next, end, how, is_unmapped: false };
        ProcessCall::for_owner(mm, node, ProcessRequest::MadviseLru(leave))
    }

    /// Collapses the regions that lie entirely in a range into huge pages (MADV_COLLAPSE). Ends as
    /// [`Outcome::Minor`] if all of them are huge pages, otherwise as [`Outcome::Refused`] with the
    /// error of the last region that failed: EAGAIN if a page was pinned, locked or busy, ENOMEM if
    /// no huge page could be allocated, EBUSY if the group's limit did not allow one, else EINVAL.
    pub fn collapse(mm: MmId, node: NodeId, vma: VmaId, pages: Range<u64>) -> ProcessCall {
        let (next, end) = (pages.start, pages.end);
        let collapse =
            MadviseCollapse { vma, born: NOT_BEGUN, next, end, collapse: None, failed: None };
        ProcessCall::for_owner(mm, node, ProcessRequest::Collapse(Box::new(collapse)))
    }
}

impl Populate {
    pub(super) fn fault(&self) -> Option<&Fault> {
        match &self.how {
            PopulateMode::Faults(fault, _) => fault.as_ref(),
            PopulateMode::Read(_) => None,
        }
    }
}
