//! `workload = "lock"`: locks part of a region into memory, or unlocks it (mlock, mlock2, munlock).

use super::part::{RegionPart, PageCount, PartKeys};
use super::prelude::*;
use crate::names::LockKind;

table! {
    /// Locks or unlocks memory.
    LockKeys of "workload lock" {
        /// Operation (default lock).
        how: Spanned<LockKind> = LockKind::Lock,
        /// Region to lock (default: anon, or the file).
        region: Spanned<NameKey>,
        /// File to map, if no earlier phase has mapped the region.
        file: Spanned<NameKey>,
        /// Bytes of memory or of the file to map, if no earlier phase has mapped the region.
        size: Spanned<Size>,
        /// First page (default 0).
        first: Spanned<PageCount>,
        /// Number of pages (default: up to the end of the region).
        pages: Spanned<PageCount>,
    }
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    pub how: LockKind,
    pub part: RegionPart,
}

impl WorkloadSpec for Lock {
    type Keys = LockKeys;

    fn check(keys: &LockKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let LockKeys { at, bad, region, file, size, first, pages, .. } = keys;
        let part = PartKeys { at: *at, bad, region, file, size, first, pages };
        Some(Lock { how: keys.how(), part: part.check(phases, sink)? })
    }

    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let how = self.how;
        self.part.stages(planner, move |region, page, pages| Op::Lock { region, page, pages, how })
    }

    fn files(&mut self, each: &mut dyn FnMut(&mut usize, bool)) {
        if let Some(file) = &mut self.part.file {
            each(file, false);
        }
    }
}

/// Operations that are known in advance.
impl Generator for std::option::IntoIter<Op> {
    fn next_op(&mut self) -> Option<Op> {
        self.next()
    }
}
