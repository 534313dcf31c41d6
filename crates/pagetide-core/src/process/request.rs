//! The requests that only processes make: a fault, a read(), a write(), advice on pages.

use super::collapse::{Collapse, Failed};
use super::fault::Fault;
use super::filemap::{FileRead, FileWrite};
use super::ids::NOT_BEGUN;
use super::kernel_block::KernelAlloc;
use super::page_table::VmaId;
use super::readahead::{ReadaheadState, Window};
use super::MmId;
use crate::gfp::Gfp;
use crate::units::{FileId, NodeId, Order};
use alloc::boxed::Box;
use core::ops::Range;

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

/// A part of a mapping on its way into memory.
#[derive(Clone, Debug)]
pub struct Populate {
    pub(super) vma: VmaId,
    /// When the mapping was born, once it has begun: another may have its id later.
    pub(super) born: u64,
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) how: PopulateHow,
    /// Something had to be read.
    pub(super) major: bool,
}

/// How pages come.
#[derive(Clone, Debug)]
pub(super) enum PopulateHow {
    /// By faults: the one under way, and whether they write.
    Faults(Option<Fault>, bool),
    /// Into the page cache, without being mapped: the window under way.
    Read(Option<Window>),
}

/// Pages that are to leave memory, or to be the next that do.
#[derive(Clone, Debug)]
pub struct Leave {
    pub(super) vma: VmaId,
    /// When the mapping was born, once it has begun: another may have its id later.
    pub(super) born: u64,
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) how: LeaveHow,
    /// Pages of the table of entries under way were unmapped; TLBs do not know yet.
    pub(super) is_unmapped: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LeaveHow {
    /// To their inactive lists.
    Cold,
    /// Out of memory.
    PageOut,
}

/// A range whose regions become huge pages.
#[derive(Clone, Debug)]
pub struct MadviseCollapse {
    pub(super) vma: VmaId,
    /// When the mapping was born, once it has begun: another may have its id later.
    pub(super) born: u64,
    pub(super) next: u64,
    pub(super) end: u64,
    /// The region under way.
    pub(super) collapse: Option<Collapse>,
    /// Why the last one that failed did.
    pub(super) failed: Option<Failed>,
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

    /// Makes pages of a mapping of `mm` present by faults that write, or read (MADV_POPULATE_WRITE and _READ;
    /// MAP_POPULATE and mlock() write where a private mapping may be written). Ends as [`Outcome::Minor`] or
    /// [`Outcome::Major`], or as the first fault that fails.
    pub fn populate(mm: MmId, node: NodeId, vma: VmaId, pages: Range<u64>, write: bool) -> Call {
        Call::of_part(mm, node, vma, pages, PopulateHow::Faults(None, write))
    }

    /// Starts to read pages of a mapped file that are not in memory (MADV_WILLNEED). Ends as [`Outcome::Minor`],
    /// while they are being read.
    pub fn will_need(mm: MmId, node: NodeId, vma: VmaId, pages: Range<u64>) -> Call {
        Call::of_part(mm, node, vma, pages, PopulateHow::Read(None))
    }

    fn of_part(mm: MmId, node: NodeId, vma: VmaId, pages: Range<u64>, how: PopulateHow) -> Call {
        let (next, end) = (pages.start, pages.end);
        let populate = Populate { vma, born: NOT_BEGUN, next, end, how, major: false };
        Call::of_owner(mm, node, Request::Populate(Box::new(populate)))
    }

    /// Moves pages of a mapping of `mm` to their inactive lists (MADV_COLD). Ends as [`Outcome::Minor`], or as
    /// [`Outcome::Refused`] with EINVAL at the first page that is locked.
    pub fn cold(mm: MmId, node: NodeId, vma: VmaId, pages: Range<u64>) -> Call {
        Call::leave(mm, node, vma, pages, LeaveHow::Cold)
    }

    /// Reclaims pages of a mapping of `mm`: clean ones are freed, anonymous ones are written to swap and freed by
    /// whoever reclaims next (MADV_PAGEOUT). Ends as [`Call::cold`] does.
    pub fn page_out(mm: MmId, node: NodeId, vma: VmaId, pages: Range<u64>) -> Call {
        Call::leave(mm, node, vma, pages, LeaveHow::PageOut)
    }

    fn leave(mm: MmId, node: NodeId, vma: VmaId, pages: Range<u64>, how: LeaveHow) -> Call {
        let (next, end) = (pages.start, pages.end);
        let leave = Leave { vma, born: NOT_BEGUN, next, end, how, is_unmapped: false };
        Call::of_owner(mm, node, Request::Leave(leave))
    }

    /// Collapses the regions that lie whole in a range of a mapping of `mm` into huge pages (MADV_COLLAPSE). Ends as
    /// [`Outcome::Minor`] if all of them are huge pages, and as [`Outcome::Refused`] with the error of the last that
    /// is none: EAGAIN if somebody held a page of it, ENOMEM if there was no huge page, EBUSY if the group had no
    /// room for one, EINVAL otherwise.
    pub fn collapse(mm: MmId, node: NodeId, vma: VmaId, pages: Range<u64>) -> Call {
        let (next, end) = (pages.start, pages.end);
        let collapse =
            MadviseCollapse { vma, born: NOT_BEGUN, next, end, collapse: None, failed: None };
        Call::of_owner(mm, node, Request::Collapse(Box::new(collapse)))
    }
}

impl Populate {
    /// The fault under way.
    pub(super) fn fault(&self) -> Option<&Fault> {
        match &self.how {
            PopulateHow::Faults(fault, _) => fault.as_ref(),
            PopulateHow::Read(_) => None,
        }
    }
}
