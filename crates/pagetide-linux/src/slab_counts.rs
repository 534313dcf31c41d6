//! Metrics of kernel object caches, for runs with tasks that create objects: /proc/slabinfo and the
//! machine's `nr_slab_*`.
//!
//! All values are levels at the end of a phase. SLUB counts every object of a CPU's current slab as
//! active, used or not. The objects in use are under `shrunk.`, read once after the run, when the
//! CPUs' slabs have been flushed. Invariant: the caches in a record depend on the setup and the
//! kernel, not on the run.

use crate::console::GuestSnapshot;
use crate::host::slabinfo::SlabCache;
use pagetide_scenario::metric::declared::{self, slabinfo_names};
use pagetide_scenario::metric::MetricWriter;
use pagetide_scenario::model::kernel_objects::{reported_caches, ReportedCache};
use pagetide_scenario::model::Setup;
use pagetide_scenario::record::Unit;

const PAGE: u64 = 4096;

/// Adds the values of slabs and caches, if the guest reported them.
pub fn put_slabs(put: &mut MetricWriter<'_>, setup: &Setup, snapshot: &GuestSnapshot) {
    if snapshot.slabs.is_empty() {
        return;
    }
    let bytes = |name: &str| {
        let found = snapshot.counts.iter().find(|(known, _)| known == name);
        found.map_or(0, |(_, pages)| pages.saturating_mul(PAGE)) as f64
    };
    let (reclaimable, unreclaimable) =
        (bytes("nr_slab_reclaimable"), bytes("nr_slab_unreclaimable"));
    put.put(declared::SLAB, reclaimable + unreclaimable);
    put.put(declared::SLAB_RECLAIMABLE, reclaimable);
    put.put(declared::SLAB_UNRECLAIMABLE, unreclaimable);
    let (mut used, mut held) = (0u64, 0u64);
    for ReportedCache { name, holds_objects: is_of_things } in
        reported_caches(setup.machine.kmem_accounting)
    {
        let Some(cache) = snapshot.slabs.iter().find(|cache| cache.name == name) else { continue };
        let SlabCache { active_objects, objects, object_bytes, slabs, .. } = cache;
        for (name, count) in slabinfo_names(name).into_iter().zip([active_objects, objects, slabs])
        {
            put.put_named(name, *count as f64, Unit::Count);
        }
        if is_of_things {
            used = used.saturating_add(active_objects.saturating_mul(*object_bytes));
            held = held.saturating_add(cache.pages().saturating_mul(PAGE));
        }
    }
    if held > 0 {
        put.put(declared::SLAB_UTILISATION, used as f64 / held as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_scenario::metric::{KeyNames, RunMetricSet, Scope};
    use pagetide_testing::setup;

    fn of(accounting: bool, slabs: Vec<SlabCache>) -> Vec<(String, f64)> {
        let text = format!(
            "[machine]\nmemory = \"1GiB\"\nkmem_accounting = {accounting}\n\
             [[task]]\nname = \"t\"\nworkload = \"pipes\"\nmake = 1\n"
        );
        let setup = setup(&text);
        let count = |name: &str, pages| (name.to_owned(), pages);
        let counts = vec![count("nr_slab_unreclaimable", 2), count("nr_slab_reclaimable", 1)];
        let snapshot = GuestSnapshot { counts, slabs, ..GuestSnapshot::default() };
        let mut metrics = RunMetricSet::new();
        put_slabs(&mut metrics.of(Scope::Idle), &setup, &snapshot);
        let texts = metrics.into_texts(&KeyNames::of(&setup));
        texts.into_iter().map(|(key, metric)| (key, metric.value)).collect()
    }

    fn cache(name: &str, numbers: [u64; 5]) -> SlabCache {
        let [active_objects, objects, object_bytes, pages_per_slab, slabs] = numbers;
        let name = name.to_owned();
        SlabCache { name, active_objects, objects, object_bytes, pages_per_slab, slabs }
    }

    #[test]
    fn caches_of_objects_are_said_one_by_one_and_as_a_share() {
        let slabs = vec![
            cache("dentry", [21, 42, 192, 1, 2]),
            cache("kmalloc-cg-1k", [4, 8, 1024, 2, 1]),
            cache("kmalloc-192", [5, 21, 192, 1, 1]),
            cache("task_struct", [1, 3, 8384, 8, 1]),
        ];
        let share = f64::from(21 * 192 + 4 * 1024) / f64::from(4 * 4096);
        let wanted = [
            ("idle.slab", 12288.0),
            ("idle.slab_reclaimable", 4096.0),
            ("idle.slab_unreclaimable", 8192.0),
            ("idle.slab_utilisation", share),
            ("idle.slabinfo.dentry.active_objs", 21.0),
            ("idle.slabinfo.dentry.num_objs", 42.0),
            ("idle.slabinfo.dentry.num_slabs", 2.0),
            ("idle.slabinfo.kmalloc-192.active_objs", 5.0),
            ("idle.slabinfo.kmalloc-192.num_objs", 21.0),
            ("idle.slabinfo.kmalloc-192.num_slabs", 1.0),
            ("idle.slabinfo.kmalloc-cg-1k.active_objs", 4.0),
            ("idle.slabinfo.kmalloc-cg-1k.num_objs", 8.0),
            ("idle.slabinfo.kmalloc-cg-1k.num_slabs", 1.0),
        ];
        assert_eq!(of(true, slabs.clone()), wanted.map(|(key, value)| (key.to_owned(), value)));
        let plain = of(false, slabs);
        assert!(plain.iter().all(|(key, _)| !key.contains("kmalloc-cg")), "{plain:?}");
        let share = f64::from(21 * 192 + 5 * 192) / f64::from(3 * 4096);
        assert!(plain.contains(&("idle.slab_utilisation".to_owned(), share)), "{plain:?}");
        assert_eq!(of(true, Vec::new()), [], "the guest was not asked");
    }
}
