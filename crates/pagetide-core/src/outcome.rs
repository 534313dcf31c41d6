//! The outcome of a call.
//!
//! Linux: `vm_fault_t`, and the return values of allocators.

use crate::bad_id::BadId;
use crate::control::Errno;
use crate::slab::Object;
use crate::units::Pfn;

/// Location of the requested page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// In this frame.
    At(Pfn),
    /// The shared zero page, which is read-only and uses no frame of the machine.
    Zeroes,
}

/// Contents of a frame at the moment its page was returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// Zeroes, written by [`Effect::Zero`](crate::effect::Effect::Zero).
    Fresh,
    /// Existing contents: the page was in memory, or another request read it while this one waited.
    Kept,
    /// Data read from a disk for this request.
    Read,
}

/// The page that a request returns. A tenant's page is pinned ([`crate::slots`]). A process's page
/// is not: any later step may take it away, and after paying for `memory.high` it may be gone at
/// the end of the call already.
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
    /// A fault, with its page.
    Got(FaultedPage),
    /// Done without reading from a disk.
    Minor,
    /// Done after reading from a disk.
    Major,
    /// A read failed, or a mapped page is beyond the end of its file: the task gets SIGBUS or EIO.
    IoError,
    /// No memory. A process is killed, unless its owner lets the request fail; a tenant continues.
    NoMemory,
    /// Kernel memory: the first frame of the block.
    Block(Pfn),
    /// No block of kernel memory of that order is available.
    NoBlock,
    /// An object of a cache.
    Object(Object),
    /// No object of the cache is available.
    NoObject,
    /// Unknown cache, or a cache of one group, which serves only tasks of that group.
    NoCache,
    /// A write to a group's control file was refused and has changed nothing.
    Refused(Errno),
    /// The call names an unknown id: nothing has changed.
    BadId(BadId),
}
