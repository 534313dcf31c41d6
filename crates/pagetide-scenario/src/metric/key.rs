//! The key of a metric: its scope and its name.
//!
//! A key has two texts. The full text, made here, contains the kind of its scope and can be read without the
//! setup: `group:web:memory.current`. The short text, in records and tables, is `web.memory.current`
//! ([`super::Names`]).
//!
//! Invariant: `key.to_string().parse()` is the key again. Names of tasks, phases, groups and disks have
//! neither dots nor colons, and names of metrics no colons.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A task or a group: its name in the scenario, and which of several copies it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    pub name: String,
    /// Number of the copy; `None`: there are no copies, or it is all of them together.
    pub copy: Option<u32>,
}

impl Owner {
    /// The owner that a setup calls `NAME` or `NAME.COPY`.
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

/// Of what a metric is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The machine, over the whole run or the life of the task that is measured.
    Machine,
    /// The machine before the run, since it had booted (of a real kernel).
    Idle,
    /// The machine from the begin of the run until the last task had done its work, and before its program
    /// ended: without what that gives back.
    Done,
    /// The machine after the run, once the CPUs had to give back what they held of caches.
    Shrunk,
    /// A disk of the guest.
    Disk(String),
    Task(Owner),
    /// The machine during a phase of a task, and the task in it.
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
}

/// A [`Scope`] without its owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// See [`Scope::Machine`].
    Machine,
    /// See [`Scope::Idle`].
    Idle,
    /// See [`Scope::Done`].
    Done,
    /// See [`Scope::Shrunk`].
    Shrunk,
    /// See [`Scope::Disk`].
    Disk,
    /// See [`Scope::Task`].
    Task,
    /// See [`Scope::Phase`].
    Phase,
    /// See [`Scope::Group`].
    Group,
    /// See [`Scope::PhaseGroup`].
    PhaseGroup,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 9] = [
        Kind::Machine,
        Kind::Idle,
        Kind::Done,
        Kind::Shrunk,
        Kind::Disk,
        Kind::Task,
        Kind::Phase,
        Kind::Group,
        Kind::PhaseGroup,
    ];

    /// The first word of a full text.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Machine => "machine",
            Kind::Idle => "idle",
            Kind::Done => "done",
            Kind::Shrunk => "shrunk",
            Kind::Disk => "disk",
            Kind::Task => "task",
            Kind::Phase => "phase",
            Kind::Group => "group",
            Kind::PhaseGroup => "phase-group",
        }
    }
}

impl Scope {
    pub fn kind(&self) -> Kind {
        match self {
            Scope::Machine => Kind::Machine,
            Scope::Idle => Kind::Idle,
            Scope::Done => Kind::Done,
            Scope::Shrunk => Kind::Shrunk,
            Scope::Disk(_) => Kind::Disk,
            Scope::Task(_) => Kind::Task,
            Scope::Phase { .. } => Kind::Phase,
            Scope::Group(_) => Kind::Group,
            Scope::PhaseGroup { .. } => Kind::PhaseGroup,
        }
    }

    /// The scope of a group during this phase; of any other scope, of the group.
    pub fn with_group(&self, group: Owner) -> Scope {
        match self {
            Scope::Phase { task, phase } => {
                Scope::PhaseGroup { task: task.clone(), phase: phase.clone(), group }
            }
            _ => Scope::Group(group),
        }
    }

    /// The scope of all copies of its task, or of its group; `None` if it is of no copy.
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
            Scope::Machine | Scope::Idle | Scope::Done | Scope::Shrunk | Scope::Disk(_) => None,
        }
    }

    /// Its parts in front of a metric's name, as records have them: `TASK.PHASE`. Empty for the machine.
    pub fn short(&self) -> String {
        match self {
            Scope::Machine => String::new(),
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
            Scope::Machine | Scope::Idle | Scope::Done | Scope::Shrunk => Ok(()),
            Scope::Disk(disk) => write!(f, ":{disk}"),
            Scope::Task(owner) | Scope::Group(owner) => write!(f, ":{owner}"),
            Scope::Phase { task, phase } => write!(f, ":{task}:{phase}"),
            Scope::PhaseGroup { task, phase, group } => write!(f, ":{task}:{phase}:{group}"),
        }
    }
}

/// The key of a metric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub scope: Scope,
    pub name: Cow<'static, str>,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.scope, self.name)
    }
}

/// The text is not that of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a full key is KIND:OWNERS:NAME, such as task:T:NAME, phase:T:P:NAME, group:G:NAME")]
pub struct KeyError;

impl FromStr for Key {
    type Err = KeyError;

    /// Reads a full text.
    fn from_str(text: &str) -> Result<Key, KeyError> {
        let parts: Vec<&str> = text.split(':').collect();
        let (word, owners, name) = match parts.as_slice() {
            [word, owners @ .., name] => (*word, owners, *name),
            _ => return Err(KeyError),
        };
        let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word).ok_or(KeyError)?;
        if name.is_empty() || owners.iter().any(|owner| owner.is_empty()) {
            return Err(KeyError);
        }
        let scope = match (kind, owners) {
            (Kind::Machine, []) => Scope::Machine,
            (Kind::Idle, []) => Scope::Idle,
            (Kind::Done, []) => Scope::Done,
            (Kind::Shrunk, []) => Scope::Shrunk,
            (Kind::Disk, [disk]) => Scope::Disk((*disk).to_owned()),
            (Kind::Task, [task]) => Scope::Task(Owner::new(task)),
            (Kind::Phase, [task, phase]) => {
                Scope::Phase { task: Owner::new(task), phase: (*phase).to_owned() }
            }
            (Kind::Group, [group]) => Scope::Group(Owner::new(group)),
            (Kind::PhaseGroup, [task, phase, group]) => Scope::PhaseGroup {
                task: Owner::new(task),
                phase: (*phase).to_owned(),
                group: Owner::new(group),
            },
            _ => return Err(KeyError),
        };
        Ok(Key { scope, name: Cow::Owned(name.to_owned()) })
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
            "who:t:pgfault",
        ] {
            assert_eq!(text.parse::<Key>(), Err(KeyError), "{text}");
        }
        assert!("disk:swap:reads".parse::<Key>().is_ok());
    }
}
