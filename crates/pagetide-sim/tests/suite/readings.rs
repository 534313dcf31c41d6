//! Metrics of single zones, and of the machine before its programs exit.

use pagetide_scenario::record::{Incomplete, RunRecord, Unit};
use pagetide_testing::{run_text, value};

const HEAD: &str = "[[machine.node]]\nmemory = \"64MiB\"\n\
    [[machine.node]]\nmemory = \"64MiB\"\nmovable = \"16MiB\"\n";

fn record(text: &str) -> RunRecord {
    run_text(text, 0)
}

#[test]
fn free_blocks_are_of_each_zone() {
    let task = "[[task]]\nname = \"t\"\nworkload = \"touch\"\nsize = \"40MiB\"\n";
    let record = record(&format!("{HEAD}{task}"));
    for when in ["", "done.", "t.main."] {
        let start = format!("{when}buddyinfo.");
        let of_zones = || record.metrics.iter().filter(|(key, _)| key.starts_with(&start));
        let zones = ["node0.DMA.", "node0.DMA32.", "node1.Normal.", "node1.Movable."];
        for order in 0..11 {
            let end = format!(".nr_free_blocks_{order}");
            let sum: f64 =
                of_zones().filter(|(key, _)| key.ends_with(&end)).map(|(_, it)| it.value).sum();
            let all = value(&record, &format!("{when}nr_free_blocks_{order}"));
            assert_eq!(sum, all, "{when} order {order}");
            let unit = record.metrics[&format!("{when}nr_free_blocks_{order}")].unit;
            assert_eq!(unit, Unit::Count, "{when} order {order}");
        }
        assert_eq!(of_zones().count(), 11 * zones.len(), "{when}");
        for zone in zones {
            assert!(
                of_zones().any(|(key, _)| key[start.len()..].starts_with(zone)),
                "{when} {zone}"
            );
        }
    }
}

#[test]
fn what_programs_give_back_when_they_end_is_not_of_their_work() {
    let touch = |name: &str, more: &str| {
        format!("[[task]]\nname = \"{name}\"\nworkload = \"touch\"\nsize = \"8MiB\"\n{more}")
    };
    let both = record(&format!("{HEAD}{}{}", touch("a", ""), touch("b", "after = \"a\"\n")));
    // At that time, the first program has exited, and the second has not.
    let given_back = value(&both, "pgfree") - value(&both, "done.pgfree");
    assert!((2048.0..2100.0).contains(&given_back), "{given_back}");
    let held = value(&both, "nr_free_pages") - value(&both, "done.nr_free_pages");
    // Some are on per-CPU lists.
    assert!((1900.0..2100.0).contains(&held), "{held}");
    assert_eq!(value(&both, "done.nr_anon_pages"), 2048.0);
    assert_eq!(value(&both, "done.pgfault"), value(&both, "pgfault"));
    // The run does not wait for a background task.
    let beside = touch("c", "background = true\nstart = \"1s\"\n");
    let alone = record(&format!("{HEAD}{}{beside}", touch("a", "")));
    assert_eq!(value(&alone, "done.nr_anon_pages"), 2048.0);
    let killed = record(&format!("{HEAD}{}", touch("a", "").replace("8MiB", "800MiB")));
    assert!(!killed.metrics.contains_key("done.pgfree"));
    // Values of a killed task are marked as incomplete.
    let one = touch("b", "after = \"a\"\n").replace("8MiB", "800MiB");
    let one = record(&format!("{HEAD}{}{one}", touch("a", "")));
    assert_eq!(one.metrics["done.pgfree"].ended, Some(Incomplete::OomKilled));
}

/// For a page that cannot be read, madvise() returns EFAULT instead of a signal.
#[test]
fn a_page_that_cannot_be_populated_is_an_error() {
    for (ppm, errno) in [(0, 0.0), (1_000_000, 14.0)] {
        let record = record(&format!(
            "[machine]\nmemory = \"64MiB\"\n[[machine.disk]]\nname = \"sda\"\nmodel = \"ssd\"\n\
            faults = {{ read_error_ppm = {ppm} }}\n\
            [[file]]\nname = \"data\"\nsize = \"1MiB\"\n\
            [[task]]\nname = \"t\"\n[[task.phase]]\nname = \"populate\"\nworkload = \"advise\"\n\
            advice = \"populate-read\"\nfile = \"data\"\n"
        ));
        assert_eq!(value(&record, "t.populate.errno"), errno, "{:?}", record.notes);
    }
}
