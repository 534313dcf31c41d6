//! Links between pages resolve, in the repository and in the book, which has the same paths (`make
//! book`).

use pagetide_testing::root;
use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Pages of the repository, by their paths.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for folder in ["", "docs", "docs/tutorials"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// The text of a page without code blocks and inline code, where links do not count.
fn prose(text: &str) -> String {
    let mut prose = String::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    // In `a` b `c` only b is prose: code may contain `](`.
    let pieces = prose.split('`').enumerate();
    pieces.map(|(number, piece)| if number % 2 == 0 { piece } else { "code" }).collect()
}

/// The targets of the links of a page.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let ends = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    ends.map(|(link, _)| link.to_owned()).filter(|link| !link.contains("://")).collect()
}

/// The anchors of a page, as forges and mdBook derive them from headings.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut is_code = false;
    let mut anchors = Vec::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let heading = line.trim_start_matches('#');
        if is_code || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let anchor: String = heading
            .trim()
            .to_lowercase()
            .chars()
            .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter))
            .map(|letter| if letter == ' ' { '-' } else { letter })
            .collect();
        let count = seen.entry(anchor.clone()).or_default();
        anchors.push(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    anchors
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// Why a link of a page does not resolve, if so.
fn broken(page: &Path, link: &str) -> Option<String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => page.to_owned(),
        path => plain(&page.parent().expect("a page is in a folder").join(path)),
    };
    if !target.starts_with(root()) || !target.exists() {
        return Some(format!("there is no {}", target.display()));
    }
    let is_page = target.extension().is_some_and(|ending| ending == "md");
    if anchor.is_empty() || !is_page {
        return None;
    }
    let anchors = anchors(&fs::read_to_string(&target).unwrap());
    (!anchors.iter().any(|known| known == anchor)).then(|| format!("no heading is `#{anchor}`"))
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages() {
        for link in links(&fs::read_to_string(&page).unwrap()) {
            count += 1;
            let why = broken(&page, &link);
            wrong.extend(why.map(|why| format!("{}: ]({link}): {why}", page.display())));
        }
    }
    assert!(count > 100, "{count} links");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_is_in_the_summary() {
    let docs = root().join("docs");
    let summary = docs.join("SUMMARY.md");
    let listed: Vec<PathBuf> = links(&fs::read_to_string(&summary).unwrap())
        .iter()
        .map(|link| plain(&docs.join(link)))
        .collect();
    for page in pages().iter().filter(|page| **page != summary) {
        assert!(listed.contains(page), "docs/SUMMARY.md has no line for {}", page.display());
    }
}

#[test]
fn anchors_are_those_of_forges() {
    let text = "# `find` it\n```\n# no\n```\n## Keys of `[machine]`, and why\n### a_b\n### a_b\n";
    assert_eq!(anchors(text), ["find-it", "keys-of-machine-and-why", "a_b", "a_b-1"]);
    assert_eq!(links("a [b](c.md#d) `[x](y)`\n```\n[x](y)\n```\n[z](https://z)"), ["c.md#d"]);
}
