//! `sweep` and `compare`: no finished run is lost when the process is killed, shards combine to one
//! sweep, and mismatched stores are rejected.

use crate::common::{words, CommandOutput, TestDir};
use std::fs;
use std::process::Child;
use std::thread;
use std::time::Duration;

const TINY: &str = r#"
name = "tiny"
[machine]
memory = "32MiB"
swap = "32MiB"
[[task]]
name = "t"
workload = "touch"
size = "22MiB"
passes = 2
[[variant]]
name = "plain"
[[variant]]
name = "calm"
sysctl.vm.swappiness = 10
"#;

/// 5 x 2 points, 2 variants, 20 seeds: 400 runs of a task that swaps.
const GRID: [&str; 8] = [
    "sweep",
    "tiny.toml",
    "--grid",
    "machine.memory=24MiB..32MiB/5",
    "--grid",
    "vm.watermark_scale_factor=10,200",
    "--repeats",
    "20",
];

fn sweep(place: &TestDir, more: &[&str]) -> CommandOutput {
    place.run(GRID.iter().chain(more))
}

fn rows(place: &TestDir, store: &str) -> Vec<u8> {
    fs::read(place.directory.join(store).join("runs.jsonl")).unwrap()
}

/// Reproducible pseudo-random numbers.
struct PseudoRandom(u64);

impl PseudoRandom {
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
    let place = TestDir::with("tiny.toml", TINY);
    let whole = sweep(&place, &["--store", "whole"]);
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    let expected = rows(&place, "whole");
    assert_eq!(expected.iter().filter(|byte| **byte == b'\n').count(), 400);

    let mut draws = PseudoRandom(15);
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
        // Every written row is kept, except an incomplete last line.
        if let Ok(text) = fs::read(place.directory.join("torn/runs.jsonl")) {
            let whole = text.iter().filter(|byte| **byte == b'\n').count();
            assert!(whole >= last, "{whole} rows of {last} are left");
            last = whole;
        }
        if kills % 7 == 0 {
            // An incomplete row.
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
fn shards_form_one_run_and_finished_rows_are_not_run_again() {
    let place = TestDir::with("tiny.toml", TINY);
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

    // A larger sweep continues the smaller one.
    let longer = place
        .run(words("sweep tiny.toml --grid vm.swappiness=0,60,100,200 --repeats 3 --store one"));
    assert_eq!(longer.code, Some(0), "{}", longer.stderr);
    let again = place.run(words(
        "sweep tiny.toml --grid vm.swappiness=0,60,100,200 --repeats 3 --store two \
         --jobs 1",
    ));
    assert_eq!(again.stdout, longer.stdout);
    assert!(rows(&place, "one") == rows(&place, "two"));

    // CSV has a line for each run.
    let csv = run(&["--store", "one", "--format", "csv"]);
    assert_eq!(csv.stdout.lines().count(), 1 + 3 * 2 * 3);
    assert!(csv
        .stdout
        .starts_with("scenario,scenario_digest,version,variant,seed,vm.swappiness,ended,"));
}

#[test]
fn stores_of_others_and_bad_shards_are_refused() {
    let place = TestDir::with("tiny.toml", TINY);
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
    place.write("other.toml", TINY.replace("22MiB", "21MiB"));
    assert_eq!(place.run(["sweep", "other.toml", "--repeats", "1", "--store", "o"]).code, Some(0));
    let mixed = place.run(["sweep", "--merge", "s", "o", "--store", "m"]);
    assert_eq!(mixed.code, Some(2));
    assert!(mixed.stderr.contains("of one scenario and version"), "{}", mixed.stderr);
    assert!(!place.directory.join("m").exists());
}

#[test]
fn results_are_compared() {
    let place = TestDir::with("tiny.toml", TINY);
    let run = ["run", "tiny.toml", "--repeats", "3", "--format", "json"];
    place.write("a.json", place.run(run).stdout);
    place.write("b.json", place.run(run.iter().chain(&["--set", "task.t.size=24MiB"])).stdout);
    let ran = place.run(["compare", "a.json", "b.json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for wanted in ["A  a.json: tiny", "plain", "calm", "t.walltime", "change against A"] {
        assert!(ran.stdout.contains(wanted), "{wanted}: {}", ran.stdout);
    }
    // The statistics equal those of one run with two variants.
    let both = place.run(words(
        "run tiny.toml --repeats 3 --variant plain --variant larger \
         --add-variant larger:task.t.size=24MiB",
    ));
    let line =
        |text: &str| text.lines().find(|line| line.starts_with("t.walltime")).unwrap().to_owned();
    let squeezed = |text: &str| line(text).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeezed(&both.stdout), squeezed(&ran.stdout));
    let bad = place.run(["compare", "a.json", "tiny.toml"]);
    assert_eq!(bad.code, Some(2));
    assert!(bad.stderr.contains("is not a result"), "{}", bad.stderr);
}

#[test]
fn a_merge_adds_to_the_store_it_goes_to() {
    let place = TestDir::with("tiny.toml", TINY);
    let sweep = |values: &str, store: &str| {
        let knob = format!("vm.swappiness={values}");
        place.run(["sweep", "tiny.toml", "--grid", &knob, "--repeats", "2", "--store", store])
    };
    for (values, store) in [("0,60,100", "whole"), ("0,100", "a"), ("60", "b")] {
        assert_eq!(sweep(values, store).code, Some(0));
    }
    assert_eq!(place.run(["sweep", "--merge", "a", "--store", "b"]).code, Some(0));
    assert!(rows(&place, "b") == rows(&place, "whole"));

    place.write("other.toml", TINY.replace("22MiB", "21MiB"));
    assert_eq!(place.run(["sweep", "other.toml", "--repeats", "1", "--store", "o"]).code, Some(0));
    let before = rows(&place, "o");
    place.run(["sweep", "--merge", "a", "--store", "o"]).fails(2, &["of one scenario and version"]);
    assert!(rows(&place, "o") == before);
}

#[test]
fn two_processes_do_not_share_a_file() {
    let place = TestDir::with("tiny.toml", TINY);
    let mut first =
        place.command().args(GRID).args(["--store", "s", "--jobs", "1"]).spawn().unwrap();
    let file = place.directory.join("s/runs.jsonl");
    while fs::metadata(&file).map_or(0, |file| file.len()) == 0 {
        assert!(first.try_wait().unwrap().is_none(), "it ended without a row");
        thread::sleep(Duration::from_millis(1));
    }
    sweep(&place, &["--store", "s"]).fails(2, &["another process writes to", "--shard K/N"]);
    kill(&mut first);
}

/// With a limit on file size a row is written in part, as on a full disk.
#[test]
fn nothing_is_written_behind_half_a_row() {
    let place = TestDir::with("tiny.toml", TINY);
    let args = ["sweep", "tiny.toml", "--grid", "vm.swappiness=0,60", "--repeats", "4"];
    let whole = place.run(args.iter().chain(&["--store", "whole"]));
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    let limited = std::process::Command::new("sh")
        .args([
            "-c",
            "trap '' XFSZ; ulimit -f 100; exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_pagetide"),
        ])
        .args(args.iter().chain(&["--store", "torn", "--jobs", "2"]))
        .current_dir(&place.directory)
        .output()
        .unwrap();
    assert_eq!(limited.status.code(), Some(1), "{limited:?}");
    let said = String::from_utf8(limited.stderr).unwrap();
    assert!(said.contains("cannot write torn"), "{said}");
    let torn = rows(&place, "torn");
    let (all, kept) = (rows(&place, "whole"), torn.split_inclusive(|byte| *byte == b'\n'));
    let lines: Vec<&[u8]> = all.split_inclusive(|byte| *byte == b'\n').collect();
    assert!(!torn.is_empty() && torn.len() < all.len(), "{} bytes", torn.len());
    kept.for_each(|line| assert!(lines.contains(&line), "{}", String::from_utf8_lossy(line)));
    let resumed = place.run(args.iter().chain(&["--store", "torn"]));
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert!(rows(&place, "torn") == all);
}

#[test]
fn metrics_that_no_run_has_are_refused_at_once() {
    let place = TestDir::with("tiny.toml", TINY);
    let run = |metric: &str| sweep(&place, &["--store", "s", "--metric", metric]);
    run("nonsense").fails(2, &["no run has a metric `nonsense`", "hint: "]);
    run("t.waltime").fails(2, &["no run has a metric `t.waltime`", "`t.walltime`"]);
    assert!(!place.directory.join("s").exists(), "nothing was run");
    // A metric of only some points is accepted.
    let some = ["sweep", "tiny.toml", "--grid", "task.t.copies=1,2", "--repeats", "1"];
    let some = |metric| place.run(some.iter().chain(&["--metric", metric]));
    assert_eq!(some("t.1.walltime").code, Some(0));
    assert_eq!(some("t*.walltime").code, Some(0));
    assert_eq!(some("u*.walltime").code, Some(2));
}

#[test]
fn a_scenario_from_stdin_is_swept() {
    let place = TestDir::with("tiny.toml", TINY);
    let grid = ["--grid", "vm.swappiness=0,60", "--repeats", "1"];
    let of_file = place.run(["sweep", "tiny.toml"].iter().chain(&grid)).quietly();
    let of_stdin = place.run_with_input(["sweep", "-"].iter().chain(&grid), TINY.as_bytes());
    assert_eq!(of_stdin.quietly().stdout, of_file.stdout);
}

#[test]
fn what_was_killed_is_marked() {
    let killed = r#"
        repeats = 2
        machine.memory = "128MiB"
        group = [{ name = "jobs" }]
        task = [{ name = "batch", group = "jobs", workload = "touch", size = "32MiB", passes = 10 }]
    "#;
    let place = TestDir::with("killed.toml", killed);
    let grid = "group.jobs.memory.max=8MiB,64MiB";
    let args = ["sweep", "killed.toml", "--grid", grid, "--metric", "batch.walltime"];
    let table = place.run(args).quietly().stdout;
    let line = |value: &str| table.lines().find(|line| line.contains(value)).unwrap();
    assert!(line("memory.max=8M ").ends_with('\u{2020}'), "{table}");
    assert!(!line("memory.max=64M ").contains('\u{2020}'), "{table}");
    assert!(table.contains("\u{2020} incomplete (killed by the OOM killer)"), "{table}");
}
