//! Transfers the kernel's initial objects to the simulator, with the times of its calls on names
//! and pipes and of the reports between phases, so that the same amount is freed late during a
//! call.
//!
//! A freshly booted kernel has about ten thousand dentries and inodes, in partially filled slabs
//! that new objects fill up. The source is /proc/slabinfo after all caches were shrunk
//! (`idle.slabinfo.` in a record). Times are transferred like disk times ([`crate::disk_times`]):
//! the speed of an emulated CPU is that of the host, but what waits for an RCU grace period in that
//! time is the behaviour of the kernel.
//!
//! Invariant: if tasks create neither names nor pipes, only reports change.

use pagetide_scenario::metric::declared::{self, slabinfo_names, MetricDecl};
use pagetide_scenario::metric::{KeyNames, MetricKey, Owner, Scope};
use pagetide_scenario::model::kernel_objects::{
    reported_caches, BootCache, BootObjects, CallTimes,
};
use pagetide_scenario::model::{Phase, Setup, Workload};
use pagetide_scenario::record::Unit;
use pagetide_scenario::workload::KeepShare;
use std::collections::BTreeMap;

const PAGE: u64 = 4096;

type MetricRuns = BTreeMap<String, (Unit, Vec<Option<f64>>)>;

/// Applies these metrics to `setup`.
pub fn apply(metrics: &MetricRuns, setup: &mut Setup) {
    setup.machine.call_times.report = report_time(metrics, setup);
    if !setup.has_objects() {
        return;
    }
    // All runs start from the same copy of the machine.
    let names = KeyNames::of(setup);
    let level = |name: &str| {
        let key = MetricKey { scope: Scope::Idle, name: name.to_owned().into() };
        let (_, values) = metrics.get(&names.text(&key))?;
        values.iter().flatten().next().map(|value| *value as u64)
    };
    let cache = |name: &str| {
        let [active_objs, _, num_slabs] = slabinfo_names(name);
        let (active, slabs) = (level(&active_objs)?, level(&num_slabs)?);
        Some(BootCache { name: name.to_owned(), active, slabs })
    };
    let reported = reported_caches(setup.machine.kmem_accounting);
    let mut caches = std::mem::take(&mut setup.machine.boot_objects.caches);
    caches.extend(reported.iter().filter_map(|of| cache(of.name)));
    // Pipes and vectors may list the same cache.
    caches.sort_by(|a, b| a.name.cmp(&b.name));
    caches.dedup_by(|a, b| a.name == b.name);
    let pages = |metric: &MetricDecl| level(metric.name).unwrap_or(0) / PAGE;
    setup.machine.boot_objects = BootObjects {
        caches,
        reclaimable_pages: pages(declared::SLAB_RECLAIMABLE),
        unreclaimable_pages: pages(declared::SLAB_UNRECLAIMABLE),
    };
    setup.machine.call_times = call_times(metrics, setup);
}

/// A time of a task or a phase, for each run.
fn times<'m>(
    metrics: &'m MetricRuns,
    names: &KeyNames,
    scope: Scope,
    metric: &MetricDecl,
) -> Option<&'m [Option<f64>]> {
    let key = MetricKey { scope, name: metric.name.into() };
    metrics.get(&names.text(&key)).map(|(_, values)| values.as_slice())
}

/// Mean CPU time of a call for files and for pipes, over all phases that make such calls. If CPU
/// time was not recorded, elapsed time, which includes sleeps of tasks above `memory.high`. Phases
/// that only remove are excluded, because one kind of call does not represent the mean.
fn call_times(metrics: &MetricRuns, setup: &Setup) -> CallTimes {
    let names = KeyNames::of(setup);
    let mut sums = [(0.0, 0.0); 3];
    for task in &setup.tasks {
        for phase in &task.phases {
            let removed = |make: u64, keep: KeepShare| make - keep.kept_of_first(make);
            let (kind, calls) = match &phase.workload {
                Workload::Names(of) if of.missing => (1, of.make.into()),
                // Opened and closed, and some of them removed.
                Workload::Names(of) => {
                    (0, 2 * u64::from(of.make) + removed(of.make.into(), of.keep))
                }
                // Opened, and both ends of some closed.
                Workload::Pipes(of) => {
                    (2, u64::from(of.make) + 2 * removed(of.make.into(), of.keep))
                }
                _ => continue,
            };
            let scope = Scope::Phase { task: Owner::new(&task.name), phase: phase.name.clone() };
            let time = |metric| times(metrics, &names, scope.clone(), metric);
            let Some(found) = time(declared::CPU).or_else(|| time(declared::WALLTIME)) else {
                continue;
            };
            for seconds in found.iter().flatten() {
                sums[kind].0 += seconds;
                sums[kind].1 += calls as f64;
            }
        }
    }
    let mean_ns = |(seconds, calls): (f64, f64)| {
        (calls >= 1.0 && seconds > 0.0).then(|| (seconds / calls * 1e9) as u64)
    };
    let [file, missing, pipe] = sums.map(mean_ns);
    CallTimes { file, missing, pipe, report: setup.machine.call_times.report }
}

/// Mean CPU time between two phases of a task: the time of its life minus its phases, per gap. If
/// CPU time was not recorded, elapsed time.
fn report_time(metrics: &MetricRuns, setup: &Setup) -> Option<u64> {
    mean_gap(metrics, setup, declared::CPU).or_else(|| mean_gap(metrics, setup, declared::WALLTIME))
}

fn mean_gap(metrics: &MetricRuns, setup: &Setup, metric: &MetricDecl) -> Option<u64> {
    let names = KeyNames::of(setup);
    let sum = |scope: Scope| -> Option<f64> {
        times(metrics, &names, scope, metric)?.iter().copied().sum()
    };
    let (mut seconds, mut gaps) = (0.0, 0);
    for task in setup.tasks.iter().filter(|task| task.phases.len() > 1) {
        let owner = Owner::new(&task.name);
        let phase = |phase: &Phase| Scope::Phase { task: owner.clone(), phase: phase.name.clone() };
        let phases = task.phases.iter().map(|of| sum(phase(of)));
        let of_life = Scope::Task(owner.clone());
        // A task that was cut has no complete life.
        let (Some(life), Some(phases)) = (sum(of_life.clone()), phases.sum::<Option<f64>>()) else {
            continue;
        };
        let runs = times(metrics, &names, of_life, metric).map_or(0, <[_]>::len);
        seconds += life - phases;
        gaps += (task.phases.len() - 1) * runs;
    }
    (gaps > 0 && seconds > 0.0).then(|| (seconds / gaps as f64 * 1e9) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_testing::setup;

    #[test]
    fn what_boot_left_and_how_long_calls_take() {
        let text = "[machine]\nmemory = \"1GiB\"\n[[task]]\nname = \"t\"\n\
                    phase = [{ name = \"f\", workload = \"names\", make = 10, keep = \"10 %\" },\n\
                    { name = \"s\", workload = \"sleep\", duration = \"1s\" }]\n";
        let mut setup = setup(text);
        let mut metrics = MetricRuns::new();
        let mut put = |key: &str, values: &[Option<f64>]| {
            metrics.insert(key.to_owned(), (Unit::Count, values.to_vec()));
        };
        put("idle.slabinfo.dentry.active_objs", &[None, Some(40.0)]);
        put("idle.slabinfo.dentry.num_slabs", &[None, Some(2.0)]);
        put("idle.slab_reclaimable", &[Some(12288.0)]);
        put("t.f.walltime", &[Some(0.000_029), Some(0.000_058)]);
        apply(&metrics, &mut setup);
        let dentry = BootCache { name: "dentry".to_owned(), active: 40, slabs: 2 };
        let expected =
            BootObjects { caches: vec![dentry], reclaimable_pages: 3, unreclaimable_pages: 0 };
        assert_eq!(setup.machine.boot_objects, expected);
        // Ten opened, ten closed, nine removed.
        assert_eq!(setup.machine.call_times.file, Some(1500));
        assert_eq!(setup.machine.call_times.pipe, None);
    }
}
