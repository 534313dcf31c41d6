//! Faults on swapped pages.
//!
//! Linux: mm/memory.c `do_swap_page`, mm/swap_state.c (6.1). If the page is not in the swap cache,
//! it is read together with neighbours. Their number follows the recent hits of read-ahead.
//! Neighbours are chosen by address, with a history for each mapping ([`SwapReadahead`]). On a
//! rotating disk they are chosen by slot, with one history for the machine. From zram the page is
//! read alone, and its slot is freed (`SWP_SYNCHRONOUS_IO`, Linux 4.15; a slot has one owner).
//!
//! Invariant: a page in the swap cache is locked until its read ends. When a page is mapped again,
//! its slot belongs to the swap cache alone, or to no owner.
//!
//! [`SwapReadahead`]: crate::process::readahead::SwapReadahead

use super::{Fault, FaultStage, SwapWindow};
use crate::frames::page::PageFlags;
use crate::frames::page_request::SlowRequest;
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Sleep, Step};
use crate::interface::outcome::Outcome;
use crate::process::object::{MemoryObject, ObjectSlot};
use crate::process::page_table::Pte;
use crate::process::Machine;
use crate::stats::vmstat::Event;
use crate::units::{Pfn, SwapSlot};
use core::ops::Range;

impl Machine {
    pub(super) fn fault_swap(&mut self, fault: &mut Fault, ctx: &Ctx) -> Option<Step<Outcome>> {
        if !self.owners.vmas[fault.vma].alive {
            return Some(Step::Done(Outcome::NoMemory));
        }
        let object = MemoryObject::Anon(fault.vma);
        let ObjectSlot::Swap(slot) = self.owners.slot(object, fault.page as u32) else {
            fault.stage = FaultStage::Start;
            return None;
        };
        self.mem.work.cache_ops += 1;
        if let Some(pfn) = self.swap_cache_page(slot, ctx.cpu) {
            fault.read_alone = false;
            fault.swap_window.skips_cache = false;
            self.swap_cache_hit(fault, pfn);
            return self.fault_swap_cached(fault, pfn, ctx);
        }
        fault.major = true;
        self.choose_swap_window(fault, slot);
        fault.stage = FaultStage::SwapRead;
        None
    }

    /// Counts a fault that found its page in the swap cache (Linux `lookup_swap_cache`).
    fn swap_cache_hit(&mut self, fault: &Fault, pfn: Pfn) {
        let page = &mut self.mem.pages[pfn];
        // Linux has one bit for these two flags. So a page that is being written to swap counts as
        // read ahead. It is not reclaimed after the write, because it is needed again.
        let ahead = page.test_clear(PageFlags::READAHEAD) | page.test_clear(PageFlags::RECLAIM);
        if ahead {
            self.mem.vmstat.count(Event::SwapRaHit);
        }
        if !self.swaps_in_by_slot() {
            self.owners.vmas[fault.vma].swap_readahead.hit(fault.page, ahead);
        } else if ahead {
            self.owners.swapin.hit();
        }
    }

    fn swaps_in_by_slot(&self) -> bool {
        self.era.swaps_in_by_slot || self.swap.is_rotational()
    }

    /// Chooses what to read with a page that is not in the swap cache (Linux `swapin_readahead`).
    fn choose_swap_window(&mut self, fault: &mut Fault, slot: SwapSlot) {
        if self.swap[slot].is_synchronous() {
            let Range { start, end } = fault.page..fault.page + 1;
            fault.read_alone = true;
            fault.swap_window =
                SwapWindow { next: start, end, by_slot: false, active: true, skips_cache: true };
            return;
        }
        let by_slot = self.swaps_in_by_slot();
        let page_cluster = self.config.page_cluster;
        let page_size = self.mem.page_size;
        let (at, window) = if self.era.swaps_in_whole_clusters {
            (u64::from(slot.0), self.swap[slot].cluster_in_use(slot, page_cluster))
        } else if by_slot {
            let window = self.owners.swapin.miss(slot, self.swap.neighbours(slot), page_cluster);
            (u64::from(slot.0), window)
        } else {
            let vma = &mut self.owners.vmas[fault.vma];
            let len = vma.len();
            (fault.page, vma.swap_readahead.miss(fault.page, len, page_cluster, page_size))
        };
        fault.read_alone = window.is_none();
        let Range { start, end } = window.unwrap_or(at..at + 1);
        fault.swap_window =
            SwapWindow { next: start, end, by_slot, active: true, skips_cache: false };
    }

    pub(super) fn fault_swap_read(
        &mut self,
        fault: &mut Fault,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        // Read the window in order. Then the page itself is in the cache, or is read alone.
        while fault.swap_window.next < fault.swap_window.end {
            let at = fault.swap_window.next;
            if !self.owners.vmas[fault.vma].alive {
                return Some(Step::Done(Outcome::NoMemory));
            }
            let own = self.owners.vmas[fault.vma].ptes[fault.page as usize].swap_slot();
            let slot = if fault.swap_window.by_slot {
                Some(SwapSlot(at as u32)).filter(|&slot| self.swap[slot].is_mapped(slot))
            } else {
                self.owners.vmas[fault.vma].ptes[at as usize].swap_slot()
            };
            let wanted = slot.is_some() && own == slot;
            match slot {
                Some(slot) if self.swap[slot].cached(slot).is_none() => {
                    match self.read_swap_page(slot, wanted, slow, ctx) {
                        Err(Some(step)) => {
                            self.step.plugged |= !fault.read_alone;
                            return Some(step);
                        }
                        Err(None) if wanted => return Some(Step::Done(Outcome::NoMemory)),
                        Ok(()) | Err(None) => {}
                    }
                }
                // Another task reads the page: wait as for any locked page.
                Some(_) if wanted => fault.read_alone = false,
                _ => {}
            }
            fault.swap_window.next += 1;
        }
        if fault.swap_window.active && !fault.read_alone {
            // Pages read ahead go to their LRU list at once, not when the batch is full.
            self.lru_add_drain(ctx.cpu);
        }
        let slot = self.owners.vmas[fault.vma].ptes[fault.page as usize].swap_slot();
        let Some(slot) = slot else {
            fault.stage = FaultStage::Start;
            return None;
        };
        let Some(pfn) = self.swap_cache_page(slot, ctx.cpu) else {
            // The page was evicted again already, or was not in the window: read it alone.
            let at = if fault.swap_window.by_slot { u64::from(slot.0) } else { fault.page };
            fault.swap_window = SwapWindow { next: at, end: at + 1, ..fault.swap_window };
            return None;
        };
        if fault.swap_window.active {
            fault.swap_window.active = false;
            self.mem.vmstat.count(Event::Pgmajfault);
            self.groups.memcgs[ctx.memcg].events.count(Event::Pgmajfault);
        }
        fault.stage = FaultStage::SwapLocked(pfn);
        None
    }

    pub(super) fn fault_swap_locked(
        &mut self,
        fault: &mut Fault,
        pfn: Pfn,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        if self.mem.pages[pfn].has(PageFlags::LOCKED) {
            self.mem.pages[pfn].set(PageFlags::WAITERS);
            // Waiting drops the lock once, unless this fault reads a single page synchronously.
            if !fault.read_alone && !fault.tried {
                fault.dropped_lock = true;
            }
            return Some(Step::Wait(Sleep::on_page(pfn)));
        }
        if fault.dropped_lock {
            return self.retry(fault);
        }
        fault.stage = FaultStage::Swap;
        let slot = self.owners.vmas[fault.vma]
            .ptes
            .get(fault.page as usize)
            .and_then(|pte| pte.swap_slot());
        match slot {
            Some(slot) if self.swap_cache_page(slot, ctx.cpu) == Some(pfn) => {
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
        if self.mem.pages[pfn].has(PageFlags::LOCKED) {
            fault.stage = FaultStage::SwapLocked(pfn);
            return None;
        }
        if !self.mem.pages[pfn].has(PageFlags::UPTODATE) {
            return Some(Step::Done(Outcome::IoError));
        }
        self.owners.vmas[fault.vma].nr_swapped -= 1;
        self.owners.vmas[fault.vma].nr_present += 1;
        self.set_pte(fault.vma, fault.page, Pte::map(pfn, fault.write));
        let at = MemoryObject::Anon(fault.vma).at(fault.page);
        let keeps_slot = !fault.swap_window.skips_cache;
        self.take_from_swap_cache(pfn, at, fault.write, keeps_slot, ctx);
        Some(fault.got_kept(pfn))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::{PolicyChoice, SwapReadaheadPolicy};
    use crate::frames::node::NodeSpec;
    use crate::frames::page::Place;
    use crate::interface::effect::Effect;
    use crate::process::page_table::{Advice, Backing, VmaId};
    use crate::process::readahead::SwapReadahead;
    use crate::process::MmId;
    use crate::process::ProcessCall;
    use crate::swap::SwapOptions;
    use crate::units::{Cpu, NodeId};
    use alloc::vec::Vec;

    const CPU: Cpu = Cpu(0);
    /// Pages at the start of the mapping. All are in swap after the mapping was filled.
    const SWAPPED: u64 = 512;

    struct SwapInWorld {
        machine: Machine,
        mm: MmId,
        vma: VmaId,
    }

    impl SwapInWorld {
        /// Writes a mapping larger than memory once, in order, with an immediate disk.
        fn new(page_cluster: u32, rotational: bool) -> SwapInWorld {
            let config = Config { page_cluster, ..Config::default() };
            let mut machine = Machine::new(&[NodeSpec::x86_64(8 << 20, 0, 0)], 1, config).unwrap();
            machine.swapon(SwapOptions::new(8192).rotational(rotational));
            let mm = machine.create_mm(Machine::ROOT).unwrap();
            let vma = machine.mmap(mm, Backing::Anon, 3000, Advice::Normal, false).unwrap();
            let mut world = SwapInWorld { machine, mm, vma };
            for page in 0..3000 {
                world.fault(page, true);
            }
            world.machine.audit().unwrap();
            assert!(
                (0..SWAPPED).all(|page| world.cached(page).is_none()),
                "no page is in the swap cache"
            );
            world
        }

        fn fault(&mut self, page: u64, write: bool) -> Outcome {
            let mut call = ProcessCall::fault(self.mm, NodeId(0), self.vma, page, write);
            loop {
                let (step, effects) = self.machine.step(&mut call, CPU, 1);
                let mut todo: Vec<Effect> = Vec::new();
                effects.drain_into(&mut todo);
                let mut at = 0;
                while at < todo.len() {
                    if let Effect::Submit(io) = todo[at] {
                        self.machine.io_done(io, true, CPU, 1).drain_into(&mut todo);
                    }
                    at += 1;
                }
                if let Step::Done(outcome) = step {
                    return outcome;
                }
            }
        }

        /// Reads pages; returns which of them were major faults.
        fn majors(&mut self, pages: impl Iterator<Item = u64>) -> Vec<u64> {
            pages.filter(|&page| self.is_major(page)).collect()
        }

        fn is_major(&mut self, page: u64) -> bool {
            let outcome = self.fault(page, false);
            self.machine.audit().unwrap();
            let Outcome::Got(got) = outcome else { panic!("{outcome:?}") };
            got.major
        }

        fn slot(&self, page: u64) -> SwapSlot {
            self.machine.owners.vmas[self.vma].ptes[page as usize].swap_slot().unwrap()
        }

        /// Frame of a page in the swap cache. Panics if the page is mapped.
        fn cached(&self, page: u64) -> Option<Pfn> {
            let slot = self.slot(page);
            self.machine.swap[slot].cached(slot)
        }

        fn count(&self, event: Event) -> u64 {
            self.machine.mem.vmstat.get(event)
        }
    }

    #[test]
    fn a_sequential_run_misses_once_a_window() {
        let mut world = SwapInWorld::new(3, false);
        let pgfault = world.count(Event::Pgfault);
        let majors = world.majors(0..200);
        // The first window is around the fault and is cut at the start of the mapping.
        assert_eq!(majors[..3], [0, 5, 13]);
        assert_eq!(majors.len(), 1 + 25);
        let read = 5 + 25 * 8;
        assert_eq!(world.count(Event::Pgmajfault), 26);
        assert_eq!(world.count(Event::Pswpin), read);
        assert_eq!(world.count(Event::SwapRa), read - 26);
        assert_eq!(world.count(Event::SwapRaHit), 200 - 26);
        // Waiting for a window drops the lock and faults again, unless reclaim between two pages of
        // the window gave the disk time to finish.
        let retries = world.count(Event::Pgfault) - pgfault - 200;
        assert!((1..=26).contains(&retries), "{retries}");
    }

    #[test]
    fn a_backward_run_misses_once_a_window() {
        let mut world = SwapInWorld::new(3, false);
        let majors = world.majors((100..200).rev());
        assert_eq!(majors[..3], [199, 195, 187]);
        assert_eq!(majors.len(), 1 + 12);
        assert_eq!(world.count(Event::SwapRaHit), 100 - 13);
    }

    #[test]
    fn an_old_kernel_reads_the_cluster_of_the_slot_at_every_fault() {
        let mut world = SwapInWorld::new(3, false);
        let old = PolicyChoice::SwapReadahead(SwapReadaheadPolicy::Linux33);
        world.machine.choose(old).unwrap().discard();
        for (page, nr) in [(100, 8), (300, 8), (202, 8), (400, 8)] {
            let before = world.count(Event::Pswpin);
            let cluster = world.slot(page).0 / 8;
            assert!(world.is_major(page));
            assert_eq!(world.count(Event::Pswpin) - before, nr, "no hit is needed");
            let near = (page - 7..page + 8).filter(|&other| other != page);
            let read = near.filter(|&other| world.cached(other).is_some());
            let clusters: Vec<u32> = read.map(|other| world.slot(other).0 / 8).collect();
            assert_eq!(clusters, [cluster; 7]);
        }
    }

    #[test]
    fn pages_read_ahead_are_marked_and_on_the_inactive_list() {
        let mut world = SwapInWorld::new(3, false);
        world.fault(100, false);
        assert!(world.machine.is_in_core(world.vma, 100));
        for page in [97, 98, 99, 101, 102, 103, 104] {
            let page = &world.machine.mem.pages[world.cached(page).unwrap()];
            assert!(page.has(PageFlags::READAHEAD.with(PageFlags::UPTODATE)));
            assert_eq!(page.place, Place::Lru);
        }
        assert_eq!((world.cached(96), world.cached(105)), (None, None));
        let own = world.machine.owners.vmas[world.vma].ptes[100].pfn();
        assert!(!world.machine.mem.pages[own].has(PageFlags::READAHEAD));
    }

    #[test]
    fn a_page_wanted_back_while_it_is_written_counts_as_read_ahead() {
        let mut world = SwapInWorld::new(3, false);
        world.fault(100, false);
        let pfn = world.cached(101).unwrap();
        let page = &mut world.machine.mem.pages[pfn];
        page.clear(PageFlags::READAHEAD);
        page.set(PageFlags::RECLAIM);
        assert!(!world.is_major(101));
        assert_eq!(world.count(Event::SwapRaHit), 1);
        assert!(!world.machine.mem.pages[pfn].has(PageFlags::RECLAIM));
    }

    #[test]
    fn scattered_faults_end_up_reading_one_page_in_one_fault() {
        let mut world = SwapInWorld::new(3, false);
        // Windows of 8, 4, 2, then 1.
        world.majors([50, 100, 150].into_iter());
        let (pgfault, ahead) = (world.count(Event::Pgfault), world.count(Event::SwapRa));
        assert_eq!(ahead, 7 + 3 + 1);
        assert_eq!(world.majors([200, 250, 300].into_iter()), [200, 250, 300]);
        assert_eq!(world.count(Event::SwapRa), ahead);
        assert_eq!(world.count(Event::Pgfault) - pgfault, 3);
    }

    #[test]
    fn swap_that_rotates_is_read_by_slot() {
        let mut world = SwapInWorld::new(3, true);
        let slot = world.slot(100).0;
        let ahead: Vec<u64> = (0..SWAPPED)
            .filter(|&page| page != 100 && world.slot(page).0 / 8 == slot / 8)
            .collect();
        assert!(!ahead.is_empty());
        assert!(world.is_major(100));
        let cached = (0..SWAPPED)
            .filter(|&page| page != 100 && world.cached(page).is_some())
            .collect::<Vec<_>>();
        assert_eq!(cached, ahead);
        // Hits count for the machine, not for the mapping.
        assert_eq!(world.majors(ahead.iter().copied()), []);
        assert_eq!(world.count(Event::SwapRaHit), ahead.len() as u64);
        assert_eq!(world.machine.owners.swapin.hits, ahead.len() as u32);
        assert_eq!(world.machine.owners.vmas[world.vma].swap_readahead, SwapReadahead::default());
    }

    #[test]
    fn page_cluster_0_reads_each_page_alone() {
        for rotational in [false, true] {
            let mut world = SwapInWorld::new(0, rotational);
            let pgfault = world.count(Event::Pgfault);
            assert_eq!(world.majors(0..100).len(), 100);
            assert_eq!(world.count(Event::Pswpin), 100);
            assert_eq!(world.count(Event::SwapRa), 0);
            assert_eq!(world.count(Event::Pgfault) - pgfault, 100);
        }
    }
}
