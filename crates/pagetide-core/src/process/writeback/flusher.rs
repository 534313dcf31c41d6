//! The flusher: the thread that writes dirty files.
//!
//! Linux: `wb_workfn`, `wb_writeback`, `writeback_sb_inodes` in fs/fs-writeback.c (6.1). A run of a
//! writeback does in turn: all that was dirty, if reclaim asks for it; files that have been dirty
//! for `dirty_expire_centisecs`; then any file, until the dirty pages are below the background
//! thresholds. Every file gets a chunk at a time.
//!
//! Difference from Linux: one thread serves all devices and groups, in turn. Linux has a work item
//! for each, and the thread of one does not wait for another's device.
//!
//! Invariant: a file with dirty pages is on exactly one list of its writeback, or is the file that
//! the writeback is writing.

use super::bandwidth::{ticks, HZ};
use super::work::{FlushChunk, FlushKind, FlushWork, OwnerVotes};
use super::{WbId, Writeback};
use crate::config::Config;
use crate::interface::daemon::{Daemon, DaemonRest};
use crate::interface::effect::{Effect, Sleep, Step, Token};
use crate::interface::throttle::Throttle;
use crate::process::filemap::BIO_MAX_PAGES;
use crate::process::Machine;
use crate::process::Processes;
use crate::stats::vmstat::NodeStat;
use crate::units::{FileId, Nanos, NodeId};

/// Smallest chunk of a file, in bytes (Linux `MIN_WRITEBACK_PAGES`).
const MIN_CHUNK_BYTES: u64 = 4 << 20;
/// Part of the machine's hard limit that a chunk may have (Linux `DIRTY_SCOPE`).
const DIRTY_SCOPE: u64 = 8;
/// Ticks after which a round ends, and the thresholds are checked again.
const ROUND: u64 = HZ / 10;

impl Config {
    /// Interval of the search for old files; 0: no search.
    fn flush_interval(&self) -> Nanos {
        u64::from(self.dirty_writeback_centisecs) * 10_000_000
    }
}

impl Processes {
    fn flusher_rest(&mut self, now: Nanos) -> DaemonRest {
        let writeback = &mut self.writeback;
        let next = writeback.wbs.iter().map(|it| it.run.wake_at).min().unwrap_or(Nanos::MAX);
        writeback.rests_until = next;
        match next {
            Nanos::MAX => DaemonRest::UNTIL_WOKEN,
            at => DaemonRest::of(at.saturating_sub(now)),
        }
    }

    fn end_work(&mut self, wb: WbId) {
        let writeback = &mut self.writeback;
        let Some(work) = writeback.wbs[wb].run.work.take() else { return };
        if work.kind == FlushKind::All {
            writeback.wbs[wb].run.start_all = false;
        }
        if let Some((memcg, at)) = work.asked_by {
            writeback.foreign_records(memcg)[at as usize].in_flight = false;
        }
    }
}

impl Machine {
    /// Starts a run of a writeback at a time (Linux `wb_wakeup`, `wb_wakeup_delayed`).
    pub(super) fn wake_wb(&mut self, wb: WbId, at: Nanos) {
        let writeback = &mut self.owners.writeback;
        let run = &mut writeback.wbs[wb].run;
        run.wake_at = run.wake_at.min(at);
        if at < writeback.rests_until {
            writeback.rests_until = 0;
            self.step.effects.push(Effect::Wake(Token::Daemon(Daemon::Flusher)));
        }
    }

    /// Linux `wb_start_background_writeback`, unless a run is under way.
    pub(super) fn start_background_writeback(&mut self, wb: WbId) {
        if !self.owners.writeback.wbs[wb].run.running {
            self.wake_wb(wb, 0);
        }
    }

    /// Writes everything, because reclaim found only dirty pages (Linux `wakeup_flusher_threads`).
    pub(crate) fn wakeup_flusher_threads(&mut self) {
        for wb in 0..self.owners.writeback.wbs.len() {
            let run = &mut self.owners.writeback.wbs[wb].run;
            if run.has_dirty_io() && !run.start_all {
                run.start_all = true;
                self.wake_wb(wb, 0);
            }
        }
    }

    /// Plans the search for old files, if the writeback had nothing dirty before.
    pub(super) fn plan_old_flush(&mut self, wb: WbId, now: Nanos) {
        self.wake_wb(wb, now.saturating_add(self.config.flush_interval()));
    }

    /// One bounded step of the flusher: at most one request.
    pub(in crate::process) fn flusher_step(&mut self, now: Nanos) -> Step<DaemonRest> {
        let writeback = &mut self.owners.writeback;
        writeback.rests_until = 0;
        let nr = writeback.wbs.len();
        let mut is_blocked = false;
        for ahead in 0..nr {
            let wb = (writeback.turn + ahead) % nr;
            let it = &mut writeback.wbs[wb];
            let due = it.run.running || it.run.wake_at <= now;
            if !due {
                continue;
            }
            if writeback.queues[it.bdi].is_full() {
                is_blocked = true;
                continue;
            }
            if !core::mem::replace(&mut it.run.running, true) {
                it.run.wake_at = Nanos::MAX;
                it.run.next = Some(FlushKind::Foreign);
            }
            self.step_wb(wb, now);
            let it = &self.owners.writeback.wbs[wb];
            // Go on with the same file until its chunk is done.
            self.owners.writeback.turn = if it.run.chunk.is_some() { wb } else { wb + 1 };
            return Step::Continue;
        }
        if is_blocked {
            return Step::Wait(Sleep::throttled(NodeId(0), Throttle::Requests, Nanos::MAX));
        }
        Step::Done(self.owners.flusher_rest(now))
    }

    /// Goes on with a run until a request was submitted or the run is over.
    fn step_wb(&mut self, wb: WbId, now: Nanos) {
        loop {
            let run = &mut self.owners.writeback.wbs[wb].run;
            if run.chunk.is_some() {
                return self.write_chunk(wb, now);
            }
            let Some(work) = &mut run.work else {
                let Some(kind) = run.next else {
                    // The run is over, unless another group has asked for more.
                    if !run.queued.is_empty() {
                        run.next = Some(FlushKind::Foreign);
                        continue;
                    }
                    run.running = false;
                    if run.has_dirty_io() && self.config.dirty_writeback_centisecs > 0 {
                        self.plan_old_flush(wb, now);
                    }
                    return;
                };
                run.next = match kind {
                    FlushKind::Foreign if !run.queued.is_empty() => Some(FlushKind::Foreign),
                    FlushKind::Foreign => Some(FlushKind::All),
                    FlushKind::All => Some(FlushKind::Old),
                    FlushKind::Old => Some(FlushKind::Background),
                    FlushKind::Background => None,
                };
                let work = self.work_of(wb, kind, now);
                self.owners.writeback.wbs[wb].run.work = work;
                continue;
            };
            if work.round.is_none() {
                let (kind, nr_pages) = (work.kind, work.nr_pages);
                let yields = matches!(kind, FlushKind::Old | FlushKind::Background)
                    && !run.queued.is_empty();
                let is_over = nr_pages == 0
                    || yields
                    || (kind == FlushKind::Background && !self.is_over_background(wb, now));
                if is_over {
                    self.owners.end_work(wb);
                    continue;
                }
                self.queue_io(wb, now);
                continue;
            }
            if let Some(file) = run.io.pop_front() {
                self.begin_chunk(wb, file, now);
                continue;
            }
            // The round is over. It is the last one if it has written nothing.
            let wrote = work.round.take().is_some_and(|(_, wrote)| wrote > 0);
            if !wrote {
                self.owners.end_work(wb);
            }
        }
    }

    /// The work of a kind that is to be done now, if any.
    fn work_of(&mut self, wb: WbId, kind: FlushKind, now: Nanos) -> Option<FlushWork> {
        let interval = self.config.dirty_writeback_centisecs;
        let expire = self.config.dirty_expire();
        let dirty = self.mem.global_node_stat(NodeStat::NrDirty);
        let share = self.owners.writeback.share_of_device(wb, dirty);
        let run = &mut self.owners.writeback.wbs[wb].run;
        let (nr_pages, dirtied_before) = match kind {
            FlushKind::Foreign => {
                let work = run.queued.pop_front()?;
                return Some(FlushWork { dirtied_before: now, ..work });
            }
            FlushKind::All if run.start_all => (share, now),
            FlushKind::Old
                if interval > 0
                    && ticks(now) >= run.last_old_flush + u64::from(interval) * HZ / 100 =>
            {
                run.last_old_flush = ticks(now);
                (dirty, now.checked_sub(expire)?)
            }
            FlushKind::Background => (u64::MAX, now),
            FlushKind::All | FlushKind::Old => return None,
        };
        Some(FlushWork { kind, nr_pages, dirtied_before, round: None, asked_by: None })
    }

    /// Begins a round. If no file is left to write, chooses files (Linux `queue_io`).
    fn queue_io(&mut self, wb: WbId, now: Nanos) {
        let expire = self.config.dirty_expire();
        let files = &self.owners.files;
        let run = &mut self.owners.writeback.wbs[wb].run;
        let Some(work) = &mut run.work else { return };
        work.round = Some((ticks(now), 0));
        match work.kind {
            FlushKind::Background => work.dirtied_before = now,
            FlushKind::Old => work.dirtied_before = now.saturating_sub(expire),
            FlushKind::Foreign | FlushKind::All => {}
        }
        if run.io.is_empty() {
            run.io.append(&mut run.more_io);
            let is_old = |file: &FileId| files[*file].dirtied_when <= work.dirtied_before;
            let nr_old = run.dirty.iter().take_while(|&file| is_old(file)).count();
            run.io.extend(run.dirty.drain(..nr_old));
        }
    }

    /// Whether the background threshold of a domain is exceeded, or by the writeback's own dirty
    /// pages its share of it among all writebacks (Linux `wb_over_bg_thresh`).
    fn is_over_background(&mut self, wb: WbId, now: Nanos) -> bool {
        let machine = self.machine_levels();
        let group = self
            .owners
            .domain_of(wb)
            .map(|memcg| self.group_levels(memcg, self.groups.memcgs[memcg].file_dirty, &machine));
        let Writeback { machine: domain, wbs, .. } = &mut self.owners.writeback;
        let it = &mut wbs[wb];
        [Some(machine), group].into_iter().flatten().any(|level| {
            let share = domain.completions.share(&mut it.completions, level.background, now);
            level.dirty > level.background || it.nr_dirty > share
        })
    }

    fn begin_chunk(&mut self, wb: WbId, file: FileId, now: Nanos) {
        self.owners.settle_wb(wb, now);
        let min = self.mem.page_size.pages_in(MIN_CHUNK_BYTES);
        let writeback = &mut self.owners.writeback;
        let limit = writeback.machine.dirty_limit();
        let it = &mut writeback.wbs[wb];
        let Some(work) = &it.run.work else { return };
        let most = (it.speed.avg_write_bandwidth / 2).min(limit / DIRTY_SCOPE).min(work.nr_pages);
        let left = (most + min) / min * min;
        let is_idle = it.writeback_files == 0;
        it.speed.begin(now, is_idle, it.nr_dirtied, it.nr_written);
        let cache = &self.owners.files[file];
        let began = cache.writeback_index;
        let votes = OwnerVotes::new(it.memcg, cache.foreign.winner);
        it.run.chunk =
            Some(FlushChunk { file, left, written: 0, began, wrapped: began == 0, votes });
    }

    /// Starts writing the next dirty pages of the chunk's file, as one request at most.
    fn write_chunk(&mut self, wb: WbId, now: Nanos) {
        self.owners.settle_wb(wb, now);
        let Some(mut chunk) = self.owners.writeback.wbs[wb].run.chunk.take() else { return };
        let file = chunk.file;
        let most = chunk.left.min(BIO_MAX_PAGES.into()) as u32;
        let nr = self.write_file_pages(&mut chunk, most);
        chunk.left -= u64::from(nr);
        chunk.written += u64::from(nr);
        let it = &mut self.owners.writeback.wbs[wb];
        let cache = &mut self.owners.files[file];
        if nr == most && chunk.left > 0 && cache.nr_dirty > 0 {
            it.run.chunk = Some(chunk);
            return;
        }
        if it.speed.is_due(now) {
            it.speed.update(now, it.nr_dirtied, it.nr_written, [None; 2]);
        }
        let is_clean = cache.nr_dirty == 0;
        let owner = cache.foreign.add(&chunk.votes, it.speed.avg_write_bandwidth);
        let moved_to = owner.and_then(|owner| self.switch_wb(file, owner, now));
        self.requeue_file(file, chunk.left == 0 && moved_to.is_none(), now);
        if let Some(new) = moved_to {
            self.wake_wb(new, 0);
        }
        let it = &mut self.owners.writeback.wbs[wb];
        let Some(work) = &mut it.run.work else { return };
        work.nr_pages = work.nr_pages.saturating_sub(chunk.written);
        let Some((began, wrote)) = &mut work.round else { return };
        *wrote += chunk.written + u64::from(is_clean);
        if *wrote > 0 && (ticks(now) > *began + ROUND || work.nr_pages == 0) {
            work.round = None;
        }
    }

    /// Puts a file back on a list after its chunk (Linux `requeue_inode`).
    fn requeue_file(&mut self, file: FileId, is_used_up: bool, now: Nanos) {
        let cache = &mut self.owners.files[file];
        let Some(wb) = cache.wb.filter(|_| cache.nr_dirty > 0) else {
            cache.queued = false;
            return;
        };
        let wb = wb as usize;
        let had_dirty_io = self.owners.writeback.wbs[wb].run.has_dirty_io();
        let run = &mut self.owners.writeback.wbs[wb].run;
        if is_used_up {
            run.more_io.push_back(file);
        } else {
            // Only pages were left that are under writeback: wait until the file is old again.
            let newest = run.dirty.back().map(|file| self.owners.files[*file].dirtied_when);
            let cache = &mut self.owners.files[file];
            if newest.is_some_and(|newest| cache.dirtied_when < newest) {
                cache.dirtied_when = now;
            }
            run.dirty.push_back(file);
        }
        if !had_dirty_io && self.config.dirty_writeback_centisecs > 0 {
            self.plan_old_flush(wb, now);
        }
    }

    /// Starts writing up to `max` dirty pages that follow each other, from the end of the last
    /// write. Returns their number: less than `max` only at a gap or at the end of the pages.
    fn write_file_pages(&mut self, chunk: &mut FlushChunk, max: u32) -> u32 {
        let file = chunk.file;
        let mut from = self.owners.files[file].writeback_index;
        let mut run = (0, 0);
        let mut nr = 0;
        while nr < max {
            let next = self.owners.files[file].next_dirty(from);
            let Some(index) =
                next.filter(|&at| !chunk.wrapped || chunk.began == 0 || at < chunk.began)
            else {
                if chunk.wrapped {
                    break;
                }
                chunk.wrapped = true;
                from = 0;
                continue;
            };
            from = index + 1;
            let Some(pfn) = self.owners.files[file].get(index) else {
                unreachable!("a dirty page is cached")
            };
            if self.mem.is_busy(pfn) {
                continue;
            }
            chunk.votes.count(self.mem.pages[pfn].memcg);
            self.begin_file_writeback(pfn);
            nr += 1;
            if run.1 != index {
                self.submit_file_write(file, run.0, run.1);
                run = (index, index);
            }
            run.1 = index + 1;
        }
        self.submit_file_write(file, run.0, run.1);
        self.owners.files[file].writeback_index = from;
        nr
    }
}
