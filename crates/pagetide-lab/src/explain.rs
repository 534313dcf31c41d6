//! `pagetide explain`: all that is declared of a metric, a knob, a key of scenarios, a workload, or a function of
//! Linux, as text and JSON.
//!
//! Nothing is said here that is not declared elsewhere: metrics come from the catalogue, control files and policies
//! from the core, keys and workloads from the schema of scenarios, functions from the index that is made of the
//! core's files.
//!
//! Invariant: what the loader takes as a knob and what a record has as a metric has a topic.

mod keys;
mod knobs;
mod linux;

use crate::csv::unit_name;
use crate::heading::wrap;
use crate::metrics::{is_end, of_moment};
use crate::pattern::{ends_with_name, meant};
use pagetide_core::event::TraceEvent;
use pagetide_scenario::load::PluginNames;
use pagetide_scenario::metric::catalogue::{self, Entry};
use pagetide_scenario::metric::{better, declared, Better, Kind as Scope};
use pagetide_scenario::near::nearest_few;
use serde::Serialize;
use std::fmt::Write;

/// Names to suggest at most.
const SUGGESTED: usize = 3;
/// More topics than this are listed, a line each.
const IN_FULL: usize = 6;

/// What a topic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A metric of records.
    Metric,
    /// A control file of the machine.
    Sysctl,
    /// A control file of groups.
    GroupFile,
    /// A control file of a cache of kernel objects.
    CacheFile,
    /// A choice between built-in behaviours.
    Policy,
    /// A key of scenario files.
    Key,
    /// What a task can do.
    Workload,
    /// A function of Linux that the core has.
    LinuxFunction,
}

impl Kind {
    /// The kind in words.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Metric => "metric",
            Kind::Sysctl => "sysctl",
            Kind::GroupFile => "control file of groups",
            Kind::CacheFile => "control file of caches",
            Kind::Policy => "policy",
            Kind::Key => "key of scenarios",
            Kind::Workload => "workload",
            Kind::LinuxFunction => "in Linux",
        }
    }
}

/// One of several values, or of several keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    pub name: String,
    /// What it means.
    pub about: String,
}

/// A name, and all that is declared of it. What does not apply is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Topic {
    pub name: String,
    pub kind: Kind,
    /// What it means.
    pub about: String,
    /// Of a metric: its unit.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Of a metric: which way it is better; empty for neither.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub better: String,
    /// Of a metric: what can have it; of a key: the workload that takes it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<String>,
    /// What it takes: unit and range.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub takes: String,
    /// What it is if nobody sets it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub default: String,
    /// Which kernels have it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub since: String,
    /// Where Linux has it: the file, a field, a call. "Pagetide": nowhere.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub linux: String,
    /// Functions of Linux, each with the files of the core that stand for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Choice>,
    /// The option that sets it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub set: String,
    /// The values that it can have, or the keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
    /// The document that says more.
    pub document: String,
}

impl Topic {
    fn new(kind: Kind, name: impl Into<String>, about: impl Into<String>) -> Topic {
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
            set: empty(),
            choices: Vec::new(),
            document: empty(),
        }
    }
}

/// Every topic, for a program that registers these policies.
pub fn all(plugins: &PluginNames) -> Vec<Topic> {
    let index = linux::index();
    let mut all: Vec<Topic> = catalogue::all().iter().map(metric).collect();
    all.extend(knobs::all(&index));
    all.extend(keys::all(plugins));
    all.extend(index.into_iter().map(linux::topic));
    all
}

fn metric(entry: &Entry) -> Topic {
    let of = entry.of.iter().map(|kind| kind.word().to_owned()).collect();
    let better = match entry.of.first().map(|kind| better::of_name(*kind, &entry.name)) {
        Some(Better::Less) => "less",
        Some(Better::More) => "more",
        Some(Better::Work) => "less, but it is no aim: work of the machine",
        Some(Better::Neither) | None => "",
    };
    let first = entry.of.iter().find_map(|kind| declared::find(*kind, &entry.name));
    let is_of_groups = entry.source == "/proc/vmstat" && entry.of.contains(&Scope::Group);
    let linux = match first.map_or("", |declared| declared.version_1) {
        "" if is_of_groups => format!("{}; of groups: memory.stat", entry.source),
        "" => entry.source.to_owned(),
        version_1 => format!("{}; version 1 of cgroups: {version_1}", entry.source),
    };
    Topic {
        unit: unit_name(entry.unit).to_owned(),
        better: better.to_owned(),
        of,
        linux,
        document: "docs/metrics.md".to_owned(),
        ..Topic::new(Kind::Metric, entry.name.clone(), entry.about.clone())
    }
}

/// The topics that a pattern means: a name, with what owns it (`stream.walltime`, `group.web.memory.high`,
/// `sysctl.vm.swappiness`) or without (`swappiness`), a part of names, or a pattern with `*`.
pub fn find<'a>(all: &'a [Topic], pattern: &str) -> Vec<&'a Topic> {
    if let Some((kind, of_it)) = of_moment(pattern) {
        let found = meant(all, |topic| &topic.name, of_it, &[&|name: &str| is_end(of_it, name)]);
        let has_kind = |topic: &&Topic| topic.of.iter().any(|of| of == kind.word());
        return found.into_iter().filter(|it| it.kind == Kind::Metric && has_kind(it)).collect();
    }
    let is_end = |name: &str| is_end(pattern, name);
    // `slab.dentry.min_partial` of `slab.CACHE.min_partial`, `task.web.accesses` of `task.accesses`.
    let is_of_one = |name: &str| {
        let (Some((first, _)), Some((_, last))) = (name.split_once('.'), name.rsplit_once('.'))
        else {
            return false;
        };
        let parts: Vec<&str> = pattern.split('.').collect();
        parts.len() > 2 && parts.first() == Some(&first) && parts.last() == Some(&last)
    };
    let is_last = |name: &str| ends_with_name(name, pattern);
    let found = meant(all, |topic| &topic.name, pattern, &[&is_end, &is_of_one, &is_last]);
    if !found.is_empty() || !is_constant(pattern) {
        return found;
    }
    // A constant of Linux is a word in what is said of a value: `MADV_COLLAPSE`.
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

/// What to say if a pattern means nothing.
pub fn hint(all: &[Topic], pattern: &str) -> String {
    if TraceEvent::NAMES.contains(&pattern) {
        return "it is an event of `run --events`: docs/events.md says what it has".to_owned();
    }
    match nearest_few(pattern, all.iter().map(|topic| topic.name.as_str()), SUGGESTED).as_slice() {
        [] => {
            "`pagetide explain '*'` lists all names; `pagetide metrics` those of metrics".to_owned()
        }
        near => format!("did you mean `{}`?", near.join("`, or `")),
    }
}

/// The topics in lines of at most `width` characters: all of each, or a line each if the pattern has `*` or means
/// many.
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
            Kind::Key if !topic.of.is_empty() => format!(" of workload {}", topic.of.join(", ")),
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
    let of_what = if topic.kind == Kind::Key { "workload" } else { "of" };
    for (label, text) in [
        ("unit", &topic.unit),
        ("better", &topic.better),
        (of_what, &of),
        ("takes", &topic.takes),
        ("default", &topic.default),
        ("since", &topic.since),
        ("Linux", &topic.linux),
    ] {
        fact(&mut out, label, text, width);
    }
    for function in &topic.functions {
        fact(
            &mut out,
            "function",
            &format!("{}, here in {}", function.name, function.about),
            width,
        );
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

/// A label and its text, if there is one.
fn fact(out: &mut String, label: &str, text: &str, width: usize) {
    for (at, line) in wrap(text, width - 13).iter().filter(|line| !line.is_empty()).enumerate() {
        writeln!(out, "    {:<9}{line}", if at == 0 { label } else { "" }).expect("to a string");
    }
}

/// The topics as a list of objects; a key that does not apply is missing.
pub fn json(topics: &[&Topic]) -> String {
    let text = serde_json::to_string_pretty(topics).expect("strings always serialise");
    text + "\n"
}

#[cfg(test)]
mod tests;
