//! Functions of Linux, each with the files of the core that implement it. `linux_functions.tsv` is made from the
//! openings of these files by a test of the core (`suite linux_functions`).
//!
//! Invariant: every line of `linux_functions.tsv` is a topic.

use super::{Topic, TopicChoice, TopicKind};

/// Lines of `NAME<TAB>FILE, FILE...`.
const INDEX: &str = include_str!("linux_functions.tsv");
/// Where the files are.
const ROOT: &str = "crates/pagetide-core/src/";
/// Shorter names of knobs match too many functions.
const LEAST: usize = 8;

/// Each function with the paths of its files.
pub(super) fn index() -> Vec<TopicChoice> {
    let rows = INDEX.lines().filter_map(|line| line.split_once('\t'));
    rows.map(|(name, files)| {
        let files: Vec<String> = files.split(", ").map(|file| format!("{ROOT}{file}")).collect();
        TopicChoice { name: name.to_owned(), about: files.join(", ") }
    })
    .collect()
}

/// Functions with the last part of a knob's name in their name: `calculate_min_free_kbytes`.
pub(super) fn about(index: &[TopicChoice], knob: &str) -> Vec<TopicChoice> {
    let last = knob.rsplit_once('.').map_or(knob, |(_, last)| last).replace('-', "_");
    let is_about = |function: &&TopicChoice| last.len() >= LEAST && function.name.contains(&last);
    index.iter().filter(is_about).cloned().collect()
}

pub(super) fn topic(function: TopicChoice) -> Topic {
    Topic {
        document: "ARCHITECTURE.md".to_owned(),
        ..Topic::new(
            TopicKind::LinuxFunction,
            function.name,
            format!("Implemented in {}.", function.about),
        )
    }
}
