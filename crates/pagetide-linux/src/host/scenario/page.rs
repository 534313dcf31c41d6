//! Builder for the text of a scenario.
//!
//! Invariant: comments are separate lines or at the end of a line. They have no control characters,
//! which TOML forbids.

use crate::host::note::{shown, Escaped, Note};

/// Columns of a comment.
const WIDTH: usize = 100;

/// Lines of TOML, and notes about them.
#[derive(Debug)]
pub(super) struct Page {
    text: String,
    notes: Vec<Note>,
}

impl Page {
    pub(super) fn new() -> Page {
        Page { text: String::new(), notes: Vec::new() }
    }

    pub(super) fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    /// Adds a comment, wrapped.
    pub(super) fn comment(&mut self, comment: &str) {
        let mut line = String::from("#");
        for word in comment.split_whitespace() {
            let word: String = word.chars().map(|c| Escaped(c).to_string()).collect();
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
    pub(super) fn tell(&mut self, note: Note) {
        self.comment(&note.to_string());
        self.notes.push(note);
    }

    /// Number of bytes so far.
    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn finish(self) -> (String, Vec<Note>) {
        (self.text, self.notes)
    }
}

/// Quotes a TOML string.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text).replace('\\', "\\\\").replace('"', "\\\""))
}
