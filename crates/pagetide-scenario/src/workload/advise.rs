//! `workload = "advise"`: gives advice on a part of a region (madvise), or another advice on all of it.

use super::part::{Part, PageCount, PartKeys};
use super::prelude::*;
use crate::names::MadviseKind;

table! {
    /// Gives advice.
    Keys of "workload advise" {
        /// The advice.
        advice: At<MadviseKind> => required "\"page-out\"",
        /// The region (default anon, or the file).
        region: At<Name>,
        /// Maps this file, if no earlier phase has mapped the region.
        file: At<Name>,
        /// Maps so much anonymous memory, or so much of the file, if no earlier phase has mapped the region.
        size: At<Size>,
        /// The first page (default 0).
        first: At<PageCount>,
        /// How many pages (default: up to the region's end).
        pages: At<PageCount>,
    }
}

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advise {
    /// What is advised.
    pub advice: MadviseKind,
    /// Of which pages.
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
            let hint = "leave `first` and `pages` out: only `huge` and `no-huge` are on parts";
            sink.hinted(advice.span, "this advice is on a whole region", hint);
            return None;
        }
        let wrong = match (advice.value, part.file) {
            (MadviseKind::WillNeed, None) => Some("only pages of a file are read ahead here"),
            (MadviseKind::PopulateWrite, Some(_)) => Some("a mapped file is read-only here"),
            (MadviseKind::Huge | MadviseKind::NoHuge | MadviseKind::Collapse, Some(_)) => {
                Some("only anonymous memory has huge pages here")
            }
            _ => None,
        };
        if let Some(message) = wrong {
            sink.hinted(advice.span, message, "docs/scenario.md says which advice is on what");
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
