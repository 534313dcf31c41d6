//! Who can run: tasks and the kernel's daemons, as the scheduler numbers them.
//!
//! Invariant: [`World::thread_id`] and [`World::thread_of`] are each other's inverse; tasks come first.

use super::{DaemonSleep, World};
use crate::scheduler::TaskId;
use pagetide_core::daemon::Daemon;

/// Who runs on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thread {
    Task(usize),
    Daemon(Daemon),
}

/// khugepaged gets what nobody else wants.
pub(super) fn nice_of(daemon: Daemon) -> i8 {
    match daemon {
        Daemon::Khugepaged => 19,
        Daemon::Kswapd(_) | Daemon::Flusher | Daemon::Kcompactd(_) | Daemon::Kworker => 0,
    }
}

impl World {
    pub(super) fn thread_id(&self, thread: Thread) -> TaskId {
        let at = match thread {
            Thread::Task(task) => return task as TaskId,
            Thread::Daemon(daemon) => daemon.idx(self.machine.nr_nodes()),
        };
        (self.tasks.len() + at) as TaskId
    }

    pub(super) fn thread_of(&self, id: TaskId) -> Thread {
        match (id as usize).checked_sub(self.tasks.len()) {
            None => Thread::Task(id as usize),
            Some(at) => Thread::Daemon(Daemon::at(at, self.machine.nr_nodes())),
        }
    }

    /// The sleep of a daemon.
    pub(super) fn daemon(&mut self, daemon: Daemon) -> &mut DaemonSleep {
        &mut self.daemons[daemon.idx(self.machine.nr_nodes())]
    }
}
