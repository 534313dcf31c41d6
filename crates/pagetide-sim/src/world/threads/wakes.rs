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
        let sleep = self.daemons.of(daemon);
        if sleep.throttled.is_none() && !sleep.waits_for_disk {
            let thread = WorldThread::Daemon(daemon);
            self.waits.cancel_timer(thread, &mut self.queue);
            self.wake(thread);
        }
    }

    pub(crate) fn wake_page(&mut self, pfn: Pfn) {
        for thread in self.waits.take_page(pfn) {
            match thread {
                WorldThread::Task(task) => self.end_page_wait(task),
                WorldThread::Daemon(_) => {
                    self.observing.show_wait_over(thread, WaitReason::Page, self.now)
                }
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
        self.observing.show_wait_over(WorldThread::Task(id), WaitReason::Page, self.now);
    }

    pub(crate) fn wake_throttled(&mut self, node: NodeId, reason: Throttle) {
        for task in 0..self.tasks.len() {
            if self.tasks[task].blocked == Blocked::Throttled(node, reason) {
                self.end_throttle(WorldThread::Task(task));
            }
        }
        for daemon in self.daemons.throttled(node, reason) {
            self.end_throttle(WorldThread::Daemon(daemon));
        }
    }

    pub(crate) fn end_throttle(&mut self, thread: WorldThread) {
        let reason = match thread {
            WorldThread::Task(task) => {
                self.tasks[task].end_wait(self.now);
                let blocked = std::mem::replace(&mut self.tasks[task].blocked, Blocked::No);
                match blocked {
                    Blocked::Throttled(_, reason) => Some(reason),
                    Blocked::No
                    | Blocked::Sleeping
                    | Blocked::Page
                    | Blocked::Disk
                    | Blocked::Exited => None,
                }
            }
            WorldThread::Daemon(daemon) => {
                self.daemons.of_mut(daemon).throttled.take().map(|(_, reason)| reason)
            }
        };
        if let Some(reason) = reason {
            self.observing.show_wait_over(thread, WaitReason::Throttled(reason), self.now);
        }
        self.waits.cancel_timer(thread, &mut self.queue);
        self.wake(thread);
    }

    pub(crate) fn timer_event(&mut self, thread: WorldThread) {
        self.waits.timer_expired(thread);
        match thread {
            WorldThread::Task(task) => match self.tasks[task].blocked {
                Blocked::Throttled(..) => self.end_throttle(thread),
                Blocked::Sleeping => self.wake_sleeper(task),
                Blocked::No | Blocked::Page | Blocked::Disk | Blocked::Exited => {}
            },
            WorldThread::Daemon(daemon) => match self.daemons.of(daemon).throttled {
                Some(_) => self.end_throttle(thread),
                None => self.wake(thread),
            },
        }
    }
}
