//! Reactions to a shortage of memory or a disk error: the reaction of Linux, or a milder one.
//!
//! Linux: mm/oom_kill.c. cgroup version 1's `memory.oom_control` can disable the OOM killer for a
//! group (`oom_kill_disable`); a task that needs memory then waits. If a file page cannot be
//! written, Linux lets fsync() fail (`mapping_set_error`, errseq_t since 4.13) and marks the page
//! clean; some file systems retry instead (XFS for metadata: `/sys/fs/xfs/DEV/error/metadata`). The
//! switches here are Pagetide's own, for programs that can handle a failed request.
//!
//! Invariant: the switches are read after a failure, never before.

use super::Processes;
use crate::units::digest::State;

/// Reaction to a request for which reclaim finds nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum OomPolicy {
    /// Kill a task, so that the request can continue (Linux).
    #[default]
    Kill,
    /// Fail the request without killing a task.
    Fail,
}

/// Treatment of a file page after a failed write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub enum FailedWritePolicy {
    /// Mark the page clean: the data is lost with the page (Linux).
    #[default]
    Drop,
    /// Mark the page dirty, so that it is written again.
    KeepDirty,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, State)]
pub(crate) struct FailurePolicy {
    pub oom: OomPolicy,
    pub failed_write: FailedWritePolicy,
}

impl Processes {
    /// Sets the reaction to a request for which reclaim finds nothing.
    pub fn set_oom_policy(&mut self, policy: OomPolicy) {
        self.failure.oom = policy;
    }

    /// Sets the treatment of a file page after a failed write.
    pub fn set_failed_write(&mut self, policy: FailedWritePolicy) {
        self.failure.failed_write = policy;
    }
}
