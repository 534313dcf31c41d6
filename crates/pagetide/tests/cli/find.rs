//! Tests of `find`: a known answer, mistakes, and files to deploy.

use crate::common::{words, TestDir};
use std::fs;
use std::path::Path;

/// A machine with a group; a run takes milliseconds.
const TINY: &str = r#"
[machine]
memory = "64MiB"
swap = "64MiB"
[[group]]
name = "web"
[[task]]
name = "t"
group = "web"
workload = "touch"
size = "24MiB"
passes = 2
[[task]]
name = "other"
workload = "touch"
size = "20MiB"
"#;

/// A file written by an earlier search.
const OLD: &str = "# found by pagetide 0.0.9 in a simulation\n";

fn find(place: &TestDir, more: &[&str]) -> crate::common::CommandOutput {
    place.run(["find", "tiny.toml"].iter().chain(more))
}

fn result(text: &str) -> &str {
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("Result: ")).collect();
    assert_eq!(lines.len(), 1, "{text}");
    lines[0]
}

/// The end of the run stops it, with any value of the knob.
#[test]
fn what_a_background_task_never_finishes_is_no_criterion() {
    let endless =
        "[[task]]\nname = \"bg\"\nbackground = true\nworkload = \"touch\"\nsize = \"1MiB\"\n\
                   passes = 4_000_000\n";
    let place = TestDir::with("tiny.toml", &(TINY.to_owned() + endless));
    let ask = |want: &str| find(&place, &["--knob", "vm.swappiness=1..9", "--want", want]);
    ask("bg.walltime < 1s").fails(2, &["bg.walltime is never measured: ", "bg.throughput"]);
    let told = "the phase `main` of `bg` does not end within the run";
    ask("bg.main.walltime < 1s").fails(2, &[told, "a metric of the task (bg.NAME)"]);
}

#[test]
fn the_reserve_that_keeps_all_out_of_direct_reclaim() {
    let place = TestDir::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/find/reserve.toml");
    let file = file.to_str().unwrap();
    let knob = "vm.watermark_scale_factor=20..400";
    let ran = place.run([
        "find",
        file,
        "--knob",
        knob,
        "--want",
        "allocstall == 0",
        "--in",
        "100%",
        "--seeds",
        "4",
        "--price",
        "reader.walltime",
        "--emit",
        "json",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let point = &answer["points"][0];
    // By `run --repeats 20`, seeds with direct reclaim: 16 at 100, 7 at 120, 4 at 140, 0 at 160.
    let value: u32 = point["set"]["vm.watermark_scale_factor"].as_str().unwrap().parse().unwrap();
    assert!((120..=170).contains(&value), "{value}");
    assert_eq!(answer["verdict"], "threshold");
    assert_eq!(point["confirmed"], true);
    assert_eq!(point["fresh"], serde_json::json!({ "held": 4, "of": 4 }));
    assert!(answer["values"].as_u64().unwrap() <= 15, "{}", answer["values"]);
    // The reader pays the price: it loses page cache to the reserve.
    assert!(point["prices"][0]["change_percent"].as_f64().unwrap() > 2.0);
}

#[test]
fn the_largest_limit_and_what_is_printed() {
    let place = TestDir::with("tiny.toml", TINY);
    let ran = find(
        &place,
        &words(
            "--knob group.web.memory.high=4M..64M --want 'web.memory.peak <= 20MiB' --largest \
             --seeds 5 --price t.walltime",
        ),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let line = result(&ran.stdout);
    assert!(line.starts_with("Result: group.web.memory.high = 19M (now max): "), "{line}");
    assert!(line.contains("in 5 of 5 fresh seeds (at least 54 % of all seeds"), "{line}");
    assert!(line.contains("; t.walltime +"), "{line}");
    for wanted in ["machine    1 CPU, 64 MiB", "load       t: touch; other: touch", "Costs ("] {
        assert!(ran.stdout.contains(wanted), "{wanted}: {}", ran.stdout);
    }
    let jobs = find(
        &place,
        &words(
            "--knob group.web.memory.high=4M..64M --want 'web.memory.peak <= 20MiB' --largest \
             --seeds 5 --price t.walltime --jobs 1",
        ),
    );
    assert_eq!(jobs.stdout, ran.stdout, "it does not depend on the number of threads");
}

#[test]
fn nothing_and_everything_are_said() {
    let place = TestDir::with("tiny.toml", TINY);
    let knob = ["--knob", "vm.swappiness", "--seeds", "3", "--want"];
    let none = find(&place, &[&knob[..], &["t.walltime <= 1us"]].concat());
    assert_eq!(none.code, Some(1));
    assert!(result(&none.stdout).contains("no value of vm.swappiness from 0 to 200 was found"));
    let text = result(&none.stdout);
    let spans = " of the seeds; it holds in no seed of any value, with t.walltime from ";
    assert!(text.contains(spans), "{text}");
    let all = find(&place, &[&knob[..], &["t.walltime <= 1h"]].concat());
    assert_eq!(all.code, Some(0));
    assert!(result(&all.stdout).contains("every value tried meets it"), "{}", all.stdout);
    assert!(all.stdout.contains("The unchanged scenario already meets the criterion"));
}

#[test]
fn a_killed_task_meets_nothing() {
    // Without swap, a limit below the working set kills the task: a fast run that is no answer.
    let place = TestDir::with("tiny.toml", &TINY.replace("swap = \"64MiB\"\n", ""));
    let ran = find(
        &place,
        &words("--knob group.web.memory.max=8M,12M,32M --want 't.walltime <= 1s' --seeds 3"),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        result(&ran.stdout).starts_with("Result: group.web.memory.max = 32M"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("because a task was killed"), "{}", ran.stdout);
}

#[test]
fn a_limit_that_kills_the_task_is_no_answer_to_a_criterion_of_the_machine() {
    let place = TestDir::with("tiny.toml", &TINY.replace("swap = \"64MiB\"\n", ""));
    let knob = ["--knob", "group.web.memory.max=8MiB..128MiB/8"];
    let ran = find(&place, &[&knob[..], &["--want", "allocstall == 0", "--seeds", "3"]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let line = result(&ran.stdout);
    // The task touches 24 MiB.
    assert!(line.starts_with("Result: group.web.memory.max = 26"), "{line}");
    assert!(ran.stdout.contains("because a task was killed"), "{}", ran.stdout);
    let low = ["--knob", "group.web.memory.max=8MiB,12MiB", "--want", "allocstall == 0"];
    let ran = find(&place, &[&low[..], &["--seeds", "3"]].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
}

#[test]
fn what_comes_and_goes_is_not_deployed() {
    let place = TestDir::with("tiny.toml", TINY);
    place.write("out.conf", OLD);
    let args = words(
        "--knob group.web.memory.high=4M..64M/7 --seeds 3 --emit systemd -o out.conf \
         --want 'web.memory.peak >= 10MiB and web.memory.peak <= 20MiB'",
    );
    let ran = find(&place, &args);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(result(&ran.stdout).contains("NOT MONOTONE"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("no file was written, because there is nothing to deploy"),
        "{}",
        ran.stderr
    );
    assert_eq!(fs::read_to_string(place.directory.join("out.conf")).unwrap(), OLD);
}

#[test]
fn standard_input_and_copies_of_groups() {
    let place = TestDir::new();
    let text = TINY.replace("name = \"web\"", "name = \"web\"\ncopies = 2");
    let text = format!("name = \"piped\"\n{text}");
    let args = ["find", "-", "--knob", "group.web.memory.high=8M..64M/3", "--seeds", "2", "--want"];
    let ran = place.run_with_input([&args[..], &["t.walltime <= 1h"]].concat(), text.as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let line = result(&ran.stdout);
    assert!(line.starts_with("Result: group.web.memory.high = 8M (now max)"), "{line}");
}

#[test]
fn two_knobs_are_refused() {
    let place = TestDir::with("tiny.toml", TINY);
    let ask = "--knob vm.swappiness=1,2 --knob machine.cpus=1,2 --want 'pswpout == 0'";
    find(&place, &words(ask)).fails(2, &["a search has one knob, not 2", "`pagetide sweep`"]);
}

#[test]
fn mistakes_are_named_and_nothing_is_written() {
    let place = TestDir::with("tiny.toml", TINY);
    let before = fs::read_dir(&place.directory).unwrap().count();
    let swappiness = ["--knob", "vm.swappiness"];
    for (args, wanted) in [
        (vec!["--knob", "vm.swapiness", "--want", "a == 0"], "did you mean `vm.swappiness`"),
        (vec!["--knob", "vm.swappiness=0..300", "--want", "a == 0"], "0 to 200"),
        (vec!["--knob", "machine.memory", "--want", "a == 0"], "give a range"),
        (vec!["--knob", "machine.memory=1KiB..2MiB", "--want", "pswpout == 0"], "machine.memory"),
        (vec!["--knob", "vm.swappiness=0,sixty,100", "--want", "pswpout == 0"], "sixty"),
        (vec!["--knob", "group.web.0.memory.max=1G", "--want", "pswpout == 0"], "no control file"),
        ([&swappiness[..], &["--want", "alocstall == 0"]].concat(), "did you mean `allocstall`"),
        ([&swappiness[..], &["--want", "allocstall"]].concat(), "has no comparison"),
        ([&swappiness[..], &["--want", "allocstall == 5ms"]].concat(), "mixes units"),
        ([&swappiness[..], &["--want", "t.walltime < 2GB"]].concat(), "2GiB"),
        (
            [&swappiness[..], &["--want", "pswpout == 0", "--price", "x.y"]].concat(),
            "no task or group is called `x`",
        ),
        ([&swappiness[..], &["--want", "pswpout == 0", "--in", "0%"]].concat(), "above 0"),
        (
            [&swappiness[..], &["--want", "pswpout == 0", "--emit", "systemd"]].concat(),
            "systemd cannot hold vm.swappiness",
        ),
        (
            [&swappiness[..], &["--want", "pswpout == 0", "--emit", "json", "-o", "no/such/x"]]
                .concat(),
            "no directory",
        ),
        (
            [&swappiness[..], &["--want", "pswpout == 0", "--emit", "json", "-o", "."]].concat(),
            "not a regular file",
        ),
        (
            [&swappiness[..], &["--want", "pswpout == 0", "--emit", "json", "-o", "tiny.toml"]]
                .concat(),
            "an input of this command",
        ),
    ] {
        let ran = find(&place, &args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(wanted), "{args:?}: {}", ran.stderr);
        assert!(ran.stdout.is_empty(), "{args:?}");
    }
    assert_eq!(fs::read_dir(&place.directory).unwrap().count(), before);
    let warned = find(
        &place,
        &["--knob", "vm.swappiness=0,60", "--want", "t.alloc_latency_max < 1h", "--seeds", "2"],
    );
    assert!(warned.stderr.contains("is a maximum"), "{}", warned.stderr);
}

#[test]
fn the_file_says_where_it_comes_from() {
    let place = TestDir::with("tiny.toml", TINY);
    place.write("out.conf", OLD);
    let args = words(
        "--knob group.web.memory.high --want 'pswpout == 0' --seeds 3 --emit systemd \
         -o out.conf",
    );
    let ran = find(&place, &args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let text = fs::read_to_string(place.directory.join("out.conf")).unwrap();
    for wanted in [
        "pagetide 0.1.0",
        "# pagetide find tiny.toml --knob group.web.memory.high",
        "# Result: ",
        "# machine: 1 CPU, 64 MiB",
        "[Service]\nMemoryHigh=",
        "% of all seeds",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(result(&ran.stdout).contains("group.web.memory.high = "));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("out.conf", place.directory.join("link")).unwrap();
        let mut args = args;
        *args.last_mut().unwrap() = "link";
        let ran = find(&place, &args);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("not a regular file"), "{}", ran.stderr);
    }
}

#[test]
fn existing_files_are_replaced_only_by_their_kind() {
    let place = TestDir::with("tiny.toml", TINY);
    let ask = ["--knob", "vm.swappiness=0,60", "--want", "allocstall >= 0", "--seeds", "2"];
    let emit = |file: &str| {
        let more = ["--emit", "sysctl.d", "-o", file];
        find(&place, &[&ask[..], &more[..]].concat())
    };
    fs::write(place.directory.join("notes.txt"), "my notes\n").unwrap();
    emit("notes.txt").fails(2, &["notes.txt exists and is not a file that `find` made"]);
    assert_eq!(fs::read_to_string(place.directory.join("notes.txt")).unwrap(), "my notes\n");
    for _ in 0..2 {
        assert_eq!(emit("90.conf").code, Some(0));
        let text = fs::read_to_string(place.directory.join("90.conf")).unwrap();
        assert!(text.starts_with("# found by pagetide ") && text.contains("vm.swappiness = 0"));
    }
    let both = ["--emit", "sysctl.d", "-o", "./one", "--html", "one"];
    let refused = find(&place, &[&ask[..], &both[..]].concat());
    refused.fails(2, &["--output and --html name the same file"]);
    assert!(!place.directory.join("one").exists());
}

#[test]
fn what_is_reported_on_request_is_asked_for_by_the_command_line() {
    let place = TestDir::with("tiny.toml", TINY);
    let knob = ["--knob", "vm.swappiness=10,60", "--seeds", "2"];
    let max = ["--want", "web.memory.high == max", "--price", "web.memory.low"];
    let ran = find(&place, &[&knob[..], &max].concat()).quietly();
    assert!(result(&ran.stdout).contains("vm.swappiness = 10"), "{}", ran.stdout);
    let high = ["--metrics", "web.memory.high", "--metrics", "*.nr_dying*", "--no-why"];
    let run = ["run", "tiny.toml", "--repeats", "1"];
    let ran = place.run(run.iter().chain(&high)).quietly();
    let row = ran.stdout.lines().find(|line| line.starts_with("web.memory.high "));
    assert!(row.is_some_and(|row| row.ends_with(" max")), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nweb.cgroup.stat.nr_dying_descendants"), "{}", ran.stdout);
    let grid = ["sweep", "tiny.toml", "--grid", "group.web.memory.max=32M,max", "--repeats", "1"];
    let ran = place.run(grid.iter().chain(&["--metric", "web.memory.max"])).quietly();
    assert!(ran.stdout.contains("32.00") && ran.stdout.contains(" max\n"), "{}", ran.stdout);
}

#[test]
fn a_metric_that_no_run_has_is_refused_at_once() {
    let place = TestDir::with("tiny.toml", TINY);
    let knob = ["--knob", "vm.swappiness", "--store", "s"];
    let ask = |more: &[&str]| find(&place, &[&knob[..], more].concat());
    ask(&["--want", "alocstall == 0"]).fails(2, &["`alocstall`", "did you mean `allocstall`?"]);
    ask(&["--want", "t.waltime <= 1s"]).fails(2, &["`t.waltime`", "did you mean `t.walltime`?"]);
    let price = ["--want", "allocstall == 0", "--price", "t.main.pgmajfalt"];
    ask(&price).fails(2, &["`t.main` has no metric `pgmajfalt`", "did you mean `pgmajfault`?"]);
    assert!(!place.directory.join("s").exists(), "nothing was run");
}

#[test]
fn each_value_is_shown_with_what_was_measured() {
    let place = TestDir::with("tiny.toml", TINY);
    let ask = "--knob group.web.memory.high=8M,32M --want 'web.memory.peak <= 20MiB' --seeds 2";
    let ran = find(&place, &words(ask)).quietly();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let head = lines.iter().position(|line| line.starts_with(" value  seeds ")).unwrap();
    assert!(lines[head].ends_with("   web.memory.peak MiB"), "{}", ran.stdout);
    let peak = |line: &str| -> f64 {
        let line = line.trim_end_matches("<--");
        line.split_whitespace().last().unwrap().parse().unwrap()
    };
    let peaks = [head + 1, head + 2, head + 3].map(|at| peak(lines[at]));
    assert!(peaks[0] > 20.0 && peaks[1] < 20.0 && peaks[2] > 20.0, "{}", ran.stdout);
}

#[cfg(unix)]
#[test]
fn an_interrupted_search_goes_on_from_its_store() {
    let place = TestDir::with("tiny.toml", TINY);
    let ask =
        "find tiny.toml --knob group.web.memory.high=4M..64M --want 'web.memory.peak <= 20MiB' \
               --largest --seeds 40 --jobs 1 --store s";
    let rows = || fs::read_to_string(place.directory.join("s/runs.jsonl")).unwrap_or_default();
    let child = place.command().args(words(ask)).args(["--html", "p.html"]).spawn().unwrap();
    while rows().lines().count() < 5 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let kill = std::process::Command::new("sh")
        .args(["-c", &format!("kill -INT {}", child.id())])
        .status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(stdout.starts_with("scenario   tiny\n") && stdout.contains("\nbefore  "), "{stdout}");
    let hint = "nothing is written (--html)\nhint: the store has the finished runs";
    assert!(stderr.contains(hint) && !place.directory.join("p.html").exists(), "{stderr}");
    let kept = rows();
    let whole = place.run(words(ask));
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    let now = rows();
    assert!(kept.lines().all(|line| now.contains(line)), "no run is made again");
    let bare = ask.replace(" --store s", "");
    assert_eq!(place.run(words(&bare)).stdout, whole.stdout);
    let again = place.run(words(ask));
    assert_eq!((again.stdout, rows()), (whole.stdout, now), "it runs nothing");
}
