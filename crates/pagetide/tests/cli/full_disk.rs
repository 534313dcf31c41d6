//! A disk without room for an output. A limit on the size of files stands for it.

use crate::common::{TestDir, SMALL};
use std::fs;

#[test]
fn the_message_names_the_output_and_the_exit_code_is_1() {
    let place = TestDir::with("s.toml", SMALL);
    place.write("in.csv", "1\n2\n");
    fs::create_dir(place.directory.join("man")).unwrap();
    let knob = "--knob vm.watermark_scale_factor=10,60 --want 'allocstall == 0' --seeds 1";
    for (command, output) in [
        ("trace import csv in.csv --obj-id-col 1 -o out", "out"),
        ("run s.toml --repeats 1 --html out", "out"),
        ("run s.toml --repeats 1 --openmetrics out", "out"),
        ("run s.toml --repeats 1 --events out", "out"),
        ("run s.toml --repeats 1 --perfetto out", "out"),
        (&format!("find s.toml {knob} --html out"), "out"),
        (&format!("find s.toml {knob} --emit json -o out"), "out"),
        ("sweep s.toml --repeats 1 --store out", "out"),
        ("new --from desktop -o out", "out"),
        ("import host --root / -o out", "out"),
        ("man -o man", "man/pagetide-run.1"),
    ] {
        // The shell ignores the signal for the command, which then gets an error.
        let script = format!("trap '' XFSZ; ulimit -f 0; exec \"$PAGETIDE\" {command}");
        let mut shell = std::process::Command::new("sh");
        shell.env("PAGETIDE", env!("CARGO_BIN_EXE_pagetide")).current_dir(&place.directory);
        let ran = shell.args(["-c", &script]).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{command}: {said}");
        let names = said.lines().any(|line| line.contains(output) && line.contains("too large"));
        let hints = ["hint: free some space", "the disk may be full"];
        assert!(names && hints.iter().any(|hint| said.contains(hint)), "{command}: {said}");
        let path = place.directory.join(output);
        assert!(path.is_dir() || !path.exists(), "{command} left an incomplete file");
        let _ = fs::remove_dir_all(path);
    }
}
