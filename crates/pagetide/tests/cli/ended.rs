//! Output about a killed task and about a run cut by its time limit.

use pagetide_testing::directory::TestDir;
use pagetide_testing::scenarios::SMALL;
use serde_json::Value;

/// A batch job and a program; in the second variant the job's group is too small.
const KILLED: &str = r#"
repeats = 2
machine.memory = "128MiB"
group = [{ name = "jobs" }]
task = [{ name = "batch", group = "jobs", workload = "touch", size = "32MiB", passes = 40 }]
variant = [
  { name = "free" },
  { name = "limited", set."group.jobs.memory.max" = "8M" },
]
"#;

#[test]
fn a_killed_task_is_marked_everywhere_and_strict_fails() {
    let place = TestDir::with("killed.toml", KILLED);
    let table = place.run("run killed.toml").quietly().stdout;
    let row = table.lines().find(|line| line.starts_with("batch.walltime")).unwrap();
    assert!(row.ends_with('\u{2020}') && !row.contains(['%', '*']), "{table}");
    assert!(table.contains("killed by the OOM killer"), "{table}");
    assert!(table.contains("note: limited, 2 seeds: task `batch`"), "{table}");

    let json = place.run("run killed.toml --format json").json();
    let walltime = &json["variants"][1]["metrics"]["batch.walltime"];
    assert_eq!(walltime["ended"], serde_json::json!(["oom-killed", "oom-killed"]));
    assert_eq!(walltime["mean"], Value::Null);
    assert!(walltime["samples"][0].as_f64().unwrap() > 0.0);
    assert!(json["variants"][0]["metrics"]["batch.walltime"].get("ended").is_none());
    assert!(json["notes"][0].as_str().unwrap().contains("was killed"));

    let csv = place.run("run killed.toml --format csv").stdout;
    let of = |line: &&str| line.contains(",limited,batch.walltime,");
    let lines: Vec<&str> = csv.lines().filter(of).collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| line.ends_with(",oom-killed")), "{csv}");

    // The run did less work, so its other values are marked, too.
    let of_machine = &json["variants"][1]["metrics"]["pgfault"];
    assert_eq!(of_machine["ended"], serde_json::json!(["incomplete-run", "incomplete-run"]));
    assert_eq!(of_machine["mean"], Value::Null);
    let line = csv.lines().find(|line| line.contains(",limited,pgfault,")).unwrap();
    assert!(line.ends_with(",incomplete-run"), "{line}");

    let strict = place.run("run killed.toml --strict").exits(1);
    assert_eq!(strict.stdout, table);
    strict.says(&["variant limited: 2 of 2 runs", "oom-killed"]);
}

#[test]
fn runs_in_which_every_task_was_killed_measure_nothing() {
    let place = TestDir::with("killed.toml", KILLED);
    let run = place.starting("run killed.toml");
    run("--variant limited").exits(1).says(&["killed every task in every run", "hint:"]);
    let wanted = "\n[[expect]]\ntext = \"it is killed\"\nthat = \"oom_kill > 0\"\n";
    place.write("killed.toml", KILLED.to_owned() + wanted);
    run("--variant limited").succeeds();
}

#[test]
fn a_run_that_was_cut_is_no_measurement() {
    let place = TestDir::with("small.toml", SMALL);
    let run = place.starting("run small.toml --set time_limit=5ms");
    let table = run("").quietly().stdout;
    let row = table.lines().find(|line| line.starts_with("reader.walltime")).unwrap();
    assert!(row.contains('\u{2020}') && !row.contains('%'), "{table}");
    assert!(table.contains("cut by the time limit"), "{table}");
    run("--strict").says(&["variant default: 3 of 3 runs", "variant early", ": cut"]);
    place.run("run small.toml --strict").succeeds();
}

#[test]
fn tables_are_as_wide_as_columns_says() {
    let place = TestDir::with("small.toml", SMALL);
    for columns in ["60", "80"] {
        let output = place.command("run small.toml").env("COLUMNS", columns).output();
        let table = String::from_utf8(output.unwrap().stdout).unwrap();
        let width: usize = columns.parse().unwrap();
        assert!(table.lines().all(|line| line.chars().count() <= width), "{table}");
    }
}
