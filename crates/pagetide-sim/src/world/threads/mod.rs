//! Threads: tasks and kernel daemons, their scheduler ids, and the events of the world.
//!
//! Invariant: [`ThreadNumbers::id`] and [`ThreadNumbers::thread`] are inverse; task ids come first.

pub(crate) mod waits;
mod wakes;

use crate::event_queue::EventQueue;
use crate::scheduler::{GroupId, TaskId};
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::process::Machine;
use pagetide_core::units::Cpu;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorldThread {
    Task(usize),
    Daemon(Daemon),
}

/// Events are the only times at which the state of the world changes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WorldEvent {
    /// The time slice of a CPU ends, or an idle CPU starts to work.
    Cpu(Cpu),
    Disk(usize),
    /// A sleep or a throttle times out.
    Timer(WorldThread),
    Start(usize),
    /// A timer tick while objects wait for a grace period.
    GracePeriod,
    /// A request of a task's service arrives, or its load ends.
    Arrival(usize),
    /// The period of a group's cpu.max ends.
    Period(GroupId),
}

pub(crate) type WorldQueue = EventQueue<WorldEvent>;

/// Numbers the threads of a run, for the scheduler and for observers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ThreadNumbers {
    pub nr_tasks: usize,
    pub nr_nodes: usize,
}

impl ThreadNumbers {
    pub fn id(self, thread: WorldThread) -> TaskId {
        let at = match thread {
            WorldThread::Task(task) => return task as TaskId,
            WorldThread::Daemon(daemon) => daemon.idx(self.nr_nodes),
        };
        (self.nr_tasks + at) as TaskId
    }

    pub fn thread(self, id: TaskId) -> WorldThread {
        match (id as usize).checked_sub(self.nr_tasks) {
            None => WorldThread::Task(id as usize),
            Some(at) => WorldThread::Daemon(Daemon::at(at, self.nr_nodes)),
        }
    }

    pub fn len(self) -> usize {
        self.nr_tasks + Daemon::all(self.nr_nodes).count()
    }
}

/// khugepaged has the lowest priority.
pub(crate) fn nice_of(daemon: Daemon) -> i8 {
    match daemon {
        Daemon::Khugepaged => 19,
        Daemon::Kswapd(_) | Daemon::Flusher | Daemon::Kcompactd(_) | Daemon::Kworker => 0,
    }
}

/// CPU affinity of a daemon: kswapd and kcompactd run on the CPUs of their node, if it has any.
pub(crate) fn cpus_of(daemon: Daemon, machine: &Machine, nr_cpus: u16) -> Option<Range<u16>> {
    let node = match daemon {
        Daemon::Kswapd(node) | Daemon::Kcompactd(node) => node,
        Daemon::Khugepaged | Daemon::Flusher | Daemon::Kworker => return None,
    };
    let mut of_node = (0..nr_cpus).filter(|cpu| machine.mem.cpu_node(Cpu(*cpu)) == node);
    let first = of_node.next()?;
    Some(first..of_node.next_back().unwrap_or(first) + 1)
}
