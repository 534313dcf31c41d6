//! Tests of `pagetide import host` with saved systems, and of `pagetide import report`.

use pagetide_testing::command::{end, CommandOutput};
use pagetide_testing::directory::TestDir;
use pagetide_testing::root;
use std::fs;
use std::path::PathBuf;

/// A saved system from the tests of crates/pagetide-linux.
fn saved(name: &str) -> PathBuf {
    root().join("crates/pagetide-linux/tests/data").join(name)
}

fn import(place: &TestDir, name: &str, more: &str) -> CommandOutput {
    place.run(format!("import host --root '{}' {more}", saved(name).display()))
}

/// Name, managed, min, low, high and protection of each zone with memory.
fn zones(zoneinfo: &str) -> Vec<(String, Vec<String>)> {
    let mut zones: Vec<(String, Vec<String>)> = Vec::new();
    let mut is_zone = false;
    for line in zoneinfo.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Node", node, "zone", name] => zones.push((format!("{node}{name}"), Vec::new())),
            ["pages", "free", _] => is_zone = true,
            ["pagesets"] => is_zone = false,
            ["present", "0"] if is_zone => {
                zones.pop();
                is_zone = false;
            }
            [key @ ("min" | "low" | "high" | "managed" | "present"), value] if is_zone => {
                zones.last_mut().unwrap().1.push(format!("{key} {value}"));
            }
            // A kernel with more zones repeats the value of the last one.
            ["protection:", list @ ..] if is_zone => {
                let list = list.concat();
                let list: Vec<&str> = list.trim_matches(['(', ')']).split(',').take(4).collect();
                zones.last_mut().unwrap().1.push(list.join(","));
            }
            _ => {}
        }
    }
    zones.sort();
    zones
}

#[test]
fn a_saved_system_becomes_a_scenario_that_runs() {
    for name in ["linux-6.18", "made-numa-v2", "made-64k-v1"] {
        let place = TestDir::new();
        import(&place, name, "-o host.toml").fails(0, &["note: host.toml: "]);
        place.run("check host.toml").quietly();
        // The machine with nodes and groups takes seconds to build in a debug build.
        if name == "linux-6.18" {
            place.run("run host.toml --repeats 1").succeeds().prints(&["example.walltime"]);
        }
        let text = place.read("host.toml");
        assert_eq!(import(&place, name, "").stdout, text, "{name}");
    }
}

#[test]
fn the_simulated_machine_has_the_marks_of_the_real_one() {
    let place = TestDir::new();
    import(&place, "linux-6.18", "-o host.toml");
    let simulated = place.run("inspect host.toml --only zoneinfo").stdout;
    let real = fs::read_to_string(saved("linux-6.18").join("proc/zoneinfo")).unwrap();
    assert_eq!(zones(&simulated), zones(&real));
    assert_eq!(zones(&real).len(), 3);
}

#[test]
fn options_choose_what_is_free_and_which_groups_stay() {
    let place = TestDir::new();
    let plain = import(&place, "made-numa-v2", "").stdout;
    let as_is = import(&place, "made-numa-v2", "--as-is").stdout;
    assert!(
        as_is.contains("free = \"400000 pages\"") && !plain.contains("free = \"400000 pages\"")
    );
    let all = import(&place, "made-numa-v2", "--all-groups").stdout;
    assert!(!plain.contains("sshd_service") && all.contains("name = \"sshd_service\""));
    import(&place, "made-numa-v2", "").says(&["note: /proc/swaps: /dev/zram0"]);
}

#[test]
fn an_import_overwrites_nothing_and_needs_a_system() {
    let place = TestDir::with("host.toml", "mine");
    import(&place, "linux-6.18", "-o host.toml")
        .fails(2, &["host.toml exists", "hint: nothing was written"]);
    assert_eq!(place.read("host.toml"), "mine");
    import(&place, "linux-6.18", "-o absent/host.toml").fails(2, &["absent/host.toml"]);
    let host = place.starting("import host --root");
    host("absent").fails(2, &["cannot read absent", "hint: DIR must be laid out like `/`"]);
    std::fs::create_dir(place.path("proc")).unwrap();
    std::fs::write(place.path("proc/zoneinfo"), "Node 0, zone Normal\n").unwrap();
    host("proc").fails(2, &["proc has no proc/zoneinfo", "hint: give the directory above"]);
    host("host.toml").fails(2, &["cannot read host.toml", "hint:"]);
    host(".").fails(2, &["./proc/zoneinfo", "says what memory", "hint:"]);
}

#[cfg(target_os = "linux")]
#[test]
fn the_live_system_can_be_imported() {
    // Some sandboxes hide parts of the memory; the import must work with the visible rest.
    let place = TestDir::new();
    let ran = place.run("import host -o live.toml");
    if ran.code == Some(0) {
        place.run("check live.toml").quietly();
    } else {
        ran.fails(2, &["hint:"]);
    }
}

/// Directories of groups and files that a measurement creates.
#[cfg(target_os = "linux")]
fn left_behind(tmp: &std::path::Path) -> Vec<PathBuf> {
    let names = |dir: &std::path::Path| -> Vec<PathBuf> {
        fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let mut left = names(tmp);
    let mut groups = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(group) = groups.pop() {
        let below = names(&group).into_iter().filter(|path| path.is_dir() && !path.is_symlink());
        for path in below {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            match name.starts_with("pagetide-measure-") {
                true => left.push(path),
                false => groups.push(path),
            }
        }
    }
    left
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_is_done() {
    let place = TestDir::with("host.toml", "mine");
    let measure = place.starting("import host --measure");
    measure("--root /").fails(2, &["--measure", "--root"]);
    place.run("import host --guest x").fails(2, &["--measure"]);
    measure("-o host.toml").fails(2, &["host.toml exists", "hint: nothing was written"]);
    measure("--guest absent").fails(2, &["hint:"]);
}

/// Skipped, with the reason on stderr, if the machine cannot be measured. Without its own group the
/// measurement covers less.
#[cfg(target_os = "linux")]
#[test]
fn the_live_system_is_measured_and_nothing_is_left_behind() {
    let place = TestDir::new();
    let tmp = place.path("tmp");
    fs::create_dir(&tmp).unwrap();
    let before = left_behind(&tmp);
    let mut command = place.command("import host --measure -o live.toml");
    let ran = CommandOutput::from(command.env("TMPDIR", &tmp).output().unwrap());
    let stderr = &ran.stderr;
    assert_eq!(left_behind(&tmp), before);
    if ran.code == Some(2) {
        let reasons = ["cannot be measured here", "the guest program", "says what memory"];
        assert!(reasons.iter().any(|reason| stderr.contains(reason)), "{stderr}");
        return eprintln!(
            "the_live_system_is_measured_and_nothing_is_left_behind: skipped, {stderr}"
        );
    }
    assert_eq!(ran.code, Some(0), "{stderr}");
    assert!(stderr.contains("costs measured on this machine"), "{stderr}");
    if stderr.contains("not performed:") {
        eprintln!("the_live_system_is_measured_and_nothing_is_left_behind: in part, {stderr}");
    }
    place.run("check live.toml").quietly();
    let text = place.read("live.toml");
    assert!(text.contains("[machine.costs]\n") && text.contains("\nfault = \""), "{text}");
    // The report states the costs of the run.
    let ran = place.run("run live.toml --repeats 1");
    assert!(ran.stdout.contains("costs stated") || ran.stdout.contains("fault "), "{ran:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_measurement_leaves_nothing_behind() {
    let place = TestDir::new();
    let tmp = place.path("tmp");
    fs::create_dir(&tmp).unwrap();
    let before = left_behind(&tmp);
    let mut command = place.command("import host --measure -o live.toml");
    let mut child = command.env("TMPDIR", &tmp).spawn().unwrap();
    let begun = std::time::Instant::now();
    // The measurement creates its files before it starts.
    while fs::read_dir(&tmp).unwrap().next().is_none() {
        if child.try_wait().unwrap().is_some() {
            return eprintln!("an_interrupted_measurement_leaves_nothing_behind: skipped");
        }
        assert!(begun.elapsed().as_secs() < 60);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    end(child, "INT").exits(130);
    assert_eq!(left_behind(&tmp), before);
    assert!(!place.path("live.toml").exists());
}

#[test]
fn a_report_becomes_a_scenario_that_runs() {
    let place = TestDir::new();
    let log = |name: &str| root().join("fuzz/corpus/kernel-report").join(name);
    for (name, note) in [("failure", "highest CPU"), ("group", "does not describe the machine")] {
        let command = format!("import report '{}' -o {name}.toml", log(name).display());
        let ran = place.run(command);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
        ran.says(&["note: ", note]);
        let ran = place.run(format!("run {name}.toml --repeats 1"));
        // These reports are made up; there is memory for their requests.
        assert_eq!(ran.code, Some(1), "{ran:?}");
        ran.prints(&["oom_kill", "no      as in the report, there is no memory for the request"]);
    }
    let limited = "a invoked oom-killer: gfp_mask=0xd0, order=0, oom_score_adj=0\n\
        Task in /a/b killed as a result of limit of /a\n\
        memory: usage 5120kB, limit 5120kB, failcnt 9\n\
        Memory cgroup stats for /a: inactive_anon:4000KB active_anon:1000KB\n\
        [ pid ]   uid  tgid total_vm      rss nr_ptes swapents oom_score_adj name\n\
        [   9]     0     9    26000     1200      10        0             0 eater\n";
    std::fs::write(place.path("limited.log"), limited).unwrap();
    place.run("import report limited.log -o limited.toml").succeeds();
    let ran = place.run("run limited.toml --repeats 1");
    ran.succeeds().prints(&[
        "task `eater` of group `a` was killed: out of memory",
        "expected  1 of 1 hold in every run",
    ]);
    let ran = place.run(format!("import report '{}' --report 2", log("failure").display()));
    ran.fails(2, &["has no report 2", "it has 1", "hint: a report begins with"]);
}
