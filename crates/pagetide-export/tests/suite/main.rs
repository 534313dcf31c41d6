//! Traces of a run, read by independent readers: `prost` with Perfetto's schema, and Perfetto's
//! trace processor if it is installed.

mod events;
mod names;
mod perfetto;
mod schema;
mod trace_processor;

use pagetide_export::{JsonLines, Perfetto};
use pagetide_scenario::record::RunRecord;
use pagetide_sim::observe::ObserverHandle;
use pagetide_sim::{run, RunOptions};
use pagetide_testing::runs::Collected;
use pagetide_testing::scenario;

/// Two groups that need more memory than there is, a service with two threads, and special names.
pub const SCENARIO: &str = r#"
name = "groups"
file = [{ name = "data", size = "64MiB" }]

[machine]
cpus = 2
memory = "64MiB"
swap = "256MiB"
disk = [{ name = "sda", model = "ssd" }]

[[group]]
name = "master"
memory.soft_limit_in_bytes = "40M"

[[group]]
name = "slave"
memory.limit_in_bytes = "24M"

[[group]]
name = "inner"
parent = "slave"

[[task]]
name = "a-name-of-sixty-four-characters-of-which-the-kernel-has-fifteen_"
group = "master"
workload = "touch"
size = "30MiB"
passes = 20

[[task]]
name = "slave"
group = "inner"
workload = "touch"
size = "50MiB"
passes = 4

[[task]]
name = "reader"
delay = "5ms"
workload = "mapped-read"
file = "data"

[[task]]
name = "web"
group = "master"
workload = "service"
rate = 500
requests = 200
threads = 2
cpu = "1ms"
"#;

/// An observed run.
pub struct Ran {
    pub record: RunRecord,
    /// Perfetto's bytes.
    pub perfetto: Vec<u8>,
}

/// Runs a scenario's first variant.
pub fn ran(text: &str) -> Ran {
    let scenario = scenario(text);
    let perfetto = Collected::default();
    let options = RunOptions {
        observers: vec![
            ObserverHandle::new(JsonLines::new(Collected::default())),
            ObserverHandle::new(Perfetto::new(perfetto.clone())),
        ],
        want_timeline: true,
        ..RunOptions::default()
    };
    let record = run("groups", &scenario.variants[0], 7, &options).unwrap();
    assert!(options.observers.iter().all(ObserverHandle::is_complete));
    let plain = run("groups", &scenario.variants[0], 7, &RunOptions::default()).unwrap();
    assert_eq!(plain.digest, record.digest, "to observe changes nothing");
    assert_eq!(plain.metrics, record.metrics);
    Ran { record, perfetto: perfetto.bytes() }
}
