//! Events and timelines agree with the metrics, and recording them does not change a run.

use crate::SCENARIO;
use pagetide_core::stats::event::TraceEvent;
use pagetide_export::JsonLines;
use pagetide_scenario::model::Variant;
use pagetide_scenario::record::timeline::{
    CompactionCounts, GroupEvents, GroupRow, TaskRow, TimelineSample,
};
use pagetide_scenario::record::RunRecord;
use pagetide_sim::observe::ObserverHandle;
use pagetide_sim::{run, RunOptions};
use pagetide_testing::runs::Collected;
use pagetide_testing::{root, scenario};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Three variants, one of them with a limit. The last task lasts until kswapd sleeps.
const END: &str = r#"
[[task]]
name = "last"
workload = "compute"
duration = "3s"

[[variant]]
name = "tree"

[[variant]]
name = "hierarchical"
policy.soft_limit = "hierarchical"

[[variant]]
name = "limit"
set.group.slave.memory.limit_in_bytes = "24M"
"#;

/// The two groups of the traces with soft limits, and without the service.
fn groups() -> String {
    let (groups, _) = SCENARIO.split_once("[[task]]\nname = \"web\"").unwrap();
    let long = "a-name-of-sixty-four-characters-of-which-the-kernel-has-fifteen_";
    let groups = groups.replace(long, "master");
    groups.replace("limit_in_bytes = \"24M\"", "soft_limit_in_bytes = \"16M\"") + END
}

struct Ran {
    record: RunRecord,
    text: String,
    lines: Vec<Value>,
}

fn variants(text: &str) -> Vec<Variant> {
    scenario(text).variants
}

fn recorded(variant: &Variant) -> Ran {
    let collected = Collected::default();
    let options = RunOptions {
        observers: vec![ObserverHandle::new(JsonLines::new(collected.clone()))],
        want_timeline: true,
        want_latencies: true,
        audit_every: 5_000,
        ..RunOptions::default()
    };
    let record = run("groups", variant, 7, &options).unwrap();
    let text = collected.text();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Ran { record, text, lines }
}

fn all_recorded() -> Vec<Ran> {
    variants(&groups()).iter().map(recorded).collect()
}

fn number(line: &Value, field: &str) -> u64 {
    line[field].as_u64().unwrap_or_else(|| panic!("no {field} in {line}"))
}

fn is_named(line: &Value, name: &str) -> bool {
    line["event"] == name
}

#[test]
fn recording_changes_nothing_and_repeats_to_the_byte() {
    for (variant, ran) in variants(&groups()).iter().zip(all_recorded()) {
        let plain = run("groups", variant, 7, &RunOptions::default()).unwrap();
        let recorded = RunRecord { timeline: None, latencies: Vec::new(), ..ran.record.clone() };
        assert_eq!(plain, recorded, "{}", variant.name);
        assert!(ran.record.timeline.is_some() && plain.timeline.is_none());
        let again = self::recorded(variant);
        assert!(ran.text == again.text && ran.record == again.record, "{}", variant.name);
    }
}

#[test]
fn lines_have_the_documented_fields_in_the_order_of_time() {
    let docs = std::fs::read_to_string(root().join("docs/outputs.md")).unwrap();
    let row = |name: &str| {
        let start = format!("| `{name}` |");
        let row = docs.lines().find(|line| line.starts_with(&start));
        row.unwrap_or_else(|| panic!("docs/outputs.md has no row for {name}"))
    };
    TraceEvent::NAMES.iter().for_each(|name| assert!(!row(name).is_empty()));
    for ran in all_recorded() {
        assert!(ran.lines.len() > 100);
        let mut last = 0;
        for line in &ran.lines {
            let ns = number(line, "ns");
            assert!(ns >= last && ns <= ran.record.elapsed_ns + 50_000, "{line}");
            last = ns;
            assert!(number(line, "cpu") < 2);
            let comm = line["comm"].as_str().unwrap();
            assert!(
                ["kswapd0", "kcompactd0", "master", "slave", "reader"].contains(&comm),
                "{line}"
            );
            let row = row(line["event"].as_str().unwrap());
            for (field, value) in line.as_object().unwrap() {
                let common = ["ns", "cpu", "comm", "event"].contains(&field.as_str());
                assert!(common || row.contains(&format!("`{field}`")), "{field} in {row}");
                let path = ["/", "/master", "/slave", "/slave/inner"];
                let is_path = value.as_str().is_some_and(|value| path.contains(&value));
                assert!(field != "memcg" || is_path, "{line}");
            }
        }
    }
}

#[test]
fn batches_sum_up_to_the_groups_counters() {
    let mut seen = BTreeMap::new();
    for ran in all_recorded() {
        let mut stolen: BTreeMap<&str, u64> = BTreeMap::new();
        let mut scanned = 0;
        for line in ran.lines.iter().filter(|line| is_named(line, "mm_vmscan_lru_shrink_inactive"))
        {
            *stolen.entry(line["memcg"].as_str().unwrap()).or_default() +=
                number(line, "nr_reclaimed");
            scanned += number(line, "nr_scanned");
            let kept = number(line, "nr_reclaimed") + number(line, "nr_ref_keep");
            assert!(kept + number(line, "nr_activate") <= number(line, "nr_taken"), "{line}");
        }
        let of = |group: &str, count: &str| {
            ["kswapd", "direct"]
                .iter()
                .map(|who| ran.record.metrics[&format!("{group}.pg{count}_{who}")].value as u64)
                .sum::<u64>()
        };
        let below = stolen.get("/slave/inner").copied().unwrap_or(0);
        assert_eq!(stolen.get("/master").copied().unwrap_or(0), of("master", "steal"));
        assert_eq!(below, of("inner", "steal"));
        assert_eq!(stolen.get("/slave").copied().unwrap_or(0) + below, of("slave", "steal"));
        let timeline = ran.record.timeline.as_ref().unwrap();
        let machine = timeline
            .samples
            .iter()
            .fold(GroupEvents::default(), |sum, sample| sum.plus(&sample.rows[0].unwrap().counts));
        assert_eq!(stolen.values().sum::<u64>(), machine.pgsteal_kswapd + machine.pgsteal_direct);
        // Scanned pages that are all of too high zones are not a batch.
        assert!(scanned <= machine.pgscan_kswapd + machine.pgscan_direct);
        for line in &ran.lines {
            *seen.entry(line["event"].as_str().unwrap().to_owned()).or_insert(0) += 1;
        }
    }
    // No task is killed, no slab can be shrunk (crates/pagetide-sim/tests/slabs.rs), no file is
    // written.
    let elsewhere = [
        "mark_victim",
        "mm_vmscan_throttled",
        "mm_shrink_slab_start",
        "mm_shrink_slab_end",
        "balance_dirty_pages",
    ];
    for name in TraceEvent::NAMES.iter().filter(|name| !elsewhere.contains(name)) {
        assert!(seen.contains_key(*name), "no {name}: {seen:?}");
    }
}

#[test]
fn what_begins_ends_in_the_same_thread() {
    for ran in all_recorded() {
        let mut open: BTreeMap<&str, Vec<(&str, u64)>> = BTreeMap::new();
        for line in &ran.lines {
            let (comm, name) = (line["comm"].as_str().unwrap(), line["event"].as_str().unwrap());
            let open = open.entry(comm).or_default();
            if name.starts_with("mm_compaction") {
                continue;
            }
            if let Some(kind) = name.strip_suffix("_begin") {
                open.push((kind, 0));
            } else if let Some(kind) = name.strip_suffix("_end") {
                let (begun, stolen) =
                    open.pop().unwrap_or_else(|| panic!("nothing to end: {line}"));
                assert_eq!((begun, stolen), (kind, number(line, "nr_reclaimed")), "{line}");
            } else if name == "mm_vmscan_lru_shrink_inactive" {
                open.iter_mut().for_each(|(_, stolen)| *stolen += number(line, "nr_reclaimed"));
            }
        }
        // The run ends with its last task, even if kswapd is active.
        open.remove("kswapd0");
        assert!(open.values().all(Vec::is_empty), "{open:?}");
    }
}

#[test]
fn a_policy_shows_in_the_priorities() {
    let ran = all_recorded();
    let least = |ran: &Ran, memcg: &str| {
        let of_group = ran.lines.iter().filter(|line| line["memcg"] == memcg);
        of_group.filter_map(|line| line["priority"].as_i64()).min().unwrap()
    };
    // Soft limit reclaim of the trees scans at priority 0.
    assert_eq!(least(&ran[0], "/slave/inner"), 0);
    let tops = ran[0].lines.iter().filter(|line| !line["top"].is_null());
    assert!(tops.clone().all(|line| line["top"] == "/slave" && number(line, "excess") > 0));
    assert!(tops.count() > 0);
    assert!(ran[1].lines.iter().all(|line| line["top"].is_null()));
}

#[test]
fn a_timeline_has_the_runs_sums_and_extremes() {
    for ran in all_recorded() {
        let timeline = ran.record.timeline.unwrap();
        assert_eq!(timeline.groups, ["", "/master", "/slave", "/slave/inner"]);
        assert!((256..=512).contains(&timeline.samples.len()), "{}", timeline.samples.len());
        assert_eq!(timeline.samples.last().unwrap().end_ns, ran.record.elapsed_ns);
        assert!(timeline.samples.windows(2).all(|pair| pair[0].end_ns < pair[1].end_ns));
        let samples = || timeline.samples.iter();
        let moved =
            samples().fold(CompactionCounts::default(), |sum, one| sum.plus(&one.compaction));
        for (name, value) in CompactionCounts::NAMES.into_iter().zip(moved.values()) {
            assert_eq!(ran.record.metrics[name].value, value as f64, "{name}");
        }
        let free =
            |sample: &TimelineSample| sample.nodes.iter().map(|node| node.free_pages).sum::<u64>();
        let free_at_end = ran.record.metrics["nr_free_pages"].value;
        assert_eq!(free(timeline.samples.last().unwrap()) as f64, free_at_end);
        for sample in samples() {
            // The machine's row has the pages that are not free.
            let used = sample.rows[0].unwrap().usage_pages;
            assert_eq!(free(sample) + used, timeline.machine_pages);
            assert_eq!(sample.nodes.len(), timeline.nr_nodes);
            for node in &sample.nodes {
                assert!(node.unusable_index_min <= node.unusable_index);
                assert!(node.unusable_index <= node.unusable_index_max);
                let is_whole = node.large_blocks * 512 <= node.free_pages;
                assert!(is_whole && (node.large_blocks > 0 || node.unusable_index == 1000));
            }
        }
        for (at, group) in ["master", "slave", "inner"].into_iter().enumerate() {
            let rows = || timeline.samples.iter().filter_map(|sample| sample.rows[at + 1]);
            let sum = rows().fold(GroupEvents::default(), |sum, row| sum.plus(&row.counts));
            let metric = |name: &str| ran.record.metrics[&format!("{group}.{name}")].value;
            for (name, value) in GroupEvents::NAMES.into_iter().zip(sum.values()) {
                let name = if name == "oom_kill" { "memory.events.oom_kill" } else { name };
                assert_eq!(metric(name), value as f64, "{group}.{name}");
            }
            let seconds =
                |ns: fn(&GroupRow) -> u64| rows().map(|row| ns(&row)).sum::<u64>() as f64 / 1e9;
            // The mean over CPUs depends on how often PSI is read, as on a kernel.
            let pressure =
                [("some", seconds(|row| row.some_ns)), ("full", seconds(|row| row.full_ns))];
            for (kind, seconds) in pressure {
                let wanted = metric(&format!("memory.pressure.{kind}"));
                assert!(
                    (seconds - wanted).abs() <= 0.05 * wanted,
                    "{group} {kind}: {seconds}, not {wanted}"
                );
            }
            let lists = rows().next_back().unwrap();
            let in_lists = metric("inactive_file") + metric("active_file");
            assert_eq!(in_lists, (lists.file_pages * 4096) as f64, "{group}");
            assert!(rows().all(|row| row.inactive_file_pages <= row.file_pages));
            assert!(rows().all(|row| row.anon_pages + row.file_pages <= row.usage_max_pages));
            assert!(rows().all(|row| row.usage_min_pages <= row.usage_pages));
            assert!(rows().all(|row| row.usage_pages <= row.usage_max_pages));
            let peak = rows().map(|row| row.usage_max_pages).max().unwrap() * 4096;
            assert!(peak as f64 <= ran.record.metrics[&format!("{group}.memory.peak")].value);
            assert!(peak > 8 << 20, "{group}: {peak}");
        }
    }
}

#[test]
fn a_timeline_ends_with_the_files_of_proc_and_what_tasks_lost() {
    for ran in all_recorded() {
        let timeline = ran.record.timeline.unwrap();
        let metrics = &ran.record.metrics;
        let last = timeline.samples.last().unwrap();
        for (name, value) in timeline.vmstat.iter().zip(&last.vmstat) {
            assert_eq!(metrics[name].value, *value as f64, "{name}");
        }
        let meminfo = |name: &str| {
            let at = timeline.meminfo.iter().position(|it| it == name).unwrap();
            last.meminfo[at]
        };
        assert_eq!(meminfo("MemFree") as f64, metrics["nr_free_pages"].value * 4.0);
        let in_swap = (meminfo("SwapTotal") - meminfo("SwapFree")) as f64;
        assert!(in_swap <= metrics["pswpout"].value * 4.0, "{in_swap} kB");
        assert_eq!(timeline.tasks, ["master", "slave", "reader", "last"]);
        for (at, task) in timeline.tasks.iter().enumerate() {
            let rows = || timeline.samples.iter().map(|sample| sample.tasks[at]);
            let sum = rows().fold(TaskRow::default(), |sum, row| sum.plus(&row));
            for (name, ns) in TaskRow::STALLS.into_iter().zip(sum.stalled_ns) {
                assert_eq!(metrics[&format!("{task}.{name}")].value, ns as f64 / 1e9);
            }
            let bytes = (sum.allocated_pages * 4096) as f64;
            assert_eq!(metrics[&format!("{task}.allocated")].value, bytes);
            assert_eq!(metrics[&format!("{task}.pgmajfault")].value, sum.pgmajfault as f64);
            let of = format!("{task}.alloc_latency");
            let Some(latencies) = ran.record.latencies.iter().find(|it| it.of == of) else {
                assert_eq!(metrics[&format!("{of}_max")].value, 0.0, "{task}");
                continue;
            };
            let count: u64 = latencies.buckets.iter().map(|(_, count)| count).sum();
            let most = latencies.buckets.last().unwrap().0 as f64 / 1e9;
            let max = metrics[&format!("{of}_max")].value;
            assert!(count > 0 && (max..=max * 1.01).contains(&most), "{task}: {most}, {max}");
        }
        for sample in &timeline.samples {
            let free: u64 = sample.zones.iter().map(|zone| zone.free_pages).sum();
            assert_eq!(free, sample.nodes.iter().map(|node| node.free_pages).sum::<u64>());
            for zone in &sample.zones {
                assert!(zone.min_pages <= zone.low_pages && zone.low_pages <= zone.high_pages);
                assert!(zone.free_min_pages <= zone.free_pages);
                assert!(zone.free_pages <= zone.free_max_pages);
            }
        }
        assert!(timeline.zones.iter().all(|zone| zone.node == 0 && zone.zone.starts_with("DMA")));
    }
}

#[test]
fn a_sink_that_fails_ends_the_run_with_a_reason() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let options = RunOptions {
        observers: vec![ObserverHandle::new(JsonLines::new(Full))],
        ..RunOptions::default()
    };
    let error = run("groups", &variants(&groups())[0], 7, &options).unwrap_err();
    assert_eq!(error.to_string(), "the events cannot be written: no space left on device");
    assert!(error.hint().unwrap().contains("disk may be full"));
}

#[test]
fn the_killed_are_named() {
    // Without swap, 48 MiB are too few for both tasks.
    let text = groups().replace("swap = \"256MiB\"", "");
    let text = text.replace("memory = \"64MiB\"", "memory = \"48MiB\"");
    let ran = recorded(&variants(&text)[0]);
    let victims: Vec<&Value> =
        ran.lines.iter().filter(|line| is_named(line, "mark_victim")).collect();
    assert!(!victims.is_empty());
    for victim in victims {
        assert!(["master", "slave"].contains(&victim["victim"].as_str().unwrap()), "{victim}");
        assert_eq!(victim["oom_memcg"], "/");
    }
}

#[test]
fn a_recreated_group_counts_from_zero_whenever_it_was_removed() {
    let scenario = r#"
machine = { memory = "64MiB", swap = "64MiB" }
group = [{ name = "gg", at_start = false, memory.max = "4M" }]
[[task]]
name = "x"
phase = [
  { name = "p01", workload = "create-group", target = "gg" },
  { name = "p02", workload = "join-group", target = "gg" },
  { name = "first", workload = "touch", size = "8MiB" },
  { name = "p11", workload = "join-group" },
  { name = "p21", workload = "remove-group", target = "gg" },
  { name = "p31", workload = "create-group", target = "gg" },
  { name = "p32", workload = "join-group", target = "gg" },
  { name = "second", workload = "touch", size = "8MiB", passes = 3 },
]
"#;
    let ran = recorded(&variants(scenario)[0]);
    let timeline = ran.record.timeline.unwrap();
    let rows = timeline.samples.iter().filter_map(|sample| sample.rows[1]);
    let sum = rows.fold(GroupEvents::default(), |sum, row| sum.plus(&row.counts));
    // The second group has all its counts; the first group's since its last sample are its
    // parent's.
    let second = ran.record.metrics["gg.pgfault"].value;
    assert!(sum.pgfault as f64 >= second, "{} of {second}", sum.pgfault);
}
