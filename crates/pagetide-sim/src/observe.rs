//! What a run shows of itself: typed observations, in the order of time, for whoever wants to write them down.
//!
//! Linux: tracepoints, of vmscan and oom, and in the place of sched_switch and of the entries and exits of the
//! slow paths the *activities* of threads. The formats are not here: an [`Observer`] has them.
//!
//! Invariant: observers are told and never asked: a run with them and a run without are the same run.

use pagetide_core::daemon::Daemon;
use pagetide_core::effect::Throttle;
use pagetide_core::event::{Field, TraceEvent};
use pagetide_core::gfp::Gfp;
use pagetide_core::units::{Cpu, Nanos};
use pagetide_scenario::record::RunRecord;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who takes part in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cast {
    /// Number of CPUs.
    pub cpus: u16,
    /// Bytes in a page.
    pub page_size: u64,
    /// Paths of the scenario's groups, by their index in it.
    pub groups: Vec<String>,
    /// Every thread that there may be, by its number.
    pub threads: Vec<ThreadInfo>,
}

/// A thread, as /proc/PID would have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Its name: of a task, or of a thread of the kernel (`kswapd0`).
    pub comm: String,
    /// Its number for the kernel: no two threads have the same.
    pub pid: u32,
    pub role: Role,
}

/// Whose a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A thread of a task.
    Task {
        /// Index of the group that the task begins in; `None`: the root.
        group: Option<usize>,
        /// Which of the task's threads, from 0. Only tasks with services have several.
        nr: u32,
    },
    /// A thread of the kernel.
    Kernel(Daemon),
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// When, in virtual nanoseconds.
    pub at: Nanos,
    /// Who did it: a place in [`Cast::threads`].
    pub thread: usize,
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A step of the memory manager (docs/events.md), on a CPU.
    Event(Cpu, Event),
    /// The thread gets a CPU.
    SwitchIn(Cpu),
    /// The thread leaves its CPU.
    SwitchOut(Cpu, Left),
    /// A slice begins in the thread. Slices of a thread nest.
    Began {
        slice: Slice,
        /// Since when, if that is known only now. Nothing else of the thread was observed in between.
        since: Nanos,
    },
    /// A slice of the kind ends, and with it all in it. It need not have begun.
    Ended(Slice),
    /// The thread is over, and so is all that it was in the middle of.
    Exited(Exit),
}

/// Why a thread leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Another takes it; the thread could go on.
    Preempted,
    /// It sleeps: by its own wish, or, a thread of the kernel, until there is work.
    Sleeps,
    /// It waits for a page.
    Page,
    Throttled,
    /// A disk has no room for its requests.
    Disk,
    /// It is over.
    Exited,
}

/// Why a thread is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It has done its work.
    Done,
    /// The OOM killer, or an error that no program survives.
    Killed,
    /// The task that it was to run until has ended.
    Stopped,
}

/// Something that a thread is in for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// A call into the kernel. Only those are shown that do more than be done: they wait, reclaim or compact.
    Call(CallKind),
    /// Compaction for the thread's own allocation.
    DirectCompaction,
    /// A sleep in the middle of a call or of a daemon's work.
    Wait(Wait),
    /// A request of a service is served.
    Request {
        /// When it arrived.
        arrived: Nanos,
    },
    /// A thread of the kernel works. kswapd begins with its event `mm_vmscan_kswapd_wake`.
    Work,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// A page fault.
    Fault {
        /// It had to read (`pgmajfault`).
        major: bool,
    },
    Read,
    Write,
    /// A block, or an object, of kernel memory.
    KernelMemory,
    /// A write to a control file.
    ControlFile,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A page: to be read, written or moved.
    Page,
    /// A disk that has no room for more requests.
    Disk,
    /// Reclaim or writeback elsewhere.
    Throttled(Throttle),
}

/// An event of the core, with the names that its numbers have now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    event: TraceEvent,
    /// Of its groups and tasks, in the order of its fields; `None`: there is none any more.
    names: Vec<Option<String>>,
}

/// The value of a field of an [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number that is not negative.
    Number(u64),
    /// A scan priority.
    Priority(i8),
    /// Yes or no.
    Flag(bool),
    /// A word of the kernel's.
    Word(&'static str),
    /// What an allocation may do.
    Gfp(Gfp),
    /// Path of a group, or name of a task; `None`: it is gone.
    Name(Option<&'a str>),
}

impl Event {
    /// An event, with the names of its groups and tasks in the order of its fields.
    pub fn new(event: TraceEvent, names: Vec<Option<String>>) -> Event {
        Event { event, names }
    }

    /// The event, with numbers where names would be.
    pub fn raw(&self) -> &TraceEvent {
        &self.event
    }

    /// Name of the tracepoint.
    pub fn name(&self) -> &'static str {
        self.event.name()
    }

    /// Shows every field, with its name, in the order of the documentation.
    pub fn each_field(&self, mut show: impl FnMut(&'static str, Value<'_>)) {
        let mut names = self.names.iter();
        self.event.each_field(|field, value| {
            let value = match value {
                Field::Number(number) => Value::Number(number),
                Field::Priority(priority) => Value::Priority(priority),
                Field::Flag(flag) => Value::Flag(flag),
                Field::Name(word) => Value::Word(word),
                Field::Gfp(gfp) => Value::Gfp(gfp),
                Field::Group(_) | Field::Mm(_) => {
                    Value::Name(names.next().and_then(|name| name.as_deref()))
                }
            };
            show(field, value);
        });
    }
}

/// Writes down what happens in a run.
pub trait Observer {
    /// What it writes, for messages: "the events".
    fn what(&self) -> &'static str;

    /// The run is about to begin.
    fn begin(&mut self, cast: &Cast) -> io::Result<()>;

    /// Something happened, not before what was told before.
    fn observe(&mut self, observation: &Observation) -> io::Result<()>;

    /// The run is over; `is_cut`: not because its work was done.
    fn end(&mut self, at: Nanos, is_cut: bool) -> io::Result<()>;

    /// Nothing more will come: whatever is kept has to be written now. `None`: the run has no record, because it
    /// failed or was cancelled; then it may have failed before it began.
    fn close(&mut self, record: Option<&RunRecord>) -> io::Result<()>;
}

/// An observer of one run.
#[derive(Clone)]
pub struct Sink {
    observer: Arc<Mutex<dyn Observer + Send>>,
    is_complete: Arc<AtomicBool>,
}

impl Sink {
    /// Tells `observer`.
    pub fn new(observer: impl Observer + Send + 'static) -> Sink {
        let is_complete = Arc::new(AtomicBool::new(false));
        Sink { observer: Arc::new(Mutex::new(observer)), is_complete }
    }

    /// Whether all was taken, to the end of the run.
    pub fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Acquire)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, dyn Observer + Send + 'static> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn close(&self, record: Option<&RunRecord>, is_torn: bool) -> Result<(), Unwritten> {
        let mut observer = self.lock();
        observer.close(record).map_err(|source| Unwritten { what: observer.what(), source })?;
        self.is_complete.store(!is_torn, Ordering::Release);
        Ok(())
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}

/// An observer cannot write.
#[derive(Debug, thiserror::Error)]
#[error("{what} cannot be written: {source}")]
pub struct Unwritten {
    /// What it writes.
    pub what: &'static str,
    /// Why not.
    pub source: io::Error,
}
