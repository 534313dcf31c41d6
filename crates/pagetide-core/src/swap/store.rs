//! Storing pages in their slots, and loading them.
//!
//! Linux: `swap_writepage`, `swap_readpage` (mm/page_io.c, 6.1). An area on a disk stores and loads
//! by I/O, which the world carries out.
//!
//! Invariant: a stored page is under writeback and a loaded page is locked until the I/O ends.

use crate::frames::page::PageFlags;
use crate::interface::effect::{Effect, Io};
use crate::interface::kernel::Kernel;
use crate::stats::vmstat::{Event, NodeStat};
use crate::units::{Pfn, SwapSlot};

impl Kernel {
    /// Writes a dirty page of the swap cache to its slots.
    pub(crate) fn swap_store(&mut self, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn];
        page.clear(PageFlags::DIRTY);
        page.set(PageFlags::WRITEBACK);
        let (slot, nr) = (SwapSlot(page.private), page.nr_pages());
        self.writeback_stat_inc(pfn, NodeStat::NrWriteback);
        self.mem.vmstat.add(Event::ThpSwpout, u64::from(nr > 1));
        self.mem.vmstat.add(Event::Pswpout, nr);
        self.mem.vmstat.add(Event::Pgpgout, self.mem.page_size.kbytes_of(nr));
        let nr = nr as u32;
        self.mem.work.bios += 1;
        self.mem.work.bio_pages += nr;
        self.step.effects.push(Effect::Submit(Io::SwapOut { slot, pfn, nr }));
    }

    /// Reads the page of a slot into a locked page of the swap cache.
    pub(crate) fn swap_load(&mut self, slot: SwapSlot, pfn: Pfn) {
        self.mem.vmstat.count(Event::Pswpin);
        self.mem.vmstat.add(Event::Pgpgin, self.mem.page_size.kbytes_of(1));
        self.mem.work.bios += 1;
        self.mem.work.bio_pages += 1;
        self.step.effects.push(Effect::Submit(Io::SwapIn { slot, pfn }));
    }
}
