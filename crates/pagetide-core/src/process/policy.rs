//! The reaction to a shortage of memory or to a disk error: Linux's, or a milder one.
//!
//! Linux: mm/oom_kill.c; version 1's `memory.oom_control` can switch the killer off for a group
//! (`oom_kill_disable`), and a task that asks for memory then waits. A failed write of a file is told
//! to fsync() (`mapping_set_error`, errseq_t since 4.13) and the page is clean; some file systems try
//! again instead (XFS for metadata: `/sys/fs/xfs/DEV/error/metadata`). These switches are Pagetide's
//! own, for programs that can handle a failed request.
//!
//! Invariant: the switches are read after a failure, never before.

use super::Processes;
use crate::digest::State;

/// What happens when nothing can be reclaimed for a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum OomPolicy {
    /// Somebody is killed, so that the request can go on (Linux).
    #[default]
    Kill,
    /// The request fails, and nobody is killed.
    Fail,
}

/// What becomes of a file's page whose write failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum FailedWrite {
    /// It is clean: what was written is lost with the page (Linux).
    #[default]
    Drop,
    /// It is dirty again, and is written again.
    KeepDirty,
}

/// What was chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub(crate) struct FailurePolicy {
    pub oom: OomPolicy,
    pub failed_write: FailedWrite,
}

impl Processes {
    /// Chooses what happens when nothing can be reclaimed.
    pub fn set_oom_policy(&mut self, policy: OomPolicy) {
        self.failure.oom = policy;
    }

    /// Chooses what becomes of a file's page whose write failed.
    pub fn set_failed_write(&mut self, policy: FailedWrite) {
        self.failure.failed_write = policy;
    }
}
