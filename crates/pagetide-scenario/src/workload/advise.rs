//! `workload = "advise"`: gives advice on part of a region, or new advice on all of it (madvise).

use super::part::{RegionPart, PageCount, PartKeys};
use super::prelude::*;
use crate::names::MadviseKind;

table! {
    /// Gives advice on memory (madvise).
    AdviseKeys of "workload advise" {
        /// Advice to give.
        advice: Spanned<MadviseKind> => required "\"page-out\"",
        /// Region to advise on (default: anon, or the file).
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

/// One call of madvise().
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdviseWorkload {
    pub advice: MadviseKind,
    pub part: RegionPart,
}

impl WorkloadSpec for AdviseWorkload {
    type Keys = AdviseKeys;

    fn check(keys: &AdviseKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let AdviseKeys { at, bad, region, file, size, first, pages, .. } = keys;
        let part = PartKeys { at: *at, bad, region, file, size, first, pages };
        let part = part.check(phases, sink);
        let advice = keys.advice(sink)?;
        let part = part?;
        let is_part = keys.first.is_some() || keys.pages.is_some();
        if advice.value.needs_whole_region() && is_part {
            let hint = "leave out `first` and `pages`: only `huge` and `no-huge` work on a part";
            sink.hinted(advice.span, "this advice needs a whole region", hint);
            return None;
        }
        let wrong = match (advice.value, part.file) {
            (MadviseKind::WillNeed, None) => Some("`will-need` is supported for files only"),
            (MadviseKind::PopulateWrite, Some(_)) => Some("a mapped file is read-only in Pagetide"),
            (MadviseKind::Huge | MadviseKind::NoHuge | MadviseKind::Collapse, Some(_)) => {
                Some("only anonymous memory has huge pages in Pagetide")
            }
            _ => None,
        };
        if let Some(message) = wrong {
            sink.hinted(advice.span, message, "docs/scenario.md says which advice works on which memory");
            return None;
        }
        Some(AdviseWorkload { advice: advice.value, part })
    }

    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let advice = self.advice;
        let call = move |region, page, pages| Op::Advise { region, page, pages, advice };
        self.part.stages(planner, call)
    }

    fn files(&mut self, each: &mut dyn FnMut(&mut usize, bool)) {
        if let Some(file) = &mut self.part.file {
            each(file, false);
        }
    }
}
