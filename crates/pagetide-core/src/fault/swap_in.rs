//! Faults on pages that are in swap.
//!
//! Linux: mm/memory.c `do_swap_page`, mm/swap_state.c (6.1). The page is in the swap cache, or is
//! read with its neighbours: by slot on a rotating disk, by address otherwise, as many as read-ahead
//! has lately been worth.
//!
//! Invariant: a page in the swap cache is locked until its read ends; a slot whose page is mapped
//! again belongs to the swap cache alone, or to nobody.

use super::{Fault, Stage, SwapWindow};
use crate::call::{Alloc, Ctx, Outcome};
use crate::effect::{Effect, Io, Step, Wait};
use crate::gfp::Gfp;
use crate::machine::Machine;
use crate::page::{PageFlags, Place};
use crate::page_table::PTRS_PER_PTE;
use crate::slowpath::SlowPath;
use crate::units::{Pfn, SwapSlot};
use crate::vmstat::Event;

impl Machine {
    pub(super) fn fault_swap(&mut self, fault: &mut Fault, ctx: &Ctx) -> Option<Step<Outcome>> {
        let slot = match &self.vmas[fault.vma.idx()] {
            vma if !vma.alive => return Some(Step::Done(Outcome::NoMemory)),
            vma => vma.ptes[fault.page as usize].swap_slot(),
        };
        let Some(slot) = slot else {
            fault.stage = Stage::Start;
            return None;
        };
        self.mem.work.cache_ops += 1;
        if let Some(pfn) = self.swap.cached(slot) {
            if self.mem.pages[pfn.idx()].test_clear(PageFlags::READAHEAD) {
                self.mem.vmstat.count(Event::SwapRaHit);
                self.swapin.hits += 1;
            }
            return self.fault_swap_cached(fault, pfn, ctx);
        }
        fault.major = true;
        fault.swap_window = self.swap_window(fault, slot);
        fault.stage = Stage::SwapRead;
        None
    }

    /// Which pages to read with a swapped page (Linux `swapin_nr_pages`,
    /// `swap_cluster_readahead`, `swap_vma_readahead`).
    pub(super) fn swap_window(&mut self, fault: &Fault, slot: SwapSlot) -> SwapWindow {
        let max = 1u32 << self.config.page_cluster.min(10);
        let by_slot = self.config.swap_rotational;
        let offset = if by_slot { u64::from(slot.0) } else { fault.page };
        let history = &mut self.swapin;
        if max <= 1 {
            return SwapWindow { next: offset, end: offset + 1, by_slot, active: true };
        }
        let mut nr = history.hits + 2;
        if nr == 2 {
            // No hit last time: only an adjacent fault earns a second page.
            if offset.abs_diff(history.prev_offset) != 1 {
                nr = 1;
            }
        } else {
            nr = nr.max(4).next_power_of_two();
        }
        nr = nr.min(max).max(history.last_window / 2).max(1);
        let forward = offset == history.prev_offset + 1;
        let backward = history.prev_offset == offset + 1;
        history.hits = 0;
        history.last_window = nr;
        history.prev_offset = offset;
        let nr = u64::from(nr);
        let (next, end) = if by_slot {
            let start = offset / nr * nr;
            (start, (start + nr).min(u64::from(self.swap.usable())))
        } else {
            let start = if forward {
                offset
            } else if backward {
                (offset + 1).saturating_sub(nr)
            } else {
                offset.saturating_sub((nr - 1) / 2)
            };
            // Within one page of page table and the mapping.
            let table = offset / PTRS_PER_PTE * PTRS_PER_PTE;
            let len = self.vmas[fault.vma.idx()].len();
            (start.max(table), (start + nr).min(table + PTRS_PER_PTE).min(len))
        };
        SwapWindow { next, end, by_slot, active: true }
    }

    pub(super) fn fault_swap_read(
        &mut self,
        fault: &mut Fault,
        slow: &mut Option<SlowPath>,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        // Neighbours first, as they lie; then the page itself is in the cache or is read alone.
        while fault.swap_window.next < fault.swap_window.end {
            let at = fault.swap_window.next;
            if !self.vmas[fault.vma.idx()].alive {
                return Some(Step::Done(Outcome::NoMemory));
            }
            let own = self.vmas[fault.vma.idx()].ptes[fault.page as usize].swap_slot();
            let slot = if fault.swap_window.by_slot {
                Some(SwapSlot(at as u32)).filter(|&slot| self.swap.is_mapped(slot))
            } else {
                self.vmas[fault.vma.idx()].ptes[at as usize].swap_slot()
            };
            if let Some(slot) = slot.filter(|&slot| self.swap.cached(slot).is_none()) {
                match self.read_swap_page(slot, own == Some(slot), slow, ctx) {
                    Ok(()) => {}
                    Err(Some(step)) => return Some(step),
                    Err(None) if own == Some(slot) => return Some(Step::Done(Outcome::NoMemory)),
                    Err(None) => {}
                }
            }
            fault.swap_window.next += 1;
        }
        let slot = self.vmas[fault.vma.idx()].ptes[fault.page as usize].swap_slot();
        let Some(slot) = slot else {
            fault.stage = Stage::Start;
            return None;
        };
        let Some(pfn) = self.swap.cached(slot) else {
            // Read and evicted again before we looked, or not in the window: read it alone.
            let at = if fault.swap_window.by_slot { u64::from(slot.0) } else { fault.page };
            fault.swap_window = SwapWindow { next: at, end: at + 1, ..fault.swap_window };
            return None;
        };
        if fault.swap_window.active {
            fault.swap_window.active = false;
            self.mem.vmstat.count(Event::Pgmajfault);
            self.memcgs[ctx.memcg.idx()].events.pgmajfault += 1;
        }
        fault.stage = Stage::SwapLocked(pfn);
        None
    }

    /// Brings one slot's page into the swap cache, locked until the read ends.
    pub(super) fn read_swap_page(
        &mut self,
        slot: SwapSlot,
        wanted: bool,
        slow: &mut Option<SlowPath>,
        ctx: &Ctx,
    ) -> Result<(), Option<Step<Outcome>>> {
        let pfn = match self.alloc_page(ctx, slow, Gfp::HIGHUSER_MOVABLE) {
            Alloc::Page(pfn) => pfn,
            Alloc::Pending(step) => return Err(Some(step)),
            Alloc::Failed => return Err(None),
        };
        if !self.swap.is_mapped(slot) || self.swap.cached(slot).is_some() {
            self.mem.free_page(ctx.cpu, pfn, 0);
            return Ok(());
        }
        let mut flags = PageFlags::ANON.with(PageFlags::LOCKED);
        if !wanted {
            flags = flags.with(PageFlags::READAHEAD);
            self.mem.vmstat.count(Event::SwapRa);
        }
        self.init_user_page(pfn, u32::MAX, 0, flags);
        self.charge(pfn, ctx.memcg);
        let shadow = self.swap.add_to_cache(slot, pfn);
        self.mark_swap_cached(pfn, slot);
        self.mem.work.cache_ops += 1;
        self.workingset_refault(pfn, shadow);
        self.folio_add_lru(ctx.cpu, pfn);
        self.mem.vmstat.count(Event::Pswpin);
        self.mem.vmstat.add(Event::Pgpgin, 4);
        self.mem.work.bios += 1;
        self.effects.push(Effect::Submit(Io::SwapIn { slot, pfn }));
        Ok(())
    }

    pub(super) fn fault_swap_locked(
        &mut self,
        fault: &mut Fault,
        pfn: Pfn,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        if self.mem.pages[pfn.idx()].has(PageFlags::LOCKED) {
            self.mem.pages[pfn.idx()].set(PageFlags::WAITERS);
            // With read-ahead the read is asynchronous and waiting for it lets go of the lock;
            // a single page is read synchronously.
            if self.config.page_cluster > 0 && !fault.tried {
                fault.dropped_lock = true;
            }
            return Some(Step::Wait(Wait::Page(pfn)));
        }
        if fault.dropped_lock {
            return self.retry(fault);
        }
        fault.stage = Stage::Swap;
        let slot = self.vmas[fault.vma.idx()]
            .ptes
            .get(fault.page as usize)
            .and_then(|pte| pte.swap_slot());
        match slot {
            Some(slot) if self.swap.cached(slot) == Some(pfn) => {
                self.fault_swap_cached(fault, pfn, ctx)
            }
            _ => None,
        }
    }

    pub(super) fn fault_swap_cached(
        &mut self,
        fault: &mut Fault,
        pfn: Pfn,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        if self.mem.pages[pfn.idx()].has(PageFlags::LOCKED) {
            fault.stage = Stage::SwapLocked(pfn);
            return None;
        }
        if !self.mem.pages[pfn.idx()].has(PageFlags::UPTODATE) {
            return Some(Step::Done(Outcome::IoError));
        }
        let slot = SwapSlot(self.mem.pages[pfn.idx()].private);
        let page = &mut self.mem.pages[pfn.idx()];
        page.mapping = fault.vma.0;
        page.index = fault.page as u32;
        if fault.write && page.place == Place::LruBatch {
            // The batch's reference would make the page look shared.
            self.lru_add_drain(ctx.cpu);
        }
        // The entry owns the page again; the slot goes when it is of no more use.
        let page = &self.mem.pages[pfn.idx()];
        let give_up_slot = (fault.write || self.swap.is_half_full())
            && !page.has(PageFlags::WRITEBACK)
            && page.place != Place::LruBatch;
        self.vmas[fault.vma.idx()].nr_swapped -= 1;
        self.map_page(fault.vma, fault.page, pfn, fault.write);
        self.swap.unmap(slot);
        if give_up_slot {
            self.delete_from_swap_cache(pfn, Default::default());
            self.mem.pages[pfn.idx()].set(PageFlags::DIRTY);
        }
        if fault.write {
            self.mem.pages[pfn.idx()].set(PageFlags::DIRTY);
        }
        Some(fault.outcome())
    }
}
