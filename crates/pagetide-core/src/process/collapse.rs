//! Collapse: a region of small anonymous pages becomes a huge page.
//!
//! Linux: mm/khugepaged.c `hpage_collapse_scan_pmd`, `alloc_charge_hpage`, `collapse_huge_page`,
//! `__collapse_huge_page_swapin`, `__collapse_huge_page_isolate` (6.1). The steps: check the
//! region, read its swapped pages, allocate a huge page, check the region again, copy it, free its
//! small pages. khugepaged ([`super::khugepaged`]) has limits: it accepts at most `max_ptes_none`
//! holes and `max_ptes_swap` swapped pages, and it needs recently used pages. MADV_COLLAPSE
//! ([`super::madvise_collapse`]) has no limits. Both need at least one writable page.
//!
//! Differences from Linux: Linux allocates the huge page before it reads from swap; here the read
//! comes first. Each page of a region costs one scanned descriptor (`compact_scanned`).
//!
//! Invariant: between two steps, no memory is held except by the request for the huge page.

use crate::frames::gfp::Gfp;
use crate::frames::node::MAX_NODES;
use crate::frames::page::{Page, PageFlags};
use crate::frames::page_request::{AttemptStart, PageRequest, Shortage, SlowRequest};
use crate::interface::ctx::Ctx;
use crate::interface::effect::{Effect, Step};
use crate::interface::outcome::Outcome;
use crate::process::fault::Fault;
use crate::process::page_table::{Pte, VmaId};
use crate::process::Machine;
use crate::stats::vmstat::Event;
use crate::units::digest::State;
use crate::units::{NodeId, Pfn, HPAGE_PMD_NR};

/// Initiator of a collapse (Linux `collapse_control::is_khugepaged`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub(super) enum CollapseTrigger {
    /// khugepaged, within its limits.
    Khugepaged,
    /// A task, by MADV_COLLAPSE.
    Madvise,
}

/// Why a region does not become a huge page (a part of Linux `enum scan_result`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CollapseError {
    IsHuge,
    /// The mapping is gone, or may not have huge pages.
    NotAllowed,
    /// The pages of the region, or their number, do not allow a huge page.
    Unfit,
    /// A page is locked, pinned, in a batch or under migration. A later attempt may succeed.
    Busy,
    /// A page cannot be read from swap.
    NotRead,
    /// No huge page can be allocated.
    NoPage,
    /// The group's limit does not allow a huge page.
    OverLimit,
}
#[derive(Clone, Copy, PartialEq, Eq)]
enum RegionCheck {
    /// Is the region worth a huge page? Some of its pages may be in swap.
    Scan,
    /// Can the region be copied now?
    Isolate,
}
#[derive(Clone, Debug, State)]
pub(super) struct Collapse {
    by: CollapseTrigger,
    vma: VmaId,
    /// Generation of the mapping, because another mapping may get its id later.
    born: u64,
    start: u64,
    /// The node of most of its pages.
    node: NodeId,
    swap_in: Option<Fault>,
    has_read: bool,
}

impl Machine {
    /// Starts a collapse of a region that is worth a huge page.
    pub(super) fn begin_collapse(
        &mut self,
        vma: VmaId,
        start: u64,
        by: CollapseTrigger,
    ) -> Result<Collapse, CollapseError> {
        let node = self.check_region(vma, start, by, RegionCheck::Scan)?;
        let born = self.owners.vmas[vma].generation;
        Ok(Collapse { by, vma, born, start, node, swap_in: None, has_read: false })
    }

    /// Checks whether a region can become a huge page. Returns the node of most of its pages.
    fn check_region(
        &mut self,
        vma: VmaId,
        start: u64,
        by: CollapseTrigger,
        look: RegionCheck,
    ) -> Result<NodeId, CollapseError> {
        let mapping = &self.owners.vmas[vma];
        let may_be_huge = match by {
            CollapseTrigger::Khugepaged => self.config.may_be_huge(mapping, start),
            CollapseTrigger::Madvise => Machine::may_be_collapsed(mapping, start),
        };
        if !(mapping.alive && may_be_huge && mapping.has_region(start)) {
            return Err(CollapseError::NotAllowed);
        }
        let has_table = mapping.tables[self.mem.page_size.table_of(start)].is_some();
        if !has_table || !mapping.is_uniformly_locked(start) {
            return Err(CollapseError::Unfit);
        }
        if self.huge_page_at(vma, start).is_some() {
            return Err(CollapseError::IsHuge);
        }
        let is_limited = by == CollapseTrigger::Khugepaged;
        let (mut nr_none, mut nr_swapped, mut nr_referenced) = (0, 0, 0);
        let mut writable = false;
        let mut nodes = [0u32; MAX_NODES];
        for &pte in self.owners.vmas[vma].region(start) {
            if pte.is_empty() || pte.is_zero_page() {
                nr_none += 1;
                if is_limited && nr_none > self.config.khugepaged_max_ptes_none {
                    self.mem.vmstat.count(Event::ThpScanExceedNonePte);
                    return Err(CollapseError::Unfit);
                }
                continue;
            }
            if pte.swap_slot().is_some() && look == RegionCheck::Scan {
                nr_swapped += 1;
                if is_limited && nr_swapped > self.config.khugepaged_max_ptes_swap {
                    self.mem.vmstat.count(Event::ThpScanExceedSwapPte);
                    return Err(CollapseError::Unfit);
                }
                continue;
            }
            // The page was swapped out again, or is under migration.
            if !pte.is_present() {
                return Err(CollapseError::Unfit);
            }
            let page = &self.kernel.mem.pages[pte.pfn()];
            self.kernel.mem.work.compact_scanned += 1;
            if !is_collapsible(page) {
                return Err(CollapseError::Busy);
            }
            writable |= pte.is_dirty();
            nr_referenced += u64::from(pte.is_young() || page.has(PageFlags::REFERENCED));
            nodes[usize::from(page.node().0)] += 1;
        }
        // khugepaged reads pages from swap only if half of the region was recently used.
        let enough = match (is_limited, nr_swapped) {
            (false, _) => 0,
            (true, 0) => 1,
            (true, _) => HPAGE_PMD_NR / 2,
        };
        if !writable || nr_referenced < enough {
            return Err(CollapseError::Unfit);
        }
        let most = nodes.iter().max();
        let node = nodes.iter().position(|nr| Some(nr) == most).unwrap_or_default();
        Ok(NodeId(node as u8))
    }

    pub(super) fn collapse_step(
        &mut self,
        collapse: &mut Collapse,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Result<(), CollapseError>> {
        let Collapse { by, vma, born, start, node, .. } = *collapse;
        let mapping = &self.owners.vmas[vma];
        if !mapping.alive || mapping.generation != born {
            if let Some(slow) = slow.take() {
                self.abandon_slow_request(&slow, ctx.asker, ctx.cpu);
            }
            return Step::Done(Err(CollapseError::NotAllowed));
        }
        let memcg = self.owners.mms[mapping.mm].memcg;
        let ctx = Ctx { node, memcg, ..*ctx };
        match self.collapse_swapin(collapse, slow, &ctx) {
            Step::Done(Ok(())) => {}
            step => return step,
        }
        let gfp = match by {
            CollapseTrigger::Khugepaged if !self.config.khugepaged_defrag => Gfp::TRANSHUGE_LIGHT,
            CollapseTrigger::Khugepaged | CollapseTrigger::Madvise => Gfp::TRANSHUGE,
        };
        match self.request_page(&ctx, slow, PageRequest::huge(gfp, memcg, AttemptStart::Page)) {
            Step::Continue => Step::Continue,
            Step::Wait(wait) => Step::Wait(wait),
            Step::Done(Err(Shortage::Pages(..))) => {
                self.mem.vmstat.count(Event::ThpCollapseAllocFailed);
                Step::Done(Err(CollapseError::NoPage))
            }
            // The huge page was allocated, though not charged. Linux counts the allocation.
            Step::Done(Err(Shortage::Room(..) | Shortage::Owing | Shortage::Denied)) => {
                self.mem.vmstat.count(Event::ThpCollapseAlloc);
                Step::Done(Err(CollapseError::OverLimit))
            }
            Step::Done(Ok(head)) => {
                self.mem.vmstat.count(Event::ThpCollapseAlloc);
                self.groups.memcgs[memcg].events.count(Event::ThpCollapseAlloc);
                // The region may have changed since the scan, for instance because of reclaim.
                let judged = self.check_region(vma, start, by, RegionCheck::Isolate);
                match judged {
                    Ok(_) => self.collapse(vma, start, head, &ctx),
                    Err(_) => self.discard_charged(ctx.cpu, head, memcg),
                }
                Step::Done(judged.map(drop))
            }
        }
    }

    /// Reads the swapped pages of the region. `Done(Ok)`: no page is in swap.
    fn collapse_swapin(
        &mut self,
        collapse: &mut Collapse,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Result<(), CollapseError>> {
        let Collapse { vma, born, start, .. } = *collapse;
        loop {
            let mut fault = match collapse.swap_in.take() {
                Some(fault) => fault,
                // The request for the huge page is in progress, so the pages were read before.
                None if slow.is_some() => return Step::Done(Ok(())),
                None => {
                    let mut ptes = self.owners.vmas[vma].region(start).iter();
                    let Some(at) = ptes.position(|pte| pte.swap_slot().is_some()) else {
                        if core::mem::take(&mut collapse.has_read) {
                            self.lru_add_drain(ctx.cpu);
                        }
                        return Step::Done(Ok(()));
                    };
                    Fault::swap_in(vma, born, start + at as u64)
                }
            };
            match self.fault_step(&mut fault, slow, ctx) {
                Step::Continue => {
                    collapse.swap_in = Some(fault);
                    return Step::Continue;
                }
                Step::Wait(wait) => {
                    collapse.swap_in = Some(fault);
                    return Step::Wait(wait);
                }
                Step::Done(outcome) => {
                    // The fault may end with its request unfinished: another task has read the
                    // page.
                    if let Some(slow) = slow.take() {
                        self.abandon_slow_request(&slow, ctx.asker, ctx.cpu);
                    }
                    match outcome {
                        Outcome::Got(_) | Outcome::Minor => collapse.has_read = true,
                        _ if fault.has_dropped_lock() => {
                            return Step::Done(Err(CollapseError::Busy))
                        }
                        _ => return Step::Done(Err(CollapseError::NotRead)),
                    }
                }
            }
        }
    }

    /// Copies a region into a huge page, frees the small pages, and maps the huge page.
    fn collapse(&mut self, vma: VmaId, start: u64, head: Pfn, ctx: &Ctx) {
        for (at, to) in (start..start + HPAGE_PMD_NR).zip(head.0..) {
            let mapping = &mut self.owners.vmas[vma];
            let pte = core::mem::replace(&mut mapping.ptes[at as usize], Pte::EMPTY);
            if pte.is_empty() || pte.is_zero_page() {
                self.zero_page(Pfn(to));
                continue;
            }
            mapping.nr_present -= 1;
            self.mem.work.bytes_copied += self.mem.page_size.bytes() as u32;
            self.step.effects.push_contents(Effect::CollapsePage { from: pte.pfn(), to: Pfn(to) });
            self.mem.page_remove_rmap(pte.pfn());
            self.munlock_page(pte.pfn());
            self.free_anon_page(pte.pfn(), ctx.cpu);
        }
        self.mem.work.ptes_set += HPAGE_PMD_NR as u32;
        self.mem.work.tlb_flushes += 1;
        self.map_huge(vma, start, head, ctx.memcg, ctx.cpu);
    }
}

/// Whether a mapped page may be copied and freed: on its LRU list, and not locked, batched, pinned
/// or under migration. A page under writeback to swap qualifies; it is freed when the write ends.
fn is_collapsible(page: &Page) -> bool {
    let held = PageFlags::LOCKED
        .with(PageFlags::BATCHED)
        .with(PageFlags::PINNED)
        .with(PageFlags::MIGRATING);
    page.is_anon() && page.place.is_lru() && !page.flags.any(held)
}
