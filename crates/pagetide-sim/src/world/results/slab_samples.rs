//! Samples of slab memory every five seconds, like the measurements of the slab accounting patches
//! of 2020.
//!
//! Linux: a loop that reads memory.kmem.usage_in_bytes, memory.usage_in_bytes, Slab in meminfo, and
//! slabinfo, but without cost for the machine.
//!
//! Invariant: sampling only reads the machine and schedules no event, so it does not change a run.

use crate::world::groups::GroupTotals;
use pagetide_core::process::Machine;
use pagetide_core::stats::vmstat::NodeStat;
use pagetide_core::units::{MemcgId, Nanos};

const INTERVAL: Nanos = 5_000_000_000;

/// Largest sampled usage of a group, in pages.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupPeak {
    pub usage: u64,
    pub kmem: u64,
}

#[derive(Debug, Default)]
pub(crate) struct SlabSamples {
    next: Nanos,
    /// Largest sampled `Slab`, in pages.
    pub peak_slab: u64,
    /// By index in the setup.
    pub groups: Vec<GroupPeak>,
    /// Sum over samples of (active bytes / slab bytes), and the number of samples.
    utilisation: f64,
    nr: u32,
}

impl SlabSamples {
    pub fn new(nr_groups: usize) -> SlabSamples {
        SlabSamples {
            next: INTERVAL,
            groups: vec![GroupPeak::default(); nr_groups],
            ..SlabSamples::default()
        }
    }

    /// Takes the samples due until `at`. No event at `at` has run yet.
    #[inline]
    pub fn until(&mut self, at: Nanos, machine: &Machine, groups: &[Option<MemcgId>]) {
        // Nothing changes between two events, so one reading counts for all samples due.
        if self.next <= at {
            let due = (at - self.next) / INTERVAL + 1;
            self.look(machine, groups, due as u32);
            self.next += due * INTERVAL;
        }
    }

    /// Takes the last sample, at the end of the run.
    pub fn end(&mut self, machine: &Machine, groups: &[Option<MemcgId>]) {
        self.look(machine, groups, 1);
    }

    fn look(&mut self, machine: &Machine, groups: &[Option<MemcgId>], times: u32) {
        let slab = machine.global_node_stat(NodeStat::NrSlabReclaimable)
            + machine.global_node_stat(NodeStat::NrSlabUnreclaimable);
        self.peak_slab = self.peak_slab.max(slab);
        for (peak, memcg) in self.groups.iter_mut().zip(groups) {
            let Some(memcg) = *memcg else { continue };
            peak.usage = peak.usage.max(machine.memcg_usage(memcg));
            peak.kmem = peak.kmem.max(machine.memcgs()[memcg].kmem.usage);
        }
        let usage = machine.total_slab_usage();
        if usage.bytes > 0 {
            self.utilisation += f64::from(times) * usage.active_bytes as f64 / usage.bytes as f64;
            self.nr += times;
        }
    }

    /// Updates the peaks of a group that is about to be removed.
    pub fn look_at(&mut self, group: usize, totals: &GroupTotals) {
        let peak = &mut self.groups[group];
        peak.usage = peak.usage.max(totals.usage);
        peak.kmem = peak.kmem.max(totals.kmem);
    }

    /// Mean over all samples of (active bytes / slab bytes); `None` if there was no slab.
    pub fn utilisation(&self) -> Option<f64> {
        (self.nr > 0).then(|| self.utilisation / f64::from(self.nr))
    }
}
