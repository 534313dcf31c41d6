//! The key of a metric: its scope and its name.
//!
//! A key has two texts. The full text, written here, contains the kind of its scope and can be read
//! without the setup: `group:web:memory.current`. The short text, in records and tables, is
//! `web.memory.current` ([`super::KeyNames`]).
//!
//! Invariant: `key.to_string().parse()` returns the same key, unless its scope is
//! [`Scope::Unread`]. Names of tasks, phases, groups and disks contain neither dots nor colons;
//! names of metrics contain no colons.

use super::declared::MetricDecl;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A task or a group: its name in the scenario, and the number of the copy if there are several.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    pub name: String,
    /// Number of the copy; `None`: there are no copies, or this is all copies together.
    pub copy: Option<u32>,
}

impl Owner {
    /// Parses the name in a setup: `NAME` or `NAME.COPY`.
    pub fn new(text: &str) -> Owner {
        let copy = text.rsplit_once('.').and_then(|(name, copy)| {
            let is_number = copy.bytes().all(|byte| byte.is_ascii_digit());
            Some((name, copy.parse().ok().filter(|_| is_number)?))
        });
        match copy {
            Some((name, copy)) => Owner { name: name.to_owned(), copy: Some(copy) },
            None => Owner { name: text.to_owned(), copy: None },
        }
    }

    /// All copies together.
    pub fn family(&self) -> Owner {
        Owner { name: self.name.clone(), copy: None }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.copy {
            Some(copy) => write!(f, "{}.{copy}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The owner and the interval of a metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The machine, over the whole run or the lifetime of the task that is measured.
    Machine,
    /// The machine from boot to the start of the run (on a real kernel only).
    Idle,
    /// The machine from the start of the run until the last task has done its work. Memory that the
    /// programs free when they end is not yet free.
    Done,
    /// The machine after the run, when the CPUs have flushed their cached slabs.
    Shrunk,
    /// A disk of the guest.
    Disk(String),
    Task(Owner),
    /// The machine during a phase of a task, and the task itself.
    Phase {
        task: Owner,
        phase: String,
    },
    /// A group, over the whole run.
    Group(Owner),
    /// A group during a phase of a task.
    PhaseGroup {
        task: Owner,
        phase: String,
        group: Owner,
    },
    /// Unknown: the name is a text that is no key of the setup. Records of other versions and
    /// scenarios have such texts.
    Unread,
}

/// A [`Scope`] without its owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScopeKind {
    Machine,
    Idle,
    Done,
    Shrunk,
    Disk,
    Task,
    Phase,
    Group,
    PhaseGroup,
    #[serde(skip)]
    Unread,
}

impl ScopeKind {
    /// The kinds of metrics: all but [`ScopeKind::Unread`].
    pub const ALL: [ScopeKind; 9] = [
        ScopeKind::Machine,
        ScopeKind::Idle,
        ScopeKind::Done,
        ScopeKind::Shrunk,
        ScopeKind::Disk,
        ScopeKind::Task,
        ScopeKind::Phase,
        ScopeKind::Group,
        ScopeKind::PhaseGroup,
    ];

    /// The first word of a full text.
    pub const fn word(self) -> &'static str {
        match self {
            ScopeKind::Machine => "machine",
            ScopeKind::Idle => "idle",
            ScopeKind::Done => "done",
            ScopeKind::Shrunk => "shrunk",
            ScopeKind::Disk => "disk",
            ScopeKind::Task => "task",
            ScopeKind::Phase => "phase",
            ScopeKind::Group => "group",
            ScopeKind::PhaseGroup => "phase-group",
            ScopeKind::Unread => "unread",
        }
    }
}

impl Scope {
    pub fn kind(&self) -> ScopeKind {
        match self {
            Scope::Machine => ScopeKind::Machine,
            Scope::Idle => ScopeKind::Idle,
            Scope::Done => ScopeKind::Done,
            Scope::Shrunk => ScopeKind::Shrunk,
            Scope::Disk(_) => ScopeKind::Disk,
            Scope::Task(_) => ScopeKind::Task,
            Scope::Phase { .. } => ScopeKind::Phase,
            Scope::Group(_) => ScopeKind::Group,
            Scope::PhaseGroup { .. } => ScopeKind::PhaseGroup,
            Scope::Unread => ScopeKind::Unread,
        }
    }

    /// The key of a declared metric of this scope.
    pub fn metric(&self, metric: &MetricDecl) -> MetricKey {
        self.named(metric.name)
    }

    /// The key of the metric of this scope with this name.
    pub fn named(&self, name: &'static str) -> MetricKey {
        MetricKey { scope: self.clone(), name: Cow::Borrowed(name) }
    }

    /// Its task or group; of a group during a phase, the task.
    pub fn owner(&self) -> Option<&Owner> {
        match self {
            Scope::Task(owner)
            | Scope::Group(owner)
            | Scope::Phase { task: owner, .. }
            | Scope::PhaseGroup { task: owner, .. } => Some(owner),
            Scope::Machine
            | Scope::Idle
            | Scope::Done
            | Scope::Shrunk
            | Scope::Disk(_)
            | Scope::Unread => None,
        }
    }

    /// The scope of a group during this phase; if this is not a phase, of the group alone.
    pub fn with_group(&self, group: Owner) -> Scope {
        match self {
            Scope::Phase { task, phase } => {
                Scope::PhaseGroup { task: task.clone(), phase: phase.clone(), group }
            }
            _ => Scope::Group(group),
        }
    }

    /// The scope of all copies of its task or group; `None` if it is not the scope of a copy.
    pub fn family(&self) -> Option<Scope> {
        match self {
            Scope::Task(task) => task.copy.map(|_| Scope::Task(task.family())),
            Scope::Phase { task, phase } => {
                task.copy.map(|_| Scope::Phase { task: task.family(), phase: phase.clone() })
            }
            Scope::Group(group) => group.copy.map(|_| Scope::Group(group.family())),
            Scope::PhaseGroup { task, phase, group } => task.copy.map(|_| Scope::PhaseGroup {
                task: task.family(),
                phase: phase.clone(),
                group: group.clone(),
            }),
            Scope::Machine
            | Scope::Idle
            | Scope::Done
            | Scope::Shrunk
            | Scope::Disk(_)
            | Scope::Unread => None,
        }
    }

    /// The owners in front of the metric's name in a short text: `TASK.PHASE`. Empty: the machine.
    pub fn short(&self) -> String {
        match self {
            Scope::Machine | Scope::Unread => String::new(),
            Scope::Idle | Scope::Done | Scope::Shrunk => self.kind().word().to_owned(),
            Scope::Disk(disk) => format!("disk.{disk}"),
            Scope::Task(owner) | Scope::Group(owner) => owner.to_string(),
            Scope::Phase { task, phase } => format!("{task}.{phase}"),
            Scope::PhaseGroup { task, phase, group } => format!("{task}.{phase}.{group}"),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind().word())?;
        match self {
            Scope::Machine | Scope::Idle | Scope::Done | Scope::Shrunk | Scope::Unread => Ok(()),
            Scope::Disk(disk) => write!(f, ":{disk}"),
            Scope::Task(owner) | Scope::Group(owner) => write!(f, ":{owner}"),
            Scope::Phase { task, phase } => write!(f, ":{task}:{phase}"),
            Scope::PhaseGroup { task, phase, group } => write!(f, ":{task}:{phase}:{group}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MetricKey {
    pub scope: Scope,
    pub name: Cow<'static, str>,
}

impl fmt::Display for MetricKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.scope, self.name)
    }
}

/// The text is not a full key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a full key is KIND:OWNERS:NAME, such as task:T:NAME, phase:T:P:NAME, group:G:NAME")]
pub struct KeyError;

impl FromStr for MetricKey {
    type Err = KeyError;

    /// Parses a full text.
    fn from_str(text: &str) -> Result<MetricKey, KeyError> {
        let parts: Vec<&str> = text.split(':').collect();
        let (word, owners, name) = match parts.as_slice() {
            [word, owners @ .., name] => (*word, owners, *name),
            _ => return Err(KeyError),
        };
        let kind = ScopeKind::ALL.into_iter().find(|kind| kind.word() == word).ok_or(KeyError)?;
        if name.is_empty() || owners.iter().any(|owner| owner.is_empty()) {
            return Err(KeyError);
        }
        let scope = match (kind, owners) {
            (ScopeKind::Machine, []) => Scope::Machine,
            (ScopeKind::Idle, []) => Scope::Idle,
            (ScopeKind::Done, []) => Scope::Done,
            (ScopeKind::Shrunk, []) => Scope::Shrunk,
            (ScopeKind::Disk, [disk]) => Scope::Disk((*disk).to_owned()),
            (ScopeKind::Task, [task]) => Scope::Task(Owner::new(task)),
            (ScopeKind::Phase, [task, phase]) => {
                Scope::Phase { task: Owner::new(task), phase: (*phase).to_owned() }
            }
            (ScopeKind::Group, [group]) => Scope::Group(Owner::new(group)),
            (ScopeKind::PhaseGroup, [task, phase, group]) => Scope::PhaseGroup {
                task: Owner::new(task),
                phase: (*phase).to_owned(),
                group: Owner::new(group),
            },
            _ => return Err(KeyError),
        };
        Ok(MetricKey { scope, name: Cow::Owned(name.to_owned()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_a_name_or_a_copy() {
        for (text, name, copy) in [
            ("web", "web", None),
            ("web.3", "web", Some(3)),
            ("web.x", "web.x", None),
            ("7", "7", None),
            ("7.7", "7", Some(7)),
            ("web.99999999999", "web.99999999999", None),
            ("web.+1", "web.+1", None),
        ] {
            let owner = Owner::new(text);
            assert_eq!((owner.name.as_str(), owner.copy), (name, copy), "{text}");
            assert_eq!(owner.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in [
            "",
            "pgfault",
            "machine",
            "machine:",
            "machine:x:pgfault",
            "task:pgfault",
            "task::pgfault",
            "phase:t:pgfault",
            "group:a:b:pgfault",
            "phase-group:t:p:pgfault",
            "owner:t:pgfault",
        ] {
            assert_eq!(text.parse::<MetricKey>(), Err(KeyError), "{text}");
        }
        assert!("disk:swap:reads".parse::<MetricKey>().is_ok());
    }
}
