//! Writes `[[group]]`: the groups that set something, and their ancestors.
//!
//! Invariant: parents come before their children; comments count what was left out; the text stays
//! below the maximum size of a scenario.

use super::idle;
use super::page::{quoted, ScenarioText};
use super::{watchers, HostImportOptions};
use crate::host::cgroup::HostGroup;
use crate::host::note::{EscapedChar, ImportNote};
use crate::host::number::{plural, show_bytes};
use crate::host::plain_names::NameAllocator;
use crate::host::snapshot::HostSnapshot;
use crate::host::vmstat;
use pagetide_core::config::{ControlForm, Sysctl};
use pagetide_core::control::GroupControl;
use pagetide_scenario::load::SCENARIO_BYTES_MAX;

/// Bytes reserved for the task that follows.
const ROOM: usize = 4096;
/// Bytes reserved for idle tasks, without those of groups.
const IDLE_ROOM: usize = 64 << 10;
/// Swappiness of a system that does not report it.
const SWAPPINESS: u64 = 60;

/// Writes the groups of a machine with `memory` bytes and `nodes` nodes; returns them with their names.
pub(super) fn write(
    page: &mut ScenarioText,
    host: &HostSnapshot,
    memory: u64,
    nodes: usize,
    options: HostImportOptions<'_>,
    names: &mut NameAllocator,
) -> Vec<(usize, String)> {
    let mut controls: Vec<Vec<(GroupControl, Option<u64>)>> =
        (0..host.groups.len()).map(|index| controls(host, index)).collect();
    if protected(host, &controls) > memory {
        let message = "memory.min left out: the groups protect more than the machine has";
        page.comment_note(ImportNote::new("/sys/fs/cgroup", message));
        controls.iter_mut().for_each(|of| of.retain(|(control, _)| *control != GroupControl::Min));
    }
    let is_kept = kept(host, &controls, options);
    let wanted = is_kept.iter().filter(|is_kept| **is_kept).count();
    if !host.groups.is_empty() {
        page.line("");
        page.comment(&format!(
            "{} of memory; {} left out that set nothing (--all-groups keeps all but the top).",
            plural(host.groups.len(), "group"),
            host.groups.len() - wanted
        ));
    }
    let mut name_of: Vec<Option<String>> = vec![None; host.groups.len()];
    let mut written: Vec<(usize, String)> = Vec::new();
    let idle_bytes = idle::GROUP_BYTES + idle::NODE_BYTES * nodes;
    for (index, group) in host.groups.iter().enumerate().filter(|(index, _)| is_kept[*index]) {
        let parent = group.parent.and_then(|parent| name_of.get(parent)).cloned().flatten();
        let name = names.name(&group.path);
        let text = one(group, &name, parent.as_deref(), &controls[index]);
        let idle = if options.as_is { IDLE_ROOM + idle_bytes * (written.len() + 1) } else { 0 };
        if page.len() + text.text_len() + idle + ROOM > SCENARIO_BYTES_MAX as usize {
            let message = format!(
                "{} left out: the scenario would be larger than {} KiB",
                plural(wanted - written.len(), "group"),
                SCENARIO_BYTES_MAX >> 10
            );
            page.comment_note(ImportNote::new("/sys/fs/cgroup", message));
            break;
        }
        text.write(page);
        name_of[index] = Some(name.clone());
        written.push((index, name));
    }
    written
}

/// Bytes of memory.min that the top-level groups request together. A scenario accepts at most the
/// memory of the machine, while the kernel accepts `max` for each group.
fn protected(host: &HostSnapshot, controls: &[Vec<(GroupControl, Option<u64>)>]) -> u64 {
    // The top group is the scenario's root if it sets nothing.
    let is_root = |index: usize| {
        host.groups[index].parent.is_none() && !sets_something(host, controls, index)
    };
    let below_root = |index: &usize| host.groups[*index].parent.is_none_or(is_root);
    let asked = (0..host.groups.len()).filter(below_root).flat_map(|index| &controls[index]);
    asked
        .filter(|(control, _)| *control == GroupControl::Min)
        .fold(0, |sum, (_, bytes)| sum.saturating_add(bytes.unwrap_or(u64::MAX)))
}

fn sets_something(
    host: &HostSnapshot,
    controls: &[Vec<(GroupControl, Option<u64>)>],
    index: usize,
) -> bool {
    !controls[index].is_empty() || host.groups[index].cpu_max.is_some()
}

/// The values that a group sets, including swappiness if it differs from the parent's.
fn controls(host: &HostSnapshot, index: usize) -> Vec<(GroupControl, Option<u64>)> {
    let group = &host.groups[index];
    let mut controls = group.controls.clone();
    let machine = host.sysctl(Sysctl::Swappiness).and_then(|text| text.parse().ok());
    let parent = group.parent.and_then(|parent| host.groups.get(parent)?.swappiness);
    let inherited = parent.or(machine).unwrap_or(SWAPPINESS);
    if let Some(own) = group.swappiness.filter(|own| *own != inherited) {
        controls.push((GroupControl::Swappiness, Some(own)));
    }
    controls
}

/// The groups to keep: those that set something or that a watcher needs, and their ancestors. The
/// top group becomes the scenario's root, unless it sets something, which is possible in a
/// container.
fn kept(
    host: &HostSnapshot,
    controls: &[Vec<(GroupControl, Option<u64>)>],
    options: HostImportOptions<'_>,
) -> Vec<bool> {
    let mut is_kept: Vec<bool> =
        (0..host.groups.len()).map(|index| sets_something(host, controls, index)).collect();
    for (index, group) in host.groups.iter().enumerate() {
        is_kept[index] |= options.all_groups && group.parent.is_some();
        is_kept[index] |= group.parent.is_some() && watchers::is_watched(host, &group.path);
    }
    // Visit children before their parents.
    for (index, group) in host.groups.iter().enumerate().rev() {
        if let Some(parent) = group.parent.filter(|parent| *parent < index && is_kept[index]) {
            let is_top = host.groups[parent].parent.is_none();
            is_kept[parent] |= !is_top;
        }
    }
    is_kept
}

/// A group's text: a comment and lines.
struct GroupText {
    comment: String,
    lines: Vec<String>,
}

impl GroupText {
    /// Upper bound of the length after line breaking: any two comment lines have at least 100
    /// columns together.
    fn text_len(&self) -> usize {
        let lines: usize = self.lines.iter().map(|line| line.len() + 1).sum();
        self.comment.len() + self.comment.len() / 16 + 16 + lines
    }

    fn write(&self, page: &mut ScenarioText) {
        page.line("");
        page.comment(&self.comment);
        self.lines.iter().for_each(|line| page.line(line));
    }
}

fn one(
    group: &HostGroup,
    name: &str,
    parent: Option<&str>,
    controls: &[(GroupControl, Option<u64>)],
) -> GroupText {
    let mut comment: String = group.path.chars().map(|c| EscapedChar(c).to_string()).collect();
    if let Some(usage) = group.usage {
        comment += &format!(": {} in use", show_bytes(usage));
        let fields = group.version.stat_fields().iter().filter_map(|(field, words)| {
            let bytes = vmstat::get(&group.stat, field)?;
            Some(format!("{words} {}", show_bytes(bytes)))
        });
        let fields: Vec<String> = fields.collect();
        if !fields.is_empty() {
            comment += &format!(" ({})", fields.join(", "));
        }
    }
    let mut lines = vec!["[[group]]".to_owned(), format!("name = {}", quoted(name))];
    lines.extend(parent.map(|parent| format!("parent = {}", quoted(parent))));
    for (control, value) in controls {
        lines.push(match value {
            None => format!("\"{}\" = \"max\"", control.name()),
            Some(value) if !matches!(control.file().form, ControlForm::Size { .. }) => {
                format!("\"{}\" = {value}", control.name())
            }
            Some(value) => format!("\"{}\" = {value} # {}", control.name(), show_bytes(*value)),
        });
    }
    if let Some(limit) = &group.cpu_max {
        lines.push(format!("\"{}\" = {}", GroupControl::CpuMax.name(), quoted(limit)));
    }
    GroupText { comment, lines }
}
