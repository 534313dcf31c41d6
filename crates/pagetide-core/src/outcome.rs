//! The outcomes of a call.
//!
//! Linux: `vm_fault_t`, and the return values of allocators.

use crate::bad_id::BadId;
use crate::control::Errno;
use crate::slab::Object;
use crate::units::Pfn;

/// Where the page is that a request asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame {
    /// In a frame of its own, or of its file's.
    At(Pfn),
    /// Nowhere: it is the shared page of zeroes, which may only be read and is in no frame of the machine.
    Zeroes,
}

/// What was in a frame when its page was handed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// Zeroes, by [`Effect::Zero`](crate::effect::Effect::Zero).
    Fresh,
    /// What was there: the page was in memory, or another request read it while this one waited.
    Kept,
    /// What was read from a disk for this request.
    Read,
}

/// A page that a request yields. A tenant's is pinned ([`crate::slots`]). Nothing holds a process's: the next
/// step of anybody may take it away, and if the task paid for being above `memory.high`, it may be gone by
/// the end of the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Got {
    /// Where it is.
    pub frame: Frame,
    /// What it holds.
    pub contents: Contents,
    /// Something had to be read from a disk (Linux `VM_FAULT_MAJOR`).
    pub major: bool,
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// A fault: here is the page.
    Got(Got),
    /// Done, and nothing had to be read.
    Minor,
    /// Done, and something had to be read from a disk.
    Major,
    /// A read failed, or a mapped page is beyond the end of its file; the task gets SIGBUS or EIO.
    IoError,
    /// No memory. A process has been or will be killed, unless its owner has it fail; a tenant goes on.
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
