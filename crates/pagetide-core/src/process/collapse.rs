//! A region of small anonymous pages becomes a huge page.
//!
//! Linux: mm/khugepaged.c `hpage_collapse_scan_pmd`, `alloc_charge_hpage`, `collapse_huge_page`,
//! `__collapse_huge_page_swapin`, `__collapse_huge_page_isolate` (6.1). The region is judged, what of it is in swap
//! is read back, a huge page is got, the region is judged again, copied, and its small pages are freed. khugepaged
//! ([`super::khugepaged`]) keeps to its limits: few enough holes, up to `max_ptes_swap` pages in swap, and recently
//! used pages among the others. MADV_COLLAPSE ([`super::madvise_collapse`]) has no limits; at least one page must be
//! writable for both.
//!
//! Differences from Linux: it has the huge page before it reads from swap; here it reads first, and asks for the huge
//! page then. For each page of a region the cost is one descriptor (`compact_scanned`).
//!
//! Invariant: between two steps nothing is held but what the request for the huge page holds.

use crate::ctx::Ctx;
use crate::digest::State;
use crate::effect::{Effect, Step};
use crate::gfp::Gfp;
use crate::node::MAX_NODES;
use crate::outcome::Outcome;
use crate::page::{Page, PageFlags};
use crate::page_request::{First, Lack, PageRequest, SlowRequest};
use crate::process::fault::Fault;
use crate::process::page_table::{Pte, VmaId};
use crate::process::Machine;
use crate::units::{NodeId, Pfn, HPAGE_PMD_NR};
use crate::vmstat::Event;

/// Who collapses (Linux `collapse_control::is_khugepaged`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, State)]
pub(super) enum By {
    /// khugepaged, within its limits.
    Khugepaged,
    /// A task, by MADV_COLLAPSE.
    Madvise,
}

/// Why a region does not become a huge page (Linux `enum scan_result`, as far as somebody tells them apart).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failed {
    /// It is one.
    IsHuge,
    /// The mapping has gone, or may not have huge pages.
    NotAllowed,
    /// Its pages, or their number, do not make one.
    Unfit,
    /// Somebody holds one of its pages; it may be otherwise soon.
    Busy,
    /// One of its pages cannot be read back.
    NotRead,
    /// There is no huge page.
    NoPage,
    /// The group has no room for one.
    NoRoom,
}

/// What a region is looked at for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Whether it is worth a huge page. Some of its pages may be in swap.
    Scan,
    /// Whether it can be copied now.
    Isolate,
}

/// A region on its way to a huge page.
#[derive(Clone, Debug, State)]
pub(super) struct Collapse {
    by: By,
    vma: VmaId,
    /// When the mapping was born: another may have its id later.
    born: u64,
    start: u64,
    /// Most of its pages are on it.
    node: NodeId,
    /// The page that is being read back from swap.
    swap_in: Option<Fault>,
    /// Pages were read back.
    has_read: bool,
}

impl Machine {
    /// A region that is worth a huge page.
    pub(super) fn begin_collapse(
        &mut self,
        vma: VmaId,
        start: u64,
        by: By,
    ) -> Result<Collapse, Failed> {
        let node = self.judge_region(vma, start, by, Look::Scan)?;
        let born = self.owners.vmas[vma.idx()].born;
        Ok(Collapse { by, vma, born, start, node, swap_in: None, has_read: false })
    }

    /// Whether a region can be a huge page; the node that most of its pages are on.
    fn judge_region(
        &mut self,
        vma: VmaId,
        start: u64,
        by: By,
        look: Look,
    ) -> Result<NodeId, Failed> {
        let mapping = &self.owners.vmas[vma.idx()];
        let may_be_huge = match by {
            By::Khugepaged => self.may_be_huge(mapping, start),
            By::Madvise => Machine::may_be_collapsed(mapping, start),
        };
        if !(mapping.alive && may_be_huge && mapping.has_region(start)) {
            return Err(Failed::NotAllowed);
        }
        let has_table = mapping.tables[self.mem.page_size.table_of(start)].is_some();
        if !has_table || !mapping.is_locked_alike(start) {
            return Err(Failed::Unfit);
        }
        if self.huge_page_at(vma, start).is_some() {
            return Err(Failed::IsHuge);
        }
        let is_limited = by == By::Khugepaged;
        let (mut nr_none, mut nr_swapped, mut nr_referenced) = (0, 0, 0);
        let mut writable = false;
        let mut nodes = [0u32; MAX_NODES];
        for &pte in self.owners.vmas[vma.idx()].region(start) {
            if pte.is_empty() || pte.is_zero_page() {
                nr_none += 1;
                if is_limited && nr_none > self.config.khugepaged_max_ptes_none {
                    self.mem.vmstat.count(Event::ThpScanExceedNonePte);
                    return Err(Failed::Unfit);
                }
                continue;
            }
            if pte.swap_slot().is_some() && look == Look::Scan {
                nr_swapped += 1;
                if is_limited && nr_swapped > self.config.khugepaged_max_ptes_swap {
                    self.mem.vmstat.count(Event::ThpScanExceedSwapPte);
                    return Err(Failed::Unfit);
                }
                continue;
            }
            // In swap again, or on its way to another frame.
            if !pte.is_present() {
                return Err(Failed::Unfit);
            }
            let page = &self.mem.pages[pte.pfn().idx()];
            self.mem.work.compact_scanned += 1;
            if !is_collapsible(page) {
                return Err(Failed::Busy);
            }
            writable |= pte.is_dirty();
            nr_referenced += u64::from(pte.is_young() || page.has(PageFlags::REFERENCED));
            nodes[page.node().idx()] += 1;
        }
        // What is read back by khugepaged must be worth that.
        let enough = match (is_limited, nr_swapped) {
            (false, _) => 0,
            (true, 0) => 1,
            (true, _) => HPAGE_PMD_NR / 2,
        };
        if !writable || nr_referenced < enough {
            return Err(Failed::Unfit);
        }
        let most = nodes.iter().max();
        let node = nodes.iter().position(|nr| Some(nr) == most).unwrap_or_default();
        Ok(NodeId(node as u8))
    }

    /// One bounded step towards a huge page for a region.
    pub(super) fn collapse_step(
        &mut self,
        collapse: &mut Collapse,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Result<(), Failed>> {
        let Collapse { by, vma, born, start, node, .. } = *collapse;
        let mapping = &self.owners.vmas[vma.idx()];
        if !mapping.alive || mapping.born != born {
            if let Some(slow) = slow.take() {
                self.slow_given_up(&slow, ctx.asker, ctx.cpu);
            }
            return Step::Done(Err(Failed::NotAllowed));
        }
        let memcg = self.owners.mms[mapping.mm.idx()].memcg;
        let ctx = Ctx { node, memcg, ..*ctx };
        match self.collapse_swapin(collapse, slow, &ctx) {
            Step::Done(Ok(())) => {}
            step => return step,
        }
        let gfp = match by {
            By::Khugepaged if !self.config.khugepaged_defrag => Gfp::TRANSHUGE_LIGHT,
            By::Khugepaged | By::Madvise => Gfp::TRANSHUGE,
        };
        match self.request_page(&ctx, slow, PageRequest::huge(gfp, memcg, First::Page)) {
            Step::Continue => Step::Continue,
            Step::Wait(wait) => Step::Wait(wait),
            Step::Done(Err(Lack::Pages(..))) => {
                self.mem.vmstat.count(Event::ThpCollapseAllocFailed);
                Step::Done(Err(Failed::NoPage))
            }
            // There was a page, which counts.
            Step::Done(Err(Lack::Room(..) | Lack::Owing | Lack::Denied)) => {
                self.mem.vmstat.count(Event::ThpCollapseAlloc);
                Step::Done(Err(Failed::NoRoom))
            }
            Step::Done(Ok(head)) => {
                self.mem.vmstat.count(Event::ThpCollapseAlloc);
                self.memcgs[memcg.idx()].events.count(Event::ThpCollapseAlloc);
                // Much may have happened since the scan; reclaim for the page alone may be to blame.
                let judged = self.judge_region(vma, start, by, Look::Isolate);
                match judged {
                    Ok(_) => self.collapse(vma, start, head, &ctx),
                    Err(_) => self.discard_charged(ctx.cpu, head, memcg),
                }
                Step::Done(judged.map(drop))
            }
        }
    }

    /// Reads back what of the region is in swap. Done: nothing is.
    fn collapse_swapin(
        &mut self,
        collapse: &mut Collapse,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Result<(), Failed>> {
        let Collapse { vma, born, start, .. } = *collapse;
        loop {
            let mut fault = match collapse.swap_in.take() {
                Some(fault) => fault,
                // What is being got is the huge page: the region was read before.
                None if slow.is_some() => return Step::Done(Ok(())),
                None => {
                    let mut ptes = self.owners.vmas[vma.idx()].region(start).iter();
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
                    // What the page was sought with is over, too: somebody else may have read it.
                    if let Some(slow) = slow.take() {
                        self.slow_given_up(&slow, ctx.asker, ctx.cpu);
                    }
                    match outcome {
                        Outcome::Got(_) | Outcome::Minor => collapse.has_read = true,
                        _ if fault.has_let_go() => return Step::Done(Err(Failed::Busy)),
                        _ => return Step::Done(Err(Failed::NotRead)),
                    }
                }
            }
        }
    }

    /// Copies a region into a huge page, frees what was there, and maps it.
    fn collapse(&mut self, vma: VmaId, start: u64, head: Pfn, ctx: &Ctx) {
        for (at, to) in (start..start + HPAGE_PMD_NR).zip(head.0..) {
            let mapping = &mut self.owners.vmas[vma.idx()];
            let pte = core::mem::replace(&mut mapping.ptes[at as usize], Pte::EMPTY);
            if pte.is_empty() || pte.is_zero_page() {
                self.zero_page(Pfn(to));
                continue;
            }
            mapping.nr_present -= 1;
            self.mem.work.bytes_copied += self.mem.page_size.bytes() as u32;
            self.effects.push_of_contents(Effect::CollapsePage { from: pte.pfn(), to: Pfn(to) });
            self.page_remove_rmap(pte.pfn());
            self.munlock_page(pte.pfn());
            self.free_anon_page(pte.pfn(), ctx.cpu);
        }
        self.mem.work.ptes_set += HPAGE_PMD_NR as u32;
        self.mem.work.tlb_flushes += 1;
        self.map_huge(vma, start, head, ctx.memcg, ctx.cpu);
    }
}

/// Whether a mapped page may be copied away and freed: on its list, and held by nobody else. One that is being written
/// to swap may, and goes when that has ended.
fn is_collapsible(page: &Page) -> bool {
    let held = PageFlags::LOCKED
        .with(PageFlags::BATCHED)
        .with(PageFlags::PINNED)
        .with(PageFlags::MIGRATING);
    page.has(PageFlags::ANON) && page.place.is_lru() && !page.flags.any(held)
}
