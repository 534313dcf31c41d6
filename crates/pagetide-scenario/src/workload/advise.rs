//! `workload = "advise"`: gives advice on part of a region, or new advice on all of it (madvise).

use super::part::{Part, PageCount, PartKeys};
use super::prelude::*;
use crate::names::MadviseKind;

table! {
    /// Gives advice on memory (madvise).
    Keys of "workload advise" {
        /// Advice to give.
        advice: At<MadviseKind> => required "\"page-out\"",
        /// Region to advise on (default: anon, or the file).
        region: At<Name>,
        /// File to map, if no earlier phase has mapped the region.
        file: At<Name>,
        /// Bytes of memory or of the file to map, if no earlier phase has mapped the region.
        size: At<Size>,
        /// First page (default 0).
        first: At<PageCount>,
        /// Number of pages (default: up to the end of the region).
        pages: At<PageCount>,
    }
}

/// One call of madvise().
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advise {
    pub advice: MadviseKind,
    pub part: Part,
}

impl Kind for Advise {
    type Keys = Keys;

    fn check(keys: &Keys, phases: &mut Phases<'_, '_>, sink: &mut Sink) -> Option<Self> {
        let Keys { at, bad, region, file, size, first, pages, .. } = keys;
        let part = PartKeys { at: *at, bad, region, file, size, first, pages };
        let part = part.check(phases, sink);
        let advice = keys.advice(sink)?;
        let part = part?;
        let is_part = keys.first.is_some() || keys.pages.is_some();
        if advice.value.is_on_whole() && is_part {
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
        Some(Advise { advice: advice.value, part })
    }

    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<Stage> {
        let (region, mut stages) = self.part.stages(planner);
        let Advise { advice, part } = self.clone();
        stages.push(Stage::run(move |state, _| {
            let pages = part.of(state.regions[region].pages);
            let (region, page, pages) = (state.number(region), pages.start, pages.end - pages.start);
            Box::new(Some(Op::Advise { region, page, pages, advice }).into_iter()).into()
        }));
        stages
    }

    fn files(&mut self, each: &mut dyn FnMut(&mut usize, bool)) {
        if let Some(file) = &mut self.part.file {
            each(file, false);
        }
    }
}
