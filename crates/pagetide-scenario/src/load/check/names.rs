//! Names in a scenario: every definition must be unique, and every use must be resolved.

pub(super) use crate::load::decode::require_key;
use crate::load::decode::NameKey;
use crate::load::span::{clip, list_names, ProblemSink, SourceSpan, Spanned, SpannedProblem};
use std::collections::BTreeMap;

/// The names of one kind, with their indices.
#[derive(Debug)]
pub(crate) struct NameIndex<'a> {
    what: &'static str,
    index: BTreeMap<&'a str, (usize, SourceSpan)>,
    /// In the order of the text, for hints.
    order: Vec<&'a str>,
    /// Some names could not be read, so an unknown name is not reported.
    pub(super) is_incomplete: bool,
}

impl<'a> NameIndex<'a> {
    pub(super) fn new(what: &'static str) -> Self {
        Self { what, index: BTreeMap::new(), order: Vec::new(), is_incomplete: false }
    }

    /// Adds a name; reports a duplicate.
    pub(super) fn insert(
        &mut self,
        name: &'a str,
        span: SourceSpan,
        index: usize,
        sink: &mut ProblemSink,
    ) {
        if let Some((_, first)) = self.index.get(name) {
            sink.push(SpannedProblem {
                span,
                message: format!("the {} `{}` is defined twice", self.what, clip(name)),
                hint: Some("give one of them another name".into()),
                also: Some((*first, "first defined here".into())),
            });
            return;
        }
        self.index.insert(name, (index, span));
        self.order.push(name);
    }

    pub(super) fn get(&self, name: &str) -> Option<usize> {
        self.index.get(name).map(|(index, _)| *index)
    }

    /// The index of a name; reports an unknown name.
    pub(crate) fn find(&self, name: &Spanned<NameKey>, sink: &mut ProblemSink) -> Option<usize> {
        self.find_text(&name.value.0, name.span, sink)
    }

    /// Like [`Self::find`], for any text.
    pub(super) fn find_text(
        &self,
        name: &str,
        span: SourceSpan,
        sink: &mut ProblemSink,
    ) -> Option<usize> {
        let found = self.get(name);
        if found.is_none() && !self.is_incomplete {
            let hint = match sink.suggest(name, self.order.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if self.order.is_empty() => format!("the scenario has no {}", self.what),
                None => format!("known: {}", list_names(self.order.iter().copied())),
            };
            sink.hinted(span, format!("there is no {} `{}`", self.what, clip(name)), hint);
        }
        found
    }

    /// Position of the definition of a name.
    pub(super) fn span(&self, name: &str) -> Option<SourceSpan> {
        self.index.get(name).map(|(_, span)| *span)
    }
}
