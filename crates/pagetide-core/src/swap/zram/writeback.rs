//! Writing pages of a zram device to the disk behind it.
//!
//! Linux: `writeback_store`, `read_from_bdev` (drivers/block/zram/zram_drv.c, 6.1). A task marks
//! all stored pages as idle, later writes those that are still idle, or those that are not
//! compressed. Its write to the file goes over the table: one page is decompressed into a page of
//! kernel memory and written, and the task waits for the disk before the next. A page that was
//! used or freed in the meantime stays as it is. A page on the disk is read from there when it is
//! swapped in, and its block is free when its slot is.
//!
//! Differences from Linux: the block of a page has the number of its slot, and the page of kernel
//! memory is allocated for each write, not once for all. Mode `incompressible` (6.2) needs a second
//! algorithm, which is not modelled, and ages of idle pages (`CONFIG_ZRAM_MEMORY_TRACKING`) neither.
//! A write to a file concerns all devices of the machine.
//!
//! Invariant: between two steps a write holds no page but that of the block being written.

use super::backing::{BlockWrite, NextBlock, ZramBacking, ZramWritebackMode, UNIT_SHIFT};
use super::{Zram, ZramEntry};
use crate::frames::gfp::Gfp;
use crate::frames::page::PageFlags;
use crate::frames::page_request::{PageRequest, SlowRequest};
use crate::groups::memcg::ROOT;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Effect, Io, Sleep, Step};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::outcome::Outcome;
use crate::interface::owners::Owners;
use crate::stats::vmstat::Event;
use crate::swap::pool_pages::ZsPoolId;
use crate::units::errno::Errno;
use crate::units::{Cpu, Pfn, SwapSlot};

/// A write to `writeback` in progress.
#[derive(Clone, Debug)]
pub(crate) struct ZramWriteback {
    mode: ZramWritebackMode,
    /// The area of the device, and the next entry of its table.
    area: u32,
    at: u32,
    /// The write that it waits for.
    waits: Option<(Pfn, u64)>,
    /// Failed writes of the device when it began.
    nr_failed: Option<u64>,
    /// An error of the disk, which it returns at the end.
    has_failed: bool,
}

impl ZramWriteback {
    pub(crate) fn new(mode: ZramWritebackMode) -> ZramWriteback {
        ZramWriteback { mode, area: 0, at: 0, waits: None, nr_failed: None, has_failed: false }
    }

    fn next_area(&mut self) {
        (self.area, self.at, self.nr_failed) = (self.area + 1, 0, None);
    }
}

impl Kernel {
    /// Whether a zram device has a disk behind it.
    pub(crate) fn has_zram_backing(&self) -> bool {
        self.swap.zrams().any(|zram| zram.backing.is_some())
    }

    fn backing_mut(&mut self, area: u32) -> Option<&mut ZramBacking> {
        self.swap.zram_mut(area as usize)?.backing.as_mut()
    }

    /// Counts the read of a page from the disk behind a device.
    pub(super) fn count_block_read(&mut self, id: ZsPoolId) {
        if let Some(backing) = self.backing_mut(id.0) {
            backing.bd_reads += 1;
        }
    }

    /// Starts to write the page of an entry, by way of `buffer`. Returns the number of the write.
    fn write_block(&mut self, area: u32, at: u32, buffer: Pfn) -> Option<u64> {
        let first = self.swap.areas().get(area as usize)?.slots().start as u32;
        let slot = SwapSlot(first + at);
        self.zram_read(slot);
        let zram = self.swap.zram_mut(area as usize)?;
        let entry = zram.table.get_mut(at as usize)?;
        // A use of the page in the meantime clears the mark.
        (entry.idle, entry.under_writeback) = (true, true);
        let backing = zram.backing.as_mut()?;
        let number = backing.next_write;
        backing.next_write += 1;
        backing.writes.push(BlockWrite { slot, at, buffer, number });
        self.mem.vmstat.add(Event::Pgpgout, self.mem.page_size.kbytes_of(1));
        self.mem.work.bios += 1;
        self.mem.work.bio_pages += 1;
        self.step.effects.push_contents(Effect::LoadPage { slot, pfn: buffer });
        self.step.effects.push(Effect::Submit(Io::SwapOut { slot, pfn: buffer, nr: 1 }));
        Some(number)
    }

    /// Ends the write of a block. Returns false if the request was none.
    pub(in crate::swap) fn block_written(
        &mut self,
        slot: SwapSlot,
        buffer: Pfn,
        ok: bool,
        cpu: Cpu,
    ) -> bool {
        let is_it = |write: &BlockWrite| write.slot == slot && write.buffer == buffer;
        let found = (0..self.swap.areas().len() as u32).find_map(|area| {
            let writes = &mut self.backing_mut(area)?.writes;
            let position = writes.iter().position(is_it)?;
            Some((area, writes.swap_remove(position).at))
        });
        let Some((area, at)) = found else { return false };
        self.wake_page(buffer);
        self.mem.free_page(cpu, buffer, 0);
        let unit = self.mem.page_size.bytes() >> UNIT_SHIFT;
        let Some(zram) = self.swap.zram_mut(area as usize) else { return true };
        let Some(entry) = zram.table.get_mut(at as usize) else { return true };
        let was_idle = core::mem::take(&mut entry.idle);
        entry.under_writeback = false;
        let is_same = was_idle && matches!(entry.entry, ZramEntry::Object { .. });
        let Some(backing) = &mut zram.backing else { return true };
        match ok {
            true => backing.bd_writes += 1,
            false => backing.nr_failed += 1,
        }
        if ok && is_same {
            if backing.limit_enabled {
                backing.limit = backing.limit.saturating_sub(unit);
            }
            self.zram_set(ZsPoolId(area), at, ZramEntry::OnDisk, cpu);
        }
        true
    }
}

impl<O: Owners> Manager<O> {
    /// One bounded step of a write to `writeback`.
    pub(crate) fn zram_writeback_step(
        &mut self,
        state: &mut ZramWriteback,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        if let Some((buffer, number)) = state.waits {
            let writes = self.backing_mut(state.area).map(|backing| &backing.writes);
            if writes.is_some_and(|writes| writes.iter().any(|write| write.number == number)) {
                self.mem.pages[buffer].set(PageFlags::WAITERS);
                return Step::Wait(Sleep::on_page(buffer));
            }
            state.waits = None;
            state.at += 1;
        }
        if state.area as usize >= self.swap.areas().len() {
            if let Some(slow) = slow.take() {
                self.abandon_slow_request(&slow, ctx.asker, ctx.cpu);
            }
            return Step::Done(match (self.has_zram_backing(), state.has_failed) {
                (false, _) => Outcome::Refused(Errno::Enodev),
                (true, true) => Outcome::Refused(Errno::Eio),
                (true, false) => Outcome::Minor,
            });
        }
        let Some(zram) = self.swap.zram_mut(state.area as usize) else {
            state.next_area();
            return Step::Continue;
        };
        let nr_failed = zram.backing.as_ref().map_or(0, |backing| backing.nr_failed);
        state.has_failed |= nr_failed > *state.nr_failed.get_or_insert(nr_failed);
        match zram.next_block(&mut state.at, state.mode) {
            NextBlock::Later => return Step::Continue,
            NextBlock::EndOfTable => {
                state.next_area();
                return Step::Continue;
            }
            NextBlock::Refused(errno) => {
                if let Some(slow) = slow.take() {
                    self.abandon_slow_request(&slow, ctx.asker, ctx.cpu);
                }
                return Step::Done(Outcome::Refused(errno));
            }
            NextBlock::Entry => {}
        }
        let buffer = match self.request_page(ctx, slow, PageRequest::page(Gfp::KERNEL, ROOT)) {
            Step::Continue => return Step::Continue,
            Step::Wait(wait) => return Step::Wait(wait),
            Step::Done(Ok(buffer)) => buffer,
            Step::Done(Err(_)) => return Step::Done(Outcome::Refused(Errno::Enomem)),
        };
        // Reclaim for the page may have changed the entry.
        let (area, mode) = (state.area, state.mode);
        let is_wanted = |zram: &mut Zram| zram.is_wanted(state.at, mode);
        let started = match self.swap.zram_mut(area as usize).is_some_and(is_wanted) {
            true => self.write_block(area, state.at, buffer),
            false => None,
        };
        match started {
            Some(number) => state.waits = Some((buffer, number)),
            None => self.discard_charged(ctx.cpu, buffer, ROOT),
        }
        Step::Continue
    }
}
