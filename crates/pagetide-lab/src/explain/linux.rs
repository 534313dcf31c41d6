//! Linux functions with the core's files that implement them, from docs/linux-functions.md, which
//! is generated from the openings of these files.
//!
//! Invariant: every row of that table is a topic.

use super::{Choice, Kind, Topic};

const INDEX: &str = include_str!("../../assets/linux-functions.md");
/// Directory of the files.
const ROOT: &str = "crates/pagetide-core/src/";
/// Shorter names of knobs match too many functions.
const LEAST: usize = 8;

/// The table of functions and files.
pub(super) fn index() -> Vec<Choice> {
    let rows = INDEX.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    rows.filter_map(|row| row.split_once("` | "))
        .map(|(name, files)| {
            let files: Vec<String> =
                files.split(", ").map(|file| format!("{ROOT}{file}")).collect();
            Choice { name: name.to_owned(), about: files.join(", ") }
        })
        .collect()
}

/// Functions with the last part of a knob's name in their name: `calculate_min_free_kbytes`.
pub(super) fn about(index: &[Choice], knob: &str) -> Vec<Choice> {
    let last = knob.rsplit_once('.').map_or(knob, |(_, last)| last).replace('-', "_");
    let is_about = |function: &&Choice| last.len() >= LEAST && function.name.contains(&last);
    index.iter().filter(is_about).cloned().collect()
}

pub(super) fn topic(function: Choice) -> Topic {
    Topic {
        document: "docs/linux-functions.md".to_owned(),
        ..Topic::new(
            Kind::LinuxFunction,
            function.name,
            format!("Implemented in {}.", function.about),
        )
    }
}
