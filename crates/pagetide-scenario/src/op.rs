//! What a task asks of a world, one operation at a time.
//!
//! Every workload is a stream of these; a world executes them. Regions are numbered per task in
//! the order in which [`Op::Map`] introduces them.

use crate::names::{LockKind, MadviseKind};
use pagetide_core::page_size::PageSize;
pub use pagetide_core::process::page_table::Advice;

/// Pages of the largest region.
pub const REGION_PAGES_MAX: u64 = 1 << 31;
/// Bytes of the largest file: as many pages, of the smallest.
pub const FILE_SIZE_MAX: u64 = REGION_PAGES_MAX * PageSize::Kib4.bytes();

/// What backs a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// Anonymous memory.
    Anon,
    /// Anonymous memory that grows as it is touched: the heap of a recorded program.
    Heap,
    /// A shared mapping of a file, index into the setup's files.
    File(usize),
    /// A file that only this task's trace knows, of so many pages: the world makes it, sparse or
    /// read from the first disk, and shares it between tasks that name the same `key`.
    TraceFile {
        /// Identity: equal keys are the same file.
        key: u64,
    },
}

/// What a request for a block of kernel memory may do to get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockRequest {
    /// GFP_KERNEL: sleep, reclaim, compact.
    Kernel,
    /// GFP_KERNEL | __GFP_HIGH: the same, and use half of the reserve.
    KernelHigh,
    /// GFP_KERNEL | __GFP_RECLAIMABLE: as the first, among memory that a shrinker frees.
    Reclaimable,
    /// GFP_NOWAIT: wake kswapd.
    Nowait,
    /// GFP_NOWAIT | __GFP_HIGH, which is GFP_ATOMIC: wake kswapd, and use half of the reserve.
    Atomic,
}

/// One operation of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Creates region `region` with `pages` pages.
    Map {
        /// Number of the region within the task, counting up from 0.
        region: u32,
        backing: Backing,
        /// Its size.
        pages: u64,
        /// Advice given on it.
        advice: Advice,
        /// Executable mapping: its referenced pages stay active.
        executable: bool,
    },
    /// Removes region `region`.
    Unmap { region: u32 },
    /// Touches one page.
    Access {
        region: u32,
        /// Page within the region.
        page: u64,
        /// Write, not read.
        write: bool,
    },
    /// read() of `len` bytes at `offset`.
    Read {
        /// Index into the setup's files.
        file: usize,
        /// Byte offset.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// write() of `len` bytes at `offset`, extending the file if need be.
    Write {
        /// Index into the setup's files.
        file: usize,
        /// Byte offset.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Uses the CPU for so many nanoseconds.
    Compute {
        /// Duration.
        ns: u64,
    },
    Sleep {
        /// Duration.
        ns: u64,
    },
    /// Tells the kernel that pages of an anonymous region are not needed (MADV_DONTNEED).
    Discard {
        region: u32,
        /// The first page.
        page: u64,
        /// How many.
        pages: u64,
    },
    /// Locks pages of a region, or unlocks them.
    Lock {
        region: u32,
        /// The first page.
        page: u64,
        /// How many.
        pages: u64,
        /// What is done.
        how: LockKind,
    },
    /// Gives advice on pages of a region, or on all of it.
    Advise {
        region: u32,
        /// The first page.
        page: u64,
        /// How many.
        pages: u64,
        /// What is advised.
        advice: MadviseKind,
    },
    /// Asks for a block of kernel memory and puts it, if there is one, into a slot that is empty.
    AllocBlock {
        /// The slot. Slots are the task's and count from 0.
        slot: u32,
        /// log2 of the block's pages.
        order: u8,
        /// What the request may do.
        request: BlockRequest,
    },
    /// Frees the block in a slot, if there is one.
    FreeBlock { slot: u32 },
    /// Allocates an object of a kernel cache and puts it, if there was memory, into a slot that is
    /// empty. Slots of objects are the task's, count from 0 and are not those of blocks.
    AllocObject {
        slot: u32,
        /// Index into [`Setup::caches`](crate::model::Setup::caches).
        cache: u32,
        /// Charge it to the task's group.
        account: bool,
    },
    /// Frees the object in a slot, if there is one.
    FreeObject { slot: u32 },
    /// Leaves the object in a slot to the kernel, which may free it under pressure (dentries, inodes);
    /// the slot is empty then.
    CacheObject { slot: u32 },
    /// Makes an empty file on the memory file system (open, close), or looks for a name that the
    /// first disk does not have (stat).
    MakeName {
        /// The name. Names are the task's and count from 0.
        name: u32,
        /// Looked for in vain, not made.
        missing: bool,
    },
    /// Removes a file that [`Op::MakeName`] made (unlink).
    RemoveName { name: u32 },
    /// Opens a pipe and puts it into a slot that is empty.
    OpenPipe {
        /// The slot. Slots of pipes are the task's and count from 0.
        slot: u32,
    },
    /// Closes both ends of the pipe in a slot.
    ClosePipe { slot: u32 },
    /// Sleeps until so long after the phase's last operation of this kind ended. The first of a phase
    /// does not sleep, and neither does one that comes later than that.
    Pace {
        /// Time from one to the next.
        ns: u64,
    },
    /// Sleeps until so long after the phase's first operation of this kind, unless that is past.
    Until {
        /// Time since the first.
        ns: u64,
    },
    /// Takes the next request of a service, when there is one: the world sees to it
    /// ([`Program::arrivals`](crate::workload::Program::arrivals)). What it brought before is served.
    Serve {
        /// Index of the phase.
        phase: u32,
    },
    /// Performs the only operation of the phase with this index (within the task): a
    /// [`WriteControl`](crate::workload::WriteControl) or one of its neighbours
    /// on groups. Its texts are in the setup.
    Group {
        /// Index of the phase.
        phase: u32,
    },
    /// The phase with this index (within the task) begins.
    PhaseBegin {
        /// Index of the phase.
        phase: u32,
    },
    /// The phase with this index ends.
    PhaseEnd {
        /// Index of the phase.
        phase: u32,
    },
}
