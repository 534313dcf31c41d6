//! The same scenario on machines with pages of 4, 16 and 64 KiB: all reclaim, all pass the audit,
//! and metrics in bytes are about the same.

use pagetide_scenario::model::PageSize;
use pagetide_scenario::record::RunRecord;
use pagetide_sim::{run, RunOptions};
use pagetide_testing::{scenario, value};

/// A group with a heap and a file above its limit, and a task that replays a trace.
const SCENARIO: &str = r#"
machine = { cpus = 2, memory = "64MiB", swap = "64MiB", disk = [{ name = "disk", model = "nvme" }] }
group = [{ name = "g", memory.max = "24M" }]
file = [{ name = "data", size = "48MiB" }]
variant = [
  { name = "4k" },
  { name = "16k", set."machine.page_size" = "16 KiB" },
  { name = "64k", set."machine.page_size" = 65536 },
]
[[task]]
name = "t"
group = "g"
phase = [
  { name = "write", workload = "file-write", file = "data", total = "8MiB", block = "10000B" },
  { name = "heap", workload = "touch", size = "30MiB" },
  { name = "read", workload = "file-read", file = "data" },
  { name = "again", workload = "touch", size = "30MiB", order = "random" },
]
[[task]]
name = "cc"
workload = "trace"
path = "../../experiments/traces/cc1-zpipe.ptt"
"#;

#[test]
fn a_scenario_runs_with_every_page_size() {
    let scenario = scenario(SCENARIO);
    for (variant, page_size) in scenario.variants.iter().zip(PageSize::ALL) {
        let options = RunOptions {
            audit_every: 50,
            want_files: true,
            want_timeline: true,
            ..RunOptions::default()
        };
        let record = run("page-size", variant, 1, &options)
            .unwrap_or_else(|error| panic!("{}: {error}", variant.name));
        let page = page_size.bytes() as f64;
        assert_eq!(record.page_size, page_size.bytes());
        assert_eq!(record.notes, Vec::<String>::new(), "{}", variant.name);

        // Only 8 MiB of a file and the swapped pages were written.
        let written = value(&record, "pgpgout") * 1024.0;
        let to_swap = value(&record, "pswpout") * page;
        let to_file = written - to_swap;
        assert!(to_swap > 4e6, "{}: {to_swap}", variant.name);
        assert!((8e6..9e6).contains(&to_file), "{}: {to_file}", variant.name);
        let read = value(&record, "t.read.pgpgin") * 1024.0;
        assert!(read >= f64::from(48 << 20), "{}: {read}", variant.name);
        assert_eq!(value(&record, "t.read.bytes"), f64::from(48 << 20));
        // An access counts as a page.
        assert_eq!(value(&record, "t.heap.bytes"), f64::from(30 << 20));

        let peak = value(&record, "g.memory.peak");
        // A slab object charged above the limit may add a page.
        let most = f64::from(24 << 20) + page;
        assert!(peak <= most && peak > 20e6, "{}: {peak}", variant.name);
        assert_eq!(peak % page, 0.0);
        assert_eq!(value(&record, "t.again.g.anon") % page, 0.0);

        let file = |name: &str| {
            let mut files = record.files.iter();
            files.find(|(known, _)| known == name).map(|(_, text)| text.as_str()).expect(name)
        };
        let total = file("/proc/meminfo").lines().next().unwrap();
        assert_eq!(total.split_whitespace().nth(1), Some("65536"), "{}: {total}", variant.name);
        let timeline = record.timeline.as_ref().unwrap();
        assert_eq!(timeline.machine_pages * page_size.bytes(), 64 << 20);
    }
}

#[test]
fn larger_pages_take_fewer_faults_and_requests() {
    let records: Vec<RunRecord> = scenario(SCENARIO)
        .variants
        .iter()
        .map(|variant| run("page-size", variant, 1, &RunOptions::default()).unwrap())
        .collect();
    let of = |key: &str| -> Vec<f64> { records.iter().map(|record| value(record, key)).collect() };
    assert_eq!(of("t.heap.g.pgfault"), [7680.0, 1920.0, 480.0]);
    // Clearing takes equally long; other operations are fewer.
    let times = of("t.heap.system");
    assert!(times[0] > times[1] && times[1] > times[2], "{times:?}");
}

/// Records have a page size if it is not 4 KiB.
#[test]
fn records_without_a_page_size_have_4_kib() {
    let scenario = scenario(SCENARIO);
    let of = |number: usize| {
        run("page-size", &scenario.variants[number], 1, &RunOptions::default()).unwrap()
    };
    let (old, new) = (of(0), of(2));
    let text = serde_json::to_string(&old).unwrap();
    assert!(!text.contains("page_size"));
    assert_eq!(serde_json::from_str::<RunRecord>(&text).unwrap().page_size, 4096);
    let text = serde_json::to_string(&new).unwrap();
    assert_eq!(serde_json::from_str::<RunRecord>(&text).unwrap().page_size, 65_536);
}
