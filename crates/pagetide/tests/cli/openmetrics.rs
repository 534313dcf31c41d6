//! Tests of `pagetide run --openmetrics`.

use crate::common::{CommandOutput, TestDir};
use serde_json::Value;
use std::fs;

/// A group with a name of 64 characters that loses memory to a batch job.
fn scenario() -> String {
    let group = "w".repeat(64);
    format!(
        r#"repeats = 2
[machine]
memory = "64MiB"
swap = "256MiB"
[[group]]
name = "{group}"
memory.max = "48M"
[[task]]
name = "service"
group = "{group}"
workload = "working-set"
anon = "30MiB"
accesses = 60_000
[[task]]
name = "batch"
workload = "touch"
size = "60MiB"
[[variant]]
name = "none"
[[variant]]
name = "low"
set = {{ "group.{group}.memory.low" = "40M" }}
"#
    )
}

fn run(place: &TestDir, args: &[&str]) -> CommandOutput {
    place.run([&["run", "s.toml", "--format", "json"], args].concat())
}

/// The value of the last sample of a series with this prefix.
fn last(text: &str, series: &str) -> f64 {
    let line =
        text.lines().rfind(|line| line.starts_with(series)).unwrap_or_else(|| panic!("{series}"));
    let (_, rest) = line.rsplit_once("} ").unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn the_last_samples_are_what_the_table_has() {
    let place = TestDir::with("s.toml", &scenario());
    let ran = run(&place, &["--openmetrics", "om.txt"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.says(&["metrics of variant none, seed 1, are in om.txt"]);
    let text = fs::read_to_string(place.directory.join("om.txt")).unwrap();
    assert!(text.starts_with("# TYPE ") && text.ends_with("\n# EOF\n"));

    let ran = run(&place, &[]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let metric = |key: &str| report["variants"][0]["metrics"][key]["samples"][0].as_f64().unwrap();
    let group = "w".repeat(64);
    let failures = format!("container_memory_failures_total{{id=\"/{group}\"");
    let of = |kind: &str| {
        format!("{failures},instance=\"s/none\",job=\"cadvisor\",name=\"{group}\",failure_type=\"{kind}\"")
    };
    assert_eq!(last(&text, &of("pgfault")), metric(&format!("{group}.pgfault")));
    assert_eq!(last(&text, &of("pgmajfault")), metric(&format!("{group}.pgmajfault")));
    let some = last(&text, "node_pressure_memory_waiting_seconds_total");
    assert!((some - metric("psi.memory.some")).abs() < 1e-6, "{some}");
    let limit = format!("container_spec_memory_limit_bytes{{id=\"/{group}\"");
    assert_eq!(last(&text, &limit), f64::from(48 << 20));
    assert!(last(&text, "node_vmstat_pswpout{") > 0.0);

    // The same bytes again; an existing file of this kind is replaced.
    run(&place, &["--openmetrics", "om.txt", "--jobs", "1"]);
    assert_eq!(fs::read_to_string(place.directory.join("om.txt")).unwrap(), text);
    run(&place, &["--openmetrics", "om.txt", "--openmetrics-start", "1700000000"]);
    let later = fs::read_to_string(place.directory.join("om.txt")).unwrap();
    assert!(later.lines().nth(2).unwrap().contains(" 1 1700000000."), "{}", &later[..400]);
}

#[test]
fn a_run_that_is_short_cut_or_refused() {
    let place = TestDir::with("s.toml", &scenario());
    // A cut run writes the samples up to the cut. This one ends before the first sample.
    let cut = run(&place, &["--openmetrics", "cut.txt", "--set", "time_limit=20ms"]);
    assert_eq!(cut.code, Some(0), "{cut:?}");
    let text = fs::read_to_string(place.directory.join("cut.txt")).unwrap();
    assert!(last(&text, "node_vmstat_pgfault{") > 0.0);
    let refused = [
        ("s.toml", "s.toml is an input of this command"),
        ("/dev/full", "is not a regular file"),
        ("no/om.txt", "there is no directory no"),
        ("mine.txt", "mine.txt exists and is not OpenMetrics text"),
    ];
    place.write("mine.txt", "dear diary");
    for (file, text) in refused {
        run(&place, &["--openmetrics", file]).fails(2, &[text]);
    }
    assert_eq!(fs::read_to_string(place.directory.join("mine.txt")).unwrap(), "dear diary");
    run(&place, &["--openmetrics-start", "5"]).fails(2, &["--openmetrics"]);
    run(&place, &["--openmetrics", "x.txt", "--openmetrics-start", "x"])
        .fails(2, &["invalid value"]);
}

#[test]
fn files_are_written_whatever_becomes_of_the_rest() {
    let place = TestDir::with("s.toml", &scenario());
    // Two outputs with one name are rejected before any run.
    let ran = run(&place, &["--html", "one", "--openmetrics", "./one"]);
    ran.fails(2, &["--html and --openmetrics name the same file"]);
    assert!(!place.directory.join("one").exists());
    let ran = run(&place, &["--events", "one", "--perfetto", "one"]);
    ran.fails(2, &["--events and --perfetto name the same file"]);
    assert_eq!(fs::read_dir(&place.directory).unwrap().count(), 1);
    // A pattern without a match is a mistake, but files and results are still written.
    let wanted =
        ["--metrics", "service.request_rate", "--openmetrics", "om.txt", "--html", "p.html"];
    let ran = run(&place, &wanted);
    assert!(serde_json::from_str::<Value>(&ran.stdout).is_ok(), "{ran:?}");
    assert_eq!(ran.code, Some(2));
    ran.says(&["no run has a metric `service.request_rate`"]);
    assert!(place.directory.join("om.txt").exists() && place.directory.join("p.html").exists());
    // A closed stdout does not prevent the files either.
    let mut command = place.command();
    command.args(["run", "s.toml", "--format", "json", "--openmetrics", "om2.txt"]);
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    child.wait().unwrap();
    assert!(place.directory.join("om2.txt").exists());
}

#[test]
fn a_killed_task_is_reported_whichever_metrics_are_selected() {
    let oom = r#"repeats = 2
[machine]
memory = "64MiB"
[[task]]
name = "eat"
workload = "touch"
size = "30MiB"
[[variant]]
name = "fits"
[[variant]]
name = "not"
set."task.eat.size" = "90MiB"
"#;
    let place = TestDir::with("s.toml", oom);
    let ran = run(&place, &["--metrics", "pgfault"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["variants"][0]["metrics"].as_object().unwrap().len(), 1);
    let ended = report["verdict"][0]["ended"][0].as_str().unwrap();
    assert!(ended.contains("the OOM killer killed eat in 2 of 2 runs"), "{ended}");
}
