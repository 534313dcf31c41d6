//! `pagetide explain`: describes a metric, a knob, a scenario key, a workload or a Linux function,
//! as text and JSON.
//!
//! All texts are declared elsewhere: metrics in the catalogue, control files and policies in the
//! core, keys and workloads in the schema of scenarios, functions in the index of the core's files,
//! the parts of Linux that are not modelled in `pagetide_scenario::names::unmodelled`.
//!
//! Invariant: every knob of the loader and every metric of a record has a topic.

mod keys;
mod knobs;
mod linux;
mod unmodelled;

use crate::csv::unit_name;
use crate::heading::wrap;
use crate::metrics::{is_end, of_moment};
use crate::pattern::{ends_with_name, matching};
use pagetide_core::stats::event::TraceEvent;
use pagetide_scenario::load::PluginNames;
use pagetide_scenario::metric::catalogue::{self, MetricEntry};
use pagetide_scenario::metric::{better, declared, MetricDirection, ScopeKind as Scope};
use pagetide_scenario::names::near::nearest_few;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Most names to suggest.
const SUGGESTED: usize = 3;
/// More topics than this are listed with one line each.
const IN_FULL: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TopicKind {
    /// A metric of records.
    Metric,
    /// A control file of the machine.
    Sysctl,
    /// A control file of groups.
    GroupFile,
    /// A control file of a cache of kernel objects.
    CacheFile,
    /// A file of debugfs.
    DebugFile,
    /// A choice of built-in behaviour.
    Policy,
    /// A key of scenario files.
    Key,
    Workload,
    /// A Linux function that the core implements.
    LinuxFunction,
    /// A part of Linux that Pagetide does not model.
    NotModelled,
}

impl TopicKind {
    pub fn words(self) -> &'static str {
        match self {
            TopicKind::Metric => "metric",
            TopicKind::Sysctl => "sysctl",
            TopicKind::GroupFile => "control file of groups",
            TopicKind::CacheFile => "control file of caches",
            TopicKind::DebugFile => "file of debugfs",
            TopicKind::Policy => "policy",
            TopicKind::Key => "key of scenarios",
            TopicKind::Workload => "workload",
            TopicKind::LinuxFunction => "Linux function",
            TopicKind::NotModelled => "not modelled",
        }
    }
}

/// A value or key with its meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TopicChoice {
    /// The value, key or function.
    pub name: String,
    /// One sentence.
    pub about: String,
}

/// A name with its declaration. Fields that do not apply are empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Topic {
    /// The name that is explained.
    pub name: String,
    pub kind: TopicKind,
    /// One sentence.
    pub about: String,
    /// Unit of a metric.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Which direction of a metric is better; empty for neither.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub better: String,
    /// Owners of a metric, or the workload of a key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// Unit and range of accepted values.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub takes: String,
    /// Default value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub default: String,
    /// Kernels that have it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub since: String,
    /// The file, field or call in Linux. "Pagetide": not in Linux.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub linux: String,
    /// Linux functions, each with the core's files that implement it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<TopicChoice>,
    /// The nearest thing in Pagetide, for a part of Linux that is not modelled.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instead: String,
    /// Command line option.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub set: String,
    /// Its values or keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<TopicChoice>,
    /// Document with details.
    pub document: String,
}

impl Topic {
    fn new(kind: TopicKind, name: impl Into<String>, about: impl Into<String>) -> Topic {
        let empty = String::new;
        Topic {
            name: name.into(),
            kind,
            about: about.into(),
            unit: empty(),
            better: empty(),
            of: Vec::new(),
            takes: empty(),
            default: empty(),
            since: empty(),
            linux: empty(),
            functions: Vec::new(),
            instead: empty(),
            set: empty(),
            choices: Vec::new(),
            document: empty(),
        }
    }
}

/// All topics, for a program with these plug-in policies.
pub fn all(plugins: &PluginNames) -> Vec<Topic> {
    let index = linux::index();
    let mut all: Vec<Topic> = catalogue::all().iter().map(metric).collect();
    all.extend(knobs::all(&index));
    all.extend(keys::all(plugins));
    all.extend(index.into_iter().map(linux::topic));
    all.extend(unmodelled::all());
    all
}

fn metric(entry: &MetricEntry) -> Topic {
    let of = entry.of.iter().map(|kind| kind.word().to_owned()).collect();
    let better = match entry.of.first().map(|kind| better::of_name(*kind, &entry.name)) {
        Some(MetricDirection::Less) => "less",
        Some(MetricDirection::More) => "more",
        Some(MetricDirection::Work) => "less, but only as a means: it is work of the machine",
        Some(MetricDirection::Neither) | None => "",
    };
    let first = entry.of.iter().find_map(|kind| declared::find(*kind, &entry.name));
    let is_of_groups = entry.source == "/proc/vmstat" && entry.of.contains(&Scope::Group);
    let linux = match first.map_or("", |declared| declared.v1_name) {
        "" if is_of_groups => format!("{}; of groups: memory.stat", entry.source),
        "" => entry.source.to_owned(),
        version_1 => format!("{}; version 1 of cgroups: {version_1}", entry.source),
    };
    Topic {
        unit: unit_name(entry.unit).to_owned(),
        better: better.to_owned(),
        of,
        linux,
        document: "docs/scenario.md#report".to_owned(),
        ..Topic::new(TopicKind::Metric, entry.name.clone(), entry.about.clone())
    }
}

/// The topics that match a pattern: a name with owner (`stream.walltime`, `group.web.memory.high`,
/// `sysctl.vm.swappiness`) or without (`swappiness`), a part of names, or a pattern with `*`.
pub fn find<'a>(all: &'a [Topic], pattern: &str) -> Vec<&'a Topic> {
    if let Some(topic) = unmodelled::find(all, pattern) {
        return vec![topic];
    }
    if let Some((kind, of_it)) = of_moment(pattern) {
        let found = matching(all, |topic| &topic.name, of_it, &[&|name: &str| is_end(of_it, name)]);
        let has_kind = |topic: &&Topic| topic.of.iter().any(|of| of == kind.word());
        return found
            .into_iter()
            .filter(|it| it.kind == TopicKind::Metric && has_kind(it))
            .collect();
    }
    let is_end = |name: &str| is_end(pattern, name);
    // `slab.dentry.min_partial` of `slab.CACHE.min_partial`, `task.web.accesses` of
    // `task.accesses`. A metric or a control file has no name in the middle: `memory.swap.high` is
    // not `memory.high`.
    let has_owner = |topic: &&Topic| matches!(topic.kind, TopicKind::Key | TopicKind::CacheFile);
    let owned: BTreeSet<&str> = all.iter().filter(has_owner).map(|it| it.name.as_str()).collect();
    let is_of_one = |name: &str| {
        let (Some((first, _)), Some((_, last))) = (name.split_once('.'), name.rsplit_once('.'))
        else {
            return false;
        };
        let parts: Vec<&str> = pattern.split('.').collect();
        let is_it = parts.first() == Some(&first) && parts.last() == Some(&last);
        parts.len() > 2 && is_it && owned.contains(name)
    };
    let is_last = |name: &str| ends_with_name(name, pattern);
    let found = matching(all, |topic| &topic.name, pattern, &[&is_end, &is_of_one, &is_last]);
    if !found.is_empty() || !is_constant(pattern) {
        return found;
    }
    // A Linux constant (`MADV_COLLAPSE`) is a word in a description.
    let says = |about: &str| about.split(|c: char| !is_of_constant(c)).any(|word| word == pattern);
    let is_said = |topic: &&Topic| {
        says(&topic.about) || topic.choices.iter().any(|choice| says(&choice.about))
    };
    all.iter().filter(is_said).collect()
}

fn is_of_constant(c: char) -> bool {
    c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'
}

fn is_constant(text: &str) -> bool {
    text.contains('_') && text.chars().all(is_of_constant)
}

/// The hint if a pattern matches nothing.
pub fn unknown_name_hint(all: &[Topic], pattern: &str) -> String {
    if TraceEvent::NAMES.contains(&pattern) {
        return "it is an event of `run --events`; docs/outputs.md lists its fields".to_owned();
    }
    match nearest_few(pattern, all.iter().map(|topic| topic.name.as_str()), SUGGESTED).as_slice() {
        [] => {
            "`pagetide explain '*'` lists all names; `pagetide metrics` those of metrics".to_owned()
        }
        near => format!("did you mean `{}`?", near.join("`, or `")),
    }
}

/// The topics in lines of at most `width` characters: in full, or one line each if the pattern has
/// `*` or matches many.
pub fn text(topics: &[&Topic], pattern: &str, width: usize) -> String {
    let width = width.max(40);
    if pattern.contains('*') || topics.len() > IN_FULL {
        return list(topics, width);
    }
    let texts: Vec<String> = topics.iter().map(|topic| in_full(topic, width)).collect();
    texts.join("\n")
}

fn list(topics: &[&Topic], width: usize) -> String {
    let mut out = String::new();
    for topic in topics {
        let of = match topic.kind {
            TopicKind::Key if !topic.of.is_empty() => {
                format!(" of workload {}", topic.of.join(", "))
            }
            _ => String::new(),
        };
        let line =
            format!("{} ({}{of}): {}", topic.name, topic.kind.words(), first_line(&topic.about));
        for (at, line) in wrap(&line, width - 4).iter().enumerate() {
            writeln!(out, "{}{line}", if at == 0 { "" } else { "    " }).expect("to a string");
        }
    }
    out
}

/// The first sentence.
fn first_line(about: &str) -> &str {
    about.split_once(". ").map_or(about, |(first, _)| first).trim_end_matches('.')
}

fn in_full(topic: &Topic, width: usize) -> String {
    let mut out = String::new();
    writeln!(out, "{} ({})", topic.name, topic.kind.words()).expect("to a string");
    for line in wrap(&topic.about, width - 4) {
        writeln!(out, "    {line}").expect("to a string");
    }
    let of = topic.of.join(", ");
    let of_what = if topic.kind == TopicKind::Key { "workload" } else { "of" };
    for (label, text) in [
        ("unit", &topic.unit),
        ("better", &topic.better),
        (of_what, &of),
        ("takes", &topic.takes),
        ("default", &topic.default),
        ("since", &topic.since),
        ("Linux", &topic.linux),
        ("nearest", &topic.instead),
    ] {
        fact(&mut out, label, text, width);
    }
    for function in &topic.functions {
        fact(&mut out, "function", &format!("{}, in {}", function.name, function.about), width);
    }
    fact(&mut out, "set", &topic.set, width);
    fact(&mut out, "read", &topic.document, width);
    for choice in &topic.choices {
        let line = format!("{}: {}", choice.name, choice.about);
        for (at, line) in wrap(&line, width.max(40) - 8).iter().enumerate() {
            writeln!(out, "{}{line}", if at == 0 { "    - " } else { "      " })
                .expect("to a string");
        }
    }
    out
}

/// A label with its text; nothing without text.
fn fact(out: &mut String, label: &str, text: &str, width: usize) {
    for (at, line) in wrap(text, width - 13).iter().filter(|line| !line.is_empty()).enumerate() {
        writeln!(out, "    {:<9}{line}", if at == 0 { label } else { "" }).expect("to a string");
    }
}

#[cfg(test)]
mod tests;
