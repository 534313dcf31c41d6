use super::*;
use crate::testing::scenario;
use pagetide_scenario::model::Group;

fn setup() -> Setup {
    let mut setup = scenario(&["a"]).variants.remove(0).setup;
    setup.groups = ["web", "g.0", "g.1"].map(Group::new).into();
    setup
}

fn texts(text: &str) -> Vec<String> {
    let knob = Knob::parse(text, &setup(), false).unwrap();
    knob.values.into_iter().map(|value| value.text).collect()
}

#[test]
fn lists_and_ranges() {
    assert_eq!(texts("vm.swappiness=0,60,180"), ["0", "60", "180"]);
    assert_eq!(texts("machine.memory=2GiB..8GiB/5"), ["2G", "3584M", "5G", "6656M", "8G"]);
    assert_eq!(texts("machine.memory=64MiB..4GiB/4"), ["64M", "256M", "1G", "4G"]);
    assert_eq!(texts("vm.swappiness").len(), 201);
    assert_eq!(texts("sysctl.vm.swappiness=10..20").len(), 11);
    assert_eq!(texts("vm.min_free_kbytes=16MiB,64MiB"), ["16384", "65536"]);
    assert_eq!(texts("task.t.start=1s..2s/3"), ["1s", "1500ms", "2s"]);
    assert_eq!(texts("policy.lru=linux-6.1,linux-5.4"), ["linux-6.1", "linux-5.4"]);
    assert_eq!(texts("transparent_hugepage.enabled"), ["always", "madvise", "never"]);
}

#[test]
fn a_range_has_round_numbers() {
    let all = texts("vm.watermark_scale_factor=10..3000");
    assert_eq!(all.len(), 201);
    for (at, text) in [(0, "10"), (89, "99"), (90, "100"), (91, "110"), (200, "3000")] {
        assert_eq!(all[at], text);
    }
    let bytes = Knob::parse("vm.dirty_bytes", &setup(), false).unwrap();
    let memory: u64 = setup().machine.nodes.iter().map(|node| node.memory).sum();
    assert_eq!(bytes.values.last().unwrap().number, memory as f64, "{}", bytes.how);
    assert!(bytes.how.ends_with("up to the machine's memory"), "{}", bytes.how);
    let sizes = texts("group.web.memory.high=64M..256M");
    assert_eq!((sizes.len(), sizes[1].as_str(), sizes[16].as_str()), (33, "68M", "128M"));
}

#[test]
fn a_search_has_the_numbers_of_a_list_in_order_and_a_grid_as_given() {
    assert_eq!(texts("vm.swappiness=100,0,60"), ["0", "60", "100"]);
    assert_eq!(texts("group.web.memory.max=max,64M,8M,1G"), ["8M", "64M", "1G", "max"]);
    // Words keep their place; the loader refuses them.
    assert_eq!(texts("vm.swappiness=0,sixty,100"), ["0", "sixty", "100"]);
    let grid = Knob::parse("vm.swappiness=100,0,60", &setup(), true).unwrap();
    assert_eq!(grid.values[0].text, "100");
    let is_list = |text| Knob::parse(text, &setup(), false).unwrap().is_list;
    assert!(is_list("vm.swappiness=100,0,60") && !is_list("vm.swappiness=0..60"));
}

#[test]
fn ranges_may_begin_below_a_page_and_end_at_the_largest_number() {
    for text in
        ["group.web.memory.low=0..64MiB", "machine.memory=0..1GiB", "group.web.memory.low=9..64MiB"]
    {
        let all = texts(text);
        assert_eq!(all.last().unwrap(), if text.starts_with('g') { "64M" } else { "1G" });
        assert!((all.len() > 20) && all[1] == "4K", "{text}: {all:?}");
    }
    assert_eq!(texts("task.t.x=0..18446744073709551615").last().unwrap(), "18446744073709551615");
    for text in [
        "task.t.x=-170141183460469231731687303715884105728..170141183460469231731687303715884105727",
        "task.t.x=0..170141183460469231731687303715884105727",
        "task.t.x=0.5..999999999999999999999999999999999999999999999.5",
        "task.t.x=0.5..99999999999999999999999999999999999999.5/5",
    ] {
        let mistake = Knob::parse(text, &setup(), false).unwrap_err();
        assert!(!mistake.hint.is_empty(), "{text}: {mistake:?}");
    }
}

#[test]
fn ranges_of_files_start_at_0() {
    for text in ["vm.laptop_mode", "vm.dirty_writeback_centisecs"] {
        assert_eq!(texts(text)[0], "0", "{text}");
    }
    assert_eq!(texts("vm.laptop_mode=-5..5")[0], "-5", "explicit bounds may be negative");
}

#[test]
fn copies_of_a_group_are_one_knob() {
    let knob = Knob::parse("group.g.memory.max=8M..64M", &setup(), false).unwrap();
    assert_eq!(knob.now(&setup()).as_deref(), Some("max"));
    assert_eq!(texts("group.\"web\".memory.max=8M,9M"), ["8M", "9M"]);
    let mistake = Knob::parse("group.g.0.memory.max=8M..64M", &setup(), false).unwrap_err();
    assert!(mistake.message.contains("`g.0` is one of several copies"), "{mistake:?}");
    assert!(mistake.hint.contains("group.g.memory.max"), "{mistake:?}");
    let mistake = Knob::parse("group.h.memory.max=8M..64M", &setup(), false).unwrap_err();
    assert!(mistake.hint.contains("there is `g`, `web`") || mistake.hint.contains("`g`"));
}

#[test]
fn steps_are_at_most_a_tenth() {
    for text in ["vm.min_free_kbytes", "group.web.memory.max", "vm.laptop_mode", "vm.dirty_bytes"] {
        let knob = Knob::parse(text, &setup(), false).unwrap();
        let numbers: Vec<f64> = knob.values.iter().map(|value| value.number).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{text}");
        for pair in numbers.windows(2).filter(|pair| pair[0] >= 10.0 && pair[0] < 1e15) {
            let page = if text.contains("memory") { 4096.0 } else { 1.0 };
            assert!(pair[1] - pair[0] <= (pair[0] * 0.11).max(page), "{text}: {pair:?}");
        }
    }
}

#[test]
fn bad_knobs_are_named() {
    for (text, message, hint) in [
        ("vm.swapiness", "there is no sysctl", "did you mean `vm.swappiness`"),
        ("swappiness", "there is no knob", "vm.swappiness"),
        ("group.wep.memory.high=1G", "there is no group `wep`", "did you mean `web`"),
        ("group.web.memory.hihg=1G", "control file", "memory.high"),
        ("vm.swappiness=0..300", "300 is outside", "0 to 200"),
        ("vm.swappiness=300,1", "300 is outside", "0 to 200"),
        ("vm.swappiness=10..1MiB", "mixes an integer with a size", "the same unit"),
        ("vm.swappiness=1MiB..2MiB", "takes an integer", "0 to 200"),
        ("vm.swappiness=60..60", "has no values", "smaller end"),
        ("vm.swappiness=1..5/1", "no number of values", "N from 2"),
        ("vm.swappiness=1,,2", "an empty value", "0,60,100"),
        ("vm.swappiness=1,1", "twice", "once"),
        ("machine.memory", "no bounds of its own", "give a range"),
        ("machine.memory=1GB..2GB", "GB", "1GiB"),
        ("vm.lowmem_reserve_ratio", "no single number", "give a range"),
        ("=1..2", "no name", ""),
    ] {
        let mistake = Knob::parse(text, &setup(), false).unwrap_err();
        assert!(mistake.message.contains(message), "{text}: {mistake:?}");
        assert!(mistake.hint.contains(hint), "{text}: {mistake:?}");
    }
    assert!(Knob::parse("vm.swappiness=1..9", &setup(), true).unwrap_err().hint.contains("/5"));
    assert!(Knob::parse("vm.swappiness", &setup(), true).is_err());
}

#[test]
fn the_present_value() {
    let now = |text: &str| Knob::parse(text, &setup(), false).unwrap().now(&setup());
    assert_eq!(now("vm.swappiness").as_deref(), Some("60"));
    assert_eq!(now("machine.memory=1G,2G").as_deref(), Some("2G"));
    assert_eq!(now("group.web.memory.high").as_deref(), Some("max"));
    assert_eq!(now("task.t.nice=1,2"), None);
}

#[test]
fn places_are_spread_and_have_the_ends() {
    assert_eq!(spread(3, 7), [0, 1, 2, 3]);
    assert_eq!(spread(200, 7), [0, 33, 67, 100, 133, 167, 200]);
    assert_eq!(spread(6, 7), [0, 1, 2, 3, 4, 5, 6]);
}
