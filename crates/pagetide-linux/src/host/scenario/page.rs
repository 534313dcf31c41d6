//! Builder for the text of a scenario.
//!
//! Invariant: comments are separate lines or at the end of a line. They have no control characters,
//! which TOML forbids.

use crate::host::note::{shown, EscapedChar, ImportNote};
use crate::host::number::show_pages;
use crate::host::report::PLACE;
use pagetide_core::units::page_size::PageSize;

/// Columns of a comment.
const WIDTH: usize = 100;

/// Lines of TOML, and notes about them.
#[derive(Debug)]
pub(super) struct ScenarioText {
    /// Size of the system's pages.
    pub size: PageSize,
    /// Whether the system is that of a report, so that no file was read.
    is_of_report: bool,
    text: String,
    notes: Vec<ImportNote>,
}

impl ScenarioText {
    pub(super) fn new(size: PageSize, is_of_report: bool) -> ScenarioText {
        ScenarioText { size, is_of_report, text: String::new(), notes: Vec::new() }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    /// Adds a comment, wrapped.
    pub(super) fn comment(&mut self, comment: &str) {
        let mut line = String::from("#");
        for word in comment.split_whitespace() {
            let word: String = word.chars().map(|c| EscapedChar(c).to_string()).collect();
            if line.len() > 1 && line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(&line);
                line = String::from("#");
            }
            line.push(' ');
            line += &word;
        }
        self.line(&line);
    }

    /// Adds a comment that is also a note.
    pub(super) fn comment_note(&mut self, mut note: ImportNote) {
        if self.is_of_report && note.place.starts_with('/') {
            PLACE.clone_into(&mut note.place);
        }
        self.comment(&note.to_string());
        self.notes.push(note);
    }

    /// Formats an amount of memory.
    pub(super) fn show(&self, pages: u64) -> String {
        show_pages(pages, self.size)
    }

    /// Number of bytes so far.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn finish(self) -> (String, Vec<ImportNote>) {
        (self.text, self.notes)
    }
}

/// Quotes a TOML string.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text).replace('\\', "\\\\").replace('"', "\\\""))
}
