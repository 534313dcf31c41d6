//! khugepaged: small anonymous pages become huge ones in the background.
//!
//! Linux: mm/khugepaged.c `khugepaged_do_scan`, `khugepaged_scan_mm_slot`, `hpage_collapse_scan_pmd`,
//! `collapse_huge_page`, `__collapse_huge_page_swapin`, `khugepaged_enter_vma` (6.1). A round looks at
//! `pages_to_scan` pages, region by region through the address spaces that had a fault in a region which
//! might be huge, and sleeps; while there is none it sleeps for good. A region with few enough holes, and
//! with at least one writable and one recently used page, is copied into a huge page, and its small
//! pages are freed. Up to `max_ptes_swap` pages are read back from swap before that, if half of the
//! others were used.
//!
//! Differences from Linux: it has the huge page before it reads from swap; here it reads first, and asks
//! for the huge page then. For each page of a region the cost is one descriptor (`compact_scanned`).
//!
//! Invariant: between two steps the daemon holds nothing. When it has the huge page it judges the
//! region again.

use crate::config::Thp;
use crate::ctx::Ctx;
use crate::daemon::{Daemon, Rest};
use crate::digest::State;
use crate::effect::{Effect, Step, Token};
use crate::gfp::Gfp;
use crate::node::MAX_NODES;
use crate::outcome::Outcome;
use crate::page::{Page, PageFlags};
use crate::page_request::{First, Lack, PageRequest, SlowRequest};
use crate::process::fault::Fault;
use crate::process::page_table::{Pte, VmaId};
use crate::process::Machine;
use crate::process::MmId;
use crate::reclaim::shrink_node::TICK;
use crate::units::{Cpu, Nanos, NodeId, Pfn, HPAGE_PMD_NR};
use crate::vmstat::Event;

/// Mappings that a step passes over at most.
const SKIPS_A_STEP: u32 = 32;

/// The daemon's state.
#[derive(Clone, Debug, Default, State)]
pub(crate) struct KhugepagedScan {
    at: ScanPosition,
    round: Option<Round>,
    collapse: Option<Collapse>,
    /// Huge pages are off, or nobody could have any: it rests until that changes.
    is_off: bool,
}

/// Where the scan goes on: at this page of this mapping, or at the first mapping after it. Both by age, as
/// ids are used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
struct ScanPosition {
    mm: u64,
    vma: u64,
    page: u64,
}

#[derive(Clone, Copy, Debug, State)]
struct Round {
    /// Pages looked at, and mappings passed over.
    progress: u64,
    /// Times the scan was at its beginning: the second time ends the round.
    nr_begun: u32,
    /// An allocation failed before; once more ends the round.
    failed: bool,
}

/// A region that waits for its huge page.
#[derive(Clone, Debug, State)]
struct Collapse {
    vma: VmaId,
    /// When the mapping was born: another may have its id later.
    born: u64,
    start: u64,
    node: NodeId,
    /// The page that is being read back from swap.
    swap_in: Option<Fault>,
    /// Pages were read back.
    has_read: bool,
    slow: Option<SlowRequest>,
}

/// How far that is.
enum Collapsing {
    /// Done, or given up: go on with the next region.
    Over,
    /// Not yet.
    Pending(Step<Rest>),
    /// No huge page is to be had.
    NoPage,
}

/// What a region is looked at for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Whether it is worth a huge page. Some of its pages may be in swap.
    Scan,
    /// Whether it can be copied now.
    Isolate,
}

/// What the scan comes to next.
enum Next {
    Region(VmaId, u64),
    /// A mapping without regions, or without more of them.
    Skipped,
    /// The last address space is done.
    End,
}

impl KhugepagedScan {
    /// Nothing looked at.
    pub(crate) fn new(thp: Thp) -> KhugepagedScan {
        KhugepagedScan { is_off: !thp.is_on(), ..Default::default() }
    }
}

impl Machine {
    /// One bounded step of khugepaged, which runs on `cpu`: one region, or a part of the allocation
    /// for it.
    pub(super) fn khugepaged_step(&mut self, cpu: Cpu, now: Nanos) -> Step<Rest> {
        let mut state = core::mem::take(&mut self.owners.khugepaged);
        let step = if self.config.thp == Thp::Never {
            if let Some(slow) = state.collapse.as_ref().and_then(|collapse| collapse.slow.as_ref())
            {
                self.slow_given_up(slow, MmId::NONE, cpu);
            }
            state = KhugepagedScan { at: state.at, is_off: true, ..Default::default() };
            Step::Done(Rest::UNTIL_WOKEN)
        } else if state.round.is_none() && !self.khugepaged_has_work() {
            state.is_off = true;
            Step::Done(Rest::UNTIL_WOKEN)
        } else {
            state.is_off = false;
            self.khugepaged_work(&mut state, cpu, now)
        };
        self.owners.khugepaged = state;
        step
    }

    /// How long khugepaged rests before its first step.
    pub(super) fn khugepaged_first_rest(&self) -> Rest {
        match self.config.thp {
            Thp::Never => Rest::UNTIL_WOKEN,
            Thp::Always | Thp::Madvise => Rest::of(0),
        }
    }

    /// Huge pages were switched on: khugepaged goes on, if it rests because they were off.
    pub(super) fn wake_khugepaged(&mut self) {
        if core::mem::take(&mut self.owners.khugepaged.is_off) {
            self.effects.push(Effect::Wake(Token::Daemon(Daemon::Khugepaged)));
        }
    }

    fn khugepaged_has_work(&self) -> bool {
        self.owners.living.iter().any(|mm| self.owners.mms[mm.idx()].khugepaged)
    }

    /// There is a fault on a page of a region without a page table: khugepaged looks at the address space
    /// from now on, if the region might be huge (Linux `khugepaged_enter_vma`).
    pub(super) fn khugepaged_enter(&mut self, vma: VmaId, page: u64) {
        let mapping = &self.owners.vmas[vma.idx()];
        if self.config.thp == Thp::Never || !self.may_be_huge(mapping) || !mapping.has_region(page)
        {
            return;
        }
        let mm = mapping.mm;
        if !core::mem::replace(&mut self.owners.mms[mm.idx()].khugepaged, true) {
            self.wake_khugepaged();
        }
    }

    /// Whether khugepaged is compacting for a huge page.
    pub fn khugepaged_is_compacting(&self) -> bool {
        let slow =
            self.owners.khugepaged.collapse.as_ref().and_then(|collapse| collapse.slow.as_ref());
        slow.is_some_and(SlowRequest::is_compacting)
    }

    fn khugepaged_work(&mut self, state: &mut KhugepagedScan, cpu: Cpu, now: Nanos) -> Step<Rest> {
        let mut round = state.round.take().unwrap_or_else(|| {
            // Pages that wait in batches cannot be collapsed.
            self.lru_add_drain_all();
            let nr_begun = u32::from(state.at == ScanPosition::default());
            Round { progress: 0, nr_begun, failed: false }
        });
        if let Some(mut collapse) = state.collapse.take() {
            match self.collapse_step(&mut collapse, cpu, now) {
                Collapsing::Over => {}
                Collapsing::Pending(step) => {
                    state.collapse = Some(collapse);
                    state.round = Some(round);
                    return step;
                }
                Collapsing::NoPage if round.failed => return Step::Done(self.end_of_round()),
                Collapsing::NoPage => {
                    round.failed = true;
                    state.round = Some(round);
                    let millisecs = self.config.khugepaged_alloc_sleep_millisecs;
                    return Step::Done(nap(millisecs));
                }
            }
        }
        for _ in 0..SKIPS_A_STEP {
            if round.progress >= u64::from(self.config.khugepaged_pages_to_scan) {
                return Step::Done(self.end_of_round());
            }
            match self.next_region(&mut state.at) {
                Next::Region(vma, start) => {
                    round.progress += HPAGE_PMD_NR;
                    let node = self.may_collapse(vma, start, Look::Scan);
                    state.collapse = node.map(|node| {
                        let born = self.owners.vmas[vma.idx()].born;
                        let (swap_in, has_read, slow) = (None, false, None);
                        Collapse { vma, born, start, node, swap_in, has_read, slow }
                    });
                    break;
                }
                Next::Skipped => round.progress += 1,
                Next::End => {
                    round.nr_begun += 1;
                    if round.nr_begun >= 2 {
                        return Step::Done(self.end_of_round());
                    }
                }
            }
        }
        state.round = Some(round);
        Step::Continue
    }

    /// The sleep after a round, of a tick at least.
    fn end_of_round(&self) -> Rest {
        nap(self.config.khugepaged_scan_sleep_millisecs)
    }

    /// Moves the position on, by one region or over one mapping.
    fn next_region(&self, at: &mut ScanPosition) -> Next {
        let owners = &self.owners;
        loop {
            let next = owners.living.partition_point(|mm| owners.mms[mm.idx()].born < at.mm);
            let mut living = owners.living[next..].iter().map(|mm| &owners.mms[mm.idx()]);
            let Some(mm) = living.find(|mm| mm.khugepaged) else { break };
            if mm.born != at.mm {
                *at = ScanPosition { mm: mm.born, vma: 0, page: 0 };
            }
            let Some((&vma, born)) = mm
                .vmas
                .iter()
                .map(|vma| (vma, owners.vmas[vma.idx()].born))
                .find(|&(_, born)| born >= at.vma)
            else {
                *at = ScanPosition { mm: at.mm + 1, vma: 0, page: 0 };
                continue;
            };
            if born != at.vma {
                (at.vma, at.page) = (born, 0);
            }
            let mapping = &self.owners.vmas[vma.idx()];
            if !self.may_be_huge(mapping) || !mapping.has_region(at.page) {
                (at.vma, at.page) = (born + 1, 0);
                return Next::Skipped;
            }
            let start = at.page;
            at.page += HPAGE_PMD_NR;
            return Next::Region(vma, start);
        }
        *at = ScanPosition::default();
        Next::End
    }

    /// Whether a region is worth a huge page; the node that most of its pages are on (Linux
    /// `hpage_collapse_scan_pmd`, `__collapse_huge_page_isolate`).
    fn may_collapse(&mut self, vma: VmaId, start: u64, look: Look) -> Option<NodeId> {
        let mapping = &self.owners.vmas[vma.idx()];
        let exists = mapping.alive
            && self.may_be_huge(mapping)
            && mapping.has_region(start)
            && mapping.is_locked_alike(start);
        if !exists || mapping.tables[self.mem.page_size.table_of(start)].is_none() {
            return None;
        }
        if self.huge_page_at(vma, start).is_some() {
            return None;
        }
        let (mut nr_none, mut nr_swapped, mut nr_referenced) = (0, 0, 0);
        let mut writable = false;
        let mut nodes = [0u32; MAX_NODES];
        for &pte in self.owners.vmas[vma.idx()].region(start) {
            if pte.is_empty() || pte.is_zero_page() {
                nr_none += 1;
                if nr_none > self.config.khugepaged_max_ptes_none {
                    self.mem.vmstat.count(Event::ThpScanExceedNonePte);
                    return None;
                }
                continue;
            }
            if pte.swap_slot().is_some() && look == Look::Scan {
                nr_swapped += 1;
                if nr_swapped > self.config.khugepaged_max_ptes_swap {
                    self.mem.vmstat.count(Event::ThpScanExceedSwapPte);
                    return None;
                }
                continue;
            }
            // In swap again, or on its way to another frame.
            if !pte.is_present() {
                return None;
            }
            let page = &self.mem.pages[pte.pfn().idx()];
            self.mem.work.compact_scanned += 1;
            if !is_collapsible(page) {
                return None;
            }
            writable |= pte.is_dirty();
            nr_referenced += u64::from(pte.is_young() || page.has(PageFlags::REFERENCED));
            nodes[page.node().idx()] += 1;
        }
        let most = nodes.iter().max()?;
        let node = nodes.iter().position(|nr| nr == most)?;
        // What is read back for it must be worth that.
        let enough = if nr_swapped > 0 { HPAGE_PMD_NR / 2 } else { 1 };
        (writable && nr_referenced >= enough).then_some(NodeId(node as u8))
    }

    /// One step towards a huge page for a region (Linux `alloc_charge_hpage`, `collapse_huge_page`).
    fn collapse_step(&mut self, collapse: &mut Collapse, cpu: Cpu, now: Nanos) -> Collapsing {
        let Collapse { vma, born, start, node, .. } = *collapse;
        let mapping = &self.owners.vmas[vma.idx()];
        if !mapping.alive || mapping.born != born {
            if let Some(slow) = &collapse.slow {
                self.slow_given_up(slow, MmId::NONE, cpu);
            }
            return Collapsing::Over;
        }
        let memcg = self.owners.mms[self.owners.vmas[vma.idx()].mm.idx()].memcg;
        let ctx = Ctx { cpu, node, now, asker: MmId::NONE, memcg };
        if let Some(pending) = self.collapse_swapin(collapse, &ctx) {
            return pending;
        }
        let slow = &mut collapse.slow;
        let defrag = self.config.khugepaged_defrag;
        let gfp = if defrag { Gfp::TRANSHUGE } else { Gfp::TRANSHUGE_LIGHT };
        match self.request_page(&ctx, slow, PageRequest::huge(gfp, memcg, First::Page)) {
            Step::Continue => Collapsing::Pending(Step::Continue),
            Step::Wait(wait) => Collapsing::Pending(Step::Wait(wait)),
            Step::Done(Err(Lack::Pages(..))) => {
                self.mem.vmstat.count(Event::ThpCollapseAllocFailed);
                Collapsing::NoPage
            }
            // There was a page, which counts.
            Step::Done(Err(Lack::Room(..) | Lack::Owing | Lack::Denied)) => {
                self.mem.vmstat.count(Event::ThpCollapseAlloc);
                Collapsing::Over
            }
            Step::Done(Ok(head)) => {
                self.mem.vmstat.count(Event::ThpCollapseAlloc);
                self.memcgs[memcg.idx()].events.count(Event::ThpCollapseAlloc);
                // Much may have happened since the scan; reclaim for the page alone may be to blame.
                if self.may_collapse(vma, start, Look::Isolate).is_some() {
                    self.collapse(vma, start, head, &ctx);
                } else {
                    self.discard_charged(cpu, head, memcg);
                }
                Collapsing::Over
            }
        }
    }

    /// Reads back what of the region is in swap (Linux `__collapse_huge_page_swapin`). `None`: nothing is.
    fn collapse_swapin(&mut self, collapse: &mut Collapse, ctx: &Ctx) -> Option<Collapsing> {
        let Collapse { vma, born, start, .. } = *collapse;
        loop {
            let mut fault = match collapse.swap_in.take() {
                Some(fault) => fault,
                // What is being got for the huge page: the region was read before.
                None if collapse.slow.is_some() => return None,
                None => {
                    let mut ptes = self.owners.vmas[vma.idx()].region(start).iter();
                    let Some(at) = ptes.position(|pte| pte.swap_slot().is_some()) else {
                        if core::mem::take(&mut collapse.has_read) {
                            self.lru_add_drain(ctx.cpu);
                        }
                        return None;
                    };
                    Fault::swap_in(vma, born, start + at as u64)
                }
            };
            match self.fault_step(&mut fault, &mut collapse.slow, ctx) {
                Step::Continue => {
                    collapse.swap_in = Some(fault);
                    return Some(Collapsing::Pending(Step::Continue));
                }
                Step::Wait(wait) => {
                    collapse.swap_in = Some(fault);
                    return Some(Collapsing::Pending(Step::Wait(wait)));
                }
                Step::Done(outcome) => {
                    // What the page was sought with is over, too: somebody else may have read it.
                    if let Some(slow) = collapse.slow.take() {
                        self.slow_given_up(&slow, ctx.asker, ctx.cpu);
                    }
                    match outcome {
                        Outcome::Got(_) | Outcome::Minor => collapse.has_read = true,
                        _ => return Some(Collapsing::Over),
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
            self.effects.push(Effect::CollapsePage { from: pte.pfn(), to: Pfn(to) });
            self.page_remove_rmap(pte.pfn());
            self.munlock_page(pte.pfn());
            self.free_anon_page(pte.pfn(), ctx.cpu);
        }
        self.mem.work.ptes_set += HPAGE_PMD_NR as u32;
        self.mem.work.tlb_flushes += 1;
        self.map_huge(vma, start, head, ctx.memcg, ctx.cpu);
    }
}

/// Whether a mapped page may be copied away and freed: on its list, and held by nobody else.
fn is_collapsible(page: &Page) -> bool {
    let held = PageFlags::LOCKED
        .with(PageFlags::WRITEBACK)
        .with(PageFlags::BATCHED)
        .with(PageFlags::PINNED)
        .with(PageFlags::MIGRATING);
    page.has(PageFlags::ANON) && page.place.is_lru() && !page.flags.any(held)
}

fn nap(millisecs: u32) -> Rest {
    Rest::of((u64::from(millisecs) * 1_000_000).max(TICK))
}
