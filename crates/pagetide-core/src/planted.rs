//! Defects planted on purpose, to see whether tests find them. Compiled only with debug
//! assertions; without them the answer is a constant.
//!
//! Linux has lib/fault-inject.c for errors that the code must survive. These defects are errors that
//! tests must find.

use crate::manager::Manager;

/// A defect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// A page that reclaim has looked at is not put back on its list.
    ForgottenPage,
    /// A page moves to another frame without its bytes.
    SkippedCopy,
    /// A page that is freed stays on its group's bill.
    LeakedCharge,
}

/// What is planted in a machine.
#[cfg(debug_assertions)]
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// The defect.
    pub defect: Defect,
    /// Once in so many times that it could show.
    pub every: u32,
    /// Times so far.
    pub nr: u32,
}

impl<O> Manager<O> {
    /// Whether a defect shows now.
    #[inline(always)]
    pub(crate) fn is_planted(&mut self, defect: Defect) -> bool {
        #[cfg(debug_assertions)]
        if let Some(planted) = self.planted.as_mut().filter(|planted| planted.defect == defect) {
            planted.nr += 1;
            return planted.nr.is_multiple_of(planted.every);
        }
        let _ = defect;
        false
    }
}
