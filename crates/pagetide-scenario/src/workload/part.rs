//! A part of a region: the region, the first page, the number of pages. Workloads with memory
//! system calls name one ([`Lock`](super::Lock), [`AdviseWorkload`](super::AdviseWorkload));
//! `discard` names its region in the same way.
//!
//! Invariant: a part is inside its region once all phases of the task are known.

use super::plan::{PhaseStage, Planner};
use crate::load::check::phases::{anon_pages, region_name, Phases};
use crate::load::decode::{Int, NameKey, Size};
use crate::load::span::{clip, list_names, ProblemSink, SourceSpan, Spanned, SpannedProblem};
use crate::op::{Advice, Op, REGION_PAGES_MAX};

/// Index or number of pages.
pub(crate) type PageCount = Int<0, { REGION_PAGES_MAX as i64 }>;

/// Pages of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionPart {
    pub region: String,
    /// Index into [`Setup::files`](crate::model::Setup::files); `None`: anonymous memory.
    pub file: Option<usize>,
    /// Pages of the region, if this phase maps it; `None`: an earlier phase has mapped it.
    pub maps: Option<u64>,
    /// Advice of the region when it is mapped.
    pub advice: Advice,
    pub first: u64,
    /// Number of pages; `None`: up to the end of the region.
    pub pages: Option<u64>,
}

/// The keys that select the part.
pub(crate) struct PartKeys<'k> {
    pub(crate) at: SourceSpan,
    pub(crate) bad: &'k [&'static str],
    pub(crate) region: &'k Option<Spanned<NameKey>>,
    pub(crate) file: &'k Option<Spanned<NameKey>>,
    pub(crate) size: &'k Option<Spanned<Size>>,
    pub(crate) first: &'k Option<Spanned<PageCount>>,
    pub(crate) pages: &'k Option<Spanned<PageCount>>,
}

/// The region with this name in an earlier phase; reports an unknown region.
pub(crate) fn known_region<'r>(
    name: &Spanned<NameKey>,
    phases: &'r Phases<'_, '_>,
    sink: &mut ProblemSink,
) -> Option<&'r crate::load::check::phases::RegionUse> {
    let region = &name.value.0;
    let known = phases.regions.get(region);
    // A phase that could not be read may map it.
    if known.is_none() && !phases.is_incomplete {
        let is_own = |name: &&str| !name.contains('#');
        let names = phases.regions.keys().map(String::as_str).filter(is_own);
        let hint = match sink.suggest(region, names.clone()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.clone().next().is_none() => {
                "an earlier phase must map it, with workload = \"touch\", for example".to_owned()
            }
            None => format!("earlier phases map {}", list_names(names)),
        };
        let message = format!("no earlier phase maps a region `{}`", clip(region));
        sink.hinted(name.span, message, hint);
    }
    known
}

impl PartKeys<'_> {
    /// The part; `None` after a mistake was reported.
    pub(crate) fn check(
        &self,
        phases: &mut Phases<'_, '_>,
        sink: &mut ProblemSink,
    ) -> Option<RegionPart> {
        if self.bad.iter().any(|key| ["region", "file", "size", "first", "pages"].contains(key)) {
            return None;
        }
        let (name, file, maps) = match (self.file, self.size) {
            (Some(name), size) => {
                let file = phases.files.names.find(name, sink)?;
                let pages = phases.mapped(file, name, size, sink)?;
                (self.region.clone().unwrap_or_else(|| name.clone()), Some(file), Some(pages))
            }
            (None, Some(size)) => {
                let pages = anon_pages(size, sink)?;
                (region_name(self.region, size.span), None, Some(pages))
            }
            (None, None) => {
                let name = region_name(self.region, self.at);
                let file = known_region(&name, phases, sink)?.file;
                (name, file, None)
            }
        };
        let region = name.value.0.clone();
        let advice = phases.regions.get(&region).map_or(Advice::Normal, |known| known.advice);
        if let Some(pages) = maps {
            phases.use_region(&name, file, advice, pages, name.span, sink)?;
        }
        let number =
            |key: &Option<Spanned<PageCount>>| key.as_ref().map(|key| u64::from(key.value));
        let (first, pages) = (number(self.first).unwrap_or(0), number(self.pages));
        let places = [self.first, self.pages].map(|key| key.as_ref().map(|key| key.span));
        let (place, grows) = (name.span, region.clone());
        // A later phase may enlarge the region.
        phases.later.push(Box::new(move |regions, sink| {
            let all = regions.get(&grows).map_or(0, |region| region.pages);
            if first.saturating_add(pages.unwrap_or(1)) > all {
                // Report the first page if it is itself beyond the end, else the number of pages.
                let [first_at, pages_at] = places;
                let span = first_at.filter(|_| first >= all).or(pages_at).or(first_at);
                let also = first_at.filter(|first| span != Some(*first));
                sink.push(SpannedProblem {
                    span: span.unwrap_or(place),
                    message: format!(
                        "the part extends beyond the end of the region `{}`",
                        clip(&grows)
                    ),
                    hint: Some(format!("the region has pages 0 to {}", all.saturating_sub(1))),
                    also: also.map(|span| (span, "the first page".into())),
                });
            }
        }));
        Some(RegionPart { region, file, maps, advice, first, pages })
    }
}

impl RegionPart {
    /// The stages that map the region, and one operation on the part: `op` is given the number of
    /// the region, the first page, and the number of pages.
    pub(super) fn stages(
        &self,
        planner: &mut Planner<'_>,
        op: impl Fn(u32, u64, u64) -> Op + Send + Sync + 'static,
    ) -> Vec<PhaseStage> {
        let region = match (self.maps, self.file) {
            (Some(pages), Some(file)) => {
                planner.file_region(file, &self.region, pages, self.advice)
            }
            (Some(pages), None) => planner.anon_region(&self.region, pages, self.advice),
            (None, _) => planner.known_region(&self.region),
        };
        let part = self.clone();
        let call = PhaseStage::run(move |state, _| {
            let pages = part.of(state.regions[region].pages);
            let op = op(state.number(region), pages.start, pages.end - pages.start);
            Box::new(Some(op).into_iter()).into()
        });
        self.maps.map(|_| PhaseStage::Map(region)).into_iter().chain([call]).collect()
    }

    /// The page range in a region of this size.
    pub fn of(&self, region_pages: u64) -> std::ops::Range<u64> {
        let first = self.first.min(region_pages);
        let pages = self.pages.unwrap_or(u64::MAX);
        first..first.saturating_add(pages).min(region_pages)
    }
}
