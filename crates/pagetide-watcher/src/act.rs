//! Acts of watchers: signals to processes, and writes to control files of groups.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SentSignal {
    Term,
    Kill,
}

impl fmt::Display for SentSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SentSignal::Term => "SIGTERM",
            SentSignal::Kill => "SIGKILL",
        })
    }
}

/// The target or the file of an act. Processes and groups have the numbers of the readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatcherAct {
    SignalProcess {
        pid: u32,
        signal: SentSignal,
    },
    /// To every process of the group and of its descendants.
    SignalGroup {
        group: u32,
        signal: SentSignal,
    },
    /// A write to `memory.reclaim`.
    Reclaim {
        group: u32,
        bytes: u64,
    },
    /// A write to `memory.high`.
    SetHigh {
        group: u32,
        bytes: u64,
    },
}

impl WatcherAct {
    /// Whether it ends processes.
    pub const fn is_kill(self) -> bool {
        matches!(self, WatcherAct::SignalProcess { .. } | WatcherAct::SignalGroup { .. })
    }
}

/// An act with the reason that the program logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatcherDeed {
    pub act: WatcherAct,
    pub why: String,
}

/// The acts of a watcher at one wake-up, and the time of the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatcherStep {
    pub deeds: Vec<WatcherDeed>,
    pub wake_ns: u64,
}

impl WatcherStep {
    /// Nothing to do until `wake_ns`.
    pub fn rest(wake_ns: u64) -> WatcherStep {
        WatcherStep { deeds: Vec::new(), wake_ns }
    }

    /// One act.
    pub fn act(act: WatcherAct, why: String, wake_ns: u64) -> WatcherStep {
        WatcherStep { deeds: vec![WatcherDeed { act, why }], wake_ns }
    }
}
