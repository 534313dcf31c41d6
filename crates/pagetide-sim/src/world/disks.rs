//! The world's disks: requests out, completions in.
//!
//! Invariant: a request has one entry in `pending` from its submission to its completion, and a
//! busy disk has exactly one event.

use super::{Event, Pending, World};
use crate::disk::{IoKind, Request};
use pagetide_core::effect::Io;
use pagetide_core::units::Cpu;

impl World {
    pub(super) fn submit(&mut self, io: Io, cpu: Cpu) {
        let (disk, kind, offset, pages) = match io {
            Io::ReadFile { file, index, nr } => {
                let (disk, base) = self.file_base[file.idx()];
                (disk, IoKind::Read, base + u64::from(index), nr)
            }
            Io::WriteFile { file, index, nr } => {
                let (disk, base) = self.file_base[file.idx()];
                (disk, IoKind::Write, base + u64::from(index), nr)
            }
            Io::SwapIn { slot, .. } => (self.swap_disk, IoKind::Read, u64::from(slot.0), 1),
            Io::SwapOut { slot, .. } => (self.swap_disk, IoKind::Write, u64::from(slot.0), 1),
        };
        let pending = Some(Pending { io, cpu });
        let id = match self.pending_free.pop() {
            Some(id) => {
                self.pending[id] = pending;
                id
            }
            None => {
                self.pending.push(pending);
                self.pending.len() - 1
            }
        };
        self.disks[disk].submit(self.now, Request { id: id as u64, kind, offset, pages });
        self.arm_disk(disk);
    }

    pub(super) fn arm_disk(&mut self, disk: usize) {
        if let Some(event) = self.disk_events[disk].take() {
            self.queue.cancel(event);
        }
        if let Some(at) = self.disks[disk].next_completion() {
            let at = at.max(self.now);
            self.disk_events[disk] = Some(self.queue.push(at, Event::Disk(disk)));
        }
    }

    pub(super) fn disk_event(&mut self, disk: usize) {
        self.disk_events[disk] = None;
        while let Some(completion) = self.disks[disk].pop_completion(self.now) {
            let id = completion.id as usize;
            let Some(Pending { io, cpu }) = self.pending[id].take() else {
                unreachable!("a request completes once")
            };
            self.pending_free.push(id);
            self.cpus[cpu.idx()].debt += self.cost.io_completion_ns;
            let mut effects = Vec::new();
            self.machine
                .io_done(io, completion.result.is_ok(), cpu, self.now)
                .drain_into(&mut effects);
            self.machine.take_work();
            for effect in effects {
                self.apply(effect, cpu);
            }
        }
        self.arm_disk(disk);
    }
}
