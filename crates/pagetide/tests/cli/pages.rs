//! HTML reports of `run`: written completely or not at all, self-contained, and drawn by a real
//! browser.

use crate::browser;
use crate::common::{CommandOutput, TestDir, GROUPS, SMALL};
use serde_json::Value;
use std::fs;

fn run(place: &TestDir, args: &[&str]) -> CommandOutput {
    place.run([&["run"], args].concat())
}

fn read(place: &TestDir, name: &str) -> String {
    fs::read_to_string(place.directory.join(name)).unwrap()
}

/// Charts that a report draws when it is opened: the panels of the default selection.
fn charts_of(page: &str) -> u32 {
    let data = page.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script>").next());
    let data: Value = serde_json::from_str(data.unwrap()).unwrap();
    let figures = data["figures"].as_array().unwrap();
    let panels = figures.iter().map(|it| it["choices"][0]["panels"].as_array().unwrap().len());
    panels.sum::<usize>() as u32
}

#[test]
fn a_page_of_a_run_is_drawn_and_leaves_the_results_alone() {
    let place = TestDir::with("groups.toml", GROUPS);
    let plain = run(&place, &["groups.toml"]).quietly();
    let ran = run(&place, &["groups.toml", "--html", "out.html"]);
    assert_eq!((ran.code, &ran.stdout), (Some(0), &plain.stdout));
    ran.says(&["note: the HTML report is in out.html\n"]);
    let page = read(&place, "out.html");
    for wanted in
        ["Command: <code>pagetide run groups.toml --html out.html", "memory.soft_limit_in_bytes"]
    {
        assert!(page.contains(wanted), "{wanted}");
    }
    // The report fetches nothing. URLs occur only as names of formats.
    for unwanted in [" src=", "url(", "@import", "href=\"http"] {
        assert!(!page.contains(unwanted), "{unwanted}");
    }
    // Zones, groups, machine, reclaim, pressure, faults, stalls of two variants each, and a
    // distribution.
    browser::opens(&place, "out.html", 15);

    // The bytes do not depend on the number of jobs. A report may replace a report.
    run(&place, &["groups.toml", "--html", "out.html", "--jobs", "1"]);
    let again = read(&place, "out.html").replace(" --jobs 1", "");
    assert!(page == again);
}

#[test]
fn pages_of_odd_names_and_single_runs_are_drawn() {
    let name = "</script><b onclick='1'>\\\"&amp;\u{1F600}\u{2028}\u{202e}x";
    let text = SMALL
        .replace("A reader on a small machine", &format!("{}\\n", name.replace('\'', "`")))
        .replace("name = \"early\"", &format!("name = \"e.+=:/%{}\"", "x".repeat(57)));
    let place = TestDir::with("small.toml", &text);
    let ran = run(&place, &["small.toml", "--html", "out.html", "--repeats", "1"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let page = read(&place, "out.html");
    assert!(!page.contains("<b onclick"), "a title became markup");
    browser::opens(&place, "out.html", charts_of(&page));
}

#[test]
fn runs_that_were_cut_are_marked_and_drawn() {
    let text = SMALL.replace("seed = 7", "seed = 7\ntime_limit = \"1ms\"");
    let place = TestDir::with("small.toml", &text);
    let ran = run(&place, &["small.toml", "--html", "out.html"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let page = read(&place, "out.html");
    assert!(page.contains('\u{2020}') && page.contains("class=\"warning\""), "{page}");
    browser::opens(&place, "out.html", charts_of(&page));
}

#[test]
fn a_page_needs_a_file_of_its_own() {
    let place = TestDir::with("small.toml", SMALL);
    let to = |file: &str| run(&place, &["small.toml", "--html", file]);
    let before = read(&place, "small.toml");
    to("small.toml").fails(2, &["small.toml is an input of this command", "hint:"]);
    place.write("other.toml", "[machine]\n");
    to("other.toml").fails(2, &["other.toml exists and is not an HTML page", "hint:"]);
    to("absent/out.html").fails(2, &["cannot write absent/out.html", "hint:"]);
    to(".").fails(2, &["exists and is not a regular file", "hint:"]);
    if cfg!(target_os = "linux") {
        to("/dev/full").fails(2, &["/dev/full exists and is not a regular file", "hint:"]);
    }
    assert!(before == read(&place, "small.toml") && read(&place, "other.toml") == "[machine]\n");
    let left = fs::read_dir(&place.directory).unwrap().count();
    assert_eq!(left, 2, "nothing else is left");
}
