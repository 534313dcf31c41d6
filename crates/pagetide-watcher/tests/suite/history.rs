//! The files of `tests/histories`: lines of words. The first word is the kind of the line; lines
//! that begin with `#` say where the history is from.

use std::fs;
use std::path::Path;

pub struct HistoryFile {
    pub name: String,
    lines: Vec<Vec<String>>,
}

impl HistoryFile {
    /// The lines of a kind, without the kind.
    pub fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a [String]> {
        self.lines.iter().filter(move |line| line[0] == kind).map(|line| &line[1..])
    }

    /// All words of the lines of a kind, as numbers.
    pub fn numbers(&self, kind: &str) -> Vec<u64> {
        self.of(kind).flatten().map(|word| number(word)).collect()
    }
}

pub fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("`{word}` is no number"))
}

/// The value of `name=value` in a line.
pub fn value<'a>(line: &'a [String], name: &str) -> Option<&'a str> {
    line.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// The number in `name=number`; 0 if it is missing.
pub fn amount(line: &[String], name: &str) -> u64 {
    value(line, name).map_or(0, bytes)
}

/// A number of bytes: `100`, `50Ki`, `100Mi`, `1.2Gi`.
fn bytes(text: &str) -> u64 {
    for (unit, shift) in [("Ki", 10), ("Mi", 20), ("Gi", 30)] {
        if let Some(number) = text.strip_suffix(unit) {
            let (whole, part) = number.split_once('.').unwrap_or((number, ""));
            let scale = 10u64.pow(part.len() as u32);
            let part = if part.is_empty() { 0 } else { self::number::<u64>(part) };
            return (self::number::<u64>(whole) << shift) + (part << shift) / scale;
        }
    }
    number(text)
}

/// All histories of a program, by name.
pub fn histories(of: &str) -> Vec<HistoryFile> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories").join(of);
    let mut found: Vec<HistoryFile> = Vec::new();
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{path:?} says where it is from");
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let words = lines.map(|line| line.split_whitespace().map(str::to_owned).collect());
        let name = format!("{of}/{}", path.file_stem().unwrap().to_string_lossy());
        found.push(HistoryFile { name, lines: words.collect() });
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(!found.is_empty());
    found
}
