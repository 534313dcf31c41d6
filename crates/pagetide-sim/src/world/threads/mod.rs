//! Threads: tasks and kernel daemons, and their scheduler ids.
//!
//! Invariant: [`SimWorld::thread_id`] and [`SimWorld::thread_of`] are inverse; task ids come first.

mod wakes;

use crate::scheduler::TaskId;
use crate::world::{DaemonSleep, SimWorld};
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::process::Machine;
use pagetide_core::units::Cpu;
use std::ops::Range;

/// A schedulable entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorldThread {
    Task(usize),
    Daemon(Daemon),
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

impl SimWorld {
    pub(crate) fn thread_id(&self, thread: WorldThread) -> TaskId {
        let at = match thread {
            WorldThread::Task(task) => return task as TaskId,
            WorldThread::Daemon(daemon) => daemon.idx(self.machine.nr_nodes()),
        };
        (self.tasks.len() + at) as TaskId
    }

    pub(crate) fn thread_of(&self, id: TaskId) -> WorldThread {
        match (id as usize).checked_sub(self.tasks.len()) {
            None => WorldThread::Task(id as usize),
            Some(at) => WorldThread::Daemon(Daemon::at(at, self.machine.nr_nodes())),
        }
    }

    pub(crate) fn daemon(&mut self, daemon: Daemon) -> &mut DaemonSleep {
        &mut self.daemons[daemon.idx(self.machine.nr_nodes())]
    }
}
