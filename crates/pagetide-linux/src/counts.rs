//! From snapshots to a run record with the same metric keys as the simulator's.
//!
//! Over a phase and over a life: events are differences, levels (`nr_free_pages`, ...) are what they
//! were at the end. Linux mixes both in /proc/vmstat; names that begin with `nr_` are levels but for
//! a few.

use crate::console::{Report, Snapshot};
use pagetide_scenario::model::Setup;
use pagetide_scenario::record::{Metric, RunRecord, Unit};
use std::collections::BTreeMap;

/// Counters called `nr_` that only ever grow (include/linux/mmzone.h, `enum node_stat_item`).
const GROWING: [&str; 7] = [
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_dirtied",
    "nr_written",
    "nr_throttled_written",
    "nr_foll_pin_acquired",
    "nr_foll_pin_released",
];

/// Which run a record is of.
#[derive(Clone, Copy, Debug)]
pub struct RunName<'a> {
    /// Scenario.
    pub scenario: &'a str,
    /// Variant.
    pub variant: &'a str,
    /// Seed.
    pub seed: u64,
}

/// Whether a name of /proc/vmstat is a level, not a count of events.
pub fn is_level(name: &str) -> bool {
    name.starts_with("nr_") && !GROWING.contains(&name)
}

/// The record of a finished run.
///
/// # Errors
/// A sentence, when snapshots are missing.
pub fn record(run: RunName<'_>, setup: &Setup, report: &Report) -> Result<RunRecord, String> {
    let mut metrics = BTreeMap::new();
    let find = |kind: &str, task: usize| {
        report.snapshots.iter().find(|snapshot| snapshot.kind == kind && snapshot.task == task)
    };
    let begin = find("run-begin", 0).ok_or("no snapshot of the run's begin")?;
    let end = find("run-end", 0).ok_or("no snapshot of the run's end")?;
    put_counts(&mut metrics, "", begin, end);
    if let Some((from, to)) =
        setup.measure.and_then(|task| find("task-begin", task).zip(find("task-end", task)))
    {
        put_counts(&mut metrics, "", from, to);
    }
    if let Some(idle) = find("idle-begin", 0) {
        put_counts(&mut metrics, "idle.", idle, begin);
    }
    let elapsed_ns = end.ns.saturating_sub(begin.ns);
    put(&mut metrics, "elapsed".into(), elapsed_ns as f64 / 1e9, Unit::Seconds);
    for (id, task) in setup.tasks.iter().enumerate() {
        let ended = find("task-end", id).unwrap_or(end);
        if let Some(began) = find("task-begin", id) {
            put_usage(&mut metrics, &task.name, began, ended);
            let usage = ended.usage;
            let faults = usage.minor_faults + usage.major_faults;
            put(&mut metrics, format!("{}.pgfault", task.name), faults as f64, Unit::Count);
            let major = usage.major_faults as f64;
            put(&mut metrics, format!("{}.pgmajfault", task.name), major, Unit::Count);
        }
        let mut began = None;
        for snapshot in report.snapshots.iter().filter(|snapshot| snapshot.task == id) {
            match snapshot.kind.as_str() {
                "phase-begin" => began = Some(snapshot),
                "phase-end" => {
                    let (Some(from), Some(phase)) = (began, task.phases.get(snapshot.phase)) else {
                        return Err(format!("a phase of task `{}` ended unbegun", task.name));
                    };
                    let key = format!("{}.{}", task.name, phase.name);
                    put_counts(&mut metrics, &format!("{key}."), from, snapshot);
                    put_usage(&mut metrics, &key, from, snapshot);
                    for (name, pages) in &snapshot.resident {
                        put(&mut metrics, format!("{key}.{name}"), *pages as f64, Unit::Pages);
                    }
                }
                _ => {}
            }
        }
    }
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
        scenario: run.scenario.to_owned(),
        variant: run.variant.to_owned(),
        seed: run.seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        metrics,
        digest: 0,
        elapsed_ns,
        notes,
        files: Vec::new(),
    })
}

fn put(metrics: &mut BTreeMap<String, Metric>, key: String, value: f64, unit: Unit) {
    metrics.insert(key, Metric { value, unit });
}

fn put_counts(
    metrics: &mut BTreeMap<String, Metric>,
    prefix: &str,
    begin: &Snapshot,
    end: &Snapshot,
) {
    let earlier: BTreeMap<&str, u64> =
        begin.counts.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let mut stalls = 0;
    for (name, value) in &end.counts {
        let key = format!("{prefix}{name}");
        if is_level(name) {
            put(metrics, key, *value as f64, Unit::Pages);
            continue;
        }
        let count = value.saturating_sub(earlier.get(name.as_str()).copied().unwrap_or(0));
        if name.starts_with("allocstall_") {
            stalls += count;
        }
        put(metrics, key, count as f64, Unit::Count);
    }
    put(metrics, format!("{prefix}allocstall"), stalls as f64, Unit::Count);
}

fn put_usage(metrics: &mut BTreeMap<String, Metric>, key: &str, begin: &Snapshot, end: &Snapshot) {
    let (from, to) = (begin.usage, end.usage);
    let seconds = end.ns.saturating_sub(begin.ns) as f64 / 1e9;
    let bytes = to.bytes.saturating_sub(from.bytes) as f64;
    let microseconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
    put(metrics, format!("{key}.walltime"), seconds, Unit::Seconds);
    put(metrics, format!("{key}.user"), microseconds(from.user_us, to.user_us), Unit::Seconds);
    put(
        metrics,
        format!("{key}.system"),
        microseconds(from.system_us, to.system_us),
        Unit::Seconds,
    );
    put(metrics, format!("{key}.bytes"), bytes, Unit::Bytes);
    let rate = if seconds > 0.0 { bytes / seconds } else { 0.0 };
    put(metrics, format!("{key}.throughput"), rate, Unit::BytesPerSecond);
}
