//! read() and write() through the page cache.
//!
//! Linux: mm/filemap.c `filemap_read`, `generic_perform_write`; mm/readahead.c
//! `page_cache_ra_unbounded` (6.1). A read goes page by page: read ahead if the page is missing or
//! has the read-ahead mark, wait for the read, mark the page accessed, copy. A write creates
//! missing pages, copies, marks them dirty, and pauses if too many pages are dirty.
//!
//! Invariant: a page is [`PageFlags::LOCKED`] from its insertion until its read ends.

use crate::frames::gfp::Gfp;
use crate::frames::page::PageFlags;
use crate::frames::page_request::{PageRequest, SlowRequest};
use crate::interface::ctx::Ctx;
use crate::interface::daemon::Daemon;
use crate::interface::effect::{Effect, Io, Sleep, Step, Token};
use crate::interface::kernel::Kernel;
use crate::interface::outcome::Outcome;
use crate::process::buffer_heads::BufferHeadRequest;
use crate::process::id_pool::NOT_BEGUN;
use crate::process::readahead::{ReadaheadState, ReadaheadWindow};
use crate::process::Machine;
use crate::stats::vmstat::{Event, NodeStat};
use crate::units::{Cpu, FileId, Pfn};

/// Largest I/O request, in pages (Linux `BIO_MAX_VECS`).
pub const BIO_MAX_PAGES: u32 = 256;

/// A read() in progress.
#[derive(Clone, Debug)]
pub struct ReadCall {
    pub(super) file: FileId,
    /// Generation of the file, known once the call has begun. Another file may get its id.
    pub(super) born: u64,
    pub(super) pos: u64,
    end: u64,
    window: Option<ReadaheadWindow>,
    /// Page that the last window was read for. If it is still missing, it is read alone.
    read_ahead_for: Option<u32>,
    /// Page that this call reads alone. If that read fails, the call fails.
    reads_alone: Option<u32>,
    waiting: Option<Pfn>,
    major: bool,
    entered: bool,
    pub(crate) readahead: ReadaheadState,
}

/// A write() in progress.
#[derive(Clone, Debug)]
pub struct WriteCall {
    pub(super) file: FileId,
    /// Generation of the file, known once the call has begun. Another file may get its id.
    pub(super) born: u64,
    pub(super) pos: u64,
    end: u64,
    waiting: Option<Pfn>,
    /// Page that this call reads before a partial write. If that read fails, the call fails.
    reads_alone: Option<u32>,
    /// File size before the call. Data beyond it exist only in memory.
    old_size: u64,
    buffer: BufferHeadRequest,
    entered: bool,
    major: bool,
}

impl ReadCall {
    pub(crate) fn new(file: FileId, offset: u64, len: u64, readahead: ReadaheadState) -> ReadCall {
        ReadCall {
            file,
            born: NOT_BEGUN,
            pos: offset,
            end: offset.saturating_add(len),
            window: None,
            read_ahead_for: None,
            reads_alone: None,
            waiting: None,
            major: false,
            entered: false,
            readahead,
        }
    }
}

impl WriteCall {
    pub(crate) fn new(file: FileId, offset: u64, len: u64) -> WriteCall {
        WriteCall {
            file,
            born: NOT_BEGUN,
            pos: offset,
            end: offset.saturating_add(len),
            waiting: None,
            reads_alone: None,
            old_size: 0,
            buffer: BufferHeadRequest::default(),
            entered: false,
            major: false,
        }
    }

    /// End of the range, exclusive.
    pub(super) fn end(&self) -> u64 {
        self.end
    }
}

/// Pages of a file that one step may process before other tasks run.
const PAGES_PER_STEP: u32 = 32;

impl Kernel {
    /// Flags of an allocation for read-ahead (Linux `readahead_gfp_mask`, `memalloc_nofs_save`).
    fn readahead_gfp(&self) -> Gfp {
        let gfp = Gfp::HIGHUSER_MOVABLE.with(Gfp::NORETRY).with(Gfp::NOWARN);
        if self.era.readahead_enters_fs {
            gfp
        } else {
            gfp.without(Gfp::FS)
        }
    }

    /// Whether this step has woken kswapd, or has boosted a zone, for which kswapd is woken at the
    /// end of the step. In Linux a woken kswapd runs before the task allocates another page,
    /// because the task may reschedule at every allocation that may sleep (`might_alloc`) and once
    /// a page in read() and write() (`cond_resched`). Loops over allocations therefore end their
    /// step here, and the world decides which task runs. If a whole window were read first, kswapd
    /// would need another round to catch up. The first `looked_at` effects were checked before.
    fn has_woken_kswapd(&self, looked_at: &mut usize) -> bool {
        let is_kswapd =
            |effect: &Effect| matches!(effect, Effect::Wake(Token::Daemon(Daemon::Kswapd(_))));
        let nr_known = core::mem::replace(looked_at, self.step.effects.iter().len());
        !self.mem.wakeups.is_empty() || self.step.effects.iter().skip(nr_known).any(is_kswapd)
    }
}

impl Machine {
    pub(crate) fn read_step(
        &mut self,
        read: &mut ReadCall,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        if !read.entered {
            read.entered = true;
            self.mem.work.syscalls += 1;
        }
        let mut looked_at = 0;
        for _ in 0..PAGES_PER_STEP {
            if let Some(pfn) = read.waiting {
                if self.mem.pages[pfn].has(PageFlags::LOCKED) {
                    self.mem.pages[pfn].set(PageFlags::WAITERS);
                    return Step::Wait(Sleep::on_page(pfn));
                }
                read.waiting = None;
            }
            if let Some(mut window) = read.window {
                let step = self.readahead_step(&mut window, slow, ctx);
                read.window = Some(window);
                if let Some(step) = step {
                    return step;
                }
                read.window = None;
            }
            let end = read.end.min(self.owners.files[read.file].size);
            if read.pos >= end {
                return Step::Done(if read.major { Outcome::Major } else { Outcome::Minor });
            }
            if let Err(step) = self.read_one_page(read, end, slow, ctx) {
                return step;
            }
            if self.has_woken_kswapd(&mut looked_at) {
                return Step::Continue;
            }
        }
        Step::Continue
    }

    fn read_one_page(
        &mut self,
        read: &mut ReadCall,
        end: u64,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Result<(), Step<Outcome>> {
        let page_size = self.mem.page_size;
        let index = page_size.index_of(read.pos);
        let last = page_size.pages_for(end) as u32;
        let max = self.config.read_ahead_pages;
        let file = read.file;
        self.mem.work.cache_ops += 1;
        let Some(pfn) = self.owners.files[file].get(index) else {
            if slow.is_none() && read.read_ahead_for != Some(index) {
                let cache = &self.owners.files[file];
                read.window = read.readahead.ondemand(file, cache, index, false, last - index, max);
                // If the window did not contain the page itself, this loop would not end.
                let holds = |window: &ReadaheadWindow| (window.next..window.end).contains(&index);
                if read.window.as_ref().is_some_and(holds) {
                    read.major = true;
                    read.read_ahead_for = Some(index);
                    return Ok(());
                }
            }
            let created = self.create_page(file, index, slow, ctx, Gfp::HIGHUSER_MOVABLE, true)?;
            if created.is_some() {
                read.reads_alone = Some(index);
                self.submit_file_read(file, index, index + 1);
            }
            return Ok(());
        };
        if self.mem.pages[pfn].test_clear(PageFlags::READAHEAD) {
            let cache = &self.owners.files[file];
            read.window = read.readahead.ondemand(file, cache, index, true, last - index, max);
            return Ok(());
        }
        let page = &self.mem.pages[pfn];
        if page.has(PageFlags::LOCKED) {
            read.waiting = Some(pfn);
            return Ok(());
        }
        if !page.has(PageFlags::UPTODATE) {
            if read.reads_alone == Some(index) {
                return Err(Step::Done(Outcome::IoError));
            }
            // An earlier read failed, perhaps the read of a whole window: read this page again.
            read.major = true;
            read.reads_alone = Some(index);
            self.read_page_again(pfn);
            return Ok(());
        }
        let same_page =
            read.readahead.prev_pos > 0 && page_size.index_of(read.readahead.prev_pos - 1) == index;
        if !same_page {
            self.mark_page_accessed(ctx.cpu, pfn);
        }
        let next = end.min(page_size.bytes_of(u64::from(index) + 1));
        let len = (next - read.pos) as u32;
        let offset = (read.pos - page_size.bytes_of(index.into())) as u32;
        self.mem.work.bytes_copied += len;
        self.step.effects.push_contents(Effect::ReadOut { frame: pfn, offset, len });
        read.pos = next;
        read.readahead.prev_pos = read.pos;
        Ok(())
    }

    /// Adds a new, locked page to the page cache. `Ok(None)`: another task did so first.
    fn create_page(
        &mut self,
        file: FileId,
        index: u32,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
        gfp: Gfp,
        refault: bool,
    ) -> Result<Option<Pfn>, Step<Outcome>> {
        let pfn = match self.request_page(ctx, slow, PageRequest::page(gfp, ctx.memcg)) {
            Step::Continue => return Err(Step::Continue),
            Step::Wait(wait) => return Err(Step::Wait(wait)),
            Step::Done(Ok(pfn)) => pfn,
            Step::Done(Err(_)) => return Err(Step::Done(Outcome::NoMemory)),
        };
        if self.add_to_page_cache(file, index, pfn, ctx, refault) {
            Ok(Some(pfn))
        } else {
            self.discard_charged(ctx.cpu, pfn, ctx.memcg);
            Ok(None)
        }
    }

    pub(crate) fn write_step(
        &mut self,
        write: &mut WriteCall,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        if !write.entered {
            write.entered = true;
            self.mem.work.syscalls += 1;
            write.old_size = self.owners.files[write.file].size;
            self.owners.files[write.file].extend(write.end);
        }
        let mut looked_at = 0;
        for _ in 0..PAGES_PER_STEP {
            if self.owners.is_unbalanced(ctx.asker) {
                if let Some(pause) = self.balance_dirty_pages_ratelimited(write.file, ctx) {
                    return Step::Wait(pause);
                }
            }
            if write.pos >= write.end {
                return Step::Done(if write.major { Outcome::Major } else { Outcome::Minor });
            }
            if let Some(pfn) = write.waiting {
                if self.mem.pages[pfn].has(PageFlags::LOCKED) {
                    self.mem.pages[pfn].set(PageFlags::WAITERS);
                    return Step::Wait(Sleep::on_page(pfn));
                }
                write.waiting = None;
            }
            if let Err(step) = self.write_one_page(write, slow, ctx) {
                return step;
            }
            if let Some(pause) = self.balance_dirty_pages_ratelimited(write.file, ctx) {
                return Step::Wait(pause);
            }
            if self.has_woken_kswapd(&mut looked_at) {
                return Step::Continue;
            }
        }
        Step::Continue
    }

    fn write_one_page(
        &mut self,
        write: &mut WriteCall,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Result<(), Step<Outcome>> {
        let page_size = self.mem.page_size;
        let index = page_size.index_of(write.pos);
        let page_start = page_size.bytes_of(index.into());
        let page_end = page_start + page_size.bytes();
        let whole = write.pos == page_start && write.end >= page_end;
        let file = write.file;
        self.buffer_head_step(file, index, &mut write.buffer, slow, ctx)?;
        self.mem.work.cache_ops += 1;
        let pfn = match self.owners.files[file].get(index) {
            Some(pfn) if self.mem.pages[pfn].has(PageFlags::LOCKED) => {
                write.waiting = Some(pfn);
                return Ok(());
            }
            // An earlier read failed. A partial write must read the page again.
            Some(pfn) if !whole && !self.mem.pages[pfn].has(PageFlags::UPTODATE) => {
                if write.reads_alone == Some(index) {
                    return Err(Step::Done(Outcome::IoError));
                }
                write.major = true;
                write.reads_alone = Some(index);
                self.read_page_again(pfn);
                return Ok(());
            }
            Some(pfn) => pfn,
            None => {
                // Take the buffer head first: once the page is cached, other tasks can read it.
                let Ok(head) = self.take_buffer_head(index, &mut write.buffer, ctx) else {
                    return Ok(());
                };
                let gfp = Gfp::HIGHUSER_MOVABLE;
                let pfn = match self.create_page(file, index, slow, ctx, gfp, false) {
                    Ok(Some(pfn)) => pfn,
                    not_yet => {
                        if let Some(head) = head {
                            self.keep_buffer_head(head, ctx);
                        }
                        return not_yet.map(drop);
                    }
                };
                if let Some(head) = head {
                    self.attach_buffer_head(pfn, head);
                }
                // A partial write reads a page that exists on disk (Linux `__block_write_begin`).
                let cache = &self.owners.files[file];
                let on_disk = match cache.sparse {
                    true => cache.is_written(index),
                    false => page_start < write.old_size,
                };
                if on_disk && !whole {
                    write.major = true;
                    write.waiting = Some(pfn);
                    write.reads_alone = Some(index);
                    self.submit_file_read(file, index, index + 1);
                    return Ok(());
                }
                let page = &mut self.mem.pages[pfn];
                page.clear(PageFlags::LOCKED);
                page.set(PageFlags::UPTODATE);
                self.mem.work.fs_requests += 1;
                if !whole {
                    // The rest of the page reads as zeroes. The time to zero it is part of the
                    // copy.
                    self.step.effects.push_contents(Effect::Zero { frame: pfn, order: 0 });
                }
                self.wake_page(pfn);
                pfn
            }
        };
        if !self.try_attach_buffer_head(pfn, &mut write.buffer, ctx) {
            return Ok(());
        }
        let next = write.end.min(page_end);
        let (offset, len) = ((write.pos - page_start) as u32, (next - write.pos) as u32);
        self.mem.work.bytes_copied += len;
        self.step.effects.push_contents(Effect::WriteIn { frame: pfn, offset, len });
        self.mem.pages[pfn].set(PageFlags::UPTODATE);
        self.set_page_dirty_by(pfn, ctx);
        write.pos = next;
        Ok(())
    }

    /// Adds the pages of a window to the page cache and submits their reads. `None`: finished.
    pub(crate) fn readahead_step(
        &mut self,
        window: &mut ReadaheadWindow,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        let gfp = self.readahead_gfp();
        let mut looked_at = 0;
        while window.next < window.end {
            let index = window.next;
            if self.owners.files[window.file].get(index).is_some() {
                self.submit_file_read(window.file, window.run_start, index);
                window.next += 1;
                window.run_start = window.next;
                continue;
            }
            if slow.is_none() && self.has_woken_kswapd(&mut looked_at) {
                self.submit_file_read(window.file, window.run_start, index);
                window.run_start = index;
                return Some(Step::Continue);
            }
            let step = match self.request_page(ctx, slow, PageRequest::page(gfp, ctx.memcg)) {
                Step::Continue => Step::Continue,
                Step::Wait(wait) => Step::Wait(wait),
                Step::Done(Err(_)) => break,
                Step::Done(Ok(pfn)) => {
                    if !self.add_to_page_cache(window.file, index, pfn, ctx, true) {
                        self.discard_charged(ctx.cpu, pfn, ctx.memcg);
                        continue;
                    }
                    if index == window.marker {
                        self.mem.pages[pfn].set(PageFlags::READAHEAD);
                    }
                    window.next += 1;
                    continue;
                }
            };
            // Do not sleep on pages before their reads are submitted.
            self.submit_file_read(window.file, window.run_start, index);
            window.run_start = index;
            return Some(step);
        }
        self.submit_file_read(window.file, window.run_start, window.next);
        window.end = window.next;
        window.run_start = window.next;
        None
    }

    /// Starts reading the locked pages `start..end` of a file. Holes are ready at once.
    pub(crate) fn submit_file_read(&mut self, file: FileId, start: u32, end: u32) {
        let mut at = start;
        while at < end {
            let (hole, next) = self.owners.files[file].run_of_holes(at, end);
            self.submit_run_read(file, at, next, hole);
            at = next;
        }
    }

    /// Starts reading pages that are either all holes or all on disk.
    fn submit_run_read(&mut self, file: FileId, start: u32, end: u32, hole: bool) {
        if hole {
            // The file system is entered once per run of pages, as for pages on disk. It then looks
            // up the block of every page and finds a hole (Linux `ext4_mpage_readpages`).
            self.mem.work.fs_requests += 1;
            self.mem.work.cache_ops += end - start;
            for index in start..end {
                if let Some(pfn) = self.owners.files[file].get(index) {
                    let page = &mut self.mem.pages[pfn];
                    page.set(PageFlags::UPTODATE);
                    page.clear(PageFlags::LOCKED);
                    self.zero_page(pfn);
                    self.wake_page(pfn);
                }
            }
            return;
        }
        self.kernel
            .mem
            .vmstat
            .add(Event::Pgpgin, self.kernel.mem.page_size.kbytes_of((end - start).into()));
        let mut at = start;
        while at < end {
            let nr = (end - at).min(BIO_MAX_PAGES);
            self.mem.work.bios += 1;
            self.mem.work.bio_pages += nr;
            self.mem.work.fs_reads += 1;
            self.step.effects.push(Effect::Submit(Io::ReadFile { file, index: at, nr }));
            at += nr;
        }
    }

    /// Reads a cached page again after its read failed.
    pub(crate) fn read_page_again(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn];
        debug_assert!(page.has(PageFlags::FILE) && !page.has(PageFlags::LOCKED));
        page.set(PageFlags::LOCKED);
        let (file, index) = (FileId(page.mapping), page.index);
        self.submit_file_read(file, index, index + 1);
    }

    /// Removes a clean, unmapped page from the page cache.
    pub(crate) fn remove_from_page_cache(
        &mut self,
        pfn: Pfn,
        shadow: crate::ageing::shadow::Shadow,
        cpu: Cpu,
    ) {
        let page = &mut self.mem.pages[pfn];
        debug_assert!(page.has(PageFlags::FILE) && !page.has(PageFlags::DIRTY));
        debug_assert_eq!(page.mapcount, 0);
        page.clear(PageFlags::FILE.with(PageFlags::METADATA));
        let (file, index) = (page.mapping, page.index);
        self.release_buffer_head(pfn, cpu);
        let nodes = self.owners.files[file as usize].nr_nodes;
        self.owners.files[file as usize].remove(index, shadow);
        self.tree_shrank(FileId(file), index, nodes, cpu);
        self.mem.stat_dec(pfn, NodeStat::NrFilePages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::frames::node::NodeSpec;
    use crate::process::page_table::{Advice, Backing};
    use crate::process::ProcessCall;
    use crate::units::{Cpu, NodeId, PAGE_SIZE};
    use alloc::vec::Vec;

    #[test]
    fn a_window_that_wakes_kswapd_lets_it_run_first() {
        let mut config = Config { read_ahead_pages: 32, ..Config::default() };
        // A boost would wake kswapd between two steps.
        config.watermarks.watermark_boost_factor = 0;
        let mut machine = Machine::new(&[NodeSpec::x86_64(24 << 20, 0, 0)], 1, config).unwrap();
        let mm = machine.create_mm(Machine::ROOT).unwrap();
        let file = machine.create_file(8192 * PAGE_SIZE, true).unwrap();
        let map = machine.mmap(mm, Backing::File(file), 8192, Advice::Normal, false).unwrap();
        // The windows around these pages are complete and consecutive.
        for page in (16..8192).step_by(32) {
            let mut call = ProcessCall::fault(mm, NodeId(0), map, page, false);
            loop {
                let mut effects = Vec::new();
                let (step, borrowed) = machine.step(&mut call, Cpu(0), 0);
                borrowed.drain_into(&mut effects);
                if effects.contains(&Effect::Wake(Token::Daemon(Daemon::Kswapd(NodeId(0))))) {
                    assert_eq!(step, Step::Continue);
                    let cached = machine.file(file).unwrap().nr_pages;
                    assert_ne!(cached % 32, 0, "the window was finished first");
                    machine.step(&mut call, Cpu(0), 0).1.discard();
                    assert_eq!(machine.file(file).unwrap().nr_pages, cached.next_multiple_of(32));
                    return;
                }
                if step != Step::Continue {
                    break;
                }
            }
        }
        panic!("kswapd was never needed");
    }
}
