//! `sweep` and `compare`: no finished run is lost when the process is killed, shards combine to one
//! sweep, and mismatched stores are rejected.

use pagetide_testing::command::CommandOutput;
use pagetide_testing::directory::TestDir;
use std::fs;
use std::process::Child;
use std::thread;
use std::time::Duration;

const TINY: &str = r#"
name = "tiny"
machine = { memory = "32MiB", swap = "32MiB" }
task = [{ name = "t", workload = "touch", size = "22MiB", passes = 2 }]
variant = [{ name = "plain" }, { name = "calm", sysctl.vm.swappiness = 10 }]
"#;

/// 5 x 2 points, 2 variants, 20 seeds: 400 runs of a task that swaps.
const GRID: &str = "sweep tiny.toml --grid machine.memory=24MiB..32MiB/5 \
                    --grid vm.watermark_scale_factor=10,200 --repeats 20";

fn tiny() -> TestDir {
    TestDir::with("tiny.toml", TINY)
}

fn sweep(place: &TestDir, more: &str) -> CommandOutput {
    place.run(format!("{GRID} {more}"))
}

fn rows(place: &TestDir, store: &str) -> Vec<u8> {
    fs::read(place.path(store).join("runs.jsonl")).unwrap()
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
    let place = tiny();
    let whole = sweep(&place, "--store whole").succeeds();
    let expected = rows(&place, "whole");
    assert_eq!(expected.iter().filter(|byte| **byte == b'\n').count(), 400);

    let mut draws = PseudoRandom(15);
    let (mut kills, mut last) = (0, 0);
    for _ in 0..60 {
        let mut child = place.command(&format!("{GRID} --store torn --jobs 2")).spawn().unwrap();
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
        if let Ok(text) = fs::read(place.path("torn/runs.jsonl")) {
            let whole = text.iter().filter(|byte| **byte == b'\n').count();
            assert!(whole >= last, "{whole} rows of {last} are left");
            last = whole;
        }
        if kills % 7 == 0 {
            // An incomplete row.
            let mut text = fs::read(place.path("torn/runs.jsonl")).unwrap_or_default();
            text.extend_from_slice(b"{\"scenario_digest\":\"12");
            place.write("torn/runs.jsonl", text);
        }
    }
    assert!(kills > 2, "{kills} kills");
    let end = sweep(&place, "--store torn").succeeds();
    assert!(rows(&place, "torn") == expected, "{kills} kills later the store differs");
    assert_eq!(end.stdout, whole.stdout);
}

#[test]
fn shards_form_one_run_and_finished_rows_are_not_run_again() {
    let place = tiny();
    let run = place.starting("sweep tiny.toml --grid vm.swappiness=0,60,100 --repeats 3");
    let one = run("--store one").succeeds();
    for shard in ["2/4", "1/4", "4/4", "3/4"] {
        let store = if shard < "3" { "a" } else { "b" };
        run(&format!("--store {store} --shard {shard}")).succeeds();
    }
    let merged = place.run("sweep --merge b a --store merged").succeeds();
    assert!(rows(&place, "merged") == rows(&place, "one"));
    assert_eq!(merged.stdout, one.stdout);

    // A larger sweep continues the smaller one.
    let more = place.starting("sweep tiny.toml --grid vm.swappiness=0,60,100,200 --repeats 3");
    let longer = more("--store one").succeeds();
    let again = more("--store two --jobs 1");
    assert_eq!(again.stdout, longer.stdout);
    assert!(rows(&place, "one") == rows(&place, "two"));

    // CSV has a line for each run.
    let csv = run("--store one --format csv").stdout;
    assert_eq!(csv.lines().count(), 1 + 3 * 2 * 3);
    let head = "scenario,scenario_digest,version,variant,seed,vm.swappiness,ended,";
    assert!(csv.starts_with(head), "{csv}");
}

#[test]
fn stores_of_others_and_bad_shards_are_refused() {
    let place = tiny();
    let run = place.starting("sweep tiny.toml --grid vm.swappiness=0,60 --repeats 1");
    run("--store s").succeeds();
    let before = rows(&place, "s");
    for (args, wanted) in [
        ("--store s --set machine.cpus=2", "before it was changed"),
        ("--store x --shard 0/3", "from 1 to N"),
        ("--store x --shard 4/3", "from 1 to N"),
        ("--shard 1/3", "--store"),
        ("--store tiny.toml", "cannot keep rows"),
        ("--grid vm.swappiness=1", "given twice"),
        ("--grid machine.memory=1GiB..2GiB", "/5"),
        ("--grid vm.dirty_ratio=0,101", "0 to 100"),
        ("--variant none", "there is no variant"),
        ("--store x --metric nonsense", "no run has a metric `nonsense`\nhint: "),
        ("--store x --metric t.waltime", "`t.walltime`"),
    ] {
        run(args).fails(2, &[wanted]);
    }
    assert!(!place.path("x").exists(), "nothing half-written");
    assert!(rows(&place, "s") == before);
    place.write("other.toml", TINY.replace("22MiB", "21MiB"));
    place.run("sweep other.toml --repeats 1 --store o").succeeds();
    place.run("sweep --merge s o --store m").fails(2, &["of one scenario and version"]);
    assert!(!place.path("m").exists());
}

#[test]
fn results_are_compared() {
    let place = tiny();
    let run = place.starting("run tiny.toml --repeats 3 --format json");
    place.write("a.json", run("").stdout);
    place.write("b.json", run("--set task.t.size=24MiB").stdout);
    let wanted = ["A  a.json: tiny", "plain", "calm", "t.walltime", "change against A"];
    let ran = place.run("compare a.json b.json").succeeds().prints(&wanted);
    // The statistics equal those of one run with two variants.
    let both = place.run(
        "run tiny.toml --repeats 3 --variant plain --variant larger \
         --add-variant larger:task.t.size=24MiB",
    );
    let line =
        |text: &str| text.lines().find(|line| line.starts_with("t.walltime")).unwrap().to_owned();
    let squeezed = |text: &str| line(text).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeezed(&both.stdout), squeezed(&ran.stdout));
    place.run("compare a.json tiny.toml").fails(2, &["is not a result"]);
}

#[test]
fn a_merge_adds_to_the_store_it_goes_to() {
    let place = tiny();
    for (values, store) in [("0,60,100", "whole"), ("0,100", "a"), ("60", "b")] {
        let grid = format!("--grid vm.swappiness={values} --repeats 2 --store {store}");
        place.run(format!("sweep tiny.toml {grid}")).succeeds();
    }
    place.run("sweep --merge a --store b").succeeds();
    assert!(rows(&place, "b") == rows(&place, "whole"));

    place.write("other.toml", TINY.replace("22MiB", "21MiB"));
    place.run("sweep other.toml --repeats 1 --store o").succeeds();
    let before = rows(&place, "o");
    place.run("sweep --merge a --store o").fails(2, &["of one scenario and version"]);
    assert!(rows(&place, "o") == before);
}

#[test]
fn two_processes_do_not_share_a_file() {
    let place = tiny();
    let mut first = place.command(&format!("{GRID} --store s --jobs 1")).spawn().unwrap();
    let file = place.path("s/runs.jsonl");
    while fs::metadata(&file).map_or(0, |file| file.len()) == 0 {
        assert!(first.try_wait().unwrap().is_none(), "it ended without a row");
        thread::sleep(Duration::from_millis(1));
    }
    sweep(&place, "--store s").fails(2, &["another process writes to", "--shard K/N"]);
    kill(&mut first);
}

/// With a limit on file size a row is written in part, as on a full disk.
#[test]
fn nothing_is_written_behind_half_a_row() {
    let place = tiny();
    let line = "sweep tiny.toml --grid vm.swappiness=0,60 --repeats 4 --store";
    place.run(format!("{line} whole")).succeeds();
    let limit = "trap '' XFSZ; ulimit -f 100; exec \"$PAGETIDE\"";
    place.shell(&format!("{limit} {line} torn --jobs 2")).exits(1).says(&["cannot write torn"]);
    let torn = rows(&place, "torn");
    let (all, kept) = (rows(&place, "whole"), torn.split_inclusive(|byte| *byte == b'\n'));
    let lines: Vec<&[u8]> = all.split_inclusive(|byte| *byte == b'\n').collect();
    assert!(!torn.is_empty() && torn.len() < all.len(), "{} bytes", torn.len());
    kept.for_each(|line| assert!(lines.contains(&line), "{}", String::from_utf8_lossy(line)));
    place.run(format!("{line} torn")).succeeds();
    assert!(rows(&place, "torn") == all);
}

#[test]
fn a_metric_of_only_some_points_is_accepted() {
    let place = tiny();
    let some = place.starting("sweep tiny.toml --grid task.t.copies=1,2 --repeats 1 --metric");
    some("t.1.walltime").succeeds();
    some("t*.walltime").succeeds();
    some("u*.walltime").exits(2);
}

#[test]
fn a_scenario_from_stdin_is_swept() {
    let place = tiny();
    let of_file = place.run("sweep tiny.toml --grid vm.swappiness=0,60 --repeats 1").quietly();
    let line = "sweep - --grid vm.swappiness=0,60 --repeats 1";
    let of_stdin = place.run_with_input(line, TINY);
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
    let grid = "--grid group.jobs.memory.max=8MiB,64MiB --metric batch.walltime";
    let table = place.run(format!("sweep killed.toml {grid}")).quietly().stdout;
    let line = |value: &str| table.lines().find(|line| line.contains(value)).unwrap();
    assert!(line("memory.max=8M ").ends_with('\u{2020}'), "{table}");
    assert!(!line("memory.max=64M ").contains('\u{2020}'), "{table}");
    assert!(table.contains("\u{2020} incomplete (killed by the OOM killer)"), "{table}");
}
