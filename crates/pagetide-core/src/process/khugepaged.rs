//! khugepaged: collapses small anonymous pages into huge pages in the background.
//!
//! Linux: mm/khugepaged.c `khugepaged_do_scan`, `khugepaged_scan_mm_slot`, `khugepaged_enter_vma`
//! (6.1). In each round khugepaged scans `pages_to_scan` pages and then sleeps. It goes region by
//! region through the address spaces that had a fault in a region eligible for a huge page; without
//! any such address space it sleeps until woken. A suitable region is collapsed
//! ([`super::collapse`]).
//!
//! Invariant: between two steps khugepaged holds no page.

use crate::config::Config;
use crate::config::Thp;
use crate::frames::page_request::SlowRequest;
use crate::groups::memcg::ROOT;
use crate::interface::ctx::Ctx;
use crate::interface::daemon::{Daemon, DaemonRest};
use crate::interface::effect::{Effect, Step, Token};
use crate::process::collapse::{Collapse, CollapseError, CollapseTrigger};
use crate::process::page_table::VmaId;
use crate::process::Machine;
use crate::process::MmId;
use crate::process::Processes;
use crate::units::digest::State;
use crate::units::{Cpu, Nanos, HPAGE_PMD_NR, TICK};

/// Maximum number of mappings that a step skips.
const SKIPS_A_STEP: u32 = 32;
#[derive(Clone, Debug, Default, State)]
pub(crate) struct KhugepagedScan {
    at: ScanPosition,
    round: Option<KhugepagedRound>,
    collapse: Option<Collapse>,
    slow: Option<SlowRequest>,
    /// Huge pages are off, or no address space is registered: khugepaged sleeps until this changes.
    is_off: bool,
}

/// Position of the scan: this page of this mapping, or the first mapping after it. `mm` and `vma`
/// are generations, because ids are reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, State)]
struct ScanPosition {
    mm: u64,
    vma: u64,
    page: u64,
}

#[derive(Clone, Copy, Debug, State)]
struct KhugepagedRound {
    /// Pages scanned, plus mappings skipped.
    progress: u64,
    /// Number of times the scan was at its start. The round ends at the second time.
    nr_begun: u32,
    /// An allocation failed in this round; the next failure ends it.
    failed: bool,
}
enum NextRegion {
    Region(VmaId, u64),
    /// The mapping has no regions, or none left.
    Skipped,
    End,
}

impl KhugepagedScan {
    pub(crate) fn new(thp: Thp) -> KhugepagedScan {
        KhugepagedScan { is_off: !thp.is_on(), ..Default::default() }
    }
}

impl Config {
    pub(super) fn khugepaged_first_rest(&self) -> DaemonRest {
        match self.thp {
            Thp::Never => DaemonRest::UNTIL_WOKEN,
            Thp::Always | Thp::Madvise => DaemonRest::of(0),
        }
    }

    /// The sleep after a round; at least one tick.
    fn end_of_round(&self) -> DaemonRest {
        nap(self.khugepaged_scan_sleep_millisecs)
    }
}

impl Processes {
    fn khugepaged_has_work(&self) -> bool {
        self.living.iter().any(|mm| self.mms[*mm].khugepaged)
    }
}

impl Machine {
    /// One bounded step of khugepaged on `cpu`: one region, or a part of the allocation for it.
    pub(super) fn khugepaged_step(&mut self, cpu: Cpu, now: Nanos) -> Step<DaemonRest> {
        let mut state = core::mem::take(&mut self.owners.khugepaged);
        let step = if self.config.thp == Thp::Never {
            if let Some(slow) = &state.slow {
                self.abandon_slow_request(slow, MmId::NONE, cpu);
            }
            state = KhugepagedScan { at: state.at, is_off: true, ..Default::default() };
            Step::Done(DaemonRest::UNTIL_WOKEN)
        } else if state.round.is_none() && !self.owners.khugepaged_has_work() {
            state.is_off = true;
            Step::Done(DaemonRest::UNTIL_WOKEN)
        } else {
            state.is_off = false;
            self.khugepaged_work(&mut state, cpu, now)
        };
        self.owners.khugepaged = state;
        step
    }

    /// Wakes khugepaged if it sleeps for lack of work.
    pub(super) fn wake_khugepaged(&mut self) {
        if core::mem::take(&mut self.owners.khugepaged.is_off) {
            self.step.effects.push(Effect::Wake(Token::Daemon(Daemon::Khugepaged)));
        }
    }

    /// Registers the address space of a fault in a region without a page table, if the region may
    /// be huge (Linux `khugepaged_enter_vma`).
    pub(super) fn khugepaged_enter(&mut self, vma: VmaId, page: u64) {
        let mapping = &self.owners.vmas[vma];
        if self.config.thp == Thp::Never
            || !self.config.may_be_huge(mapping, page)
            || !mapping.has_region(page)
        {
            return;
        }
        let mm = mapping.mm;
        if !core::mem::replace(&mut self.owners.mms[mm].khugepaged, true) {
            self.wake_khugepaged();
        }
    }

    /// Whether khugepaged is compacting for a huge page.
    pub fn khugepaged_is_compacting(&self) -> bool {
        self.owners.khugepaged.slow.as_ref().is_some_and(SlowRequest::is_compacting)
    }

    fn khugepaged_work(
        &mut self,
        state: &mut KhugepagedScan,
        cpu: Cpu,
        now: Nanos,
    ) -> Step<DaemonRest> {
        let mut round = state.round.take().unwrap_or_else(|| {
            // Pages in LRU batches cannot be collapsed.
            self.lru_add_drain_all();
            let nr_begun = u32::from(state.at == ScanPosition::default());
            KhugepagedRound { progress: 0, nr_begun, failed: false }
        });
        if let Some(mut collapse) = state.collapse.take() {
            // `collapse_step` takes the node from the region and the group from its address space.
            let node = self.mem.cpu_node(cpu);
            let ctx = Ctx { cpu, node, now, asker: MmId::NONE, memcg: ROOT };
            let waits = match self.collapse_step(&mut collapse, &mut state.slow, &ctx) {
                Step::Continue => Some(Step::Continue),
                Step::Wait(wait) => Some(Step::Wait(wait)),
                Step::Done(Err(CollapseError::NoPage)) if round.failed => {
                    return Step::Done(self.config.end_of_round());
                }
                Step::Done(Err(CollapseError::NoPage)) => {
                    round.failed = true;
                    state.round = Some(round);
                    let millisecs = self.config.khugepaged_alloc_sleep_millisecs;
                    return Step::Done(nap(millisecs));
                }
                Step::Done(_) => None,
            };
            if let Some(step) = waits {
                state.collapse = Some(collapse);
                state.round = Some(round);
                return step;
            }
        }
        for _ in 0..SKIPS_A_STEP {
            if round.progress >= u64::from(self.config.khugepaged_pages_to_scan) {
                return Step::Done(self.config.end_of_round());
            }
            match self.next_region(&mut state.at) {
                NextRegion::Region(vma, start) => {
                    round.progress += HPAGE_PMD_NR;
                    state.collapse =
                        self.begin_collapse(vma, start, CollapseTrigger::Khugepaged).ok();
                    break;
                }
                NextRegion::Skipped => round.progress += 1,
                NextRegion::End => {
                    round.nr_begun += 1;
                    if round.nr_begun >= 2 {
                        return Step::Done(self.config.end_of_round());
                    }
                }
            }
        }
        state.round = Some(round);
        Step::Continue
    }

    /// Advances the position by one region, or past one mapping.
    fn next_region(&self, at: &mut ScanPosition) -> NextRegion {
        let owners = &self.owners;
        loop {
            let next = owners.living.partition_point(|mm| owners.mms[*mm].generation < at.mm);
            let mut living = owners.living[next..].iter().map(|mm| &owners.mms[*mm]);
            let Some(mm) = living.find(|mm| mm.khugepaged) else { break };
            if mm.generation != at.mm {
                *at = ScanPosition { mm: mm.generation, vma: 0, page: 0 };
            }
            let Some((&vma, born)) = mm
                .vmas
                .iter()
                .map(|vma| (vma, owners.vmas[*vma].generation))
                .find(|&(_, born)| born >= at.vma)
            else {
                *at = ScanPosition { mm: at.mm + 1, vma: 0, page: 0 };
                continue;
            };
            if born != at.vma {
                (at.vma, at.page) = (born, 0);
            }
            let mapping = &self.owners.vmas[vma];
            let may_be_huge = self.config.may_be_huge(mapping, at.page);
            if !mapping.has_region(at.page) || !may_be_huge && mapping.parts.is_empty() {
                (at.vma, at.page) = (born + 1, 0);
                return NextRegion::Skipped;
            }
            if !may_be_huge {
                at.page += HPAGE_PMD_NR;
                return NextRegion::Skipped;
            }
            let start = at.page;
            at.page += HPAGE_PMD_NR;
            return NextRegion::Region(vma, start);
        }
        *at = ScanPosition::default();
        NextRegion::End
    }
}

fn nap(millisecs: u32) -> DaemonRest {
    DaemonRest::of((u64::from(millisecs) * 1_000_000).max(TICK))
}
