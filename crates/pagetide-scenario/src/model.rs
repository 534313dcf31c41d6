//! A scenario after checking: plain types in which every name is resolved and every size is real.
//!
//! The text form is TOML (see docs/scenario.md); [`crate::load`] turns it into these types or
//! into a list of diagnostics. A [`Scenario`] is one machine with its variants already applied:
//! each [`Variant`] carries a complete [`Setup`], so a world never merges anything.
//!
//! Units: sizes in bytes unless the name says pages; times in integer nanoseconds.

use crate::costs::{Costs, ProgramTimes};
use crate::criterion::Criterion;
use crate::kernel_objects::{BootObjects, CallTimes};
use crate::metric::declared::{asked_by, ON_REQUEST};
use crate::names::{DiskModel, ZoneName};
pub use crate::object_mix::KernelCache;
pub use crate::op::{Advice, BlockRequest};
use crate::policies::Policies;
pub use crate::workload::*;
pub use pagetide_core::boot::free_lists::FreeLists;
use pagetide_core::config::{CgroupVersion, Origin};
use pagetide_core::control::{ControlWrite, GroupControl, GroupControlWrite};
use pagetide_core::node::ZoneSpec;
pub use pagetide_core::page_size::PageSize;
use std::collections::BTreeMap;

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
    /// What is expected of every run.
    pub expectations: Vec<Expectation>,
}

/// Something that a scenario says of its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// In words.
    pub text: String,
    /// As a criterion that each run meets; nothing in it is relative.
    pub that: Criterion,
    /// Of which variants; empty means all.
    pub variants: Vec<String>,
}

impl Expectation {
    /// Whether it is expected of this variant.
    pub fn is_of(&self, variant: &str) -> bool {
        self.variants.is_empty() || self.variants.iter().any(|name| name == variant)
    }
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
    pub name: String,
    /// What its own `set` says, in file order: keys and values as they are written, each value one line.
    pub sets: Vec<(String, String)>,
    /// The whole machine and what runs on it.
    pub setup: Setup,
}

/// A machine and its load. Made by the loader alone, from a file or from a [`crate::build::Builder`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Setup {
    /// Hardware.
    pub machine: Machine,
    /// Writes to control files before anything runs, in file order.
    pub sysctls: Vec<ControlWrite>,
    /// The policies that are named, and those that every setup names.
    pub policies: Policies,
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
    /// What is reported of groups because a row or an expectation asks for it
    /// ([`ON_REQUEST`](crate::metric::declared::ON_REQUEST)).
    pub asked_of_groups: Vec<&'static str>,
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
    /// Whether cgroup version 2 is mounted with `memory_recursiveprot`.
    pub memory_recursiveprot: bool,
    /// Whether every page is cleared when it is allocated (kernel parameter `init_on_alloc`); not stated: a real
    /// kernel does as it was built, the simulator does not.
    pub init_on_alloc: Option<bool>,
    /// Caches of kernel objects that are not as the kernel makes them.
    pub caches: Vec<CacheTuning>,
    /// Kernel objects that boot has left behind, if that is known.
    pub boot_objects: BootObjects,
    /// How long system calls on names and pipes take, if that is known.
    pub call_times: CallTimes,
    /// What operations cost, as far as that is stated.
    pub costs: Costs,
    /// What the programs take for themselves, if that is known.
    pub program_times: ProgramTimes,
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
            memory_recursiveprot: false,
            init_on_alloc: None,
            caches: Vec::new(),
            boot_objects: BootObjects::default(),
            call_times: CallTimes::default(),
            costs: Costs::default(),
            program_times: ProgramTimes::default(),
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
    pub name: ZoneName,
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

impl Zone {
    /// As the core takes it.
    pub const fn spec(&self) -> ZoneSpec {
        let Zone { name: _, present, managed, free, late, free_lists } = *self;
        ZoneSpec { present, managed, free, late, free_lists }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Disk {
    /// Its name in the scenario.
    pub name: String,
    /// Its preset.
    pub model: DiskModel,
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
    /// Control-file writes when it is made.
    pub controls: Vec<GroupControlWrite>,
    /// It is there when the run begins; otherwise a task makes it ([`Workload::CreateGroup`]).
    pub at_start: bool,
    /// It has a memory controller; otherwise the nearest group around it that has one pays for its tasks.
    pub has_memory: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Its name, unique.
    pub name: String,
    /// Size in bytes at the start.
    pub size: u64,
    /// Holes only: reads need no I/O.
    pub sparse: bool,
    /// The file system's own blocks: dirty pages of it do not move.
    pub metadata: bool,
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
    /// What is added to its badness for the OOM killer, -1000..=1000.
    pub oom_score_adj: i16,
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

impl Setup {
    /// Has what is reported of groups on request reported, if a key or a pattern asks for it.
    pub fn ask_for(&mut self, metric: &str) {
        self.asked_of_groups.extend(asked_by(metric));
        let is_asked = |name: &&str| self.asked_of_groups.contains(name);
        self.asked_of_groups = ON_REQUEST.iter().map(|it| it.name).filter(is_asked).collect();
    }

    /// Whether some task makes kernel objects one by one, so that caches of them must be told apart.
    pub fn has_objects(&self) -> bool {
        let phases = self.tasks.iter().flat_map(|task| &task.phases);
        phases
            .into_iter()
            .any(|phase| matches!(phase.workload, Workload::Names(_) | Workload::Pipes(_)))
    }

    /// Version of the cgroup interface that the setup's groups need: 1 as soon as one of the
    /// controls is written that only version 1 has, else 2. A control of a patch has the version that
    /// it was posted for, but goes along with others of version 2.
    pub fn cgroup_version(&self) -> CgroupVersion {
        let is_of_patch = |control: &GroupControl| matches!(control.file().since, Origin::Patch(_));
        let all = || self.group_controls().map(GroupControl::version);
        let of_linux = || {
            let of_linux = self.group_controls().filter(|control| !is_of_patch(control));
            of_linux.map(GroupControl::version)
        };
        let first = if of_linux().next().is_none() {
            all().next()
        } else {
            of_linux().find(|version| *version == CgroupVersion::V1)
        };
        first.unwrap_or_default()
    }

    /// The group whose memory controller a group's tasks are under: it, or the nearest around it that has one.
    /// `None`: the root.
    pub fn payer(&self, group: Option<usize>) -> Option<usize> {
        let around = std::iter::successors(group, |&group| self.groups[group].parent);
        around.into_iter().find(|&group| self.groups[group].has_memory)
    }

    /// Whether groups share CPUs by their weights: as soon as one file of the CPU controller is written, all
    /// groups have one (`cgroup.subtree_control`).
    pub fn has_cpu_controller(&self) -> bool {
        self.group_controls().any(GroupControl::is_of_cpu)
    }

    /// The control files of groups that are written, at the start or by a task.
    pub fn group_controls(&self) -> impl Iterator<Item = GroupControl> + '_ {
        let at_start = self.groups.iter().flat_map(|group| &group.controls);
        let phases = self.tasks.iter().flat_map(|task| &task.phases);
        let written = phases.filter_map(|phase| match &phase.workload {
            Workload::WriteControl(WriteControl { write: Write::Group(_, write) }) => Some(write),
            _ => None,
        });
        at_start.chain(written).map(|write| write.control)
    }
}
