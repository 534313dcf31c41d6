//! Observers of a run: typed observations, delivered in time order.
//!
//! Linux: tracepoints of vmscan and oom. In place of sched_switch and of the entry and exit of slow
//! paths, observations report the *slices* of activity of threads. Each [`Observer`] has its own
//! output format.
//!
//! Invariant: observers return nothing to the run, so they do not change it.

use pagetide_core::frames::gfp::Gfp;
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::interface::throttle::Throttle;
use pagetide_core::stats::event::{TraceEvent, TraceField};
use pagetide_core::units::{Cpu, Nanos};
use pagetide_scenario::record::RunRecord;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// CPUs, groups and threads of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunCast {
    pub cpus: u16,
    pub page_size: u64,
    /// Paths of the groups, by index in the setup.
    pub groups: Vec<String>,
    /// All threads of the run, by thread number.
    pub threads: Vec<ThreadInfo>,
}

/// A thread, with the fields of /proc/PID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Name of the task or kernel thread (`kswapd0`).
    pub comm: String,
    /// Unique in the run.
    pub pid: u32,
    pub role: ThreadRole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadRole {
    Task {
        /// Index of the task's initial group; `None`: the root.
        group: Option<usize>,
        /// Number of the thread in the task, from 0. Only tasks with services have several.
        nr: u32,
    },
    Kernel(Daemon),
}

/// Something that happened in a thread at a point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Virtual time in nanoseconds.
    pub at: Nanos,
    /// Index in [`RunCast::threads`].
    pub thread: usize,
    pub what: ObservationKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObservationKind {
    /// A trace event of the memory manager (docs/outputs.md), on a CPU.
    Event(Cpu, NamedEvent),
    SwitchIn(Cpu),
    SwitchOut(Cpu, SwitchReason),
    /// A slice starts in the thread. Slices of a thread nest.
    Began {
        slice: ActivitySlice,
        /// Start time. May be earlier than the observation, but not than the thread's last one.
        since: Nanos,
    },
    /// A slice of this kind ends, with all slices inside it. It may not have started.
    Ended(ActivitySlice),
    Exited(ExitReason),
    /// The thread, a watcher, has sent a signal or written a control file.
    Watched(WatcherObservation),
}

/// A deed of a watcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatcherObservation {
    /// `SIGTERM`, `SIGKILL`, or a file and the text written to it.
    pub act: String,
    /// Name of the task or of the group.
    pub target: String,
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchReason {
    /// Another thread preempts it.
    Preempted,
    /// A voluntary sleep, or a kernel thread without work.
    Sleeps,
    Page,
    Throttled,
    Disk,
    Exited,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitReason {
    Done,
    /// Killed by the OOM killer or by a fatal error.
    Killed,
    /// The task named by `until` has ended.
    Stopped,
}

/// An activity of a thread with a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivitySlice {
    /// A call into the kernel. Only calls that wait, reclaim or compact are reported.
    Call(CallKind),
    /// Compaction for the thread's own allocation.
    DirectCompaction,
    /// A sleep during a call or during a daemon's work.
    Wait(WaitReason),
    Request {
        arrived: Nanos,
    },
    /// Work of a kernel thread. For kswapd, the event `mm_vmscan_kswapd_wake` starts it.
    Work,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    Fault {
        /// A major fault (`pgmajfault`).
        major: bool,
    },
    Read,
    Write,
    /// Allocation of a block or slab object.
    KernelMemory,
    ControlFile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitReason {
    /// A page that is being read, written or migrated.
    Page,
    Disk,
    /// Throttled until other reclaim or writeback makes progress.
    Throttled(Throttle),
}

/// A trace event of the core, with the names of its groups and tasks at that time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEvent {
    event: TraceEvent,
    /// Names of its groups and tasks, in the order of its fields; `None`: removed or exited.
    names: Vec<Option<String>>,
}

/// The value of a field of a [`NamedEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventValue<'a> {
    Number(u64),
    Priority(i8),
    Flag(bool),
    /// A constant name of the kernel.
    Word(&'static str),
    Gfp(Gfp),
    /// Path of a group, or name of a task; `None`: removed or exited.
    Name(Option<&'a str>),
}

impl NamedEvent {
    /// `names`: of its groups and tasks, in the order of its fields.
    pub fn new(event: TraceEvent, names: Vec<Option<String>>) -> NamedEvent {
        NamedEvent { event, names }
    }

    /// The event with numbers instead of names.
    pub fn raw(&self) -> &TraceEvent {
        &self.event
    }

    pub fn name(&self) -> &'static str {
        self.event.name()
    }

    /// Calls `show` with the name and value of every field, in the order of the documentation.
    pub fn each_field(&self, mut show: impl FnMut(&'static str, EventValue<'_>)) {
        let mut names = self.names.iter();
        self.event.each_field(|field, value| {
            let value = match value {
                TraceField::Number(number) => EventValue::Number(number),
                TraceField::Priority(priority) => EventValue::Priority(priority),
                TraceField::Flag(flag) => EventValue::Flag(flag),
                TraceField::Name(word) => EventValue::Word(word),
                TraceField::Gfp(gfp) => EventValue::Gfp(gfp),
                TraceField::Group(_) | TraceField::Mm(_) => {
                    EventValue::Name(names.next().and_then(|name| name.as_deref()))
                }
            };
            show(field, value);
        });
    }
}

pub trait Observer {
    /// Name of the output for error messages, such as "the events".
    fn what(&self) -> &'static str;

    fn begin(&mut self, cast: &RunCast) -> io::Result<()>;

    /// Called for each observation, in time order.
    fn observe(&mut self, observation: &Observation) -> io::Result<()>;

    /// Called at the end of the run. `is_cut`: its tasks had not finished.
    fn end(&mut self, at: Nanos, is_cut: bool) -> io::Result<()>;

    /// Called last; must write all buffered output. `None`: the run failed or was cancelled, maybe
    /// before `begin`.
    fn close(&mut self, record: Option<&RunRecord>) -> io::Result<()>;
}

/// A shared handle of an observer of one run.
#[derive(Clone)]
pub struct ObserverHandle {
    observer: Arc<Mutex<dyn Observer + Send>>,
    is_complete: Arc<AtomicBool>,
}

impl ObserverHandle {
    pub fn new(observer: impl Observer + Send + 'static) -> ObserverHandle {
        let is_complete = Arc::new(AtomicBool::new(false));
        ObserverHandle { observer: Arc::new(Mutex::new(observer)), is_complete }
    }

    /// True if the observer has written everything up to the end of the run.
    pub fn is_complete(&self) -> bool {
        self.is_complete.load(Ordering::Acquire)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, dyn Observer + Send + 'static> {
        self.observer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn close(
        &self,
        record: Option<&RunRecord>,
        is_torn: bool,
    ) -> Result<(), ObserverError> {
        let mut observer = self.lock();
        observer.close(record).map_err(|source| ObserverError { what: observer.what(), source })?;
        self.is_complete.store(!is_torn, Ordering::Release);
        Ok(())
    }
}

impl fmt::Debug for ObserverHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{what} cannot be written: {source}")]
pub struct ObserverError {
    pub what: &'static str,
    pub source: io::Error,
}
