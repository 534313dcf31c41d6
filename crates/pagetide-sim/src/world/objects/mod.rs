//! Kernel objects that tasks allocate: the slab caches that they come from, and the objects that
//! wait for a grace period.
//!
//! Invariant: a cache of the setup has the same index here.

mod file_calls;
pub(crate) mod files;
mod grace;
mod slots;

use crate::task::SimTask;
use files::{FileCaches, FileCallCost};
use grace::GracePeriod;
use pagetide_core::process::Machine;
use pagetide_core::units::{CacheId, Nanos};

#[derive(Debug)]
pub(crate) struct SimObjects {
    /// The machine's slab caches, by index in the setup.
    caches: Vec<CacheId>,
    /// Slab caches for files, dentries and pipes, if tasks use any.
    file_caches: Option<FileCaches>,
    /// Costs of the model, and number, of the calls whose time was measured: on missing names,
    /// files and pipes.
    call_costs: [(Nanos, u64); 3],
    grace: GracePeriod,
}

impl SimObjects {
    pub fn new(machine: &Machine, caches: Vec<CacheId>, file_caches: Option<FileCaches>) -> Self {
        let grace = GracePeriod::new(machine);
        Self { caches, file_caches, call_costs: [(0, 0); 3], grace }
    }

    /// The part of a measured time that the model does not account for otherwise: the time is the
    /// mean CPU time of such a call, so it contains the program's own time, the slabs and the
    /// reclaim, which have costs of their own. Their mean in the calls so far is subtracted.
    fn rest_of_call(&mut self, task: &mut SimTask, kind: usize, calls: u64, mean: Nanos) -> Nanos {
        let spent_ns = task.usage.system_ns + task.usage.user_ns;
        if let Some(last) = task.file_call.take() {
            let (sum_ns, nr) = &mut self.call_costs[last.kind];
            *sum_ns += spent_ns.saturating_sub(last.since_ns);
            *nr += last.calls;
        }
        let (sum_ns, nr) = self.call_costs[kind];
        let ns = calls * mean.saturating_sub(sum_ns.checked_div(nr).unwrap_or(0));
        task.file_call = Some(FileCallCost { kind, calls, since_ns: spent_ns + ns });
        ns
    }
}
