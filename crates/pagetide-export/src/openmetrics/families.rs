//! The families: node_exporter's collectors meminfo, vmstat, zoneinfo, pressure, uname and stat,
//! and cAdvisor's memory metrics.
//!
//! Linux: node_exporter 1.x, `collector/*_linux.go`; cAdvisor, `metrics/prometheus.go`.
//!
//! Invariant: a counter of a group starts at 0 whenever the group is created.

use super::text::{labels, name, seconds, MetricFamily, MetricType};
use super::{limits, LastSample, OpenMetricsSource};
use pagetide_scenario::record::timeline::{GroupRow, TimelineSample, ZoneRow};

/// Scope of failures: including descendants.
const HIERARCHY: &str = "hierarchy";

/// Families of the machine.
pub(super) fn node(source: &OpenMetricsSource<'_>, samples: &[LastSample<'_>], out: &mut String) {
    uname(source, samples, out);
    let all = labels(&[("instance", source.instance), ("job", "node")]);
    let start = source.start_s.to_string();
    let mut boot = MetricFamily::new(
        out,
        source.start_s,
        "node_boot_time_seconds",
        MetricType::Gauge,
        "Start of the run, in seconds since 1970.",
    );
    samples.iter().for_each(|at| boot.sample(&all, &start, at.milliseconds));

    let timeline = source.timeline;
    for (at, row) in timeline.meminfo.iter().enumerate() {
        // The only rows that are not sizes.
        let is_count = row.starts_with("HugePages_");
        let ending = if is_count { "" } else { "_bytes" };
        let help = format!("Field {row} of /proc/meminfo.");
        let family = format!("node_memory_{}{ending}", name(row));
        let value = |sample: &TimelineSample| {
            let value = u128::from(*sample.meminfo.get(at)?);
            Some(if is_count { value } else { value * 1024 })
        };
        levels(source, samples, out, (&family, MetricType::Gauge, &help), &all, value);
    }
    for (at, row) in timeline.vmstat.iter().enumerate() {
        let help = format!("Field {row} of /proc/vmstat.");
        let family = format!("node_vmstat_{}", name(row));
        let value = |sample: &TimelineSample| Some(u128::from(*sample.vmstat.get(at)?));
        levels(source, samples, out, (&family, MetricType::Unknown, &help), &all, value);
    }
    zones(source, samples, out);
    for (family, help, ns) in PRESSURE {
        let mut family = MetricFamily::new(
            out,
            source.start_s,
            &format!("node_{family}"),
            MetricType::Counter,
            help,
        );
        sums(samples, 0, ns).iter().for_each(|(at, ns)| family.sample(&all, &seconds(*ns), *at));
    }
}

/// Family, help, and counter.
type CounterFamily = (&'static str, &'static str, fn(&GroupRow) -> u64);

/// PSI of memory; the names of node_exporter and of cAdvisor differ in their first word.
const PRESSURE: [CounterFamily; 2] = [
    (
        "pressure_memory_waiting_seconds",
        "Time in which at least one task waited for memory (PSI, some).",
        |row| row.some_ns,
    ),
    (
        "pressure_memory_stalled_seconds",
        "Time in which all non-idle tasks waited for memory (PSI, full).",
        |row| row.full_ns,
    ),
];

/// The metric by which dashboards select a machine.
fn uname(source: &OpenMetricsSource<'_>, samples: &[LastSample<'_>], out: &mut String) {
    let release = format!("pagetide-{}", env!("CARGO_PKG_VERSION"));
    let all = labels(&[
        ("instance", source.instance),
        ("job", "node"),
        ("nodename", source.instance),
        ("release", &release),
        ("sysname", "Linux"),
    ]);
    let help = "The simulated machine.";
    let mut family = MetricFamily::new(out, source.start_s, "node_uname", MetricType::Info, help);
    samples.iter().for_each(|at| family.sample(&all, "1", at.milliseconds));
}

/// A series of levels at the ends of samples.
fn levels(
    source: &OpenMetricsSource<'_>,
    samples: &[LastSample<'_>],
    out: &mut String,
    (family, kind, help): (&str, MetricType, &str),
    labels: &str,
    value: impl Fn(&TimelineSample) -> Option<u128>,
) {
    let mut family = MetricFamily::new(out, source.start_s, family, kind, help);
    for at in samples {
        if let Some(value) = value(at.last) {
            family.sample(labels, &value.to_string(), at.milliseconds);
        }
    }
}

/// Free memory and watermarks of each zone.
fn zones(source: &OpenMetricsSource<'_>, samples: &[LastSample<'_>], out: &mut String) {
    type Level = (&'static str, &'static str, fn(&ZoneRow) -> u64);
    const LEVELS: [Level; 4] = [
        ("nr_free_pages", "Free pages of the zone.", |row| row.free_pages),
        ("min_pages", "Watermark min of the zone, with its boost.", |row| row.min_pages),
        ("low_pages", "Watermark low of the zone, with its boost.", |row| row.low_pages),
        ("high_pages", "Watermark high of the zone, with its boost.", |row| row.high_pages),
    ];
    for (level, help, value) in LEVELS {
        let family = format!("node_zoneinfo_{level}");
        let mut family = MetricFamily::new(out, source.start_s, &family, MetricType::Gauge, help);
        for (zone, called) in source.timeline.zones.iter().enumerate() {
            let node = called.node.to_string();
            let labels = labels(&[
                ("instance", source.instance),
                ("job", "node"),
                ("node", &node),
                ("zone", &called.zone),
            ]);
            for at in samples {
                if let Some(row) = at.last.zones.get(zone) {
                    family.sample(&labels, &value(row).to_string(), at.milliseconds);
                }
            }
        }
    }
}

/// Running sums with their time in milliseconds. A sum starts with 0 at the start of the run, or at
/// the sample before the first with this row, if there is one.
fn sums(samples: &[LastSample<'_>], row: usize, counted: fn(&GroupRow) -> u64) -> Vec<(u64, u64)> {
    let mut sums: Vec<(u64, u64)> = Vec::new();
    let mut sum = None;
    let mut before = 0;
    for at in samples {
        let is_there = at.last.rows.get(row).is_some_and(Option::is_some);
        sum = is_there.then(|| {
            if sum.is_none()
                && sums.last().is_none_or(|(last, _)| *last < before)
                && before < at.milliseconds
            {
                sums.push((before, 0));
            }
            let rows = at.all.iter().filter_map(|sample| sample.rows.get(row)?.as_ref());
            rows.map(counted).fold(sum.unwrap_or(0), u64::saturating_add)
        });
        sums.extend(sum.map(|sum| (at.milliseconds, sum)));
        before = at.milliseconds;
    }
    sums
}

/// Families of groups, including `/`.
pub(super) fn containers(
    source: &OpenMetricsSource<'_>,
    samples: &[LastSample<'_>],
    out: &mut String,
) {
    type Level = (&'static str, &'static str, fn(&GroupRow) -> u64);
    const LEVELS: [Level; 5] = [
        ("container_memory_usage_bytes", "Memory in use, all of it (memory.current).", |row| {
            row.usage_pages
        }),
        (
            "container_memory_working_set_bytes",
            "Memory in use without inactive page cache.",
            |row| row.usage_pages.saturating_sub(row.inactive_file_pages),
        ),
        ("container_memory_rss", "Anonymous memory, in bytes.", |row| row.anon_pages),
        ("container_memory_cache", "Page cache, in bytes.", |row| row.file_pages),
        ("container_memory_swap", "Memory in swap, in bytes.", |row| row.swap_pages),
    ];
    let timeline = source.timeline;
    // The root has no memory.current; cAdvisor adds up its memory.stat.
    let as_root =
        |row: &GroupRow| GroupRow { usage_pages: row.anon_pages + row.file_pages, ..*row };
    let ids: Vec<String> = timeline.groups.iter().map(|path| id(path)).collect();
    for (family, help, pages) in LEVELS {
        let mut family = MetricFamily::new(out, source.start_s, family, MetricType::Gauge, help);
        for (group, id) in ids.iter().enumerate() {
            let labels = of_group(source, id, &[]);
            for at in samples {
                let Some(Some(row)) = at.last.rows.get(group) else { continue };
                let row = if group == 0 { as_root(row) } else { *row };
                let bytes = u128::from(pages(&row)) * u128::from(source.page_size);
                family.sample(&labels, &bytes.to_string(), at.milliseconds);
            }
        }
    }
    let help = "Limit of the group when it was created; 0: none.";
    let family = "container_spec_memory_limit_bytes";
    let mut family = MetricFamily::new(out, source.start_s, family, MetricType::Gauge, help);
    for (group, limit) in limits(source.setup).into_iter().enumerate() {
        let Some(id) = ids.get(group + 1) else { continue };
        let (labels, limit) = (of_group(source, id, &[]), limit.to_string());
        for at in samples {
            if at.last.rows.get(group + 1).is_some_and(Option::is_some) {
                family.sample(&labels, &limit, at.milliseconds);
            }
        }
    }
    counters(source, samples, &ids, out);
}

/// Type of failure, and counter.
type Kind = (&'static str, fn(&GroupRow) -> u64);

fn counters(
    source: &OpenMetricsSource<'_>,
    samples: &[LastSample<'_>],
    ids: &[String],
    out: &mut String,
) {
    let help = "Page faults: all (pgfault), and major ones (pgmajfault).";
    let mut family = MetricFamily::new(
        out,
        source.start_s,
        "container_memory_failures",
        MetricType::Counter,
        help,
    );
    for (group, id) in ids.iter().enumerate() {
        let kinds: [Kind; 2] =
            [("pgfault", |row| row.counts.pgfault), ("pgmajfault", |row| row.counts.pgmajfault)];
        for (kind, counted) in kinds {
            let labels = of_group(source, id, &[("failure_type", kind), ("scope", HIERARCHY)]);
            for (at, sum) in sums(samples, group, counted) {
                family.sample(&labels, &sum.to_string(), at);
            }
        }
    }
    let help = "Tasks of the group killed by the OOM killer.";
    let mut family =
        MetricFamily::new(out, source.start_s, "container_oom_events", MetricType::Counter, help);
    for (group, id) in ids.iter().enumerate() {
        let labels = of_group(source, id, &[]);
        for (at, sum) in sums(samples, group, |row| row.counts.oom_kill) {
            family.sample(&labels, &sum.to_string(), at);
        }
    }
    for (family, help, ns) in PRESSURE {
        let family = format!("container_{family}");
        let mut family = MetricFamily::new(out, source.start_s, &family, MetricType::Counter, help);
        for (group, id) in ids.iter().enumerate() {
            let labels = of_group(source, id, &[]);
            for (at, ns) in sums(samples, group, ns) {
                family.sample(&labels, &seconds(ns), at);
            }
        }
    }
}

/// The path of a group; the machine is the root.
fn id(path: &str) -> String {
    if path.is_empty() {
        "/".to_owned()
    } else {
        path.to_owned()
    }
}

fn of_group(source: &OpenMetricsSource<'_>, id: &str, more: &[(&str, &str)]) -> String {
    let called = id.rsplit_once('/').map_or(id, |(_, name)| name);
    let mut pairs = vec![("id", id), ("instance", source.instance), ("job", "cadvisor")];
    if !called.is_empty() {
        pairs.push(("name", called));
    }
    pairs.extend_from_slice(more);
    labels(&pairs)
}
