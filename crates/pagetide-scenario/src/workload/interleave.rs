//! `workload = "interleave"`: touches anonymous pages and pages of a mapped file in turn, so that
//! both kinds alternate in memory.

use super::prelude::*;
use crate::op::REGION_PAGES_MAX;
use crate::load::check::phases::region_name;
use crate::load::units::show_size;

table! {
    /// Writes an anonymous page and reads a page of a mapped file, in turn.
    InterleaveKeys of "workload interleave" {
        /// Number of pages of each kind.
        pages: Spanned<Int<1, { REGION_PAGES_MAX as i64 }>> => required "16384",
        /// File to map, with at least `pages` pages; it is unmapped when the phase ends.
        file: Spanned<NameKey> => required "\"data\"",
        /// Whether the file stays mapped until the task ends (default false).
        keep_mapped: bool,
        /// Anonymous region; phases of a task that name the same region share it (default anon).
        region: Spanned<NameKey>,
    }
}

/// Writes to anonymous pages and reads of file pages, in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interleave {
    /// Name of the anonymous region, shared between phases.
    pub region: String,
    pub pages: u64,
    /// Index into [`Setup::files`](crate::model::Setup::files).
    pub file: usize,
    /// The file stays mapped when the phase ends.
    pub keep_mapped: bool,
}

impl WorkloadSpec for Interleave {
    type Keys = InterleaveKeys;

    fn check(keys: &InterleaveKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        let pages = keys.pages(sink);
        let name = keys.file(sink)?;
        let file = phases.files.names.find(name, sink)?;
        let whole = phases.not_empty(file, name, sink)?;
        let (span, pages) = (pages?.span, u64::from(pages?.value));
        let whole_pages = sink.page_size.pages_for(whole);
        if pages > whole_pages {
            sink.push(SpannedProblem {
                span,
                message: format!("{pages} pages are more than the file has ({})", show_size(whole)),
                hint: Some(format!("make the file larger, or write at most {whole_pages} pages")),
                also: phases.files.span(file).map(|span| (span, "the file".into())),
            });
            return None;
        }
        let region = region_name(&keys.region, span);
        let advice = phases.advice_of(&region.value.0);
        phases.use_region(&region, None, advice, pages, span, sink)?;
        // A unique name, so that only this phase uses the mapping.
        let mapping = format!("{}#{}", name.value.0, phases.regions.len());
        let mapping = Spanned { value: NameKey(mapping), span: name.span };
        phases.use_region(&mapping, Some(file), Advice::Random, pages, span, sink)?;
        let keep_mapped = keys.keep_mapped.unwrap_or(false);
        Some(Interleave { region: region.value.0, pages, file, keep_mapped })
    }

    fn stages(&self, phase: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let turns = 2 * self.pages;
        let advice = planner.advice_of(&self.region);
        let anon = planner.anon_region(&self.region, self.pages, advice);
        // A unique name, so that only this phase uses the mapping: scenario names contain no `#`.
        let name = format!("#interleave{phase}");
        let file = planner.file_region(self.file, &name, self.pages, Advice::Random);
        let run = PhaseStage::run(move |state, _| {
            let (anon, file) = (state.number(anon), state.number(file));
            Box::new(Turns { anon, file, turn: 0, turns }).into()
        });
        let mut stages = vec![PhaseStage::Map(anon), PhaseStage::Map(file), run];
        if !self.keep_mapped {
            stages.push(PhaseStage::Unmap(file));
        }
        stages
    }

    fn files(&mut self, each: &mut dyn FnMut(&mut usize, bool)) {
        each(&mut self.file, false);
    }
}

#[derive(Debug)]
struct Turns {
    anon: u32,
    file: u32,
    turn: u64,
    /// Two per page.
    turns: u64,
}

impl Generator for Turns {
    fn next_op(&mut self) -> Option<Op> {
        if self.turn == self.turns {
            return None;
        }
        let (page, write) = (self.turn / 2, self.turn.is_multiple_of(2));
        let region = if write { self.anon } else { self.file };
        self.turn += 1;
        Some(Op::Access { region, page, write })
    }
}
