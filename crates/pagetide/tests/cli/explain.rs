//! Tests of `pagetide explain`, `pagetide man` and `--help`.

use pagetide_testing::directory::TestDir;

#[test]
fn names_are_explained_listed_and_suggested() {
    let place = TestDir::new();
    let explain = place.starting("explain");
    let parts = ["takes    0 to 200\n", "default  60\n", "Linux    /proc/sys/vm/swappiness\n"];
    let text = explain("sysctl.vm.swappiness").quietly().prints(&parts).stdout;
    assert!(text.starts_with("vm.swappiness (sysctl)\n"), "{text}");
    explain("web.latency_p99").quietly().prints(&["latency_p99 (metric)", "unit     seconds"]);
    let list = explain("policy.*").quietly().stdout;
    assert!(list.lines().count() > 10 && list.contains("\npolicy.kswapd (policy): "), "{list}");
    assert!(explain("*").quietly().stdout.lines().count() > 400);

    explain("vm.swapines").fails(2, &["no metric, knob, key or workload", "`vm.swappiness`"]);
    explain("\u{1b}[31m").fails(2, &["`\\u{1b}[31m`"]);
    explain("''").fails(2, &["no metric, knob, key or workload ``"]);
}

#[test]
fn manual_pages_are_printed_and_written() {
    let place = TestDir::new();
    place.run("man").quietly().prints(&[".TH pagetide 1"]);
    place.run("man --output .").says(&["manual pages are in ."]);
    let page = place.read("pagetide-explain.1");
    assert!(page.contains("Examples:") && page.contains("balance_pgdat"), "{page}");
    let nowhere = place.run("man --output nowhere");
    nowhere.fails(2, &["cannot write nowhere/pagetide", "no directory"]);
}

#[test]
fn help_has_examples() {
    let place = TestDir::new();
    for subcommand in ["run", "find", "inspect", "explain", "list"] {
        let help = place.run(format!("{subcommand} --help")).quietly();
        help.prints(&["\nExamples:\n  pagetide "]);
    }
}
