//! A scenario after checking: plain types in which every name is resolved and every size is real.
//!
//! The text form is TOML (see docs/scenario.md); [`crate::load`] turns it into these types or
//! into a list of diagnostics. A [`Scenario`] is one machine with its variants already applied:
//! each [`Variant`] carries a complete [`Setup`], so a world never merges anything.
//!
//! Units: sizes in bytes unless the name says pages; times in integer nanoseconds.

use crate::kernel_objects::{BootObjects, CallTimes};
use crate::object_mix::ObjectMix;
pub use crate::page_size::PageSize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A checked scenario file.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Short name, the file's stem by default.
    pub name: String,
    /// One line for `pagetide list`.
    pub title: String,
    /// What the scenario is about, in a paragraph or more; may be empty.
    pub description: String,
    /// Default number of repeats (seeds `seed`, `seed + 1`, ...).
    pub repeats: u32,
    /// First seed.
    pub seed: u64,
    /// What to compare, in the order of the columns; never empty.
    pub variants: Vec<Variant>,
    /// Metric keys of the table's rows, in order; empty means the default rows.
    pub rows: Vec<String>,
    /// Published figures, if any.
    pub reference: Option<Reference>,
}

/// Published figures to print beside ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Where the figures come from.
    pub source: String,
    /// Variant name -> metric key -> value, in the metric's unit.
    pub values: BTreeMap<String, BTreeMap<String, f64>>,
}

/// One column of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// The whole machine and what runs on it.
    pub setup: Setup,
}

/// A machine and its load.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Hardware.
    pub machine: Machine,
    /// Writes to control files before anything runs, in file order: (name, text), for example
    /// (`vm.swappiness`, `60`). The text is what a user would echo into the file.
    pub sysctls: Vec<(String, String)>,
    /// Named policies, for example (`kswapd`, `linux-6.1`); checked by name only.
    pub policies: BTreeMap<String, String>,
    /// Policies that are not built in, by the names they are registered under.
    pub plugins: ChosenPlugins,
    /// Memory groups besides the root, parents before children.
    pub groups: Vec<Group>,
    /// Files on the machine's disks.
    pub files: Vec<File>,
    /// Caches of kernel objects that the tasks use: those of all their mixes, by name each once.
    pub caches: Vec<KernelCache>,
    /// Programs.
    pub tasks: Vec<Task>,
    /// The machine's counters are reported over the life of this task (index into `tasks`), as
    /// somebody does who reads /proc/vmstat before and after a command; `None`: over the run.
    pub measure: Option<usize>,
    /// Virtual time after which the run is cut, with a note (default 1 hour).
    pub time_limit_ns: u64,
}

/// Policies that are not built in: those that a program registers. `None`: the built-in rules alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChosenPlugins {
    /// Who is reclaimed from.
    pub groups: Option<String>,
    /// How pages age.
    pub pages: Option<String>,
}

impl ChosenPlugins {
    /// Kind and name of each.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let kinds = [("groups", &self.groups), ("pages", &self.pages)];
        kinds.into_iter().filter_map(|(kind, name)| Some((kind, name.as_deref()?)))
    }
}

/// Hardware.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Number of CPUs.
    pub cpus: u16,
    /// How large a page is: what every count of pages in a setup counts.
    pub page_size: PageSize,
    /// NUMA nodes with their memory, at least one.
    pub nodes: Vec<Node>,
    /// Disks by name.
    pub disks: Vec<Disk>,
    /// Swap area, if any.
    pub swap: Option<Swap>,
    /// Whether kernel objects are charged to groups; `false`: the kernel is booted with
    /// `cgroup.memory=nokmem`.
    pub kmem_accounting: bool,
    /// Caches of kernel objects that are not as the kernel makes them.
    pub caches: Vec<CacheTuning>,
    /// Kernel objects that boot has left behind, if that is known.
    pub boot_objects: BootObjects,
    /// How long system calls on names and pipes take, if that is known.
    pub call_times: CallTimes,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            cpus: 1,
            page_size: PageSize::default(),
            nodes: Vec::new(),
            disks: Vec::new(),
            swap: None,
            kmem_accounting: true,
            caches: Vec::new(),
            boot_objects: BootObjects::default(),
            call_times: CallTimes::default(),
        }
    }
}

/// How a cache of kernel objects is tuned; `None` leaves it as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheTuning {
    /// Its name, unique.
    pub name: String,
    /// log2 of the pages of a slab.
    pub order: Option<u8>,
    /// Slabs that a node keeps though they are empty.
    pub min_partial: Option<u32>,
    /// Free objects that may wait on a CPU's chain of slabs.
    pub cpu_partial: Option<u32>,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Bytes present. Zones are laid out as on x86-64: DMA to 16 MiB, DMA32 to 4 GiB, then
    /// Normal, unless `zones` says otherwise.
    pub memory: u64,
    /// Bytes of it that the kernel keeps for good (image, page array, boot allocations): taken
    /// off the last zones first, not managed.
    pub reserved: u64,
    /// Bytes at the top given to zone Movable.
    pub movable: u64,
    /// Exact zones, when the machine is described to the page.
    pub zones: Vec<Zone>,
}

/// A zone described to the page.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// DMA, DMA32, Normal or Movable.
    pub name: String,
    /// Pages spanned.
    pub present: u64,
    /// Pages the allocator manages.
    pub managed: u64,
    /// Pages free when the run starts; the difference to `managed` is held by the kernel.
    pub free: u64,
    /// Pages of `managed` that boot freed after it had computed the watermarks.
    pub late: u64,
    /// What the free lists hold when the run starts, `free` pages in all, if that is known.
    pub free_lists: Option<FreeLists>,
}

/// Free blocks of a zone, as /proc/pagetypeinfo shows them: of the types Unmovable, Movable and
/// Reclaimable, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeLists {
    /// Free blocks by type and order (0 to 10).
    pub blocks: [[u32; 11]; 3],
    /// Pageblocks by type.
    pub pageblocks: [u32; 3],
}

/// A disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Disk {
    /// Its name in the scenario.
    pub name: String,
    /// `rotating`, `ssd`, `nvme` or `instant`.
    pub model: String,
    /// Overrides of the preset; `None` keeps it.
    pub read_latency_ns: Option<u64>,
    /// As above, for writes.
    pub write_latency_ns: Option<u64>,
    /// Bytes a second, reading.
    pub read_bandwidth: Option<u64>,
    /// Bytes a second, writing.
    pub write_bandwidth: Option<u64>,
    /// Requests served at a time.
    pub queue_depth: Option<u32>,
    /// Whether the kernel takes it for a rotating disk (/sys/block/DISK/queue/rotational), by which
    /// it places pages in swap. The model's, unless the scenario says otherwise.
    pub rotational: bool,
    /// Faults to inject.
    pub faults: DiskFaults,
}

/// Faults that a disk injects, decided by the run's seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskFaults {
    /// Failed reads in a million.
    pub read_error_ppm: u32,
    /// Failed writes in a million.
    pub write_error_ppm: u32,
    /// Slow requests in a million.
    pub slow_ppm: u32,
    /// How many times slower a slow request is.
    pub slow_factor: u32,
}

/// The swap area.
#[derive(Clone, Debug, PartialEq)]
pub struct Swap {
    /// Index into [`Machine::disks`].
    pub disk: usize,
    /// Size in bytes.
    pub size: u64,
    /// Pretend the area is full once this many slots are used (fault injection).
    pub full_after_pages: Option<u64>,
}

/// A memory group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name, unique.
    pub name: String,
    /// Index of the parent in [`Setup::groups`]; `None` is the root.
    pub parent: Option<usize>,
    /// Control-file writes when it is made: (`memory.max`, `300M`).
    pub controls: Vec<(String, String)>,
    /// It is there when the run begins; otherwise a task makes it ([`Workload::CreateGroup`]).
    pub at_start: bool,
}

/// A file.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Its name, unique.
    pub name: String,
    /// Size in bytes at the start.
    pub size: u64,
    /// Holes only: reads need no I/O.
    pub sparse: bool,
    /// Index into [`Machine::disks`].
    pub disk: usize,
}

/// A program.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name, unique; copies are `name.0`, `name.1`, ... already expanded.
    pub name: String,
    /// Index into [`Setup::groups`]; `None` is the root.
    pub group: Option<usize>,
    /// When it starts.
    pub start: Start,
    /// A background task does not keep the run alive: it is stopped when all others ended.
    pub background: bool,
    /// It is stopped when this task (index into [`Setup::tasks`]) has ended; then it is in the
    /// background, too.
    pub until: Option<usize>,
    /// Scheduling weight by nice value, -20..=19.
    pub nice: i8,
    /// Cycles through the phases this many times.
    pub loops: u32,
    /// What it does, in order.
    pub phases: Vec<Phase>,
}

/// When a task starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// Start this long after ...
    pub delay_ns: u64,
    /// ... the end of this task (index into [`Setup::tasks`]), or the start of the run.
    pub after: Option<usize>,
}

/// A named part of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its name, unique within the task; metrics are `TASK.PHASE.NAME`.
    pub name: String,
    /// What is done.
    pub workload: Workload,
}

/// Order in which pages are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// 0, 1, 2, ...
    Sequential,
    /// Each page once, page = i * 7368787 mod pages.
    Scattered,
    /// Uniform draws with the documented generator.
    Random,
    /// Zipf-distributed draws with the documented generator: the rank is drawn, and rank r (from
    /// 0) is page r * 7368787 mod pages.
    Zipf {
        /// The exponent in hundredths: 100 is Zipf(1.0).
        exponent_hundredths: u32,
    },
}

/// Advice on a mapping (madvise).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Read-ahead and fault-around as configured.
    Normal,
    /// MADV_RANDOM: one page a fault read.
    Random,
    /// MADV_SEQUENTIAL.
    Sequential,
    /// MADV_HUGEPAGE: huge pages, if there are any.
    Huge,
    /// MADV_NOHUGEPAGE: none.
    NoHuge,
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

/// What a phase does. Each is defined to the page in docs/scenario.md, so that another program
/// can repeat it.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// Appends to a file with write() calls (dd). `bytes` `None`: until stopped.
    FileWrite {
        /// Index into [`Setup::files`].
        file: usize,
        /// Total, or until stopped.
        bytes: Option<u64>,
        /// Bytes a call.
        block: u64,
    },
    /// Reads a file with read() calls from its start.
    FileRead {
        /// Index into [`Setup::files`].
        file: usize,
        /// Total bytes; wraps round the file's end.
        bytes: u64,
        /// Bytes a call.
        block: u64,
    },
    /// Maps a file shared and reads one byte of each page (mapped-file-stream).
    MappedRead {
        /// Index into [`Setup::files`].
        file: usize,
        /// Pages of the mapping, from page 0.
        pages: u64,
        /// Which page comes next.
        order: Order,
        /// Advice given after mapping.
        advice: Advice,
        /// Whole passes over the mapping (for `Random` and `Zipf`: `pages` draws a pass).
        passes: u32,
        /// Region name: phases of one task with the same name share one mapping.
        region: String,
    },
    /// Writes (or reads) each page of an anonymous region (usemem).
    Touch {
        /// Region name, shared between phases.
        region: String,
        /// Pages of the region.
        pages: u64,
        /// Whole passes (for `Random` and `Zipf`: `pages` draws a pass).
        passes: u32,
        /// Write or read.
        write: bool,
        /// Which page comes next.
        order: Order,
        /// Advice given after mapping: about huge pages.
        advice: Advice,
    },
    /// Anonymous pages and pages of a mapped file by turns, so that they alternate in memory.
    Interleave {
        /// Name of the anonymous region, shared between phases.
        region: String,
        /// Pages of each kind.
        pages: u64,
        /// Index into [`Setup::files`]; its mapping goes when the phase ends.
        file: usize,
    },
    /// Gives back pages of an anonymous region that an earlier phase has mapped (MADV_DONTNEED).
    Discard {
        /// Name of the region.
        region: String,
        /// The first page.
        first: u64,
        /// Distance from one page to the next.
        every: u64,
    },
    /// Tries to allocate blocks of kernel memory, as the stress-highalloc module of mmtests.
    HighOrder(HighOrder),
    /// Allocates and frees kernel memory, as network buffers, stacks and drivers do.
    KernelMemory(KernelMemory),
    /// Allocates and frees kernel objects as recorded work did.
    KernelObjects(KernelObjects),
    /// Makes files and removes most of them again, or looks for names that do not exist.
    Names(Names),
    /// Opens pipes and closes most of them again.
    Pipes(Pipes),
    /// Hot/cold accesses over an anonymous and/or a file region: the generator of
    /// docs/scenario.md, "working-set".
    WorkingSet(WorkingSet),
    /// Replays a page trace.
    Trace {
        /// The trace file.
        path: PathBuf,
        /// Times through the trace.
        passes: u32,
    },
    /// Compiles files, one after another, as `make` does.
    Build(Build),
    /// Writes a text to a control file, as `echo TEXT > FILE` does.
    WriteControl {
        /// Index into [`Setup::groups`]; `None`: the machine's (`vm.swappiness`).
        group: Option<usize>,
        /// Name of the file: `memory.reclaim`.
        control: String,
        /// What to write.
        text: String,
    },
    /// Makes a group that is not there and writes its controls (mkdir).
    CreateGroup {
        /// Index into [`Setup::groups`].
        group: usize,
    },
    /// Removes a group (rmdir).
    RemoveGroup {
        /// Index into [`Setup::groups`].
        group: usize,
    },
    /// The task moves itself into a group (`echo $$ > cgroup.procs`). What it has stays charged
    /// where it is.
    JoinGroup {
        /// Index into [`Setup::groups`]; `None` is the root.
        group: Option<usize>,
    },
    /// Uses the CPU.
    Compute {
        /// For this long.
        ns: u64,
    },
    /// Sleeps.
    Sleep {
        /// For this long.
        ns: u64,
    },
}

/// A build: compilers that come and go. Each unit reads its source and its headers with read(),
/// does what the recorded compiler did (heap of its own; code and libraries shared with every
/// other compiler), writes its object and exits.
#[derive(Clone, Debug, PartialEq)]
pub struct Build {
    /// Page trace of one compiler.
    pub trace: PathBuf,
    /// Files to compile.
    pub units: u32,
    /// (index into [`Setup::files`], bytes a unit): the source tree, read from front to back, each
    /// unit its own part.
    pub sources: Option<(usize, u64)>,
    /// (index into [`Setup::files`], bytes a unit): headers, read in pieces of 16 KiB whose ranks
    /// are Zipf(1.0) distributed: some are included by everybody.
    pub headers: Option<(usize, u64)>,
    /// (index into [`Setup::files`], bytes a unit): objects, appended.
    pub objects: Option<(usize, u64)>,
    /// log2 of the pages of a unit's kernel stack, a block for its life; 0: none.
    pub stack_order: u8,
    /// Other unmovable pages for a unit's life: page tables, descriptors; 0: none.
    pub kernel_pages: u32,
    /// Kernel objects of a unit, allocated one with each of its first operations.
    pub mix: Option<Arc<ObjectMix>>,
}

/// Attempts to allocate blocks of one order, one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HighOrder {
    /// log2 of a block's pages.
    pub order: u8,
    /// How many.
    pub attempts: u32,
    /// From the start of one attempt to that of the next, unless it took longer.
    pub interval_ns: u64,
    /// What an attempt may do.
    pub request: BlockRequest,
    /// Blocks are held until all attempts are made; otherwise each is freed at once.
    pub hold: bool,
}

/// Kernel memory that comes and goes: beyond `blocks`, each new block takes the place of a random one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelMemory {
    /// log2 of a block's pages.
    pub order: u8,
    /// Blocks held at most.
    pub blocks: u32,
    /// Allocations; `None`: until stopped.
    pub count: Option<u64>,
    /// From the start of one allocation to that of the next, unless it took longer.
    pub interval_ns: u64,
    /// What an allocation may do.
    pub request: BlockRequest,
}

/// A cache of kernel objects, a kmem_cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelCache {
    /// Its name, as /proc/slabinfo spells it.
    pub name: String,
    /// Bytes of an object, padding included.
    pub object_size: u32,
    /// Its memory counts as reclaimable (SLAB_RECLAIM_ACCOUNT).
    pub reclaimable: bool,
}

/// Units of an object mix, one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelObjects {
    /// The mix; all its caches are among [`Setup::caches`].
    pub mix: Arc<ObjectMix>,
    /// How many units.
    pub units: u32,
    /// From the start of one unit to that of the next, unless it took longer.
    pub interval_ns: u64,
    /// CPU time of a unit, spread evenly over its allocations.
    pub compute_ns: u64,
    /// The mix's beginning comes first.
    pub start: bool,
}

/// Names in directories: each costs the kernel a dentry, and a file an inode besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Names {
    /// How many.
    pub make: u32,
    /// Per cent of the files that stay, beyond the end of the task ([`is_kept`]). Of missing names
    /// nothing is there to be removed.
    pub keep_percent: u32,
    /// Names that the first disk does not have, instead of files on the memory file system.
    pub missing: bool,
}

/// Pipes: each costs the kernel two open files, an inode, a dentry and a ring of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipes {
    /// How many.
    pub make: u32,
    /// Per cent of them that stay open until the task ends ([`is_kept`]).
    pub keep_percent: u32,
}

/// Whether thing number `index` is among the `percent` per cent that are kept: those at which the
/// share, rounded up, grows. They lie evenly, and number 0 is the first.
///
/// ```
/// use pagetide_scenario::model::is_kept;
/// let kept: Vec<u32> = (0..25).filter(|&index| is_kept(index, 10)).collect();
/// assert_eq!(kept, [0, 10, 20]);
/// ```
pub fn is_kept(index: u32, percent: u32) -> bool {
    let share = |count: u64| (count * u64::from(percent)).div_ceil(100);
    share(u64::from(index) + 1) > share(u64::from(index))
}

/// Parameters of the hot/cold generator.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkingSet {
    /// Anonymous region: (region name, pages); `None` for no such region.
    pub anon: Option<(String, u64)>,
    /// File region: (file index, region name, pages, advice).
    pub file: Option<(usize, String, u64, Advice)>,
    /// First touch every page in order, anonymous before file, before the accesses.
    pub populate: bool,
    /// Number of accesses.
    pub accesses: u64,
    /// Per cent of accesses that go to the anonymous region when both exist.
    pub anon_percent: u32,
    /// Per cent of accesses that are hot.
    pub hot_access_percent: u32,
    /// Per cent of pages that are hot.
    pub hot_page_percent: u32,
    /// Per cent of anonymous accesses that write (100 in the truth cases: no draw is made).
    pub write_percent: u32,
    /// Start value of the generator; `None`: derived from the run's seed. Phases of one task
    /// with the same region continue the same generator.
    pub generator_seed: Option<u64>,
}

/// Control files that only cgroup version 1 has, and the two patches made for it.
const VERSION_1: [&str; 5] = [
    "memory.limit_in_bytes",
    "memory.kmem.limit_in_bytes",
    "memory.soft_limit_in_bytes",
    "memory.swappiness",
    "memory.global_shrink_priority",
];

impl Setup {
    /// Whether some task makes kernel objects one by one, so that caches of them must be told apart.
    pub fn has_objects(&self) -> bool {
        let phases = self.tasks.iter().flat_map(|task| &task.phases);
        phases
            .into_iter()
            .any(|phase| matches!(phase.workload, Workload::Names(_) | Workload::Pipes(_)))
    }

    /// Version of the cgroup interface that the setup's groups need: 1 as soon as one of the
    /// controls is written that only version 1 has, else 2.
    pub fn cgroup_version(&self) -> u8 {
        let at_start = self.groups.iter().flat_map(|group| &group.controls).map(|(name, _)| name);
        let phases = self.tasks.iter().flat_map(|task| &task.phases);
        let written = phases.filter_map(|phase| match &phase.workload {
            Workload::WriteControl { control, .. } => Some(control),
            _ => None,
        });
        let first = at_start.chain(written).any(|name| VERSION_1.contains(&name.as_str()));
        if first {
            1
        } else {
            2
        }
    }
}
