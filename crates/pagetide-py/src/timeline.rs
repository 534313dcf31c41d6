//! Timelines of a run as tables, for the machine, a group, a task, a service, a node or a zone.
//!
//! The columns are those of `pagetide inspect --timeline --format csv`, with times in seconds.

use crate::errors;
use crate::table::Table;
use arrow_array::{ArrayRef, Float64Array, UInt64Array};
use pagetide_scenario::names::near::nearest;
use pagetide_scenario::record::timeline::{
    CompactionCounts, GroupEvents, GroupRow, TaskRow, Timeline, TimelineSample,
};
use pyo3::prelude::*;
use std::sync::Arc;

type TimelineCells = Vec<(String, Option<u64>)>;

/// The subject of the samples.
enum TimelineSubject {
    Group(usize),
    Node(usize),
    Zone(usize),
    Service(usize),
    Task(usize),
    Vmstat,
    Meminfo,
}

/// Every name that [`table`] accepts, except that of the machine.
fn names(timeline: &Timeline) -> Vec<(String, TimelineSubject)> {
    let mut names = Vec::new();
    for (at, group) in timeline.groups.iter().enumerate().skip(1) {
        names.push((group.trim_start_matches('/').to_owned(), TimelineSubject::Group(at)));
        names
            .push((format!("group {}", group.trim_start_matches('/')), TimelineSubject::Group(at)));
    }
    for (at, task) in timeline.tasks.iter().enumerate() {
        names.push((task.clone(), TimelineSubject::Task(at)));
        names.push((format!("task {task}"), TimelineSubject::Task(at)));
    }
    for (at, service) in timeline.services.iter().enumerate() {
        names.push((format!("service {service}"), TimelineSubject::Service(at)));
    }
    for node in 0..timeline.nr_nodes {
        names.push((format!("node{node}"), TimelineSubject::Node(node)));
    }
    for (at, zone) in timeline.zones.iter().enumerate() {
        names.push((format!("zone node{} {}", zone.node, zone.zone), TimelineSubject::Zone(at)));
    }
    names.push(("vmstat".to_owned(), TimelineSubject::Vmstat));
    names.push(("meminfo".to_owned(), TimelineSubject::Meminfo));
    names
}

/// The samples of `of`: the machine (`None` or `machine`), a group, a task, `service NAME`,
/// `node0`, `zone node0 Normal`, `vmstat`, `meminfo`.
pub fn table(py: Python<'_>, timeline: &Timeline, of: Option<&str>) -> PyResult<Table> {
    let is_machine = |of: &&str| of.is_empty() || *of == "machine";
    let of = match of.filter(|of| !is_machine(of)) {
        None => TimelineSubject::Group(0),
        Some(wanted) => {
            let all = names(timeline);
            let wanted = wanted.trim_start_matches('/');
            match all.iter().position(|(name, _)| name == wanted) {
                Some(at) => all.into_iter().nth(at).map_or(TimelineSubject::Group(0), |(_, of)| of),
                None => {
                    let known = || all.iter().map(|(name, _)| name.as_str());
                    let hint = match nearest(wanted, known()) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("choose from {}", known().collect::<Vec<_>>().join(", ")),
                    };
                    let message = format!("there is no group, task or node `{wanted}`");
                    return Err(errors::input(py, message, hint));
                }
            }
        }
    };
    let mut columns: Vec<(String, Vec<Option<u64>>)> = Vec::new();
    let mut times = Vec::new();
    for sample in &timeline.samples {
        let Some(cells) = cells(timeline, sample, &of) else { continue };
        times.push(sample.end_ns as f64 / 1e9);
        if columns.is_empty() {
            columns = cells.iter().map(|(name, _)| (name.clone(), Vec::new())).collect();
        }
        for ((_, column), (_, value)) in columns.iter_mut().zip(cells) {
            column.push(value);
        }
    }
    let time: ArrayRef = Arc::new(Float64Array::from(times));
    let mut all: Vec<(&str, ArrayRef)> = vec![("time_s", time)];
    for (name, column) in &columns {
        all.push((name, Arc::new(UInt64Array::from(column.clone()))));
    }
    Table::new(all)
}

/// `None` if the subject did not exist at that time.
fn cells(
    timeline: &Timeline,
    sample: &TimelineSample,
    of: &TimelineSubject,
) -> Option<TimelineCells> {
    let some = |(name, value): (&str, u64)| (name.to_owned(), Some(value));
    let rows = |names: &[String], values: &[u64]| -> TimelineCells {
        names.iter().cloned().zip(values.iter().copied().map(Some)).collect()
    };
    Some(match *of {
        TimelineSubject::Group(at) => {
            let mut cells: TimelineCells =
                group(sample.rows.get(at)?.as_ref()?).into_iter().map(some).collect();
            if at == 0 {
                let counts = CompactionCounts::NAMES.into_iter().zip(sample.compaction.values());
                cells.extend(counts.map(some));
            }
            cells
        }
        TimelineSubject::Node(at) => {
            let row = sample.nodes.get(at)?;
            let cells = [
                ("free_pages", row.free_pages),
                ("free_blocks_order9", row.large_blocks),
                ("unusable_index_permille", row.unusable_index.into()),
                ("unusable_index_permille_min", row.unusable_index_min.into()),
                ("unusable_index_permille_max", row.unusable_index_max.into()),
            ];
            cells.into_iter().map(some).collect()
        }
        TimelineSubject::Zone(at) => {
            let row = sample.zones.get(at)?;
            let cells = [
                ("free_pages", row.free_pages),
                ("free_min_pages", row.free_min_pages),
                ("free_max_pages", row.free_max_pages),
                ("min_pages", row.min_pages),
                ("low_pages", row.low_pages),
                ("high_pages", row.high_pages),
            ];
            cells.into_iter().map(some).collect()
        }
        TimelineSubject::Service(at) => {
            let row = sample.services.get(at)?;
            let latency = |ns: u64| Some(ns).filter(|_| row.requests > 0);
            let mut cells: TimelineCells =
                [("requests", row.requests), ("late", row.late), ("dropped", row.dropped)]
                    .into_iter()
                    .map(some)
                    .collect();
            cells.push(("latency_mean_ns".to_owned(), latency(row.latency_mean_ns())));
            cells.push(("latency_max_ns".to_owned(), latency(row.latency_max_ns)));
            cells
        }
        TimelineSubject::Task(at) => {
            let row = sample.tasks.get(at)?;
            let mut cells: TimelineCells =
                [("pgmajfault", row.pgmajfault), ("allocated_pages", row.allocated_pages)]
                    .into_iter()
                    .map(some)
                    .collect();
            let stalls = TaskRow::STALLS.iter().zip(row.stalled_ns);
            cells.extend(stalls.map(|(name, ns)| (format!("{name}_ns"), Some(ns))));
            cells
        }
        TimelineSubject::Vmstat => rows(&timeline.vmstat, &sample.vmstat),
        TimelineSubject::Meminfo => rows(&timeline.meminfo, &sample.meminfo),
    })
}

fn group(row: &GroupRow) -> Vec<(&'static str, u64)> {
    let mut cells = vec![
        ("usage_pages", row.usage_pages),
        ("usage_min_pages", row.usage_min_pages),
        ("usage_max_pages", row.usage_max_pages),
    ];
    cells.extend(GroupEvents::NAMES.into_iter().zip(row.counts.values()));
    cells.extend([
        ("anon_pages", row.anon_pages),
        ("file_pages", row.file_pages),
        ("inactive_file_pages", row.inactive_file_pages),
        ("swap_pages", row.swap_pages),
        ("psi_some_ns", row.some_ns),
        ("psi_full_ns", row.full_ns),
    ]);
    cells
}
