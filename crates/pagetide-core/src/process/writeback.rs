//! Writeback: dirty limits, throttling of writers, and writing dirty pages.
//!
//! Linux: mm/page-writeback.c, fs/fs-writeback.c (6.1). Above the background threshold the flusher
//! (the writeback thread) writes. Above the mean of both thresholds writers are slowed down to the
//! speed of the disk, by a rate with feedback from the measured bandwidth.
//!
//! Differences from Linux: one flusher for all disks; one global rate instead of one per device;
//! bandwidth is estimated over 200 ms windows with a 3:1 decay.
//!
//! Invariant: `files[f].nr_dirty` pages are tagged; a dirty file is in `dirty_files` exactly once.

use crate::ctx::Ctx;
use crate::daemon::{Daemon, DaemonRest};
use crate::digest::State;
use crate::effect::{Effect, Io, Sleep, Step, Throttle, Token};
use crate::event::TraceEvent;
use crate::page::PageFlags;
use crate::page_size::PageSize;
use crate::process::filemap::BIO_MAX_PAGES;
use crate::process::policy::FailedWritePolicy;
use crate::process::Machine;
use crate::units::{Cpu, FileId, Nanos, NodeId, Pfn};
use crate::vmstat::{Event, NodeStat};
use alloc::collections::VecDeque;

/// Bytes of one file to write before the next file's turn.
const MAX_WRITEBACK_BYTES: u64 = 4 << 20;
/// Longest pause of a writer (Linux `MAX_PAUSE`, HZ/5).
const MAX_PAUSE: Nanos = 200_000_000;
/// Shorter pauses are accumulated (Linux aims at 10 ms and more).
const MIN_PAUSE: Nanos = 10_000_000;
/// Bytes that a writer may dirty between two checks of the limits (Linux `DIRTY_POLL_THRESH`).
const DIRTY_POLL_BYTES: u64 = 128 << 10;
/// Interval of the bandwidth estimate (Linux `BANDWIDTH_INTERVAL`).
const BANDWIDTH_INTERVAL: Nanos = 200_000_000;
/// Assumed bandwidth before the first write, in bytes per second (Linux `INIT_BW`).
const INIT_BANDWIDTH: u64 = 100 << 20;
/// Maximum number of write requests in flight before the flusher waits (`nr_requests`).
const MAX_INFLIGHT_BIOS: u32 = 128;
/// Requests in flight at which a disk is congested (up to 5.14: 7/8 of `nr_requests`, plus 1).
const CONGESTION_ON: u32 = MAX_INFLIGHT_BIOS - MAX_INFLIGHT_BIOS / 8 + 1;
/// Write requests in flight below which a disk is no longer congested.
const CONGESTION_OFF: u32 = MAX_INFLIGHT_BIOS - MAX_INFLIGHT_BIOS / 8 - MAX_INFLIGHT_BIOS / 16 - 1;

/// State of dirty files and of the flusher.
#[derive(Clone, Debug, State)]
pub struct Writeback {
    /// Files with dirty pages, oldest first.
    dirty_files: VecDeque<FileId>,
    /// Reclaim has asked to write all dirty pages.
    write_all: bool,
    /// The flusher sleeps.
    idle: bool,
    inflight_bios: u32,
    /// Too many writes are in flight (Linux up to 5.14: `BDI_async_congested`).
    congested: bool,
    /// Measured bandwidth, in pages per second.
    bandwidth: u64,
    /// Pages per second that all writers together may dirty at the set point (the mean of the
    /// free-run limit and the hard limit).
    dirty_ratelimit: u64,
    window_start: Nanos,
    window_written: u64,
    window_dirtied: u64,
    /// Pages dirtied since the last pause.
    nr_dirtied: u64,
    last_periodic: Nanos,
    /// A pass over expired files is in progress.
    periodic: bool,
    /// Files visited in a row without a page that could be written.
    fruitless: u32,
}

impl Writeback {
    pub(crate) fn new(page_size: PageSize) -> Self {
        let bandwidth = page_size.pages_in(INIT_BANDWIDTH);
        Writeback {
            dirty_files: VecDeque::new(),
            write_all: false,
            idle: true,
            inflight_bios: 0,
            congested: false,
            bandwidth,
            dirty_ratelimit: bandwidth,
            window_start: 0,
            window_written: 0,
            window_dirtied: 0,
            nr_dirtied: 0,
            last_periodic: 0,
            periodic: false,
            fruitless: 0,
        }
    }

    pub(super) fn forget_file(&mut self, file: FileId) {
        self.dirty_files.retain(|&dirty| dirty != file);
    }

    pub(crate) fn is_congested(&self) -> bool {
        self.congested
    }

    pub(crate) fn note_written(&mut self) {
        self.window_written += 1;
    }

    /// Number of times that a file is queued, for the audit.
    pub(crate) fn nr_queued(&self, file: FileId) -> usize {
        self.dirty_files.iter().filter(|&&queued| queued == file).count()
    }
}

impl Machine {
    /// Background and hard dirty threshold, in pages (Linux `domain_dirty_limits`).
    pub fn dirty_limits(&self) -> (u64, u64) {
        let file = self.global_node_stat(NodeStat::NrInactiveFile)
            + self.global_node_stat(NodeStat::NrActiveFile);
        let reserve: u64 = self.mem.nodes.iter().map(|node| node.totalreserve_pages).sum();
        let dirtyable = (self.nr_free_pages() + file).saturating_sub(reserve) + 1;
        let limit = |bytes: u64, ratio: u32| {
            if bytes > 0 {
                self.mem.page_size.pages_in(bytes)
            } else {
                dirtyable * u64::from(ratio) / 100
            }
        };
        let thresh = limit(self.config.dirty_bytes, self.config.dirty_ratio);
        let mut background =
            limit(self.config.dirty_background_bytes, self.config.dirty_background_ratio);
        if background >= thresh {
            background = thresh / 2;
        }
        (background, thresh)
    }

    /// Marks a file page dirty. The time of a mapped write is unknown, so the start of the
    /// bandwidth window stands for it.
    pub(crate) fn set_page_dirty(&mut self, pfn: Pfn) {
        let now = self.owners.writeback.window_start;
        self.set_page_dirty_at(pfn, now);
    }

    /// Marks a page dirty, and tags a file page for writeback.
    pub(crate) fn set_page_dirty_at(&mut self, pfn: Pfn, now: Nanos) {
        let page = &mut self.mem.pages[pfn.idx()];
        if page.has(PageFlags::DIRTY) {
            return;
        }
        page.set(PageFlags::DIRTY);
        if !page.has(PageFlags::FILE) {
            return;
        }
        let (file, index) = (FileId(page.mapping), page.index);
        let cache = &mut self.owners.files[file.idx()];
        if cache.nr_dirty == 0 {
            cache.dirtied_when = now;
            if !self.owners.writeback.dirty_files.contains(&file) {
                self.owners.writeback.dirty_files.push_back(file);
            }
        }
        cache.set_dirty(index);
        if cache.metadata {
            self.mem.pages[pfn.idx()].set(PageFlags::METADATA);
        }
        self.stat_inc(pfn, NodeStat::NrDirty);
        self.mem.vmstat.count(Event::NrDirtied);
        self.owners.writeback.window_dirtied += 1;
        self.owners.writeback.nr_dirtied += 1;
    }

    /// Called after a write has dirtied a page. Wakes the flusher if needed, and returns the time
    /// that the writer must pause (Linux `balance_dirty_pages`).
    pub(crate) fn balance_dirty_pages_ratelimited(&mut self, ctx: &Ctx) -> Option<Nanos> {
        if self.owners.writeback.nr_dirtied < self.mem.page_size.pages_in(DIRTY_POLL_BYTES) {
            return None;
        }
        self.update_bandwidth(ctx.now);
        let (background, thresh) = self.dirty_limits();
        let dirty = self.global_node_stat(NodeStat::NrDirty);
        let all = dirty + self.global_node_stat(NodeStat::NrWriteback);
        if dirty > background {
            self.wake_flusher();
        }
        let freerun = (background + thresh) / 2;
        if all <= freerun {
            self.owners.writeback.nr_dirtied = 0;
            return None;
        }
        self.wake_flusher();
        let pos_ratio = position_ratio(all, freerun, thresh);
        let rate = ((self.owners.writeback.dirty_ratelimit * pos_ratio) >> 10).max(1);
        let pause = self.owners.writeback.nr_dirtied.saturating_mul(1_000_000_000) / rate;
        if pause < MIN_PAUSE && pos_ratio > 0 {
            return None;
        }
        let pause = pause.min(MAX_PAUSE);
        let kbytes_of = |pages| self.mem.page_size.kbytes_of(pages);
        let event = TraceEvent::BalanceDirtyPages {
            limit: thresh,
            setpoint: (freerun + thresh) / 2,
            dirty: all,
            dirty_ratelimit: kbytes_of(self.owners.writeback.dirty_ratelimit),
            task_ratelimit: kbytes_of(rate),
            dirtied: self.owners.writeback.nr_dirtied,
            pause: pause / 1_000_000,
        };
        self.mem.events.record(event);
        self.owners.writeback.nr_dirtied = 0;
        Some(pause)
    }

    pub(super) fn update_bandwidth(&mut self, now: Nanos) {
        let writeback = &self.owners.writeback;
        let elapsed = now.saturating_sub(writeback.window_start);
        if elapsed < BANDWIDTH_INTERVAL {
            return;
        }
        let (background, thresh) = self.dirty_limits();
        let all =
            self.global_node_stat(NodeStat::NrDirty) + self.global_node_stat(NodeStat::NrWriteback);
        let writeback = &mut self.owners.writeback;
        let per_second =
            |pages: u64| (u128::from(pages) * 1_000_000_000 / u128::from(elapsed)) as u64;
        // An idle window does not show the disk's bandwidth.
        if writeback.window_written > 0 && elapsed < 8 * BANDWIDTH_INTERVAL {
            writeback.bandwidth =
                ((writeback.bandwidth * 3 + per_second(writeback.window_written)) / 4).max(1);
        }
        if writeback.window_dirtied > 0 && elapsed < 8 * BANDWIDTH_INTERVAL {
            let pos_ratio = position_ratio(all, (background + thresh) / 2, thresh);
            let task_rate = ((writeback.dirty_ratelimit * pos_ratio) >> 10).max(1);
            let balanced = u128::from(task_rate) * u128::from(writeback.bandwidth)
                / u128::from(per_second(writeback.window_dirtied).max(1));
            // A balanced rate above the disk's bandwidth cannot be right.
            let balanced = (balanced as u64).clamp(1, writeback.bandwidth.max(1));
            writeback.dirty_ratelimit = ((writeback.dirty_ratelimit * 3 + balanced) / 4).max(1);
        }
        writeback.window_start = now;
        writeback.window_written = 0;
        writeback.window_dirtied = 0;
    }

    pub(crate) fn wake_flusher(&mut self) {
        if self.owners.writeback.idle {
            self.owners.writeback.idle = false;
            self.effects.push(Effect::Wake(Token::Daemon(Daemon::Flusher)));
        }
    }

    /// Writes everything, because reclaim found only dirty pages (Linux `wakeup_flusher_threads`).
    pub(crate) fn wakeup_flusher_threads(&mut self) {
        self.owners.writeback.write_all = true;
        self.wake_flusher();
    }

    /// One bounded step of the flusher: at most 4 MiB of one file.
    pub(super) fn flusher_step(&mut self, now: Nanos) -> Step<DaemonRest> {
        self.owners.writeback.idle = false;
        self.update_bandwidth(now);
        if self.owners.writeback.inflight_bios >= MAX_INFLIGHT_BIOS {
            return Step::Wait(Sleep::throttled(NodeId(0), Throttle::Requests, Nanos::MAX));
        }
        let interval = self.flush_interval();
        if interval > 0 && now >= self.owners.writeback.last_periodic.saturating_add(interval) {
            self.owners.writeback.last_periodic = now;
            self.owners.writeback.periodic = true;
        }
        let (background, _) = self.dirty_limits();
        let over = self.global_node_stat(NodeStat::NrDirty) > background;
        let expire = u64::from(self.config.dirty_expire_centisecs) * 10_000_000;
        let all = over || self.owners.writeback.write_all;
        let position = self.owners.writeback.dirty_files.iter().position(|file| {
            let cache = &self.owners.files[file.idx()];
            all || (self.owners.writeback.periodic
                && now >= cache.dirtied_when.saturating_add(expire))
        });
        let Some(file) = position.and_then(|at| self.owners.writeback.dirty_files.remove(at))
        else {
            return self.flusher_rest();
        };
        let slice = self.mem.page_size.pages_in(MAX_WRITEBACK_BYTES) as u32;
        let (nr_begun, is_used_up) = self.write_file_pages(file, slice);
        if self.owners.files[file.idx()].nr_dirty > 0 {
            self.owners.writeback.dirty_files.push_back(file);
            // If the slice is used up, the remaining pages stay old for the file's next turn. Pages
            // that could not be written wait until they expire again (Linux `requeue_inode`).
            if !is_used_up {
                self.owners.files[file.idx()].dirtied_when = now;
            }
        } else if self.owners.writeback.dirty_files.is_empty() {
            self.owners.writeback.write_all = false;
        }
        // A page that was dirtied again during its write must wait. If the flusher finds only such
        // pages, it rests.
        self.owners.writeback.fruitless =
            if nr_begun == 0 { self.owners.writeback.fruitless + 1 } else { 0 };
        if self.owners.writeback.fruitless as usize > self.owners.writeback.dirty_files.len() {
            return self.flusher_rest();
        }
        Step::Continue
    }

    /// Interval of the check for expired pages; 0: no check.
    fn flush_interval(&self) -> Nanos {
        u64::from(self.config.dirty_writeback_centisecs) * 10_000_000
    }

    /// Time that the flusher sleeps unless it is woken.
    pub(super) fn flusher_timeout(&self) -> DaemonRest {
        match self.flush_interval() {
            0 => DaemonRest::UNTIL_WOKEN,
            interval => DaemonRest::of(interval),
        }
    }

    fn flusher_rest(&mut self) -> Step<DaemonRest> {
        self.owners.writeback.write_all = false;
        self.owners.writeback.periodic = false;
        self.owners.writeback.fruitless = 0;
        self.owners.writeback.idle = true;
        Step::Done(self.flusher_timeout())
    }

    /// Starts writing up to `max` dirty pages of a file, in order, from the end of its last write.
    /// Returns the number of pages, and whether `max` was reached.
    fn write_file_pages(&mut self, file: FileId, max: u32) -> (u32, bool) {
        let mut left = max;
        let mut nr_begun = 0;
        let mut from = self.owners.files[file.idx()].writeback_index;
        let mut wrapped = from == 0;
        let mut run = (0, 0);
        while left > 0 {
            let Some(index) = self.owners.files[file.idx()].next_dirty(from) else {
                if wrapped {
                    break;
                }
                wrapped = true;
                from = 0;
                continue;
            };
            from = index + 1;
            let Some(pfn) = self.owners.files[file.idx()].get(index) else {
                unreachable!("a dirty page is cached")
            };
            left -= 1;
            // A page under migration stays dirty until the next round.
            let busy = PageFlags::WRITEBACK.with(PageFlags::MIGRATING);
            if self.mem.pages[pfn.idx()].flags.any(busy) {
                continue;
            }
            self.begin_file_writeback(pfn);
            nr_begun += 1;
            if run.1 != index || run.1 - run.0 == BIO_MAX_PAGES {
                self.submit_file_write(file, run.0, run.1);
                run = (index, index);
            }
            run.1 = index + 1;
        }
        self.submit_file_write(file, run.0, run.1);
        self.owners.files[file.idx()].writeback_index = from;
        (nr_begun, left == 0)
    }

    /// Moves a dirty file page to writeback, and write-protects the entries that map it.
    pub(crate) fn begin_file_writeback(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn.idx()];
        page.clear(PageFlags::DIRTY);
        page.set(PageFlags::WRITEBACK);
        let (file, index, mapcount) = (page.mapping as usize, page.index, page.mapcount);
        self.owners.files[file].clear_dirty(index);
        self.stat_dec(pfn, NodeStat::NrDirty);
        self.stat_inc(pfn, NodeStat::NrWriteback);
        self.mem.work.writebacks += 1;
        if mapcount > 0 {
            for i in 0..self.owners.files[file].mappings.len() {
                let vma = self.owners.files[file].mappings[i];
                if let Some(pte) = self.owners.vmas[vma.idx()].ptes.get_mut(index as usize) {
                    if pte.is_present() {
                        pte.clean();
                        self.mem.work.rmap_walks += 1;
                    }
                }
            }
        }
    }

    pub(crate) fn submit_file_write(&mut self, file: FileId, start: u32, end: u32) {
        if start < end {
            self.mem.vmstat.add(Event::Pgpgout, self.mem.page_size.kbytes_of((end - start).into()));
            self.mem.work.bios += 1;
            self.mem.work.bio_pages += end - start;
            self.owners.writeback.inflight_bios += 1;
            self.owners.files[file.idx()].note_written(start, end);
            self.owners.writeback.congested |= self.owners.writeback.inflight_bios >= CONGESTION_ON;
            self.effects.push(Effect::Submit(Io::WriteFile {
                file,
                index: start,
                nr: end - start,
            }));
        }
    }

    /// Handles the end of a file's I/O request. Ignores unknown files and requests.
    pub(super) fn file_io_done(&mut self, io: Io, ok: bool, cpu: Cpu) {
        if !self.is_in_flight(io) {
            return;
        }
        match io {
            Io::ReadFile { file, index, nr } => {
                for at in index..index.saturating_add(nr) {
                    let Some(pfn) = self.owners.files[file.idx()].get(at) else { continue };
                    let page = &self.mem.pages[pfn.idx()];
                    if page.has(PageFlags::LOCKED) && !page.has(PageFlags::MIGRATING) {
                        self.end_read(pfn, ok);
                    }
                }
                self.reap_file(file, cpu);
            }
            Io::WriteFile { file, index, nr } => {
                self.end_write_request();
                for at in index..index.saturating_add(nr) {
                    let Some(pfn) = self.owners.files[file.idx()].get(at) else { continue };
                    if !self.mem.pages[pfn.idx()].has(PageFlags::WRITEBACK) {
                        continue;
                    }
                    if !ok {
                        self.write_failed(pfn);
                    }
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
            let page = cache.get(at).map(|pfn| &self.mem.pages[pfn.idx()]);
            page.is_some_and(|page| page.has(under) && !page.has(PageFlags::MIGRATING))
        })
    }

    fn write_failed(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn.idx()];
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
        self.owners.writeback.inflight_bios
    }

    /// Removes a write request. Wakes the flusher, and tasks that wait for congestion to end.
    fn end_write_request(&mut self) {
        let before = self.owners.writeback.inflight_bios;
        self.owners.writeback.inflight_bios = before.saturating_sub(1);
        if before == MAX_INFLIGHT_BIOS {
            self.wake_throttled(NodeId(0), Throttle::Requests);
        }
        if self.owners.writeback.congested && self.owners.writeback.inflight_bios < CONGESTION_OFF {
            self.owners.writeback.congested = false;
            for node in 0..self.nodes.len() {
                self.wake_throttled(NodeId(node as u8), Throttle::CongestionWait);
            }
        }
    }
}

/// Speed of writers relative to the balanced rate, in 1024ths (Linux `pos_ratio_polynom`). The
/// ratio is 1 at the set point, 2 at the free-run limit, and 0 at the hard limit.
fn position_ratio(dirty: u64, freerun: u64, limit: u64) -> u64 {
    if dirty >= limit {
        return 0;
    }
    let setpoint = (freerun + limit) / 2;
    let x = ((setpoint as i64 - dirty as i64) << 10) / (limit.saturating_sub(setpoint) as i64 + 1);
    // Below the free-run limit the result is 2 anyway, and the cube must not overflow.
    let x = x.min(1 << 10);
    let cubed = (((x * x) >> 10) * x) >> 10;
    ((1 << 10) + cubed).clamp(0, 2 << 10) as u64
}
