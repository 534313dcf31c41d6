//! The metrics that a verdict compares: the rows of the table, then those of [`OUTCOMES`] without a
//! row.
//!
//! Invariant: a metric is a candidate once. Levels and walltimes of background tasks are not.

use crate::report::Report;
use crate::rows;
use pagetide_scenario::metric::better::{self, MetricDirection};
use pagetide_scenario::metric::declared::{self, THROUGHPUT, WALLTIME};
use pagetide_scenario::metric::{MetricKey, Owner, Scope};
use pagetide_scenario::record::Unit;
use std::collections::BTreeSet;

/// Metrics that a user of the load notices. Compared for the machine, tasks and groups even if the table
/// does not show it; the most important first.
const OUTCOMES: [&str; 16] = [
    "oom_kill",
    "memory.events.oom_kill",
    "walltime",
    "success",
    "latency_p99",
    "latency_p999",
    "latency_p50",
    "late",
    "dropped",
    "unfinished",
    "request_rate",
    "throughput",
    "alloc_latency_p99",
    "alloc_latency_p999",
    "psi.memory.full",
    "psi.memory.some",
];

/// Causes of outcomes. Reported after them, and only if the table shows them: waiting is a part of
/// a time, and may grow while the time shrinks.
const CAUSES: [&str; 13] = [
    "memory.pressure.full",
    "memory.pressure.some",
    "stall_refault",
    "stall_reread",
    "stall_reclaim",
    "stall_throttled",
    "stall_high",
    "stall_dirty",
    "stall_dirty_group",
    "pgmajfault",
    "workingset_refault_anon",
    "workingset_refault_file",
    "allocstall",
];

/// Families of metrics that say nearly the same, with the prefixes of these; one per family and
/// owner is reported.
const FAMILIES: [(&str, &[&str]); 13] = [
    ("latency", &["latency_"]),
    ("alloc_latency", &["alloc_latency_"]),
    ("pressure", &["psi.memory.", "memory.pressure."]),
    ("dirty", &["stall_dirty"]),
    ("stall", &["stall_"]),
    ("time", &["walltime", "elapsed", "throughput", "bytes"]),
    ("requests", &["request"]),
    ("refault", &["pgmajfault", "workingset_re"]),
    ("direct", &["allocstall", "mm_vmscan_direct_", "mm_vmscan_throttled"]),
    ("direct", &["pgscan_direct_throttle"]),
    ("scan", &["pgscan", "pgsteal", "pgrefill"]),
    ("swap", &["pswp"]),
    ("kswapd", &["kswapd_", "pageoutrun", "mm_vmscan_kswapd_", "mm_vmscan_wakeup_kswapd"]),
];

/// A metric to compare.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricCandidate {
    pub key: MetricKey,
    /// The run time metric, if values are per second of it (of times: per cent of it).
    pub(super) time: Option<MetricKey>,
    pub(super) better: MetricDirection,
    /// Order of importance: small is first.
    pub(super) rank: usize,
    /// Whether it is a row of the table and not work.
    pub(super) is_asked: bool,
    /// Owner and kind: metrics of one family say nearly the same, so one is reported.
    pub(super) family: (Scope, String),
}

pub(super) fn candidates(report: &Report) -> Vec<MetricCandidate> {
    let shown = rows::rows(report);
    let has_named = !report.plan.scenario.rows.is_empty();
    let mut candidates = Vec::new();
    let mut push = |key: &MetricKey, rank: usize, is_shown: bool| {
        let better = better::of(key);
        let is_background = is_of_background(report, key);
        // A background task runs as long as the others: its walltime says nothing.
        let says_nothing = is_background && key.name == WALLTIME.name;
        // For other tasks the walltime says the same.
        let is_said = !is_shown && !is_background && key.name == THROUGHPUT.name;
        if better != MetricDirection::Neither && !says_nothing && !is_said {
            let time = time_of_total(key, is_background || better == MetricDirection::More);
            let family = (key.scope.clone(), family(&key.name).to_owned());
            let is_asked = is_shown && better != MetricDirection::Work;
            let key = key.clone();
            candidates.push(MetricCandidate { key, time, better, rank, is_asked, family });
        }
    };
    for (at, key) in shown.iter().enumerate() {
        // Default rows are in alphabetical order.
        push(key, if has_named { at } else { importance(&key.name) }, true);
    }
    let seen: BTreeSet<&MetricKey> = shown.iter().collect();
    for key in report.keys.values().filter(|key| !seen.contains(key)) {
        let is_whole = matches!(key.scope, Scope::Machine | Scope::Task(_) | Scope::Group(_));
        if is_whole && key.scope.family().is_none() && OUTCOMES.contains(&&*key.name) {
            let rank = shown.len() + OUTCOMES.len() + CAUSES.len() + importance(&key.name);
            push(key, rank, false);
        }
    }
    candidates
}

fn importance(name: &str) -> usize {
    let mut all = OUTCOMES.iter().chain(&CAUSES);
    all.position(|important| *important == name).unwrap_or(OUTCOMES.len() + CAUSES.len())
}

fn family(name: &str) -> &str {
    let is_of = |begins: &[&str]| begins.iter().any(|begin| name.starts_with(begin));
    FAMILIES.iter().find(|(_, begins)| is_of(begins)).map_or(name, |(family, _)| family)
}

/// Whether the metric is of a background task, or of a phase of one.
fn is_of_background(report: &Report, key: &MetricKey) -> bool {
    let (Scope::Task(owner) | Scope::Phase { task: owner, .. }) = &key.scope else { return false };
    let tasks = report.plan.scenario.variants.iter().flat_map(|variant| &variant.setup.tasks);
    let mut of_owner = tasks.filter(|task| {
        let task = Owner::new(&task.name);
        task == *owner || task.family() == *owner
    });
    of_owner.any(|task| task.background)
}

/// The run time over which a total of a task or a phase adds up, if it `grows_with_time`.
fn time_of_total(key: &MetricKey, grows_with_time: bool) -> Option<MetricKey> {
    let is_of_task = matches!(key.scope, Scope::Task(_) | Scope::Phase { .. });
    let unit = declared::find(key.scope.kind(), &key.name).map_or(Unit::Count, |it| it.unit);
    let is_total = match unit {
        Unit::Count | Unit::Bytes => true,
        Unit::Seconds => !key.name.contains("latency_"),
        _ => false,
    };
    let has_time = is_of_task && is_total && grows_with_time && key.name != WALLTIME.name;
    has_time.then(|| key.scope.metric(WALLTIME))
}
