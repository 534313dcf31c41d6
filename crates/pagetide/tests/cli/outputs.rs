//! Files that commands write: which ones they refuse to write, and a disk without room for one.

use pagetide_testing::directory::TestDir;
use pagetide_testing::scenarios::SMALL;
use std::fs;

const KNOB: &str = "--knob vm.watermark_scale_factor=10,60 --want 'allocstall == 0' --seeds 1";

#[test]
fn an_output_needs_a_file_of_its_own() {
    let place = TestDir::with("s.toml", SMALL);
    place.write("mine.txt", "dear diary");
    let find = format!("find s.toml {KNOB} --html");
    for (command, what) in [
        ("run s.toml --events", "a file of events"),
        ("run s.toml --perfetto", "a file of a Perfetto trace"),
        ("run s.toml --openmetrics", "OpenMetrics text"),
        ("run s.toml --html", "an HTML page"),
        ("sweep s.toml --html", "an HTML page"),
        ("verify s.toml --html", "an HTML page"),
        (&find, "an HTML page"),
    ] {
        let to = place.starting(command);
        // Events and traces are written while the run goes on, also to a device.
        let [own, absent, folder] = match what.starts_with("a file of ") {
            true => ["s.toml exists and is not ", "cannot write no/such", "cannot write ."],
            false => ["s.toml is an input of this command", "no directory", "not a regular file"],
        };
        to("s.toml").fails(2, &[own, "hint:"]);
        to("mine.txt").fails(2, &["mine.txt exists and is not ", what, "hint:"]);
        to("no/such").fails(2, &[absent, "hint:"]);
        to(".").fails(2, &[folder, "hint:"]);
        if cfg!(target_os = "linux") && !what.starts_with("a file of ") {
            to("/dev/full").fails(2, &["/dev/full exists and is not a regular file", "hint:"]);
        }
    }
    place.run("run s.toml --events -").fails(2, &["stdout, because the results go there", "hint:"]);
    let trace = place.run("run s.toml --perfetto -");
    trace.fails(2, &["a Perfetto trace cannot go to stdout", "hint: name a file"]);
    assert_eq!(
        (place.read("s.toml").as_str(), place.read("mine.txt").as_str()),
        (SMALL, "dear diary")
    );
    assert_eq!(place.names(), ["mine.txt", "s.toml"]);
}

/// A limit on the size of files stands for the full disk.
#[test]
fn the_message_names_the_output_and_the_exit_code_is_1() {
    let place = TestDir::with("s.toml", SMALL);
    place.write("in.csv", "1\n2\n");
    fs::create_dir(place.path("man")).unwrap();
    for (command, output) in [
        ("trace import csv in.csv --obj-id-col 1 -o out", "out"),
        ("run s.toml --repeats 1 --html out", "out"),
        ("run s.toml --repeats 1 --openmetrics out", "out"),
        ("run s.toml --repeats 1 --events out", "out"),
        ("run s.toml --repeats 1 --perfetto out", "out"),
        (&format!("find s.toml {KNOB} --html out"), "out"),
        (&format!("find s.toml {KNOB} --emit json -o out"), "out"),
        ("sweep s.toml --repeats 1 --store out", "out"),
        ("new --from desktop -o out", "out"),
        ("import host --root / -o out", "out"),
        ("man -o man", "man/pagetide-run.1"),
    ] {
        // The shell ignores the signal for the command, which then gets an error.
        let script = format!("trap '' XFSZ; ulimit -f 0; exec \"$PAGETIDE\" {command}");
        let said = place.shell(&script).exits(1).stderr;
        let names = said.lines().any(|line| line.contains(output) && line.contains("too large"));
        let hints = ["hint: free some space", "the disk may be full"];
        assert!(names && hints.iter().any(|hint| said.contains(hint)), "{command}: {said}");
        let path = place.path(output);
        assert!(path.is_dir() || !path.exists(), "{command} left an incomplete file");
        let _ = fs::remove_dir_all(path);
    }
}
