//! Submission of the requests of threads, and their completion.
//!
//! A thread with an open plug ([`IoPlug`]) collects its requests over several time slices.
//!
//! Invariant: only an awake thread has requests in its plug.

use crate::disk::{IoPlug, Submitter};
use crate::observe::{ActivitySlice, WaitReason};
use crate::scheduler::WakeSource;
use crate::task::{Blocked, MemoryWait};
use crate::world::cpus::drain;
use crate::world::daemons::times::KswapdWait;
use crate::world::disks::{FullDisk, PendingIo};
use crate::world::{SimWorld, WorldThread};
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::interface::effect::{Effect, Io};
use pagetide_core::units::Cpu;
use pagetide_scenario::model::costs::Price;

impl SimWorld {
    pub(crate) fn plug(&mut self, thread: WorldThread) -> &mut IoPlug {
        match thread {
            WorldThread::Task(id) => &mut self.tasks[id].plug,
            WorldThread::Daemon(daemon) => &mut self.daemons.of_mut(daemon).plug,
        }
    }

    /// Plugs or submits the requests of a time slice of `thread`. Returns a disk that is now full
    /// for this thread, if any.
    pub(crate) fn submit_or_plug(
        &mut self,
        ios: &[Io],
        thread: WorldThread,
        cpu: Cpu,
        is_open: bool,
    ) -> Option<FullDisk> {
        let mut full = None;
        let now = self.now;
        for (at, &io) in ios.iter().enumerate() {
            let range = self.disks.range(io, self.machine.swap());
            let plug = self.plug(thread);
            let since = plug.time_in_step(at, ios.len(), now);
            if let Some(before) = plug.add(io, range, since) {
                let by = (thread, cpu);
                let swap = self.machine.swap();
                full = self.disks.submit(before, by, swap, now, &mut self.queue).or(full);
            }
        }
        // A thread that waits for a full disk sleeps, so its plug ends.
        if is_open && full.is_none() {
            return None;
        }
        let ios = self.plug(thread).take();
        if ios.is_empty() {
            return full;
        }
        let swap = self.machine.swap();
        self.disks.submit(ios, (thread, cpu), swap, now, &mut self.queue).or(full)
    }

    /// Puts `thread`, which has been blocked, to sleep until the disk accepts its requests.
    pub(crate) fn wait_for_disk(&mut self, thread: WorldThread, full: FullDisk) {
        match thread {
            WorldThread::Task(id) => {
                let task = &mut self.tasks[id];
                task.blocked = Blocked::Disk;
                task.wait_began = self.now;
                let reclaims = task.call.as_ref().is_some_and(|held| held.0.is_reclaiming());
                let rereads = full.submitter == Submitter::Reader && task.rereads;
                task.waits_for = match reclaims {
                    true => Some(MemoryWait::Throttled),
                    false => rereads.then_some(MemoryWait::Reread),
                };
            }
            WorldThread::Daemon(daemon) => {
                if let Daemon::Kswapd(node) = daemon {
                    self.daemons.times.kswapd_sleeps(node, KswapdWait::Disk, self.now);
                }
                self.daemons.of_mut(daemon).waits_for_disk = true;
            }
        }
        self.disks.waiters.push((thread, full));
        self.show_began(thread, self.now, ActivitySlice::Wait(WaitReason::Disk));
    }

    pub(crate) fn end_disk_wait(&mut self, thread: WorldThread) {
        let is_reader = self.disks.end_wait(thread);
        match thread {
            WorldThread::Task(id) => {
                let task = &mut self.tasks[id];
                task.end_wait(self.now);
                task.blocked = Blocked::No;
                // A wait to read is not a cost of memory; a wait to write (to free memory) is.
                if is_reader && task.call.is_some() {
                    task.call_page_wait += self.now.saturating_sub(task.wait_began);
                }
            }
            WorldThread::Daemon(daemon) => self.daemons.of_mut(daemon).waits_for_disk = false,
        }
        self.observing.show_wait_over(thread, WaitReason::Disk, self.now);
        self.wake(thread);
    }

    pub(crate) fn disk_event(&mut self, disk: usize) {
        self.disks.events[disk] = None;
        while let Some((PendingIo { io, cpu }, ok)) = self.disks.pop_completed(disk, self.now) {
            self.cpus.owe_one(cpu, Price::IoCompletion);
            let mut effects = Vec::new();
            drain(self.machine.io_done(io, ok, cpu, self.now), &mut effects, &mut self.cpus.late);
            self.machine.take_work();
            self.cpus.waker = Some(WakeSource { cpu, task: None });
            for effect in effects {
                debug_assert!(!matches!(effect, Effect::Submit(_)), "an interrupt starts no I/O");
                self.apply(effect, cpu);
            }
            self.cpus.waker = None;
        }
        self.disks.arm(disk, self.now, &mut self.queue);
        for thread in self.disks.ready(disk, self.now) {
            self.end_disk_wait(thread);
        }
    }
}
