//! The loader's state: the source texts (files and command line), and the problems found in them.

use super::span::{ProblemSink, SourceSpan, SpannedProblem, PROBLEMS_MAX};
use super::tree::{self, TomlNode};
use crate::diagnostic::{Diagnostic, Diagnostics, SourceText};
use std::path::{Path, PathBuf};

pub const SCENARIO_BYTES_MAX: u64 = 256 << 10;

pub(super) struct Loader {
    /// The scenario file, its bases from the nearest on, and the arguments of the command line.
    pub(super) sources: Vec<SourceText>,
    /// The paths of the bases.
    pub(super) bases: Vec<PathBuf>,
    /// The directories of the scenario file and of its bases.
    pub(super) directories: Vec<PathBuf>,
    pub(super) problems: Vec<SpannedProblem>,
    pub(super) omitted: usize,
}

impl Loader {
    pub(super) fn new(name: &str, text: &str, directory: &Path) -> Self {
        let source = SourceText { path: name.to_owned(), text: text.to_owned() };
        Self {
            sources: vec![source],
            bases: Vec::new(),
            directories: vec![directory.to_owned()],
            problems: Vec::new(),
            omitted: 0,
        }
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
        // If a text is not TOML, the problems in it have no keys.
        let files = self.sources.iter().take(self.directories.len()).zip(0..);
        let roots = files.filter_map(|(file, number)| {
            tree::parse(&file.text, number, &mut ProblemSink::default())
        });
        let roots: Vec<TomlNode> = roots.collect();
        let list = self.problems.iter().map(|problem| self.diagnostic(problem, &roots)).collect();
        Diagnostics::new(list, self.omitted)
    }

    fn diagnostic(&self, problem: &SpannedProblem, roots: &[TomlNode]) -> Diagnostic {
        let range = |span: SourceSpan| span.start as usize..span.end as usize;
        let source_of = |span: SourceSpan| &self.sources[usize::from(span.source)];
        let source = source_of(problem.span);
        let (message, hint) = (problem.message.clone(), problem.hint.clone());
        let mut diagnostic = Diagnostic::new(source, range(problem.span), message, hint);
        diagnostic.key = match source.text.split_once('=') {
            Some((key, _)) if source.path == "--set" => Some(key.to_owned()),
            _ => roots.iter().map(|root| root.key_of(problem.span)).find(|key| !key.is_empty()),
        };
        match &problem.also {
            Some((span, label)) => {
                diagnostic.with_also(source_of(*span), range(*span), label.clone())
            }
            None => diagnostic,
        }
    }
}
