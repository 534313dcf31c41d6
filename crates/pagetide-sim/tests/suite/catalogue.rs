//! Every metric of a record is described: name, unit and meaning.

use pagetide_scenario::metric::{catalogue, KeyNames};
use pagetide_sim::{run, RunOptions};
use pagetide_testing::scenario;

#[test]
fn every_metric_of_a_record_is_described() {
    let text = r#"
machine = { memory = "64MiB", swap = "64MiB", cpus = 2 }
report.measure = "touches.0"
group = [{ name = "group", copies = 2, memory.max = "24MiB" }]
file = [{ name = "data", size = "1MiB" }]
task = [
  { name = "touches", copies = 2, group = "group", workload = "touch", size = "16MiB" },
  { name = "reads", workload = "file-read", file = "data" },
  { name = "set", workload = "working-set", anon = "1MiB", accesses = 1000 },
  { name = "names", workload = "names", make = 100 },
  { name = "web", workload = "service", rate = 500, duration = "200ms", threads = 2, cpu = "1ms", deadline = "10ms" },
  { name = "blocks", workload = "high-order", attempts = 3 },
]
    "#;
    let scenario = scenario(text);
    let variant = &scenario.variants[0];
    let record = run("test", variant, 1, &RunOptions::default()).unwrap();
    for of_service in ["web.requests", "web.request_rate"] {
        assert!(record.metrics.contains_key(of_service), "{of_service}");
    }
    let (names, all) = (KeyNames::of(&variant.setup), catalogue::all());
    for (text, metric) in &record.metrics {
        let key = names.read(text).unwrap_or_else(|| panic!("{text}"));
        let found = catalogue::find(&all, key.scope.kind(), &key.name);
        assert!(found.is_some(), "{text} ({metric:?})");
    }
    assert!(all.iter().all(|entry| !entry.about.is_empty() && !entry.of.is_empty()));
}
