//! Reasons for which a task or daemon is throttled.
//!
//! Linux: `enum vmscan_throttle_state`.

use crate::units::digest::State;

/// Why a task sleeps inside reclaim (Linux `enum vmscan_throttle_state`, plus the reserve).
#[derive(Clone, Copy, Debug, PartialEq, Eq, State)]
pub enum Throttle {
    /// Too many pages are under writeback: up to 100 ms, ended when writes complete.
    Writeback,
    /// Too many pages are isolated: up to 20 ms.
    Isolated,
    /// Reclaim made no progress: up to one tick.
    NoProgress,
    /// The node is congested: up to one tick.
    Congested,
    /// Reserves are below half: until kswapd has refilled them (Linux `pfmemalloc_wait`).
    Reserves,
    /// Linux 2.6.37's `congestion_wait`: up to 100 ms, ended when a disk stops being congested.
    CongestionWait,
    /// The writeback thread has filled the disk's request queue.
    Requests,
    /// A dirtier waits for writeback (`balance_dirty_pages`), by the limits of the machine.
    Dirty,
    /// The same, by the limits of its group, which are stricter.
    GroupDirty,
    /// The task's group is above `memory.high`: up to 2 s.
    MemoryHigh,
}

impl Throttle {
    /// Whether `balance_dirty_pages` throttles.
    pub const fn is_dirty(self) -> bool {
        matches!(self, Throttle::Dirty | Throttle::GroupDirty)
    }
}
