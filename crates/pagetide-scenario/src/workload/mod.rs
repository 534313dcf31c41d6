//! Workloads: each is declared once, in its own file. The workloads of a task become a stream of
//! operations. docs/scenario.md defines the operations of every workload exactly, page by page.
//!
//! The file of a workload contains its keys with defaults and documentation, the type of the
//! checked workload, its checks, and its operations. The list below names every workload; the
//! loader, the schema, the plan and the worlds are generated from that list or match on it.
//!
//! * `program`: the phases of a task as [`Op`](crate::op::Op)s.
//! * `plan`: regions and stages of a task; `state`: its draws and positions, which outlive a stage;
//!   `cursor`: the position within a stage.
//! * `paced`, `load_curve`: rates, and their change over time; `request`: the work of a service.
//! * `computing`: CPU time of the program after each access.
//! * `watching`: looks and rests of watchers.
//! * `part`: a part of a region that a phase names.
//! * `walk`, `order`: the orders of pages; `calls`: read() and write() in these orders; `hotspot`:
//!   hot and cold accesses; `blocks`, `objects`, `making`: kernel memory of several workloads;
//!   `replay`: a page trace as operations; `modulo`: remainders and the scattering permutation.

mod blocks;
mod calls;
mod computing;
mod cursor;
mod hotspot;
mod load_curve;
mod making;
mod modulo;
mod objects;
mod order;
mod paced;
mod part;
pub(crate) mod plan;
mod program;
mod replay;
mod request;
mod state;
mod walk;
mod watching;

use crate::load::check::phases::Phases;
use crate::load::decode::{fill, named, KeyTable};
use crate::load::span::{ProblemSink, Spanned};
use crate::load::tree::TomlEntry;
use crate::model::object_mix::ObjectMix;
use crate::names::{names, NameSet};
use plan::{PhaseStage, Planner};
use schemars::JsonSchema;

pub use crate::op::{FILE_SIZE_MAX, REGION_PAGES_MAX};
pub use build::Link;
pub use load_curve::LoadCurve;
pub use making::KeepShare;
pub use modulo::{scatter, SCATTER, SCATTER_ALTERNATE};
pub use order::PageOrder;
pub use paced::Pace;
pub use part::RegionPart;
pub use program::{Program, ProgramError};
pub use reclaim_loop::ReclaimLoopRule;
pub use request::{Arrivals, ServiceRequest};
pub use systemd_oomd::ROOT_GROUP;
pub use watching::WatcherBase;
pub use write_control::TargetWrite;

/// A kind of workload, implemented in its file.
pub(crate) trait WorkloadSpec: Sized {
    /// Its keys in a scenario.
    type Keys: KeyTable;

    /// Checks its keys. `None` after a mistake was reported; files are indices of templates.
    fn check(
        keys: &Self::Keys,
        phases: &mut Phases<'_, '_>,
        sink: &mut ProblemSink,
    ) -> Option<Self>;

    /// The stages of phase number `phase`.
    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage>;

    /// Number of times that the phase runs through its stages.
    fn rounds(&self) -> u32 {
        1
    }

    /// Visits every file that it uses, with whether it writes to the file.
    fn files(&mut self, _each: &mut dyn FnMut(&mut usize, bool)) {}

    /// If it runs until it is stopped: the key that would end it.
    fn missing_end(&self) -> Option<&'static str> {
        None
    }
}

/// Imports for the files of workloads.
mod prelude {
    pub(super) use super::cursor::Generator;
    pub(super) use super::plan::{PhaseStage, Planner};
    pub(super) use super::state::ProgramState;
    pub(super) use super::WorkloadSpec;
    pub(super) use crate::load::check::phases::Phases;
    pub(super) use crate::load::decode::{table, GroupTarget, Int, NameKey, Size, Time};
    pub(super) use crate::load::span::{clip, ProblemSink, Spanned, SpannedProblem};
    pub(super) use crate::op::{Advice, BlockRequest, Op};
}

macro_rules! workloads {
    ($( $(#[doc = $doc:literal])+ $kind:ident($type:ident) = $name:literal in $file:ident, )+) => {
        $( mod $file; pub use $file::$type; )+

        /// The work of a phase. docs/scenario.md defines it exactly, so that other programs can
        /// repeat it.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Workload {
            $( $(#[doc = $doc])+ $kind($type), )+
        }

        names! {
            /// Workload of a phase.
            "workload" WorkloadKind {
                $( $(#[doc = $doc])+ $kind = $name, )+
            }
        }

        named!(WorkloadKind);

        /// Workload of a phase, selected by the key `workload`.
        #[derive(Clone, Debug, JsonSchema)]
        #[schemars(tag = "workload", rename_all = "kebab-case")]
        pub(crate) enum WorkloadKeys {
            $( $(#[doc = $doc])+ $kind(Box<<$type as WorkloadSpec>::Keys>), )+
        }

        impl WorkloadKind {
            /// The kinds of watchers.
            pub const WATCHERS: [WorkloadKind; 5] = [
                WorkloadKind::Kubelet,
                WorkloadKind::SystemdOomd,
                WorkloadKind::Earlyoom,
                WorkloadKind::Lmkd,
                WorkloadKind::ReclaimLoop,
            ];

            /// The keys of the workload.
            pub(crate) fn keys(self) -> &'static [&'static str] {
                match self { $( Self::$kind => <$type as WorkloadSpec>::Keys::KEYS, )+ }
            }

            /// Whether any workload has this key.
            fn is_key(key: &str) -> bool {
                Self::ALL.iter().any(|kind| kind.keys().contains(&key))
            }
        }

        impl WorkloadKeys {
            /// Decodes the keys of a workload. `outer`: the keys of the table around it, for hints.
            pub(crate) fn decode(
                kind: Spanned<WorkloadKind>,
                entries: &[&TomlEntry],
                outer: &'static [&'static str],
                sink: &mut ProblemSink,
            ) -> WorkloadKeys {
                let (of, at) = (kind.value.name(), kind.span);
                match kind.value {
                    $( WorkloadKind::$kind => {
                        let keys = fill(at, of, entries, outer, WorkloadKind::is_key, sink);
                        WorkloadKeys::$kind(Box::new(keys))
                    } )+
                }
            }

            /// Its keys whose values could not be read, or that are misspelt.
            pub(crate) fn bad(&self) -> &[&'static str] {
                match self { $( WorkloadKeys::$kind(keys) => &keys.bad, )+ }
            }

            /// The checked workload; `None` after a mistake was reported.
            pub(crate) fn check(
                &self,
                phases: &mut Phases<'_, '_>,
                sink: &mut ProblemSink,
            ) -> Option<Workload> {
                match self {
                    $( WorkloadKeys::$kind(keys) => $type::check(keys, phases, sink).map(Workload::$kind), )+
                }
            }
        }

        impl Workload {
            pub fn kind(&self) -> WorkloadKind {
                match self { $( Workload::$kind(_) => WorkloadKind::$kind, )+ }
            }

            fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
                match self { $( Workload::$kind(of) => of.stages(phase, planner), )+ }
            }

            fn rounds(&self) -> u32 {
                match self { $( Workload::$kind(of) => of.rounds(), )+ }
            }

            /// Calls `each` with every file that it uses, and whether it writes to the file.
            pub(crate) fn visit_files(&mut self, each: &mut dyn FnMut(&mut usize, bool)) {
                match self { $( Workload::$kind(of) => of.files(each), )+ }
            }

            /// If it runs until it is stopped: the key that would end it.
            pub(crate) fn missing_end(&self) -> Option<&'static str> {
                match self { $( Workload::$kind(of) => of.missing_end(), )+ }
            }
        }
    };
}

impl Workload {
    /// The page trace that it replays, if any.
    pub fn trace(&self) -> Option<&std::path::PathBuf> {
        match self {
            Workload::Trace(trace) => Some(&trace.path),
            Workload::Build(build) => Some(&build.trace),
            _ => None,
        }
    }

    /// The file of this computer that it names, if any: a page trace or an object mix.
    pub fn named_file(&self) -> Option<&std::path::PathBuf> {
        match self {
            Workload::KernelObjects(objects) => Some(&objects.path),
            _ => self.trace(),
        }
    }

    /// The same, to replace the path.
    pub fn named_file_mut(&mut self) -> Option<&mut std::path::PathBuf> {
        match self {
            Workload::Trace(trace) => Some(&mut trace.path),
            Workload::Build(build) => Some(&mut build.trace),
            Workload::KernelObjects(objects) => Some(&mut objects.path),
            _ => None,
        }
    }
}

workloads! {
    /// Writes a file with write() calls: appends like dd, or overwrites blocks in an order.
    FileWrite(FileWriteWorkload) = "file-write" in file_write,
    /// Reads a file with read() calls, from start to end and again, or blocks in another order.
    FileRead(FileReadWorkload) = "file-read" in file_read,
    /// Maps a file and reads one byte of each page.
    MappedRead(MappedRead) = "mapped-read" in mapped_read,
    /// Writes or reads each page of an anonymous region.
    Touch(TouchWorkload) = "touch" in touch,
    /// Touches anonymous pages and pages of a file in turn, so that they alternate in memory.
    Interleave(Interleave) = "interleave" in interleave,
    /// Frees pages of an anonymous region with madvise(MADV_DONTNEED).
    Discard(DiscardWorkload) = "discard" in discard,
    /// Locks part of a region into memory (mlock), or unlocks it.
    Lock(Lock) = "lock" in lock,
    /// Gives advice on part of a region (madvise).
    Advise(AdviseWorkload) = "advise" in advise,
    /// Tries to allocate blocks of kernel memory of one order.
    HighOrder(HighOrder) = "high-order" in high_order,
    /// Allocates and frees kernel memory, like network buffers, stacks and drivers.
    KernelMemory(KernelMemoryWorkload) = "kernel-memory" in kernel_memory,
    /// Allocates and frees kernel objects like recorded work.
    KernelObjects(KernelObjects) = "kernel-objects" in kernel_objects,
    /// Makes files and removes most of them again, or looks up names that do not exist.
    Names(MakeNames) = "names" in make_names,
    /// Opens pipes and closes most of them again.
    Pipes(Pipes) = "pipes" in open_pipes,
    /// Removes files, or closes pipes, that an earlier phase kept.
    Remove(RemoveObjects) = "remove" in remove,
    /// Makes hot and cold accesses to anonymous memory, file memory or both.
    WorkingSet(WorkingSet) = "working-set" in working_set,
    /// Serves requests that arrive independently of whether a thread is free.
    Service(ServiceWorkload) = "service" in service,
    /// Replays a page trace.
    Trace(TraceWorkload) = "trace" in trace,
    /// Compiles files, one after another, like make.
    Build(Build) = "build" in build,
    /// Writes a text to a control file, like echo.
    WriteControl(WriteControl) = "write-control" in write_control,
    /// Creates a group that does not exist, like mkdir.
    CreateGroup(CreateGroup) = "create-group" in create_group,
    /// Removes a group, like rmdir.
    RemoveGroup(RemoveGroup) = "remove-group" in remove_group,
    /// Moves the task into a group.
    JoinGroup(JoinGroup) = "join-group" in join_group,
    /// Uses the CPU.
    Compute(Compute) = "compute" in compute,
    /// Sleeps.
    Sleep(SleepWorkload) = "sleep" in sleep,
    /// The eviction manager of kubelet; see [[watcher]].
    Kubelet(KubeletWatcher) = "kubelet" in kubelet,
    /// systemd-oomd; see [[watcher]].
    SystemdOomd(SystemdOomdWatcher) = "systemd-oomd" in systemd_oomd,
    /// earlyoom; see [[watcher]].
    Earlyoom(EarlyoomWatcher) = "earlyoom" in earlyoom,
    /// Android's lmkd; see [[watcher]].
    Lmkd(LmkdWatcher) = "lmkd" in lmkd,
    /// A loop that takes memory from a group, such as senpai; see [[watcher]].
    ReclaimLoop(ReclaimLoopWatcher) = "reclaim-loop" in reclaim_loop,
}

impl Workload {
    /// Number of threads that perform it.
    pub fn threads(&self) -> u32 {
        match self {
            Workload::Service(service) => service.threads,
            _ => 1,
        }
    }

    /// The parts that it has as a watcher; `None`: it is no watcher.
    pub fn watcher(&self) -> Option<&WatcherBase> {
        match self {
            Workload::Kubelet(watcher) => Some(&watcher.base),
            Workload::SystemdOomd(watcher) => Some(&watcher.base),
            Workload::Earlyoom(watcher) => Some(&watcher.base),
            Workload::Lmkd(watcher) => Some(&watcher.base),
            Workload::ReclaimLoop(watcher) => Some(&watcher.base),
            _ => None,
        }
    }

    /// Whether its requests can be late: it is a service with a deadline.
    pub fn has_deadline(&self) -> bool {
        matches!(self, Workload::Service(service) if service.deadline_ns.is_some())
    }

    /// Whether it allocates kernel memory directly, which only a patched kernel lets a program do.
    pub fn allocates_kernel_memory(&self) -> bool {
        match self {
            Workload::HighOrder(_) | Workload::KernelMemory(_) | Workload::KernelObjects(_) => true,
            Workload::Build(build) => {
                build.stack_order > 0 || build.kernel_pages > 0 || build.mix.is_some()
            }
            _ => false,
        }
    }

    /// Its object mix, if any.
    pub fn mix(&self) -> Option<&ObjectMix> {
        match self {
            Workload::KernelObjects(objects) => Some(&objects.mix),
            Workload::Build(build) => build.mix.as_deref(),
            _ => None,
        }
    }

    /// The files that it uses, as indices into [`Setup::files`](crate::model::Setup::files), and
    /// whether it writes to them.
    pub fn files(&self) -> Vec<(usize, bool)> {
        let mut files = Vec::new();
        self.clone().visit_files(&mut |file, writes| files.push((*file, writes)));
        files
    }
}

#[cfg(test)]
mod tests;
