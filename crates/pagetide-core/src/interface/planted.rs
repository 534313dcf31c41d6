//! Defects planted on purpose, to check that tests find them. They are compiled only with debug
//! assertions; without these, every query has a constant answer.
//!
//! Linux has lib/fault-inject.c, for errors that code must survive. Here tests must find the
//! defects.

use crate::interface::kernel::Kernel;

/// A defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// A scanned page is not put back on its list.
    ForgottenPage,
    /// A page moves to another frame without a copy of its bytes.
    SkippedCopy,
    /// A freed page stays charged to its group.
    LeakedCharge,
}

/// A defect planted in a machine.
#[cfg(debug_assertions)]
#[derive(Clone, Copy, Debug)]
pub struct PlantedDefect {
    /// The defect.
    pub defect: Defect,
    /// The defect shows on every n-th opportunity.
    pub every: u32,
    /// Number of opportunities so far.
    pub nr: u32,
}

impl Kernel {
    /// Plants a defect, or removes it.
    #[cfg(debug_assertions)]
    pub fn plant(&mut self, planted: Option<PlantedDefect>) {
        self.step.planted = planted;
    }

    #[inline(always)]
    pub(crate) fn is_planted(&mut self, defect: Defect) -> bool {
        #[cfg(debug_assertions)]
        if let Some(planted) = self.step.planted.as_mut().filter(|planted| planted.defect == defect)
        {
            planted.nr += 1;
            return planted.nr.is_multiple_of(planted.every);
        }
        let _ = defect;
        false
    }
}
