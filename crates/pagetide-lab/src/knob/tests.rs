use super::*;
use crate::testing::scenario;
use pagetide_scenario::model::Group;

fn setup() -> Setup {
    let mut setup = scenario(&["a"]).variants.remove(0).setup;
    let group = |name: &str| Group {
        name: name.to_owned(),
        parent: None,
        controls: Vec::new(),
        at_start: true,
    };
    setup.groups = vec![group("web")];
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
fn a_range_has_the_numbers_that_people_write() {
    let all = texts("vm.watermark_scale_factor=10..3000");
    assert_eq!(all.len(), 201);
    for (at, text) in [(0, "10"), (89, "99"), (90, "100"), (91, "110"), (200, "3000")] {
        assert_eq!(all[at], text);
    }
    let sizes = texts("group.web.memory.high=64M..256M");
    assert_eq!((sizes.len(), sizes[1].as_str(), sizes[16].as_str()), (33, "68M", "128M"));
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
fn what_it_is_now() {
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
