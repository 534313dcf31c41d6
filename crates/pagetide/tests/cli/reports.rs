//! `--html` of `find`, `sweep`, `verify` and `mrc`: complete reports, which a browser opens without
//! messages.

use crate::browser;
use pagetide_testing::directory::TestDir;
use pagetide_testing::root;
use std::fs;

/// Two tasks and a group with names that need escaping in HTML only; a run takes milliseconds.
const TINY: &str = r#"
title = "</script><script>alert(1)</script> \u2028 & \"quotes\""
description = "<b>bold</b>"
machine = { memory = "64MiB", swap = "64MiB" }
group = [{ name = "web", memory.high = "30M" }]
task = [
  { name = "t", group = "web", workload = "touch", size = "24MiB", passes = 2 },
  { name = "other", workload = "touch", size = "20MiB" },
]
variant = [
  { name = "a.+=:/%xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" },
  { name = "calm", sysctl.vm.swappiness = 10 },
]
"#;

/// Runs a command with `--html`, opens the report, and returns its text.
fn page(place: &TestDir, line: &str, charts: u32) -> String {
    let ran = place.run(format!("{line} --html out.html"));
    assert!([Some(0), Some(1)].contains(&ran.code), "{ran:?}");
    let text = place.read("out.html");
    assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"));
    assert!(text.len() < 2_000_000, "{} bytes", text.len());
    assert!(!text.contains("<script>alert") && !text.contains("<b>"));
    browser::opens(place, "out.html", charts);
    assert_eq!(place.run(format!("{line} --html again.html")).code, ran.code);
    let again = place.read("again.html");
    assert_eq!(again.replace("again.html", "out.html"), text, "the same result, the same bytes");
    fs::remove_file(place.path("out.html")).unwrap();
    text
}

#[test]
fn find_draws_its_values_and_the_setting_to_copy() {
    let place = TestDir::with("tiny.toml", TINY);
    let find = "find tiny.toml --seeds 4 --in 80%";
    let one = "--want 'allocstall < 100000' --knob vm.swappiness=10,60,100 --price t.walltime";
    let text = page(&place, &format!("{find} {one}"), 3);
    for wanted in ["id=\"values-held\"", "vm.swappiness = ", "deploy-sysctl.d", "unchanged"] {
        assert!(text.contains(wanted), "{wanted}");
    }
    let none = "--want 't.walltime < 1ns' --knob vm.swappiness=10,60";
    let text = page(&place, &format!("{find} {none}"), 2);
    assert!(text.contains("Nothing to deploy.") && !text.contains("id=\"deploy\""));
}

#[test]
fn sweep_draws_curves_and_grids() {
    let place = TestDir::with("tiny.toml", TINY);
    let page = |grid: &str, charts: u32| {
        let line = format!("sweep tiny.toml --repeats 2 --metric *.walltime --grid {grid}");
        page(&place, &line, charts)
    };
    let text = page("vm.swappiness=10,60,100", 4);
    assert!(text.contains("class=\"pick\"") && text.contains("a.+=:/%"));
    let text = page("vm.swappiness=10,60 --grid machine.memory=64M,96M --variant calm", 0);
    assert!(text.contains("table class=\"heat\""), "a grid");
    let ended = TINY.replace(", swap = \"64MiB\"", "").replace("64MiB", "24MiB");
    place.write("tiny.toml", ended);
    let text = page("vm.swappiness=10,60", 4);
    assert!(text.contains('\u{2020}'), "the killed run is marked");
}

#[test]
fn verify_shows_two_worlds() {
    let place = TestDir::new();
    let cases = root().join("experiments/verify");
    let cases = cases.display();
    let line = format!("verify '{cases}/swap.toml' --reference '{cases}/linux-6.1'");
    let text = page(&place, &line, 0);
    for wanted in ["id=\"table-counters\"", "id=\"table-times\"", "class=\"filter\"", "Linux"] {
        assert!(text.contains(wanted), "{wanted}");
    }
}

#[test]
fn mrc_draws_its_curve() {
    let place = TestDir::new();
    let requests: String = (0..30_000u64).map(|it| format!("0,{}\n", it * it % 9973)).collect();
    place.write("in.csv", format!("time,id\n{requests}"));
    place.run("trace import csv in.csv -o t.ptt --time-col 1 --obj-id-col 2").succeeds();
    let text = page(&place, "mrc t.ptt --sizes 4MiB..64MiB/4", 1);
    assert!(text.contains("S3-FIFO") && text.contains("4 MiB"));
}
