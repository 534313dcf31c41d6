//! HTML reports of `run`: written completely or not at all, self-contained, and drawn by a real
//! browser.

use crate::browser;
use pagetide_testing::directory::TestDir;
use pagetide_testing::scenarios::{GROUPS, SMALL};
use serde_json::Value;

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
    let plain = place.run("run groups.toml").quietly();
    let ran = place.run("run groups.toml --html out.html");
    assert_eq!((ran.code, &ran.stdout), (Some(0), &plain.stdout));
    ran.says(&["note: the HTML report is in out.html\n"]);
    let page = place.read("out.html");
    assert!(page.contains("Command: <code>pagetide run groups.toml --html out.html"));
    assert!(page.contains("memory.soft_limit_in_bytes"));
    // The report fetches nothing. URLs occur only as names of formats.
    for unwanted in [" src=", "url(", "@import", "href=\"http"] {
        assert!(!page.contains(unwanted), "{unwanted}");
    }
    // Zones, groups, machine, reclaim, pressure, faults, stalls of two variants each, and a
    // distribution.
    browser::opens(&place, "out.html", 15);

    // The bytes do not depend on the number of jobs. A report may replace a report.
    place.run("run groups.toml --html out.html --jobs 1");
    let again = place.read("out.html").replace(" --jobs 1", "");
    assert!(page == again);
}

#[test]
fn pages_of_odd_names_and_single_runs_are_drawn() {
    let name = "</script><b onclick='1'>\\\"&amp;\u{1F600}\u{2028}\u{202e}x";
    let text = SMALL
        .replace("A reader on a small machine", &format!("{}\\n", name.replace('\'', "`")))
        .replace("name = \"early\"", &format!("name = \"e.+=:/%{}\"", "x".repeat(57)));
    let place = TestDir::with("small.toml", text);
    place.run("run small.toml --html out.html --repeats 1").succeeds();
    let page = place.read("out.html");
    assert!(!page.contains("<b onclick"), "a title became markup");
    browser::opens(&place, "out.html", charts_of(&page));
}

#[test]
fn runs_that_were_cut_are_marked_and_drawn() {
    let text = SMALL.replace("seed = 7", "seed = 7\ntime_limit = \"1ms\"");
    let place = TestDir::with("small.toml", text);
    place.run("run small.toml --html out.html").succeeds();
    let page = place.read("out.html");
    assert!(page.contains('\u{2020}') && page.contains("class=\"warning\""), "{page}");
    browser::opens(&place, "out.html", charts_of(&page));
}
