//! Files that one group dirties and that belong to another group's writeback.
//!
//! Linux: `mem_cgroup_track_foreign_dirty`, `mem_cgroup_flush_foreign` in mm/memcontrol.c,
//! `inode_switch_wbs` in fs/fs-writeback.c (6.1). The pages count for the group that is charged,
//! but the file's writeback may be below its own thresholds. So a writer that is throttled asks
//! for the writeback of the groups whose files it has dirtied. A file that another group keeps
//! writing moves to that group's writeback.
//!
//! Difference from Linux: a file moves at once, and not after an RCU grace period.
//!
//! Invariant: a record that is `in_flight` has one work in the queue of a writeback.

use super::bandwidth::ticks;
use super::work::{FlushKind, FlushWork, ForeignRecord};
use super::WbId;
use crate::config::Config;
use crate::groups::memcg::ROOT;
use crate::process::Machine;
use crate::units::{FileId, MemcgId, Nanos, TICK};

impl Config {
    /// Age at which a file is old (`vm.dirty_expire_centisecs`).
    pub(super) fn dirty_expire(&self) -> Nanos {
        u64::from(self.dirty_expire_centisecs) * 10_000_000
    }
}

impl Machine {
    /// Notes that a page of `memcg` was dirtied in a file of another group's writeback.
    pub(super) fn track_foreign_dirty(&mut self, memcg: MemcgId, wb: WbId, now: Nanos) {
        let update_interval = (self.config.dirty_expire() / 8).min(1_000_000_000) / TICK;
        let now = ticks(now);
        let writeback = &mut self.owners.writeback;
        let (bdi, owner) = (writeback.wbs[wb].bdi, writeback.wbs[wb].memcg);
        let records = writeback.foreign_records(memcg);
        if let Some(known) = records.iter_mut().find(|it| (it.bdi, it.memcg) == (bdi, owner)) {
            if known.at == 0 || known.at + update_interval < now {
                known.at = now;
            }
            return;
        }
        let free = records.iter_mut().filter(|it| !it.in_flight).min_by_key(|it| it.at);
        if let Some(oldest) = free.filter(|it| it.at < now) {
            *oldest = ForeignRecord { bdi, memcg: owner, at: now, in_flight: false };
        }
    }

    /// Asks for the writeback of the groups whose files a group has dirtied lately.
    pub(super) fn flush_foreign(&mut self, memcg: MemcgId, now: Nanos) {
        let expire = self.config.dirty_expire() / TICK;
        for at in 0..self.owners.writeback.foreign_records(memcg).len() {
            let record = &mut self.owners.writeback.foreign_records(memcg)[at];
            if record.in_flight || record.at == 0 || record.at + expire <= ticks(now) {
                continue;
            }
            record.at = 0;
            let (bdi, owner) = (record.bdi, record.memcg);
            let Some(wb) = self.owners.writeback.existing_wb(bdi, owner) else { continue };
            let dirty = match owner {
                ROOT => self.machine_levels().dirty,
                owner => self.groups.memcgs[owner].file_dirty,
            };
            self.owners.writeback.foreign_records(memcg)[at].in_flight = true;
            let work = FlushWork {
                kind: FlushKind::Foreign,
                nr_pages: dirty * 10 / 8,
                dirtied_before: now,
                round: None,
                asked_by: Some((memcg, at as u64)),
            };
            self.owners.writeback.wbs[wb].run.queued.push_back(work);
            self.wake_wb(wb, 0);
        }
    }

    /// Moves a file to the writeback of another group, which it returns, unless the group was
    /// removed (Linux `inode_do_switch_wbs`). The caller queues the file.
    pub(super) fn switch_wb(&mut self, file: FileId, to: MemcgId, now: Nanos) -> Option<WbId> {
        if !self.groups.memcg_is_online(to) {
            return None;
        }
        let bdi = self.owners.files[file].bdi;
        let to = self.find_wb(bdi, to, now);
        let cache = &mut self.owners.files[file];
        let from = cache.wb.replace(to as u32)?;
        cache.foreign = Default::default();
        let (dirty, writeback) = (cache.nr_dirty, cache.nr_writeback);
        let wbs = &mut self.owners.writeback.wbs;
        wbs[from as usize].take_counts(dirty, writeback, u32::from(writeback > 0));
        wbs[to].add_counts(dirty, writeback, u32::from(writeback > 0));
        Some(to)
    }
}
