//! MADV_COLLAPSE: a task collapses regions of its memory into huge pages synchronously.
//!
//! Linux: mm/khugepaged.c `madvise_collapse`, `madvise_collapse_errno` (6.1). Collapses every
//! region that lies entirely in the range ([`super::collapse`]), independent of
//! `transparent_hugepage.enabled` and khugepaged's limits; only MADV_NOHUGEPAGE forbids it. The
//! task itself compacts and reclaims. An unsuitable or busy region is skipped; if no huge page can
//! be allocated or charged, the call ends. The call succeeds if every region is a huge page at the
//! end; otherwise it returns the error of the last region that failed.
//!
//! Invariant: between two steps, no memory is held except by the request for a huge page.

use super::collapse::{CollapseError, CollapseTrigger};
use super::huge_memory::region_of;
use super::id_pool::NOT_BEGUN;
use super::request::MadviseCollapse;
use super::Machine;
use crate::frames::page_request::SlowRequest;
use crate::interface::bad_id::BadId;
use crate::interface::ctx::Ctx;
use crate::interface::effect::Step;
use crate::interface::outcome::Outcome;
use crate::units::errno::Errno;
use crate::units::HPAGE_PMD_NR;

impl CollapseError {
    fn errno(self) -> Errno {
        match self {
            CollapseError::NoPage => Errno::Enomem,
            CollapseError::OverLimit => Errno::Ebusy,
            CollapseError::Busy => Errno::Eagain,
            CollapseError::IsHuge
            | CollapseError::NotAllowed
            | CollapseError::Unfit
            | CollapseError::NotRead => Errno::Einval,
        }
    }

    /// Whether the error concerns only its region, so that the call continues with the next one.
    fn concerns_one_region(self) -> bool {
        match self {
            CollapseError::Unfit | CollapseError::Busy => true,
            CollapseError::IsHuge
            | CollapseError::NotAllowed
            | CollapseError::NotRead
            | CollapseError::NoPage
            | CollapseError::OverLimit => false,
        }
    }
}

impl Machine {
    pub(crate) fn madvise_collapse_step(
        &mut self,
        call: &mut MadviseCollapse,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Step<Outcome> {
        if call.born == NOT_BEGUN {
            if let Err(refused) = self.begin_madvise_collapse(call) {
                return Step::Done(refused);
            }
            return Step::Continue;
        }
        let step = match &mut call.collapse {
            Some(collapse) => self.collapse_step(collapse, slow, ctx),
            None if call.next >= call.end => {
                return Step::Done(match call.failed {
                    None => Outcome::Minor,
                    Some(failed) => Outcome::Refused(failed.errno()),
                });
            }
            None => match self.owners.vmas.get(call.vma.idx()) {
                Some(mapping) if mapping.generation == call.born => {
                    match self.begin_collapse(call.vma, call.next, CollapseTrigger::Madvise) {
                        Ok(collapse) => {
                            call.collapse = Some(collapse);
                            return Step::Continue;
                        }
                        Err(failed) => Step::Done(Err(failed)),
                    }
                }
                _ => Step::Done(Err(CollapseError::NotAllowed)),
            },
        };
        let failed = match step {
            Step::Continue => return Step::Continue,
            Step::Wait(wait) => return Step::Wait(wait),
            Step::Done(collapsed) => {
                collapsed.err().filter(|&failed| failed != CollapseError::IsHuge)
            }
        };
        call.collapse = None;
        call.next += HPAGE_PMD_NR;
        if let Some(failed) = failed {
            call.failed = Some(failed);
            if !failed.concerns_one_region() {
                call.next = call.end;
            }
        }
        Step::Continue
    }

    fn begin_madvise_collapse(&mut self, call: &mut MadviseCollapse) -> Result<(), Outcome> {
        let mapping = self.owners.living_vma(call.vma).map_err(Outcome::BadId)?;
        let len = mapping.len();
        if call.end > len || call.next > call.end {
            return Err(Outcome::BadId(BadId::Page(call.vma)));
        }
        // A mapping without a write has no `anon_vma`.
        let has_tables = mapping.tables.iter().any(|table| table.is_some());
        let has_region = mapping.has_region(len.saturating_sub(HPAGE_PMD_NR));
        let may = Machine::may_be_collapsed(mapping, call.next);
        if !(may && has_region && has_tables) {
            return Err(Outcome::Refused(Errno::Einval));
        }
        call.born = mapping.generation;
        // Only whole regions count. If none is left, Linux's count of regions may be negative, and
        // then the call fails.
        call.next = call.next.next_multiple_of(HPAGE_PMD_NR);
        call.end = region_of(call.end);
        if call.next > call.end {
            return Err(Outcome::Refused(Errno::Einval));
        }
        self.lru_add_drain_all();
        Ok(())
    }
}
