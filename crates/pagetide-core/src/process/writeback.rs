//! Writeback: dirty files, the limits of dirty pages, and writing.
//!
//! Linux: mm/page-writeback.c, fs/fs-writeback.c, `struct bdi_writeback` (6.1). Each device has a
//! writeback for each group that dirties its files (cgroup version 2; version 1 has only that of
//! the root). A file belongs to the writeback of the group that dirtied it first, until another
//! group has dirtied most of it for some time. The parts: [`domains`] and [`limits`] the dirty
//! limits, [`throttle`] and [`pauses`] the pauses of writers, [`bandwidth`] the speeds,
//! [`completions`] the shares of several devices, [`flusher`] and [`work`] writing, [`foreign`]
//! files that several groups write.
//!
//! Invariant: `files[f].nr_dirty` pages are tagged; a dirty file is queued in its writeback exactly
//! once. The counts of a writeback are the sums over its files.

mod bandwidth;
mod completions;
mod domains;
mod flusher;
mod foreign;
mod limits;
pub(super) mod pauses;
#[cfg(test)]
mod tests;
mod throttle;
pub(super) mod work;

use crate::frames::page::PageFlags;
use crate::frames::page_alloc::Memory;
use crate::groups::memcg::ROOT;
use crate::interface::ctx::Ctx;
use crate::interface::daemon::DaemonRest;
use crate::interface::effect::{Effect, Io};
use crate::interface::throttle::Throttle;
use crate::process::policy::FailedWritePolicy;
use crate::process::Machine;
use crate::process::Processes;
use crate::stats::vmstat::{Event, NodeStat};
use crate::units::digest::State;
use crate::units::{BdiId, Cpu, FileId, IdVec, MemcgId, Nanos, NodeId, Pfn};
use alloc::vec::Vec;
use bandwidth::WritebackSpeed;
use completions::LocalCompletions;
use limits::{DirtyDomain, DirtyLevels};
use work::{FlusherRun, ForeignRecord, NR_RECORDS};

/// Maximum number of write requests in flight before the flusher waits (`nr_requests`).
const MAX_INFLIGHT_BIOS: u32 = 128;
/// Requests in flight at which a disk is congested (up to 5.14: 7/8 of `nr_requests`, plus 1).
const CONGESTION_ON: u32 = MAX_INFLIGHT_BIOS - MAX_INFLIGHT_BIOS / 8 + 1;
/// Write requests in flight below which a disk is no longer congested.
const CONGESTION_OFF: u32 = MAX_INFLIGHT_BIOS - MAX_INFLIGHT_BIOS / 8 - MAX_INFLIGHT_BIOS / 16 - 1;
/// Least number of pages that a CPU dirties before one of its tasks checks the limits.
const MIN_RATELIMIT_PAGES: u64 = 16;

/// Index of a [`BdiWriteback`].
type WbId = usize;

/// State of dirty files and of the flusher.
#[derive(Clone, Debug, State)]
pub struct Writeback {
    wbs: Vec<BdiWriteback>,
    /// The writeback of a group and device, plus 1; 0: none.
    #[state(skip)] // derived from `wbs`
    by_group: IdVec<MemcgId, IdVec<BdiId, usize>>,
    machine: DirtyDomain,
    groups: IdVec<MemcgId, DirtyDomain>,
    /// By group: writebacks of other groups whose files it has dirtied.
    foreign: IdVec<MemcgId, [ForeignRecord; NR_RECORDS]>,
    queues: IdVec<BdiId, WriteQueue>,
    cpus: IdVec<Cpu, DirtiedOnCpu>,
    /// Pages that a CPU may dirty before one of its tasks checks the limits.
    ratelimit_pages: u64,
    /// End of the flusher's rest; 0: it works or was woken.
    rests_until: Nanos,
    /// The writeback that comes next.
    turn: usize,
    /// Latest time that was an argument.
    now: Nanos,
}

/// The writeback of one device for one group (Linux `struct bdi_writeback`).
#[derive(Clone, Debug, State)]
struct BdiWriteback {
    bdi: BdiId,
    /// [`MemcgId::NONE`]: the group was removed, and the entry is free.
    memcg: MemcgId,
    /// Dirty pages, and pages under writeback.
    nr_dirty: u64,
    nr_writeback: u64,
    /// Files with pages under writeback.
    writeback_files: u32,
    /// Pages dirtied and written since the start.
    nr_dirtied: u64,
    nr_written: u64,
    speed: WritebackSpeed,
    /// Completed writes, for the shares of the machine and of the group.
    completions: LocalCompletions,
    group_completions: LocalCompletions,
    dirty_exceeded: bool,
    run: FlusherRun,
}

/// Write requests for files of one device.
#[derive(Clone, Copy, Debug, Default, State)]
struct WriteQueue {
    inflight_bios: u32,
    /// Too many writes are in flight (Linux up to 5.14: `BDI_async_congested`).
    congested: bool,
}

/// Linux `bdp_ratelimits` and `dirty_throttle_leaks`.
#[derive(Clone, Copy, Debug, Default, State)]
struct DirtiedOnCpu {
    /// Pages dirtied since a task of the CPU last checked the limits.
    nr_dirtied: u64,
    /// Pages dirtied by tasks that have ended, to be paid for by others.
    leaked: u64,
}

impl BdiWriteback {
    fn take_counts(&mut self, dirty: u64, writeback: u64, writeback_files: u32) {
        self.nr_dirty -= dirty;
        self.nr_writeback -= writeback;
        self.writeback_files -= writeback_files;
    }

    fn add_counts(&mut self, dirty: u64, writeback: u64, writeback_files: u32) {
        self.nr_dirty += dirty;
        self.nr_writeback += writeback;
        self.writeback_files += writeback_files;
    }
}

impl WriteQueue {
    fn is_full(self) -> bool {
        self.inflight_bios >= MAX_INFLIGHT_BIOS
    }
}

impl Writeback {
    pub(crate) fn new() -> Self {
        Writeback {
            wbs: Vec::new(),
            by_group: Vec::new().into(),
            machine: DirtyDomain::default(),
            groups: Vec::new().into(),
            foreign: Vec::new().into(),
            queues: Vec::new().into(),
            cpus: Vec::new().into(),
            ratelimit_pages: MIN_RATELIMIT_PAGES,
            rests_until: Nanos::MAX,
            turn: 0,
            now: 0,
        }
    }

    pub(super) fn forget_file(&mut self, file: FileId, wb: Option<u32>) {
        if let Some(wb) = wb {
            self.wbs[wb as usize].run.forget_file(file);
        }
    }

    pub(crate) fn is_congested(&self) -> bool {
        self.queues.iter().any(|queue| queue.congested)
    }

    /// Number of times that a file is queued in its writeback, for the audit.
    pub(crate) fn nr_queued(&self, file: FileId, wb: Option<u32>) -> usize {
        wb.map_or(0, |wb| self.wbs[wb as usize].run.nr_queued(file))
    }

    /// Dirty pages, pages and files under writeback of each writeback, for the audit.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (u64, u64, u32)> + '_ {
        self.wbs.iter().map(|it| (it.nr_dirty, it.nr_writeback, it.writeback_files))
    }

    /// The flusher's rest before its first step.
    pub(super) fn first_rest(&self) -> DaemonRest {
        match self.wbs.iter().all(|it| !it.run.running && it.run.wake_at == Nanos::MAX) {
            true => DaemonRest::UNTIL_WOKEN,
            false => DaemonRest::of(0),
        }
    }

    /// Leaves the pages that an ended task has not paid for to other tasks of the CPU.
    pub(super) fn leave_to_others(&mut self, nr_dirtied: u64, cpu: Cpu) {
        self.cpus[cpu].leaked += nr_dirtied;
    }

    fn group_domain(&self, memcg: MemcgId) -> Option<&DirtyDomain> {
        self.groups.get(memcg.idx())
    }

    fn group_domain_mut(&mut self, memcg: MemcgId) -> &mut DirtyDomain {
        if self.groups.len() <= memcg.idx() {
            self.groups.resize_with(memcg.idx() + 1, DirtyDomain::default);
        }
        &mut self.groups[memcg]
    }

    fn foreign_records(&mut self, memcg: MemcgId) -> &mut [ForeignRecord; NR_RECORDS] {
        if self.foreign.len() <= memcg.idx() {
            self.foreign.resize(memcg.idx() + 1, [ForeignRecord::FREE; NR_RECORDS]);
        }
        &mut self.foreign[memcg]
    }

    fn existing_wb(&self, bdi: BdiId, memcg: MemcgId) -> Option<WbId> {
        self.by_group.get(memcg.idx())?.get(bdi.idx())?.checked_sub(1)
    }

    /// The part of a number of pages that is a writeback's by its speed among those of its device
    /// (Linux `wb_split_bdi_pages`).
    fn share_of_device(&self, wb: WbId, pages: u64) -> u64 {
        let it = &self.wbs[wb];
        let others =
            self.wbs.iter().filter(|other| other.bdi == it.bdi && other.run.has_dirty_io());
        let all: u64 = others.map(|other| other.speed.avg_write_bandwidth).sum();
        let own = it.speed.avg_write_bandwidth;
        if own >= all {
            return pages;
        }
        (u128::from(pages) * u128::from(own)).div_ceil(u128::from(all)) as u64
    }
}

impl Memory {
    /// Whether a page cannot be written now. A page under migration stays dirty until the next
    /// round.
    fn is_busy(&self, pfn: Pfn) -> bool {
        let busy = PageFlags::WRITEBACK.with(PageFlags::MIGRATING);
        self.pages[pfn].flags.any(busy)
    }
}

impl Processes {
    /// The group whose limits the writeback must keep in addition to those of the machine.
    fn domain_of(&self, wb: WbId) -> Option<MemcgId> {
        Some(self.writeback.wbs[wb].memcg).filter(|&memcg| memcg != ROOT)
    }

    fn settle_wb(&mut self, wb: WbId, now: Nanos) {
        let it = &mut self.writeback.wbs[wb];
        it.speed.settle(now, it.nr_dirtied, it.nr_written);
    }

    /// Fills in the writeback's shares of the thresholds of both domains.
    fn fill_shares(
        &mut self,
        wb: WbId,
        machine: &mut DirtyLevels,
        group: Option<&mut DirtyLevels>,
        now: Nanos,
    ) {
        let memcg = self.domain_of(wb);
        let writeback = &mut self.writeback;
        let it = &mut writeback.wbs[wb];
        let of_machine = &mut writeback.machine.completions;
        machine.wb_thresh = of_machine.share(&mut it.completions, machine.thresh, now);
        if let (Some(group), Some(memcg)) = (group, memcg) {
            let mut local = it.group_completions;
            let domain = &mut writeback.group_domain_mut(memcg).completions;
            group.wb_thresh = domain.share(&mut local, group.thresh, now);
            writeback.wbs[wb].group_completions = local;
        }
    }

    fn wb_of(&mut self, file: usize) -> &mut BdiWriteback {
        let Some(wb) = self.files[file].wb else { unreachable!("a dirty file has a writeback") };
        &mut self.writeback.wbs[wb as usize]
    }

    /// Counts the end of a page's write (Linux `__folio_end_writeback`).
    fn count_file_written(&mut self, file: FileId, now: Nanos) {
        let cache = &mut self.files[file];
        cache.nr_writeback -= 1;
        let is_last = cache.nr_writeback == 0;
        let Some(wb) = cache.wb else { return };
        let wb = wb as usize;
        self.settle_wb(wb, now);
        let memcg = self.domain_of(wb);
        let writeback = &mut self.writeback;
        let it = &mut writeback.wbs[wb];
        it.nr_writeback -= 1;
        it.nr_written += 1;
        if is_last {
            it.writeback_files -= 1;
            it.speed.update_later(now);
        }
        writeback.machine.completions.add(&mut it.completions, now);
        if let Some(memcg) = memcg {
            let mut local = it.group_completions;
            writeback.group_domain_mut(memcg).completions.add(&mut local, now);
            writeback.wbs[wb].group_completions = local;
        }
    }
}

impl Machine {
    /// The writeback of a device for a group. Without dirty limits of groups: for the root.
    fn find_wb(&mut self, bdi: BdiId, memcg: MemcgId, now: Nanos) -> WbId {
        let memcg = if self.era.no_group_writeback { ROOT } else { memcg };
        let page_size = self.mem.page_size;
        let writeback = &mut self.owners.writeback;
        if writeback.by_group.len() <= memcg.idx() {
            writeback.by_group.resize(memcg.idx() + 1, Vec::new().into());
        }
        let by_bdi = &mut writeback.by_group[memcg];
        if by_bdi.len() <= bdi.idx() {
            by_bdi.resize(bdi.idx() + 1, 0);
        }
        if let Some(wb) = by_bdi[bdi].checked_sub(1) {
            return wb;
        }
        if writeback.queues.len() <= bdi.idx() {
            writeback.queues.resize(bdi.idx() + 1, WriteQueue::default());
        }
        let free = writeback.wbs.iter().position(|it| it.memcg.is_none());
        let wb = free.unwrap_or(writeback.wbs.len());
        by_bdi[bdi] = wb + 1;
        let new = BdiWriteback {
            bdi,
            memcg,
            nr_dirty: 0,
            nr_writeback: 0,
            writeback_files: 0,
            nr_dirtied: 0,
            nr_written: 0,
            speed: WritebackSpeed::new(page_size, now),
            completions: LocalCompletions::default(),
            group_completions: LocalCompletions::default(),
            dirty_exceeded: false,
            run: FlusherRun::new(now),
        };
        match free {
            Some(wb) => writeback.wbs[wb] = new,
            None => writeback.wbs.push(new),
        }
        wb
    }

    /// Sets what depends on the machine's dirty threshold, at the start and after a change (Linux
    /// `writeback_set_ratelimit`).
    pub(crate) fn writeback_set_ratelimit(&mut self, thresh: u64) {
        let nr_cpus = self.groups.stocks.len();
        let writeback = &mut self.owners.writeback;
        writeback.machine.set_dirty_limit(thresh);
        writeback.ratelimit_pages = (thresh / (nr_cpus as u64 * 32)).max(MIN_RATELIMIT_PAGES);
        writeback.cpus.resize(nr_cpus, DirtiedOnCpu::default());
    }

    /// Marks a page dirty that no task writes to at this time: reclaim or a failed write found it.
    pub(crate) fn set_page_dirty(&mut self, pfn: Pfn) {
        self.mark_dirty(pfn, None);
    }

    /// Marks a page dirty that the task of `ctx` writes to.
    pub(crate) fn set_page_dirty_by(&mut self, pfn: Pfn, ctx: &Ctx) {
        self.owners.writeback.now = self.owners.writeback.now.max(ctx.now);
        self.mark_dirty(pfn, Some(ctx));
    }

    /// Marks a page dirty, and tags a file page for writeback (Linux `folio_account_dirtied`,
    /// `__mark_inode_dirty`).
    fn mark_dirty(&mut self, pfn: Pfn, by: Option<&Ctx>) {
        let page = &mut self.mem.pages[pfn];
        if page.has(PageFlags::DIRTY) {
            return;
        }
        page.set(PageFlags::DIRTY);
        if !page.has(PageFlags::FILE) {
            return;
        }
        let (file, index, memcg) = (FileId(page.mapping), page.index, page.memcg);
        let now = self.owners.writeback.now;
        let wb = match self.owners.files[file].wb {
            Some(wb) => wb as usize,
            None => {
                let payer = if memcg.is_some() { memcg } else { ROOT };
                let wb = self.find_wb(self.owners.files[file].bdi, payer, now);
                self.owners.files[file].wb = Some(wb as u32);
                wb
            }
        };
        let cache = &mut self.owners.files[file];
        cache.set_dirty(index);
        let metadata = cache.metadata;
        let was_queued = core::mem::replace(&mut cache.queued, true);
        let it = &mut self.owners.writeback.wbs[wb];
        if !was_queued {
            cache.dirtied_when = now;
            let had_dirty_io = it.run.has_dirty_io();
            it.run.dirty.push_back(file);
            if !had_dirty_io && self.config.dirty_writeback_centisecs > 0 {
                self.plan_old_flush(wb, now);
            }
        }
        if metadata {
            self.mem.pages[pfn].set(PageFlags::METADATA);
        }
        self.writeback_stat_inc(pfn, NodeStat::NrDirty);
        self.mem.vmstat.count(Event::NrDirtied);
        let owner = self.owners.writeback.wbs[wb].memcg;
        if memcg.is_some() && memcg != owner && !self.era.no_group_writeback {
            self.track_foreign_dirty(memcg, wb, now);
        }
        self.owners.settle_wb(wb, now);
        let writeback = &mut self.owners.writeback;
        writeback.wbs[wb].nr_dirty += 1;
        writeback.wbs[wb].nr_dirtied += 1;
        if let Some(ctx) = by {
            writeback.cpus[ctx.cpu].nr_dirtied += 1;
            self.owners.mms[ctx.asker].dirty.nr_dirtied += 1;
        }
    }

    /// Forgets that a page of a file is dirty, because the file is gone.
    pub(super) fn cancel_dirty(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn];
        if !page.test_clear(PageFlags::DIRTY) {
            return;
        }
        let (file, index) = (page.mapping as usize, page.index);
        self.owners.files[file].clear_dirty(index);
        self.writeback_stat_dec(pfn, NodeStat::NrDirty);
        self.owners.wb_of(file).nr_dirty -= 1;
    }

    /// Moves a dirty file page to writeback, and write-protects the entries that map it.
    pub(crate) fn begin_file_writeback(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn];
        page.clear(PageFlags::DIRTY);
        page.set(PageFlags::WRITEBACK);
        let (file, index, mapcount) = (page.mapping as usize, page.index, page.mapcount);
        let cache = &mut self.owners.files[file];
        cache.clear_dirty(index);
        cache.nr_writeback += 1;
        let is_first = cache.nr_writeback == 1;
        let it = self.owners.wb_of(file);
        it.nr_dirty -= 1;
        it.nr_writeback += 1;
        it.writeback_files += u32::from(is_first);
        self.writeback_stat_dec(pfn, NodeStat::NrDirty);
        self.writeback_stat_inc(pfn, NodeStat::NrWriteback);
        self.mem.work.writebacks += 1;
        if mapcount > 0 {
            for i in 0..self.owners.files[file].mappings.len() {
                let vma = self.owners.files[file].mappings[i];
                if let Some(pte) = self.owners.vmas[vma].ptes.get_mut(index as usize) {
                    if pte.is_present() {
                        pte.clean();
                        self.mem.work.rmap_walks += 1;
                    }
                }
            }
        }
    }

    /// Moves the writebacks of a removed group to its parent.
    pub(crate) fn reparent_writeback(&mut self, memcg: MemcgId, parent: MemcgId) {
        let now = self.owners.writeback.now;
        if let Some(domain) = self.owners.writeback.groups.get_mut(memcg.idx()) {
            *domain = DirtyDomain::default();
        }
        if let Some(records) = self.owners.writeback.foreign.get_mut(memcg.idx()) {
            *records = [ForeignRecord::FREE; NR_RECORDS];
        }
        for record in self.owners.writeback.foreign.iter_mut().flatten() {
            if record.memcg == memcg {
                *record = ForeignRecord::FREE;
            }
        }
        let bdis = match self.owners.writeback.by_group.get_mut(memcg.idx()) {
            Some(bdis) => core::mem::take(bdis),
            None => return,
        };
        for (bdi, wb) in bdis.into_iter().enumerate() {
            let Some(wb) = wb.checked_sub(1) else { continue };
            let to = self.find_wb(BdiId(bdi as u16), parent, now);
            for file in &mut self.owners.files {
                if file.wb == Some(wb as u32) {
                    file.wb = Some(to as u32);
                }
            }
            let wbs = &mut self.owners.writeback.wbs;
            let run = core::mem::replace(&mut wbs[wb].run, FlusherRun::new(now));
            let asked = run.queued.iter().chain(&run.work).filter_map(|work| work.asked_by);
            let asked: Vec<_> = asked.collect();
            let (nr_dirty, nr_writeback) = (wbs[wb].nr_dirty, wbs[wb].nr_writeback);
            let files = wbs[wb].writeback_files;
            wbs[wb].memcg = MemcgId::NONE;
            wbs[wb].take_counts(nr_dirty, nr_writeback, files);
            wbs[to].add_counts(nr_dirty, nr_writeback, files);
            wbs[to].run.take_files(run);
            let has_dirty_io = wbs[to].run.has_dirty_io();
            for (asker, at) in asked {
                self.owners.writeback.foreign_records(asker)[at as usize].in_flight = false;
            }
            if has_dirty_io && self.config.dirty_writeback_centisecs > 0 {
                self.plan_old_flush(to, now);
            }
        }
    }

    pub(crate) fn submit_file_write(&mut self, file: FileId, start: u32, end: u32) {
        if start < end {
            self.kernel
                .mem
                .vmstat
                .add(Event::Pgpgout, self.kernel.mem.page_size.kbytes_of((end - start).into()));
            self.mem.work.bios += 1;
            self.mem.work.bio_pages += end - start;
            let cache = &mut self.owners.files[file];
            cache.note_written(start, end);
            let queue = &mut self.owners.writeback.queues[cache.bdi];
            queue.inflight_bios += 1;
            queue.congested |= queue.inflight_bios >= CONGESTION_ON;
            self.step.effects.push(Effect::Submit(Io::WriteFile {
                file,
                index: start,
                nr: end - start,
            }));
        }
    }

    /// Handles the end of a file's I/O request. Ignores unknown files and requests.
    pub(super) fn file_io_done(&mut self, io: Io, ok: bool, cpu: Cpu, now: Nanos) {
        self.owners.writeback.now = self.owners.writeback.now.max(now);
        if !self.is_in_flight(io) {
            return;
        }
        match io {
            Io::ReadFile { file, index, nr } => {
                for at in index..index.saturating_add(nr) {
                    let Some(pfn) = self.owners.files[file].get(at) else { continue };
                    let page = &self.mem.pages[pfn];
                    if page.has(PageFlags::LOCKED) && !page.has(PageFlags::MIGRATING) {
                        self.end_read(pfn, ok);
                    }
                }
                self.reap_file(file, cpu);
            }
            Io::WriteFile { file, index, nr } => {
                self.end_write_request(self.owners.files[file].bdi);
                for at in index..index.saturating_add(nr) {
                    let Some(pfn) = self.owners.files[file].get(at) else { continue };
                    if !self.mem.pages[pfn].has(PageFlags::WRITEBACK) {
                        continue;
                    }
                    if !ok {
                        self.write_failed(pfn);
                    }
                    self.owners.count_file_written(file, now);
                    self.end_writeback(pfn, cpu);
                }
                self.reap_file(file, cpu);
            }
            Io::SwapIn { .. } | Io::SwapOut { .. } => {}
        }
    }

    /// Whether a page of the request is under this kind of I/O.
    fn is_in_flight(&self, io: Io) -> bool {
        let (file, index, nr, under) = match io {
            Io::ReadFile { file, index, nr } => (file, index, nr, PageFlags::LOCKED),
            Io::WriteFile { file, index, nr } => (file, index, nr, PageFlags::WRITEBACK),
            Io::SwapIn { .. } | Io::SwapOut { .. } => return false,
        };
        let Some(cache) = self.owners.files.get(file.idx()) else { return false };
        let len = u32::try_from(cache.nr_file_pages()).unwrap_or(u32::MAX);
        (index..index.saturating_add(nr).min(len)).any(|at| {
            let page = cache.get(at).map(|pfn| &self.mem.pages[pfn]);
            page.is_some_and(|page| page.has(under) && !page.has(PageFlags::MIGRATING))
        })
    }

    fn write_failed(&mut self, pfn: Pfn) {
        let page = &mut self.kernel.mem.pages[pfn];
        page.set(PageFlags::UPTODATE);
        match self.owners.failure.failed_write {
            // The error is recorded for fsync(), and the page is clean.
            FailedWritePolicy::Drop => {}
            FailedWritePolicy::KeepDirty => {
                page.clear(PageFlags::RECLAIM);
                self.set_page_dirty(pfn);
            }
        }
    }

    /// Write requests for files in flight.
    pub fn nr_file_writes_in_flight(&self) -> u32 {
        self.owners.writeback.queues.iter().map(|queue| queue.inflight_bios).sum()
    }

    /// Removes a write request. Wakes the flusher, and tasks that wait for congestion to end.
    fn end_write_request(&mut self, bdi: BdiId) {
        let Some(queue) = self.owners.writeback.queues.get_mut(bdi.idx()) else { return };
        let was_full = queue.is_full();
        queue.inflight_bios = queue.inflight_bios.saturating_sub(1);
        let is_over = queue.congested && queue.inflight_bios < CONGESTION_OFF;
        queue.congested &= !is_over;
        if was_full {
            self.wake_throttled(NodeId(0), Throttle::Requests);
        }
        if is_over {
            for node in 0..self.mem.pgdat.len() {
                self.wake_throttled(NodeId(node as u8), Throttle::CongestionWait);
            }
        }
    }
}
