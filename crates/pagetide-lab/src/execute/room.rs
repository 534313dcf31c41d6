//! Memory of this computer, shared by the active runs: a run starts when its tables fit.
//!
//! Linux overcommits memory (vm.overcommit_memory), so a successful allocation proves nothing: too
//! large a simulated machine would kill the process, or stall the computer, in the middle of a run.
//!
//! Invariant: the active runs need at most the memory that was available when the first started.

use crate::world::{Failure, FailureCause};
use pagetide_scenario::model::Variant;
use pagetide_sim::foresight;
use std::sync::{Condvar, Mutex, PoisonError};
use sysinfo::{CGroupLimits, MemoryRefreshKind, RefreshKind, System};

/// Upper bound of a run's memory beyond its tables.
const BESIDES: u64 = 64 << 20;

/// The memory for runs.
pub(crate) struct MemoryBudget {
    available: u64,
    taken: Mutex<u64>,
    given_back: Condvar,
}

/// The memory of one run, returned on drop.
pub(crate) struct MemoryShare<'a> {
    room: &'a MemoryBudget,
    bytes: u64,
}

impl MemoryBudget {
    pub(crate) fn new(available: u64) -> MemoryBudget {
        MemoryBudget { available, taken: Mutex::new(0), given_back: Condvar::new() }
    }

    /// Waits until `bytes` are free.
    /// Fails if `bytes` is more than all the memory.
    pub(crate) fn take(&self, bytes: u64) -> Result<MemoryShare<'_>, Failure> {
        refuse(bytes, self.available)?;
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |taken: &mut u64| taken.saturating_add(bytes) > self.available;
        let mut taken =
            self.given_back.wait_while(taken, is_full).unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_add(bytes);
        Ok(MemoryShare { room: self, bytes })
    }
}

impl Drop for MemoryShare<'_> {
    fn drop(&mut self) {
        let mut taken = self.room.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_sub(self.bytes);
        drop(taken);
        self.room.given_back.notify_all();
    }
}

/// Bytes that a run of the variant needs in the simulator.
pub(crate) fn needed(variant: &Variant) -> u64 {
    foresight::tables(&variant.setup).saturating_add(BESIDES)
}

/// Bytes available on this computer, or in the container of this process. `u64::MAX` if unknown.
/// Page cache of a container counts as available, because the kernel reclaims it.
pub fn available() -> u64 {
    let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::everything());
    let system = System::new_with_specifics(memory);
    let machine = match system.total_memory() {
        0 => u64::MAX,
        _ => system.available_memory().saturating_add(system.free_swap()),
    };
    let of_container = |limits: CGroupLimits| limits.total_memory.saturating_sub(limits.rss);
    system.cgroup_limits().map_or(machine, |limits| machine.min(of_container(limits)))
}

/// [`FailureCause::Scenario`] if a single run of the variant needs more memory than is available.
pub fn check(variant: &Variant) -> Result<(), Failure> {
    refuse(needed(variant), available())
}

fn refuse(needed: u64, available: u64) -> Result<(), Failure> {
    if needed <= available {
        return Ok(());
    }
    Err(Failure {
        message: format!(
            "a run needs {} MiB for its tables, and this computer has {} MiB free",
            needed >> 20,
            available >> 20
        ),
        hint: Some(
            "give the machine less memory, swap or files, or the tasks fewer copies or smaller mappings"
                .to_owned(),
        ),
        cause: FailureCause::Scenario,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn runs_wait_until_there_is_room() {
        let room = MemoryBudget::new(100);
        let (under_way, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let run = || {
            for bytes in [40, 60, 30, 50] {
                let place = room.take(bytes).unwrap();
                let now = under_way.fetch_add(bytes, Ordering::SeqCst) + bytes;
                most.fetch_max(now, Ordering::SeqCst);
                std::thread::yield_now();
                under_way.fetch_sub(bytes, Ordering::SeqCst);
                drop(place);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(run);
            }
        });
        assert!(most.load(Ordering::SeqCst) <= 100);
        assert_eq!(*room.taken.lock().unwrap(), 0);
    }

    #[test]
    fn a_run_that_is_too_large_is_refused() {
        assert!(refuse(5 << 20, 5 << 20).is_ok());
        let failure = refuse(6 << 30, 5 << 30).unwrap_err();
        assert!(failure.message.contains("6144 MiB") && failure.message.contains("5120 MiB"));
        assert!(MemoryBudget::new(100).take(101).is_err());
        assert!(available() > 0);
    }
}
