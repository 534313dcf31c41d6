//! Metrics of a run, under the keys of a record.
//!
//! Invariant: each metric is added once, in the scope in which a kernel reports it; sums over
//! copies are computed from these. A value of incomplete work is marked ([`Incomplete`]).

use crate::histogram::LatencyHistogram;
use crate::task::{
    compressed_levels, MachineCounts, MemoryWait, PhaseRun, SimTask, TaskUsage, ZoneBlocks,
};
use crate::world::groups::{GroupCounts, GroupTotals};
use crate::world::results::slabs::SlabLevels;
use crate::world::tasks::requests::RequestResults;
use crate::world::SimWorld;
use pagetide_core::reclaim::plugin::PolicyFault;
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::Nanos;
use pagetide_scenario::metric::declared::{self, buddyinfo_name, FREE_BLOCKS};
use pagetide_scenario::metric::{KeyNames, MetricWriter, Owner, RunMetricSet, Scope, ScopeKind};
use pagetide_scenario::model::{self, Setup, Workload};
use pagetide_scenario::record::{Incomplete, Latencies, Metric, Unit};
use std::collections::BTreeMap;

/// All metrics of a finished run. `cut`: its tasks had not finished.
pub(crate) fn metrics(world: &SimWorld, setup: &Setup, cut: bool) -> BTreeMap<String, Metric> {
    let cut = cut.then_some(Incomplete::Cut);
    let mut metrics = RunMetricSet::new();
    of_machine(&mut metrics, world, setup, cut);
    for (task, model) in world.tasks.iter().zip(&setup.tasks) {
        of_task(&mut metrics, world, task, model, cut);
        of_watched(&mut metrics, world, task, model);
        for run in task.phases.iter().filter(|run| run.ended.is_some()) {
            of_phase(&mut metrics, setup, model, run);
        }
    }
    of_groups(&mut metrics, world, setup, cut);
    metrics.add_copies();
    metrics.into_texts(&KeyNames::of(setup))
}

fn of_machine(
    metrics: &mut RunMetricSet,
    world: &SimWorld,
    setup: &Setup,
    cut: Option<Incomplete>,
) {
    let mut machine = metrics.of(Scope::Machine).with_incomplete(cut);
    for (name, value) in world.machine.metrics() {
        machine.put_named(name, value as f64, Unit::Count);
    }
    let errors = world.machine.plugin_errors();
    // With a plug-in, report counts of 0 too; a mean over seeds needs them.
    if setup.plugins.iter().next().is_some() {
        for wrong in PolicyFault::ALL {
            let times = errors.iter().find(|(it, _)| *it == wrong).map_or(0, |(_, times)| *times);
            machine.put_named(wrong.name(), times as f64, Unit::Count);
        }
    }
    for (name, blocks) in world.machine.free_blocks() {
        machine.put_named(name, blocks as f64, Unit::Count);
    }
    put_zones(&mut machine, &world.machine.free_blocks_of_zones());
    compressed_levels(&world.machine).for_each(|(metric, level)| machine.put(metric, level as f64));
    if let Some(stats) = world.machine.zswap_stats() {
        for (metric, count) in [
            (declared::ZSWAP_WRITTEN, stats.written_back_pages),
            (declared::ZSWAP_LIMIT, stats.pool_limit_hit),
            (declared::ZSWAP_POOR, stats.reject_compress_poor),
            (declared::ZSWAP_NO_MEMORY, stats.reject_alloc_fail),
            (declared::ZSWAP_UNRECLAIMED, stats.reject_reclaim_fail),
        ] {
            machine.put(metric, count as f64);
        }
    }
    if let Some(levels) = world.machine.zram_levels() {
        machine.put(declared::ZRAM_USED_MAX, levels.max_used_bytes as f64);
        machine.put(declared::ZRAM_COMPACTED, levels.pages_compacted as f64);
        machine.put(declared::ZRAM_FAILED, levels.failed_writes as f64);
        if let Some(backing) = levels.backing {
            machine.put(declared::ZRAM_BD_READS, backing.reads as f64);
            machine.put(declared::ZRAM_BD_WRITES, backing.writes as f64);
        }
    }
    // The task may not have started.
    let measured = setup.measure.map(|task| &world.tasks[task]);
    if let Some(task) = measured.filter(|task| !task.vmstat.is_empty()) {
        machine = machine.with_incomplete(end_of(task, cut));
        put_events(&mut machine, &task.vmstat);
    }
    // The time of the whole run is incomplete if a task was killed.
    let awaited = world.tasks.iter().filter(|task| !task.background);
    let killed = awaited.filter_map(SimTask::ended_by).min();
    machine = machine.with_incomplete(Incomplete::first_reason(killed, cut));
    machine.put(declared::ELAPSED, seconds(world.now));
    let user_ns = world.tasks.iter().map(|task| task.usage.user_ns).sum();
    machine.put(declared::USER, seconds(user_ns));
    machine.put(declared::SYSTEM, seconds(world.cpus.busy_ns - user_ns));
    machine = machine.with_incomplete(cut);
    for (metric, ns) in world.daemons.times.metrics(world.now) {
        machine.put(metric, seconds(ns));
    }
    if let Some(frozen) = world.watchers.frozen_ns() {
        machine.put(declared::FROZEN, seconds(frozen));
    }
    if let Some(pathologies) = &world.results.pathologies {
        machine.put(declared::FROZEN_LONGEST, seconds(world.watchers.longest_frozen_ns()));
        machine.put(declared::OOM_EVICTABLE, pathologies.evictable_percent);
        machine.put(declared::REFAULT_SHARE, pathologies.refault_percent);
    }
    machine.put(declared::PSI_SOME, seconds(world.machine.psi().some_ns));
    machine.put(declared::PSI_FULL, seconds(world.machine.psi().full_ns));
    SlabLevels::of(&world.machine, setup).put(&mut machine);
    let samples = &world.results.slab_samples;
    machine.put(declared::PEAK_SLAB, world.machine.page_size().bytes_of(samples.peak_slab) as f64);
    if let Some(utilisation) = samples.utilisation() {
        machine.put(declared::SLAB_UTILISATION, utilisation);
    }
    of_work(metrics, world, Incomplete::first_reason(killed, cut));
    world.results.idle_slabs.put(&mut metrics.of(Scope::Idle));
    world.results.shrunk_slabs.put(&mut metrics.of(Scope::Shrunk).with_incomplete(cut));
}

/// Counters and levels at the end of the last foreground task.
fn of_work(metrics: &mut RunMetricSet, world: &SimWorld, ended: Option<Incomplete>) {
    let Some(MachineCounts { vmstat, levels, zones, compressed, psi }) = &world.results.done else {
        return;
    };
    let mut put = metrics.of(Scope::Done).with_incomplete(ended);
    put_events(&mut put, vmstat);
    put_levels(&mut put, levels);
    put_zones(&mut put, zones);
    compressed.iter().for_each(|&(metric, level)| put.put(metric, level as f64));
    put.put(declared::PSI_SOME, seconds(psi.some_ns));
    put.put(declared::PSI_FULL, seconds(psi.full_ns));
}

/// Reason for which a task is incomplete: it was killed, or the run reached its limit first.
fn end_of(task: &SimTask, cut: Option<Incomplete>) -> Option<Incomplete> {
    Incomplete::first_reason(task.ended_by(), cut.filter(|_| !task.is_over()))
}

fn of_task(
    metrics: &mut RunMetricSet,
    world: &SimWorld,
    task: &SimTask,
    model: &model::Task,
    cut: Option<Incomplete>,
) {
    let owner = Owner::new(&task.name);
    let ended = end_of(task, cut);
    let mut put = metrics.of(Scope::Task(owner.clone())).with_incomplete(ended);
    if let Some(began) = task.began {
        let wall = task.ended.unwrap_or(world.now) - began;
        // A task with `until` ends when it is meant to.
        let is_stopped = task.ended.is_none() && model.until.is_none();
        let stopped = is_stopped.then_some(Incomplete::Stopped);
        put = put.with_incomplete(ended.or(stopped));
        put.put(declared::WALLTIME, seconds(wall));
        put = put.with_incomplete(ended);
        put.put(declared::THROUGHPUT, throughput(task.usage.bytes, wall));
    }
    put_usage(&mut put, &task.usage);
    let helpers = task.helpers.clone().map(|id| world.tasks[id].cpu_ns);
    put.put(declared::CPU, seconds(task.cpu_ns + helpers.sum::<Nanos>()));
    put.put(declared::TASK_PGFAULT, task.usage.pgfault as f64);
    put.put(declared::TASK_PGMAJFAULT, task.usage.pgmajfault as f64);
    let waited = |wait: MemoryWait| seconds(task.lost.waited[wait as usize]);
    put.put(declared::STALL_REFAULT, waited(MemoryWait::Refault));
    put.put(declared::STALL_REREAD, waited(MemoryWait::Reread));
    put.put(declared::STALL_RECLAIM, waited(MemoryWait::Reclaim));
    put.put(declared::STALL_THROTTLED, waited(MemoryWait::Throttled));
    put.put(declared::STALL_HIGH, waited(MemoryWait::High));
    put.put(declared::STALL_DIRTY, waited(MemoryWait::Dirty));
    put.put(declared::STALL_DIRTY_GROUP, waited(MemoryWait::GroupDirty));
    put.put(declared::DISK_WAIT, seconds(task.lost.disk_ns));
    let allocated = world.machine.page_size().bytes_of(task.lost.allocated);
    put.put(declared::ALLOCATED, allocated as f64);
    let latency = &task.alloc_latency;
    put.put(declared::ALLOC_LATENCY_P50, seconds(latency.p50()));
    put.put(declared::ALLOC_LATENCY_P99, seconds(latency.p99()));
    put.put(declared::ALLOC_LATENCY_P999, seconds(latency.p999()));
    put.put(declared::ALLOC_LATENCY_MAX, seconds(latency.max()));
    let mut served = task.earlier_runs.loops.clone();
    let mut may_be_late = false;
    let mut put_phase = |phase: u32, of_phase: &RequestResults, time, ended| {
        let model = &model.phases[phase as usize];
        let has_deadline = model.workload.has_deadline();
        may_be_late |= has_deadline;
        let scope = Scope::Phase { task: owner.clone(), phase: model.name.clone() };
        put_served(&mut metrics.of(scope).with_incomplete(ended), of_phase, time, has_deadline);
    };
    let lives = &task.earlier_runs.lives;
    for (&phase, (of_lives, time)) in lives {
        put_phase(phase, of_lives, *time, ended);
        let (all, time_of_all) = served.get_or_insert_default();
        all.merge(of_lives);
        *time_of_all += time;
    }
    for run in &task.phases {
        let Some(of_run) = &run.served else { continue };
        let wall = run.ended.unwrap_or(world.now).saturating_sub(run.began);
        let (mut of_phase, time) = lives.get(&run.phase).cloned().unwrap_or_default();
        of_phase.merge(of_run);
        let ended = if run.ended.is_some() { run.cut_short } else { ended };
        put_phase(run.phase, &of_phase, time + wall, ended);
        let (all, time) = served.get_or_insert_default();
        all.merge(of_run);
        *time += wall;
    }
    if let Some((all, time)) = served {
        let mut put = metrics.of(Scope::Task(owner.clone())).with_incomplete(ended);
        put_served(&mut put, &all, time, may_be_late);
    }
    let (mut asked, mut got) = (0, 0);
    for (&phase, usage) in &task.earlier_runs.usage {
        if asks_for_blocks(model, phase) {
            (asked, got) = (asked + usage.blocks_asked, got + usage.blocks_got);
        }
    }
    for run in task.phases.iter().filter(|run| asks_for_blocks(model, run.phase)) {
        // The usage of an unfinished phase is that of the task since the start of the phase.
        let (usage, ended) = match run.ended {
            Some(_) => (run.usage.clone(), run.cut_short),
            None => (task.usage.since(&run.usage), ended),
        };
        (asked, got) = (asked + usage.blocks_asked, got + usage.blocks_got);
        if let Some(percent) = success(usage.blocks_asked, usage.blocks_got) {
            let phase = model.phases[run.phase as usize].name.clone();
            let scope = Scope::Phase { task: owner.clone(), phase };
            metrics.of(scope).with_incomplete(ended).put(declared::SUCCESS, percent);
        }
    }
    if let Some(percent) = success(asked, got) {
        let mut put = metrics.of(Scope::Task(owner)).with_incomplete(ended);
        put.put(declared::SUCCESS, percent);
        put.put(declared::ATTEMPTS, asked as f64);
    }
}

/// Metrics of a watcher, and of a task that is watched or restarts.
fn of_watched(metrics: &mut RunMetricSet, world: &SimWorld, task: &SimTask, model: &model::Task) {
    if world.watchers.of.is_empty() && model.restart_ns.is_none() {
        return;
    }
    let mut put = metrics.of(Scope::Task(Owner::new(&task.name)));
    if model.restart_ns.is_some() {
        put.put(declared::RESTARTS, task.restarts as f64);
    }
    let Some(watcher) = world.watchers.of.get(&task.leader) else {
        put.put(declared::TIMES_KILLED, task.times_killed as f64);
        return;
    };
    put.put(declared::LOOKS, watcher.counts.looks as f64);
    if watcher.only_writes() {
        put.put(declared::WATCHER_WRITES, watcher.counts.writes as f64);
        return;
    }
    let kills = if watcher.evicts() { declared::EVICTIONS } else { declared::KILLS };
    put.put(kills, watcher.counts.kills as f64);
    if let Some(first) = watcher.counts.first_kill {
        put.put(declared::FIRST_KILL, seconds(first));
    }
}

fn of_phase(metrics: &mut RunMetricSet, setup: &Setup, model: &model::Task, run: &PhaseRun) {
    let phase = model.phases[run.phase as usize].name.clone();
    let scope = Scope::Phase { task: Owner::new(&model.name), phase };
    let mut put = metrics.of(scope.clone()).with_incomplete(run.cut_short);
    let wall = run.ended.map_or(0, |ended| ended - run.began);
    put.put(declared::WALLTIME, seconds(wall));
    put.put(declared::THROUGHPUT, throughput(run.usage.bytes, wall));
    put_events(&mut put, &run.vmstat);
    put.put(declared::CPU, seconds(run.times.cpu_ns));
    put.put(declared::CPU_KSWAPD, seconds(run.times.kswapd_ns));
    put.put(declared::CPU_WRITEBACK, seconds(run.times.flusher_ns));
    put.put(declared::PSI_SOME, seconds(run.times.some_ns));
    put.put(declared::PSI_FULL, seconds(run.times.full_ns));
    put_levels(&mut put, &run.levels);
    put_zones(&mut put, &run.zones);
    put_usage(&mut put, &run.usage);
    run.slabs.put(&mut put);
    for &(metric, pages) in &run.extra {
        put.put(metric, pages as f64);
    }
    for counts in &run.groups {
        let group = Owner::new(&setup.groups[counts.group].name);
        let mut put = metrics.of(scope.with_group(group)).with_incomplete(run.cut_short);
        put_group(&mut put, counts);
    }
}

fn of_groups(metrics: &mut RunMetricSet, world: &SimWorld, setup: &Setup, cut: Option<Incomplete>) {
    let scope = |group: usize| Scope::Group(Owner::new(&setup.groups[group].name));
    // For a removed group, report its values at the removal.
    let removed = || world.groups.removed().cloned();
    for counts in world.counts_of_groups().chain(removed().map(|(counts, _)| counts)) {
        put_group(&mut metrics.of(scope(counts.group)).with_incomplete(cut), &counts);
    }
    let bytes = |pages: u64| world.machine.page_size().bytes_of(pages) as f64;
    let peaks = world.results.slab_samples.groups.iter().enumerate();
    for (group, peak) in peaks.filter(|(group, _)| setup.groups[*group].has_memory) {
        let mut put = metrics.of(scope(group)).with_incomplete(cut);
        put.put(declared::PEAK_USAGE, bytes(peak.usage));
        put.put(declared::PEAK_KMEM, bytes(peak.kmem));
    }
    let there =
        world.groups.iter().map(|(group, memcg)| (group, GroupTotals::of(&world.machine, memcg)));
    let gone = removed().filter_map(|(counts, totals)| Some((counts.group, totals?)));
    for (group, it) in there.chain(gone) {
        let mut put = metrics.of(scope(group)).with_incomplete(cut);
        put.put(declared::KMEM_PEAK, bytes(it.kmem_peak));
        put.put(declared::MEMORY_PEAK, bytes(it.peak));
        put.put(declared::PRESSURE_SOME, seconds(it.some_ns));
        put.put(declared::PRESSURE_FULL, seconds(it.full_ns));
    }
}

fn put_group(put: &mut MetricWriter<'_>, counts: &GroupCounts) {
    for &(level, bytes) in &counts.levels {
        let declared = declared::find(ScopeKind::PhaseGroup, level);
        put.put_named(level, bytes as f64, declared.map_or(Unit::Bytes, |level| level.unit));
    }
    for &(event, count) in &counts.counts {
        put.put_named(event, count as f64, Unit::Count);
    }
}

/// Levels of the machine: pages, and free blocks of each order.
fn put_levels(put: &mut MetricWriter<'_>, levels: &[(&'static str, u64)]) {
    for &(level, value) in levels {
        let unit = if level.starts_with(FREE_BLOCKS) { Unit::Count } else { Unit::Pages };
        put.put_named(level, value as f64, unit);
    }
}

fn put_zones(put: &mut MetricWriter<'_>, zones: &[ZoneBlocks]) {
    for (node, zone, blocks) in zones {
        for (order, &nr) in blocks.iter().enumerate() {
            put.put_named(buddyinfo_name(node.0, zone, order), nr as f64, Unit::Count);
        }
    }
}

/// Event counts, and the sum of direct reclaims over all zones.
fn put_events(put: &mut MetricWriter<'_>, counts: &[u64]) {
    for (event, &count) in Event::ALL.iter().zip(counts) {
        put.put_named(event.name(), count as f64, Unit::Count);
    }
    let stalls = [
        Event::AllocstallDma,
        Event::AllocstallDma32,
        Event::AllocstallNormal,
        Event::AllocstallMovable,
    ];
    let stalls: u64 = stalls.iter().map(|&event| counts[event as usize]).sum();
    put.put(declared::ALLOCSTALL, stalls as f64);
}

/// `may_be_late`: the service has a deadline.
fn put_served(put: &mut MetricWriter<'_>, served: &RequestResults, wall: Nanos, may_be_late: bool) {
    let latency = &served.latency;
    let rate = if wall == 0 { 0.0 } else { latency.count() as f64 / seconds(wall) };
    put.put(declared::REQUESTS, latency.count() as f64);
    put.put(declared::REQUEST_RATE, rate);
    if may_be_late {
        put.put(declared::LATE, served.late as f64);
    }
    put.put(declared::DROPPED, served.dropped as f64);
    put.put(declared::UNFINISHED, served.unfinished as f64);
    if latency.is_empty() {
        return;
    }
    put.put(declared::LATENCY_MEAN, seconds(latency.mean()));
    put.put(declared::LATENCY_P50, seconds(latency.p50()));
    put.put(declared::LATENCY_P90, seconds(latency.permyriad(9_000)));
    put.put(declared::LATENCY_P99, seconds(latency.p99()));
    put.put(declared::LATENCY_P999, seconds(latency.p999()));
    put.put(declared::LATENCY_MAX, seconds(latency.max()));
}

fn put_usage(put: &mut MetricWriter<'_>, usage: &TaskUsage) {
    put.put(declared::USER, seconds(usage.user_ns));
    put.put(declared::SYSTEM, seconds(usage.system_ns));
    put.put(declared::BYTES, usage.bytes as f64);
}

/// Distributions of latencies: of each task's allocations, and of each service's requests. Copies
/// of a task are added up.
pub(crate) fn latencies(world: &SimWorld, setup: &Setup) -> Vec<Latencies> {
    let mut all: Vec<(String, LatencyHistogram)> = Vec::new();
    let mut put = |of: String, histogram: &LatencyHistogram| {
        if histogram.is_empty() {
            return;
        }
        match all.iter_mut().find(|(it, _)| *it == of) {
            Some((_, sum)) => sum.merge(histogram),
            None => all.push((of, histogram.clone())),
        }
    };
    for task in &world.tasks[..setup.tasks.len()] {
        let name = Owner::new(&task.name).family().name;
        put(format!("{name}.alloc_latency"), &task.alloc_latency);
        let earlier = task.earlier_runs.loops.iter().chain(task.earlier_runs.lives.values());
        let runs = task.phases.iter().filter_map(|run| run.served.as_deref());
        for served in earlier.map(|(served, _)| served).chain(runs) {
            put(format!("{name}.latency"), &served.latency);
        }
    }
    let of = |(of, histogram): (String, LatencyHistogram)| Latencies {
        of,
        buckets: histogram.buckets(),
    };
    all.into_iter().map(of).collect()
}

fn asks_for_blocks(model: &model::Task, phase: u32) -> bool {
    let workload = &model.phases[phase as usize].workload;
    matches!(workload, Workload::HighOrder(_) | Workload::KernelMemory(_))
}

/// Percentage of requested blocks that were allocated, rounded down as in mmtests; `None` without
/// requests.
fn success(asked: u64, got: u64) -> Option<f64> {
    (got * 100).checked_div(asked).map(|percent| percent as f64)
}

/// Bytes per second; 0 if no time has passed.
fn throughput(bytes: u64, wall: Nanos) -> f64 {
    if wall == 0 {
        0.0
    } else {
        bytes as f64 / seconds(wall)
    }
}

fn seconds(ns: Nanos) -> f64 {
    ns as f64 / 1e9
}
