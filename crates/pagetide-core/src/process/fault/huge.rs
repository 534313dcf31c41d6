//! Page faults that allocate a huge page.
//!
//! Linux: mm/huge_memory.c `do_huge_pmd_anonymous_page` (6.1). The first write to a region without
//! a page table requests a huge page. If the efforts allowed by `transparent_hugepage/defrag` do
//! not give one, the fault maps a small page.
//!
//! Invariant: a huge page is mapped only where every entry of the region is still empty.

use super::Fault;
use crate::frames::page_request::{AttemptStart, PageRequest, Shortage, SlowRequest};
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Effect, Step};
use crate::interface::outcome::Contents;
use crate::interface::outcome::Outcome;
use crate::process::huge_memory::region_of;
use crate::process::page_table::Pte;
use crate::process::Machine;
use crate::process::Processes;
use crate::stats::vmstat::Event;
use crate::units::{Pfn, HPAGE_PMD_NR, HPAGE_PMD_ORDER};

impl Processes {
    fn region_is_empty(&self, fault: &Fault) -> bool {
        let start = region_of(fault.page);
        self.vmas[fault.vma].region(start).iter().copied().all(Pte::is_empty)
    }
}

impl Machine {
    /// Whether a fault on a region without a page table requests a huge page.
    pub(super) fn wants_huge(&self, fault: &Fault) -> bool {
        let vma = &self.owners.vmas[fault.vma];
        fault.write
            && self.config.may_be_huge(vma, fault.page)
            && vma.has_region(fault.page)
            && vma.is_uniformly_locked(fault.page)
    }

    /// Whether a fault may map a huge page into an existing page table. With pages larger than 4
    /// KiB a table has entries for several huge pages; in Linux it has one.
    pub(super) fn wants_huge_in_table(&self, fault: &Fault) -> bool {
        self.mem.page_size.ptrs_per_pte() > HPAGE_PMD_NR
            && self.wants_huge(fault)
            && self.owners.region_is_empty(fault)
    }

    pub(super) fn fault_huge(
        &mut self,
        fault: &mut Fault,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        // Since Linux 4.20 the local node comes first.
        let first =
            if self.era.asks_once_for_huge { AttemptStart::Page } else { AttemptStart::NearPage };
        let request = PageRequest::huge(self.thp_gfp(fault.vma, fault.page), ctx.memcg, first);
        let pfn = match self.request_page(ctx, slow, request) {
            Step::Continue => return Some(Step::Continue),
            Step::Wait(wait) => return Some(Step::Wait(wait)),
            Step::Done(Ok(pfn)) => pfn,
            Step::Done(Err(Shortage::Pages(..))) => return self.huge_fallback(fault, ctx),
            Step::Done(Err(Shortage::Room(..) | Shortage::Owing | Shortage::Denied)) => {
                self.mem.vmstat.count(Event::ThpFaultFallbackCharge);
                return self.huge_fallback(fault, ctx);
            }
        };
        let start = region_of(fault.page);
        let vma = &self.owners.vmas[fault.vma];
        if !vma.alive
            || !vma.is_uniformly_locked(start)
            || !vma.region(start).iter().copied().all(Pte::is_empty)
        {
            // Another task has mapped a page, or the mapping is gone.
            self.discard_charged(ctx.cpu, pfn, ctx.memcg);
            return self.begin_pte_fault(fault, ctx);
        }
        self.mem.work.pages_zeroed += HPAGE_PMD_NR as u32;
        self.step.effects.push_contents(Effect::Zero { frame: pfn, order: HPAGE_PMD_ORDER });
        self.map_huge(fault.vma, start, pfn, ctx.memcg, ctx.cpu);
        self.mem.vmstat.count(Event::ThpFaultAlloc);
        self.groups.memcgs[ctx.memcg].events.count(Event::ThpFaultAlloc);
        let own = Pfn(pfn.0 + (fault.page - start) as u32);
        Some(fault.got(own, Contents::Fresh))
    }

    fn huge_fallback(&mut self, fault: &mut Fault, ctx: &Ctx) -> Option<Step<Outcome>> {
        self.mem.vmstat.count(Event::ThpFaultFallback);
        self.begin_pte_fault(fault, ctx)
    }

    fn begin_pte_fault(&mut self, fault: &mut Fault, ctx: &Ctx) -> Option<Step<Outcome>> {
        if !self.owners.vmas[fault.vma].alive {
            return Some(Step::Done(Outcome::NoMemory));
        }
        self.fault_dispatch(fault, ctx)
    }
}
