//! The world's disks: where files are, which requests are in flight, and which threads wait.
//!
//! Linux: blk-mq. The requests of a time slice are submitted together. A submitter sleeps while the
//! disk is full (disk/throttle.rs).
//!
//! Invariant: a request has one entry in `pending` from its submission to its completion, and a
//! busy disk has exactly one event.

mod requests;

use crate::disk::{Disk, DiskRange, DiskRequest, IoKind, Submitter};
use crate::event_queue::EventId;
use crate::world::threads::{WorldEvent, WorldQueue, WorldThread};
use pagetide_core::interface::daemon::Daemon;
use pagetide_core::interface::effect::Io;
use pagetide_core::process::Machine;
use pagetide_core::swap::SwapAreas;
use pagetide_core::units::{Cpu, FileId, IdVec, Nanos, SwapSlot};
use std::collections::BTreeMap;

/// Gap between two files on a disk, in bytes; keeps growing files from overlapping.
pub(crate) const FILE_GAP: u64 = 64 << 30;

/// A disk that accepts no more requests of a submitter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullDisk {
    pub disk: usize,
    pub submitter: Submitter,
}

/// A submitted I/O request, and the CPU of its completion interrupt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingIo {
    pub io: Io,
    pub cpu: Cpu,
}

#[derive(Debug, Default)]
pub(crate) struct SimDisks {
    pub of: Vec<Disk>,
    events: Vec<Option<EventId>>,
    /// Threads that sleep until a disk accepts more requests, in the order of arrival.
    pub waiters: Vec<(WorldThread, FullDisk)>,
    pending: Vec<Option<PendingIo>>,
    /// Empty entries of `pending`.
    free: Vec<usize>,
    /// Disk and first page of each file.
    file_base: IdVec<FileId, (usize, u64)>,
    /// Disk and first page of each swap area.
    swap_base: Vec<(usize, u64)>,
    trace_files: BTreeMap<u64, FileId>,
}

impl SimDisks {
    pub fn new(
        disks: Vec<Disk>,
        file_base: Vec<(usize, u64)>,
        swap_base: Vec<(usize, u64)>,
    ) -> SimDisks {
        SimDisks {
            events: vec![None; disks.len()],
            of: disks,
            file_base: file_base.into(),
            swap_base,
            ..SimDisks::default()
        }
    }

    /// Requests in flight.
    pub fn submitted(&self) -> impl Iterator<Item = Io> + '_ {
        self.pending.iter().flatten().map(|pending| pending.io)
    }

    /// The file of a trace, created at its first use.
    pub fn trace_file(&mut self, machine: &mut Machine, key: u64, pages: u64) -> FileId {
        let page_size = machine.page_size();
        let size = page_size.bytes_of(pages);
        if let Some(&file) = self.trace_files.get(&key) {
            // Another trace may have mapped more of the file.
            machine.extend_file(file, size).expect("a trace's files fit");
            return file;
        }
        let file = machine.create_file(size, false).expect("a trace's files fit");
        let disk = 0;
        let base = self.file_base.iter().filter(|base| base.0 == disk).map(|base| base.1).max();
        self.file_base.push((disk, base.unwrap_or(0) + page_size.pages_in(FILE_GAP)));
        self.trace_files.insert(key, file);
        file
    }

    /// The pages of a disk that a request reads or writes.
    fn range(&self, io: Io, swap: &SwapAreas) -> DiskRange {
        let place_of_slot = |slot: SwapSlot| {
            let (disk, base) = self.swap_base[swap.area_of(slot)];
            (disk, base + u64::from(slot.0 - swap[slot].first))
        };
        let (disk, kind, offset, pages) = match io {
            Io::ReadFile { file, index, nr } => {
                let (disk, base) = self.file_base[file];
                (disk, IoKind::Read, base + u64::from(index), nr)
            }
            Io::WriteFile { file, index, nr } => {
                let (disk, base) = self.file_base[file];
                (disk, IoKind::Write, base + u64::from(index), nr)
            }
            Io::SwapIn { slot, .. } => {
                let (disk, offset) = place_of_slot(slot);
                (disk, IoKind::Read, offset, 1)
            }
            Io::SwapOut { slot, nr, .. } => {
                let (disk, offset) = place_of_slot(slot);
                (disk, IoKind::Write, offset, nr)
            }
        };
        DiskRange { disk, kind, offset, pages }
    }

    /// Submits requests of a thread, each with the time of its arrival in the plug. Returns a disk
    /// that is now full for this thread, if any.
    pub fn submit(
        &mut self,
        ios: Vec<(Io, Nanos)>,
        (thread, cpu): (WorldThread, Cpu),
        swap: &SwapAreas,
        now: Nanos,
        queue: &mut WorldQueue,
    ) -> Option<FullDisk> {
        let mut batch: Vec<(usize, DiskRequest)> = Vec::with_capacity(ios.len());
        for (io, since) in ios {
            let DiskRange { disk, kind, offset, pages } = self.range(io, swap);
            let submitter = match (kind, thread) {
                (IoKind::Read, _) => Submitter::Reader,
                (IoKind::Write, WorldThread::Daemon(Daemon::Kswapd(_))) => Submitter::Kswapd,
                (IoKind::Write, _) => Submitter::Writeback,
            };
            let id = self.pending_id(PendingIo { io, cpu }) as u64;
            let request = DiskRequest { id, kind, offset, pages, submitter, plugged: now - since };
            batch.push((disk, request));
        }
        let mut full = None;
        for disk in 0..self.of.len() {
            let of_disk =
                || batch.iter().filter(|(of, _)| *of == disk).map(|(_, request)| *request);
            if of_disk().next().is_none() {
                continue;
            }
            self.of[disk].submit_all(now, of_disk());
            self.arm(disk, now, queue);
            for submitter in of_disk().map(|request| request.submitter) {
                if self.of[disk].room(submitter, now) == 0 {
                    full = Some(FullDisk { disk, submitter });
                }
            }
        }
        full
    }

    fn pending_id(&mut self, pending: PendingIo) -> usize {
        match self.free.pop() {
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

    fn arm(&mut self, disk: usize, now: Nanos, queue: &mut WorldQueue) {
        if let Some(event) = self.events[disk].take() {
            queue.cancel(event);
        }
        if let Some(at) = self.of[disk].next_completion() {
            self.events[disk] = Some(queue.push(at.max(now), WorldEvent::Disk(disk)));
        }
    }

    /// Takes a request that a disk has completed, and whether it succeeded.
    fn pop_completed(&mut self, disk: usize, now: Nanos) -> Option<(PendingIo, bool)> {
        let completion = self.of[disk].pop_completion(now)?;
        let id = completion.id as usize;
        self.free.push(id);
        let completed = self.pending[id].take().expect("a request completes once");
        Some((completed, completion.result.is_ok()))
    }

    /// Waiters of a disk that it accepts now: in the order of arrival, per class as many as there
    /// is room for.
    fn ready(&self, disk: usize, now: Nanos) -> Vec<WorldThread> {
        let mut given = [0u32; 3];
        let mut ready = Vec::new();
        for &(thread, full) in self.waiters.iter().filter(|(_, full)| full.disk == disk) {
            let class = full.submitter as usize;
            // A woken thread may submit nothing, so an idle disk must wake all waiters.
            if self.of[disk].is_idle() || given[class] < self.of[disk].room(full.submitter, now) {
                given[class] += 1;
                ready.push(thread);
            }
        }
        ready
    }

    /// Ends the wait of a thread. Returns true if it waited to read.
    fn end_wait(&mut self, thread: WorldThread) -> bool {
        let waits = self.waiters.iter().find(|(waiter, _)| *waiter == thread);
        let is_reader = waits.is_some_and(|(_, full)| full.submitter == Submitter::Reader);
        self.waiters.retain(|(waiter, _)| *waiter != thread);
        is_reader
    }
}
