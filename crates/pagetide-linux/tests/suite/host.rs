//! Imports the saved systems below tests/data: the scenarios load. Damaged copies of their files
//! give a scenario that loads, or an error.

use pagetide_core::units::page_size::PageSize;
use pagetide_linux::host::error::HostError;
use pagetide_linux::host::scenario::{write, HostImportOptions, ImportedScenario};
use pagetide_linux::host::snapshot::HostSnapshot;
use pagetide_linux::host::{buddyinfo, meminfo, pagetypeinfo, slabinfo, swaps, vmstat, zoneinfo};
use pagetide_scenario::model::Setup;
use pagetide_scenario::names::NameSet;
use std::fs;
use std::path::{Path, PathBuf};

fn systems() -> Vec<(String, PathBuf)> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut systems: Vec<(String, PathBuf)> = fs::read_dir(data)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("proc/zoneinfo").is_file())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), path))
        .collect();
    systems.sort();
    assert!(systems.len() >= 3);
    systems
}

fn all_options() -> impl Iterator<Item = HostImportOptions<'static>> {
    let of =
        |as_is, all_groups| HostImportOptions { as_is, all_groups, ..HostImportOptions::default() };
    [false, true].into_iter().flat_map(move |as_is| [false, true].map(|all| of(as_is, all)))
}

fn setup(written: &ImportedScenario) -> Setup {
    pagetide_testing::setup(&written.text)
}

#[test]
fn every_saved_system_becomes_a_scenario() {
    for (name, path) in systems() {
        let host = HostSnapshot::read(&path).unwrap();
        assert!(host.notes.iter().all(|note| note.line.is_none()), "{name}: {:?}", host.notes);
        assert_eq!(HostSnapshot::read(&path).unwrap(), host, "{name}");
        for options in all_options() {
            let written = write(&host, options).unwrap();
            assert_eq!(write(&host, options).unwrap(), written, "{name}");
            let setup = setup(&written);
            let zones: Vec<_> = setup.machine.nodes.iter().flat_map(|node| &node.zones).collect();
            assert!(zones.iter().map(|zone| zone.free).sum::<u64>() > 0, "{name}");
            assert_eq!(usize::from(setup.machine.cpus), host.zones.nr_cpus(), "{name}");
            assert!(!setup.sysctls.is_empty(), "{name}");
            let idle = setup.tasks.iter().filter(|task| task.background);
            let resident = idle.flat_map(|task| &task.resident);
            let cached = resident.map(|part| part.file()).sum::<u64>();
            let sum = |counter| {
                host.zones.zones.iter().filter_map(move |it| it.counters.get(counter)).sum::<u64>()
            };
            let counted = sum("nr_zone_active_file") + sum("nr_zone_inactive_file");
            let old = sum("nr_active_file") + sum("nr_inactive_file");
            let wanted = if options.as_is { counted.max(old) } else { 0 };
            let is_real = name.starts_with("linux-");
            assert!(!is_real || wanted.abs_diff(cached) <= 4, "{name}: {cached} of {wanted}");
        }
    }
}

#[test]
fn what_is_free_now_is_at_most_what_is_without_programs() {
    for (name, path) in systems() {
        let host = HostSnapshot::read(&path).unwrap();
        let free = |as_is| {
            let options = HostImportOptions { as_is, ..HostImportOptions::default() };
            let nodes = setup(&write(&host, options).unwrap()).machine.nodes;
            nodes.into_iter().flat_map(|node| node.zones).collect::<Vec<_>>()
        };
        for (now, empty) in free(true).iter().zip(free(false)) {
            assert!(now.free <= empty.free && empty.free <= empty.managed, "{name}");
            assert_eq!((&now.name, now.managed), (&empty.name, empty.managed), "{name}");
        }
    }
}

fn import(name: &str) -> (Setup, ImportedScenario) {
    let path = systems().into_iter().find(|(system, _)| system == name).unwrap().1;
    let written = write(&HostSnapshot::read(&path).unwrap(), HostImportOptions::default()).unwrap();
    (setup(&written), written)
}

fn groups(setup: &Setup) -> Vec<(&str, Option<&str>)> {
    let name = |index: usize| setup.groups[index].name.as_str();
    setup.groups.iter().map(|group| (group.name.as_str(), group.parent.map(name))).collect()
}

#[test]
fn two_nodes_and_groups_of_version_2() {
    let (setup, written) = import("made-numa-v2");
    let nodes: Vec<Vec<&str>> = setup
        .machine
        .nodes
        .iter()
        .map(|node| node.zones.iter().map(|zone| zone.name.name()).collect())
        .collect();
    assert_eq!(nodes, [vec!["DMA", "DMA32", "Normal"], vec!["Normal"]]);
    let disks: Vec<_> = setup.machine.disks.iter().map(|disk| disk.name.as_str()).collect();
    assert_eq!(disks, ["nvme0n1", "nvme1n1", "sda"]);
    let swap: Vec<_> = setup.machine.swap.iter().map(|area| area.size >> 10).collect();
    assert_eq!(swap, [8_388_604, 4_194_300, 1_048_572]);
    let pod = "kubepods-burstable-pod1_slice";
    let wanted = [
        ("example-2", None),
        ("kubepods_slice", None),
        ("kubepods-burstable_slice", Some("kubepods_slice")),
        (pod, Some("kubepods-burstable_slice")),
        ("cri-containerd-0_scope", Some(pod)),
        ("system_slice", None),
        ("containerd_service", Some("system_slice")),
        ("user_slice", None),
    ];
    assert_eq!(groups(&setup), wanted);
    let controls: Vec<_> =
        setup.groups[4].controls.iter().map(|write| write.control.name()).collect();
    assert_eq!(controls, ["memory.high", "memory.max", "memory.swap.max"]);
    let names: Vec<_> = setup.sysctls.iter().map(|write| write.name()).collect();
    assert!(
        names.iter().any(|name| name == "vm.dirty_bytes")
            && !names.iter().any(|name| name == "vm.dirty_ratio"),
        "{names:?}"
    );
    for text in ["/dev/zram0", "the disk of /swap file is unknown", "64 huge pages"] {
        assert!(written.text.replace("\n# ", " ").contains(text), "{text}:\n{}", written.text);
    }
    assert!(
        !written.text.contains("will have"),
        "the watermarks follow the rule:\n{}",
        written.text
    );
}

#[test]
fn large_pages_and_groups_of_version_1() {
    let (setup, _) = import("made-64k-v1");
    let zones = &setup.machine.nodes[0].zones;
    let sizes: Vec<_> = zones.iter().map(|zone| (zone.name.name(), zone.present)).collect();
    assert_eq!(sizes, [("DMA32", 32_768), ("Normal", 114_688)]);
    assert_eq!(zones[0].free, 20_000 + 152 + 9020 + 500);
    assert_eq!(groups(&setup), [("batch", None), ("docker", None), ("0a1b2c", Some("docker"))]);
    let wanted = [("memory.limit_in_bytes", "512M"), ("memory.swappiness", "10")];
    let controls = setup.groups[2].controls.iter();
    let controls: Vec<_> =
        controls.map(|write| (write.control.name(), write.to_string())).collect();
    assert_eq!(controls, wanted.map(|(name, text)| (name, text.to_owned())));
    assert_eq!(setup.machine.page_size, PageSize::Kib64);
}

#[test]
fn a_32_bit_machine_with_cma() {
    let path = systems().into_iter().find(|(system, _)| system == "made-cma-highmem").unwrap().1;
    let options = HostImportOptions { as_is: true, ..HostImportOptions::default() };
    let written = write(&HostSnapshot::read(&path).unwrap(), options).unwrap();
    let setup = setup(&written);
    let zones = &setup.machine.nodes[0].zones;
    let sizes: Vec<_> =
        zones.iter().map(|zone| (zone.name.name(), zone.managed, zone.free)).collect();
    assert_eq!(sizes, [("Normal", 184_464, 34_140), ("HighMem", 65_536, 16_660)]);
    let lists = zones[0].free_lists.unwrap();
    assert_eq!(lists.pageblocks, [56, 256, 16, 32]);
    assert_eq!(lists.blocks[3], [100, 50, 40, 21, 11, 4, 0, 0, 0, 1, 9]);
    // The low memory is zone DMA, with the ratio of that zone.
    assert!(written.text.contains("\"vm.lowmem_reserve_ratio\" = \"256 256 256 0\""));
    assert!(
        !written.text.contains("will have"),
        "the watermarks follow the rule:\n{}",
        written.text
    );
}

/// Damaged versions of a text, and versions of unknown kernels.
fn damages(text: &str) -> Vec<String> {
    let each = |change: &dyn Fn(&str) -> String| {
        text.lines().map(|line| change(line) + "\n").collect::<String>()
    };
    let digits = |to: &str| text.replace(|c: char| c.is_ascii_digit(), to);
    let mut all = vec![
        text.replace('\n', "\r\n"),
        text.replace('\n', "\n\n"),
        text.replace('\n', "\r"),
        each(&|line| format!("{line} 77 extra")),
        each(&|line| line.trim().to_owned()),
        each(&|line| line.split_whitespace().take(1).collect()),
        each(&|line| line.replace(' ', "\t")),
        text.replace(' ', ""),
        text.repeat(2),
        digits("9"),
        digits("99999999"),
        digits("-1"),
        digits(""),
        digits("\u{661}"),
        text.replace(' ', "\u{feff} \u{1b}[2J"),
    ];
    for part in 2..7 {
        // Without every n-th line, and truncated in a line.
        let kept = text.lines().enumerate().filter(|(index, _)| index % part != part - 1);
        all.push(kept.map(|(_, line)| format!("{line}\n")).collect());
        let mut cut = text.len() * part / 7;
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        all.push(text[..cut].to_owned());
    }
    for digit in 0..10 {
        all.push(text.replace(char::from(b'0' + digit), "18446744073709551615"));
        all.push(text.replace(char::from(b'0' + digit), "0"));
    }
    all.push(text.lines().rev().collect::<Vec<_>>().join("\n"));
    all
}

#[test]
fn damaged_files_give_notes_or_a_reason() {
    for (name, path) in systems() {
        let host = HostSnapshot::read(&path).unwrap();
        let text = |file: &str| fs::read_to_string(path.join(file)).unwrap_or_default();
        let mut hosts = Vec::new();
        for text in damages(&text("proc/zoneinfo")) {
            hosts.push(HostSnapshot { zones: zoneinfo::parse(&text).0, ..host.clone() });
        }
        for text in damages(&text("proc/meminfo")) {
            hosts.push(HostSnapshot { memory: meminfo::parse(&text).0, ..host.clone() });
        }
        for text in damages(&text("proc/vmstat")) {
            hosts.push(HostSnapshot { counters: vmstat::parse(&text).0, ..host.clone() });
        }
        for text in damages(&text("proc/buddyinfo")) {
            hosts.push(HostSnapshot { free_blocks: buddyinfo::parse(&text).0, ..host.clone() });
        }
        for text in damages(&text("proc/pagetypeinfo")) {
            hosts.push(HostSnapshot { types: pagetypeinfo::parse(&text), ..host.clone() });
        }
        for text in damages(&text("proc/slabinfo")) {
            hosts.push(HostSnapshot { slabs: slabinfo::parse(&text).0, ..host.clone() });
        }
        for text in damages(&text("proc/swaps")) {
            hosts.push(HostSnapshot { swaps: swaps::parse(&text).0, ..host.clone() });
        }
        for host in hosts {
            for options in all_options() {
                match write(&host, options) {
                    Ok(_) | Err(HostError::NoMemory(_) | HostError::TooLarge { .. }) => {}
                    Err(error) => panic!("{name}: {error}"),
                }
            }
        }
    }
}

#[test]
fn files_that_are_not_text_are_noted() {
    let root = tempfile::tempdir().unwrap();
    let write_file = |place: &str, bytes: &[u8]| {
        let path = root.path().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    write_file(
        "proc/zoneinfo",
        b"Node 0, zone Normal\n  pages free 90\n  present 100\n  high 1\n  \xff\xfe 3\n",
    );
    write_file("proc/meminfo", &[0; 4096]);
    write_file("proc/vmstat", b"");
    write_file("proc/sys/vm/swappiness", b"\xff60\n");
    write_file("proc/sys/kernel/osrelease", b"\0\n");
    write_file("proc/version", b"Linux version 3.4.5 (a@b)\n");
    write_file("sys/kernel/mm/lru_gen/enabled", b"0x0007\n");
    write_file("proc/sys/vm/zone_reclaim_mode", b"0\n");
    write_file("sys/block/sda/queue/rotational", b"\0");
    write_file("sys/fs/cgroup/a\nb/memory.max", b"12\xff\n");
    fs::create_dir_all(root.path().join("proc/swaps")).unwrap();
    let written =
        write(&HostSnapshot::read(root.path()).unwrap(), HostImportOptions::default()).unwrap();
    let notes: Vec<String> = written.notes.iter().map(ToString::to_string).collect();
    for text in [
        "/proc/zoneinfo:5: not UTF-8 text",
        "/proc/swaps: cannot read it: not a file",
        "/proc/sys/vm/swappiness: left out",
        "/sys/block/sda/queue/rotational: not a count",
        "/a\\u{a}b:memory.max: left out",
        "lru_gen/enabled: the multi-generational LRU is on",
    ] {
        assert!(notes.iter().any(|note| note.contains(text)), "{text:?} is not in {notes:#?}");
    }
    assert!(written.text.contains("; Linux 3.4.5.") && !written.text.contains("zone_reclaim"));
    assert_eq!(setup(&written).machine.nodes[0].zones[0].present, 100);
}

#[cfg(unix)]
#[test]
fn links_in_the_tree_of_groups_are_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let top = root.path().join("sys/fs/cgroup");
    fs::create_dir_all(top.join("a/b")).unwrap();
    std::os::unix::fs::symlink("..", top.join("a/b/up")).unwrap();
    std::os::unix::fs::symlink("/", top.join("a/out")).unwrap();
    let mut deep = top.join("deep");
    for _ in 0..100 {
        deep.push("d");
    }
    fs::create_dir_all(deep).unwrap();
    let host = HostSnapshot::read(root.path()).unwrap();
    // The root, `a`, `a/b`, and `deep` with 63 levels below it.
    assert_eq!(host.groups.len(), 3 + 64);
    assert!(host.notes.iter().any(|note| note.message.contains("below level 64")));
}
