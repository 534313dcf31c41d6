//! Tests of `fuzz`: a planted pathology, the command that repeats it, mistakes.

use pagetide_testing::directory::TestDir;

/// A program that reads through a disk of any slowness: on a slow one nothing makes progress.
const PLANTED: &str = r#"
title = "A reader of a slow disk"
time_limit = "10s"
machine = { memory = "64MiB", cpus = 2, disk = [{ name = "slow", model = "ssd" }] }
file = [{ name = "data", size = "1MiB" }]

[[task]]
name = "idle"
workload = "sleep"
duration = "1ms"

[[task]]
name = "reader"
workload = "mapped-read"
file = "data"
size = "64KiB"
stride = "32KiB"
order = "scattered"
advice = "random"

[fuzz]
knobs = [
    "machine.disk.slow.read_latency=100ms..2s",
    "machine.cpus=1..8",
    "file.data.size=1MiB..4MiB",
]
"#;

fn place() -> TestDir {
    TestDir::with("planted.toml", PLANTED)
}

const ASK: &str = "fuzz planted.toml --objective no-progress=500ms --draws 40";

fn after<'a>(text: &'a str, label: &str) -> &'a str {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(label));
    lines.next().unwrap_or_else(|| panic!("no `{label}`:\n{text}")).trim()
}

#[test]
fn a_find_is_shrunk_repeated_and_written() {
    let place = place();
    let first = place.run(format!("{ASK} --jobs 1 --out small.toml")).succeeds();
    assert_eq!(first.stdout, place.run(format!("{ASK} --jobs 3")).succeeds().stdout);
    assert!(first.stdout.contains("without the tasks idle"), "{}", first.stdout);
    let repeat = after(&first.stdout, "repeat ").strip_prefix("pagetide ").unwrap();
    let again = place.run(repeat).succeeds();
    assert_eq!(after(&again.stdout, "smallest  "), after(&first.stdout, "smallest  "));
    assert!(first.stdout.find("repeat ") < first.stdout.find("smallest "), "{}", first.stdout);
    // The written scenario shows it, too.
    let small = place.read("small.toml");
    assert!(small.contains(repeat), "{small}");
    let ran = place.run("run small.toml --repeats 1 --format json").succeeds().json();
    let value = ran["variants"][0]["metrics"]["node.frozen_longest"]["mean"].as_f64().unwrap();
    let shown = after(&first.stdout, "smallest  ");
    assert!(shown.starts_with(&format!("{value:.2} s")), "{value}, not {shown}");
}

#[test]
fn json_has_the_find_and_the_scenario() {
    let place = place();
    let answer = place.run(format!("{ASK} --format json")).succeeds().json();
    let found = &answer["found"];
    assert!(found["drawn"]["knobs"]["machine.cpus"].is_string());
    assert!(found["smallest"]["knobs"]["machine.cpus"].is_null());
    assert_eq!(found["drawn"]["seeds_shown"], 3);
    assert_eq!(answer["tried"].as_u64().unwrap(), found["draw"].as_u64().unwrap() + 1);
    assert!(found["text"].as_str().unwrap().starts_with("# found by pagetide fuzz"));
    let nothing = place.run("fuzz planted.toml --objective refault-storm --draws 3 --format json");
    let nothing = nothing.exits(1).json();
    assert_eq!(nothing["found"], serde_json::Value::Null);
    assert_eq!(nothing["result"], "Result: refault-storm not found in 3 draws");
}

#[test]
fn mistakes_are_told_before_anything_runs() {
    let place = place();
    let ask = place.starting("fuzz planted.toml");
    ask("--objective oom-with-evictable-page").fails(
        2,
        &["no objective `oom-with-evictable-page`", "did you mean `oom-with-evictable-pages`"],
    );
    ask("--objective no-progress --for 0").fails(2, &["'0' for '--for <TIME>'", "like 10min"]);
    ask("--objective no-progress --for soon").fails(2, &["--for", "1.5s, 250ms or 2min"]);
    ask("--objective no-progress --draws 0").fails(2, &["--draws"]);
    ask("--objective no-progress --knob vm.swapiness=1..9")
        .fails(2, &["no sysctl `vm.swapiness`", "did you mean `vm.swappiness`"]);
    ask("--objective no-progress --knob vm.swappiness=9..1")
        .fails(2, &["the range 9..1 has no values", "the smaller end first"]);
    ask("--objective no-progress --knob task.raeder.start=1s..2s").fails(2, &["raeder", "reader"]);
    ask("--objective no-progress --against policy.lru=mglur").fails(2, &["mglur", "mglru"]);
    ask("--objective no-progress --out planted.toml").fails(2, &["is an input of this command"]);
    let wrong = PLANTED.replace("machine.cpus=1..8", "machine.cpus=8..1");
    TestDir::with("wrong.toml", wrong).run("fuzz wrong.toml --objective no-progress").fails(
        2,
        &["wrong.toml:24: fuzz.knobs: `machine.cpus=8..1`: ", "has no values", "smaller end first"],
    );
    let none = PLANTED.split("[fuzz]").next().unwrap();
    TestDir::with("none.toml", none)
        .run("fuzz none.toml --objective no-progress")
        .fails(2, &["nothing to draw", "fuzz.knobs = "]);
}
