//! Slab memory in the record: levels at a point in time, under the keys of a real kernel's record,
//! and samples every five seconds, like the measurements of the slab accounting patches of 2020.
//!
//! Linux: /proc/slabinfo and `nr_slab_*`; for the samples, a loop that reads
//! memory.kmem.usage_in_bytes, memory.usage_in_bytes, Slab in meminfo, and slabinfo, but without
//! cost for the machine. SLUB counts all objects of a CPU's slabs as active, and so do the keys of
//! the levels, so that they can be compared. [`Machine::slabinfo`] counts only objects in use.
//!
//! Invariant: sampling only reads the machine and schedules no event, so it does not change a run.
//! Levels are empty unless tasks use files or pipes.

use crate::world::groups::GroupTotals;
use pagetide_core::process::Machine;
use pagetide_core::stats::vmstat::NodeStat;
use pagetide_core::units::{MemcgId, Nanos};
use pagetide_scenario::metric::declared::{self, slabinfo_names, MetricDecl};
use pagetide_scenario::metric::MetricWriter;
use pagetide_scenario::model::kernel_objects::{reported_caches, ReportedCache};
use pagetide_scenario::model::Setup;
use pagetide_scenario::record::Unit;

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
        let slab = machine.mem.global_node_stat(NodeStat::NrSlabReclaimable)
            + machine.mem.global_node_stat(NodeStat::NrSlabUnreclaimable);
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

/// Levels by metric name; empty if there is nothing to report.
#[derive(Clone, Debug, Default)]
pub struct SlabLevels {
    machine: Vec<(&'static MetricDecl, f64)>,
    caches: Vec<(String, u64)>,
}

impl SlabLevels {
    /// Adds all levels to a record.
    pub(crate) fn put(&self, put: &mut MetricWriter<'_>) {
        for &(metric, value) in &self.machine {
            put.put(metric, value);
        }
        for (name, count) in &self.caches {
            put.put_named(name.clone(), *count as f64, Unit::Count);
        }
    }

    pub(crate) fn of(machine: &Machine, setup: &Setup) -> SlabLevels {
        if !setup.has_objects() {
            return SlabLevels::default();
        }
        let bytes = |stat| machine.page_size().bytes_of(machine.mem.global_node_stat(stat)) as f64;
        let reclaimable = bytes(NodeStat::NrSlabReclaimable);
        let unreclaimable = bytes(NodeStat::NrSlabUnreclaimable);
        let mut levels = SlabLevels::default();
        levels.machine.extend([
            (declared::SLAB, reclaimable + unreclaimable),
            (declared::SLAB_RECLAIMABLE, reclaimable),
            (declared::SLAB_UNRECLAIMABLE, unreclaimable),
        ]);
        let (mut used, mut held) = (0, 0);
        for ReportedCache { name, holds_objects: is_of_things } in
            reported_caches(setup.machine.kmem_accounting)
        {
            let Some(id) = machine.slabs.find_cache(name) else { continue };
            let usage = machine.slab_usage(id);
            let counts = [usage.counted_active_objs, usage.num_objs, usage.num_slabs];
            levels.caches.extend(slabinfo_names(name).into_iter().zip(counts));
            if is_of_things {
                let size = machine.slabs.kmem_cache(id).map_or(0, |cache| u64::from(cache.size));
                used += usage.counted_active_objs * size;
                held += usage.bytes;
            }
        }
        if held > 0 {
            levels.machine.push((declared::SLAB_UTILISATION, used as f64 / held as f64));
        }
        levels
    }
}
