//! Every declaration has a topic, and common spellings find it.

use super::*;
use pagetide_core::config::{Policy, Sysctl};
use pagetide_core::control::GroupControl;
use pagetide_scenario::names::NameSet;
use pagetide_scenario::workload::WorkloadKind;
use std::path::Path;

fn topics() -> Vec<Topic> {
    all(&PluginNames::default())
}

fn names(pattern: &str) -> Vec<(String, TopicKind)> {
    find(&topics(), pattern).iter().map(|topic| (topic.name.clone(), topic.kind)).collect()
}

fn one(pattern: &str) -> Topic {
    let all = topics();
    let found = find(&all, pattern);
    assert_eq!(found.len(), 1, "{pattern}: {:?}", names(pattern));
    found[0].clone()
}

#[test]
fn the_file_of_generations_is_explained() {
    let file = one("lru_gen");
    assert_eq!(
        (file.kind, file.linux.as_str()),
        (TopicKind::DebugFile, "/sys/kernel/debug/lru_gen")
    );
    assert_eq!(file.choices[1].name, "lru_gen.min_ttl_ms");
    assert_eq!(file.functions[0].name, "lru_gen_seq_show");
}

#[test]
fn every_declaration_is_explained() {
    let all = topics();
    let has = |name: &str, kind| all.iter().any(|it| it.name == name && it.kind == kind);
    for entry in catalogue::all() {
        assert!(has(&entry.name, TopicKind::Metric), "{}", entry.name);
    }
    for sysctl in Sysctl::ALL {
        assert!(has(sysctl.name(), TopicKind::Sysctl), "{}", sysctl.name());
    }
    for control in GroupControl::ALL {
        assert!(has(control.name(), TopicKind::GroupFile), "{}", control.name());
    }
    for policy in Policy::ALL.iter().filter(|policy| !policy.is_implied()) {
        assert!(has(&format!("policy.{}", policy.name()), TopicKind::Policy));
    }
    for kind in WorkloadKind::ALL {
        assert!(has(kind.name(), TopicKind::Workload), "{}", kind.name());
    }
    let of_touch = |it: &&Topic| it.of == ["touch"] && it.name == "task.passes";
    assert_eq!(all.iter().filter(of_touch).count(), 1);
    for key in [
        "policy.groups",
        "machine.cpus",
        "machine.swap.full_after",
        "machine.disk.model",
        "repeats",
    ] {
        assert!(has(key, TopicKind::Key), "{key}");
    }
    assert!(has("balance_pgdat", TopicKind::LinuxFunction));
    assert!(!has("group.memory.max", TopicKind::Key) && !has("policy.kswapd", TopicKind::Key));
    for topic in &all {
        assert!(!topic.about.is_empty(), "{}", topic.name);
        let is_knob =
            matches!(topic.kind, TopicKind::Sysctl | TopicKind::GroupFile | TopicKind::Policy);
        assert!(!is_knob || !(topic.takes.is_empty() || topic.set.is_empty()), "{}", topic.name);
    }
}

#[test]
fn documents_are_there_and_have_the_places() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for topic in topics() {
        let (file, place) = topic.document.split_once('#').unwrap_or((&topic.document, ""));
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        let headings = text.lines().filter(|line| line.starts_with('#'));
        let mut headings = headings.map(|line| line.to_lowercase().replace(' ', "-"));
        assert!(place.is_empty() || headings.any(|line| line.contains(place)), "{place}");
    }
}

#[test]
fn names_are_found_as_people_write_them() {
    assert_eq!(one("vm.swappiness"), one("sysctl.vm.swappiness"));
    // The control file, and the metric of the same name.
    let both =
        [TopicKind::Metric, TopicKind::GroupFile].map(|kind| ("memory.high".to_owned(), kind));
    assert_eq!(names("group.web.memory.high"), both);
    assert_eq!(one("stream.alloc_latency_p99").name, "alloc_latency_p99");
    assert_eq!(one("slab.dentry.min_partial").name, "slab.CACHE.min_partial");
    assert_eq!(one("kswapd_wake").kind, TopicKind::Metric);
    let swappiness = names("swappiness");
    assert!(swappiness.contains(&("vm.swappiness".into(), TopicKind::Sysctl)), "{swappiness:?}");
    assert!(names("task.reader.passes").iter().all(|(name, _)| name == "task.passes"));
    assert!(names("psi.*").len() == 2 && names("pgscam").is_empty());
    assert!(unknown_name_hint(&topics(), "pgscan_dirct").contains("pgscan_direct"));
    assert!(unknown_name_hint(&topics(), "xyzzy").contains("explain '*'"));
    assert!(unknown_name_hint(&topics(), "mm_shrink_slab_start").contains("docs/outputs.md"));
    let of_zone = one("buddyinfo.node0.DMA32.nr_free_blocks_9");
    assert_eq!(of_zone.name, "buddyinfo.nodeN.ZONE.nr_free_blocks_9");
    assert_eq!(one("done.pgfree").name, "pgfree");
    for all in ["done", "done.", "done.*"] {
        let found = names(all);
        assert!(found.contains(&("nr_free_pages".into(), TopicKind::Metric)), "{all}");
        assert!(!found.iter().any(|(name, _)| name == "walltime"), "{all}");
    }
    assert!(!names("MADV_COLLAPSE").is_empty() && names("MADV_COLLAPS").is_empty());
}

#[test]
fn a_knob_is_explained_in_full() {
    let topic = one("vm.min_free_kbytes");
    let text = text(&[&topic], "vm.min_free_kbytes", 80);
    for part in [
        "vm.min_free_kbytes (sysctl)\n",
        "takes    kB: 0 or more\n",
        "Linux    /proc/sys/vm/min_free_kbytes\n",
        "function calculate_min_free_kbytes, in\n",
        "set      --set sysctl.vm.min_free_kbytes=VALUE\n",
        "read     docs/scenario.md#sysctl\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let value = serde_json::to_value(&topic).unwrap();
    assert_eq!(value["kind"], "sysctl");
    assert!(value.get("unit").is_none());
    assert_eq!(one("machine.cpus").takes, "1 to 1024");
    assert_eq!(one("machine.cpus").default, "1");
    assert!(one("machine.swap.size").takes.contains("2GiB"));
    assert_eq!(one("walltime").better, "less");
}

#[test]
fn what_is_not_modelled_is_said() {
    for (name, topic) in [
        ("tmpfs", "tmpfs"),
        ("memory.swap.high", "memory.swap.high"),
        ("group.web.memory.swap.high", "memory.swap.high"),
    ] {
        let found = one(name);
        assert_eq!((found.name.as_str(), found.kind), (topic, TopicKind::NotModelled), "{name}");
        assert!(text(&[&found], name, 100).contains("    nearest  "), "{name}");
    }
    // No metric or knob is hidden behind such a name.
    let all = topics();
    for topic in all.iter().filter(|it| it.kind != TopicKind::NotModelled) {
        assert_eq!(unmodelled::find(&all, &topic.name), None, "{}", topic.name);
    }
    assert!(names("memory.nothing.high").is_empty());
}
