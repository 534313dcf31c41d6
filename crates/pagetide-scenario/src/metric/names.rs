//! Short texts of keys, as in records and tables: writing and reading.
//!
//! A short text is the names of the owners and of the metric, joined by dots: `pgscan_kswapd`,
//! `TASK.walltime`, `TASK.PHASE.pgfault`, `GROUP.memory.current`, `TASK.PHASE.GROUP.anon`. It does
//! not contain the kinds of its owners, so reading one needs the tasks, phases and groups of the
//! setup. If two keys have the same short text (a task and a group of one name both count
//! `pgfault`), it stands for the key that comes first in the order of [`KeyNames::read`]; the other
//! key is written in full: `group:web:pgfault`.
//!
//! Invariant: `read(text(key))` is the key, for all owners of the setup and all names that the kind
//! can have. So two metrics of a record never have the same text.

use super::declared::{self, WALLTIME};
use super::key::{MetricKey, Owner, Scope, ScopeKind};
use crate::model::Setup;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The owners of a setup.
#[derive(Clone, Debug, Default)]
pub struct KeyNames {
    /// Tasks and families of copies, with the phases of each.
    tasks: BTreeMap<Owner, BTreeSet<String>>,
    /// Groups and families of copies.
    groups: BTreeSet<Owner>,
}

impl KeyNames {
    pub fn of(setup: &Setup) -> KeyNames {
        KeyNames::of_all([setup])
    }

    /// The owners of several setups together.
    pub fn of_all<'a>(setups: impl IntoIterator<Item = &'a Setup>) -> KeyNames {
        let mut names = KeyNames::default();
        for setup in setups {
            for task in &setup.tasks {
                let owner = Owner::new(&task.name);
                for owner in [owner.family(), owner] {
                    let phases = task.phases.iter().map(|phase| phase.name.clone());
                    names.tasks.entry(owner).or_default().extend(phases);
                }
            }
            for group in &setup.groups {
                let owner = Owner::new(&group.name);
                names.groups.extend([owner.family(), owner]);
            }
        }
        names
    }

    /// The tasks and phases of the walltimes among the texts of a record without a setup.
    pub fn of_walltimes<'a>(texts: impl IntoIterator<Item = &'a str>) -> KeyNames {
        let mut names = KeyNames::default();
        let of_walltime = |text| str::rsplit_once(text, '.').filter(|it| it.1 == WALLTIME.name);
        for (owner, _) in texts.into_iter().filter_map(of_walltime) {
            let (task, phase) = match owner.rsplit_once('.') {
                Some((task, phase)) if Owner::new(owner).copy.is_none() => (task, Some(phase)),
                _ => (owner, None),
            };
            let phases = names.tasks.entry(Owner::new(task)).or_default();
            phases.extend(phase.map(str::to_owned));
        }
        names
    }

    /// The key of a text of a record. A text that is no key of the setup remains a key, without an
    /// owner ([`Scope::Unread`]), and [`KeyNames::text`] of every key is the text again.
    pub fn key(&self, text: &str) -> MetricKey {
        let read = self.read(text).filter(|key| self.text(key) == text);
        read.unwrap_or_else(|| MetricKey {
            scope: Scope::Unread,
            name: Cow::Owned(text.to_owned()),
        })
    }

    /// The text of a key in records and tables.
    pub fn text(&self, key: &MetricKey) -> String {
        let short = match &key.scope {
            Scope::Machine => key.name.to_string(),
            Scope::Unread => return key.name.to_string(),
            scope => format!("{}.{}", scope.short(), key.name),
        };
        match self.read_short(&short) {
            Some(read) if read == *key => short,
            _ => key.to_string(),
        }
    }

    /// The key of a text, short or full. `None`: the setup has no such owner.
    pub fn read(&self, text: &str) -> Option<MetricKey> {
        match text.contains(':') {
            true => text.parse().ok().filter(|key: &MetricKey| self.has(&key.scope)),
            false => self.read_short(text),
        }
    }

    /// Whether the owners of a scope are in the setup.
    fn has(&self, scope: &Scope) -> bool {
        let has_phase = |task: &Owner, phase: &String| {
            self.tasks.get(task).is_some_and(|phases| phases.contains(phase))
        };
        match scope {
            Scope::Machine | Scope::Idle | Scope::Done | Scope::Shrunk | Scope::Disk(_) => true,
            Scope::Unread => false,
            Scope::Task(task) => self.tasks.contains_key(task),
            Scope::Phase { task, phase } => has_phase(task, phase),
            Scope::Group(group) => self.groups.contains(group),
            Scope::PhaseGroup { task, phase, group } => {
                has_phase(task, phase) && self.groups.contains(group)
            }
        }
    }

    /// The first key that a short text can stand for, in the order: task, phase, group during a
    /// phase, group, machine before the run, machine after it, disk, machine.
    fn read_short(&self, text: &str) -> Option<MetricKey> {
        let key = |scope: Scope, name: &str| {
            may_have(scope.kind(), name)
                .then(|| MetricKey { scope, name: Cow::Owned(name.to_owned()) })
        };
        if !text.contains('.') {
            return key(Scope::Machine, text);
        }
        let tasks = owners(text).filter(|(task, _)| self.tasks.contains_key(task));
        let tasks: Vec<(Owner, &str)> = tasks.collect();
        let mut found = tasks.iter().find_map(|(task, rest)| key(Scope::Task(task.clone()), rest));
        let phases = || {
            tasks.iter().filter_map(|(task, rest)| {
                let (phase, rest) = rest.split_once('.')?;
                let scope = Scope::Phase { task: task.clone(), phase: phase.to_owned() };
                self.has(&scope).then_some((scope, rest))
            })
        };
        found = found.or_else(|| phases().find_map(|(scope, rest)| key(scope, rest)));
        let groups = |text| owners(text).filter(|(group, _)| self.groups.contains(group));
        found = found.or_else(|| {
            phases().find_map(|(scope, rest)| {
                groups(rest).find_map(|(group, name)| key(scope.with_group(group), name))
            })
        });
        found =
            found.or_else(|| groups(text).find_map(|(group, name)| key(Scope::Group(group), name)));
        found.or_else(|| {
            let (first, rest) = text.split_once('.')?;
            let of_run = match first {
                "idle" => key(Scope::Idle, rest),
                "done" => key(Scope::Done, rest),
                "shrunk" => key(Scope::Shrunk, rest),
                "disk" => {
                    let (disk, name) = rest.split_once('.')?;
                    key(Scope::Disk(disk.to_owned()), name)
                }
                _ => None,
            };
            of_run.or_else(|| key(Scope::Machine, text))
        })
    }
}

/// The owners that a text can start with, each with the rest of the text.
fn owners(text: &str) -> impl Iterator<Item = (Owner, &str)> {
    let plain = text.split_once('.');
    let copy = plain.and_then(|(name, rest)| {
        let (copy, _) = rest.split_once('.')?;
        let (owner, rest) = text.split_at(name.len() + 1 + copy.len());
        Some((Owner::new(owner), &rest[1..])).filter(|(owner, _)| owner.copy.is_some())
    });
    plain.map(|(name, rest)| (Owner::new(name), rest)).into_iter().chain(copy)
}

/// Whether this is the name of a metric of one line per cache or zone ([`declared::file_prefix`]).
fn is_of_file(name: &str) -> bool {
    declared::file_prefix(name).is_some_and(|file| name.starts_with(file))
}

/// Whether a scope of this kind can have a metric of this name. Metrics of tasks, and names with
/// dots, are all declared; any other name may be a kernel counter.
fn may_have(kind: ScopeKind, name: &str) -> bool {
    match kind {
        ScopeKind::Task => declared::find(kind, name).is_some(),
        ScopeKind::Machine
        | ScopeKind::Idle
        | ScopeKind::Done
        | ScopeKind::Shrunk
        | ScopeKind::Phase
            if is_of_file(name) =>
        {
            true
        }
        _ if name.is_empty() => false,
        _ => !name.contains('.') || declared::find(kind, name).is_some(),
    }
}
