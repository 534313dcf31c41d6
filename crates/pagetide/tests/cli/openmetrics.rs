//! Tests of `pagetide run --openmetrics`.

use pagetide_testing::directory::TestDir;

/// A group with a name of 64 characters that loses memory to a batch job.
fn scenario() -> String {
    let group = "w".repeat(64);
    let tasks = r#"
repeats = 2
machine = { memory = "64MiB", swap = "256MiB" }
group = [{ name = "GROUP", memory.max = "48M" }]
task = [
  { name = "service", group = "GROUP", workload = "working-set", anon = "30MiB", accesses = 60_000 },
  { name = "batch", workload = "touch", size = "60MiB" },
]
variant = [{ name = "none" }, { name = "low", set."group.GROUP.memory.low" = "40M" }]
"#;
    tasks.replace("GROUP", &group)
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
    let place = TestDir::with("s.toml", scenario());
    let run = place.starting("run s.toml --format json");
    run("--openmetrics om.txt")
        .succeeds()
        .says(&["metrics of variant none, seed 1, are in om.txt"]);
    let text = place.read("om.txt");
    assert!(text.starts_with("# TYPE ") && text.ends_with("\n# EOF\n"));

    let report = run("").json();
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
    run("--openmetrics om.txt --jobs 1");
    assert_eq!(place.read("om.txt"), text);
    run("--openmetrics om.txt --openmetrics-start 1700000000");
    let later = place.read("om.txt");
    assert!(later.lines().nth(2).unwrap().contains(" 1 1700000000."), "{}", &later[..400]);
}

#[test]
fn a_run_that_is_short_cut_or_refused() {
    let place = TestDir::with("s.toml", scenario());
    let run = place.starting("run s.toml");
    // A cut run writes the samples up to the cut. This one ends before the first sample.
    run("--openmetrics cut.txt --set time_limit=20ms").succeeds();
    let text = place.read("cut.txt");
    assert!(last(&text, "node_vmstat_pgfault{") > 0.0);
    run("--openmetrics-start 5").fails(2, &["--openmetrics"]);
    run("--openmetrics x.txt --openmetrics-start x").fails(2, &["invalid value"]);
}

#[test]
fn files_are_written_whatever_becomes_of_the_rest() {
    let place = TestDir::with("s.toml", scenario());
    let run = place.starting("run s.toml --format json");
    // Two outputs with one name are rejected before any run.
    let pages = run("--html one --openmetrics ./one");
    pages.fails(2, &["--html and --openmetrics name the same file"]);
    let events = run("--events one --perfetto one");
    events.fails(2, &["--events and --perfetto name the same file"]);
    assert_eq!(place.names(), ["s.toml"]);
    // A pattern without a match is a mistake, but files and results are still written.
    let ran = run("--metrics service.request_rate --openmetrics om.txt --html p.html").exits(2);
    ran.json();
    ran.says(&["no run has a metric `service.request_rate`"]);
    assert!(place.path("om.txt").exists() && place.path("p.html").exists());
    // A closed stdout does not prevent the files either.
    let mut child = place.command("run s.toml --openmetrics om2.txt").spawn().unwrap();
    drop(child.stdout.take());
    child.wait().unwrap();
    assert!(place.path("om2.txt").exists());
}

#[test]
fn a_killed_task_is_reported_whichever_metrics_are_selected() {
    let oom = r#"
repeats = 2
machine.memory = "64MiB"
task = [{ name = "eat", workload = "touch", size = "30MiB" }]
variant = [{ name = "fits" }, { name = "not", set."task.eat.size" = "90MiB" }]
"#;
    let place = TestDir::with("s.toml", oom);
    let report = place.run("run s.toml --format json --metrics pgfault").json();
    assert_eq!(report["variants"][0]["metrics"].as_object().unwrap().len(), 1);
    let ended = report["verdict"][0]["ended"][0].as_str().unwrap();
    assert!(ended.contains("the OOM killer killed eat in 2 of 2 runs"), "{ended}");
}
