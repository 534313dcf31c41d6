//! `--html` of `find`, `sweep`, `verify` and `mrc`: complete reports, which a browser opens without
//! messages.

use crate::browser;
use crate::common::TestDir;
use std::fs;
use std::path::Path;

/// Two tasks and a group with names that need escaping in HTML only; a run takes milliseconds.
const TINY: &str = r#"
title = "</script><script>alert(1)</script> \u2028 & \"quotes\""
description = "<b>bold</b>"
[machine]
memory = "64MiB"
swap = "64MiB"
[[group]]
name = "web"
memory.high = "30M"
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
[[variant]]
name = "a.+=:/%xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
[[variant]]
name = "calm"
sysctl.vm.swappiness = 10
"#;

/// Runs a command with `--html`, opens the report, and returns its text.
fn page(place: &TestDir, args: &[&str], charts: u32) -> String {
    let ran = place.run(args.iter().chain(&["--html", "out.html"]));
    assert!([Some(0), Some(1)].contains(&ran.code), "{ran:?}");
    let file = place.directory.join("out.html");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"));
    assert!(text.len() < 2_000_000, "{} bytes", text.len());
    assert!(!text.contains("<script>alert") && !text.contains("<b>"));
    browser::opens(place, "out.html", charts);
    let again = place.run(args.iter().chain(&["--html", "again.html"]));
    assert_eq!(again.code, ran.code);
    let again = fs::read_to_string(place.directory.join("again.html")).unwrap();
    assert_eq!(again.replace("again.html", "out.html"), text, "the same result, the same bytes");
    fs::remove_file(file).unwrap();
    text
}

#[test]
fn find_draws_its_values_and_the_setting_to_copy() {
    let place = TestDir::with("tiny.toml", TINY);
    let find = ["find", "tiny.toml", "--seeds", "4", "--in", "80%", "--want"];
    let one = ["allocstall < 100000", "--knob", "vm.swappiness=10,60,100", "--price", "t.walltime"];
    let text = page(&place, &[&find[..], &one].concat(), 3);
    for wanted in ["id=\"values-held\"", "vm.swappiness = ", "deploy-sysctl.d", "unchanged"] {
        assert!(text.contains(wanted), "{wanted}");
    }
    let none = ["t.walltime < 1ns", "--knob", "vm.swappiness=10,60"];
    let text = page(&place, &[&find[..], &none].concat(), 2);
    assert!(text.contains("Nothing to deploy.") && !text.contains("id=\"deploy\""));
}

#[test]
fn sweep_draws_curves_and_grids() {
    let place = TestDir::with("tiny.toml", TINY);
    let sweep = ["sweep", "tiny.toml", "--repeats", "2", "--metric", "*.walltime", "--grid"];
    let text = page(&place, &[&sweep[..], &["vm.swappiness=10,60,100"]].concat(), 4);
    assert!(text.contains("class=\"pick\"") && text.contains("a.+=:/%"));
    let two = ["vm.swappiness=10,60", "--grid", "machine.memory=64M,96M", "--variant", "calm"];
    let text = page(&place, &[&sweep[..], &two].concat(), 0);
    assert!(text.contains("table class=\"heat\""), "a grid");
    let ended = TINY.replace("swap = \"64MiB\"\n", "").replace("64MiB", "24MiB");
    place.write("tiny.toml", ended);
    let text = page(&place, &[&sweep[..], &["vm.swappiness=10,60"]].concat(), 4);
    assert!(text.contains('\u{2020}'), "the killed run is marked");
}

#[test]
fn verify_shows_two_worlds() {
    let place = TestDir::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/verify");
    let (file, recorded) = (root.join("swap.toml"), root.join("linux-6.1"));
    let [file, recorded] = [&file, &recorded].map(|path| path.to_str().unwrap());
    let text = page(&place, &["verify", file, "--reference", recorded], 0);
    for wanted in ["id=\"table-counters\"", "id=\"table-times\"", "class=\"filter\"", "Linux"] {
        assert!(text.contains(wanted), "{wanted}");
    }
}

#[test]
fn mrc_draws_its_curve() {
    let place = TestDir::new();
    let requests: String = (0..30_000u64).map(|it| format!("0,{}\n", it * it % 9973)).collect();
    place.write("in.csv", format!("time,id\n{requests}"));
    let import = ["trace", "import", "csv", "in.csv", "-o", "t.ptt"];
    let ran = place.run(import.into_iter().chain(["--time-col", "1", "--obj-id-col", "2"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = page(&place, &["mrc", "t.ptt", "--sizes", "4MiB..64MiB/4"], 1);
    assert!(text.contains("S3-FIFO") && text.contains("4 MiB"));
}

#[test]
fn a_page_is_written_whole_or_not_at_all_and_over_pages_only() {
    let place = TestDir::with("tiny.toml", TINY);
    place.write("mine.txt", "dear diary");
    for (out, words) in [
        ("tiny.toml", "is an input"),
        ("mine.txt", "is not an HTML page"),
        ("/dev/full", "not a regular file"),
        ("no/such/out.html", "no directory"),
    ] {
        for command in ["sweep", "verify"] {
            let ran = place.run([command, "tiny.toml", "--html", out]);
            assert_eq!(ran.code, Some(2), "{command} {out}: {ran:?}");
            assert!(ran.stderr.contains(words) && ran.stdout.is_empty(), "{out}: {}", ran.stderr);
        }
        let knob = ["--knob", "vm.swappiness=10,60", "--want", "allocstall == 0"];
        let ran = place.run(["find", "tiny.toml", "--html", out].iter().chain(&knob));
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
    assert_eq!(fs::read_to_string(place.directory.join("mine.txt")).unwrap(), "dear diary");
}
