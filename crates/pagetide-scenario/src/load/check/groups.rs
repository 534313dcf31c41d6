//! `[[group]]`, and the operations of tasks on groups: parents must exist, and exist in time; the
//! machine must have the memory that `memory.min` protects; the kernel must accept the writes.

use super::knobs::{
    check_mark, find_machine_file, group_write, group_writes, machine_write, value_of,
};
use super::names::{need, Names};
use crate::load::decode::{Name, Target};
use crate::load::raw::Group as RawGroup;
use crate::load::span::{clip, At, Problem, Sink, Span};
use crate::load::units::show_size;
use crate::model::{Group, Write};
use crate::names::SubtreeControl;
use crate::policies::Policies;
use pagetide_core::control::GroupControl;
use std::collections::{BTreeMap, BTreeSet};

/// Deepest nesting of groups: every charge and every count walks up the path.
const DEPTH_MAX: u32 = 128;

/// The groups of a scenario, by their index in the setup: parents before children.
#[derive(Debug)]
pub(crate) struct Groups<'a> {
    pub(crate) names: Names<'a>,
    /// What the setup gets.
    pub(super) list: Vec<Group>,
    /// How many copies there are of those that are not alone, by the first.
    copies: BTreeMap<usize, usize>,
    /// Those of which nobody knows how many copies there are: that was reported.
    unsure: BTreeSet<usize>,
    /// Those that some task removes.
    removed: BTreeSet<usize>,
    /// Where it is said that groups have no memory controller, if some have none.
    pub(super) without_memory: Option<Span>,
}

/// Checks the groups of a machine with so many bytes of memory. `removed`: names of those that some task
/// removes.
pub(super) fn check<'a>(
    list: &'a [RawGroup],
    is_incomplete: bool,
    removed: impl Iterator<Item = &'a Target>,
    memory: u64,
    sink: &mut Sink,
) -> Groups<'a> {
    let mut given = Names::new("group");
    given.is_incomplete = is_incomplete;
    for (index, group) in list.iter().enumerate() {
        let place = (group.table.at, group.table.bad.as_slice());
        match need(&group.table.name, "name", place, "the group", "\"batch\"", sink) {
            Some(name) => given.insert(&name.value.0, name.span, index, sink),
            None => given.is_incomplete = true,
        }
    }
    let parents: Vec<Option<usize>> = list
        .iter()
        .map(|group| group.table.parent.as_ref().and_then(|parent| given.find(parent, sink)))
        .collect();
    let order = parents_first(list, &parents, sink);
    let mut names = Names::new("group");
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
        // Of a circle, which was reported, the last has none.
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
            sink.hinted(name.span, message, format!("groups may be {DEPTH_MAX} levels deep"));
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
            let message =
                format!("the group `{group}` has no memory controller to hand on (ENOENT)");
            let hint = "a group around it says subtree_control = \"none\": leave it out here";
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
    let mut groups =
        Groups { names, list: groups, copies, unsure, removed: BTreeSet::new(), without_memory };
    groups.removed = removed.filter_map(|target| groups.find(target)).collect();
    groups
}

/// A group without a memory controller has no files of one.
fn report_no_memory(control: &At<String>, group: &str, sink: &mut Sink) {
    let known = GroupControl::find(&control.value);
    if known.is_some_and(|control| !control.is_of_cpu()) {
        let (control_name, group) = (clip(&control.value), clip(group));
        let message =
            format!("the group `{group}` has no memory controller, and no {control_name}");
        let hint = "a group around it says subtree_control = \"none\"";
        sink.hinted(control.span, message, hint);
    }
}

/// Copies have no groups in them, and are there from the start: nobody could say which is meant.
fn report_bad_copies(list: &[RawGroup], index: usize, parents: &[Option<usize>], sink: &mut Sink) {
    let group = &list[index];
    let Some(copies) = &group.table.copies else { return };
    if !is_at_start(group) {
        let hint = "leave out `at_start`, or write the groups one by one";
        sink.hinted(copies.span, "copies of a group are there at the start", hint);
    }
    let child = list.iter().zip(parents).find(|(_, parent)| **parent == Some(index));
    if let Some(at) = child.and_then(|(child, _)| child.table.parent.as_ref()) {
        let hint = "write the groups one by one, or leave out `copies`";
        sink.hinted(at.span, "the parent is several groups", hint);
    }
}

fn is_at_start(group: &RawGroup) -> bool {
    group.table.at_start.as_ref().is_none_or(|at_start| at_start.value)
}

fn report_late_parent(group: &RawGroup, parent: &Group, sink: &mut Sink) {
    let (Some(name), Some(at)) = (&group.table.name, &group.table.parent) else { return };
    let (name, parent) = (clip(&name.value.0), clip(&parent.name));
    let message = format!("the group `{name}` is there at the start, its parent `{parent}` is not");
    sink.hinted(at.span, message, "write at_start = false here too, or take another parent");
}

/// Reports `memory.min` of groups that are there at the start beyond what the machine has. Only
/// groups below the root count: what is protected further down is a part of that.
fn check_protection(list: &[RawGroup], memory: u64, sink: &mut Sink) {
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
    // A machine of no memory has been reported.
    let Some(span) = last.filter(|_| memory > 0 && sum > memory) else { return };
    let shown = if sum == u64::MAX { "all there is".to_owned() } else { show_size(sum) };
    let message = format!(
        "memory.min of the groups below the root comes to {shown}, the machine has {}",
        show_size(memory)
    );
    sink.hinted(span, message, "protect less, or give the machine more memory");
}

/// An order of the groups in which each comes after its parent. Reports cycles.
fn parents_first(list: &[RawGroup], parents: &[Option<usize>], sink: &mut Sink) -> Vec<usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; list.len()];
    let mut order = Vec::with_capacity(list.len());
    for start in 0..list.len() {
        let mut path = Vec::new();
        let mut next = Some(start);
        while let Some(index) = next.filter(|index| states[*index] == State::New) {
            states[index] = State::Open;
            path.push(index);
            next = parents[index];
        }
        if let Some(index) = next.filter(|index| states[*index] == State::Open) {
            if let Some(parent) = &list[index].table.parent {
                let name = list[index].table.name.as_ref().map_or("", |name| &name.value.0);
                let message = format!("the group `{}` is within itself", clip(name));
                sink.hinted(parent.span, message, "let one of its parents be the root");
            }
        }
        for index in path.into_iter().rev() {
            states[index] = State::Done;
            order.push(index);
        }
    }
    order
}

impl Groups<'_> {
    /// The group of a task's copy, whose tasks name `group`.
    pub(super) fn of_copy(&self, group: usize, copy: usize) -> usize {
        group + self.copies.get(&group).map_or(0, |nr| copy % nr)
    }

    /// The group that a task runs in from its start.
    pub(super) fn of_task(&self, name: &At<Name>, sink: &mut Sink) -> Option<usize> {
        let group = self.names.find(name, sink)?;
        if !self.list[group].at_start {
            let message = format!("the group `{}` is not there at the start", clip(&name.value.0));
            let hint =
                "leave it out, and let the task enter with workload = \"join-group\" after a \
                        create-group";
            sink.push(Problem {
                span: name.span,
                message,
                hint: Some(hint.into()),
                also: self.names.span(&name.value.0).map(|span| (span, "the group".into())),
            });
        }
        Some(group)
    }

    /// The group that is meant, if it is one.
    fn find(&self, target: &Target) -> Option<usize> {
        let (name, copy) = target.parts();
        let first = self.names.get(name)?;
        if self.unsure.contains(&first) {
            return Some(first);
        }
        match (self.copies.get(&first), copy) {
            (None, None) => Some(first),
            (Some(&nr), Some(copy)) => {
                let copy: usize = copy.parse().ok()?;
                // The name that it has: 1, not 01.
                let is_one = copy < nr && target.0 == self.list[first + copy].name;
                is_one.then_some(first + copy)
            }
            (None, Some(_)) | (Some(_), None) => None,
        }
    }

    /// The one group that a task names; reports one that there is not, and several.
    pub(crate) fn one(&self, target: &At<Target>, sink: &mut Sink) -> Option<usize> {
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

    /// The group that a task makes.
    pub(crate) fn create(&self, name: &At<Target>, sink: &mut Sink) -> Option<usize> {
        let group = self.one(name, sink)?;
        if self.list[group].at_start && !self.removed.contains(&group) {
            let message = format!("the group `{}` is there from the start", clip(&name.value.0));
            let hint = "write at_start = false in its [[group]], or remove it before";
            sink.push(Problem {
                span: name.span,
                message,
                hint: Some(hint.into()),
                also: self.names.span(name.value.parts().0).map(|span| (span, "the group".into())),
            });
        }
        Some(group)
    }

    /// What a task writes to a control file, of the group that `target` names or of the machine.
    pub(super) fn task_write(
        &self,
        (control, text): (&At<String>, &At<String>),
        target: Option<(Span, usize)>,
        policies: &Policies,
        sink: &mut Sink,
    ) -> Option<Write> {
        let is_group_s = GroupControl::find(&control.value).is_some();
        let is_machine_s = find_machine_file(&control.value).is_some();
        let shown = clip(&control.value);
        match target {
            None if is_group_s => {
                let hint = "add target = \"batch\", the group";
                sink.hinted(control.span, format!("`{shown}` is a control file of groups"), hint);
                None
            }
            None => {
                check_mark(control, policies, sink);
                machine_write(control, text, sink).map(Write::Machine)
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
                group_write(control, text, sink).map(|write| Write::Group(group, write))
            }
        }
    }
}
