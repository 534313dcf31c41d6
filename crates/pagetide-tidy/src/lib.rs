//! The prose of a source file: its comments, its string literals, the paragraphs of a document.
//!
//! `tests/tree.rs` checks all prose of the repository against `words.txt`, together with line lengths, names of types
//! and the columns of Markdown tables.
//!
//! Invariant: code in backticks or fences is not prose. Comment lines that follow each other are one passage, so a
//! phrase is found across a line break.

mod rust;

pub use rust::{public_types, rust_passages};

/// A run of prose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Line on which it begins, from 1.
    pub line: usize,
    /// Its text on one line, without comment marks and without code in backticks.
    pub text: String,
}

impl Passage {
    /// A passage of raw lines, of which the first has this number.
    pub fn new(line: usize, raw: &str) -> Passage {
        Passage { line, text: without_code(raw) }
    }
}

/// Collapses white space and replaces each code span by a noun, so that the sentence around it stays one.
fn without_code(raw: &str) -> String {
    let words = raw.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut text = String::with_capacity(words.len());
    for (index, part) in words.split('`').enumerate() {
        text.push_str(if index % 2 == 0 { part } else { "CODE" });
    }
    text
}

/// Something that prose must not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    phrase: String,
    at_start: bool,
    /// What to write instead.
    pub instead: String,
}

impl Rule {
    /// Reads a list of rules, a line each: `PHRASE -> INSTEAD`. A phrase after `^` is meant at the start of a sentence
    /// that is no question. Empty lines and lines that begin with `#` are skipped.
    /// The error is the line that is no rule.
    pub fn list(text: &str) -> Result<Vec<Rule>, String> {
        let lines = text.lines().map(str::trim);
        let rule = |line: &str| {
            let (phrase, instead) = line.split_once("->").ok_or_else(|| line.to_owned())?;
            let phrase = phrase.trim().to_lowercase();
            let at_start = phrase.starts_with('^');
            let phrase = phrase.trim_start_matches('^').trim().to_owned();
            Ok(Rule { phrase, at_start, instead: instead.trim().to_owned() })
        };
        lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(rule).collect()
    }

    /// The phrase as the list has it.
    pub fn phrase(&self) -> String {
        format!("{}{}", if self.at_start { "^" } else { "" }, self.phrase)
    }

    /// Whether a passage breaks the rule.
    pub fn is_broken_by(&self, passage: &Passage) -> bool {
        let text = passage.text.to_lowercase();
        text.match_indices(&self.phrase).any(|(at, found)| {
            let before = text[..at].chars().next_back();
            let after = text[at + found.len()..].chars().next();
            let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            !is_word(before)
                && !is_word(after)
                && (!self.at_start || is_statement(&text[..at], &text[at..]))
        })
    }
}

/// Whether a sentence begins between the two texts, and does not end with a question mark.
fn is_statement(before: &str, after: &str) -> bool {
    let before = before.trim_end_matches([' ', '*', '"', '(', '-', '|']);
    let begins = before.is_empty() || before.ends_with(['.', '!', '?', ':']);
    let end = after.find(['.', '?', '!', '|']).map(|at| after.as_bytes()[at]);
    begins && end != Some(b'?')
}

/// The prose of a Markdown document. A table row is a passage of its own.
pub fn markdown_passages(text: &str) -> Vec<Passage> {
    let mut passages = Vec::new();
    let (mut paragraph, mut first) = (String::new(), 0);
    let mut fence: Option<&str> = None;
    let mut end = |paragraph: &mut String, first: usize| {
        if !paragraph.trim().is_empty() {
            passages.push(Passage::new(first, paragraph));
        }
        paragraph.clear();
    };
    for (index, line) in text.lines().enumerate() {
        let bare = line.trim_start();
        if let Some(mark) = fence {
            if bare.starts_with(mark) {
                fence = None;
            }
            continue;
        }
        let is_item = bare.starts_with(['|', '#', '*', '-', '>']) || bare.starts_with("<!--");
        let opens = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        if bare.is_empty() || is_item || opens.is_some() {
            end(&mut paragraph, first);
        }
        fence = opens;
        if bare.is_empty() || opens.is_some() || bare.starts_with("<!--") {
            continue;
        }
        if paragraph.is_empty() {
            first = index + 1;
        }
        // The mark of a heading stays: a heading is no sentence.
        paragraph.push_str(bare);
        paragraph.push(' ');
    }
    end(&mut paragraph, first);
    passages
}

/// The prose of a file in which `#` begins a comment: shell, TOML, YAML, make, Python with its docstrings.
pub fn hash_passages(text: &str) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    let mut docstring: Option<(usize, String)> = None;
    let mut comment: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        let bare = line.trim();
        if let Some((first, mut doc)) = docstring.take() {
            doc.push(' ');
            doc.push_str(bare.trim_end_matches("\"\"\""));
            if bare.ends_with("\"\"\"") || bare.is_empty() {
                passages.push(Passage::new(first, &doc));
                docstring = bare.is_empty().then(|| (index + 2, String::new()));
            } else {
                docstring = Some((first, doc));
            }
            continue;
        }
        if let Some(words) = bare.strip_prefix('#') {
            let (first, mut said) = comment.take().unwrap_or((index + 1, String::new()));
            said.push(' ');
            said.push_str(words.trim_start_matches('#'));
            comment = Some((first, said));
            continue;
        }
        passages.extend(comment.take().map(|(first, said)| Passage::new(first, &said)));
        if let Some((_, words)) = line.split_once(" # ") {
            passages.push(Passage::new(index + 1, words));
        }
        let doc = bare.strip_prefix("r\"\"\"").or_else(|| bare.strip_prefix("\"\"\""));
        if let Some(doc) = doc {
            match doc.strip_suffix("\"\"\"") {
                Some(whole) => passages.push(Passage::new(index + 1, whole)),
                None => docstring = Some((index + 1, doc.to_owned())),
            }
        }
    }
    passages.extend(comment.map(|(first, said)| Passage::new(first, &said)));
    passages
}

/// Rows of Markdown tables that have another number of cells than the first row: line, cells, cells of the first row.
pub fn uneven_rows(text: &str) -> Vec<(usize, usize, usize)> {
    let mut uneven = Vec::new();
    let mut width = None;
    let mut in_fence = false;
    for (index, line) in text.lines().enumerate() {
        let row = line.trim();
        if row.starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence || !row.starts_with('|') {
            width = None;
            continue;
        }
        let cells = without_code(&row.replace("\\|", "")).matches('|').count() - 1;
        let wanted = *width.get_or_insert(cells);
        if cells != wanted {
            uneven.push((index + 1, cells, wanted));
        }
    }
    uneven
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(passages: Vec<Passage>) -> Vec<(usize, String)> {
        passages.into_iter().map(|passage| (passage.line, passage.text)).collect()
    }

    #[test]
    fn markdown_has_prose_outside_fences() {
        let text = "# Title\n\nOne `x`\nline.\n```\ncode\n```\n* item\n  more\n| a | b |\n";
        let found = texts(markdown_passages(text));
        let wanted = [(1, "# Title"), (3, "One CODE line."), (8, "* item more"), (10, "| a | b |")];
        assert_eq!(found, wanted.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn comments_and_docstrings_are_prose() {
        let text =
            "#!/bin/sh\n# one\n# two\nx = 1 # three\ndef f():\n    \"\"\"Four\n    five.\"\"\"\n";
        let found = texts(hash_passages(text));
        let wanted = [(1, "!/bin/sh one two"), (4, "three"), (6, "Four five.")];
        assert_eq!(found, wanted.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn rules_find_whole_words_and_sentence_starts() {
        let rules = Rule::list("# words\nfor want of -> without\n^who -> the noun\n").unwrap();
        let broken = |text: &str| {
            let passage = Passage::new(1, text);
            let broken = rules.iter().filter(|rule| rule.is_broken_by(&passage));
            broken.map(Rule::phrase).collect::<Vec<_>>()
        };
        let none: Vec<String> = Vec::new();
        assert_eq!(broken("Killed for want\nof memory."), ["for want of"]);
        assert_eq!(broken("before wants of"), none);
        assert_eq!(broken("It ends. Who climbs, knows."), ["^who"]);
        assert_eq!(broken("The task who waits. Whom? Who knows?"), none);
        assert_eq!(broken("# Who uses it"), none);
        assert_eq!(broken("`for want of`"), none);
        assert!(Rule::list("no arrow").is_err());
    }

    #[test]
    fn a_row_with_another_number_of_cells_is_found() {
        let even = "| a | b |\n|---|---|\n| `x|y` | 1 \\| 2 |\n";
        assert_eq!(uneven_rows(even), []);
        assert_eq!(uneven_rows("| a | b |\n|---|---|---|\n\n| c |\n"), [(2, 3, 2)]);
    }
}
