//! State of a task: its program, its waits, and its usage.
//!
//! A task executes the operations of its [`Program`] in *time slices*. The effects of a time slice
//! are carried out at its end. It ends when it has an effect, when the task must wait, or after
//! [`PIECE_NS`]. Another thread may preempt it (`world/cpus/slice.rs`).

use crate::disk::IoPlug;
use crate::histogram::LatencyHistogram;
use crate::meter::OperationCounts;
use crate::world::groups::GroupCounts;
use crate::world::objects::files::{FdTable, FileCallCost, ObjectKey, ObjectStep};
use crate::world::observing::ShownCall;
use crate::world::results::slabs::SlabLevels;
use crate::world::tasks::requests::{RequestResults, Service};
use pagetide_core::process::page_table::VmaId;
use pagetide_core::process::readahead::ReadaheadState;
use pagetide_core::process::{Machine, MmId, ProcessCall};
use pagetide_core::slab::object::Object;
use pagetide_core::stats::psi::Psi;
use pagetide_core::stats::vmstat::{Event, Vmstat};
use pagetide_core::swap::zram::ZramLevels;
use pagetide_core::units::{Nanos, NodeId, Pfn, NR_PAGE_ORDERS};
use pagetide_scenario::metric::declared::{self, MetricDecl};
use pagetide_scenario::op::Op;
use pagetide_scenario::record::Incomplete;
use pagetide_scenario::workload::Program;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Longest time slice. Bounds the delay after which a task notices that it should be rescheduled.
pub const PIECE_NS: Nanos = 50_000;

#[derive(Clone, Debug, Default)]
pub struct TaskUsage {
    pub user_ns: Nanos,
    pub system_ns: Nanos,
    /// Page faults, retries included (as the kernel counts `pgfault`).
    pub pgfault: u64,
    pub pgmajfault: u64,
    /// Bytes accessed, read or written.
    pub bytes: u64,
    pub blocks_asked: u64,
    pub blocks_got: u64,
    pub objects_asked: u64,
    pub objects_got: u64,
}

/// Reason for a wait that is due to a lack of memory, or to too many dirty pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryWait {
    /// A page that was swapped out, or evicted from the working set.
    Refault,
    /// A file page that was evicted while it was not in the working set. PSI does not count it.
    Reread,
    Reclaim,
    /// Throttled until other reclaimers or writes make progress.
    Throttled,
    /// Throttled because the group is above `memory.high`.
    High,
    /// Throttled by the dirty limits of the machine.
    Dirty,
    /// Throttled by the dirty limits of its group.
    GroupDirty,
}

/// Time lost to a lack of memory, and pages allocated.
#[derive(Clone, Debug, Default)]
pub struct MemoryStalls {
    /// By [`MemoryWait`]; for `Reclaim` it includes the CPU time.
    pub waited: [Nanos; 7],
    /// Waits for disks for any other reason.
    pub disk_ns: Nanos,
    /// Pages allocated to the task, and to the kernel on its behalf.
    pub allocated: u64,
}

impl MemoryStalls {
    fn add(&mut self, other: &MemoryStalls) {
        self.waited.iter_mut().zip(other.waited).for_each(|(waited, more)| *waited += more);
        self.disk_ns += other.disk_ns;
        self.allocated += other.allocated;
    }
}

/// A phase in progress, then its result. Counters are values at the start while the phase runs, and
/// differences after its end.
#[derive(Clone, Debug, Default)]
pub struct PhaseRun {
    pub phase: u32,
    pub began: Nanos,
    pub ended: Option<Nanos>,
    /// Set if the task was killed in this phase.
    pub cut_short: Option<Incomplete>,
    pub usage: TaskUsage,
    pub vmstat: Vec<u64>,
    /// Levels of the machine at the end, such as `nr_free_pages`.
    pub levels: Vec<(&'static str, u64)>,
    pub zones: Vec<ZoneBlocks>,
    /// Slab caches at the end, if tasks use files or pipes.
    pub slabs: SlabLevels,
    /// Extra results, such as residency.
    pub(crate) extra: Vec<PhaseLevel>,
    /// Counters of the groups, and their levels at the end.
    pub groups: Vec<GroupCounts>,
    pub served: Option<Box<RequestResults>>,
    pub times: PhaseTimes,
    /// Operations of the task, of all kswapds and of the flusher, if counted.
    pub(crate) work: Option<[OperationCounts; 3]>,
}

/// Totals of a task's runs of phases that are no longer in [`SimTask::phases`].
#[derive(Clone, Debug, Default)]
pub(crate) struct EarlierRuns {
    /// Results of services in earlier loops, and their wall time.
    pub loops: Option<(RequestResults, Nanos)>,
    /// The same of earlier lives, by phase: they count for the phase, too.
    pub lives: BTreeMap<u32, (RequestResults, Nanos)>,
    /// Usage in the runs, by phase.
    pub usage: BTreeMap<u32, TaskUsage>,
}

impl EarlierRuns {
    /// Adds the usage of a finished run. Returns its phase, and its results with its wall time.
    fn add(&mut self, run: PhaseRun) -> (u32, Option<(Box<RequestResults>, Nanos)>) {
        // Until its end, a run has the usage at its start.
        let time = run.ended.map_or(0, |ended| {
            self.usage.entry(run.phase).or_default().add(&run.usage);
            ended - run.began
        });
        (run.phase, run.served.map(|served| (served, time)))
    }
}

/// An extra metric of a phase, not from a kernel counter.
pub(crate) type PhaseLevel = (&'static MetricDecl, u64);

/// The levels of the zram devices and of zswap, as far as the machine has them.
pub(crate) fn compressed_levels(machine: &Machine) -> impl Iterator<Item = PhaseLevel> {
    let of = |levels: ZramLevels| {
        [
            (declared::ZRAM_ORIG, levels.orig_bytes),
            (declared::ZRAM_COMPR, levels.compr_bytes),
            (declared::ZRAM_USED, levels.used_bytes),
            (declared::ZRAM_SAME, levels.same_pages),
            (declared::ZRAM_HUGE, levels.huge_pages),
        ]
    };
    let pool = machine.page_size().bytes_of(machine.zswap_pool_pages());
    let of_zswap = machine.zswap_stats().map(|stats| {
        [
            (declared::ZSWAP_POOL, pool),
            (declared::ZSWAP_STORED, stats.stored_pages),
            (declared::ZSWAP_SAME, stats.same_filled_pages),
        ]
    });
    let levels = machine.zram_levels();
    let backing = levels.and_then(|levels| levels.backing);
    let of_backing = backing.map(|backing| (declared::ZRAM_BD_COUNT, backing.nr_blocks));
    let of_zrams = levels.map(of).into_iter().flatten().chain(of_backing);
    of_zrams.chain(of_zswap.into_iter().flatten())
}

/// Node, name and free blocks per order of a zone, from
/// [`Machine::free_blocks_of_zones`](pagetide_core::process::Machine).
pub type ZoneBlocks = (NodeId, &'static str, [u64; NR_PAGE_ORDERS]);

/// Counters and levels of the machine at a point in time.
#[derive(Clone, Debug)]
pub struct MachineCounts {
    pub vmstat: Vec<u64>,
    /// Levels such as `nr_free_pages`.
    pub levels: Vec<(&'static str, u64)>,
    pub zones: Vec<ZoneBlocks>,
    /// Levels of the zram devices and of zswap.
    pub compressed: Vec<PhaseLevel>,
    pub psi: Psi,
}

impl MachineCounts {
    pub(crate) fn of(machine: &Machine) -> MachineCounts {
        MachineCounts {
            vmstat: snapshot(&machine.mem.vmstat),
            levels: machine.levels(),
            zones: machine.free_blocks_of_zones(),
            compressed: compressed_levels(machine).collect(),
            psi: machine.psi().clone(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes {
    pub cpu_ns: Nanos,
    pub kswapd_ns: Nanos,
    pub flusher_ns: Nanos,
    /// PSI `some`: at least one task was stalled.
    pub some_ns: Nanos,
    /// PSI `full`: a task was stalled and no other task ran.
    pub full_ns: Nanos,
}

impl PhaseTimes {
    #[must_use]
    pub fn since(self, earlier: PhaseTimes) -> PhaseTimes {
        PhaseTimes {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            kswapd_ns: self.kswapd_ns.saturating_sub(earlier.kswapd_ns),
            flusher_ns: self.flusher_ns.saturating_sub(earlier.flusher_ns),
            some_ns: self.some_ns.saturating_sub(earlier.some_ns),
            full_ns: self.full_ns.saturating_sub(earlier.full_ns),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// It runs or is runnable.
    No,
    /// Not started, or in a voluntary sleep.
    Sleeping,
    Page,
    /// Waits until a disk accepts more requests.
    Disk,
    Throttled(NodeId, pagetide_core::interface::throttle::Throttle),
    Exited,
}

/// The end of a phase whose report is in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PhaseReport {
    pub phase: u32,
    pub ended: Nanos,
    /// CPU and user time of the task until then.
    pub cpu_ns: Nanos,
    pub user_ns: Nanos,
}

/// A single-threaded program, or one thread of a program.
pub struct SimTask {
    pub name: String,
    /// Group of the setup; `None`: the root.
    pub group: Option<usize>,
    pub start_jitter: Nanos,
    /// The first thread of the program.
    pub leader: usize,
    /// Additional threads of the program, if this is the leader.
    pub helpers: Range<usize>,
    /// The current service, if this is its leader.
    pub(crate) service: Option<Box<Service>>,
    /// Arrival time of the request that the thread serves.
    pub(crate) serving: Option<Nanos>,
    /// The thread was woken for a request.
    pub(crate) is_called: bool,
    /// Time of the phase's first [`Op::Until`].
    pub(crate) until_base: Option<Nanos>,
    pub program: Program,
    pub mm: MmId,
    /// Mapped regions, by number.
    pub regions: Vec<VmaId>,
    /// Blocks of kernel memory, by slot.
    pub blocks: Vec<Option<Pfn>>,
    /// Slab objects, by slot.
    pub objects: Vec<Option<Object>>,
    pub file_objects: BTreeMap<ObjectKey, Object>,
    /// Remaining steps of a system call on a file or a pipe.
    pub steps: VecDeque<ObjectStep>,
    pub(crate) open_files: FdTable,
    /// The object that the call in progress allocates.
    pub step_of: Option<ObjectKey>,
    /// End of the phase's last pause ([`Op::Pace`]), even if none was needed.
    pub paced: Option<Nanos>,
    /// Read-ahead state, by index of the setup's files.
    pub readahead: Vec<ReadaheadState>,
    /// The call in progress and its operation. Taken out during a step.
    pub call: Option<Box<(ProcessCall, Op)>>,
    /// Operation of the call in progress, also during a step.
    pub(crate) call_of: Option<Op>,
    pub(crate) shown_call: ShownCall,
    pub call_began: Nanos,
    /// Start of the call's compaction, if it compacts.
    pub compacting_since: Option<Nanos>,
    /// Time for which the call has waited for pages.
    pub call_page_wait: Nanos,
    pub wait_began: Nanos,
    pub(crate) reporting: Option<PhaseReport>,
    /// The measured call in progress, which object_step() adds to.
    pub(crate) file_call: Option<FileCallCost>,
    /// Remaining CPU time of a compute operation.
    pub compute_left: Nanos,
    pub(crate) plug: IoPlug,
    pub blocked: Blocked,
    /// PSI counts the task as stalled.
    pub stalled: bool,
    /// Reason of the current wait, if it is due to a lack of memory.
    pub waits_for: Option<MemoryWait>,
    /// A page was added to the page cache after an eviction, and its read has not started.
    pub has_refaulted: bool,
    /// The last read from a disk has such a page. An asynchronous read is waited for by a later
    /// call.
    pub rereads: bool,
    /// CPU time, including context switches and interrupts charged to the task.
    pub cpu_ns: Nanos,
    /// User time of each operation in the current phase.
    pub program_ns: Nanos,
    pub lost: MemoryStalls,
    /// Ended for lack of memory: chosen by the OOM killer, or `refused`.
    pub killed: bool,
    /// The request for which memory ran out, if `killed`, and the state of memory then.
    pub killed_for: Option<String>,
    /// An essential allocation failed, and the OOM killer had no task to kill.
    pub refused: bool,
    /// Ended by a signal of a watcher, if `killed`.
    pub signalled: bool,
    /// It has had a signal of a watcher in this life.
    pub is_ending: bool,
    /// It starts again later.
    pub will_restart: bool,
    pub restarts: u64,
    /// Signals of watchers to the task.
    pub times_killed: u64,
    /// Killed by SIGBUS after a read error in a page fault.
    pub crashed: bool,
    /// The task named by `until` has ended.
    pub stopped: bool,
    pub began: Option<Nanos>,
    pub ended: Option<Nanos>,
    /// The run does not wait for this task.
    pub background: bool,
    pub usage: TaskUsage,
    /// The last finished run of each phase, and the current run.
    pub phases: Vec<PhaseRun>,
    pub(crate) earlier_runs: EarlierRuns,
    /// Wall time of faults and writes minus their waits for pages: the latency of allocation.
    pub alloc_latency: LatencyHistogram,
    /// Counters of the machine at the start; after the end, the difference.
    pub vmstat: Vec<u64>,
    pub io_errors: u64,
    /// errno of the last madvise(), 0 if it succeeded.
    pub errno: i32,
}

/// All event counters, in the order of [`Event::ALL`].
pub fn snapshot(vmstat: &Vmstat) -> Vec<u64> {
    Event::ALL.iter().map(|&event| vmstat.get(event)).collect()
}

/// Difference to an earlier snapshot.
pub fn difference(now: &Vmstat, earlier: &[u64]) -> Vec<u64> {
    Event::ALL.iter().zip(earlier).map(|(&event, &was)| now.get(event) - was).collect()
}

impl TaskUsage {
    fn with(&self, other: &TaskUsage, count: impl Fn(u64, u64) -> u64) -> TaskUsage {
        TaskUsage {
            user_ns: count(self.user_ns, other.user_ns),
            system_ns: count(self.system_ns, other.system_ns),
            pgfault: count(self.pgfault, other.pgfault),
            pgmajfault: count(self.pgmajfault, other.pgmajfault),
            bytes: count(self.bytes, other.bytes),
            blocks_asked: count(self.blocks_asked, other.blocks_asked),
            blocks_got: count(self.blocks_got, other.blocks_got),
            objects_asked: count(self.objects_asked, other.objects_asked),
            objects_got: count(self.objects_got, other.objects_got),
        }
    }

    pub fn add(&mut self, other: &TaskUsage) {
        *self = self.with(other, |count, more| count + more);
    }

    pub fn since(&self, earlier: &TaskUsage) -> TaskUsage {
        self.with(earlier, |count, was| count - was)
    }
}

impl SimTask {
    /// After a failed allocation: replaces the remaining steps of a system call by frees of the
    /// objects it has allocated.
    pub(crate) fn undo_file_call(&mut self, unmade: ObjectKey) {
        self.steps.clear();
        let is_of = |key: &&ObjectKey| (key.is_pipe, key.number) == (unmade.is_pipe, unmade.number);
        self.steps.extend(self.file_objects.keys().filter(is_of).copied().map(ObjectStep::Free));
    }

    pub fn new(
        name: String,
        program: Program,
        mm: MmId,
        nr_files: usize,
        background: bool,
    ) -> Self {
        Self {
            name,
            group: None,
            start_jitter: 0,
            leader: 0,
            helpers: 0..0,
            service: None,
            serving: None,
            is_called: false,
            until_base: None,
            program,
            mm,
            regions: Vec::new(),
            blocks: Vec::new(),
            objects: Vec::new(),
            file_objects: BTreeMap::new(),
            steps: VecDeque::new(),
            open_files: FdTable::default(),
            step_of: None,
            paced: None,
            readahead: vec![ReadaheadState::default(); nr_files],
            call: None,
            call_of: None,
            shown_call: ShownCall::default(),
            call_began: 0,
            compacting_since: None,
            call_page_wait: 0,
            wait_began: 0,
            reporting: None,
            file_call: None,
            compute_left: 0,
            plug: IoPlug::default(),
            blocked: Blocked::Sleeping,
            stalled: false,
            waits_for: None,
            has_refaulted: false,
            rereads: false,
            cpu_ns: 0,
            program_ns: 0,
            lost: MemoryStalls::default(),
            killed: false,
            killed_for: None,
            refused: false,
            signalled: false,
            will_restart: false,
            restarts: 0,
            times_killed: 0,
            is_ending: false,
            crashed: false,
            stopped: false,
            began: None,
            ended: None,
            background,
            usage: TaskUsage::default(),
            phases: Vec::new(),
            earlier_runs: EarlierRuns::default(),
            alloc_latency: LatencyHistogram::new(),
            vmstat: Vec::new(),
            io_errors: 0,
            errno: 0,
        }
    }

    pub(crate) fn end_wait(&mut self, now: Nanos) {
        let waited = now.saturating_sub(self.wait_began);
        match self.waits_for.take() {
            Some(wait) => self.lost.waited[wait as usize] += waited,
            None if matches!(self.blocked, Blocked::Page | Blocked::Disk) => {
                self.lost.disk_ns += waited;
            }
            None => {}
        }
    }

    /// How the task was killed, if it was. A stop with another task does not count.
    pub fn ended_by(&self) -> Option<Incomplete> {
        match (self.killed, self.crashed) {
            (true, _) if self.refused => Some(Incomplete::Refused),
            (true, _) if self.signalled => Some(Incomplete::Signalled),
            (true, _) => Some(Incomplete::OomKilled),
            (false, true) => Some(Incomplete::IoError),
            (false, false) => None,
        }
    }

    /// Takes the place of a program in its next life. Phases that served requests are kept.
    pub(crate) fn succeed(&mut self, old: &mut SimTask) {
        (self.leader, self.helpers) = (old.leader, old.helpers.clone());
        self.start_jitter = old.start_jitter;
        (self.began, self.restarts) = (old.began, old.restarts + 1);
        (self.cpu_ns, self.times_killed) = (old.cpu_ns, old.times_killed);
        self.usage = std::mem::take(&mut old.usage);
        self.lost = std::mem::take(&mut old.lost);
        self.alloc_latency = std::mem::take(&mut old.alloc_latency);
        self.io_errors = old.io_errors;
        self.earlier_runs = std::mem::take(&mut old.earlier_runs);
        for run in std::mem::take(&mut old.phases) {
            let (phase, served) = self.earlier_runs.add(run);
            if let Some((served, time)) = served {
                let (all, time_of_all) = self.earlier_runs.lives.entry(phase).or_default();
                all.merge(&served);
                *time_of_all += time;
            }
        }
    }

    /// Whether the program runs: it has begun and not ended.
    pub fn exists(&self) -> bool {
        self.began.is_some() && !self.is_over()
    }

    /// Whether it neither sleeps of its own will nor is over.
    pub fn wants_to_run(&self) -> bool {
        self.exists() && self.blocked != Blocked::Sleeping
    }

    /// An additional thread of this program that has not started.
    pub(crate) fn new_thread(&self, nr_files: usize) -> SimTask {
        let (name, program) = (self.name.clone(), self.program.thread(0));
        let mut thread = SimTask::new(name, program, self.mm, nr_files, true);
        thread.leader = self.leader;
        thread
    }

    /// Reduces the last finished run but one of a phase to its totals, so that a task with many
    /// `loops` does not keep all counters of each.
    pub(crate) fn forget_earlier_run(&mut self, phase: u32) {
        let is_of = |run: &PhaseRun| run.phase == phase && run.ended.is_some();
        let Some(last) = self.phases.iter().rposition(is_of) else { return };
        let Some(at) = self.phases[..last].iter().position(is_of) else { return };
        let run = self.phases.remove(at);
        if let (_, Some((served, time))) = self.earlier_runs.add(run) {
            let (all, time_of_all) = self.earlier_runs.loops.get_or_insert_default();
            all.merge(&served);
            *time_of_all += time;
        }
    }

    pub(crate) fn served_now(&mut self) -> Option<&mut RequestResults> {
        self.phases.last_mut()?.served.as_deref_mut()
    }

    /// Takes the usage of another thread of the same program.
    pub(crate) fn absorb(&mut self, other: &mut SimTask) {
        self.usage.add(&std::mem::take(&mut other.usage));
        self.lost.add(&std::mem::take(&mut other.lost));
        self.alloc_latency.merge(&std::mem::take(&mut other.alloc_latency));
        self.io_errors += std::mem::take(&mut other.io_errors);
    }

    /// True if the task must exit as soon as it has a CPU.
    pub fn must_exit(&self) -> bool {
        self.killed || self.stopped
    }

    pub fn is_over(&self) -> bool {
        self.blocked == Blocked::Exited
    }
}
