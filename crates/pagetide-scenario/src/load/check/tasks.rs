//! Checks `[[task]]`: copies, phases, and the order in which tasks wait for each other.

use super::files::FileTemplates;
use super::groups::GroupIndex;
use super::names::NameIndex;
use super::phases::{Phases, TaskChecks};
use super::resident;
use super::waiting::{self, TaskCopy};
use super::{PHASES_MAX, TASKS_MAX};
use crate::load::raw;
use crate::load::span::{clip, ProblemSink, SourceSpan, SpannedProblem};
use crate::model::{Phase, Resident, Task, TaskSettings, TaskStart};
use crate::names::NameSet;
use pagetide_core::swap::content::ContentMix;
use std::collections::BTreeMap;

/// Name of the only phase of a task without `[[task.phase]]`.
const ONLY_PHASE: &str = "main";

/// A checked `[[task]]` before its copies are made. Its workloads have indices of file templates.
pub(super) struct Draft<'a> {
    pub(super) name: &'a str,
    pub(super) copies: usize,
    /// The number of copies could not be read, which has been reported.
    pub(super) has_unknown_copies: bool,
    /// Index of its first copy among all tasks.
    first: usize,
    group: Option<usize>,
    delay_ns: u64,
    pub(super) after: Option<TaskCopy>,
    pub(super) until: Option<TaskCopy>,
    background: bool,
    restart_ns: Option<u64>,
    settings: TaskSettings,
    content: Option<ContentMix>,
    resident: Vec<Resident>,
    phases: Vec<Phase>,
    /// It runs until it is stopped.
    pub(super) is_endless: bool,
}

/// Returns all tasks, copies included.
pub(super) fn check(
    raw: &raw::ScenarioTable,
    scene: TaskChecks<'_>,
    files: &mut FileTemplates<'_>,
    at: SourceSpan,
    sink: &mut ProblemSink,
) -> Vec<Task> {
    let list = raw.task.as_deref().unwrap_or_default();
    if list.is_empty() {
        if raw.bad.is_empty() {
            let hint = "add a [[task]] with a name and a workload";
            sink.hinted(at, "the scenario has no task", hint);
        }
        return Vec::new();
    }
    let mut names = NameIndex::new("task");
    // Phases still allowed: starts one above the limit, so that exceeding the limit shows.
    let mut budget = PHASES_MAX + 1;
    let mut drafts: Vec<Draft<'_>> = Vec::with_capacity(list.len());
    for (index, task) in list.iter().enumerate() {
        match task.table.name(sink) {
            Some(name) => names.insert(&name.value.0, name.span, index, sink),
            None => names.is_incomplete = true,
        }
        let draft = draft(task, scene, files, budget, sink);
        budget = budget.saturating_sub(draft.phases.len());
        drafts.push(draft);
    }
    let mut tasks = 0;
    for draft in &mut drafts {
        draft.first = tasks;
        tasks += draft.copies;
    }
    if !is_within_limits(&drafts, list, sink) {
        return Vec::new();
    }
    for (index, task) in list.iter().enumerate() {
        drafts[index].after = waiting::after(task, &drafts, &names, sink);
        drafts[index].until = waiting::until(task, &drafts, &names, sink);
    }
    waiting::report(&drafts, sink);
    if drafts.iter().all(|draft| draft.background) {
        let message = "all tasks are in the background: the run would end at once";
        sink.hinted(list[0].table.at, message, "remove `background` from at least one task");
    }
    expand(&drafts, scene.groups, files)
}

fn is_within_limits(drafts: &[Draft<'_>], list: &[raw::RawTask], sink: &mut ProblemSink) -> bool {
    let (mut tasks, mut phases) = (0, 0);
    for (draft, task) in drafts.iter().zip(list) {
        let threads = draft.phases.iter().map(|phase| phase.workload.threads() as usize).max();
        tasks += draft.copies * threads.unwrap_or(1);
        phases += draft.copies * draft.phases.len();
        let span = task.table.copies.as_ref().map_or(task.table.at, |copies| copies.span);
        if tasks > TASKS_MAX {
            let hint = format!("a scenario has at most {TASKS_MAX}, copies and threads included");
            sink.hinted(span, "too many tasks", hint);
            return false;
        }
        if phases > PHASES_MAX {
            let hint = format!("a scenario has at most {PHASES_MAX}, copies and repeats included");
            sink.hinted(span, "too many phases", hint);
            return false;
        }
    }
    true
}

fn draft<'a>(
    task: &'a raw::RawTask,
    scene: TaskChecks<'_>,
    files: &FileTemplates<'_>,
    budget: usize,
    sink: &mut ProblemSink,
) -> Draft<'a> {
    let table = &task.table;
    let name = table.name.as_ref().map_or("", |name| name.value.0.as_str());
    let phases = phases(task, scene, files, budget, sink);
    let is_until = table.until.is_some() || table.bad.contains(&"until");
    let background = table.background() || is_until;
    let is_endless = report_endless(task, name, &phases, background, sink);
    if let (Some(start), Some(_)) = (&table.start, &table.after) {
        let hint = "with `after`, write `delay` instead of `start`";
        sink.hinted(start.span, "a task cannot have both `start` and `after`", hint);
    }
    Draft {
        name,
        copies: table.copies().0 as usize,
        has_unknown_copies: table.bad.contains(&"copies"),
        first: 0,
        group: table.group.as_ref().and_then(|group| scene.groups.of_task(group, sink)),
        delay_ns: table.start().0.saturating_add(table.delay().0),
        after: None,
        until: None,
        background,
        restart_ns: table.restart.as_ref().map(|restart| restart.value.0),
        settings: table.settings(),
        content: table.content.as_ref().map(|content| content.check(scene.content, sink)),
        resident: resident::check(table.resident.as_deref().unwrap_or_default(), sink),
        phases,
        is_endless,
    }
}

fn phases(
    task: &raw::RawTask,
    scene: TaskChecks<'_>,
    files: &FileTemplates<'_>,
    budget: usize,
    sink: &mut ProblemSink,
) -> Vec<Phase> {
    let list = task.table.phase.as_deref().unwrap_or_default();
    let mut checker = Phases::new(files, scene);
    if let Some(inline) = &task.inline {
        if let Some(phase) = list.first() {
            let hint = "move the task's own workload into a [[task.phase]]";
            sink.hinted(phase.table.at, "a task cannot have both a workload and phases", hint);
        }
        let workload = inline.check(&mut checker, sink);
        checker.finish(sink);
        let name = ONLY_PHASE.to_owned();
        return workload
            .into_iter()
            .map(|workload| Phase { name: name.clone(), workload })
            .collect();
    }
    if list.is_empty() && task.table.bad.is_empty() {
        let hint = "add workload = \"touch\", for example, or [[task.phase]]";
        sink.hinted(task.table.at, "the task does nothing", hint);
    }
    let mut names: BTreeMap<String, SourceSpan> = BTreeMap::new();
    for phase in list {
        let name = phase.table.name(sink);
        let workload = match &phase.workload {
            Some(workload) => workload.check(&mut checker, sink),
            None => {
                if !phase.table.bad.contains(&"workload") {
                    let hint = "add workload = \"touch\", for example";
                    sink.hinted(phase.table.at, "the phase has no workload", hint);
                }
                None
            }
        };
        checker.is_incomplete |= name.is_none() || workload.is_none();
        let Some(name) = name else { continue };
        let repeat = phase.table.repeat().0;
        for i in 0..repeat {
            let full = match repeat {
                1 => name.value.0.clone(),
                _ => format!("{}{i}", name.value.0),
            };
            if let Some(first) = names.get(&full) {
                sink.push(SpannedProblem {
                    span: name.span,
                    message: format!("the phase `{}` is defined twice", clip(&full)),
                    hint: Some("give one of them another name".into()),
                    also: Some((*first, "first defined here".into())),
                });
                break;
            }
            names.insert(full.clone(), name.span);
            if checker.before.len() == budget {
                break;
            }
            checker.before.extend(workload.clone().map(|workload| Phase { name: full, workload }));
        }
    }
    checker.finish(sink);
    checker.before
}

/// Whether the task never ends by itself. Reports what is then impossible.
fn report_endless(
    task: &raw::RawTask,
    name: &str,
    phases: &[Phase],
    background: bool,
    sink: &mut ProblemSink,
) -> bool {
    let mut found = phases.iter().enumerate();
    let found = found.find_map(|(i, phase)| Some((i, phase.workload.missing_end()?)));
    let Some((first, key)) = found else { return false };
    let listed = task.table.phase.iter().flatten().filter_map(|phase| phase.workload.as_ref());
    if listed.chain(&task.inline).any(|keys| !keys.bad().is_empty()) {
        // The key that ends it may be the one that could not be read.
        return false;
    }
    let workload = phases[first].workload.kind().name();
    let span = task.table.name.as_ref().map_or(task.table.at, |name| name.span);
    let name = clip(name);
    if !background {
        let hint = format!("add {key} to its {workload}, or background = true to the task");
        sink.hinted(span, format!("the task `{name}` never ends"), hint);
    } else if first + 1 < phases.len() {
        let phase = clip(&phases[first + 1].name);
        let message = format!("the task `{name}` never reaches its phase `{phase}`");
        sink.hinted(span, message, format!("add {key} to the {workload} before it"));
    }
    true
}

fn expand(
    drafts: &[Draft<'_>],
    groups: &GroupIndex<'_>,
    files: &mut FileTemplates<'_>,
) -> Vec<Task> {
    let mut tasks = Vec::new();
    for draft in drafts {
        for copy in 0..draft.copies {
            let name = match draft.copies {
                1 => draft.name.to_owned(),
                _ => format!("{}.{copy}", draft.name),
            };
            let mut phases = draft.phases.clone();
            for phase in &mut phases {
                phase.workload.visit_files(&mut |file, _| *file = files.of_task(*file, &name));
            }
            let cached = draft.resident.iter().fold(0u64, |sum, it| sum.saturating_add(it.file()));
            let resident_file = (cached > 0).then(|| files.resident_of(&name, cached));
            let index = |other: TaskCopy| drafts[other.draft].first + other.copy;
            let (after, until) = (draft.after.map(index), draft.until.map(index));
            tasks.push(Task {
                name,
                group: draft.group.map(|group| groups.of_copy(group, copy)),
                start: TaskStart { delay_ns: draft.delay_ns, after },
                background: draft.background,
                until,
                restart_ns: draft.restart_ns,
                settings: draft.settings.clone(),
                phases,
                content: draft.content,
                resident: draft.resident.clone(),
                resident_file,
            });
        }
    }
    tasks
}
