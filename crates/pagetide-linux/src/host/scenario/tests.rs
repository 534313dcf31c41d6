use super::*;
use crate::host::{block::BlockDevice, buddyinfo, cgroup, meminfo, pagetypeinfo, swaps, zoneinfo};
use pagetide_core::config::{PolicySet, Sysctl};
use pagetide_core::control::{ControlWrite, GroupControlWrite};
use pagetide_core::units::page_size::PageSize;
use pagetide_scenario::model::{Scenario, Setup};
use pagetide_scenario::names::NameSet;

const ZONES: &str = "\
Node 0, zone DMA
  per-node stats
      nr_slab_reclaimable 60
  pages free 3000
  min 1
  low 2
  high 3
  present 3998
  managed 3840
  nr_zone_active_anon 200
  nr_zone_inactive_file 300
  cpu: 0
  count: 5
  cpu: 1
  count: 5
";

fn host() -> HostSnapshot {
    HostSnapshot { zones: zoneinfo::parse(ZONES).0, ..HostSnapshot::default() }
}

fn loaded(written: &ImportedScenario) -> Scenario {
    load::load_str("x.toml", &written.text, Path::new(""), &Overrides::default()).unwrap()
}

fn setup(host: &HostSnapshot, options: HostImportOptions<'_>) -> (Setup, ImportedScenario) {
    let written = write(host, options).unwrap();
    let mut scenario = loaded(&written);
    (scenario.variants.remove(0).setup, written)
}

fn sysctl(name: &str, text: &str) -> (Sysctl, String) {
    (Sysctl::find(name).unwrap(), text.into())
}

fn write_of(name: &str, text: &str) -> ControlWrite {
    ControlWrite::read(name, text, PageSize::Kib4).unwrap()
}

fn told(written: &ImportedScenario, text: &str) {
    let notes: Vec<String> = written.notes.iter().map(ToString::to_string).collect();
    assert!(notes.iter().any(|note| note.contains(text)), "{text:?} is not in {notes:#?}");
}

mod cma_and_highmem;
mod idle_groups;

#[test]
fn free_is_what_programs_leave_or_what_is_now() {
    let (setup_now, written) =
        setup(&host(), HostImportOptions { as_is: true, ..HostImportOptions::default() });
    assert_eq!(setup_now.machine.nodes[0].zones[0].free, 3000);
    assert_eq!((setup_now.machine.cpus, written.summary.as_str()), (2, "2 CPUs, 15.0 MiB"));
    let types = "\
Node    0, zone      DMA, type    Unmovable     1     0     0     0     0     0     0     0     0     0     0
Node    0, zone      DMA, type      Movable     0     1     0     0     0     0     0     0     0     1     2
Node    0, zone      DMA, type  Reclaimable     0     0     0     0     0     0     0     0     0     0     0
Number of blocks type     Unmovable      Movable  Reclaimable   HighAtomic      Isolate
Node 0, zone      DMA            1            7            0            0            0
";
    let known = HostSnapshot { types: pagetypeinfo::parse(types), ..host() };
    let (now, _) =
        self::setup(&known, HostImportOptions { as_is: true, ..HostImportOptions::default() });
    let zone = &now.machine.nodes[0].zones[0];
    let lists = zone.free_lists.unwrap();
    assert_eq!((zone.free, lists.pageblocks), (3000, [1, 7, 0, 0]));
    // 437 pages in addition to the lists: 256 + 128 + 32 + 16 + 4 + 1.
    assert_eq!(lists.blocks[1], [1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 2]);
    let (setup, _) = setup(&known, HostImportOptions::default());
    let zone = &setup.machine.nodes[0].zones[0];
    assert_eq!((zone.present, zone.managed, zone.late), (3998, 3840, 0));
    assert_eq!(zone.free, 3000 + 10 + 200 + 300 + 60);
}

#[test]
fn nothing_known_is_an_error_and_meminfo_is_enough() {
    let nothing = HostSnapshot::default();
    let error = write(&nothing, HostImportOptions::default()).unwrap_err();
    assert!(matches!(error, HostError::NoMemory(_)) && !error.hint().is_empty());
    let memory = meminfo::parse("MemTotal: 1048576 kB\n").0;
    let (setup, written) =
        setup(&HostSnapshot { memory, ..HostSnapshot::default() }, HostImportOptions::default());
    let zones = &setup.machine.nodes[0].zones;
    let pages: Vec<u64> = zones.iter().map(|zone| zone.present).collect();
    assert_eq!(pages, [4096, 262_144 - 4096]);
    told(&written, "no zones are known");
    told(&written, "the number of CPUs is unknown");
    let memory = meminfo::parse(&format!("MemTotal: {} kB\n", u64::MAX)).0;
    assert!(write(
        &HostSnapshot { memory, ..HostSnapshot::default() },
        HostImportOptions::default()
    )
    .is_ok());
}

#[test]
fn disks_and_swap() {
    let disk = |name: &str, rotational: &str| {
        BlockDevice::parse(name, [Some(rotational), Some("512"), None, None]).0
    };
    let mut host = host();
    host.disks = vec![disk("loop0", "0"), disk("nvme0n1", "0"), disk("sda", "1"), disk("vdb", "1")];
    host.swaps = swaps::parse(
        "/dev/zram0 partition 1000 0 100\n/dev/sda2 partition 4000 0 -2\n/a\\040b file 96 0 -3\n",
    )
    .0;
    let (setup, written) = setup(&host, HostImportOptions::default());
    let disks: Vec<_> =
        setup.machine.disks.iter().map(|disk| (disk.name.as_str(), disk.model.name())).collect();
    assert_eq!(disks, [("nvme0n1", "nvme"), ("sda", "rotating"), ("vdb", "rotating")]);
    let areas: Vec<_> =
        setup.machine.swap.iter().map(|it| (it.disk, it.size, it.priority)).collect();
    let wanted = [(0, 1000 << 10, Some(100)), (1, 4000 << 10, Some(-2)), (0, 96 << 10, Some(-3))];
    assert_eq!(areas, wanted);
    let is_zram: Vec<bool> = setup.machine.swap.iter().map(|it| it.zram.is_some()).collect();
    assert_eq!(is_zram, [true, false, false]);
    told(&written, "/dev/zram0");
    told(&written, "the disk of /a b is unknown; the first disk is used");
    told(&written, "/sys/block/vdb: a virtual disk");
    assert!(setup.sysctls.contains(&write_of("block.read_ahead_kb", "512")));
}

#[test]
fn knobs_that_exclude_each_other() {
    let mut host = host();
    host.sysctls = vec![
        sysctl("vm.min_free_kbytes", "1000"),
        sysctl("vm.lowmem_reserve_ratio", "256 32 1 0 0"),
        sysctl("vm.dirty_ratio", "0"),
        sysctl("vm.dirty_bytes", "100000"),
        sysctl("transparent_hugepage.enabled", "madvise"),
        sysctl("transparent_hugepage.khugepaged.max_ptes_none", "511"),
    ];
    let (setup, written) = setup(&host, HostImportOptions::default());
    let names: Vec<_> = setup.sysctls.iter().map(|write| write.name()).collect();
    assert_eq!(
        names,
        [
            "vm.min_free_kbytes",
            "vm.lowmem_reserve_ratio",
            "vm.dirty_bytes",
            "transparent_hugepage.enabled",
            "transparent_hugepage.khugepaged.max_ptes_none",
            "vm.watermark_scale_factor",
        ]
    );
    assert_eq!(setup.sysctls[1].to_string(), "256 32 1 0");
    told(&written, "has the watermarks 1, 2 and 3 pages and will have 250, 312 and 374");
}

#[test]
fn zones_that_the_kernel_was_built_without_have_default_ratios() {
    let text = "Node 0, zone DMA32\n pages free 5\n present 9\nNode 0, zone Normal\n\
                Node 0, zone Movable\nNode 0, zone Device\n";
    let mut host = HostSnapshot { zones: zoneinfo::parse(text).0, ..HostSnapshot::default() };
    host.sysctls = vec![sysctl("vm.lowmem_reserve_ratio", "100 30 7 0")];
    let (setup, _) = setup(&host, HostImportOptions::default());
    let ratios = setup.sysctls.iter().find(|write| write.name() == "vm.lowmem_reserve_ratio");
    assert_eq!(ratios.unwrap().to_string(), "256 100 30 7");
}

#[test]
fn watermarks_without_knobs_become_knobs() {
    let text = "Node 0, zone Normal\n pages free 9000\n boost 1024\n min 9024\n low 11024\n \
                high 13024\n present 1000000\n";
    let host = HostSnapshot { zones: zoneinfo::parse(text).0, ..HostSnapshot::default() };
    let (setup, written) = setup(&host, HostImportOptions::default());
    assert!(setup.sysctls.contains(&write_of("vm.min_free_kbytes", "32000")));
    told(&written, "zone Normal of node 0 has watermarks boosted by 1024 pages");
    assert!(written.text.contains("# watermarks now: min 8000, low 10000, high 12000 pages"));
    assert!(!written.text.contains("will have"), "{}", written.text);
}

#[test]
fn the_release_decides_policies_and_what_is_off() {
    for (release, boost, proactive) in
        [("6.1.0-41-amd64", "15000", "20"), ("5.8.18", "15000", "0"), ("3.16.0-4", "0", "0")]
    {
        let host = HostSnapshot { release: Some(release.to_owned()), ..host() };
        let (setup, written) = setup(&host, HostImportOptions::default());
        let set = PolicySet::of_release(release);
        assert!(written.text.contains(&format!("\nkernel = \"{set}\"\n")), "{}", written.text);
        let has = |name: &str, text: &str| setup.sysctls.contains(&write_of(name, text));
        assert!(has("vm.watermark_boost_factor", boost), "{release}");
        assert!(has("vm.compaction_proactiveness", proactive), "{release}");
    }
    let (_, written) = setup(&host(), HostImportOptions::default());
    told(&written, "the release of the kernel is unknown");
}

#[test]
fn other_reclaim_is_noted() {
    let on = HostSnapshot {
        multi_gen_lru: Some("0x0007\n".into()),
        zone_reclaim: Some("1\n".into()),
        ..host()
    };
    let (_, written) = setup(&on, HostImportOptions::default());
    assert!(written.text.contains("lru = \"mglru\""), "{}", written.text);
    told(&written, "/proc/sys/vm/zone_reclaim_mode: a node is reclaimed before another");
}

fn group(path: &str, parent: Option<usize>, files: &[(&str, &str)]) -> cgroup::HostGroup {
    let (group, notes) = cgroup::parse(cgroup::CgroupVersion::V2, path, files.iter().copied());
    assert_eq!(notes, []);
    cgroup::HostGroup { parent, ..group }
}

#[test]
fn groups_that_set_nothing_are_left_out() {
    let mut host = host();
    host.groups = vec![
        group("/", None, &[]),
        group("/a.slice", Some(0), &[("memory.max", "max")]),
        group("/a.slice/example", Some(1), &[("memory.max", "4096"), ("memory.low", "max")]),
        group("/b", Some(0), &[("memory.max", "max"), ("memory.current", "5000")]),
    ];
    let (few, written) = setup(&host, HostImportOptions::default());
    let names: Vec<_> = few.groups.iter().map(|one| (one.name.as_str(), one.parent)).collect();
    assert_eq!(names, [("a_slice", None), ("example-2", Some(0))]);
    let wanted = [("memory.low", "max"), ("memory.max", "4096")]
        .map(|(name, text)| GroupControlWrite::read(name, text).unwrap());
    assert_eq!(few.groups[1].controls, wanted);
    assert!(written.text.contains("# 4 groups of memory; 2 left out that set nothing"));
    assert_eq!(written.summary, "2 CPUs, 15.0 MiB, 2 groups");
    let (all, _) =
        setup(&host, HostImportOptions { all_groups: true, ..HostImportOptions::default() });
    assert_eq!(all.groups.len(), 3);
    // In a container the top group can have a limit.
    host.groups[0] = group("/", None, &[("memory.max", "8192")]);
    let (all, _) = setup(&host, HostImportOptions::default());
    let names: Vec<_> = all.groups.iter().map(|one| (one.name.as_str(), one.parent)).collect();
    assert_eq!(names, [("top", None), ("a_slice", Some(0)), ("example-2", Some(1))]);
}

#[test]
fn swappiness_counts_where_it_is_not_the_parent_s() {
    let mut host = host();
    host.sysctls = vec![sysctl("vm.swappiness", "60")];
    let group = |path: &str, parent, text: &str| {
        let (group, _) =
            cgroup::parse(cgroup::CgroupVersion::V1, path, [("memory.swappiness", text)]);
        cgroup::HostGroup { parent, ..group }
    };
    host.groups = vec![
        group("/", None, "60"),
        group("/a", Some(0), "10"),
        group("/a/b", Some(1), "10"),
        group("/a/c", Some(1), "60"),
    ];
    let (setup, _) = setup(&host, HostImportOptions::default());
    let names: Vec<&str> = setup.groups.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a", "c"]);
}

#[test]
fn more_groups_than_fit_are_counted() {
    let mut host = host();
    host.groups.push(group("/", None, &[]));
    let name = "\u{7}".repeat(200);
    for number in 0..9000 {
        host.groups.push(group(&format!("/{number}{name}"), Some(0), &[("memory.max", "4096")]));
    }
    let (setup, written) = setup(&host, HostImportOptions::default());
    assert!(setup.groups.len() > 200, "{}", setup.groups.len());
    told(&written, "groups left out: the scenario would be larger than 256 KiB");
}

#[test]
fn what_the_files_say_cannot_break_the_text() {
    let mut host = host();
    let evil = "\"\"\"\n[x]\n\u{1b}[31m\\\u{202e}";
    host.release = Some(evil.to_owned());
    host.groups = vec![group("/", None, &[]), group(evil, Some(0), &[("memory.max", "1")])];
    host.disks = vec![BlockDevice { name: evil.to_owned(), ..BlockDevice::default() }];
    host.swaps = vec![swaps::HostSwap {
        name: evil.to_owned(),
        kind: evil.to_owned(),
        size_kb: u64::MAX,
        ..Default::default()
    }];
    let (_, written) = setup(&host, HostImportOptions::default());
    assert!(!written.text.contains('\u{1b}') && !written.text.contains('\u{202e}'));
}

#[test]
fn memory_is_called_unfragmented_while_some_zone_has_no_free_lists() {
    let one = "\
Node 0, zone DMA, type Unmovable 0 0 0 0 0 0 0 0 0 1 2
Node 0, zone DMA, type Movable 0 0 0 0 0 0 0 0 0 0 0
Node 0, zone DMA, type Reclaimable 0 0 0 0 0 0 0 0 0 0 0
Number of blocks type Unmovable Movable Reclaimable HighAtomic Isolate
Node 0, zone DMA 7 1 0 0 0
";
    let other = one.replace("DMA", "DMA32");
    let zones = format!("{ZONES}{}", ZONES.replace("zone DMA", "zone DMA32"));
    let is_told = |zones: &str, types: &str| {
        let host = HostSnapshot {
            zones: zoneinfo::parse(zones).0,
            free_blocks: buddyinfo::parse("Node 0, zone DMA 0 0 0 0 0 0 0 0 0 0 2\n").0,
            types: pagetypeinfo::parse(types),
            ..HostSnapshot::default()
        };
        let (_, written) =
            setup(&host, HostImportOptions { as_is: true, ..HostImportOptions::default() });
        written.text.contains("A run starts with unfragmented memory")
    };
    let few = one.replace("1 2\n", "1 1\n");
    assert!(is_told(ZONES, ""));
    assert!(!is_told(ZONES, one));
    assert!(is_told(ZONES, &few), "half of what is free is in no list");
    assert!(is_told(&zones, one));
    assert!(!is_told(&zones, &format!("{one}{other}")));
}

#[test]
fn free_lists_are_made_to_fit_or_noted() {
    let as_is = HostImportOptions { as_is: true, ..HostImportOptions::default() };
    // A zone above it, so that DMA ends at a pageblock boundary.
    let types = "\
Node 0, zone DMA32, type Unmovable 0 0 0 0 0 0 0 0 0 0 0
Node 0, zone DMA32, type Movable 0 0 0 0 0 0 0 0 0 0 4
Node 0, zone DMA32, type Reclaimable 0 0 0 0 0 0 0 0 0 0 0
Node 0, zone DMA, type Unmovable 0 0 0 0 0 0 0 0 1 0 0
Node 0, zone DMA, type Movable 0 0 0 0 0 0 0 0 0 1 3
Node 0, zone DMA, type Reclaimable 0 0 0 0 0 0 0 0 0 0 0
Number of blocks type Unmovable Movable Reclaimable HighAtomic Isolate
Node 0, zone DMA32 0 8 0 0 0
Node 0, zone DMA 9 6 0 0 0
";
    let above = "Node 0, zone DMA32\n  pages free 4096\n  min 1\n  low 2\n  high 3\n  present 4096\n  managed 4096\n";
    let all_free = format!("{}{above}", ZONES.replace("free 3000", "free 3840"));
    let of = |types: &str| {
        let zones = zoneinfo::parse(&all_free).0;
        let types = pagetypeinfo::parse(types);
        setup(&HostSnapshot { zones, types, ..HostSnapshot::default() }, as_is)
    };
    // All is free. Pageblocks in holes are removed, and each type has those that its blocks need.
    let (setup, written) = of(types);
    let zone = &setup.machine.nodes[0].zones[0];
    assert_eq!((zone.free, zone.free_lists.unwrap().pageblocks), (3840, [1, 7, 0, 0]));
    assert!(!written.notes.iter().any(|note| note.place.contains("pagetypeinfo")));
    let none = "the free lists of zone DMA of node 0";
    for (types, reason) in [
        (String::new(), "the free lists are missing"),
        (types[..types.len() - 9].to_owned(), "the file is truncated"),
        (types.replace("1 3\n", "1 >100000\n"), ":5: a number is unknown"),
        (format!("Page block order: x\n{types}"), ":1: not an order"),
    ] {
        let (setup, written) = of(&types);
        assert!(setup.machine.nodes[0].zones[0].free_lists.is_none());
        told(&written, reason);
        told(&written, none);
    }
    let (_, written) = of(&types.replace("0 1 3\n", "2 0 3\n"));
    told(
        &written,
        "they do not fit into the zone as a run lays it out: the free blocks below order 9 need 2",
    );
    let (_, written) = of(&types.replace("0 1 3\n", "0 1 0\n"));
    told(&written, "they have 768 of 3840 free pages");
    // Without the option there is no note about the lists.
    let (_, written) = self::setup(&host(), HostImportOptions::default());
    assert!(!written.notes.iter().any(|note| note.place.contains("pagetypeinfo")));
}

#[test]
fn groups_have_shares_of_the_cpu() {
    let mut host = host();
    let files = [("cpu.max", "50000 100000\n"), ("cpu.weight", "50"), ("memory.oom.group", "1")];
    host.groups = vec![
        group("/", None, &[]),
        group("/a", Some(0), &files),
        group("/b", Some(0), &[("cpu.max", "20000 50000")]),
        group("/c", Some(0), &[("cpu.max", "max 100000"), ("cpu.weight", "100")]),
    ];
    let (setup, _) = setup(&host, HostImportOptions::default());
    let names: Vec<&str> = setup.groups.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let wanted = [("memory.oom.group", "1"), ("cpu.weight", "50"), ("cpu.max", "50000 100000")]
        .map(|(name, text)| GroupControlWrite::read(name, text).unwrap());
    assert_eq!(setup.groups[0].controls, wanted);
}

#[test]
fn programs_and_page_cache_are_on_the_lists() {
    let as_is = HostImportOptions { as_is: true, ..HostImportOptions::default() };
    let text = "\
Node 0, zone DMA32
  per-node stats
      nr_active_anon 900
      nr_inactive_anon 300
      nr_anon_pages 700
      nr_shmem 100
  pages free 20000
  min 100
  low 200
  high 300
  present 32768
  managed 30000
  nr_zone_active_anon 900
  nr_zone_inactive_anon 300
  nr_zone_active_file 2000
  nr_zone_inactive_file 1000
";
    let stat = "active_anon 409600\ninactive_anon 0\nactive_file 819200\ninactive_file 4096\n";
    let mut host = HostSnapshot { zones: zoneinfo::parse(text).0, ..HostSnapshot::default() };
    host.groups = vec![
        group("/", None, &[]),
        group("/a", Some(0), &[("memory.max", "104857600"), ("memory.stat", stat)]),
    ];
    let (now, written) = setup(&host, as_is);
    let of = |name: &str| {
        let task = now.tasks.iter().find(|task| task.name == name).unwrap();
        assert!(task.background && task.settings.oom_score_adj == -1000);
        let [part] = task.resident[..] else { panic!("{task:?}") };
        (part.zone, [part.active_anon, part.inactive_anon, part.active_file, part.inactive_file])
    };
    // 1200 pages on the lists, of which 400 are not mapped and not shared.
    let dma32 = Some(pagetide_scenario::names::ZoneName::Dma32);
    assert_eq!(of("idle-a"), (None, [100, 0, 200, 1]));
    assert_eq!(of("idle"), (dma32, [510, 190, 1800, 999]));
    assert_eq!(of("unmapped"), (dma32, [290, 110, 0, 0]));
    assert!(written.text.contains("Idle tasks at the end"), "{}", written.text);
    // Counters that are more than the zone has are cut.
    let text = text.replace("nr_zone_active_file 2000", "nr_zone_active_file 99999999");
    let host = HostSnapshot { zones: zoneinfo::parse(&text).0, ..HostSnapshot::default() };
    let (now, _) = setup(&host, as_is);
    let resident = now.tasks.iter().flat_map(|task| &task.resident);
    let all = resident.map(|part| part.anon() + part.file()).sum::<u64>();
    assert!((9900..10_000).contains(&all), "{all}");
}
