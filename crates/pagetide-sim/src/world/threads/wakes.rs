//! Wake-ups: of daemons, of threads that wait for a page or are throttled, and by timers.
//!
//! Invariant: a woken thread has no wait and no timer.

use crate::observe::WaitReason;
use crate::task::Blocked;
use crate::world::{SimWorld, WorldThread};
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::interface::throttle::Throttle;
use pagetide_core::units::{NodeId, Pfn};

impl SimWorld {
    /// Ends a daemon's rest. A daemon that is throttled or waits for a disk is not resting, so
    /// nothing happens.
    pub(crate) fn wake_daemon(&mut self, daemon: Daemon) {
        let sleep = self.daemon(daemon);
        if sleep.is_held_up() {
            return;
        }
        if let Some(timer) = sleep.timer.take() {
            self.queue.cancel(timer);
        }
        self.wake(WorldThread::Daemon(daemon));
    }

    pub(crate) fn wake_page(&mut self, pfn: Pfn) {
        for thread in self.page_waiters.remove(&pfn.0).unwrap_or_default() {
            match thread {
                WorldThread::Task(task) => self.end_page_wait(task),
                WorldThread::Daemon(_) => self.show_wait_over(thread, WaitReason::Page),
            }
            self.wake(thread);
        }
    }

    pub(crate) fn end_page_wait(&mut self, id: usize) {
        let task = &mut self.tasks[id];
        task.end_wait(self.now);
        if task.blocked == Blocked::Page {
            task.blocked = Blocked::No;
            task.call_page_wait += self.now.saturating_sub(task.wait_began);
        }
        self.update_stall(id, None);
        self.show_wait_over(WorldThread::Task(id), WaitReason::Page);
    }

    pub(crate) fn wake_throttled(&mut self, node: NodeId, reason: Throttle) {
        for task in 0..self.tasks.len() {
            if self.tasks[task].blocked == Blocked::Throttled(node, reason) {
                self.end_throttle(WorldThread::Task(task));
            }
        }
        for daemon in Daemon::all(self.machine.nr_nodes()) {
            if self.daemon(daemon).throttled == Some((node, reason)) {
                self.end_throttle(WorldThread::Daemon(daemon));
            }
        }
    }

    pub(crate) fn end_throttle(&mut self, thread: WorldThread) {
        let (timer, reason) = match thread {
            WorldThread::Task(task) => {
                self.tasks[task].end_wait(self.now);
                let blocked = std::mem::replace(&mut self.tasks[task].blocked, Blocked::No);
                let reason = match blocked {
                    Blocked::Throttled(_, reason) => Some(reason),
                    Blocked::No
                    | Blocked::Sleeping
                    | Blocked::Page
                    | Blocked::Disk
                    | Blocked::Exited => None,
                };
                (self.timers[task].take(), reason)
            }
            WorldThread::Daemon(daemon) => {
                let sleep = self.daemon(daemon);
                let reason = sleep.throttled.take().map(|(_, reason)| reason);
                (sleep.timer.take(), reason)
            }
        };
        if let Some(reason) = reason {
            self.show_wait_over(thread, WaitReason::Throttled(reason));
        }
        if let Some(timer) = timer {
            self.queue.cancel(timer);
        }
        self.wake(thread);
    }

    pub(crate) fn timer_event(&mut self, thread: WorldThread) {
        match thread {
            WorldThread::Task(task) => {
                self.timers[task] = None;
                match self.tasks[task].blocked {
                    Blocked::Throttled(..) => self.end_throttle(thread),
                    Blocked::Sleeping => {
                        self.tasks[task].blocked = Blocked::No;
                        self.wake(thread);
                    }
                    Blocked::No | Blocked::Page | Blocked::Disk | Blocked::Exited => {}
                }
            }
            WorldThread::Daemon(daemon) => {
                let sleep = self.daemon(daemon);
                sleep.timer = None;
                if sleep.throttled.is_some() {
                    self.end_throttle(thread);
                } else {
                    self.wake(thread);
                }
            }
        }
    }
}
