//! Mistakes in a scenario, for people: file, line, column, the offending text, a hint.

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde::Serialize;
use std::fmt;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The path of the scenario file as given, of its base, or the option of the command line.
    pub path: String,
    /// Line, counted from 1; 0 for the whole file.
    pub line: usize,
    /// Column in characters, counted from 1; 0 for the whole file.
    pub column: usize,
    /// Byte range in the source.
    pub span: Range<usize>,
    /// The offending text, up to the end of its first line.
    pub text: String,
    /// Path of the key with the mistake, as in `--set`: `task.main.size`. For a mistake in `--set`,
    /// its key. `None` if the mistake is not in the scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The mistake in one sentence.
    pub message: String,
    /// How to mend it.
    pub hint: Option<String>,
    /// A second position that matters, for example the first definition of a name.
    pub also: Option<RelatedSpan>,
    /// The line, for rendering.
    #[serde(skip)]
    source_line: SourceLine,
}

/// A second position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RelatedSpan {
    /// As [`Diagnostic::path`].
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    pub label: String,
    #[serde(skip)]
    source_line: SourceLine,
}

/// A line of a source with a marked range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct SourceLine {
    text: String,
    mark: Range<usize>,
}

/// A text with mistakes.
#[derive(Clone, Debug)]
pub(crate) struct SourceText {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Diagnostic {
    /// A mistake in `source` at the byte range `span`.
    pub(crate) fn new(
        source: &SourceText,
        span: Range<usize>,
        message: String,
        hint: Option<String>,
    ) -> Self {
        let place = SourcePosition::new(&source.text, span.clone());
        Self {
            path: source.path.clone(),
            line: place.line,
            column: place.column,
            span,
            text: place.source_line.text[place.source_line.mark.clone()].to_owned(),
            key: None,
            message,
            hint,
            also: None,
            source_line: place.source_line,
        }
    }

    /// A mistake that has no position in a text, for example a missing file.
    pub(crate) fn of_file(path: String, message: String, hint: Option<String>) -> Self {
        Self {
            path,
            line: 0,
            column: 0,
            span: 0..0,
            text: String::new(),
            key: None,
            message,
            hint,
            also: None,
            source_line: SourceLine::default(),
        }
    }

    pub(crate) fn with_also(
        mut self,
        source: &SourceText,
        span: Range<usize>,
        label: String,
    ) -> Self {
        let SourcePosition { line, column, source_line } = SourcePosition::new(&source.text, span);
        let path = source.path.clone();
        self.also = Some(RelatedSpan { path, line, column, label, source_line });
        self
    }

    fn render(&self, renderer: &Renderer) -> String {
        let title = Level::ERROR.primary_title(printable(&self.message));
        let mut group = match self.line {
            0 => title.element(Origin::path(printable(&self.path))),
            line => title.element(snippet(&self.path, line, &self.source_line, None)),
        };
        if let Some(also) = &self.also {
            let label = Some(also.label.as_str());
            group = group.element(snippet(&also.path, also.line, &also.source_line, label));
        }
        if let Some(hint) = &self.hint {
            group = group.element(Level::HELP.with_name("hint").message(printable(hint)));
        }
        let report: &[Group<'_>] = &[group];
        renderer.render(report)
    }
}

fn snippet<'a>(
    path: &str,
    line: usize,
    source_line: &'a SourceLine,
    label: Option<&'a str>,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let kind = match label {
        Some(_) => AnnotationKind::Context,
        None => AnnotationKind::Primary,
    };
    Snippet::source(source_line.text.as_str())
        .line_start(line)
        .path(printable(path))
        .annotation(kind.span(source_line.mark.clone()).label(label))
}

/// Removes characters that would disturb a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

struct SourcePosition {
    line: usize,
    column: usize,
    source_line: SourceLine,
}

impl SourcePosition {
    fn new(text: &str, span: Range<usize>) -> Self {
        let start = floor_char_boundary(text, span.start);
        let end = floor_char_boundary(text, span.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let line = text[..line_start].matches('\n').count() + 1;
        let column = text[line_start..start].chars().count() + 1;
        let source_text = text[line_start..line_end].trim_end_matches('\r').to_owned();
        let mark_start = (start - line_start).min(source_text.len());
        let mark_end = (end - line_start).min(source_text.len()).max(mark_start);
        let source_line = SourceLine { text: source_text, mark: mark_start..mark_end };
        Self { line, column, source_line }
    }
}

fn floor_char_boundary(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// All mistakes found in one pass, in the order of the text; never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    omitted: usize,
}

impl Diagnostics {
    pub(crate) fn new(list: Vec<Diagnostic>, omitted: usize) -> Self {
        assert!(!list.is_empty());
        Self { list, omitted }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// Adds the mistakes of another version of the scenario that are not listed yet.
    pub fn join(&mut self, other: Diagnostics) {
        for diagnostic in other.list {
            if !self.list.contains(&diagnostic) {
                self.list.push(diagnostic);
            }
        }
    }

    /// Number of mistakes, including those that are not listed.
    pub fn count(&self) -> usize {
        self.list.len() + self.omitted
    }

    /// Renders the mistakes with a line of source for each.
    pub fn render(&self, style: Style) -> String {
        const WIDTH: usize = 100;
        let renderer = match style {
            Style::Plain => Renderer::plain(),
            Style::Coloured => Renderer::styled(),
        };
        let renderer = renderer.term_width(WIDTH);
        let mut text = String::new();
        for diagnostic in &self.list {
            text.push_str(diagnostic.render(&renderer).trim_end());
            text.push_str("\n\n");
        }
        let errors = if self.count() == 1 { "error" } else { "errors" };
        text.push_str(&format!("{} {errors} in {}", self.count(), printable(&self.list[0].path)));
        if self.omitted > 0 {
            text.push_str(&format!(" ({} not shown)", self.omitted));
        }
        text.push('\n');
        text
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    /// With terminal colours.
    Coloured,
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Style::Plain))
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, span: Range<usize>) -> Diagnostic {
        let source = SourceText { path: "a.toml".into(), text: text.into() };
        Diagnostic::new(&source, span, "message".into(), Some("do this".into()))
    }

    #[test]
    fn places_are_counted_in_lines_and_characters() {
        let text = "a = 1\r\né = \"ü\" # x\nlast";
        let second = at(text, 13..16);
        assert_eq!((second.line, second.column, second.text.as_str()), (2, 6, "ü\""));
        let last = at(text, 22..999);
        assert_eq!((last.line, last.column, last.text.as_str()), (3, 2, "ast"));
        let end = at(text, 5..6);
        assert_eq!((end.line, end.column, end.text.as_str()), (1, 6, ""));
        let over_lines = at(text, 0..20);
        assert_eq!(over_lines.text, "a = 1");
    }

    #[test]
    fn rendering_shows_place_text_and_hint() {
        let diagnostics = Diagnostics::new(vec![at("x = 1\nmempry = 2\n", 6..12)], 0);
        let text = diagnostics.to_string();
        for wanted in ["error: message", "a.toml:2:1", "mempry = 2", "^^^^^^", "hint: do this"] {
            assert!(text.contains(wanted), "{wanted} not in\n{text}");
        }
        assert!(!text.contains('\u{1b}'));
        assert!(diagnostics.render(Style::Coloured).contains('\u{1b}'));
    }

    #[test]
    fn odd_texts_render() {
        for text in ["", "\n", "\t\u{0}\u{1b}[31m", "\u{202e}abc", "a\r", "\u{1f600}\u{300}"] {
            for start in 0..=text.len() + 1 {
                for end in start..=text.len() + 1 {
                    let diagnostics = Diagnostics::new(vec![at(text, start..end)], 3);
                    let rendered = diagnostics.to_string();
                    assert!(rendered.contains("message"));
                    assert!(!rendered.contains('\u{1b}'), "{rendered:?}");
                }
            }
        }
        let long = "x".repeat(100_000);
        assert!(Diagnostics::new(vec![at(&long, 50_000..50_010)], 0).to_string().len() < 2000);
    }
}
