//! Converts snapshots to a run record with the metric keys of the simulator.
//!
//! For a phase and for the whole life of a task, events are differences and levels
//! (`nr_free_pages`, ...) are the values at the end. /proc/vmstat mixes both: names that begin with
//! `nr_` are levels, with a few exceptions.

use crate::compressed_counts::put_compressed;
use crate::console::{GuestReport, GuestSnapshot, ServiceStats};
use crate::group_counts::put_groups;
use crate::slab_counts::put_slabs;
use pagetide_scenario::metric::declared::{BUDDYINFO, FREE_BLOCKS};
use pagetide_scenario::metric::{
    declared, KeyNames, MetricWriter, Owner, RunMetricSet, Scope, ScopeKind,
};
use pagetide_scenario::model::{Setup, Task};
use pagetide_scenario::record::{RunRecord, Unit};
use std::collections::BTreeMap;

/// Cumulative counters with the prefix `nr_` (include/linux/mmzone.h, `enum node_stat_item`).
const GROWING: [&str; 7] = [
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_dirtied",
    "nr_written",
    "nr_throttled_written",
    "nr_foll_pin_acquired",
    "nr_foll_pin_released",
];

/// Identifies the run of a record.
#[derive(Clone, Copy, Debug)]
pub struct RunName<'a> {
    pub scenario: &'a str,
    pub variant: &'a str,
    pub seed: u64,
}

/// Whether a name of /proc/vmstat is a level, not a count of events.
pub fn is_level(name: &str) -> bool {
    name.starts_with("nr_") && !GROWING.contains(&name)
}

/// The record of a finished run.
pub fn record(run: RunName<'_>, setup: &Setup, report: &GuestReport) -> Result<RunRecord, String> {
    let begin = find(report, "run-begin", 0).ok_or("no snapshot of the run's start")?;
    let end = find(report, "run-end", 0).ok_or("no snapshot of the run's end")?;
    let elapsed_ns = end.ns.saturating_sub(begin.ns);
    let mut metrics = RunMetricSet::new();
    of_machine(&mut metrics, setup, report, (begin, end));
    for (id, task) in setup.tasks.iter().enumerate() {
        of_task(&mut metrics, report, (id, task), end);
        of_phases(&mut metrics, setup, report, id)?;
    }
    put_groups(&mut metrics, &Scope::Machine, &setup.groups, begin, end);
    let mut notes = report.notes.clone();
    for (task, how) in &report.ended {
        let name = setup.tasks.get(*task).map_or("?", |task| task.name.as_str());
        notes.push(match how.as_str() {
            "signal 9" => format!("task `{name}` was killed: out of memory"),
            "signal 7" => format!("task `{name}` was killed: a page could not be read"),
            how => format!("task `{name}` ended with {how}"),
        });
    }
    Ok(RunRecord {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        metrics: metrics.into_texts(&KeyNames::of(setup)),
        elapsed_ns,
        notes,
        ..RunRecord::new(run.scenario, run.variant, run.seed)
    })
}

fn find<'r>(report: &'r GuestReport, kind: &str, task: usize) -> Option<&'r GuestSnapshot> {
    report.snapshots.iter().find(|snapshot| snapshot.kind == kind && snapshot.task == task)
}

fn of_machine(
    metrics: &mut RunMetricSet,
    setup: &Setup,
    report: &GuestReport,
    (begin, end): (&GuestSnapshot, &GuestSnapshot),
) {
    let mut machine = metrics.of(Scope::Machine);
    put_counts(&mut machine, begin, end);
    let compressed = [&begin.compressed, &end.compressed];
    put_compressed(&mut machine, ScopeKind::Machine, compressed, &end.counts);
    put_slabs(&mut machine, setup, end);
    let of_task = |task| find(report, "task-begin", task).zip(find(report, "task-end", task));
    if let Some((from, to)) = setup.measure.and_then(of_task) {
        put_counts(&mut machine, from, to);
    }
    if let (Some(from), Some(to)) = (begin.cpu, end.cpu) {
        machine.put(declared::CPU_KSWAPD, to.kswapd.saturating_sub(from.kswapd) as f64 / 1e9);
        let writeback = to.writeback.saturating_sub(from.writeback);
        machine.put(declared::CPU_WRITEBACK, writeback as f64 / 1e9);
    }
    machine.put(declared::ELAPSED, end.ns.saturating_sub(begin.ns) as f64 / 1e9);
    let is_awaited = |of: &&GuestSnapshot| {
        of.kind == "task-end" && setup.tasks.get(of.task).is_some_and(|task| !task.background)
    };
    // A task that has not ended.
    if let Some(done) = report.snapshots.iter().rfind(is_awaited) {
        let mut put = metrics.of(Scope::Done);
        put_counts(&mut put, begin, done);
        let compressed = [&begin.compressed, &done.compressed];
        put_compressed(&mut put, ScopeKind::Done, compressed, &done.counts);
    }
    if let Some(shrunk) = find(report, "shrunk", 0) {
        put_slabs(&mut metrics.of(Scope::Shrunk), setup, shrunk);
    }
    if let Some(since_boot) = find(report, "idle-begin", 0) {
        let mut idle = metrics.of(Scope::Idle);
        put_counts(&mut idle, since_boot, begin);
        put_slabs(&mut idle, setup, begin);
    }
}

fn of_task(
    metrics: &mut RunMetricSet,
    report: &GuestReport,
    (id, task): (usize, &Task),
    end: &GuestSnapshot,
) {
    let Some(began) = find(report, "task-begin", id) else { return };
    let mut put = metrics.of(Scope::Task(Owner::new(&task.name)));
    if let Some(ended) = find(report, "task-end", id) {
        put_usage(&mut put, began, ended);
        if let (Some(from), Some(to)) = (began.cpu, ended.cpu) {
            put.put(declared::CPU, to.before.saturating_sub(from.after) as f64 / 1e9);
        }
        let usage = ended.usage;
        let faults = usage.minor_faults.saturating_add(usage.major_faults);
        put.put(declared::TASK_PGFAULT, faults as f64);
        put.put(declared::TASK_PGMAJFAULT, usage.major_faults as f64);
        if ended.blocks[0] > 0 {
            put.put(declared::ATTEMPTS, ended.blocks[0] as f64);
            put_blocks(&mut put, began, ended);
        }
    } else if let Some(stop) = find(report, "task-stop", id) {
        // A task that was stopped or cut by the time limit: its usage is unknown.
        put_walltime(&mut put, began, stop);
    } else if !report.ended.iter().any(|(task, _)| *task == id) {
        put_walltime(&mut put, began, end);
    }
}

fn of_phases(
    metrics: &mut RunMetricSet,
    setup: &Setup,
    report: &GuestReport,
    id: usize,
) -> Result<(), String> {
    let task = &setup.tasks[id];
    let mut began: Option<&GuestSnapshot> = None;
    let mut services = Vec::new();
    for snapshot in report.snapshots.iter().filter(|snapshot| snapshot.task == id) {
        match snapshot.kind.as_str() {
            "phase-begin" => began = Some(snapshot),
            "phase-end" => {
                let from = began.take().filter(|began| began.phase == snapshot.phase);
                let (Some(from), Some(phase)) = (from, task.phases.get(snapshot.phase)) else {
                    return Err(format!("a phase of task `{}` ended before it began", task.name));
                };
                let task = Owner::new(&task.name);
                let scope = Scope::Phase { task, phase: phase.name.clone() };
                let mut put = metrics.of(scope.clone());
                put_counts(&mut put, from, snapshot);
                let compressed = [&from.compressed, &snapshot.compressed];
                put_compressed(&mut put, ScopeKind::Phase, compressed, &snapshot.counts);
                put_slabs(&mut put, setup, snapshot);
                put_usage(&mut put, from, snapshot);
                put_times(&mut put, setup, from, snapshot);
                if let Some(&(ns, operations)) = report.programs.get(&(id, snapshot.phase)) {
                    put.put(declared::PROGRAM_TIME, ns as f64 / 1e9);
                    put.put(declared::OPERATIONS, operations as f64);
                }
                for (name, pages) in &snapshot.resident {
                    put.put_named(name.clone(), *pages as f64, Unit::Pages);
                }
                put_blocks(&mut put, from, snapshot);
                if let Some(errno) = snapshot.errno {
                    put.put(declared::ERRNO, errno as f64);
                }
                if let Some(served) = &snapshot.served {
                    let ns = snapshot.ns.saturating_sub(from.ns);
                    let may_be_late = phase.workload.has_deadline();
                    put_served(&mut put, served, ns, may_be_late);
                    services.push((served, ns, may_be_late));
                }
                put_groups(metrics, &scope, &setup.groups, from, snapshot);
            }
            _ => {}
        }
    }
    // Percentiles of several phases cannot be combined to those of the task.
    if let [(served, ns, may_be_late)] = services.as_slice() {
        let mut put = metrics.of(Scope::Task(Owner::new(&task.name)));
        put_served(&mut put, served, *ns, *may_be_late);
    }
    Ok(())
}

/// Per cent of the requested blocks in between, rounded down, as mmtests prints it.
fn put_blocks(put: &mut MetricWriter<'_>, from: &GuestSnapshot, to: &GuestSnapshot) {
    let [asked, got] = [0, 1].map(|of| to.blocks[of].saturating_sub(from.blocks[of]));
    if let Some(percent) = got.saturating_mul(100).checked_div(asked) {
        put.put(declared::SUCCESS, percent as f64);
    }
}

/// `may_be_late`: the service has a deadline.
fn put_served(put: &mut MetricWriter<'_>, served: &ServiceStats, ns: u64, may_be_late: bool) {
    put.put(declared::REQUESTS, served.requests as f64);
    let seconds = ns as f64 / 1e9;
    put.put(declared::REQUEST_RATE, if ns > 0 { served.requests as f64 / seconds } else { 0.0 });
    if may_be_late {
        put.put(declared::LATE, served.late as f64);
    }
    put.put(declared::DROPPED, served.dropped as f64);
    if served.requests == 0 {
        return;
    }
    let mean = served.sum_ns as f64 / served.requests as f64;
    put.put(declared::LATENCY_MEAN, mean / 1e9);
    let percentiles = [
        declared::LATENCY_P50,
        declared::LATENCY_P90,
        declared::LATENCY_P99,
        declared::LATENCY_P999,
        declared::LATENCY_MAX,
    ];
    for (metric, ns) in percentiles.into_iter().zip(served.latencies_ns) {
        put.put(metric, ns as f64 / 1e9);
    }
}

fn put_counts(put: &mut MetricWriter<'_>, begin: &GuestSnapshot, end: &GuestSnapshot) {
    let earlier: BTreeMap<&str, u64> =
        begin.counts.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let mut stalls = 0u64;
    for (name, value) in &end.counts {
        if name.starts_with(BUDDYINFO) {
            put.put_named(name.clone(), *value as f64, Unit::Count);
            continue;
        }
        if is_level(name) {
            let unit = if name.starts_with(FREE_BLOCKS) { Unit::Count } else { Unit::Pages };
            put.put_named(name.clone(), *value as f64, unit);
            continue;
        }
        let count = value.saturating_sub(earlier.get(name.as_str()).copied().unwrap_or(0));
        if name.starts_with("psi.memory.") {
            put.put_named(name.clone(), count as f64 / 1e6, Unit::Seconds);
            continue;
        }
        if name.starts_with("allocstall_") {
            stalls = count.saturating_add(stalls);
        }
        put.put_named(name.clone(), count as f64, Unit::Count);
    }
    put.put_named(declared::ALLOCSTALL.name, stalls as f64, Unit::Count);
}

/// CPU times of a phase without those of the reports at its ends, and its duration without that of
/// the first report.
fn put_times(
    put: &mut MetricWriter<'_>,
    setup: &Setup,
    begin: &GuestSnapshot,
    end: &GuestSnapshot,
) {
    let (Some(from), Some(to)) = (begin.cpu, end.cpu) else { return };
    let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
    put.put(declared::CPU, seconds(from.after, to.before));
    put.put(declared::CPU_KSWAPD, seconds(from.kswapd, to.kswapd));
    put.put(declared::CPU_WRITEBACK, seconds(from.writeback, to.writeback));
    // The time of reports between phases that create objects follows from the difference of the two
    // durations.
    if !setup.has_objects() {
        put.put(declared::WALLTIME, seconds(from.ended, end.ns));
    }
}

fn put_walltime(put: &mut MetricWriter<'_>, begin: &GuestSnapshot, end: &GuestSnapshot) {
    put.put(declared::WALLTIME, end.ns.saturating_sub(begin.ns) as f64 / 1e9);
}

fn put_usage(put: &mut MetricWriter<'_>, begin: &GuestSnapshot, end: &GuestSnapshot) {
    let (from, to) = (begin.usage, end.usage);
    let seconds = end.ns.saturating_sub(begin.ns) as f64 / 1e9;
    let bytes = to.bytes.saturating_sub(from.bytes) as f64;
    let microseconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
    put_walltime(put, begin, end);
    put.put(declared::USER, microseconds(from.user_us, to.user_us));
    put.put(declared::SYSTEM, microseconds(from.system_us, to.system_us));
    put.put(declared::BYTES, bytes);
    put.put(declared::THROUGHPUT, if seconds > 0.0 { bytes / seconds } else { 0.0 });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compressed_counts::CompressedCounts;
    use crate::console::GuestTaskUsage;
    use crate::host::slabinfo::SlabCache;
    use pagetide_testing::setup;

    const SCENARIO: &str = r#"
machine.memory = "1GiB"
[[task]]
name = "a"
phase = [
  { name = "fill", workload = "touch", size = "1MiB" },
  { name = "again", workload = "touch", size = "1MiB" },
]
[[task]]
name = "b"
workload = "touch"
size = "1MiB"
"#;

    /// A snapshot at `ms` with `faults` faults, half of them stalls of zone DMA32.
    fn snap(kind: &str, (task, phase): (usize, usize), ms: u64, faults: u64) -> GuestSnapshot {
        let count = |name: &str, value| (name.to_owned(), value);
        GuestSnapshot {
            kind: kind.to_owned(),
            task,
            phase,
            ns: ms * 1_000_000,
            counts: vec![
                count("nr_free_pages", 10_000 - faults),
                count("buddyinfo.node0.DMA.nr_free_blocks_9", 4000 - faults),
                count("nr_dirtied", faults),
                count("pgfault", faults),
                count("allocstall_dma32", faults / 2),
                count("allocstall_movable", 1),
            ],
            usage: GuestTaskUsage {
                user_us: ms * 100,
                system_us: ms * 10,
                minor_faults: faults,
                major_faults: 5,
                bytes: ms * 4096,
            },
            resident: Vec::new(),
            errno: None,
            blocks: [0; 2],
            cpu: None,
            served: None,
            slabs: Vec::new(),
            compressed: CompressedCounts::default(),
            groups: BTreeMap::new(),
        }
    }

    fn whole() -> GuestReport {
        let mut ended = snap("phase-end", (0, 1), 30, 600);
        let latencies_ns = [1, 2, 3, 4, 5].map(|ms| ms * 1_000_000);
        ended.served = Some(ServiceStats {
            requests: 10,
            late: 2,
            dropped: 3,
            sum_ns: 20_000_000,
            latencies_ns,
        });
        ended.resident = vec![("anon_hot_resident".to_owned(), 77)];
        GuestReport {
            snapshots: vec![
                snap("idle-begin", (0, 0), 8, 90),
                snap("run-begin", (0, 0), 10, 100),
                snap("task-begin", (0, 0), 11, 110),
                snap("phase-begin", (0, 0), 12, 120),
                snap("task-begin", (1, 0), 13, 130),
                snap("phase-end", (0, 0), 20, 300),
                snap("phase-begin", (0, 1), 20, 310),
                ended,
                snap("task-end", (0, 0), 31, 610),
                snap("task-end", (1, 0), 40, 700),
                snap("run-end", (0, 0), 50, 1000),
            ],
            done: true,
            ..GuestReport::default()
        }
    }

    fn of(setup: &Setup, report: &GuestReport) -> Result<RunRecord, String> {
        record(RunName { scenario: "s", variant: "v", seed: 9 }, setup, report)
    }

    fn value(record: &RunRecord, key: &str) -> Option<f64> {
        record.metrics.get(key).map(|metric| metric.value)
    }

    #[test]
    fn events_are_differences_and_levels_are_those_of_the_end() {
        let record = of(&setup(SCENARIO), &whole()).unwrap();
        assert_eq!((record.scenario.as_str(), record.variant.as_str()), ("s", "v"));
        assert_eq!((record.seed, record.elapsed_ns), (9, 40_000_000));
        let wanted = [
            ("pgfault", 900.0),
            ("nr_free_pages", 9000.0),
            ("buddyinfo.node0.DMA.nr_free_blocks_9", 3000.0),
            ("a.fill.buddyinfo.node0.DMA.nr_free_blocks_9", 3700.0),
            ("nr_dirtied", 900.0),
            ("allocstall", 450.0),
            ("allocstall_movable", 0.0),
            ("elapsed", 0.04),
            ("idle.pgfault", 10.0),
            ("done.pgfault", 600.0),
            ("done.nr_free_pages", 9300.0),
            ("a.walltime", 0.02),
            ("a.pgfault", 615.0),
            ("a.pgmajfault", 5.0),
            ("a.user", 0.002),
            ("a.throughput", 4_096_000.0),
            ("a.fill.pgfault", 180.0),
            ("a.fill.nr_free_pages", 9700.0),
            ("a.fill.bytes", 8.0 * 4096.0),
            ("a.again.pgfault", 290.0),
            ("a.again.anon_hot_resident", 77.0),
            ("a.again.requests", 10.0),
            ("a.latency_mean", 0.002),
            ("a.latency_p90", 0.002),
            ("a.latency_max", 0.005),
            ("a.dropped", 3.0),
            ("b.walltime", 0.027),
        ];
        for (key, wanted) in wanted {
            assert_eq!(value(&record, key), Some(wanted), "{key}");
        }
        assert_eq!(value(&record, "a.fill.anon_hot_resident"), None);
        assert_eq!(record.metrics["a.again.anon_hot_resident"].unit, Unit::Pages);
        assert_eq!(record.notes, [""; 0]);
    }

    #[test]
    fn groups_have_counters_by_phase_and_of_the_run() {
        let mut report = whole();
        for snapshot in &mut report.snapshots {
            if snapshot.kind.starts_with("run-") || snapshot.kind.starts_with("phase-") {
                let faults = snapshot.ns / 1_000_000;
                let said = vec![("pgfault".to_owned(), faults), ("anon".to_owned(), 4096 * faults)];
                snapshot.groups.insert(0, said);
            }
        }
        let setup = setup(&format!("{SCENARIO}[[group]]\nname = \"g\"\n"));
        let record = of(&setup, &report).unwrap();
        for (key, wanted) in [
            ("a.fill.g.pgfault", 8.0),
            ("a.fill.g.anon", 4096.0 * 20.0),
            ("a.again.g.pgfault", 10.0),
            ("g.anon", 4096.0 * 50.0),
            ("g.pgfault", 40.0),
        ] {
            assert_eq!(value(&record, key), Some(wanted), "{key}");
        }
    }

    #[test]
    fn caches_are_of_phases_the_run_and_after_it() {
        let mut report = whole();
        for snapshot in &mut report.snapshots {
            let active_objects = snapshot.ns / 1_000_000;
            let name = "dentry".to_owned();
            let cache = SlabCache { name, active_objects, slabs: 1, ..SlabCache::default() };
            snapshot.slabs = vec![cache];
        }
        let mut shrunk = report.snapshots.last().unwrap().clone();
        (shrunk.kind, shrunk.slabs[0].active_objects) = ("shrunk".to_owned(), 7);
        report.snapshots.push(shrunk);
        let record = of(&setup(SCENARIO), &report).unwrap();
        for (prefix, wanted) in
            [("", 50.0), ("idle.", 10.0), ("a.fill.", 20.0), ("a.again.", 30.0), ("shrunk.", 7.0)]
        {
            let key = format!("{prefix}slabinfo.dentry.active_objs");
            assert_eq!(value(&record, &key), Some(wanted), "{key}");
        }
    }

    #[test]
    fn a_measured_task_has_the_plain_names() {
        let mut setup = setup(SCENARIO);
        setup.measure = Some(1);
        let record = of(&setup, &whole()).unwrap();
        assert_eq!(value(&record, "pgfault"), Some(570.0));
        assert_eq!(value(&record, "elapsed"), Some(0.04));
    }

    #[test]
    fn every_missing_snapshot_costs_only_what_depends_on_it() {
        let (setup, whole) = (setup(SCENARIO), whole());
        let full = of(&setup, &whole).unwrap();
        for index in 0..whole.snapshots.len() {
            let mut report = whole.clone();
            let missing = report.snapshots.remove(index);
            let what = format!("{} {} {}", missing.kind, missing.task, missing.phase);
            match (of(&setup, &report), missing.kind.as_str()) {
                (Err(problem), "run-begin" | "run-end") => {
                    assert!(problem.contains("no snapshot of the run's"), "{what}: {problem}");
                }
                (Err(problem), "phase-begin") => {
                    assert_eq!(problem, "a phase of task `a` ended before it began");
                }
                (Ok(record), _) => {
                    let lost = full.metrics.keys().any(|key| !record.metrics.contains_key(key));
                    assert!(lost, "{what}");
                    assert!(record.metrics.keys().all(|key| full.metrics.contains_key(key)));
                    assert_eq!(value(&record, "pgfault"), Some(900.0), "{what}");
                }
                (Err(problem), _) => panic!("{what}: {problem}"),
            }
        }
    }

    #[test]
    fn a_killed_task_has_no_walltime() {
        let mut report = whole();
        report.snapshots.retain(|snapshot| snapshot.kind != "task-end" || snapshot.task != 1);
        report.ended = vec![(1, "signal 9".into()), (0, "signal 7".into()), (5, "exit 3".into())];
        report.notes = vec!["cut by the time limit".into()];
        let record = of(&setup(SCENARIO), &report).unwrap();
        assert_eq!(value(&record, "b.walltime"), None);
        assert_eq!(value(&record, "b.pgfault"), None, "unknown, not zero");
        assert_eq!(
            record.notes,
            [
                "cut by the time limit",
                "task `b` was killed: out of memory",
                "task `a` was killed: a page could not be read",
                "task `?` ended with exit 3",
            ]
        );
    }

    #[test]
    fn counters_that_only_some_snapshots_have_count_from_zero() {
        let mut report = whole();
        report.snapshots.last_mut().unwrap().counts.push(("new_one".to_owned(), 4));
        report.snapshots.last_mut().unwrap().counts.push(("pgfault".to_owned(), 1));
        let record = of(&setup(SCENARIO), &report).unwrap();
        assert_eq!(value(&record, "new_one"), Some(4.0));
        assert_eq!(value(&record, "pgfault"), Some(0.0), "never below zero");
        report.snapshots.retain(|snapshot| snapshot.kind.starts_with("run"));
        assert_eq!(value(&of(&setup(SCENARIO), &report).unwrap(), "new_one"), Some(4.0));
        assert!(of(&setup(SCENARIO), &GuestReport::default()).is_err());
    }
}
