//! Checks tasks that wait for the end of others, to start (`after`) or to be stopped (`until`).

use super::names::NameIndex;
use super::tasks::Draft;
use crate::load::raw;
use crate::load::span::{clip, ProblemSink, SourceSpan, Spanned};

/// Largest number of names shown of a cycle of tasks.
const NAMES_MAX: usize = 8;

/// A copy of a task that another task names.
#[derive(Clone, Copy)]
pub(super) struct TaskCopy {
    /// Index of the draft.
    pub(super) draft: usize,
    pub(super) copy: usize,
    span: SourceSpan,
}

/// The task whose end starts another task.
pub(super) fn after(
    task: &raw::RawTask,
    drafts: &[Draft<'_>],
    names: &NameIndex<'_>,
    sink: &mut ProblemSink,
) -> Option<TaskCopy> {
    other("after", task.table.after.as_ref()?, drafts, names, sink)
}

/// The task whose end stops another task.
pub(super) fn until(
    task: &raw::RawTask,
    drafts: &[Draft<'_>],
    names: &NameIndex<'_>,
    sink: &mut ProblemSink,
) -> Option<TaskCopy> {
    other("until", task.table.until.as_ref()?, drafts, names, sink)
}

fn other(
    key: &str,
    value: &Spanned<String>,
    drafts: &[Draft<'_>],
    names: &NameIndex<'_>,
    sink: &mut ProblemSink,
) -> Option<TaskCopy> {
    let span = value.span;
    if let Some((name, copy)) = value.value.rsplit_once('.') {
        let Some(draft) = names.get(name) else {
            names.find_text(&value.value, span, sink);
            return None;
        };
        if drafts[draft].has_unknown_copies {
            return None;
        }
        let copies = drafts[draft].copies;
        let copy = copy.parse().ok().filter(|copy| copies > 1 && *copy < copies);
        if copy.is_none() {
            let message = format!("there is no task `{}`", clip(&value.value));
            let hint = match copies {
                1 => format!("`{name}` has one copy: write {key} = \"{name}\""),
                _ => format!("it has copies `{name}.0` to `{name}.{}`", copies - 1),
            };
            sink.hinted(span, message, hint);
        }
        return Some(TaskCopy { draft, copy: copy?, span });
    }
    let draft = names.find_text(&value.value, span, sink)?;
    if drafts[draft].copies > 1 {
        let name = clip(&value.value);
        let hint = format!("say which: {key} = \"{name}.0\", for example");
        sink.hinted(span, format!("`{name}` has several copies"), hint);
        return None;
    }
    Some(TaskCopy { draft, copy: 0, span })
}

/// Reports waits for a task that never ends, cycles, and tasks that are stopped before they start.
pub(super) fn report(drafts: &[Draft<'_>], sink: &mut ProblemSink) {
    for draft in drafts {
        let waits = [
            ("waits for", draft.after, "use start = \"1s\", for example"),
            ("runs until the end of", draft.until, "name a task that ends"),
        ];
        for (verb, other, hint) in waits {
            let Some(other) = other else { continue };
            let target = &drafts[other.draft];
            if target.is_endless && target.until.is_none() {
                let names = (clip(draft.name), clip(target.name));
                let message = format!("`{}` {verb} `{}`, which never ends", names.0, names.1);
                sink.hinted(other.span, message, hint);
            }
        }
    }
    let is_sound = !report_rings(drafts, sink);
    if is_sound {
        drafts.iter().for_each(|draft| report_late(draft, drafts, sink));
    }
}

/// Reports cycles of waiting tasks. Returns whether there are any.
fn report_rings(drafts: &[Draft<'_>], sink: &mut ProblemSink) -> bool {
    let mut found = false;
    let mut is_done = vec![false; drafts.len()];
    // Position of each task in the path.
    let mut position: Vec<Option<usize>> = vec![None; drafts.len()];
    for start in 0..drafts.len() {
        // A task with the number of its edges that have been followed (0: `after`, 1: `until`).
        let mut path: Vec<(usize, usize)> = Vec::new();
        let mut next = (!is_done[start]).then_some(start);
        loop {
            if let Some(index) = next.take() {
                position[index] = Some(path.len());
                path.push((index, 0));
            }
            let depth = path.len();
            let Some((index, edge)) = path.last_mut() else { break };
            let draft = &drafts[*index];
            let other = match *edge {
                0 => draft.after,
                1 => draft.until,
                _ => {
                    is_done[*index] = true;
                    position[*index] = None;
                    path.truncate(depth - 1);
                    continue;
                }
            };
            *edge += 1;
            let Some(other) = other else { continue };
            if let Some(from) = position[other.draft] {
                report_ring(&path[from..], drafts, sink);
                found = true;
            } else if !is_done[other.draft] {
                next = Some(other.draft);
            }
        }
    }
    found
}

/// Reports a cycle: each task with the number, from 1, of the edge that leads to the next.
fn report_ring(ring: &[(usize, usize)], drafts: &[Draft<'_>], sink: &mut ProblemSink) {
    let word = |edge: usize| if edge == 1 { "after" } else { "until" };
    let mut text = String::new();
    for (index, edge) in ring.iter().take(NAMES_MAX) {
        text += &format!("`{}` {} ", clip(drafts[*index].name), word(*edge));
    }
    if ring.len() > NAMES_MAX {
        text += "... ";
    }
    let (first, edge) = ring[0];
    text += &format!("`{}`", clip(drafts[first].name));
    let draft = &drafts[first];
    let Some(other) = (if edge == 1 { draft.after } else { draft.until }) else { return };
    let hint = if ring.iter().all(|(_, edge)| *edge == 1) {
        "remove `after` from one of them"
    } else {
        "remove `after` or `until` from one of them"
    };
    sink.hinted(other.span, format!("tasks wait for each other: {text}"), hint);
}

/// Reports a task that is stopped by the end of a task that must end before it starts.
fn report_late(draft: &Draft<'_>, drafts: &[Draft<'_>], sink: &mut ProblemSink) {
    let Some(until) = draft.until else { return };
    let mut before = draft.after;
    while let Some(other) = before {
        if (other.draft, other.copy) == (until.draft, until.copy) {
            let names = (clip(draft.name), clip(drafts[other.draft].name));
            let message = format!("`{}` starts only after the end of `{}`", names.0, names.1);
            sink.hinted(until.span, message, "it would be stopped at once: use another `until`");
            return;
        }
        before = drafts[other.draft].after;
    }
}
