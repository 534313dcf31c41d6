//! Write faults on files: the buffer head before a page becomes dirty, and the pause after it.
//!
//! Linux: `do_page_mkwrite`, `fault_dirty_shared_page` (mm/memory.c, 6.1).
//!
//! Difference from Linux: if the page was written during the pause, the writer dirties it again
//! without another pause. In Linux a writer of a group without a clean page may pause for ever.
//!
//! Invariant: a page is dirty and mapped writable before its writer pauses. The pause does not
//! count as another fault.

use super::{Fault, FaultStage};
use crate::frames::page_request::SlowRequest;
use crate::interface::ctx::Ctx;
use crate::interface::effect::Step;
use crate::interface::outcome::Outcome;
use crate::process::page_table::Backing;
use crate::process::Machine;

impl Machine {
    /// Allocates the buffer head of a page, then reads the entry again.
    pub(super) fn fault_buffer_head(
        &mut self,
        fault: &mut Fault,
        slow: &mut Option<SlowRequest>,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        let Backing::File(file) = self.owners.vmas[fault.vma].backing else {
            unreachable!("a file stage on anonymous memory")
        };
        let index = fault.page as u32;
        if let Err(step) = self.buffer_head_step(file, index, &mut fault.buffer, slow, ctx) {
            return Some(step);
        }
        match self.owners.vmas[fault.vma].alive {
            true => self.fault_dispatch(fault, ctx),
            false => Some(Step::Done(Outcome::NoMemory)),
        }
    }

    /// Ends the fault of a page that is now dirty and writable, unless the writer must pause first.
    pub(super) fn fault_dirtied(
        &mut self,
        fault: &mut Fault,
        done: Step<Outcome>,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        let Backing::File(file) = self.owners.vmas[fault.vma].backing else {
            unreachable!("only pages of files become dirty in a fault")
        };
        if fault.paused {
            return Some(done);
        }
        let Some(pause) = self.balance_dirty_pages_ratelimited(file, ctx) else {
            return Some(done);
        };
        fault.paused = true;
        fault.stage = FaultStage::Throttled;
        Some(Step::Wait(pause))
    }

    /// Makes the access after the pause. Faults again if the page was unmapped or written back.
    pub(super) fn fault_throttled(
        &mut self,
        fault: &mut Fault,
        ctx: &Ctx,
    ) -> Option<Step<Outcome>> {
        let vma = &self.owners.vmas[fault.vma];
        if !vma.alive {
            return Some(Step::Done(Outcome::NoMemory));
        }
        if let (true, Backing::File(file)) = (self.owners.is_unbalanced(ctx.asker), vma.backing) {
            if let Some(pause) = self.balance_dirty_pages_ratelimited(file, ctx) {
                return Some(Step::Wait(pause));
            }
        }
        let vma = &self.owners.vmas[fault.vma];
        if vma.ptes[fault.page as usize].touched(fault.write).is_some() {
            return self.fault_dispatch(fault, ctx);
        }
        fault.stage = FaultStage::Start;
        None
    }
}
