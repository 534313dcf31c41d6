//! A thread that wakes gets the CPU of another that is in the middle of something long.
//!
//! Linux: `check_preempt_wakeup`, and `cond_resched` in the loops of the kernel.

use pagetide_scenario::load::{load_str, Overrides};
use pagetide_scenario::record::RunRecord;
use pagetide_sim::{run, RunOptions};
use std::path::Path;

/// One CPU. `hog` faults pages in, each of which takes 4 ms. `reader` waits for the disk, 200 us each time.
const SCENARIO: &str = r#"
name = "preemption"
[machine]
cpus = 1
memory = "256MiB"
[machine.costs]
page_zero = "4ms"
[[machine.disk]]
name = "disk"
model = "instant"
read_latency = "200us"
[[file]]
name = "data"
size = "400KiB"
[[task]]
name = "reader"
[[task.phase]]
name = "read"
workload = "mapped-read"
file = "data"
order = "random"
advice = "random"
[[task]]
name = "hog"
[[task.phase]]
name = "touch"
workload = "touch"
size = "2MiB"
"#;

fn record(sets: &[(&str, &str)]) -> RunRecord {
    let sets = sets.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let overrides = Overrides { sets, ..Overrides::default() };
    let mut scenario = load_str("preemption", SCENARIO, Path::new(""), &overrides).unwrap();
    let variant = scenario.variants.remove(0);
    let options = RunOptions { audit_every: 1, ..RunOptions::default() };
    run("preemption", &variant, 1, &options).unwrap()
}

fn seconds(record: &RunRecord, key: &str) -> f64 {
    record.metrics[key].value
}

#[test]
fn who_waited_for_a_disk_does_not_wait_for_the_end_of_a_long_fault() {
    let beside = record(&[]);
    let alone = record(&[("task.hog.phase.touch.size", "4KiB")]);
    let waits = beside.metrics["reader.read.pgmajfault"].value;
    assert!(waits > 50.0, "{waits}");
    // Alone so many waits of 200 us. Beside the hog a fault of 4 ms is in the way of each, unless it is cut: then it is only
    // until the reader has slept for long enough to be preferred.
    let (alone, beside_s) =
        (seconds(&alone, "reader.walltime"), seconds(&beside, "reader.walltime"));
    assert!((0.010..0.040).contains(&alone), "{alone}");
    assert!(beside_s < alone + 0.050, "{beside_s} beside the hog, {alone} alone");
    // What is cut goes on: nothing is lost, and nothing is paid for twice.
    let cpu = seconds(&beside, "hog.cpu");
    let pages = 512.0 + 1.0;
    assert!((pages * 0.004..pages * 0.004 + 0.02).contains(&cpu), "{cpu}");
    let walltime = seconds(&beside, "hog.walltime");
    assert!(walltime >= cpu && walltime < cpu + 0.050, "{walltime} of which {cpu} on the CPU");
}
