//! Tests of `pagetide explain`, `pagetide man` and `--help`.

use crate::common::TestDir;

#[test]
fn names_are_explained_listed_and_suggested() {
    let place = TestDir::new();
    let explain = |name: &str| place.run(["explain", name]);
    let text = explain("sysctl.vm.swappiness").quietly().stdout;
    assert!(text.starts_with("vm.swappiness (sysctl)\n"), "{text}");
    for part in ["takes    0 to 200\n", "default  60\n", "Linux    /proc/sys/vm/swappiness\n"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = explain("web.latency_p99").quietly().stdout;
    assert!(text.contains("latency_p99 (metric)") && text.contains("unit     seconds"), "{text}");
    let list = explain("policy.*").quietly().stdout;
    assert!(list.lines().count() > 10 && list.contains("\npolicy.kswapd (policy): "), "{list}");
    assert!(explain("*").quietly().stdout.lines().count() > 400);

    explain("vm.swapines").fails(2, &["no metric, knob, key or workload", "`vm.swappiness`"]);
    explain("\u{1b}[31m").fails(2, &["`\\u{1b}[31m`"]);
    explain("").fails(2, &["no metric, knob, key or workload ``"]);
}

#[test]
fn manual_pages_are_printed_and_written() {
    let place = TestDir::new();
    let page = place.run(["man"]).quietly().stdout;
    assert!(page.contains(".TH pagetide 1"), "{page}");
    place.run(["man", "--output", "."]).says(&["manual pages are in ."]);
    let page = std::fs::read_to_string(place.directory.join("pagetide-explain.1")).unwrap();
    assert!(page.contains("Examples:") && page.contains("balance_pgdat"), "{page}");
    place
        .run(["man", "--output", "nowhere"])
        .fails(2, &["cannot write nowhere/pagetide", "no directory"]);
}

#[test]
fn help_has_examples() {
    let place = TestDir::new();
    for subcommand in ["run", "find", "inspect", "explain", "list"] {
        let help = place.run([subcommand, "--help"]).quietly().stdout;
        assert!(help.contains("\nExamples:\n  pagetide "), "{help}");
    }
}
