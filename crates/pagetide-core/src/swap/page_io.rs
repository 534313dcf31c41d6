//! End of I/O on a page: wakes waiting tasks and returns a written page to reclaim.
//!
//! Linux: `folio_end_read`, `folio_end_writeback`, mm/page_io.c (6.1). This file handles the swap
//! area's I/O; the owners handle I/O of their own stores ([`Owners::io_done`]).
//!
//! Invariant: a page under I/O is LOCKED (reads) or WRITEBACK (writes), for one request at a time.

use crate::frames::page::PageFlags;
use crate::frames::page_alloc::Memory;
use crate::interface::effect::{Effects, Io};
use crate::interface::kernel::Kernel;
use crate::interface::manager::Manager;
use crate::interface::owners::Owners;
use crate::interface::throttle::Throttle;
use crate::stats::vmstat::{Event, NodeStat};
use crate::units::{Cpu, Nanos, Pfn, SwapSlot, HPAGE_PMD_NR, SWAP_CLUSTER_MAX};

impl Memory {
    /// Whether a page of the swap cache is under this kind of I/O with this slot.
    fn is_swap_io(&self, slot: SwapSlot, pfn: Pfn, under: PageFlags) -> bool {
        let moving = PageFlags::MIGRATING;
        self.pages.get(pfn.idx()).is_some_and(|page| {
            page.has(under.with(PageFlags::SWAPCACHE))
                && !page.has(moving)
                && page.private == slot.0
        })
    }
}

impl Kernel {
    fn swap_write_done(&mut self, slot: SwapSlot, pfn: Pfn, ok: bool, cpu: Cpu) {
        if self.mem.is_swap_io(slot, pfn, PageFlags::WRITEBACK) {
            if !ok {
                let page = &mut self.mem.pages[pfn];
                page.set(PageFlags::DIRTY);
                page.clear(PageFlags::RECLAIM);
            }
            self.end_writeback(pfn, cpu);
        }
    }

    pub(crate) fn end_read(&mut self, pfn: Pfn, ok: bool) {
        let page = &mut self.mem.pages[pfn];
        if ok {
            page.set(PageFlags::UPTODATE);
        }
        page.clear(PageFlags::LOCKED);
        self.wake_page(pfn);
    }

    pub(crate) fn end_writeback(&mut self, pfn: Pfn, cpu: Cpu) {
        let page = &mut self.mem.pages[pfn];
        if !page.test_clear(PageFlags::WRITEBACK) {
            return;
        }
        let (node, nr) = (page.node(), page.nr_pages());
        let rotate = page.test_clear(PageFlags::RECLAIM);
        self.writeback_stat_dec(pfn, NodeStat::NrWriteback);
        self.mem.vmstat.add(Event::NrWritten, nr);
        if rotate {
            self.rotate_reclaimable(cpu, pfn);
        }
        self.wake_page(pfn);
        let state = &mut self.mem.pgdat[node];
        if state.nr_writeback_throttled > 0 {
            state.nr_written_while_throttled += nr;
            let enough = SWAP_CLUSTER_MAX * u64::from(state.nr_writeback_throttled);
            if state.nr_written_while_throttled > enough {
                state.nr_written_while_throttled = 0;
                self.wake_throttled(node, Throttle::Writeback);
            }
        }
    }
}

impl<O: Owners> Manager<O> {
    pub(crate) fn do_io_done(&mut self, io: Io, ok: bool, cpu: Cpu, now: Nanos) -> Effects<'_> {
        if !self.groups.has_cpu(cpu) {
            return self.take_effects();
        }
        match io {
            Io::SwapIn { slot, pfn } => {
                self.end_swap(cpu);
                if self.mem.is_swap_io(slot, pfn, PageFlags::LOCKED) {
                    self.end_read(pfn, ok);
                }
            }
            Io::SwapOut { slot, pfn, nr: 1 }
                if self.swap.takes_memory && self.block_written(slot, pfn, ok, cpu) => {}
            Io::SwapOut { slot, pfn, nr } => {
                self.end_swap(cpu);
                // A huge page ends whole, unless a fault has split it during the write.
                let is_huge =
                    self.mem.pages.get(pfn.idx()).is_some_and(|page| page.has(PageFlags::HEAD));
                if u64::from(nr) == HPAGE_PMD_NR || nr == 1 && !is_huge {
                    for (slot, pfn) in (slot.0..u32::MAX).zip(pfn.0..u32::MAX).take(nr as usize) {
                        self.swap_write_done(SwapSlot(slot), Pfn(pfn), ok, cpu);
                    }
                }
            }
            Io::ReadFile { .. } | Io::WriteFile { .. } => O::io_done(self, io, ok, cpu, now),
        }
        self.take_effects()
    }
}
