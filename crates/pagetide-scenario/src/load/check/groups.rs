//! Checks `[[group]]` and the operations of tasks on groups. Parents must exist, and exist in time;
//! the machine must have the memory that `memory.min` protects; the kernel must accept the writes.

use super::knobs::{
    check_mark, find_machine_file, group_write, group_writes, has_generations, machine_write,
    value_of,
};
use super::names::{require_key, NameIndex};
use crate::load::decode::{GroupTarget, NameKey};
use crate::load::raw::RawGroup;
use crate::load::span::{clip, ProblemSink, SourceSpan, Spanned, SpannedProblem};
use crate::load::units::show_size;
use crate::model::policies::PolicyChoices;
use crate::model::{Group, TargetWrite};
use crate::names::SubtreeControl;
use pagetide_core::ageing::generations::command::LruGenWrite;
use pagetide_core::control::GroupControl;
use pagetide_core::swap::zram::ZramWrite;
use std::collections::{BTreeMap, BTreeSet};

/// Deepest nesting of groups. A limit, because every charge walks up to the root.
const DEPTH_MAX: u32 = 128;

/// The groups of a scenario, by index in the setup: parents come before children.
#[derive(Debug)]
pub(crate) struct GroupIndex<'a> {
    pub(crate) names: NameIndex<'a>,
    /// The groups of the setup.
    pub(super) list: Vec<Group>,
    /// Number of copies of each group with several, by the index of the first copy.
    copies: BTreeMap<usize, usize>,
    /// Groups with an invalid number of copies, which has been reported.
    invalid_copies: BTreeSet<usize>,
    /// Groups that some task removes.
    removed: BTreeSet<usize>,
    /// Position of a `subtree_control` that leaves groups without a memory controller, if any does.
    pub(super) without_memory: Option<SourceSpan>,
}

/// Checks the groups. `memory`: bytes of the machine. `removed`: groups that some task removes.
pub(super) fn check<'a>(
    list: &'a [RawGroup],
    is_incomplete: bool,
    removed: impl Iterator<Item = &'a GroupTarget>,
    memory: u64,
    sink: &mut ProblemSink,
) -> GroupIndex<'a> {
    let mut given = NameIndex::new("group");
    given.is_incomplete = is_incomplete;
    for (index, group) in list.iter().enumerate() {
        let place = (group.table.at, group.table.bad.as_slice());
        match require_key(&group.table.name, "name", place, "the group", "\"batch\"", sink) {
            Some(name) => given.insert(&name.value.0, name.span, index, sink),
            None => given.is_incomplete = true,
        }
    }
    let parents: Vec<Option<usize>> = list
        .iter()
        .map(|group| group.table.parent.as_ref().and_then(|parent| given.find(parent, sink)))
        .collect();
    let order = parents_first(list, &parents, sink);
    let mut names = NameIndex::new("group");
    names.is_incomplete = given.is_incomplete;
    let mut groups: Vec<Group> = Vec::with_capacity(order.len());
    let mut place_of: BTreeMap<usize, usize> = BTreeMap::new();
    let mut depths: Vec<u32> = Vec::with_capacity(order.len());
    let mut copies: BTreeMap<usize, usize> = BTreeMap::new();
    let mut unsure = BTreeSet::new();
    let mut without_memory = None;
    for index in order {
        let group = &list[index];
        let controls = group_writes(&group.controls.writes, sink);
        let Some(name) = &group.table.name else { continue };
        if given.get(&name.value.0) != Some(index) {
            continue;
        }
        // The last group of a cycle has no parent; the cycle has been reported.
        let parent = parents[index].and_then(|parent| place_of.get(&parent).copied());
        place_of.insert(index, groups.len());
        names.insert(&name.value.0, name.span, groups.len(), sink);
        let at_start = is_at_start(group);
        if let Some(above) = parent.filter(|above| at_start && !groups[*above].at_start) {
            report_late_parent(group, &groups[above], sink);
        }
        let depth = parent.map_or(1, |parent| depths[parent] + 1);
        if depth == DEPTH_MAX + 1 {
            let message = format!("the group `{}` is {depth} levels deep", clip(&name.value.0));
            sink.hinted(
                name.span,
                message,
                format!("groups may be at most {DEPTH_MAX} levels deep"),
            );
        }
        let has_memory = parent.is_none_or(|parent| {
            let above = parents[index].and_then(|at| list[at].table.subtree_control.as_ref());
            if let Some(none) = above.filter(|at| at.value == SubtreeControl::None) {
                without_memory = Some(none.span);
            }
            groups[parent].has_memory && above.is_none_or(|at| at.value == SubtreeControl::Memory)
        });
        let own = group.table.subtree_control.as_ref();
        if let Some(own) = own.filter(|own| own.value == SubtreeControl::Memory && !has_memory) {
            let group = clip(&name.value.0);
            let message = format!(
                "the group `{group}` has no memory controller to enable for children (ENOENT)"
            );
            let hint = "an ancestor has subtree_control = \"none\": leave it out here";
            sink.hinted(own.span, message, hint);
        }
        if !has_memory {
            for write in &group.controls.writes {
                report_no_memory(&write.name, &name.value.0, sink);
            }
        }
        if group.table.bad.contains(&"copies") {
            unsure.insert(groups.len());
        }
        let nr = group.table.copies.as_ref().map_or(1, |copies| copies.value.0 as usize);
        if nr > 1 {
            report_bad_copies(list, index, &parents, sink);
            copies.insert(groups.len(), nr);
        }
        for copy in 0..nr {
            let name = match nr {
                1 => name.value.0.clone(),
                _ => format!("{}.{copy}", name.value.0),
            };
            depths.push(depth);
            let controls = controls.clone();
            groups.push(Group { name, parent, controls, at_start, has_memory });
        }
    }
    check_protection(list, memory, sink);
    let mut groups = GroupIndex {
        names,
        list: groups,
        copies,
        invalid_copies: unsure,
        removed: BTreeSet::new(),
        without_memory,
    };
    groups.removed = removed.filter_map(|target| groups.find(target)).collect();
    groups
}

/// Reports a file of the memory controller in a group without one.
fn report_no_memory(control: &Spanned<String>, group: &str, sink: &mut ProblemSink) {
    let known = GroupControl::find(&control.value);
    if known.is_some_and(|control| !control.is_of_cpu()) {
        let (control_name, group) = (clip(&control.value), clip(group));
        let message = format!("the group `{group}` has no memory controller, so no {control_name}");
        let hint = "an ancestor has subtree_control = \"none\"";
        sink.hinted(control.span, message, hint);
    }
}

/// Copies exist from the start, and have no child groups: `parent` cannot name a copy.
fn report_bad_copies(
    list: &[RawGroup],
    index: usize,
    parents: &[Option<usize>],
    sink: &mut ProblemSink,
) {
    let group = &list[index];
    let Some(copies) = &group.table.copies else { return };
    if !is_at_start(group) {
        let hint = "leave out `at_start`, or write one [[group]] for each";
        sink.hinted(copies.span, "a group with copies must exist at the start", hint);
    }
    let child = list.iter().zip(parents).find(|(_, parent)| **parent == Some(index));
    if let Some(at) = child.and_then(|(child, _)| child.table.parent.as_ref()) {
        let hint = "leave out `copies` of the parent, or write one [[group]] for each";
        sink.hinted(at.span, "the parent has several copies", hint);
    }
}

fn is_at_start(group: &RawGroup) -> bool {
    group.table.at_start.as_ref().is_none_or(|at_start| at_start.value)
}

fn report_late_parent(group: &RawGroup, parent: &Group, sink: &mut ProblemSink) {
    let (Some(name), Some(at)) = (&group.table.name, &group.table.parent) else { return };
    let (name, parent) = (clip(&name.value.0), clip(&parent.name));
    let message =
        format!("the group `{name}` exists at the start, but its parent `{parent}` does not");
    sink.hinted(at.span, message, "write at_start = false here too, or choose another parent");
}

/// Reports groups that exist at the start and together protect more `memory.min` than the machine
/// has. Only children of the root count, because their protection includes their descendants.
fn check_protection(list: &[RawGroup], memory: u64, sink: &mut ProblemSink) {
    let mut sum: u64 = 0;
    let mut last = None;
    for group in list.iter().filter(|group| group.table.parent.is_none() && is_at_start(group)) {
        let min = GroupControl::Min.file();
        for write in group.controls.writes.iter().filter(|write| write.name.value == min.name) {
            let read = value_of(min, &write.text.value, sink.page_size);
            let bytes = read.map_or(0, |value| value.bytes());
            sum = sum.saturating_add(bytes);
            if bytes > 0 {
                last = Some(write.text.span);
            }
        }
    }
    // A machine without memory has been reported.
    let Some(span) = last.filter(|_| memory > 0 && sum > memory) else { return };
    let shown =
        if sum == u64::MAX { "more than any machine has".to_owned() } else { show_size(sum) };
    let message = format!(
        "memory.min of the groups below the root adds up to {shown}, but the machine has {}",
        show_size(memory)
    );
    sink.hinted(span, message, "protect less, or give the machine more memory");
}

/// Orders the groups so that each comes after its parent. Reports cycles.
fn parents_first(
    list: &[RawGroup],
    parents: &[Option<usize>],
    sink: &mut ProblemSink,
) -> Vec<usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum VisitState {
        New,
        Open,
        Done,
    }
    let mut states = vec![VisitState::New; list.len()];
    let mut order = Vec::with_capacity(list.len());
    for start in 0..list.len() {
        let mut path = Vec::new();
        let mut next = Some(start);
        while let Some(index) = next.filter(|index| states[*index] == VisitState::New) {
            states[index] = VisitState::Open;
            path.push(index);
            next = parents[index];
        }
        if let Some(index) = next.filter(|index| states[*index] == VisitState::Open) {
            if let Some(parent) = &list[index].table.parent {
                let name = list[index].table.name.as_ref().map_or("", |name| &name.value.0);
                let message = format!("the group `{}` is its own ancestor", clip(name));
                sink.hinted(
                    parent.span,
                    message,
                    "remove `parent` from one of the groups in the cycle",
                );
            }
        }
        for index in path.into_iter().rev() {
            states[index] = VisitState::Done;
            order.push(index);
        }
    }
    order
}

impl GroupIndex<'_> {
    /// The group of a copy of a task that names `group`.
    pub(super) fn of_copy(&self, group: usize, copy: usize) -> usize {
        group + self.copies.get(&group).map_or(0, |nr| copy % nr)
    }

    /// The group that a task is in when it starts.
    pub(super) fn of_task(&self, name: &Spanned<NameKey>, sink: &mut ProblemSink) -> Option<usize> {
        let group = self.names.find(name, sink)?;
        if !self.list[group].at_start {
            let message =
                format!("the group `{}` does not exist at the start", clip(&name.value.0));
            let hint =
                "leave `group` out, and let the task enter with workload = \"join-group\" after a \
                        create-group";
            sink.push(SpannedProblem {
                span: name.span,
                message,
                hint: Some(hint.into()),
                also: self.names.span(&name.value.0).map(|span| (span, "the group".into())),
            });
        }
        Some(group)
    }

    /// The group that `target` names, if it names exactly one.
    fn find(&self, target: &GroupTarget) -> Option<usize> {
        let (name, copy) = target.parts();
        let first = self.names.get(name)?;
        if self.invalid_copies.contains(&first) {
            return Some(first);
        }
        match (self.copies.get(&first), copy) {
            (None, None) => Some(first),
            (Some(&nr), Some(copy)) => {
                let copy: usize = copy.parse().ok()?;
                // The copy's exact name: `1`, not `01`.
                let is_one = copy < nr && target.0 == self.list[first + copy].name;
                is_one.then_some(first + copy)
            }
            (None, Some(_)) | (Some(_), None) => None,
        }
    }

    /// The group that a task names; reports an unknown group, or one with several copies.
    pub(crate) fn find_one(
        &self,
        target: &Spanned<GroupTarget>,
        sink: &mut ProblemSink,
    ) -> Option<usize> {
        let found = self.find(&target.value);
        if found.is_some() {
            return found;
        }
        let (name, copy) = target.value.parts();
        let Some(first) = self.names.get(name) else {
            return self.names.find_text(name, target.span, sink);
        };
        let name = clip(name);
        let (message, hint) = match (self.copies.get(&first), copy) {
            (Some(_), None) => (
                format!("`{name}` has several copies"),
                format!("say which: \"{name}.0\", for example"),
            ),
            (nr, _) => (
                format!("there is no group `{}`", clip(&target.value.0)),
                match nr {
                    Some(nr) => format!("it has copies `{name}.0` to `{name}.{}`", nr - 1),
                    None => format!("`{name}` has one copy: write \"{name}\""),
                },
            ),
        };
        sink.hinted(target.span, message, hint);
        None
    }

    /// A group of which a watcher reads or writes `file`, so that it must exist at the start and have
    /// a memory controller.
    pub(crate) fn with_memory(
        &self,
        target: &Spanned<GroupTarget>,
        file: &str,
        sink: &mut ProblemSink,
    ) -> Option<usize> {
        let group = self.find_one(target, sink)?;
        self.is_watchable(group, target, file, sink).then_some(group)
    }

    /// The group that `target` names, or all its copies.
    pub(crate) fn every_copy(
        &self,
        target: &Spanned<GroupTarget>,
        file: &str,
        sink: &mut ProblemSink,
    ) -> Vec<usize> {
        let first = self.names.get(&target.value.0);
        let copies = first.and_then(|first| Some((first, *self.copies.get(&first)?)));
        match copies {
            Some((first, nr)) if self.is_watchable(first, target, file, sink) => {
                (first..first + nr).collect()
            }
            Some(_) => Vec::new(),
            None => self.with_memory(target, file, sink).into_iter().collect(),
        }
    }

    fn is_watchable(
        &self,
        group: usize,
        target: &Spanned<GroupTarget>,
        file: &str,
        sink: &mut ProblemSink,
    ) -> bool {
        let (of, name) = (&self.list[group], clip(&target.value.0));
        let (message, hint) = if !of.has_memory {
            let message = format!("the group `{name}` has no memory controller, so no {file}");
            (message, "an ancestor has subtree_control = \"none\"")
        } else if !of.at_start {
            let message = format!("the group `{name}` does not exist at the start");
            (message, "a watcher needs a group that exists: leave out `at_start`")
        } else {
            return true;
        };
        sink.hinted(target.span, message, hint);
        false
    }

    /// The group that a task makes.
    pub(crate) fn create(
        &self,
        name: &Spanned<GroupTarget>,
        sink: &mut ProblemSink,
    ) -> Option<usize> {
        let group = self.find_one(name, sink)?;
        if self.list[group].at_start && !self.removed.contains(&group) {
            let message =
                format!("the group `{}` already exists at the start", clip(&name.value.0));
            let hint = "write at_start = false in its [[group]], or remove the group first";
            sink.push(SpannedProblem {
                span: name.span,
                message,
                hint: Some(hint.into()),
                also: self.names.span(name.value.parts().0).map(|span| (span, "the group".into())),
            });
        }
        Some(group)
    }

    /// A write of a task to a control file of the group `target`, or of the machine.
    pub(super) fn task_write(
        &self,
        (control, text): (&Spanned<String>, &Spanned<String>),
        target: Option<(SourceSpan, usize)>,
        policies: &PolicyChoices,
        sink: &mut ProblemSink,
    ) -> Option<TargetWrite> {
        let is_group_s = GroupControl::find(&control.value).is_some();
        let of_zram = ZramWrite::read(&control.value, &text.value);
        let is_lru_gen = control.value == LruGenWrite::NAME;
        let is_machine_s =
            find_machine_file(&control.value).is_some() || of_zram.is_some() || is_lru_gen;
        let shown = clip(&control.value);
        match target {
            None if is_group_s => {
                let hint = "name the group: target = \"batch\", for example";
                sink.hinted(control.span, format!("`{shown}` is a control file of groups"), hint);
                None
            }
            None if of_zram.is_some() => match of_zram?.map(TargetWrite::Zram) {
                Ok(write) => Some(write),
                Err(error) => {
                    sink.hinted(text.span, error.message, "the text of `echo TEXT > FILE`");
                    None
                }
            },
            None if is_lru_gen => {
                if !has_generations(policies) {
                    let message = "there is no lru_gen without the multi-generational LRU";
                    sink.hinted(control.span, message, "add lru = \"mglru\" to [policy]");
                }
                match LruGenWrite::read(&text.value) {
                    Ok(write) => Some(TargetWrite::LruGen(write)),
                    Err(error) => {
                        let hint = "`pagetide inspect FILE lru_gen` shows groups and generations";
                        sink.hinted(text.span, error.message, hint);
                        None
                    }
                }
            }
            None => {
                check_mark(control, policies, sink);
                machine_write(control, text, sink).map(TargetWrite::Machine)
            }
            Some((target, _)) if is_machine_s => {
                let message = format!("`{shown}` is a control file of the machine");
                sink.hinted(target, message, "leave out `target`");
                None
            }
            Some((_, group)) => {
                if !self.list[group].has_memory {
                    report_no_memory(control, &self.list[group].name, sink);
                }
                group_write(control, text, sink).map(|write| TargetWrite::Group(group, write))
            }
        }
    }
}
