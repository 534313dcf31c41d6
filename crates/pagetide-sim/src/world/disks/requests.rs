//! The world's disks: submission and completion of requests.
//!
//! Linux: blk-mq. The requests of a time slice are submitted together. A thread with an open plug
//! ([`IoPlug`]) collects them over several slices. A submitter sleeps while the disk is full
//! (disk/throttle.rs).
//!
//! Invariant: only an awake thread has requests in its plug. A request has one entry in `pending`
//! from its submission to its completion, and a busy disk has exactly one event.

use crate::disk::{Disk, DiskRange, DiskRequest, DiskStats, IoKind, IoPlug, Submitter};
use crate::observe::{ActivitySlice, WaitReason};
use crate::scheduler::WakeSource;
use crate::task::{Blocked, MemoryWait};
use crate::world::daemons::times::KswapdWait;
use crate::world::event::WorldEvent;
use crate::world::threads::WorldThread;
use crate::world::{drain, FullDisk, PendingIo, SimWorld};
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::interface::effect::{Effect, Io};
use pagetide_core::units::{Cpu, Nanos};
use pagetide_scenario::costs::Price;

impl SimWorld {
    pub(crate) fn disk_stats(&self) -> impl Iterator<Item = DiskStats> + '_ {
        self.disks.iter().map(Disk::stats)
    }

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
            let range = self.disk_range(io);
            let plug = self.plug(thread);
            let since = plug.time_in_step(at, ios.len(), now);
            if let Some(before) = plug.add(io, range, since) {
                full = self.submit_all(before, thread, cpu).or(full);
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
        self.submit_all(ios, thread, cpu).or(full)
    }

    /// The pages of a disk that a request reads or writes.
    fn disk_range(&self, io: Io) -> DiskRange {
        let (disk, kind, offset, pages) = match io {
            Io::ReadFile { file, index, nr } => {
                let (disk, base) = self.file_base[file];
                (disk, IoKind::Read, base + u64::from(index), nr)
            }
            Io::WriteFile { file, index, nr } => {
                let (disk, base) = self.file_base[file];
                (disk, IoKind::Write, base + u64::from(index), nr)
            }
            Io::SwapIn { slot, .. } => (self.swap_disk, IoKind::Read, u64::from(slot.0), 1),
            Io::SwapOut { slot, nr, .. } => (self.swap_disk, IoKind::Write, u64::from(slot.0), nr),
        };
        DiskRange { disk, kind, offset, pages }
    }

    /// Submits requests, each with the time of its arrival in the plug. Returns a disk that is now
    /// full for this thread, if any.
    pub(crate) fn submit_all(
        &mut self,
        ios: Vec<(Io, Nanos)>,
        thread: WorldThread,
        cpu: Cpu,
    ) -> Option<FullDisk> {
        let mut batch: Vec<(usize, DiskRequest)> = Vec::with_capacity(ios.len());
        for (io, since) in ios {
            let DiskRange { disk, kind, offset, pages } = self.disk_range(io);
            let submitter = match (kind, thread) {
                (IoKind::Read, _) => Submitter::Reader,
                (IoKind::Write, WorldThread::Daemon(Daemon::Kswapd(_))) => Submitter::Kswapd,
                (IoKind::Write, _) => Submitter::Writeback,
            };
            let id = self.pending_id(PendingIo { io, cpu });
            let plugged = self.now - since;
            let id = id as u64;
            let request = DiskRequest { id, kind, offset, pages, submitter, plugged };
            batch.push((disk, request));
        }
        let mut full = None;
        for disk in 0..self.disks.len() {
            let of_disk =
                || batch.iter().filter(|(of, _)| *of == disk).map(|(_, request)| *request);
            if of_disk().next().is_none() {
                continue;
            }
            self.disks[disk].submit_all(self.now, of_disk());
            self.arm_disk(disk);
            for submitter in of_disk().map(|request| request.submitter) {
                if self.disks[disk].room(submitter, self.now) == 0 {
                    full = Some(FullDisk { disk, submitter });
                }
            }
        }
        full
    }

    fn pending_id(&mut self, pending: PendingIo) -> usize {
        match self.pending_free.pop() {
            Some(id) => {
                self.pending[id] = Some(pending);
                id
            }
            None => {
                self.pending.push(Some(pending));
                self.pending.len() - 1
            }
        }
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
        self.disk_waiters.push((thread, full));
        self.show_began(thread, self.now, ActivitySlice::Wait(WaitReason::Disk));
    }

    /// Ends the sleep of [`SimWorld::wait_for_disk`].
    pub(crate) fn end_disk_wait(&mut self, thread: WorldThread) {
        let reads = |(waiter, full): &(WorldThread, FullDisk)| {
            *waiter == thread && full.submitter == Submitter::Reader
        };
        let is_reader = self.disk_waiters.iter().any(reads);
        self.disk_waiters.retain(|(waiter, _)| *waiter != thread);
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
        self.show_wait_over(thread, WaitReason::Disk);
        self.wake(thread);
    }

    pub(crate) fn arm_disk(&mut self, disk: usize) {
        if let Some(event) = self.disk_events[disk].take() {
            self.queue.cancel(event);
        }
        if let Some(at) = self.disks[disk].next_completion() {
            let at = at.max(self.now);
            self.disk_events[disk] = Some(self.queue.push(at, WorldEvent::Disk(disk)));
        }
    }

    pub(crate) fn disk_event(&mut self, disk: usize) {
        self.disk_events[disk] = None;
        while let Some(completion) = self.disks[disk].pop_completion(self.now) {
            let id = completion.id as usize;
            let Some(PendingIo { io, cpu }) = self.pending[id].take() else {
                unreachable!("a request completes once")
            };
            self.pending_free.push(id);
            self.meter.at(cpu);
            self.cpus[cpu].debt += self.meter.charge(Price::IoCompletion, 1);
            let mut effects = Vec::new();
            let ok = completion.result.is_ok();
            drain(self.machine.io_done(io, ok, cpu, self.now), &mut effects, &mut self.late);
            self.machine.take_work();
            self.waker = Some(WakeSource { cpu, task: None });
            for effect in effects {
                debug_assert!(!matches!(effect, Effect::Submit(_)), "an interrupt starts no I/O");
                self.apply(effect, cpu);
            }
            self.waker = None;
        }
        self.arm_disk(disk);
        // Wake waiters in the order of arrival, per class as many as the disk accepts.
        let mut given = [0u32; 3];
        let mut ready = Vec::new();
        for &(thread, full) in self.disk_waiters.iter().filter(|(_, full)| full.disk == disk) {
            let class = full.submitter as usize;
            // A woken thread may submit nothing, so an idle disk must wake all waiters.
            let idle = self.disks[disk].is_idle();
            if idle || given[class] < self.disks[disk].room(full.submitter, self.now) {
                given[class] += 1;
                ready.push(thread);
            }
        }
        for thread in ready {
            self.end_disk_wait(thread);
        }
    }
}
