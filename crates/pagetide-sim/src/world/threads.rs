//! Who can run: tasks, and the kernel's threads, as the scheduler numbers them.
//!
//! Invariant: [`World::thread_id`] and [`World::thread_of`] are each other's inverse; tasks come first.

use super::{Daemon, World};
use crate::scheduler::TaskId;
use pagetide_core::units::NodeId;

/// Who runs on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thread {
    Task(usize),
    Kswapd(NodeId),
    Flusher,
    Kcompactd(NodeId),
    Khugepaged,
    /// What was put off: a workqueue's thread.
    Kworker,
}

/// The kernel's threads on a machine of so many nodes, in the order of their numbers, with their nice
/// values. khugepaged gets what nobody else wants.
pub(super) fn kernel_threads(nr_nodes: usize) -> Vec<(Thread, i8)> {
    let nodes = || (0..nr_nodes).map(|node| NodeId(node as u8));
    let mut threads: Vec<_> = nodes().map(|node| (Thread::Kswapd(node), 0)).collect();
    threads.push((Thread::Flusher, 0));
    threads.extend(nodes().map(|node| (Thread::Kcompactd(node), 0)));
    threads.push((Thread::Khugepaged, 19));
    threads.push((Thread::Kworker, 0));
    threads
}

impl World {
    pub(super) fn thread_id(&self, thread: Thread) -> TaskId {
        let nr_nodes = self.kswapds.len();
        let at = match thread {
            Thread::Task(task) => return task as TaskId,
            Thread::Kswapd(node) => node.idx(),
            Thread::Flusher => nr_nodes,
            Thread::Kcompactd(node) => nr_nodes + 1 + node.idx(),
            Thread::Khugepaged => 2 * nr_nodes + 1,
            Thread::Kworker => 2 * nr_nodes + 2,
        };
        (self.tasks.len() + at) as TaskId
    }

    pub(super) fn thread_of(&self, id: TaskId) -> Thread {
        let (id, nr_tasks, nr_nodes) = (id as usize, self.tasks.len(), self.kswapds.len());
        if id < nr_tasks {
            return Thread::Task(id);
        }
        match id - nr_tasks {
            at if at < nr_nodes => Thread::Kswapd(NodeId(at as u8)),
            at if at == nr_nodes => Thread::Flusher,
            at if at <= 2 * nr_nodes => Thread::Kcompactd(NodeId((at - nr_nodes - 1) as u8)),
            at if at == 2 * nr_nodes + 1 => Thread::Khugepaged,
            _ => Thread::Kworker,
        }
    }

    /// All daemons, in the order in which they are woken.
    pub(super) fn daemon_threads(&self) -> impl Iterator<Item = Thread> {
        kernel_threads(self.kswapds.len()).into_iter().map(|(thread, _)| thread)
    }

    /// The sleep of a daemon; `None`: the thread is a task.
    pub(super) fn daemon(&mut self, thread: Thread) -> Option<&mut Daemon> {
        match thread {
            Thread::Task(_) => None,
            Thread::Kswapd(node) => Some(&mut self.kswapds[node.idx()]),
            Thread::Flusher => Some(&mut self.flusher),
            Thread::Kcompactd(node) => Some(&mut self.kcompactds[node.idx()]),
            Thread::Khugepaged => Some(&mut self.khugepaged),
            Thread::Kworker => Some(&mut self.kworker),
        }
    }
}
