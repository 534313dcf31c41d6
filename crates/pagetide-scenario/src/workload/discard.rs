//! `workload = "discard"`: frees pages of an anonymous region (MADV_DONTNEED).

use super::part::known_region;
use super::prelude::*;
use crate::op::REGION_PAGES_MAX;
use crate::load::check::phases::region_name;

/// Adjacent pages that one operation discards at most, which bounds its duration.
const DISCARD_PAGES: u64 = 512;

table! {
    /// Frees pages of an anonymous region (MADV_DONTNEED).
    DiscardKeys of "workload discard" {
        /// Region that an earlier phase of the task has mapped (default anon).
        region: Spanned<NameKey>,
        /// First page (default 0).
        first: Spanned<Int<0, { REGION_PAGES_MAX as i64 }>> = Int(0),
        /// Distance from one page to the next (default 1).
        every: Spanned<Int<1, { REGION_PAGES_MAX as i64 }>> = Int(1),
    }
}

/// Pages to free, up to the end of the region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscardWorkload {
    pub region: String,
    pub first: u64,
    pub every: u64,
}

impl WorkloadSpec for DiscardWorkload {
    type Keys = DiscardKeys;

    fn check(keys: &DiscardKeys, phases: &mut Phases<'_, '_>, sink: &mut ProblemSink) -> Option<Self> {
        if keys.bad.contains(&"region") {
            return None;
        }
        let name = region_name(&keys.region, keys.at);
        let region = name.value.0.clone();
        let shown = clip(&region);
        let known = known_region(&name, phases, sink)?;
        if known.file.is_some() {
            sink.push(SpannedProblem {
                span: name.span,
                message: format!("the region `{shown}` maps a file"),
                hint: Some("only anonymous memory can be discarded: name a region of touch".into()),
                also: Some((known.span, "first used here".into())),
            });
            return None;
        }
        let (first, every) = (keys.first().into(), keys.every().into());
        let span = keys.first.as_ref().map_or(name.span, |first| first.span);
        let grows = region.clone();
        // A later phase may enlarge the region.
        phases.later.push(Box::new(move |regions, sink| {
            let pages = regions.get(&grows).map_or(0, |region| region.pages);
            if first >= pages {
                let message = format!("the region `{}` has no page {first}", clip(&grows));
                sink.hinted(span, message, format!("the region has pages 0 to {}", pages - 1));
            }
        }));
        Some(DiscardWorkload { region, first, every })
    }

    fn stages(&self, _: u32, planner: &mut Planner<'_>) -> Vec<PhaseStage> {
        let region = planner.known_region(&self.region);
        let (next, every) = (self.first, self.every);
        vec![PhaseStage::run(move |state, _| {
            let (end, region) = (state.regions[region].pages, state.number(region));
            Box::new(Discards { region, next, end, every }).into()
        })]
    }
}

/// Discards adjacent pages together.
#[derive(Debug)]
struct Discards {
    region: u32,
    next: u64,
    end: u64,
    every: u64,
}

impl Generator for Discards {
    fn next_op(&mut self) -> Option<Op> {
        let left = self.end.checked_sub(self.next).filter(|left| *left > 0)?;
        let pages = if self.every == 1 { left.min(DISCARD_PAGES) } else { 1 };
        let page = self.next;
        self.next += if self.every == 1 { pages } else { self.every };
        Some(Op::Discard { region: self.region, page, pages })
    }
}
