//! `workload = "interleave"` and `workload = "discard"`, which make holes in physical memory: a file
//! that is long enough, a region that is there.

use super::names::need;
use super::workload::{region_name, Phases};
use crate::load::decode::Name;
use crate::load::raw;
use crate::load::span::{clip, list_names, At, Problem, Sink, Span};
use crate::load::units::show_size;
use crate::model::{Advice, Workload};

/// What a discard needs of its region, which may still grow in a later phase.
#[derive(Debug)]
pub(super) struct Discarded {
    region: String,
    first: u64,
    span: Span,
}

impl Phases<'_, '_> {
    pub(super) fn interleave(
        &mut self,
        keys: &raw::Interleave,
        sink: &mut Sink,
    ) -> Option<Workload> {
        let place = (keys.at, keys.bad.as_slice());
        let pages = need(&keys.pages, "pages", place, "workload interleave", "16384", sink);
        let file = self.file(&keys.file, (keys.at, &keys.bad), "interleave", sink)?;
        let name = keys.file.as_ref()?;
        let whole = self.not_empty(file, name, sink)?;
        let pages = pages?;
        let (span, pages) = (pages.span, pages.value.0 as u64);
        let whole_pages = sink.page_size.pages_for(whole);
        if pages > whole_pages {
            sink.push(Problem {
                span,
                message: format!("{pages} pages of a file of {}", show_size(whole)),
                hint: Some(format!("make the file larger, or pages at most {whole_pages}")),
                also: self.files.span(file).map(|span| (span, "the file".into())),
            });
            return None;
        }
        let region = region_name(&keys.region, span);
        let advice = self.advice_of(&region.value.0).unwrap_or(Advice::Normal);
        self.use_region(&region, None, advice, pages, span, sink)?;
        // A mapping of this phase alone: no other has its name.
        let mapping = format!("{}#{}", name.value.0, self.regions.by_name.len());
        let mapping = At { value: Name(mapping), span: name.span };
        self.use_region(&mapping, Some(file), Advice::Random, pages, span, sink)?;
        Some(Workload::Interleave { region: region.value.0, pages, file })
    }

    pub(super) fn discard(&mut self, keys: &raw::Discard, sink: &mut Sink) -> Option<Workload> {
        if keys.bad.contains(&"region") {
            return None;
        }
        let name = region_name(&keys.region, keys.at);
        let region = name.value.0;
        let shown = clip(&region);
        let Some(known) = self.regions.by_name.get(&region) else {
            let is_own = |name: &&str| !name.contains('#');
            let names = self.regions.by_name.keys().map(String::as_str).filter(is_own);
            let hint = match sink.suggest(&region, names.clone()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.clone().next().is_none() => {
                    "a phase before it must map one: workload = \"touch\", for example".to_owned()
                }
                None => format!("the phases before it have {}", list_names(names)),
            };
            let message = format!("no phase before this one maps a region `{shown}`");
            sink.hinted(name.span, message, hint);
            return None;
        };
        if known.file.is_some() {
            sink.push(Problem {
                span: name.span,
                message: format!("the region `{shown}` is a file's"),
                hint: Some("only anonymous memory is given back: name a region of touch".into()),
                also: Some((known.span, "first used here".into())),
            });
            return None;
        }
        let first = keys.first.as_ref().map_or(0, |first| first.value.0 as u64);
        let span = keys.first.as_ref().map_or(name.span, |first| first.span);
        self.regions.discarded.push(Discarded { region: region.clone(), first, span });
        let every = keys.every.as_ref().map_or(1, |every| every.value.0 as u64);
        Some(Workload::Discard { region, first, every })
    }

    /// Reports discards that begin beyond the end of their region, now that all phases are known.
    pub(super) fn check_discards(&self, sink: &mut Sink) {
        for Discarded { region, first, span } in &self.regions.discarded {
            let pages = self.regions.by_name.get(region).map_or(0, |region| region.pages);
            if *first >= pages {
                let message = format!("the region `{}` has no page {first}", clip(region));
                sink.hinted(*span, message, format!("its pages are 0 to {}", pages - 1));
            }
        }
    }
}
