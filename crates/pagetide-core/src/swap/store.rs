//! Storing pages in their slots, and loading them.
//!
//! Linux: `swap_writepage`, `__swap_writepage`, `swap_readpage` (mm/page_io.c), `bdev_write_page`
//! (block/bdev.c, 6.1). An area on a disk stores and loads by I/O, which the world carries out,
//! unless zswap in front of it stores or has the page. A zram area stores and loads at once
//! (`SWP_SYNCHRONOUS_IO`). There a single page goes around the block layer (`rw_page`). If that fails,
//! it is tried again as a request, and so is a huge page. A page on the disk behind a zram device is
//! loaded by I/O. Since 6.12 a page of zeroes is recorded in a bitmap of its area, and stored nowhere.
//!
//! Invariant: a page stored on a disk is under writeback and a page loaded from one is locked until
//! the I/O ends. A page that was not stored is dirty.

use super::content::PageContent;
use crate::frames::page::PageFlags;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Effect, Io};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::{OwnerSlot, Owners};
use crate::stats::vmstat::{Event, NodeStat};
use crate::units::{Cpu, Pfn, SwapSlot};

/// State of a page after it was written to swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SwapStore {
    /// It is stored, and can be freed.
    Stored,
    /// The write has not ended, or it has failed.
    Unfinished,
    /// It must stay in memory: zswap does not take it, and its group does not let pages go around
    /// zswap (`AOP_WRITEPAGE_ACTIVATE`).
    Refused,
}

impl<O: Owners> Manager<O> {
    /// Writes a dirty page of the swap cache to its slots.
    pub(crate) fn swap_store(&mut self, pfn: Pfn, ctx: &Ctx) -> SwapStore {
        let page = &self.mem.pages[pfn];
        let (slot, nr, memcg) = (SwapSlot(page.private), page.nr_pages(), page.memcg);
        let may_be_zero = self.swap.takes_memory
            && (self.era.records_zero_pages || self.swap[slot].is_zero(slot));
        if may_be_zero && nr == 1 && self.record_zero_page(pfn, slot, ctx.cpu) {
            return SwapStore::Stored;
        }
        let has_zswap = self.swap.zswap.is_some() && !self.swap[slot].is_synchronous();
        let is_in_zswap = has_zswap && nr == 1 && self.store_in_zswap(pfn, slot, ctx);
        if has_zswap && !is_in_zswap && !self.groups.zswap_writeback_enabled(memcg) {
            self.mem.pages[pfn].clear(PageFlags::RECLAIM);
            return SwapStore::Refused;
        }
        let page = &mut self.mem.pages[pfn];
        page.clear(PageFlags::DIRTY);
        page.set(PageFlags::WRITEBACK);
        self.writeback_stat_inc(pfn, NodeStat::NrWriteback);
        self.mem.vmstat.add(Event::ThpSwpout, u64::from(nr > 1));
        if is_in_zswap {
            self.mem.pages[pfn].clear(PageFlags::RECLAIM);
            self.end_writeback(pfn, ctx.cpu);
            return SwapStore::Stored;
        }
        if self.swap[slot].is_synchronous() {
            return match self.store_at_once(pfn, slot, nr as u32, ctx) {
                true => SwapStore::Stored,
                false => SwapStore::Unfinished,
            };
        }
        self.count_request(nr);
        let nr = nr as u32;
        self.submit_swap(Io::SwapOut { slot, pfn, nr }, ctx);
        SwapStore::Unfinished
    }

    fn content_of(&self, pfn: Pfn) -> PageContent {
        let at = OwnerSlot::of(&self.mem.pages[pfn]);
        self.swap.contents.draw(self.owners.content_mix(at), at.owner, at.index)
    }

    /// Records a page of zeroes in the bitmap of its area (Linux `swap_zeromap_folio_set`, 6.12).
    /// Returns false for another page. Pages of a machine without compressed swap have no contents.
    fn record_zero_page(&mut self, pfn: Pfn, slot: SwapSlot, cpu: Cpu) -> bool {
        let is_zero = self.era.records_zero_pages
            && self.swap.has_pools()
            && self.content_of(pfn) == PageContent::Zeroes;
        self.swap[slot].set_zero(slot, is_zero);
        if is_zero {
            self.mem.work.pages_zeroed += 1;
            self.swap_slot_free_notify(slot, cpu);
            let page = &mut self.mem.pages[pfn];
            page.clear(PageFlags::DIRTY);
            page.clear(PageFlags::RECLAIM);
            self.step.effects.push_contents(Effect::StorePage { slot, pfn });
        }
        is_zero
    }

    /// Stores a page in zswap. Returns false if zswap does not take it.
    fn store_in_zswap(&mut self, pfn: Pfn, slot: SwapSlot, ctx: &Ctx) -> bool {
        let content = self.content_of(pfn);
        let is_stored = self.zswap_store(pfn, slot, content, ctx);
        if is_stored {
            self.step.effects.push_contents(Effect::StorePage { slot, pfn });
        }
        is_stored
    }

    fn store_at_once(&mut self, pfn: Pfn, slot: SwapSlot, nr: u32, ctx: &Ctx) -> bool {
        let at = OwnerSlot::of(&self.mem.pages[pfn]);
        let mix = self.owners.content_mix(at);
        let is_stored = nr == 1 && {
            let content = self.swap.contents.draw(mix, at.owner, at.index);
            self.store_part(slot, pfn, content, ctx)
        };
        let is_stored = match is_stored {
            true => {
                self.mem.vmstat.count(Event::Pswpout);
                true
            }
            false => {
                self.count_request(nr.into());
                (0..nr).all(|part| {
                    let content = self.swap.contents.draw(mix, at.owner, at.index + part);
                    self.store_part(SwapSlot(slot.0 + part), Pfn(pfn.0 + part), content, ctx)
                })
            }
        };
        let page = &mut self.mem.pages[pfn];
        page.clear(PageFlags::RECLAIM);
        if !is_stored {
            page.set(PageFlags::DIRTY);
        }
        self.end_writeback(pfn, ctx.cpu);
        is_stored
    }
}

impl Kernel {
    fn store_part(&mut self, slot: SwapSlot, pfn: Pfn, content: PageContent, ctx: &Ctx) -> bool {
        let is_stored = self.zram_write(slot, content, ctx);
        if is_stored {
            self.step.effects.push_contents(Effect::StorePage { slot, pfn });
        }
        is_stored
    }

    /// Counts a request to write pages.
    pub(super) fn count_request(&mut self, nr: u64) {
        self.mem.vmstat.add(Event::Pswpout, nr);
        self.mem.vmstat.add(Event::Pgpgout, self.mem.page_size.kbytes_of(nr));
        self.mem.work.bios += 1;
        self.mem.work.bio_pages += nr as u32;
    }

    /// Reads the page of a slot into a locked page of the swap cache.
    pub(crate) fn swap_load(&mut self, slot: SwapSlot, pfn: Pfn, ctx: &Ctx) {
        if self.swap.takes_memory && self.swap[slot].is_zero(slot) {
            self.mem.work.pages_zeroed += 1;
            self.step.effects.push_contents(Effect::LoadPage { slot, pfn });
            self.end_read(pfn, true);
            return;
        }
        let has_zswap = self.swap.zswap.is_some() && !self.swap[slot].is_synchronous();
        if has_zswap && self.zswap_load(slot, pfn, ctx.cpu) {
            self.step.effects.push_contents(Effect::LoadPage { slot, pfn });
            self.end_read(pfn, true);
            return;
        }
        self.mem.vmstat.count(Event::Pswpin);
        // A page on the disk behind zram is read like one of a swap area on that disk.
        if self.swap[slot].is_synchronous() && self.zram_read(slot) {
            self.step.effects.push_contents(Effect::LoadPage { slot, pfn });
            self.end_read(pfn, true);
            return;
        }
        self.mem.vmstat.add(Event::Pgpgin, self.mem.page_size.kbytes_of(1));
        self.mem.work.bios += 1;
        self.mem.work.bio_pages += 1;
        self.submit_swap(Io::SwapIn { slot, pfn }, ctx);
    }
}
