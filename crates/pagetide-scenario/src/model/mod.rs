//! A scenario after checking: plain types with all names resolved and all sizes valid.
//!
//! The text form is TOML (see docs/scenario.md); [`crate::load`] turns it into these types or into
//! a list of diagnostics. The variants of a [`Scenario`] are already applied: each [`Variant`] has
//! a complete [`Setup`], so a world never merges anything.
//!
//! Units: sizes in bytes unless the name says pages; times in integer nanoseconds.

pub mod costs;
pub mod kernel_objects;
pub mod latency_shape;
pub mod object_mix;
pub mod policies;
pub mod switches;

pub use crate::load::raw::task::TaskSettings;
use crate::metric::criterion::Criterion;
use crate::metric::declared::{asks_for_pathology, requested_by, ON_REQUEST};
use crate::model::costs::{MachineCosts, ProgramTimes};
use crate::model::kernel_objects::{BootObjects, CallTimes};
use crate::model::latency_shape::LatencyShape;
pub use crate::model::object_mix::KernelCache;
use crate::model::policies::PolicyChoices;
use crate::names::{Compressor, DiskModel, ZoneName};
pub use crate::op::{Advice, BlockRequest};
pub use crate::workload::*;
use pagetide_core::config::{CgroupVersion, ControlOrigin, PolicyVariant};
use pagetide_core::control::{ControlWrite, GroupControl, GroupControlWrite};
pub use pagetide_core::frames::boot::free_lists::FreeLists;
use pagetide_core::frames::node::ZoneSpec;
use pagetide_core::swap::content::ContentMix;
use pagetide_core::swap::zswap::ZswapOptions;
pub use pagetide_core::units::page_size::PageSize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Short name; the stem of the file name by default.
    pub name: String,
    /// Paths of the scenarios that it extends, the nearest first.
    pub bases: Vec<PathBuf>,
    pub title: String,
    /// Purpose of the scenario, one or more paragraphs; may be empty.
    pub description: String,
    /// Default number of runs per variant (seeds `seed`, `seed + 1`, ...).
    pub repeats: u32,
    /// Seed of the first run.
    pub seed: u64,
    /// The variants to compare, in the order of the columns; never empty.
    pub variants: Vec<Variant>,
    /// Metric keys of the table's rows, in order; empty means the default rows.
    pub rows: Vec<String>,
    pub reference: Option<Reference>,
    /// Conditions that every run must meet.
    pub expectations: Vec<Expectation>,
    /// Knobs that `pagetide fuzz` may turn, as `KEY=RANGE`.
    pub fuzz_knobs: Vec<String>,
}

/// A condition that every run must meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// In words.
    pub text: String,
    /// As a criterion; it does not use `before`.
    pub criterion: Criterion,
    /// The variants that must meet it; empty means all.
    pub variants: Vec<String>,
}

impl Expectation {
    /// Whether it applies to this variant.
    pub fn applies_to(&self, variant: &str) -> bool {
        self.variants.is_empty() || self.variants.iter().any(|name| name == variant)
    }
}

/// Published figures to print next to the results.
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
    /// Entries of its own `set`, in file order: keys and values as written, each value on one line.
    pub sets: Vec<(String, String)>,
    pub setup: Setup,
}

/// A machine and its tasks. Only the loader makes it, from a file or from a
/// The registered policies that a scenario chooses; `None`: the built-in one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginChoices {
    /// It chooses the groups to reclaim from.
    pub groups: Option<String>,
    /// It chooses the pages to evict.
    pub pages: Option<String>,
}

impl PluginChoices {
    /// Each with its key of `[policy]`.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let named = [("groups", &self.groups), ("pages", &self.pages)];
        named.into_iter().filter_map(|(key, name)| Some((key, name.as_deref()?)))
    }
}

/// [`crate::build::Builder`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Setup {
    pub machine: MachineSetup,
    /// Writes to control files before anything runs, in file order.
    pub sysctls: Vec<ControlWrite>,
    /// The policies of the scenario, and those that every setup has.
    pub policies: PolicyChoices,
    /// Registered policies in place of the built-in ones.
    pub plugins: PluginChoices,
    /// Memory groups without the root, parents before children.
    pub groups: Vec<Group>,
    pub files: Vec<File>,
    /// Caches of kernel objects that the tasks use: the caches of all mixes, each name once.
    pub caches: Vec<KernelCache>,
    pub tasks: Vec<Task>,
    /// The machine's counters cover the lifetime of this task (index into `tasks`), as if a user
    /// read /proc/vmstat before and after a command; `None`: the whole run.
    pub measure: Option<usize>,
    /// Metrics of groups that a row or an expectation asks for
    /// ([`ON_REQUEST`](crate::metric::declared::ON_REQUEST)).
    pub requested_group_metrics: Vec<&'static str>,
    /// Whether the metrics of pathologies are recorded
    /// ([`PATHOLOGIES`](crate::metric::declared::PATHOLOGIES)).
    pub measures_pathologies: bool,
    /// Virtual time after which the run is cut (default 1 h).
    pub time_limit_ns: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MachineSetup {
    pub cpus: u16,
    /// Page size: the unit of all page counts in a setup.
    pub page_size: PageSize,
    /// NUMA nodes with their memory, at least one.
    pub nodes: Vec<NodeSetup>,
    pub disks: Vec<DiskSetup>,
    /// The files from which latencies of disks were read.
    pub latency_files: Vec<PathBuf>,
    pub swap: Vec<Swap>,
    /// Compressed memory in front of the swap areas on disks.
    pub zswap: Option<ZswapOptions>,
    /// Contents of the pages of tasks that have no content of their own.
    pub content: ContentMix,
    /// Whether kernel objects are charged to groups; `false`: the kernel is booted with
    /// `cgroup.memory=nokmem`.
    pub kmem_accounting: bool,
    /// Whether cgroup version 2 is mounted with `memory_recursiveprot`.
    pub memory_recursiveprot: bool,
    /// Whether every page is cleared when it is allocated (kernel parameter `init_on_alloc`).
    /// `None`: a real kernel uses its build setting, the simulator does not clear.
    pub init_on_alloc: Option<bool>,
    /// Caches of kernel objects with other settings than the kernel's own.
    pub caches: Vec<CacheSetup>,
    /// Kernel objects that boot left behind, if known.
    pub boot_objects: BootObjects,
    /// Times of system calls on file names and pipes, if known.
    pub call_times: CallTimes,
    /// Costs of operations that the scenario sets.
    pub costs: MachineCosts,
    /// Times that test programs need for themselves, if known.
    pub program_times: ProgramTimes,
    /// Frames that each task's program has from boot until it ends, if known: for a program that
    /// performs the operations on a real kernel.
    pub program_frames: u64,
    /// Pages that these programs keep locked, outside any group, if known.
    pub program_locked: u64,
    /// Tasks with the same start begin at the same moment, in their order, as those of a program
    /// that performs them on a real kernel do. Otherwise each begins a little later, by the run's
    /// seed.
    pub starts_at_once: bool,
}

impl Default for MachineSetup {
    fn default() -> MachineSetup {
        MachineSetup {
            cpus: 1,
            page_size: PageSize::default(),
            nodes: Vec::new(),
            disks: Vec::new(),
            latency_files: Vec::new(),
            swap: Vec::new(),
            zswap: None,
            content: ContentMix::DEFAULT,
            kmem_accounting: true,
            memory_recursiveprot: false,
            init_on_alloc: None,
            caches: Vec::new(),
            boot_objects: BootObjects::default(),
            call_times: CallTimes::default(),
            costs: MachineCosts::default(),
            program_times: ProgramTimes::default(),
            program_frames: 0,
            program_locked: 0,
            starts_at_once: false,
        }
    }
}

/// Settings of a cache of kernel objects; `None` keeps the kernel's value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheSetup {
    /// Unique name.
    pub name: String,
    /// log2 of the pages of a slab.
    pub order: Option<u8>,
    /// Number of empty slabs that a node keeps.
    pub min_partial: Option<u32>,
    /// Number of free objects that a CPU's list of partial slabs may hold.
    pub cpu_partial: Option<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NodeSetup {
    /// Bytes present. Zones are placed as on x86-64: DMA to 16 MiB, DMA32 to 4 GiB, then Normal,
    /// unless `zones` gives others.
    pub memory: u64,
    /// Bytes that the kernel keeps permanently (image, page array, boot allocations). They are
    /// taken from the last zones first and are not managed.
    pub reserved: u64,
    /// Bytes at the top that become zone Movable.
    pub movable: u64,
    /// Exact zones, if the machine gives them.
    pub zones: Vec<ZoneSetup>,
}

/// A zone with exact sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneSetup {
    pub name: ZoneName,
    pub present: u64,
    /// Pages that the allocator manages.
    pub managed: u64,
    /// Pages free when the run starts; the kernel holds the rest of `managed`.
    pub free: u64,
    /// Pages of `managed` that boot freed after it had computed the watermarks.
    pub late: u64,
    /// Pages of an area of CMA at the end of the zone; 0 if there is none, or if `free_lists` has
    /// them.
    pub cma: u64,
    /// Free lists when the run starts, `free` pages in total, if known.
    pub free_lists: Option<FreeLists>,
}

impl ZoneSetup {
    /// In the core's type.
    pub const fn spec(&self) -> ZoneSpec {
        let ZoneSetup { name, present, managed, free, late, cma, free_lists } = *self;
        let is_highmem = matches!(name, ZoneName::HighMem);
        ZoneSpec { present, managed, free, late, cma, is_highmem, free_lists }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct DiskSetup {
    /// Name in the scenario.
    pub name: String,
    pub model: DiskModel,
    /// Overrides of the preset; `None` keeps its value. The mean, if the latency has a shape.
    pub read_latency_ns: Option<u64>,
    pub write_latency_ns: Option<u64>,
    /// Distributions of the latencies, scaled to their means; `None`: the preset's.
    pub read_shape: Option<Arc<LatencyShape>>,
    pub write_shape: Option<Arc<LatencyShape>>,
    /// Bytes per second.
    pub read_bandwidth: Option<u64>,
    /// Bytes per second.
    pub write_bandwidth: Option<u64>,
    /// Requests served at the same time.
    pub queue_depth: Option<u32>,
    /// Whether the kernel treats it as rotational (/sys/block/DISK/queue/rotational), which decides
    /// how it places pages in swap. The model's value unless the scenario sets it.
    pub rotational: bool,
    pub faults: DiskFaults,
}

impl DiskSetup {
    /// A disk with the values of its model.
    pub fn new(name: impl Into<String>, model: DiskModel) -> DiskSetup {
        DiskSetup {
            name: name.into(),
            model,
            read_latency_ns: None,
            write_latency_ns: None,
            read_shape: None,
            write_shape: None,
            read_bandwidth: None,
            write_bandwidth: None,
            queue_depth: None,
            rotational: model == DiskModel::Rotating,
            faults: DiskFaults::default(),
        }
    }
}

/// Faults that a disk injects; the seed of the run decides which requests they hit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DiskFaults {
    /// Failed reads per million.
    pub read_error_ppm: u32,
    /// Failed writes per million.
    pub write_error_ppm: u32,
    /// Slow requests per million.
    pub slow_ppm: u32,
    /// How many times slower a slow request is.
    pub slow_factor: u32,
}

impl MachineSetup {
    /// Bytes that the kernel manages (MemTotal), without what it reserves.
    pub fn managed_memory(&self) -> u64 {
        let of_node = |node: &NodeSetup| match node.zones.as_slice() {
            [] => node.memory.saturating_sub(node.reserved),
            zones => zones.iter().map(|zone| self.page_size.bytes_of(zone.managed)).sum(),
        };
        self.nodes.iter().map(of_node).fold(0, u64::saturating_add)
    }

    /// Priorities of the swap areas. Linux gives areas without one -2, -3, and so on.
    pub fn swap_priorities(&self) -> Vec<i16> {
        let mut default = -1;
        let mut of = |area: &Swap| {
            area.priority.unwrap_or_else(|| {
                default -= 1;
                default
            })
        };
        self.swap.iter().map(&mut of).collect()
    }
}

/// Serial number, in QEMU, of the disk of a swap area of [`MachineSetup::swap`].
pub fn swap_serial(area: usize) -> String {
    if area == 0 {
        "swap".to_owned()
    } else {
        format!("swap{area}")
    }
}

/// A swap area.
#[derive(Clone, Debug, PartialEq)]
pub struct Swap {
    /// Index into [`MachineSetup::disks`]; of a zram device: the disk behind it, if it has one.
    pub disk: usize,
    /// Size in bytes.
    pub size: u64,
    /// Reports the area as full when this many slots are used (fault injection).
    pub full_after_pages: Option<u64>,
    /// Areas of a higher priority are used first; `None`: as Linux numbers
    /// such areas ([`MachineSetup::swap_priorities`]).
    pub priority: Option<i16>,
    /// The area is a zram device.
    pub zram: Option<ZramSetup>,
}

/// A zram device that is a swap area.
#[derive(Clone, Debug, PartialEq)]
pub struct ZramSetup {
    /// The algorithm that compresses its pages.
    pub algorithm: Compressor,
    /// Most memory that it takes, in bytes; `None`: no limit.
    pub mem_limit: Option<u64>,
    /// Size of the disk behind it, in bytes; `None`: there is none.
    pub backing: Option<u64>,
}

/// A memory group.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Unique name.
    pub name: String,
    /// Index of the parent in [`Setup::groups`]; `None` is the root.
    pub parent: Option<usize>,
    /// Writes to control files when the group is created.
    pub controls: Vec<GroupControlWrite>,
    /// It exists when the run begins; otherwise a task creates it ([`Workload::CreateGroup`]).
    pub at_start: bool,
    /// It has a memory controller; otherwise its nearest ancestor with one is charged.
    pub has_memory: bool,
}

impl Group {
    /// A group below the root, without limits.
    pub fn new(name: impl Into<String>) -> Group {
        let (name, controls) = (name.into(), Vec::new());
        Group { name, parent: None, controls, at_start: true, has_memory: true }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Unique name.
    pub name: String,
    /// Size in bytes at the start.
    pub size: u64,
    /// Only holes: reads need no I/O.
    pub sparse: bool,
    /// Metadata of the file system: its dirty pages cannot be moved.
    pub metadata: bool,
    /// Index into [`MachineSetup::disks`].
    pub disk: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Unique name; copies are expanded to `name.0`, `name.1`, ...
    pub name: String,
    /// Index into [`Setup::groups`]; `None` is the root.
    pub group: Option<usize>,
    pub start: TaskStart,
    /// A background task does not keep the run alive: it is stopped when all others have ended.
    pub background: bool,
    /// The task (index into [`Setup::tasks`]) whose end stops this one, which is then a background
    /// task.
    pub until: Option<usize>,
    /// If it is killed, it starts again after this time; `None`: it does not.
    pub restart_ns: Option<u64>,
    pub settings: TaskSettings,
    pub phases: Vec<Phase>,
    /// Contents of its pages; `None`: as on the machine.
    pub content: Option<ContentMix>,
    /// Memory that it has when the run starts.
    pub resident: Vec<Resident>,
    /// The file (index into [`Setup::files`]) of its resident page cache.
    pub resident_file: Option<usize>,
}

/// Memory of a task at the start of the run; all values in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// Index into [`MachineSetup::nodes`].
    pub node: usize,
    /// `None`: the highest zones that have room.
    pub zone: Option<ZoneName>,
    pub active_anon: u64,
    pub inactive_anon: u64,
    pub active_file: u64,
    pub inactive_file: u64,
}

impl Resident {
    /// Anonymous pages.
    pub fn anon(&self) -> u64 {
        self.active_anon.saturating_add(self.inactive_anon)
    }

    /// Pages of the page cache.
    pub fn file(&self) -> u64 {
        self.active_file.saturating_add(self.inactive_file)
    }
}

/// Start of a task that does not start: a watcher that is switched off.
pub const NEVER_NS: u64 = 1 << 62;

impl Task {
    pub fn never_starts(&self) -> bool {
        self.start.delay_ns >= NEVER_NS
    }

    /// A task in the root that starts at once.
    pub fn new(name: impl Into<String>, phases: Vec<Phase>) -> Task {
        Task {
            name: name.into(),
            group: None,
            start: TaskStart { delay_ns: 0, after: None },
            background: false,
            until: None,
            restart_ns: None,
            settings: TaskSettings::default(),
            phases,
            content: None,
            resident: Vec::new(),
            resident_file: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct TaskStart {
    /// Delay after ...
    pub delay_ns: u64,
    /// ... the end of this task (index into [`Setup::tasks`]), or the start of the run.
    pub after: Option<usize>,
}

/// A named part of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Unique name within the task; metrics are `TASK.PHASE.NAME`.
    pub name: String,
    pub workload: Workload,
}

impl Setup {
    /// Enables the metrics recorded on request that a key or a pattern asks for.
    pub fn request_metric(&mut self, metric: &str) {
        self.measures_pathologies |= asks_for_pathology(metric);
        self.requested_group_metrics.extend(requested_by(metric));
        let is_asked = |name: &&str| self.requested_group_metrics.contains(name);
        self.requested_group_metrics =
            ON_REQUEST.iter().map(|it| it.name).filter(is_asked).collect();
    }

    /// Whether some task makes single kernel objects; then their caches are reported.
    pub fn has_objects(&self) -> bool {
        let phases = self.tasks.iter().flat_map(|task| &task.phases);
        phases
            .into_iter()
            .any(|phase| matches!(phase.workload, Workload::Names(_) | Workload::Pipes(_)))
    }

    /// Version of the cgroup interface that the groups need: 1 if a control is written that only
    /// version 1 has, else 2. A control of a patch has the version of its patch, but may be
    /// combined with others of version 2. Without controls, it is the chosen kernel's.
    pub fn cgroup_version(&self) -> CgroupVersion {
        let is_of_patch =
            |control: &GroupControl| matches!(control.file().since, ControlOrigin::Patch(_));
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
        let has_controls = self.group_controls().next().is_some();
        let kernel = self.policies.kernel().filter(|_| !has_controls).unwrap_or_default();
        let of_kernel = || kernel.choices().iter().find_map(|&choice| CgroupVersion::of(choice));
        first.or_else(of_kernel).unwrap_or_default()
    }

    /// The group that is charged for a group's tasks: itself or its nearest ancestor with a memory
    /// controller. `None`: the root.
    pub fn charged_group(&self, group: Option<usize>) -> Option<usize> {
        let around = std::iter::successors(group, |&group| self.groups[group].parent);
        around.into_iter().find(|&group| self.groups[group].has_memory)
    }

    /// Whether groups share CPUs by their weights: if one file of the CPU controller is written,
    /// all groups have that controller (`cgroup.subtree_control`).
    pub fn has_cpu_controller(&self) -> bool {
        self.group_controls().any(GroupControl::is_of_cpu)
    }

    /// The control files of groups that are written, at the start or by a task.
    pub fn group_controls(&self) -> impl Iterator<Item = GroupControl> + '_ {
        let at_start = self.groups.iter().flat_map(|group| &group.controls);
        let phases = self.tasks.iter().flat_map(|task| &task.phases);
        let written = phases.filter_map(|phase| match &phase.workload {
            Workload::WriteControl(WriteControl { write: TargetWrite::Group(_, write) }) => {
                Some(write)
            }
            _ => None,
        });
        at_start.chain(written).map(|write| write.control)
    }
}
