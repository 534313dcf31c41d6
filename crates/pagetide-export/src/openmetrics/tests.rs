//! The text has the values of the timeline, and an independent OpenMetrics parser reads it.

use super::text::{labels, name, seconds};
use super::*;
use pagetide_scenario::record::timeline::{GroupEvents, GroupRow, ZoneName, ZoneRow};
use std::io::Write;
use std::process::{Command, Stdio};

fn row(pages: u64, faults: u64, some_ns: u64) -> Option<GroupRow> {
    let counts = GroupEvents { pgfault: faults, pgmajfault: 1, ..GroupEvents::default() };
    Some(GroupRow {
        usage_pages: pages,
        anon_pages: pages / 2,
        file_pages: pages / 4,
        inactive_file_pages: pages / 4,
        counts,
        some_ns,
        ..GroupRow::default()
    })
}

fn sample(end_ns: u64, rows: Vec<Option<GroupRow>>) -> TimelineSample {
    let zone = ZoneRow {
        free_pages: 7,
        free_min_pages: 5,
        free_max_pages: 9,
        min_pages: 1,
        low_pages: 2,
        high_pages: 3,
    };
    TimelineSample {
        end_ns,
        rows,
        zones: vec![zone],
        vmstat: vec![end_ns / 1000],
        meminfo: vec![100, 50, 0],
        ..TimelineSample::default()
    }
}

/// Two samples in one millisecond, and a group that is removed and created again.
fn timeline(group: &str) -> Timeline {
    Timeline {
        groups: vec![String::new(), group.to_owned()],
        machine_pages: 1000,
        zones: vec![ZoneName { node: 0, zone: "DMA32".to_owned() }],
        vmstat: vec!["pgfault".to_owned()],
        meminfo: ["MemTotal", "Active(anon)", "HugePages_Total"].map(str::to_owned).to_vec(),
        samples: vec![
            sample(1_000_100, vec![row(80, 1, 100), row(8, 1, 100)]),
            sample(1_000_200, vec![row(80, 2, 200), row(8, 2, 0)]),
            sample(3_000_000, vec![row(40, 4, 0), None]),
            sample(1_500_000_000, vec![row(60, 8, 1_000_000_000), row(4, 16, 5)]),
        ],
        ..Timeline::default()
    }
}

fn text(timeline: &Timeline, instance: &str) -> String {
    let setup = pagetide_testing::setup(
        r#"
        machine.memory = "2GiB"
        group = [{ name = "web", memory.max = "1M" }]
        task = [{ name = "main", workload = "sleep", duration = "1ms" }]
        "#,
    );
    render(&OpenMetricsSource { timeline, setup: &setup, page_size: 4096, instance, start_s: 1000 })
}

#[test]
fn names_and_values_are_those_of_the_exporters() {
    let text = text(&timeline("/web"), "s");
    let lines: Vec<&str> = text.lines().collect();
    for line in [
        "# TYPE node_memory_MemTotal_bytes gauge",
        "# UNIT node_memory_MemTotal_bytes bytes",
        "node_memory_MemTotal_bytes{instance=\"s\",job=\"node\"} 102400 1000.002",
        "node_memory_Active_anon_bytes{instance=\"s\",job=\"node\"} 51200 1001.500",
        "node_memory_HugePages_Total{instance=\"s\",job=\"node\"} 0 1001.500",
        "# TYPE node_vmstat_pgfault unknown",
        "node_vmstat_pgfault{instance=\"s\",job=\"node\"} 1000 1000.002",
        "node_zoneinfo_low_pages{instance=\"s\",job=\"node\",node=\"0\",zone=\"DMA32\"} 2 1000.003",
        "node_pressure_memory_waiting_seconds_total{instance=\"s\",job=\"node\"} 0 1000.000",
        "node_pressure_memory_waiting_seconds_total{instance=\"s\",job=\"node\"} 0.0000003 1000.002",
        "node_pressure_memory_waiting_seconds_total{instance=\"s\",job=\"node\"} 1.0000003 1001.500",
        "container_memory_usage_bytes{id=\"/web\",instance=\"s\",job=\"cadvisor\",name=\"web\"} 32768 1000.002",
        "container_memory_working_set_bytes{id=\"/web\",instance=\"s\",job=\"cadvisor\",name=\"web\"} 24576 1000.002",
        "container_memory_usage_bytes{id=\"/\",instance=\"s\",job=\"cadvisor\"} 245760 1000.002",
        "container_spec_memory_limit_bytes{id=\"/web\",instance=\"s\",job=\"cadvisor\",name=\"web\"} \
         1048576 1000.002",
    ] {
        assert!(lines.contains(&line), "{line}\n{text}");
    }
    assert_eq!(lines.last(), Some(&"# EOF"));
    // Its counters restart at 0 when it is created again.
    let faults =
        "container_memory_failures_total{id=\"/web\",instance=\"s\",job=\"cadvisor\",name=\"web\",\
                  failure_type=\"pgfault\",scope=\"hierarchy\"} ";
    let faults: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix(faults)).collect();
    assert_eq!(faults, ["0 1000.000", "3 1000.002", "0 1000.003", "16 1001.500"]);
    // A missing group has no levels.
    let usage = "container_memory_usage_bytes{id=\"/web\"";
    assert_eq!(lines.iter().filter(|line| line.starts_with(usage)).count(), 2);
}

#[test]
fn parts_of_lines() {
    assert_eq!(name("Active(anon)"), "Active_anon");
    assert_eq!(name("a-b.c"), "a_b_c");
    assert_eq!(labels(&[("a", "x\"y\\z\n")]), "a=\"x\\\"y\\\\z\\n\"");
    assert_eq!([seconds(0), seconds(1_500_000_000), seconds(1)], ["0", "1.5", "0.000000001"]);
    assert_eq!(text(&Timeline::default(), "s"), "# EOF\n");
}

/// Families, samples and labels, as Python's prometheus_client reads them.
const READ: &str = "
import sys
try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as read
except ImportError:
    print('missing'); sys.exit(0)
for family in read(sys.stdin.read()):
    series = {}
    for sample in family.samples:
        times = series.setdefault((sample.name, tuple(sorted(sample.labels.items()))), [])
        assert not times or times[-1] < sample.timestamp, (sample, times[-1])
        times.append(sample.timestamp)
    print(family.name, family.type, len(family.samples), sorted({s.labels.get('id', '') for s in family.samples}))
";

#[test]
fn a_parser_that_is_not_ours_reads_it() {
    // A name with all characters to escape; the loader refuses most of them.
    let text = text(&timeline("/a\"b\\c\nd</script>\u{1f980}"), "s/\"v\"\\");
    let python = std::env::var("PAGETIDE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let child = Command::new(&python)
        .args(["-c", READ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        return println!("no {python}: OpenMetrics text was not read by another parser");
    };
    let _ = child.stdin.take().expect("it is piped").write_all(text.as_bytes());
    let read = child.wait_with_output().expect("it was started");
    let said = String::from_utf8_lossy(&read.stdout).into_owned();
    if said.starts_with("missing") {
        return println!(
            "{python} has no prometheus_client (`pip install prometheus_client`): OpenMetrics text \
             was not read by another parser"
        );
    }
    assert!(read.status.success(), "{said}\n{text}");
    assert!(said.contains("node_vmstat_pgfault unknown 3"), "{said}");
    assert!(said.contains("container_oom_events counter"), "{said}");
    assert!(said.contains("['/', '/a\"b\\\\c\\nd</script>\u{1f980}']"), "{said}");
}
