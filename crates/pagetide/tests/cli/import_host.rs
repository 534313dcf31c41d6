//! `pagetide import host` as a user meets it, over saved systems.

use crate::common::{Place, Ran};
use std::fs;
use std::path::PathBuf;

/// A saved system of crates/pagetide-linux.
fn saved(name: &str) -> PathBuf {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    crates.join("pagetide-linux/tests/data").join(name)
}

fn import(place: &Place, name: &str, more: &[&str]) -> Ran {
    let root = saved(name);
    place.run([&["import", "host", "--root", root.to_str().unwrap()], more].concat())
}

/// Name, managed, min, low, high and protection of each zone with memory.
fn zones(zoneinfo: &str) -> Vec<(String, Vec<String>)> {
    let mut zones: Vec<(String, Vec<String>)> = Vec::new();
    let mut is_zone = false;
    for line in zoneinfo.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Node", node, "zone", name] => zones.push((format!("{node}{name}"), Vec::new())),
            ["pages", "free", _] => is_zone = true,
            ["pagesets"] => is_zone = false,
            ["present", "0"] if is_zone => {
                zones.pop();
                is_zone = false;
            }
            [key @ ("min" | "low" | "high" | "managed" | "present"), value] if is_zone => {
                zones.last_mut().unwrap().1.push(format!("{key} {value}"));
            }
            // A kernel with more zones says more often what the last says.
            ["protection:", list @ ..] if is_zone => {
                let list = list.concat();
                let list: Vec<&str> = list.trim_matches(['(', ')']).split(',').take(4).collect();
                zones.last_mut().unwrap().1.push(list.join(","));
            }
            _ => {}
        }
    }
    zones.sort();
    zones
}

#[test]
fn a_saved_system_becomes_a_scenario_that_runs() {
    for name in ["linux-6.18", "made-numa-v2", "made-64k-v1"] {
        let place = Place::new();
        let ran = import(&place, name, &["-o", "host.toml"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
        ran.says(&["note: host.toml: "]);
        place.run(["check", "host.toml"]).quietly();
        // The machine of nodes and groups takes seconds to build in a debug build.
        if name == "linux-6.18" {
            let ran = place.run(["run", "host.toml", "--repeats", "1"]);
            assert_eq!(ran.code, Some(0), "{ran:?}");
            assert!(ran.stdout.contains("example.walltime"), "{}", ran.stdout);
        }
        let text = fs::read_to_string(place.directory.join("host.toml")).unwrap();
        assert_eq!(import(&place, name, &[]).stdout, text, "{name}");
    }
}

#[test]
fn the_simulated_machine_has_the_marks_of_the_real_one() {
    let place = Place::new();
    import(&place, "linux-6.18", &["-o", "host.toml"]);
    let simulated = place.run(["inspect", "host.toml", "--only", "zoneinfo"]).stdout;
    let real = fs::read_to_string(saved("linux-6.18").join("proc/zoneinfo")).unwrap();
    assert_eq!(zones(&simulated), zones(&real));
    assert_eq!(zones(&real).len(), 3);
}

#[test]
fn options_choose_what_is_free_and_which_groups_stay() {
    let place = Place::new();
    let plain = import(&place, "made-numa-v2", &[]).stdout;
    let as_is = import(&place, "made-numa-v2", &["--as-is"]).stdout;
    assert!(
        as_is.contains("free = \"2000000 pages\"") && !plain.contains("free = \"2000000 pages\"")
    );
    let all = import(&place, "made-numa-v2", &["--all-groups"]).stdout;
    assert!(!plain.contains("sshd_service") && all.contains("name = \"sshd_service\""));
    import(&place, "made-numa-v2", &[]).says(&["note: /proc/swaps: /dev/zram0"]);
}

#[test]
fn an_import_overwrites_nothing_and_needs_a_system() {
    let place = Place::with("host.toml", "mine");
    import(&place, "linux-6.18", &["-o", "host.toml"])
        .fails(2, &["host.toml exists", "hint: remove it first"]);
    assert_eq!(fs::read_to_string(place.directory.join("host.toml")).unwrap(), "mine");
    import(&place, "linux-6.18", &["-o", "absent/host.toml"]).fails(2, &["absent/host.toml"]);
    let host = |root: &str| place.run(["import", "host", "--root", root]);
    host("absent").fails(2, &["cannot read absent", "hint: DIR must be laid out like `/`"]);
    host("host.toml").fails(2, &["cannot read host.toml", "hint:"]);
    host(".").fails(2, &["./proc/zoneinfo", "says what memory", "hint:"]);
}

#[cfg(target_os = "linux")]
#[test]
fn the_live_system_can_be_imported() {
    // Not every sandbox shows its memory; what it does show must do.
    let place = Place::new();
    let ran = place.run(["import", "host", "-o", "live.toml"]);
    if ran.code == Some(0) {
        place.run(["check", "live.toml"]).quietly();
    } else {
        ran.fails(2, &["hint:"]);
    }
}
