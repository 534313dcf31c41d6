//! `sweep` and `compare`: nothing is lost, whoever kills it; shards are one run; what does not fit is refused.

use crate::common::{Place, Ran};
use std::fs;
use std::process::Child;
use std::thread;
use std::time::Duration;

const TINY: &str = r#"
[machine]
memory = "32MiB"
swap = "32MiB"
[[task]]
name = "t"
workload = "touch"
size = "8MiB"
passes = 2
[[variant]]
name = "plain"
[[variant]]
name = "calm"
sysctl.vm.swappiness = 10
"#;

/// 3 x 2 points, 2 variants, 25 seeds: 300 runs.
const GRID: [&str; 8] = [
    "sweep",
    "tiny.toml",
    "--grid",
    "machine.memory=24MiB..32MiB/3",
    "--grid",
    "vm.watermark_scale_factor=10,200",
    "--repeats",
    "25",
];

fn sweep(place: &Place, more: &[&str]) -> Ran {
    place.run(GRID.iter().chain(more))
}

fn rows(place: &Place, store: &str) -> Vec<u8> {
    fs::read(place.directory.join(store).join("runs.jsonl")).unwrap()
}

/// Numbers without a pattern, the same each time.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn kill(child: &mut Child) {
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
}

#[test]
fn killed_at_any_moment_and_resumed_it_is_one_run() {
    let place = Place::with("tiny.toml", TINY);
    let whole = sweep(&place, &["--store", "whole"]);
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    let expected = rows(&place, "whole");
    assert_eq!(expected.iter().filter(|byte| **byte == b'\n').count(), 300);

    let mut draws = Draws(15);
    let (mut kills, mut last) = (0, 0);
    for _ in 0..60 {
        let mut child =
            place.command().args(GRID).args(["--store", "torn", "--jobs", "2"]).spawn().unwrap();
        thread::sleep(Duration::from_millis(5 + draws.below(120)));
        match child.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success());
                break;
            }
            None => kill(&mut child),
        }
        kills += 1;
        // Whatever was written stays, but for a torn last line.
        if let Ok(text) = fs::read(place.directory.join("torn/runs.jsonl")) {
            let whole = text.iter().filter(|byte| **byte == b'\n').count();
            assert!(whole >= last, "{whole} rows of {last} are left");
            last = whole;
        }
        if kills % 7 == 0 {
            // A row that was half written.
            let path = place.directory.join("torn/runs.jsonl");
            let mut text = fs::read(&path).unwrap_or_default();
            text.extend_from_slice(b"{\"scenario_digest\":\"12");
            fs::create_dir_all(place.directory.join("torn")).unwrap();
            fs::write(&path, text).unwrap();
        }
    }
    assert!(kills > 2, "{kills} kills");
    let end = sweep(&place, &["--store", "torn"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(rows(&place, "torn") == expected, "{kills} kills later the store differs");
    assert_eq!(end.stdout, whole.stdout);
}

#[test]
fn shards_are_one_run_and_what_is_there_is_not_run_again() {
    let place = Place::with("tiny.toml", TINY);
    let grid = ["sweep", "tiny.toml", "--grid", "vm.swappiness=0,60,100", "--repeats", "3"];
    let run = |more: &[&str]| place.run(grid.iter().chain(more));
    let one = run(&["--store", "one"]);
    assert_eq!(one.code, Some(0), "{}", one.stderr);
    for shard in ["2/4", "1/4", "4/4", "3/4"] {
        let store = if shard < "3" { "a" } else { "b" };
        let ran = run(&["--store", store, "--shard", shard]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let merged = place.run(["sweep", "--merge", "b", "a", "--store", "merged"]);
    assert_eq!(merged.code, Some(0), "{}", merged.stderr);
    assert!(rows(&place, "merged") == rows(&place, "one"));
    assert_eq!(merged.stdout, one.stdout);

    // A longer sweep goes on from the shorter one.
    let longer = place.run([
        "sweep",
        "tiny.toml",
        "--grid",
        "vm.swappiness=0,60,100,200",
        "--repeats",
        "3",
        "--store",
        "one",
    ]);
    assert_eq!(longer.code, Some(0), "{}", longer.stderr);
    let again = place.run([
        "sweep",
        "tiny.toml",
        "--grid",
        "vm.swappiness=0,60,100,200",
        "--repeats",
        "3",
        "--store",
        "two",
        "--jobs",
        "1",
    ]);
    assert_eq!(again.stdout, longer.stdout);
    assert!(rows(&place, "one") == rows(&place, "two"));

    // CSV: a line a run.
    let csv = run(&["--store", "one", "--format", "csv"]);
    assert_eq!(csv.stdout.lines().count(), 1 + 3 * 2 * 3);
    assert!(csv
        .stdout
        .starts_with("scenario,scenario_digest,version,variant,seed,vm.swappiness,ended,"));
}

#[test]
fn stores_of_others_and_bad_shards_are_refused() {
    let place = Place::with("tiny.toml", TINY);
    let run = |more: &[&str]| {
        place.run(
            ["sweep", "tiny.toml", "--grid", "vm.swappiness=0,60", "--repeats", "1"]
                .iter()
                .chain(more),
        )
    };
    assert_eq!(run(&["--store", "s"]).code, Some(0));
    let before = rows(&place, "s");
    for (args, wanted) in [
        (vec!["--store", "s", "--set", "machine.cpus=2"], "before it was changed"),
        (vec!["--store", "x", "--shard", "0/3"], "from 1 to N"),
        (vec!["--store", "x", "--shard", "4/3"], "from 1 to N"),
        (vec!["--shard", "1/3"], "--store"),
        (vec!["--store", "tiny.toml"], "cannot keep rows"),
        (vec!["--grid", "vm.swappiness=1"], "given twice"),
        (vec!["--grid", "machine.memory=1GiB..2GiB"], "/5"),
        (vec!["--grid", "vm.dirty_ratio=0,101"], "0 to 100"),
        (vec!["--variant", "none"], "there is no variant"),
    ] {
        let ran = run(&args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{args:?}: {}", ran.stderr);
    }
    assert!(!place.directory.join("x").exists(), "nothing half-written");
    assert!(rows(&place, "s") == before);
    place.write("other.toml", TINY.replace("8MiB", "9MiB"));
    assert_eq!(place.run(["sweep", "other.toml", "--repeats", "1", "--store", "o"]).code, Some(0));
    let mixed = place.run(["sweep", "--merge", "s", "o", "--store", "m"]);
    assert_eq!(mixed.code, Some(2));
    assert!(mixed.stderr.contains("of one scenario and version"), "{}", mixed.stderr);
    assert!(!place.directory.join("m").exists());
}

#[test]
fn results_are_compared() {
    let place = Place::with("tiny.toml", TINY);
    let run = ["run", "tiny.toml", "--repeats", "3", "--format", "json"];
    place.write("a.json", place.run(run).stdout);
    place.write("b.json", place.run(run.iter().chain(&["--set", "task.t.size=16MiB"])).stdout);
    let ran = place.run(["compare", "a.json", "b.json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for wanted in ["A  a.json: tiny", "plain", "calm", "t.walltime", "change against A"] {
        assert!(ran.stdout.contains(wanted), "{wanted}: {}", ran.stdout);
    }
    // The same statistics as two variants of one run have.
    let both = place.run([
        "run",
        "tiny.toml",
        "--repeats",
        "3",
        "--variant",
        "plain",
        "--variant",
        "larger",
        "--add-variant",
        "larger:task.t.size=16MiB",
    ]);
    let line =
        |text: &str| text.lines().find(|line| line.starts_with("t.walltime")).unwrap().to_owned();
    let squeezed = |text: &str| line(text).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeezed(&both.stdout), squeezed(&ran.stdout));
    let bad = place.run(["compare", "a.json", "tiny.toml"]);
    assert_eq!(bad.code, Some(2));
    assert!(bad.stderr.contains("is no result"), "{}", bad.stderr);
}
