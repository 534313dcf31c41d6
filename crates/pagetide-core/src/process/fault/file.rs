//! Faults on mapped files: page cache, read-ahead and fault-around.
//!
//! Linux: mm/filemap.c `filemap_fault`, `filemap_map_pages`, `do_sync_mmap_readahead` (6.1).
//!
//! Invariant: only an up-to-date page is mapped, and the page is searched again after every step
//! that dropped the lock of the address space.

use super::{Fault, FaultStage};
use crate::frames::gfp::Gfp;
use crate::frames::page::PageFlags;
use crate::frames::page_request::{PageRequest, SlowRequest};
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Sleep, Step};
use crate::interface::outcome::Outcome;
use crate::process::page_cache::bits;
use crate::process::page_table::{Advice, Backing, VmaId};
use crate::process::readahead::ReadaheadWindow;
use crate::process::Machine;
use crate::stats::vmstat::Event;
use crate::units::{FileId, Pfn};

/// Misses after which a mapping is read page by page (Linux `MMAP_LOTSAMISS`).
const MMAP_LOTSAMISS: u32 = 100;

impl Machine {
    pub(super) fn fault_file_locked(
        &mut self,
        fault: &mut Fault,
        pfn: Pfn,
    ) -> Option<Step<Outcome>> {
        if self.mem.pages[pfn].has(PageFlags::LOCKED) {
            self.mem.pages[pfn].set(PageFlags::WAITERS);
            return Some(Step::Wait(Sleep::on_page(pfn)));
        }
        if fault.dropped_lock {
            return self.retry(fault);
        }
        fault.stage = FaultStage::File;
        None
    }

    pub(super) fn fault_file(&mut self, fault: &mut Fault, ctx: &Ctx) -> Option<Step<Outcome>> {
        let (file, advice) = match &self.owners.vmas[fault.vma] {
            vma if !vma.alive => return Some(Step::Done(Outcome::NoMemory)),
            vma => match vma.backing {
                Backing::File(file) => (file, vma.advice),
                Backing::Anon => unreachable!("a file stage on anonymous memory"),
            },
        };
        let index = fault.page as u32;
        if fault.page >= self.owners.files[file].nr_file_pages() {
            // The page is beyond the end of the file: SIGBUS, as in `filemap_fault`.
            return Some(Step::Done(Outcome::IoError));
        }
        if !fault.write
            && !fault.dropped_lock
            && self.config.fault_around_pages > 1
            && self.fault_around(fault.vma, file, index)
        {
            let pte = self.owners.vmas[fault.vma].ptes[fault.page as usize];
            return Some(fault.got_kept(pte.pfn()));
        }
        self.mem.work.cache_ops += 1;
        let max = self.config.read_ahead_pages;
        let cached = self.owners.files[file].get(index);
        let looked = core::mem::replace(&mut fault.searched, true);
        match cached {
            Some(pfn) => {
                if !fault.tried && !looked {
                    if let Some(window) = self.async_mmap_readahead(fault, file, advice, pfn) {
                        fault.stage = FaultStage::Readahead(window);
                        return None;
                    }
                }
                self.fault_file_cached(fault, pfn, ctx)
            }
            None => {
                if !looked {
                    fault.major = true;
                    self.mem.vmstat.count(Event::Pgmajfault);
                    self.groups.memcgs[ctx.memcg].events.count(Event::Pgmajfault);
                    let window = match advice {
                        Advice::Random => None,
                        _ if max == 0 => None,
                        Advice::Sequential => {
                            let vma = &mut self.owners.vmas[fault.vma];
                            let file_cache = &self.owners.files[file];
                            vma.readahead.ondemand(file, file_cache, index, false, max, max)
                        }
                        Advice::Normal | Advice::Huge | Advice::NoHuge => {
                            let vma = &mut self.owners.vmas[fault.vma];
                            if vma.mmap_miss < MMAP_LOTSAMISS * 10 {
                                vma.mmap_miss += 1;
                            }
                            if vma.mmap_miss > MMAP_LOTSAMISS {
                                None
                            } else {
                                vma.readahead.around(file, &self.owners.files[file], index, max)
                            }
                        }
                    };
                    if let Some(window) = window {
                        fault.dropped_lock = !fault.tried && !self.era.reads_under_lock;
                        fault.stage = FaultStage::Readahead(window);
                        return None;
                    }
                }
                fault.stage = FaultStage::FileCreate;
                None
            }
        }
    }

    /// The next read-ahead window, if a cached page has the read-ahead mark.
    pub(super) fn async_mmap_readahead(
        &mut self,
        fault: &mut Fault,
        file: FileId,
        advice: Advice,
        pfn: Pfn,
    ) -> Option<ReadaheadWindow> {
        let max = self.config.read_ahead_pages;
        if advice == Advice::Random || max == 0 {
            return None;
        }
        let vma = &mut self.owners.vmas[fault.vma];
        vma.mmap_miss = vma.mmap_miss.saturating_sub(1);
        let page = &mut self.kernel.mem.pages[pfn];
        if !page.has(PageFlags::READAHEAD) {
            return None;
        }
        fault.dropped_lock = !self.kernel.era.reads_under_lock;
        if page.has(PageFlags::WRITEBACK) {
            return None;
        }
        page.clear(PageFlags::READAHEAD);
        vma.readahead.ondemand(file, &self.owners.files[file], fault.page as u32, true, max, max)
    }

    pub(super) fn fault_file_cached(
        &mut self,
        fault: &mut Fault,
        pfn: Pfn,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        if self.mem.pages[pfn].has(PageFlags::LOCKED) {
            // The page is being read: drop the lock, wait, try again.
            fault.dropped_lock |= !fault.tried;
            fault.stage = FaultStage::FileLocked(pfn);
            return None;
        }
        if !self.mem.pages[pfn].has(PageFlags::UPTODATE) {
            if fault.read_alone {
                return Some(Step::Done(Outcome::IoError));
            }
            // An earlier read failed, perhaps the read of a whole window: read this page again.
            fault.read_alone = true;
            fault.dropped_lock |= !fault.tried;
            self.read_page_again(pfn);
            fault.stage = FaultStage::FileLocked(pfn);
            return None;
        }
        if fault.dropped_lock {
            return self.retry(fault);
        }
        let vma = &mut self.owners.vmas[fault.vma];
        let pte = vma.ptes[fault.page as usize];
        if !pte.is_empty() {
            // Another task has handled the fault (Linux `finish_fault`): try the access again.
            let Some(touched) = pte.touched(fault.write) else {
                fault.stage = FaultStage::Start;
                return None;
            };
            vma.ptes[fault.page as usize] = touched;
            return Some(fault.got_kept(touched.pfn()));
        }
        if fault.write {
            if !self.try_attach_buffer_head(pfn, &mut fault.buffer, ctx) {
                fault.stage = FaultStage::BufferHead;
                return None;
            }
            self.set_page_dirty_by(pfn, ctx);
            self.map_page(fault.vma, fault.page, pfn, true);
            return self.fault_dirtied(fault, fault.got_kept(pfn), ctx);
        }
        self.map_page(fault.vma, fault.page, pfn, false);
        Some(fault.got_kept(pfn))
    }

    /// Starts the fault again after dropping the lock, as the architecture's handler does.
    pub(super) fn retry(&mut self, fault: &mut Fault) -> Option<Step<Outcome>> {
        fault.tried = true;
        fault.stage = FaultStage::Start;
        None
    }

    pub(super) fn fault_readahead(
        &mut self,
        fault: &mut Fault,
        mut window: ReadaheadWindow,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        let step = self.readahead_step(&mut window, slow, ctx);
        fault.stage = FaultStage::Readahead(window);
        if let Some(step) = step {
            return Some(step);
        }
        fault.stage = FaultStage::File;
        None
    }

    pub(super) fn fault_file_create(
        &mut self,
        fault: &mut Fault,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        let Backing::File(file) = self.owners.vmas[fault.vma].backing else {
            unreachable!("a file stage on anonymous memory")
        };
        let index = fault.page as u32;
        let request = PageRequest::page(Gfp::HIGHUSER_MOVABLE, ctx.memcg);
        let pfn = match self.request_page(ctx, slow, request) {
            Step::Continue => return Some(Step::Continue),
            Step::Wait(wait) => return Some(Step::Wait(wait)),
            Step::Done(Ok(pfn)) => pfn,
            Step::Done(Err(_)) if fault.dropped_lock => return self.retry(fault),
            Step::Done(Err(_)) => return Some(Step::Done(Outcome::NoMemory)),
        };
        if !self.owners.vmas[fault.vma].alive {
            self.discard_charged(ctx.cpu, pfn, ctx.memcg);
            return Some(Step::Done(Outcome::NoMemory));
        }
        if !self.add_to_page_cache(file, index, pfn, ctx, true) {
            self.discard_charged(ctx.cpu, pfn, ctx.memcg);
            fault.stage = FaultStage::File;
            return None;
        }
        fault.dropped_lock |= !fault.tried && !self.era.reads_under_lock;
        fault.read_alone = true;
        self.submit_file_read(file, index, index + 1);
        self.fault_file_cached(fault, pfn, ctx)
    }

    /// Maps the cached neighbours of a page on a read fault (Linux `do_fault_around`,
    /// `filemap_map_pages`). Returns whether the page itself was mapped.
    pub(super) fn fault_around(&mut self, vma: VmaId, file: FileId, index: u32) -> bool {
        let nr = self.config.fault_around_pages;
        let len = self.owners.vmas[vma].len().min(self.owners.files[file].nr_file_pages());
        // Aligned to the window, within one page table.
        let ptrs_per_pte = self.mem.page_size.ptrs_per_pte();
        let table_start = index & !(ptrs_per_pte as u32 - 1);
        let start = (index / nr * nr).max(table_start);
        let end = (u64::from(start) + u64::from(nr))
            .min(u64::from(table_start) + ptrs_per_pte)
            .min(len) as u32;
        let mut mapped = false;
        let mut nr_neighbours = 0;
        let mut from = start;
        while from < end {
            let to = end.min((from | 63).saturating_add(1));
            let cached = self.owners.files[file].cached_bits_of_leaf(from..to);
            for bit in bits(cached) {
                let at = from + bit as u32;
                // A neighbour counts as a read-ahead hit even if it was mapped before. Most are
                // mapped already, so this check avoids loading their slots and descriptors.
                if !self.owners.vmas[vma].ptes[at as usize].is_empty() {
                    nr_neighbours += 1;
                    continue;
                }
                let Some(pfn) = self.owners.files[file].get(at) else { continue };
                let page = &self.mem.pages[pfn];
                if page.flags.any(PageFlags::LOCKED.with(PageFlags::READAHEAD))
                    || !page.has(PageFlags::UPTODATE)
                {
                    continue;
                }
                nr_neighbours += 1;
                self.map_page(vma, u64::from(at), pfn, false);
                mapped |= at == index;
            }
            from = to;
        }
        let mapping = &mut self.owners.vmas[vma];
        mapping.mmap_miss = mapping.mmap_miss.saturating_sub(nr_neighbours);
        self.mem.work.cache_ops += 1;
        mapped
    }
}
