//! Text about a scenario.

use pagetide_core::control::GroupControlWrite;
use pagetide_lab::format::size;
use pagetide_scenario::metric::Owner;
use pagetide_scenario::model::{Setup, Task};
use pagetide_scenario::names::NameSet;
use std::collections::BTreeSet;

/// Most lines of tasks; a further line says how many more there are.
const MOST_TASKS: usize = 12;

/// The paragraphs of a description, split at blank lines.
pub fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in text.lines() {
        let last = paragraphs.last_mut().expect("never empty");
        match (line.trim(), last.is_empty()) {
            ("", true) => {}
            ("", false) => paragraphs.push(String::new()),
            (line, true) => last.push_str(line),
            (line, false) => {
                last.push(' ');
                last.push_str(line);
            }
        }
    }
    paragraphs.retain(|paragraph| !paragraph.is_empty());
    paragraphs
}

/// One line per task, copies together: group, controls and workload.
pub fn load(setup: &Setup) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let families =
        setup.tasks.iter().filter(|task| seen.insert(Owner::new(&task.name).family().name));
    let families: Vec<&Task> = families.collect();
    let mut lines: Vec<String> =
        families.iter().take(MOST_TASKS).map(|task| of_task(setup, task)).collect();
    if families.len() > MOST_TASKS {
        lines.push(format!("and {} more tasks", families.len() - MOST_TASKS));
    }
    lines
}

fn of_task(setup: &Setup, task: &Task) -> String {
    let family = Owner::new(&task.name).family().name;
    let copies = setup.tasks.iter().filter(|it| Owner::new(&it.name).family().name == family);
    let mut text = match copies.count() {
        1 => family,
        copies => format!("{family} ({copies} copies)"),
    };
    if let Some(group) = task.group.and_then(|group| setup.groups.get(group)) {
        text += &format!(" in group {}", group.name);
        let control = |write: &GroupControlWrite| format!("{}={write}", write.control.name());
        let controls: Vec<String> = group.controls.iter().map(control).collect();
        if !controls.is_empty() {
            text += &format!(" ({})", controls.join(", "));
        }
    }
    if task.background {
        text += ", in the background";
    }
    let mut parts: Vec<String> = Vec::new();
    for phase in &task.phases {
        let kind = phase.workload.kind();
        let mut what = kind.doc().trim().trim_end_matches('.').to_owned();
        let files: Vec<String> = phase
            .workload
            .files()
            .iter()
            .filter_map(|(file, _)| {
                let file = setup.files.get(*file)?;
                Some(format!("{}, {}", file.name, size(file.size)))
            })
            .collect();
        if !files.is_empty() {
            what += &format!(" ({})", files.join("; "));
        }
        if parts.last() != Some(&what) {
            parts.push(what);
        }
    }
    format!("{text}: {}", parts.join(". Then: "))
}

/// A printed value, marked if its work is incomplete.
pub fn with_dagger(text: String, is_ended: bool) -> String {
    match is_ended {
        true => text + pagetide_lab::dagger::DAGGER,
        false => text,
    }
}

/// At most `most` bytes of `text`, and whether it was cut.
pub fn at_most(text: &str, most: usize) -> (&str, bool) {
    if text.len() <= most {
        return (text, false);
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    (&text[..end], true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_split_at_blank_lines() {
        assert_eq!(paragraphs("\n a\n b\n\n\nc\n"), ["a b", "c"]);
        assert!(paragraphs("").is_empty());
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(at_most("a\u{e4}b", 2), ("a", true));
        assert_eq!(at_most("a\u{e4}b", 4), ("a\u{e4}b", false));
    }
}
