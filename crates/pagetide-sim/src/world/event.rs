//! Events of the simulated world, the only times at which its state changes.
//!
//! Invariant: a busy CPU or disk has exactly one event.

use crate::scheduler::GroupId;
use crate::world::threads::WorldThread;
use pagetide_core::units::Cpu;

#[derive(Clone, Copy, Debug)]
pub(crate) enum WorldEvent {
    /// The time slice of a CPU ends, or an idle CPU starts to work.
    Cpu(Cpu),
    /// A disk finishes a request.
    Disk(usize),
    /// A sleep or a throttle times out.
    Timer(WorldThread),
    /// A task starts.
    Start(usize),
    /// A timer tick while objects wait for a grace period.
    GracePeriod,
    /// A request of a task's service arrives, or its load ends.
    Arrival(usize),
    /// The period of a group's cpu.max ends.
    Period(GroupId),
}
