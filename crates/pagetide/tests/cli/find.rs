//! Tests of `find`: a known answer, mistakes, and files to deploy.

use pagetide_testing::command::{end, CommandOutput};
use pagetide_testing::directory::TestDir;
use pagetide_testing::root;

/// A machine with a group; a run takes milliseconds.
const TINY: &str = r#"
machine = { memory = "64MiB", swap = "64MiB" }
group = [{ name = "web" }]
task = [
  { name = "t", group = "web", workload = "touch", size = "24MiB", passes = 2 },
  { name = "other", workload = "touch", size = "20MiB" },
]
"#;

/// A file written by an earlier search.
const OLD: &str = "# found by pagetide 0.0.9 in a simulation\n";

fn tiny() -> TestDir {
    TestDir::with("tiny.toml", TINY)
}

/// Without swap, a limit below the working set kills the task.
fn without_swap() -> TestDir {
    TestDir::with("tiny.toml", TINY.replace(", swap = \"64MiB\"", ""))
}

fn find(place: &TestDir, more: &str) -> CommandOutput {
    place.run(format!("find tiny.toml {more}"))
}

fn result(text: &str) -> &str {
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("Result: ")).collect();
    assert_eq!(lines.len(), 1, "{text}");
    lines[0]
}

/// The end of the run stops it, with any value of the knob.
#[test]
fn what_a_background_task_never_finishes_is_no_criterion() {
    let endless = r#"task = [
  { name = "bg", background = true, workload = "touch", size = "1MiB", passes = 4_000_000 },"#;
    let place = TestDir::with("tiny.toml", TINY.replace("task = [", endless));
    let ask = place.starting("find tiny.toml --knob vm.swappiness=1..9 --want");
    ask("'bg.walltime < 1s'").fails(2, &["bg.walltime is never measured: ", "bg.throughput"]);
    let told = "the phase `main` of `bg` does not end within the run";
    ask("'bg.main.walltime < 1s'").fails(2, &[told, "a metric of the task (bg.NAME)"]);
}

#[test]
fn the_reserve_that_keeps_all_out_of_direct_reclaim() {
    let file = root().join("examples/find/reserve.toml");
    let ask = "--knob vm.watermark_scale_factor=20..400 --want 'allocstall == 0' --in 100% \
               --seeds 4 --price reader.walltime --emit json";
    let ran = TestDir::new().run(format!("find '{}' {ask}", file.display())).succeeds();
    let answer = ran.json();
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
    let place = tiny();
    let ask = "--knob group.web.memory.high=4M..64M --want 'web.memory.peak <= 20MiB' --largest \
               --seeds 5 --price t.walltime";
    let ran = find(&place, ask).succeeds();
    let line = result(&ran.stdout);
    assert!(line.starts_with("Result: group.web.memory.high = 19M (now max): "), "{line}");
    assert!(line.contains("in 5 of 5 fresh seeds (at least 54 % of all seeds"), "{line}");
    assert!(line.contains("; t.walltime +"), "{line}");
    let wanted = ["machine    1 CPU, 64 MiB", "load       t: touch; other: touch", "Costs ("];
    let ran = ran.prints(&wanted);
    let jobs = find(&place, &format!("{ask} --jobs 1"));
    assert_eq!(jobs.stdout, ran.stdout, "it does not depend on the number of threads");
}

#[test]
fn nothing_and_everything_are_said() {
    let place = tiny();
    let ask = place.starting("find tiny.toml --knob vm.swappiness --seeds 3 --want");
    let none = ask("'t.walltime <= 1us'").exits(1);
    let text = result(&none.stdout);
    assert!(text.contains("no value of vm.swappiness from 0 to 200 was found"), "{text}");
    let spans = " of the seeds; it holds in no seed of any value, with t.walltime from ";
    assert!(text.contains(spans), "{text}");
    let all = ask("'t.walltime <= 1h'").succeeds();
    assert!(result(&all.stdout).contains("every value tried meets it"), "{}", all.stdout);
    all.prints(&["The unchanged scenario already meets the criterion"]);
}

#[test]
fn a_killed_task_meets_nothing() {
    // A fast run that is no answer.
    let ask = "--knob group.web.memory.max=8M,12M,32M --want 't.walltime <= 1s' --seeds 3";
    let ran = find(&without_swap(), ask).succeeds().prints(&["because a task was killed"]);
    let line = result(&ran.stdout);
    assert!(line.starts_with("Result: group.web.memory.max = 32M"), "{line}");
}

#[test]
fn a_limit_that_kills_the_task_is_no_answer_to_a_criterion_of_the_machine() {
    let place = without_swap();
    let ask = place.starting("find tiny.toml --want 'allocstall == 0' --seeds 3 --knob");
    let ran = ask("group.web.memory.max=8MiB..128MiB/8").succeeds();
    let ran = ran.prints(&["because a task was killed"]);
    let line = result(&ran.stdout);
    // The task touches 24 MiB.
    assert!(line.starts_with("Result: group.web.memory.max = 26"), "{line}");
    ask("group.web.memory.max=8MiB,12MiB").exits(1);
}

#[test]
fn what_comes_and_goes_is_not_deployed() {
    let place = tiny();
    place.write("out.conf", OLD);
    let ask = "--knob group.web.memory.high=4M..64M/7 --seeds 3 --emit systemd -o out.conf \
               --want 'web.memory.peak >= 10MiB and web.memory.peak <= 20MiB'";
    let ran = find(&place, ask).exits(1);
    assert!(result(&ran.stdout).contains("NOT MONOTONE"), "{}", ran.stdout);
    ran.says(&["no file was written, because there is nothing to deploy"]);
    assert_eq!(place.read("out.conf"), OLD);
}

#[test]
fn standard_input_and_copies_of_groups() {
    let text = TINY.replace("name = \"web\"", "name = \"web\", copies = 2");
    let ask = "find - --knob group.web.memory.high=8M..64M/3 --seeds 2 --want 't.walltime <= 1h'";
    let ran = TestDir::new().run_with_input(ask, format!("name = \"piped\"\n{text}")).succeeds();
    let line = result(&ran.stdout);
    assert!(line.starts_with("Result: group.web.memory.high = 8M (now max)"), "{line}");
}

#[test]
fn mistakes_are_named_and_nothing_is_written() {
    let place = tiny();
    let refused = |line: String, wanted: &str| {
        find(&place, &line).fails(2, &[wanted]);
    };
    for (knob, wanted) in [
        ("vm.swapiness", "did you mean `vm.swappiness`"),
        ("vm.swappiness=0..300", "0 to 200"),
        ("machine.memory", "give a range"),
        ("machine.memory=1KiB..2MiB", "machine.memory"),
        ("vm.swappiness=0,sixty,100", "sixty"),
        ("group.web.0.memory.max=1G", "no control file"),
        ("vm.swappiness=1,2 --knob machine.cpus=1,2", "a search has one knob, not 2"),
    ] {
        refused(format!("--knob {knob} --want 'pswpout == 0'"), wanted);
    }
    for (want, wanted) in [
        ("'alocstall == 0'", "`alocstall`\nhint: did you mean `allocstall`?"),
        ("'t.waltime <= 1s'", "did you mean `t.walltime`?"),
        ("allocstall", "has no comparison"),
        ("'allocstall == 5ms'", "mixes units"),
        ("'t.walltime < 2GB'", "2GiB"),
        ("'pswpout == 0' --price x.y", "no task or group is called `x`"),
        ("'pswpout == 0' --price t.main.pgmajfalt", "did you mean `pgmajfault`?"),
        ("'pswpout == 0' --in 0%", "above 0"),
        ("'pswpout == 0' --emit systemd", "systemd cannot hold vm.swappiness"),
        ("'pswpout == 0' --emit json -o no/such/x", "no directory"),
        ("'pswpout == 0' --emit json -o .", "not a regular file"),
        ("'pswpout == 0' --emit json -o tiny.toml", "an input of this command"),
    ] {
        refused(format!("--knob vm.swappiness --store s --want {want}"), wanted);
    }
    assert_eq!(place.names(), ["tiny.toml"], "nothing was run");
    let ask = "--knob vm.swappiness=0,60 --want 't.alloc_latency_max < 1h' --seeds 2";
    find(&place, ask).says(&["is a maximum"]);
}

#[test]
fn the_file_says_where_it_comes_from() {
    let place = tiny();
    place.write("out.conf", OLD);
    let ask = place.starting(
        "find tiny.toml --knob group.web.memory.high --want 'pswpout == 0' --seeds 3 \
         --emit systemd -o",
    );
    let ran = ask("out.conf").succeeds();
    let text = place.read("out.conf");
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
        std::os::unix::fs::symlink("out.conf", place.path("link")).unwrap();
        ask("link").fails(2, &["not a regular file"]);
    }
}

#[test]
fn existing_files_are_replaced_only_by_their_kind() {
    let place = tiny();
    let ask = "find tiny.toml --knob vm.swappiness=0,60 --want 'allocstall >= 0' --seeds 2 \
               --emit sysctl.d -o";
    let emit = place.starting(ask);
    place.write("notes.txt", "my notes\n");
    emit("notes.txt").fails(2, &["notes.txt exists and is not a file that a search made"]);
    assert_eq!(place.read("notes.txt"), "my notes\n");
    for _ in 0..2 {
        emit("90.conf").succeeds();
        let text = place.read("90.conf");
        assert!(text.starts_with("# found by pagetide ") && text.contains("vm.swappiness = 0"));
    }
    emit("./one --html one").fails(2, &["--output and --html name the same file"]);
    assert!(!place.path("one").exists());
}

#[test]
fn what_is_reported_on_request_is_asked_for_by_the_command_line() {
    let place = tiny();
    let ask = "--knob vm.swappiness=10,60 --seeds 2 --want 'web.memory.high == max' \
               --price web.memory.low";
    let ran = find(&place, ask).quietly();
    assert!(result(&ran.stdout).contains("vm.swappiness = 10"), "{}", ran.stdout);
    let run = "run tiny.toml --repeats 1 --metrics web.memory.high --metrics *.nr_dying* --no-why";
    let ran = place.run(run).quietly().prints(&["\nweb.cgroup.stat.nr_dying_descendants"]);
    let row = ran.stdout.lines().find(|line| line.starts_with("web.memory.high "));
    assert!(row.is_some_and(|row| row.ends_with(" max")), "{}", ran.stdout);
    let grid = "sweep tiny.toml --grid group.web.memory.max=32M,max --repeats 1";
    place.run(format!("{grid} --metric web.memory.max")).quietly().prints(&["32.00", " max\n"]);
}

#[test]
fn each_value_is_shown_with_what_was_measured() {
    let ask = "--knob group.web.memory.high=8M,32M --want 'web.memory.peak <= 20MiB' --seeds 2";
    let ran = find(&tiny(), ask).quietly();
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
    let place = tiny();
    let ask =
        "find tiny.toml --knob group.web.memory.high=4M..64M --want 'web.memory.peak <= 20MiB' \
               --largest --seeds 40 --jobs 1 --store s";
    let rows = || std::fs::read_to_string(place.path("s/runs.jsonl")).unwrap_or_default();
    let child = place.command(&format!("{ask} --html p.html")).spawn().unwrap();
    while rows().lines().count() < 5 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let ran = end(child, "INT").exits(130);
    let text = &ran.stdout;
    assert!(text.starts_with("scenario   tiny\n") && text.contains("\nbefore  "), "{text}");
    ran.says(&["nothing is written (--html)\nhint: the store has the finished runs"]);
    assert!(!place.path("p.html").exists());
    let kept = rows();
    let whole = place.run(ask).succeeds();
    let now = rows();
    assert!(kept.lines().all(|line| now.contains(line)), "no run is made again");
    assert_eq!(place.run(ask.replace(" --store s", "")).stdout, whole.stdout);
    let again = place.run(ask);
    assert_eq!((again.stdout, rows()), (whole.stdout, now), "it runs nothing");
}
