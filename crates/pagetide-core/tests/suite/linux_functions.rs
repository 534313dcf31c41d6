//! The index from Linux's functions to files of the core, which `pagetide explain` prints, matches the files.
//!
//! Each file opens with the names that Linux uses. The index has the names in backticks of that paragraph, except
//! links to our own names (in brackets). A line is `NAME<TAB>FILE, FILE...`; paths are those of
//! crates/pagetide-core/src. `PAGETIDE_ACCEPT=1` writes the index.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const INDEX: &str = "../pagetide-lab/src/explain/linux_functions.tsv";

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The paragraph of a file's opening that begins with "Linux", or says it in its first line.
fn about_linux(text: &str) -> String {
    let opening = text.lines().map_while(|line| line.strip_prefix("//!"));
    let opening: Vec<&str> = opening.map(str::trim).collect();
    let paragraphs = opening.split(|line| line.is_empty());
    let own = |lines: &&[&str]| {
        let first = lines.first().copied().unwrap_or_default();
        first.starts_with("Linux") && !first.starts_with("Linux has no such")
            || first.contains("(Linux:")
    };
    paragraphs.filter(own).map(|lines| lines.join(" ")).collect::<Vec<_>>().join(" ")
}

/// The names of C in backticks.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_c = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let parts: Vec<&str> = text.split('`').collect();
    let quoted = parts.windows(2).step_by(2).filter(|pair| !pair[0].ends_with('['));
    let names: Vec<&str> = quoted.map(|pair| pair[1]).collect();
    names.into_iter().filter_map(move |name| {
        let name = name.strip_prefix("struct ").unwrap_or(name).trim_end_matches("()");
        (name.contains('_') && name.chars().all(is_c)).then_some(name)
    })
}

fn index() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    files(&root, &mut found);
    let mut by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in found {
        let file = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let opening = about_linux(&fs::read_to_string(&path).unwrap());
        for name in names(&opening) {
            let files = by_name.entry(name.to_owned()).or_default();
            if !files.contains(&file) {
                files.push(file.clone());
            }
        }
    }
    let mut text = String::new();
    let by_plain_name: BTreeMap<&str, (&str, Vec<String>)> = by_name
        .iter()
        .map(|(name, files)| {
            let mut files = files.clone();
            files.sort_unstable();
            (name.trim_start_matches('_'), name.as_str(), files)
        })
        .fold(BTreeMap::new(), |mut all, (plain, name, files)| {
            let entry: &mut (&str, Vec<String>) = all.entry(plain).or_insert((name, Vec::new()));
            entry.1.extend(files);
            entry.1.sort_unstable();
            entry.1.dedup();
            all
        });
    for (name, files) in by_plain_name.into_values() {
        writeln!(text, "{name}\t{}", files.join(", ")).unwrap();
    }
    text
}

#[test]
fn the_index_is_what_the_files_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(INDEX);
    let index = index();
    assert!(index.lines().count() > 150, "{index}");
    if std::env::var_os("PAGETIDE_ACCEPT").is_some() {
        fs::write(&path, &index).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, index, "PAGETIDE_ACCEPT=1 writes the index");
}
