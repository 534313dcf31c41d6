//! Positions in the source texts: the scenario file, its bases, and the arguments of the command
//! line.

use super::named_files::NamedFiles;
use super::plugins::PluginNames;
use crate::names::unmodelled::UnmodelledFeature;
use pagetide_core::units::page_size::PageSize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A byte range of one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceSpan {
    /// Index of the source; 0 is the scenario file.
    pub(crate) source: u16,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl SourceSpan {
    pub(crate) fn contains(self, inner: SourceSpan) -> bool {
        self.source == inner.source && self.start <= inner.start && inner.end <= self.end
    }
}

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) span: SourceSpan,
}

/// A value with a position.
pub(crate) trait HasSpan {
    type Value;
}

impl<T> HasSpan for Spanned<T> {
    type Value = T;
}

/// A mistake at a position.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SpannedProblem {
    pub(crate) span: SourceSpan,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// A second position that matters, and its label.
    pub(crate) also: Option<(SourceSpan, String)>,
}

/// Collects problems up to [`PROBLEMS_MAX`]; it only counts the rest.
#[derive(Debug, Default)]
pub(crate) struct ProblemSink {
    /// The machine's page size, which gives `pages` its value. Known before anything else is read.
    pub(crate) page_size: PageSize,
    /// Names of registered policies.
    pub(crate) plugins: PluginNames,
    pub(crate) files: NamedFiles,
    /// The directory that relative paths in a file start at, by the file's number as a source. Paths
    /// of the command line start at the directory of the scenario file.
    pub(crate) directories: Vec<PathBuf>,
    problems: Vec<SpannedProblem>,
    omitted: usize,
}

pub(crate) const PROBLEMS_MAX: usize = 100;

impl ProblemSink {
    pub(crate) fn push(&mut self, problem: SpannedProblem) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        } else {
            self.omitted += 1;
        }
    }

    pub(crate) fn error(&mut self, span: SourceSpan, message: impl Into<String>) {
        self.push(SpannedProblem { span, message: message.into(), hint: None, also: None });
    }

    pub(crate) fn hinted(
        &mut self,
        span: SourceSpan,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let hint = Some(hint.into());
        self.push(SpannedProblem { span, message: message.into(), hint, also: None });
    }

    /// Reports a name that is not known here. For a feature of Linux that is not modelled, its own
    /// words replace `hint`.
    pub(crate) fn unknown(
        &mut self,
        span: SourceSpan,
        message: impl Into<String>,
        name: &str,
        hint: impl Into<String>,
    ) {
        match UnmodelledFeature::named(name) {
            Some(feature) => self.hinted(span, message, feature.hint(&clip(name))),
            None => self.hinted(span, message, hint),
        }
    }

    /// The path that `path` names.
    pub(crate) fn full_path(&self, path: &Spanned<String>) -> PathBuf {
        let of = self.directories.get(usize::from(path.span.source));
        let directory = of.or(self.directories.first()).map_or(Path::new(""), PathBuf::as_path);
        directory.join(&path.value)
    }

    /// The path to read `path` from.
    pub(crate) fn path(&self, path: &Spanned<String>) -> PathBuf {
        self.files.find(self.full_path(path))
    }

    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= PROBLEMS_MAX
    }

    pub(crate) fn into_parts(self) -> (Vec<SpannedProblem>, usize) {
        (self.problems, self.omitted)
    }

    /// The known name that was probably meant. Does no work once the sink is full.
    pub(crate) fn suggest<'a>(
        &self,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        if self.is_full() {
            return None;
        }
        crate::names::near::nearest(name, known)
    }
}

/// `a`, `b` and `c`: names of a scenario for a hint, cut if there are many.
pub(crate) fn list_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    list(names, 12)
}

/// All names of a closed set, for a hint.
pub(crate) fn list_all<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    list(names, usize::MAX)
}

fn list<'a>(names: impl IntoIterator<Item = &'a str>, most: usize) -> String {
    let mut seen = BTreeSet::new();
    let mut names: Vec<String> = names
        .into_iter()
        .filter(|name| seen.insert(*name))
        .take(most.saturating_add(1))
        .map(|name| format!("`{}`", clip(name)))
        .collect();
    if names.len() > most {
        names.truncate(most);
        return format!("{}, ...", names.join(", "));
    }
    match names.pop() {
        Some(last) if names.is_empty() => last,
        Some(last) => format!("{} and {last}", names.join(", ")),
        None => "none".to_owned(),
    }
}

/// Shortens a text for a message and removes control characters.
pub(crate) fn clip(text: &str) -> String {
    const TEXT_MAX: usize = 60;
    let mut clipped: String =
        text.chars().take(TEXT_MAX).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(TEXT_MAX).is_some() {
        clipped.push_str("...");
    }
    clipped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_forgive_small_slips() {
        let sink = ProblemSink::default();
        let known = ["memory", "vm.swappiness", "read_latency", "loops"];
        let suggest = |name| sink.suggest(name, known);
        assert_eq!(suggest("mempry"), Some("memory"));
        assert_eq!(suggest("vm.swapiness"), Some("vm.swappiness"));
        assert_eq!(suggest("swappiness"), Some("vm.swappiness"));
        assert_eq!(
            sink.suggest("min_free_kbytes", ["vm.min_free_kbytes"]),
            Some("vm.min_free_kbytes")
        );
        assert_eq!(suggest("read-latency"), Some("read_latency"));
        assert_eq!(suggest("Loops"), Some("loops"));
        assert_eq!(sink.suggest("g", ["f"]), None);
        assert_eq!(sink.suggest("G", ["g"]), Some("g"));
        assert_eq!(suggest("banana"), None);
        assert_eq!(suggest(""), None);
        assert_eq!(suggest(&"x".repeat(1000)), None);
    }

    #[test]
    fn lists_are_cut() {
        assert_eq!(list_names([]), "none");
        assert_eq!(list_names(["a"]), "`a`");
        assert_eq!(list_names(["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!(list_names(["a", "a", "b"]), "`a` and `b`");
        let many: Vec<String> = (0..100).map(|i| i.to_string()).collect();
        assert!(list_names(many.iter().map(String::as_str)).ends_with(", ..."));
        assert!(list_all(many.iter().map(String::as_str)).ends_with("`98` and `99`"));
    }

    #[test]
    fn the_sink_is_bounded() {
        let mut sink = ProblemSink::default();
        for _ in 0..PROBLEMS_MAX + 5 {
            sink.error(SourceSpan::default(), "x");
        }
        assert!(sink.is_full());
        assert_eq!(sink.suggest("mempry", ["memory"]), None);
        let (problems, omitted) = sink.into_parts();
        assert_eq!((problems.len(), omitted), (PROBLEMS_MAX, 5));
    }
}
