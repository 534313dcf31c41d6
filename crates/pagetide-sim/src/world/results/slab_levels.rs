//! Levels of the slab caches at a point in time, under the keys of a real kernel's record.
//!
//! Linux: /proc/slabinfo and `nr_slab_*`. SLUB counts all objects of a CPU's slabs as active, and
//! so do these keys, so that they can be compared.
//! [`Machine::slabinfo`](pagetide_core::process::Machine::slabinfo) counts only objects in use.
//!
//! Invariant: nothing is reported unless tasks use files or pipes.

use pagetide_core::process::Machine;
use pagetide_core::stats::vmstat::NodeStat;
use pagetide_scenario::kernel_objects::{reported_caches, ReportedCache};
use pagetide_scenario::metric::declared::{self, slabinfo_names, MetricDecl};
use pagetide_scenario::metric::MetricWriter;
use pagetide_scenario::model::Setup;
use pagetide_scenario::record::Unit;

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
        let bytes = |stat| machine.page_size().bytes_of(machine.global_node_stat(stat)) as f64;
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
            let Some(id) = machine.find_cache(name) else { continue };
            let usage = machine.slab_usage(id);
            let counts = [usage.counted_active_objs, usage.num_objs, usage.num_slabs];
            levels.caches.extend(slabinfo_names(name).into_iter().zip(counts));
            if is_of_things {
                let size = machine.kmem_cache(id).map_or(0, |cache| u64::from(cache.size));
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
