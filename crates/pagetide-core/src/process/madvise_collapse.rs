//! MADV_COLLAPSE: a task makes huge pages of regions of its memory, at once and by itself.
//!
//! Linux: mm/khugepaged.c `madvise_collapse`, `madvise_collapse_errno` (6.1). Every region that lies whole in the
//! range is collapsed ([`super::collapse`]), whatever `transparent_hugepage.enabled` and khugepaged's limits say;
//! only MADV_NOHUGEPAGE forbids it. The task compacts and reclaims for itself. A region that does not make a huge
//! page, or that somebody holds, is passed over; where no page or no room is to be had, the call ends. It succeeds
//! if all regions are huge pages then, those that were it before among them; otherwise its error is that of the last
//! region that failed.
//!
//! Invariant: between two steps the call holds nothing but its request for a huge page.

use super::collapse::{By, Failed};
use super::huge_memory::region_of;
use super::ids::NOT_BEGUN;
use super::request::MadviseCollapse;
use super::Machine;
use crate::bad_id::BadId;
use crate::control::Errno;
use crate::ctx::Ctx;
use crate::effect::Step;
use crate::outcome::Outcome;
use crate::page_request::SlowRequest;
use crate::units::HPAGE_PMD_NR;

impl Failed {
    /// What the task is told.
    fn errno(self) -> Errno {
        match self {
            Failed::NoPage => Errno::Enomem,
            Failed::NoRoom => Errno::Ebusy,
            Failed::Busy => Errno::Eagain,
            Failed::IsHuge | Failed::NotAllowed | Failed::Unfit | Failed::NotRead => Errno::Einval,
        }
    }

    /// Whether the next region may do better.
    fn concerns_one_region(self) -> bool {
        match self {
            Failed::Unfit | Failed::Busy => true,
            Failed::IsHuge
            | Failed::NotAllowed
            | Failed::NotRead
            | Failed::NoPage
            | Failed::NoRoom => false,
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
                Some(mapping) if mapping.born == call.born => {
                    match self.begin_collapse(call.vma, call.next, By::Madvise) {
                        Ok(collapse) => {
                            call.collapse = Some(collapse);
                            return Step::Continue;
                        }
                        Err(failed) => Step::Done(Err(failed)),
                    }
                }
                _ => Step::Done(Err(Failed::NotAllowed)),
            },
        };
        let failed = match step {
            Step::Continue => return Step::Continue,
            Step::Wait(wait) => return Step::Wait(wait),
            Step::Done(collapsed) => collapsed.err().filter(|&failed| failed != Failed::IsHuge),
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
        let mapping = self.living_vma(call.vma).map_err(Outcome::BadId)?;
        let len = mapping.len();
        if call.end > len || call.next > call.end {
            return Err(Outcome::BadId(BadId::Page(call.vma)));
        }
        // A mapping that nothing was written to has no `anon_vma`.
        let has_tables = mapping.tables.iter().any(|table| table.is_some());
        let has_region = mapping.has_region(len.saturating_sub(HPAGE_PMD_NR));
        let may = Machine::may_be_collapsed(mapping, call.next);
        if !(may && has_region && has_tables) {
            return Err(Outcome::Refused(Errno::Einval));
        }
        call.born = mapping.born;
        // Only whole regions count. Where not even a rounded one is left Linux compares with a negative number.
        call.next = call.next.next_multiple_of(HPAGE_PMD_NR);
        call.end = region_of(call.end);
        if call.next > call.end {
            return Err(Outcome::Refused(Errno::Einval));
        }
        self.lru_add_drain_all();
        Ok(())
    }
}
