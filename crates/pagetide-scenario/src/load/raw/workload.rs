//! The keys of each workload.

use super::{ControlName, ControlText};
use crate::load::decode::{table, Hundredths, Int, Keyed, Name, Percent, Size, Time};
use crate::load::span::At;
use crate::names::{AdviceKind, HighOrderRequest, HugeAdviceKind, KernelRequest};
use crate::names::{NameKind, OrderKind, WorkloadKind};
use crate::workload::REGION_PAGES_MAX;
use schemars::JsonSchema;

/// What a phase does, by the key `workload`.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(tag = "workload", rename_all = "kebab-case")]
pub(crate) enum Workload {
    /// Appends to a file with write() calls, as dd does.
    FileWrite(FileWrite),
    /// Reads a file with read() calls from its start, round its end.
    FileRead(FileRead),
    /// Maps a file and reads one byte of each page.
    MappedRead(MappedRead),
    /// Writes or reads each page of an anonymous region.
    Touch(Touch),
    /// Anonymous pages and pages of a file by turns, so that they alternate in memory.
    Interleave(Interleave),
    /// Gives back pages of an anonymous region with madvise(MADV_DONTNEED).
    Discard(Discard),
    /// Tries to allocate blocks of kernel memory of one order.
    HighOrder(HighOrder),
    /// Allocates and frees kernel memory, as network buffers, stacks and drivers do.
    KernelMemory(KernelMemory),
    /// Allocates and frees kernel objects as recorded work did.
    KernelObjects(KernelObjects),
    /// Makes files and removes most of them again, or looks for names that do not exist.
    Names(Names),
    /// Opens pipes and closes most of them again.
    Pipes(Pipes),
    /// Hot and cold accesses over anonymous and/or file memory.
    WorkingSet(Box<WorkingSet>),
    /// Replays a page trace.
    Trace(Trace),
    /// Compiles files, one after another, as make does.
    Build(Box<Build>),
    /// Writes a text to a control file, as echo does.
    WriteControl(WriteControl),
    /// Makes a group that is not there, as mkdir does.
    CreateGroup(CreateGroup),
    /// Removes a group, as rmdir does.
    RemoveGroup(RemoveGroup),
    /// Moves the task into a group.
    JoinGroup(JoinGroup),
    /// Uses the CPU.
    Compute(Compute),
    /// Sleeps.
    Sleep(Sleep),
}

table! {
    /// Appends to a file.
    FileWrite {
        /// The file.
        #[schemars(required)]
        file: At<Name>,
        /// How much (default: until it is stopped).
        total: At<Size>,
        /// Bytes a call (default 64KiB).
        block: At<Size>,
    }
}

table! {
    /// Reads a file.
    FileRead {
        /// The file.
        #[schemars(required)]
        file: At<Name>,
        /// How much (default: the file once).
        total: At<Size>,
        /// Bytes a call (default 64KiB).
        block: At<Size>,
    }
}

table! {
    /// Reads a mapped file.
    MappedRead {
        /// The file.
        #[schemars(required)]
        file: At<Name>,
        /// How much of it, from its start (default: all).
        size: At<Size>,
        /// Which page comes next (default sequential).
        order: At<OrderKind>,
        /// Exponent of order zipf (default 1.0).
        exponent: At<Hundredths>,
        /// Advice on the mapping (default normal).
        advice: At<AdviceKind>,
        /// Passes over it (default 1).
        passes: At<Int<0, { u32::MAX as i64 }>>,
        /// Phases of a task that name the same region share one mapping (default: the file).
        region: At<Name>,
    }
}

table! {
    /// Touches anonymous memory.
    Touch {
        /// How much.
        #[schemars(required)]
        size: At<Size>,
        /// Write, not read (default true).
        write: At<bool>,
        /// Which page comes next (default sequential).
        order: At<OrderKind>,
        /// Exponent of order zipf (default 1.0).
        exponent: At<Hundredths>,
        /// Passes over it (default 1).
        passes: At<Int<0, { u32::MAX as i64 }>>,
        /// Phases of a task that name the same region share it (default anon).
        region: At<Name>,
        /// Advice on the region: about huge pages (default normal).
        advice: At<HugeAdviceKind>,
    }
}

table! {
    /// Writes an anonymous page and reads one of a mapped file, by turns.
    Interleave {
        /// Pages of each kind.
        #[schemars(required)]
        pages: At<Int<1, { REGION_PAGES_MAX as i64 }>>,
        /// The file, at least as long; its mapping goes when the phase ends.
        #[schemars(required)]
        file: At<Name>,
        /// The anonymous region: phases of a task that name the same share it (default anon).
        region: At<Name>,
    }
}

table! {
    /// Gives back pages.
    Discard {
        /// The region, one that an earlier phase of the task has mapped (default anon).
        region: At<Name>,
        /// The first page (default 0).
        first: At<Int<0, { REGION_PAGES_MAX as i64 }>>,
        /// Distance from one page to the next (default 1).
        every: At<Int<1, { REGION_PAGES_MAX as i64 }>>,
    }
}

/// log2 of the pages of the largest block that the kernel has.
const ORDER_MAX: i64 = 10;
/// Blocks that a task can hold, and attempts in a phase.
pub(crate) const BLOCKS_MAX: i64 = 1 << 24;

table! {
    /// Attempts at blocks of high order. Either `attempts` or `percent` must be there.
    HighOrder {
        /// log2 of a block's pages (default 9: 2 MiB).
        order: At<Int<0, ORDER_MAX>>,
        /// How many attempts.
        attempts: At<Int<1, BLOCKS_MAX>>,
        /// As many as have so much of the machine's memory, in per cent.
        percent: At<Int<1, 100>>,
        /// From the start of one attempt to that of the next (default 0: at once).
        interval: At<Time>,
        /// What an attempt may do (default direct).
        request: At<HighOrderRequest>,
        /// Keep the blocks until all attempts are made (default true).
        hold: At<bool>,
    }
}

table! {
    /// Kernel memory that comes and goes.
    KernelMemory {
        /// log2 of a block's pages (default 0: a page).
        order: At<Int<0, ORDER_MAX>>,
        /// Blocks that are held at most.
        #[schemars(required)]
        blocks: At<Int<1, BLOCKS_MAX>>,
        /// Allocations in all (default: until it is stopped).
        count: At<Int<1, { i64::MAX }>>,
        /// From the start of one allocation to that of the next (default 0: at once).
        interval: At<Time>,
        /// What an allocation may do (default kernel).
        request: At<KernelRequest>,
    }
}

/// Names that a phase makes.
const NAMES_MAX: i64 = 1_000_000;
/// Pipes that a phase opens.
const PIPES_MAX: i64 = 100_000;

table! {
    /// Names in directories.
    Names {
        /// How many.
        #[schemars(required)]
        make: At<Int<1, NAMES_MAX>>,
        /// The share of files that stays, beyond the end of the task (default "0 %").
        keep: At<Percent>,
        /// Files, or names that do not exist (default file).
        kind: At<NameKind>,
    }
}

table! {
    /// Pipes.
    Pipes {
        /// How many.
        #[schemars(required)]
        make: At<Int<1, PIPES_MAX>>,
        /// The share that stays open until the task ends (default "0 %").
        keep: At<Percent>,
    }
}

table! {
    /// Kernel objects as recorded work made them.
    KernelObjects {
        /// The object mix, relative to the scenario file.
        #[schemars(required)]
        mix: At<String>,
        /// How many units of it.
        #[schemars(required)]
        units: At<Int<1, { u32::MAX as i64 }>>,
        /// From the start of one unit to that of the next (default 0: at once).
        interval: At<Time>,
        /// CPU time of a unit, between its allocations (default 0).
        compute: At<Time>,
        /// First the mix's beginning, which stays until the task ends (default false).
        start_unit: At<bool>,
    }
}

table! {
    /// Hot and cold accesses.
    WorkingSet {
        /// Size of the anonymous region (default: none).
        anon: At<Size>,
        /// Its name: phases of a task that name the same region share it (default anon).
        anon_region: At<Name>,
        /// The file that is mapped (default: none).
        file: At<Name>,
        /// How much of it, from its start (default: all).
        file_size: At<Size>,
        /// Name of its mapping (default: the file).
        file_region: At<Name>,
        /// Advice on the mapping (default normal).
        advice: At<AdviceKind>,
        /// First touch every page in order, anonymous before file (default false).
        populate: At<bool>,
        /// Number of accesses (default 0).
        accesses: At<Int<0, { i64::MAX }>>,
        /// Per cent of accesses that go to the anonymous region if there are both (default 50).
        anon_percent: At<Int<0, 100>>,
        /// Per cent of accesses that are hot (default 80).
        hot_access_percent: At<Int<0, 100>>,
        /// Per cent of pages that are hot (default 20).
        hot_page_percent: At<Int<0, 100>>,
        /// Per cent of anonymous accesses that write (default 100).
        write_percent: At<Int<0, 100>>,
        /// Start value of the generator (default: from the run's seed).
        generator_seed: At<Int<0, { i64::MAX }>>,
    }
}

table! {
    /// Replays a page trace.
    Trace {
        /// The trace, relative to the scenario file.
        #[schemars(required)]
        path: At<String>,
        /// Times through it (default 1).
        passes: At<Int<0, { u32::MAX as i64 }>>,
    }
}

/// Files to compile.
const UNITS_MAX: i64 = 1_000_000;
/// Kernel memory of a compiler.
const KERNEL_PAGES_MAX: i64 = 1 << 20;

table! {
    /// Compiles files.
    Build {
        /// The trace of one compiler, relative to the scenario file.
        #[schemars(required)]
        path: At<String>,
        /// Files to compile.
        #[schemars(required)]
        units: At<Int<1, UNITS_MAX>>,
        /// The file that stands for the source tree, read from front to back (default: none).
        sources: At<Name>,
        /// Bytes of it that a unit reads (default 6323, those of the recorded compile).
        source: At<Size>,
        /// The file that stands for all headers (default: none).
        headers: At<Name>,
        /// Bytes of it that a unit reads (default 442572, those of the recorded compile).
        header: At<Size>,
        /// The file that objects are appended to (default: none).
        objects: At<Name>,
        /// Bytes that a unit appends (default 6592, those of the recorded compile).
        object: At<Size>,
        /// log2 of the pages of a unit's kernel stack (default 0: no stack).
        stack_order: At<Int<0, ORDER_MAX>>,
        /// Other unmovable pages that a unit has while it lives (default 0).
        kernel_pages: At<Int<0, KERNEL_PAGES_MAX>>,
        /// The kernel objects that a unit has while it lives, an object mix (default: none).
        mix: At<String>,
    }
}

table! {
    /// Writes to a control file.
    WriteControl {
        /// Name of the file, as the kernel spells it.
        #[schemars(required)]
        control: At<ControlName>,
        /// What to write.
        #[schemars(required)]
        text: At<ControlText>,
        /// The group whose file it is (default: none, the file is the machine's).
        target: At<Name>,
    }
}

table! {
    /// Makes a group.
    CreateGroup {
        /// The group.
        #[schemars(required)]
        target: At<Name>,
    }
}

table! {
    /// Removes a group.
    RemoveGroup {
        /// The group.
        #[schemars(required)]
        target: At<Name>,
    }
}

table! {
    /// Moves the task into a group.
    JoinGroup {
        /// The group (default: the root).
        target: At<Name>,
    }
}

table! {
    /// Uses the CPU.
    Compute {
        /// For so long.
        #[schemars(required)]
        duration: At<Time>,
    }
}

table! {
    /// Sleeps.
    Sleep {
        /// For so long.
        #[schemars(required)]
        duration: At<Time>,
    }
}

/// The keys of a workload.
pub(crate) fn workload_keys(kind: WorkloadKind) -> &'static [&'static str] {
    match kind {
        WorkloadKind::FileWrite => FileWrite::KEYS,
        WorkloadKind::FileRead => FileRead::KEYS,
        WorkloadKind::MappedRead => MappedRead::KEYS,
        WorkloadKind::Touch => Touch::KEYS,
        WorkloadKind::Interleave => Interleave::KEYS,
        WorkloadKind::Discard => Discard::KEYS,
        WorkloadKind::HighOrder => HighOrder::KEYS,
        WorkloadKind::KernelMemory => KernelMemory::KEYS,
        WorkloadKind::KernelObjects => KernelObjects::KEYS,
        WorkloadKind::Names => Names::KEYS,
        WorkloadKind::Pipes => Pipes::KEYS,
        WorkloadKind::WorkingSet => WorkingSet::KEYS,
        WorkloadKind::Trace => Trace::KEYS,
        WorkloadKind::Build => Build::KEYS,
        WorkloadKind::WriteControl => WriteControl::KEYS,
        WorkloadKind::CreateGroup => CreateGroup::KEYS,
        WorkloadKind::RemoveGroup => RemoveGroup::KEYS,
        WorkloadKind::JoinGroup => JoinGroup::KEYS,
        WorkloadKind::Compute => Compute::KEYS,
        WorkloadKind::Sleep => Sleep::KEYS,
    }
}
