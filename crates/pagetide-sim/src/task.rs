//! A program on the simulated machine: what it does next, what it waits for, what it has cost.
//!
//! A task executes the operations of its [`Program`] in *pieces*: a piece is CPU time during which
//! no effect of what it did is carried out. It ends when an effect must be carried out, when the task has to wait, or
//! after [`PIECE_NS`]. Another thread may take the CPU meanwhile (`world/piece.rs`).

use crate::histogram::LatencyHistogram;
use crate::meter::Counts;
use crate::world::names::OpenFiles;
use crate::world::service::{Served, Service};
use crate::world::slab_levels::SlabLevels;
use crate::world::ShownCall;
use pagetide_core::process::page_table::VmaId;
use pagetide_core::process::readahead::ReadaheadState;
use pagetide_core::process::Call;
use pagetide_core::process::MmId;
use pagetide_core::psi::Psi;
use pagetide_core::slab::Object;
use pagetide_core::units::{CacheId, Nanos, NodeId, Pfn, NR_PAGE_ORDERS};
use pagetide_core::vmstat::{Event, Vmstat};
use pagetide_scenario::op::Op;
use pagetide_scenario::record::Ended;
use pagetide_scenario::workload::Program;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Longest piece: bounds how late a task notices that its slice is used up.
pub const PIECE_NS: Nanos = 50_000;

/// What a task has done, for itself.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// CPU time in user mode.
    pub user_ns: Nanos,
    /// CPU time in the kernel.
    pub system_ns: Nanos,
    /// Page faults, retries included (as the kernel counts `pgfault`).
    pub pgfault: u64,
    /// Faults that read.
    pub pgmajfault: u64,
    /// Bytes accessed, read or written.
    pub bytes: u64,
    /// Blocks of kernel memory asked for.
    pub blocks_asked: u64,
    /// Those that there were.
    pub blocks_got: u64,
    /// Objects of kernel caches asked for.
    pub objects_asked: u64,
    /// Those that there were.
    pub objects_got: u64,
}

/// What a task waits for that it would not with more memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryWait {
    /// A page that had been evicted from its working set.
    Refault,
    /// Something while it reclaims.
    Reclaim,
    /// Reclaim that goes on elsewhere, or writes.
    Throttled,
    /// That fewer pages are dirty.
    Dirty,
}

/// Time lost to want of memory, and memory that was given.
#[derive(Clone, Debug, Default)]
pub struct Lost {
    /// By [`MemoryWait`]; of reclaim also the CPU time.
    pub waited: [Nanos; 4],
    /// Pages given to it, and to the kernel on its behalf.
    pub allocated: u64,
}

impl Lost {
    fn add(&mut self, other: &Lost) {
        self.waited.iter_mut().zip(other.waited).for_each(|(waited, more)| *waited += more);
        self.allocated += other.allocated;
    }
}

/// A phase while it runs, then its result.
#[derive(Clone, Debug)]
pub struct PhaseRun {
    /// Index of the phase in the task.
    pub phase: u32,
    /// When it began.
    pub began: Nanos,
    /// When it ended.
    pub ended: Option<Nanos>,
    /// What ended it before it was done, if the task was killed in it.
    pub cut_short: Option<Ended>,
    /// The task's usage when it began; afterwards the difference.
    pub usage: Usage,
    /// The machine's counters when it began; afterwards the difference.
    pub vmstat: Vec<u64>,
    /// Levels of the machine when it ended, such as `nr_free_pages`.
    pub levels: Vec<(&'static str, u64)>,
    /// Free blocks of its zones when it ended.
    pub zones: Vec<ZoneBlocks>,
    /// What the kernel's caches had when it ended, where tasks make objects.
    pub slabs: SlabLevels,
    /// Extra results, such as residency.
    pub(crate) extra: Vec<crate::metrics::Level>,
    /// The groups' counters when it began; afterwards the difference, with the levels at its end.
    pub groups: Vec<GroupCounts>,
    /// The requests of a service.
    pub served: Option<Box<Served>>,
    /// CPU time and pressure when it began; afterwards the difference.
    pub times: PhaseTimes,
    /// Operations of the task, of the kswapds and of the flusher when it began, if they are counted; afterwards the difference.
    pub(crate) work: Option<[Counts; 3]>,
}

/// A zone and its free blocks of each order: [`Machine::free_blocks_of_zones`](pagetide_core::process::Machine).
pub type ZoneBlocks = (NodeId, &'static str, [u64; NR_PAGE_ORDERS]);

/// What the machine has counted so far and has at a moment.
#[derive(Clone, Debug)]
pub struct Counted {
    /// Its counters.
    pub vmstat: Vec<u64>,
    /// Its levels, such as `nr_free_pages`.
    pub levels: Vec<(&'static str, u64)>,
    /// Free blocks of its zones.
    pub zones: Vec<ZoneBlocks>,
    /// Time in which somebody waited for memory, and in which nobody else ran.
    pub psi: Psi,
}

/// Time used, and lost for want of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes {
    /// CPU time of the task, all its threads.
    pub cpu_ns: Nanos,
    /// CPU time of the kswapds.
    pub kswapd_ns: Nanos,
    /// CPU time of the thread that writes dirty pages back.
    pub flusher_ns: Nanos,
    /// Somebody waited for memory.
    pub some_ns: Nanos,
    /// Somebody did, and nobody else ran.
    pub full_ns: Nanos,
}

impl PhaseTimes {
    /// What has come since.
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

/// What a group has and what has happened to it.
#[derive(Clone, Debug)]
pub struct GroupCounts {
    /// Index of the group in the setup.
    pub group: usize,
    /// Sizes in bytes, by the names of memory.stat.
    pub levels: Vec<(&'static str, u64)>,
    /// Counts, by the names of memory.stat and memory.events.
    pub counts: Vec<(&'static str, u64)>,
}

/// What a group has, has had, and has waited since it was made.
#[derive(Clone, Copy, Debug)]
pub struct GroupTotals {
    /// Pages charged to it.
    pub usage: u64,
    /// Pages of kernel memory.
    pub kmem: u64,
    /// The most pages.
    pub peak: u64,
    /// The most pages of kernel memory.
    pub kmem_peak: u64,
    /// Time in which one of its tasks waited for memory.
    pub some_ns: Nanos,
    /// Time in which all of them did.
    pub full_ns: Nanos,
}

impl GroupCounts {
    /// Takes off the counts what had happened before.
    pub fn since(&mut self, before: &[GroupCounts]) {
        let Some(before) = before.iter().find(|before| before.group == self.group) else { return };
        for ((_, count), (_, before)) in self.counts.iter_mut().zip(&before.counts) {
            // A group that was removed and made again counts from 0.
            *count = count.saturating_sub(*before);
        }
    }
}

/// Why a task does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// It does run, or could.
    No,
    /// Not started, or asleep by its own wish.
    Sleeping,
    /// Waits for a page.
    Page,
    /// Waits until a disk has room for more requests.
    Disk,
    /// Sleeps inside reclaim or writeback.
    Throttled(NodeId, pagetide_core::effect::Throttle),
    /// Ended.
    Exited,
}

/// An object of a name or a pipe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ThingKey {
    /// Of a pipe, not of a name.
    pub is_pipe: bool,
    /// Number of the name, slot of the pipe.
    pub number: u32,
    /// Which of its objects.
    pub part: u8,
}

/// What a name or a pipe has one of.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub cache: CacheId,
    /// The kernel charges it to the task's group.
    pub account: bool,
}

/// A part of a system call on a name or a pipe.
#[derive(Clone, Copy, Debug)]
pub enum ObjectStep {
    /// Allocates an object of a cache.
    Alloc(ThingKey, Part),
    /// Frees it.
    Free(ThingKey),
    /// Leaves it to the kernel.
    Keep(ThingKey),
}

/// A running program, or one of the threads of one.
pub struct Task {
    pub name: String,
    /// The group of the setup that it is in; `None`: the root.
    pub group: Option<usize>,
    /// The program whose thread it is: a program is its own first thread. Index of a task.
    pub leader: usize,
    /// A program's other threads: indices of tasks.
    pub helpers: Range<usize>,
    /// The service that it performs, if it is the first thread of one.
    pub(crate) service: Option<Box<Service>>,
    /// When the request arrived that the thread serves.
    pub(crate) serving: Option<Nanos>,
    /// The thread was woken for a request.
    pub(crate) is_called: bool,
    /// When the phase's first [`Op::Until`] was.
    pub(crate) until_base: Option<Nanos>,
    /// Where its operations come from.
    pub program: Program,
    /// Its address space.
    pub mm: MmId,
    /// Regions in the order of their introduction.
    pub regions: Vec<VmaId>,
    /// Its blocks of kernel memory, by slot.
    pub blocks: Vec<Option<Pfn>>,
    /// Its objects of kernel caches, by slot.
    pub objects: Vec<Option<Object>>,
    /// Objects of its names and pipes.
    pub things: BTreeMap<ThingKey, Object>,
    /// What is left to do of a system call on one of them.
    pub steps: VecDeque<ObjectStep>,
    /// Its table of open files.
    pub(crate) open_files: OpenFiles,
    /// Whose object the call in progress is to bring.
    pub step_of: Option<ThingKey>,
    /// When the phase's last pause ended ([`Op::Pace`]), or would have, had there been need of one.
    pub paced: Option<Nanos>,
    /// Read-ahead state of each file it reads, by index of the setup's files.
    pub readahead: Vec<ReadaheadState>,
    /// The call in progress, and what it serves, unless a step of it is done at the moment.
    pub call: Option<Box<(Call, Op)>>,
    /// What the call in progress serves, also while a step of it is done, and what was shown of it.
    pub(crate) call_of: Option<Op>,
    pub(crate) shown_call: ShownCall,
    /// When the call began, and how long it has waited for pages since.
    pub call_began: Nanos,
    /// The call compacts since then.
    pub compacting_since: Option<Nanos>,
    /// Time the call has waited for pages.
    pub call_page_wait: Nanos,
    /// When the present wait began.
    pub wait_began: Nanos,
    /// The phase that it reports at the moment, and when that ended.
    pub(crate) reporting: Option<(u32, Nanos)>,
    /// CPU time left of a compute operation.
    pub compute_left: Nanos,
    /// Why it does not run.
    pub blocked: Blocked,
    /// The call is counted as a memory stall at the moment.
    pub stalled: bool,
    /// What the present wait is for, if it is for want of memory.
    pub waits_for: Option<MemoryWait>,
    /// CPU time of its pieces, with the switches to it and the interrupts that it was charged.
    pub cpu_ns: Nanos,
    /// What its program takes for each operation of its present phase.
    pub program_ns: Nanos,
    /// What want of memory has cost it.
    pub lost: Lost,
    /// It ended for want of memory: the OOM killer chose it, or `refused`.
    pub killed: bool,
    /// It was refused memory that it cannot do without, and there was nobody to kill.
    pub refused: bool,
    /// A fault of it could not be read, which no program survives.
    pub crashed: bool,
    /// The task that it was to run until has ended.
    pub stopped: bool,
    /// When it began, if it has.
    pub began: Option<Nanos>,
    /// When it ended, if it has.
    pub ended: Option<Nanos>,
    /// Does not keep the run alive.
    pub background: bool,
    /// Totals.
    pub usage: Usage,
    /// Phases that began.
    pub phases: Vec<PhaseRun>,
    /// Wall time of faults and writes less their waits for pages: the price of memory.
    pub alloc_latency: LatencyHistogram,
    /// The machine's counters when it began, then the difference over its life.
    pub vmstat: Vec<u64>,
    /// Calls that failed because a disk did.
    pub io_errors: u64,
    /// Number of the error of the last madvise(), 0 if it succeeded.
    pub errno: i32,
}

/// All event counters, in the order of [`Event::ALL`].
pub fn snapshot(vmstat: &Vmstat) -> Vec<u64> {
    Event::ALL.iter().map(|&event| vmstat.get(event)).collect()
}

/// The difference to an earlier snapshot.
pub fn difference(now: &Vmstat, earlier: &[u64]) -> Vec<u64> {
    Event::ALL.iter().zip(earlier).map(|(&event, &was)| now.get(event) - was).collect()
}

impl Usage {
    /// Both together.
    pub fn add(&mut self, other: &Usage) {
        self.user_ns += other.user_ns;
        self.system_ns += other.system_ns;
        self.pgfault += other.pgfault;
        self.pgmajfault += other.pgmajfault;
        self.bytes += other.bytes;
        self.blocks_asked += other.blocks_asked;
        self.blocks_got += other.blocks_got;
        self.objects_asked += other.objects_asked;
        self.objects_got += other.objects_got;
    }

    /// What was added since `earlier`.
    pub fn since(&self, earlier: &Usage) -> Usage {
        Usage {
            user_ns: self.user_ns - earlier.user_ns,
            system_ns: self.system_ns - earlier.system_ns,
            pgfault: self.pgfault - earlier.pgfault,
            pgmajfault: self.pgmajfault - earlier.pgmajfault,
            bytes: self.bytes - earlier.bytes,
            blocks_asked: self.blocks_asked - earlier.blocks_asked,
            blocks_got: self.blocks_got - earlier.blocks_got,
            objects_asked: self.objects_asked - earlier.objects_asked,
            objects_got: self.objects_got - earlier.objects_got,
        }
    }
}

impl Task {
    /// What is left to do of a call that cannot make a thing: to free what it has made of it.
    pub(crate) fn undo_thing(&mut self, unmade: ThingKey) {
        self.steps.clear();
        let is_of = |key: &&ThingKey| (key.is_pipe, key.number) == (unmade.is_pipe, unmade.number);
        self.steps.extend(self.things.keys().filter(is_of).copied().map(ObjectStep::Free));
    }

    /// A task that has not begun.
    pub fn new(
        name: String,
        program: Program,
        mm: MmId,
        nr_files: usize,
        background: bool,
    ) -> Task {
        Task {
            name,
            group: None,
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
            things: BTreeMap::new(),
            steps: VecDeque::new(),
            open_files: OpenFiles::default(),
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
            compute_left: 0,
            blocked: Blocked::Sleeping,
            stalled: false,
            waits_for: None,
            cpu_ns: 0,
            program_ns: 0,
            lost: Lost::default(),
            killed: false,
            refused: false,
            crashed: false,
            stopped: false,
            began: None,
            ended: None,
            background,
            usage: Usage::default(),
            phases: Vec::new(),
            alloc_latency: LatencyHistogram::new(),
            vmstat: Vec::new(),
            io_errors: 0,
            errno: 0,
        }
    }

    /// The present wait has ended.
    pub(crate) fn end_wait(&mut self, now: Nanos) {
        if let Some(wait) = self.waits_for.take() {
            self.lost.waited[wait as usize] += now.saturating_sub(self.wait_began);
        }
    }

    /// What ended it, or is about to, before it was done. To be stopped with another task is no such end.
    pub fn ended_by(&self) -> Option<Ended> {
        match (self.killed, self.crashed) {
            (true, _) => Some(Ended::OomKilled),
            (false, true) => Some(Ended::IoError),
            (false, false) => None,
        }
    }

    /// A thread of this program that has not begun.
    pub(crate) fn new_thread(&self, nr_files: usize) -> Task {
        let (name, program) = (self.name.clone(), self.program.thread(0));
        let mut thread = Task::new(name, program, self.mm, nr_files, true);
        thread.leader = self.leader;
        thread
    }

    /// The requests of the phase under way.
    pub(crate) fn served_now(&mut self) -> Option<&mut Served> {
        self.phases.last_mut()?.served.as_deref_mut()
    }

    /// Takes what another thread of the same program has used.
    pub(crate) fn absorb(
        &mut self,
        usage: Usage,
        latency: &LatencyHistogram,
        io_errors: u64,
        lost: &Lost,
    ) {
        self.usage.add(&usage);
        self.lost.add(lost);
        self.alloc_latency.merge(latency);
        self.io_errors += io_errors;
    }

    /// Whether it must not go on: it ends as soon as it has a CPU.
    pub fn must_exit(&self) -> bool {
        self.killed || self.stopped
    }

    /// Whether it has ended or was killed.
    pub fn is_over(&self) -> bool {
        self.blocked == Blocked::Exited
    }
}
