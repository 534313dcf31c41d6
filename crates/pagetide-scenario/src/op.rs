//! The operations of a task, which a world executes one at a time.
//!
//! Every workload is a stream of operations. Regions are numbered per task in the order in which
//! [`Op::Map`] introduces them.

use crate::names::{LockKind, MadviseKind};
pub use pagetide_core::process::page_table::Advice;
use pagetide_core::units::page_size::PageSize;

/// Largest region, in pages.
pub const REGION_PAGES_MAX: u64 = 1 << 31;
/// Largest file, in bytes: as many of the smallest pages.
pub const FILE_SIZE_MAX: u64 = REGION_PAGES_MAX * PageSize::Kib4.bytes();

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionBacking {
    Anon,
    /// Anonymous memory that grows when it is touched: the heap of a recorded program.
    Heap,
    /// A shared mapping of a file; index into the setup's files.
    File(usize),
    /// A file that exists only in the task's trace, with this many pages. The world makes it,
    /// sparse or read from the first disk. Tasks with the same `key` share it.
    TraceFile {
        /// Equal keys are the same file.
        key: u64,
    },
}

/// Rights of a request for a block of kernel memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockRequest {
    /// GFP_KERNEL: sleep, reclaim, compact.
    Kernel,
    /// GFP_KERNEL | __GFP_HIGH: the same, and use half of the reserve.
    KernelHigh,
    /// GFP_KERNEL | __GFP_RECLAIMABLE: like `Kernel`, but in memory that a shrinker frees.
    Reclaimable,
    /// GFP_NOWAIT: wake kswapd.
    Nowait,
    /// GFP_NOWAIT | __GFP_HIGH, which is GFP_ATOMIC: wake kswapd, and use half of the reserve.
    Atomic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Creates a region.
    Map {
        /// Number of the region in the task, counting up from 0.
        region: u32,
        backing: RegionBacking,
        pages: u64,
        advice: Advice,
        /// Executable mapping: its referenced pages stay active.
        executable: bool,
    },
    /// Removes a region.
    Unmap {
        region: u32,
    },
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
        offset: u64,
        len: u64,
    },
    /// write() of `len` bytes at `offset`; extends the file if needed.
    Write {
        /// Index into the setup's files.
        file: usize,
        offset: u64,
        len: u64,
    },
    /// Uses the CPU for `ns` nanoseconds.
    Compute {
        ns: u64,
    },
    Sleep {
        ns: u64,
    },
    /// A look of a watcher: reads, decides and acts.
    Watch {
        /// Index of the phase with the watcher.
        phase: u32,
    },
    /// Sleeps until the next look of the watcher.
    WatchRest,
    /// Frees pages of an anonymous region (MADV_DONTNEED).
    Discard {
        region: u32,
        /// First page.
        page: u64,
        /// Number of pages.
        pages: u64,
    },
    /// Locks or unlocks pages of a region.
    Lock {
        region: u32,
        /// First page.
        page: u64,
        /// Number of pages.
        pages: u64,
        how: LockKind,
    },
    /// Gives advice on pages of a region, or on all of it.
    Advise {
        region: u32,
        /// First page.
        page: u64,
        /// Number of pages.
        pages: u64,
        advice: MadviseKind,
    },
    /// Allocates a block of kernel memory and stores it, if it succeeds, in an empty slot.
    AllocBlock {
        /// Slots of blocks belong to the task and count from 0.
        slot: u32,
        /// log2 of the block's pages.
        order: u8,
        request: BlockRequest,
    },
    /// Frees the block in a slot, if there is one.
    FreeBlock {
        slot: u32,
    },
    /// Allocates an object of a kernel cache and stores it, if there was memory, in an empty slot.
    /// Slots of objects belong to the task, count from 0, and are separate from those of blocks.
    AllocObject {
        slot: u32,
        /// Index into [`Setup::caches`](crate::model::Setup::caches).
        cache: u32,
        /// Charge it to the task's group.
        account: bool,
    },
    /// Frees the object in a slot, if there is one.
    FreeObject {
        slot: u32,
    },
    /// Leaves the object in a slot to the kernel, which may free it under pressure (dentries,
    /// inodes), and empties the slot.
    CacheObject {
        slot: u32,
    },
    /// Makes an empty file on the memory file system (open, close), or looks up a name that the
    /// first disk does not have (stat).
    MakeName {
        /// Names belong to the task and count from 0.
        name: u32,
        /// Look up a missing name instead of making a file.
        missing: bool,
    },
    /// Removes a file that [`Op::MakeName`] made (unlink).
    RemoveName {
        name: u32,
    },
    /// Opens a pipe and stores it in an empty slot.
    OpenPipe {
        /// Slots of pipes belong to the task and count from 0.
        slot: u32,
    },
    /// Closes both ends of the pipe in a slot.
    ClosePipe {
        slot: u32,
    },
    /// Sleeps until `ns` after the end of the phase's last operation of this kind. Does nothing if
    /// that time has passed, or if this is the first such operation of the phase.
    Pace {
        ns: u64,
    },
    /// Sleeps until `ns` after the phase's first operation of this kind, unless that has passed.
    Until {
        ns: u64,
    },
    /// Ends the current request of a service and takes the next one when there is one. The world
    /// produces the requests ([`Program::arrivals`](crate::workload::Program::arrivals)).
    Serve {
        /// Index of the phase.
        phase: u32,
    },
    /// Performs the operation of a phase that has only one: a
    /// [`WriteControl`](crate::workload::WriteControl), or another operation on groups.
    Group {
        /// Index of the phase.
        phase: u32,
    },
    /// The phase with this index (within the task) begins.
    PhaseBegin {
        phase: u32,
    },
    /// The phase with this index ends.
    PhaseEnd {
        phase: u32,
    },
}
