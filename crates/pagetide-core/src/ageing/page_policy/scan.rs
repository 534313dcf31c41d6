//! A scan of one group's pages under a page policy in progress.
//!
//! Linux has no such hook. Invariant: [`PolicyScan`] holds the whole state between two batches.

use crate::units::digest::State;

/// Scan of one group under a page policy in progress.
#[derive(Clone, Debug, State)]
pub(crate) struct PolicyScan {
    /// Pages freed so far.
    pub nr_reclaimed: u64,
    /// Priority of the group's plan.
    pub priority: i8,
    /// Pages still to look at.
    pub left: u64,
    /// Pages to free; a task stops when it has them.
    pub nr_to_reclaim: u64,
    pub has_begun: bool,
}
