//! The loader's state: the source texts (file and command line), and the problems found in them.

use super::span::{ProblemSink, SourceSpan, SpannedProblem, PROBLEMS_MAX};
use super::tree::{self, TomlNode};
use crate::diagnostic::{Diagnostic, Diagnostics, SourceText};

pub const SCENARIO_BYTES_MAX: u64 = 256 << 10;

pub(super) struct Loader {
    pub(super) sources: Vec<SourceText>,
    pub(super) problems: Vec<SpannedProblem>,
    pub(super) omitted: usize,
}

impl Loader {
    pub(super) fn new(name: &str, text: &str) -> Self {
        let source = SourceText { path: name.to_owned(), text: text.to_owned() };
        Self { sources: vec![source], problems: Vec::new(), omitted: 0 }
    }

    /// Adds an argument of the command line as a source; returns the span of its whole text.
    pub(super) fn option(&mut self, name: &str, text: &str) -> SourceSpan {
        let source = u16::try_from(self.sources.len()).expect("sources are bounded");
        self.sources.push(SourceText { path: name.to_owned(), text: text.to_owned() });
        SourceSpan { source, start: 0, end: u32::try_from(text.len()).unwrap_or(u32::MAX) }
    }

    pub(super) fn absorb(&mut self, sink: ProblemSink) {
        let (problems, omitted) = sink.into_parts();
        self.problems.extend(problems);
        self.omitted += omitted;
    }

    pub(super) fn diagnostics(mut self) -> Diagnostics {
        self.problems.sort();
        self.problems.dedup();
        self.omitted += self.problems.len().saturating_sub(PROBLEMS_MAX);
        self.problems.truncate(PROBLEMS_MAX);
        // If the text is not TOML, the problems have no keys.
        let root = tree::parse(&self.sources[0].text, 0, &mut ProblemSink::default());
        let list = self.problems.iter().map(|problem| self.diagnostic(problem, root.as_ref()));
        let list = list.collect();
        Diagnostics::new(list, self.omitted)
    }

    fn diagnostic(&self, problem: &SpannedProblem, root: Option<&TomlNode>) -> Diagnostic {
        let range = |span: SourceSpan| span.start as usize..span.end as usize;
        let source = &self.sources[usize::from(problem.span.source)];
        let (message, hint) = (problem.message.clone(), problem.hint.clone());
        let mut diagnostic = Diagnostic::new(source, range(problem.span), message, hint);
        diagnostic.key = match source.text.split_once('=') {
            Some((key, _)) if source.path == "--set" => Some(key.to_owned()),
            _ => root.map(|root| root.key_of(problem.span)).filter(|key| !key.is_empty()),
        };
        match &problem.also {
            // The report can show a second place only if it is in the same source.
            Some((span, label)) if span.source == problem.span.source => {
                diagnostic.with_also(source, range(*span), label.clone())
            }
            _ => diagnostic,
        }
    }
}
