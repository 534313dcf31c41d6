//! All text of the repository: words, line lengths, names of types, columns of tables.

use pagetide_tidy::{
    hash_passages, markdown_passages, public_types, rust_passages, uneven_rows, Passage, Rule,
};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Longest line of prose in a document.
const PROSE_COLUMNS: usize = 100;
/// Longest line of any other source.
const SOURCE_COLUMNS: usize = 118;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files that are data, or that quote others.
fn is_data(path: &str) -> bool {
    let folders = [
        "fuzz/corpus/",
        "experiments/traces/",
        "experiments/objects/",
        "crates/pagetide-linux/tests/data/",
        "crates/pagetide-sim/tests/golden/",
        "crates/pagetide-tidy/",
        "kernels/linux-6.1/patches/",
        "crates/pagetide-html/assets/",
        // Recordings of a kernel have a hash of these texts.
        "crates/pagetide-linux/src/machine-costs.toml",
        "experiments/proposals/",
        "experiments/verify/",
    ];
    folders.iter().any(|folder| path.starts_with(folder)) || path == "Cargo.lock"
}

/// Every text file of the repository with its path from the root. Links are skipped: the files that they name are here.
fn files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = entry.file_name().into_string().unwrap();
            let is_ours = !name.starts_with('.') || name == ".ci" || name == ".github";
            if kind.is_dir()
                && is_ours
                && !["target", "node_modules", "__pycache__", "venv"].contains(&&*name)
            {
                folders.push(path);
            } else if kind.is_file() && is_ours {
                let known = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                if let (false, Ok(text)) = (is_data(&known), std::fs::read_to_string(&path)) {
                    files.push((known, text));
                }
            }
        }
    }
    files.sort();
    assert!(files.len() > 500, "the repository has more files than {}", files.len());
    files
}

fn passages(path: &str, text: &str) -> Vec<Passage> {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "rs" => rust_passages(text),
        "md" => markdown_passages(text),
        "py" | "pyi" | "sh" | "toml" | "yml" => hash_passages(text),
        _ if path.ends_with("Makefile") || path == ".ci/run" => hash_passages(text),
        _ => Vec::new(),
    }
}

#[test]
fn prose_has_no_banned_words() {
    let rules = Rule::list(include_str!("../words.txt")).unwrap();
    let mut found = String::new();
    let mut count = 0;
    for (path, text) in files() {
        for passage in passages(&path, &text) {
            for rule in rules.iter().filter(|rule| rule.is_broken_by(&passage)) {
                count += 1;
                let (line, phrase, instead) = (passage.line, rule.phrase(), &rule.instead);
                writeln!(found, "{path}:{line}: \"{phrase}\"; write {instead}").unwrap();
            }
        }
    }
    assert!(found.is_empty(), "\n{found}{count} in all (crates/pagetide-tidy/words.txt)");
}

#[test]
fn lines_are_short() {
    let mut long = String::new();
    for (path, text) in files() {
        let is_document = path.ends_with(".md");
        let is_source =
            [".rs", ".py", ".pyi", ".sh", ".toml"].iter().any(|end| path.ends_with(end));
        let limit = if is_document { PROSE_COLUMNS } else { SOURCE_COLUMNS };
        let mut in_fence = false;
        for (index, line) in text.lines().enumerate() {
            in_fence ^= is_document && line.trim_start().starts_with("```");
            // A link or a table row cannot be broken; the output of a command is as wide as it is.
            let is_fixed = is_document && (in_fence || line.contains("](") || line.contains('|'));
            if (is_document || is_source) && !is_fixed && line.chars().count() > limit {
                writeln!(long, "{path}:{}: {} columns", index + 1, line.chars().count()).unwrap();
            }
        }
    }
    assert!(long.is_empty(), "\n{long}");
}

#[test]
fn public_types_have_unique_names() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in files() {
        let is_source = path.starts_with("crates/") && path.contains("/src/");
        if is_source && path.ends_with(".rs") {
            for (line, name) in public_types(&text) {
                places.entry(name).or_default().push(format!("{path}:{line}"));
            }
        }
    }
    let mut twice = String::new();
    for (name, places) in places.iter().filter(|(_, places)| places.len() > 1) {
        writeln!(twice, "{name}: {}", places.join(", ")).unwrap();
    }
    assert!(twice.is_empty(), "\n{twice}");
}

#[test]
fn tables_have_even_rows() {
    let mut uneven = String::new();
    for (path, text) in files().into_iter().filter(|(path, _)| path.ends_with(".md")) {
        for (line, cells, wanted) in uneven_rows(&text) {
            writeln!(uneven, "{path}:{line}: {cells} cells, the table has {wanted}").unwrap();
        }
    }
    assert!(uneven.is_empty(), "\n{uneven}");
}

/// Subjects are `area: imperative` or `area, area: ...`, bodies say why. The commits since the last tag, at most the last 20.
#[test]
fn commits_have_subjects_and_bodies() {
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git").args(arguments).current_dir(root()).output();
        output.ok().filter(|it| it.status.success()).map(|it| String::from_utf8(it.stdout).unwrap())
    };
    let since =
        git(&["describe", "--tags", "--abbrev=0"]).map(|tag| format!("{}..HEAD", tag.trim()));
    let range = since.as_deref().unwrap_or("HEAD");
    // A source archive has no history.
    let Some(log) = git(&["log", "--no-merges", "-20", "--format=%h%x00%s%x00%b%x01", range])
    else {
        return;
    };
    let mut bad = String::new();
    for commit in log.split('\u{1}').map(str::trim).filter(|commit| !commit.is_empty()) {
        let mut parts = commit.split('\0');
        let mut part = || parts.next().unwrap_or_default();
        let (hash, subject, body) = (part(), part(), part());
        let has_area = subject.split_once(": ").is_some_and(|(area, words)| {
            let is_word = |word: &str| !word.is_empty() && !word.contains(' ');
            area.split(", ").all(is_word) && !words.is_empty() && !words.ends_with('.')
        });
        // git writes these itself.
        let is_made_by_git = subject.starts_with("Revert \"") || subject.starts_with("Merge ");
        let columns = subject.chars().count();
        if !is_made_by_git && (!has_area || columns > 72 || body.trim().is_empty()) {
            writeln!(bad, "{hash} ({columns} columns): {subject}").unwrap();
        }
    }
    assert!(
        bad.is_empty(),
        "\n{bad}`area: imperative, at most 72 characters`, and a body that says why"
    );
}
