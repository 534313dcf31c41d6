//! The outcome of a call.
//!
//! Linux: `vm_fault_t`, and the return values of allocators.

use crate::interface::bad_id::BadId;
use crate::slab::object::Object;
use crate::units::errno::Errno;
use crate::units::Pfn;

/// Where the requested page is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// In this frame.
    At(Pfn),
    /// The shared zero page, which is read-only and uses no frame of the machine.
    Zeroes,
}

/// Contents of a frame when its page is returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// Zeroes, written by [`Effect::Zero`](crate::interface::effect::Effect::Zero).
    Fresh,
    /// The existing contents: the page was in memory, or another request read it while this one
    /// waited.
    Kept,
    /// Data read from a disk for this request.
    Read,
}

/// The page that a request returns. A page of a tenant is pinned ([`crate::interface::slots`]). A page of a
/// process is not pinned: any later step may take it away. It may even be gone when the call
/// returns, if the task first had to pay for `memory.high`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultedPage {
    /// Location of the page.
    pub frame: Frame,
    /// Contents of the page.
    pub contents: Contents,
    /// The request had to read from a disk (Linux `VM_FAULT_MAJOR`).
    pub major: bool,
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The page was made present (a fault).
    Got(FaultedPage),
    /// Done without reading from a disk.
    Minor,
    /// Done after reading from a disk.
    Major,
    /// A read failed, or a mapped page is beyond the end of its file: the task gets SIGBUS or EIO.
    IoError,
    /// No memory. A process is killed, unless the owners let the request fail. A tenant continues.
    NoMemory,
    /// Kernel memory: the first frame of the block.
    Block(Pfn),
    /// No block of kernel memory of that order is available.
    NoBlock,
    /// An object of a cache.
    Object(Object),
    /// No object of the cache is available.
    NoObject,
    /// The cache is unknown, or belongs to one group and the task is not in that group.
    NoCache,
    /// A write to a group's control file was refused; nothing has changed.
    Refused(Errno),
    /// The call names an unknown id: nothing has changed.
    BadId(BadId),
}
