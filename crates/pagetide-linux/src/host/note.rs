//! Notes about text that was not understood, or that a scenario cannot express.
//!
//! Invariant: a note is one line of plain text. Text from the system's files is escaped and
//! truncated, so that it cannot affect a terminal or break out of a TOML comment.

use std::fmt;

/// Maximum number of notes for a file; further ones are only counted.
const NOTES_MAX: usize = 12;
/// Maximum number of characters shown from an offending text.
const SHOWN_MAX: usize = 80;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportNote {
    /// The file, by its path on the system (`/proc/zoneinfo`); empty for the whole system.
    pub place: String,
    /// Line number, from 1.
    pub line: Option<usize>,
    pub message: String,
    /// The offending text, escaped and truncated; may be empty.
    pub text: String,
}

impl ImportNote {
    /// A note about a whole file, or about the system if `place` is empty.
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> ImportNote {
        ImportNote { place: place.into(), line: None, message: message.into(), text: String::new() }
    }

    /// A copy of the note for another file.
    #[must_use]
    pub fn in_file(self, place: &str) -> ImportNote {
        ImportNote { place: place.to_owned(), ..self }
    }
}

impl fmt::Display for ImportNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.place.clone();
        if let Some(line) = self.line {
            text += &format!(":{line}");
        }
        if !text.is_empty() {
            text += ": ";
        }
        text += &self.message;
        if !self.text.is_empty() {
            text += &format!(": `{}`", self.text);
        }
        text.chars().try_for_each(|c| EscapedChar(c).fmt(f))
    }
}

#[derive(Debug)]
pub(crate) struct FileNotes {
    place: &'static str,
    list: Vec<ImportNote>,
    omitted: usize,
}

impl FileNotes {
    pub(crate) fn new(place: &'static str) -> FileNotes {
        FileNotes { place, list: Vec::new(), omitted: 0 }
    }

    /// Adds a note about line `index`, counted from 0.
    pub(crate) fn line(&mut self, index: usize, message: &str, text: &str) {
        let line = Some(index.saturating_add(1));
        self.push(ImportNote { line, text: shown(text), ..ImportNote::new(self.place, message) });
    }

    /// The text without a last line that has no end, which can be cut in the middle of a number. It
    /// stays if `is_whole` says that nothing is missing, as of text without its last newline.
    pub(crate) fn without_cut<'t>(
        &mut self,
        text: &'t str,
        is_whole: impl Fn(&str) -> bool,
    ) -> &'t str {
        let start = text.rfind('\n').map_or(0, |end| end + 1);
        let (before, last) = text.split_at(start);
        if last.trim().is_empty() {
            return text;
        }
        let index = before.lines().count();
        if is_whole(last) {
            self.line(index, "the last line has no end: is the file truncated?", last);
            return text;
        }
        self.line(index, "left out: the file is truncated", last);
        before
    }

    /// Adds a note about the whole file.
    pub(crate) fn file(&mut self, message: impl Into<String>) {
        self.push(ImportNote::new(self.place, message));
    }

    fn push(&mut self, note: ImportNote) {
        if self.list.len() < NOTES_MAX {
            self.list.push(note);
        } else {
            self.omitted += 1;
        }
    }

    pub(crate) fn finish(mut self) -> Vec<ImportNote> {
        if self.omitted > 0 {
            let message = format!("{} more lines were not understood", self.omitted);
            self.list.push(ImportNote::new(self.place, message));
        }
        self.list
    }
}

/// `text` trimmed, on one line, truncated.
pub(crate) fn shown(text: &str) -> String {
    let text = text.trim();
    let mut out: String =
        text.chars().take(SHOWN_MAX).map(EscapedChar).map(|c| c.to_string()).collect();
    if text.chars().nth(SHOWN_MAX).is_some() {
        out += "...";
    }
    out
}

/// A character, escaped if it is not printable.
pub(crate) struct EscapedChar(pub(crate) char);

impl fmt::Display for EscapedChar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Control characters, and those that change the writing direction.
        match self.0 {
            '\u{200e}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                write!(f, "{}", self.0.escape_unicode())
            }
            c if c.is_control() => write!(f, "{}", c.escape_unicode()),
            c => write!(f, "{c}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_line() {
        let mut notes = FileNotes::new("/proc/zoneinfo");
        notes.line(2, "not a count", " a\nb\u{1b}[31m ");
        let list = notes.finish();
        assert_eq!(list[0].to_string(), "/proc/zoneinfo:3: not a count: `a\\u{a}b\\u{1b}[31m`");
        assert_eq!(ImportNote::new("", "x").to_string(), "x");
        assert_eq!(ImportNote::new("a", "x").in_file("b").to_string(), "b: x");
        assert_eq!(shown(&"x".repeat(200)), format!("{}...", "x".repeat(80)));
    }

    #[test]
    fn many_notes_are_counted() {
        let mut notes = FileNotes::new("/proc/vmstat");
        (0..100).for_each(|line| notes.line(line, "not a count", "x"));
        let list = notes.finish();
        assert_eq!(list.len(), NOTES_MAX + 1);
        assert_eq!(list[NOTES_MAX].message, format!("{} more lines were not understood", 100 - 12));
    }
}
