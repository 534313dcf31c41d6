//! Machines with CMA areas or a zone HighMem.

use super::*;
use pagetide_scenario::model::ZoneSetup;
use pagetide_scenario::names::ZoneName;

const AS_IS: HostImportOptions<'static> =
    HostImportOptions { as_is: true, all_groups: false, report: None, costs: None };

/// 39 pageblocks, of which 20 are CMA.
const LENT: &str = "\
Node 0, zone Normal
  pages free 5000
  min 100
  low 200
  high 300
  present 20000
  managed 20000
  nr_zone_active_anon 300
  nr_zone_inactive_file 9000
  nr_free_cma 3584
";

const TYPES: &str = "\
Node 0, zone Normal, type Unmovable 0 0 0 0 0 0 0 1 0 0 0
Node 0, zone Normal, type Movable 0 0 0 1 0 0 0 0 1 0 1
Node 0, zone Normal, type Reclaimable 0 0 0 0 0 0 0 0 0 0 0
Node 0, zone Normal, type CMA 0 0 0 0 0 0 0 2 1 2 2
Number of blocks type Unmovable Movable Reclaimable CMA Isolate
Node 0, zone Normal 5 15 0 20 0
";

fn zone(host: &HostSnapshot, options: HostImportOptions<'_>) -> (ZoneSetup, ImportedScenario) {
    let (setup, written) = setup(host, options);
    (setup.machine.nodes[0].zones[0].clone(), written)
}

fn machine(types: &str, memory: &str, blocks: &str) -> HostSnapshot {
    HostSnapshot {
        zones: zoneinfo::parse(LENT).0,
        types: pagetypeinfo::parse(types),
        memory: meminfo::parse(memory).0,
        free_blocks: buddyinfo::parse(blocks).0,
        ..HostSnapshot::default()
    }
}

#[test]
fn an_area_has_its_own_blocks() {
    let host = machine(TYPES, "", "");
    let (now, written) = zone(&host, AS_IS);
    let lists = now.free_lists.unwrap();
    assert_eq!((now.free, lists.pageblocks), (5000, [4, 15, 0, 20]));
    assert_eq!(lists.blocks[3], [0, 0, 0, 0, 0, 0, 0, 2, 1, 2, 2]);
    assert!(!written.notes.iter().any(|note| note.message.contains("CMA")), "{:?}", written.notes);
    let resident = setup(&host, AS_IS).0.tasks[0].resident[0];
    assert_eq!((resident.active_anon, resident.inactive_file), (300, 9000));
    // All that programs leave may be CMA; what is free and not CMA is not.
    let (empty, _) = zone(&host, HostImportOptions::default());
    assert_eq!((empty.free, empty.cma, empty.free_lists), (14_300, 20 * 512, None));
}

#[test]
fn an_area_of_unknown_blocks_or_size_is_noted() {
    let blocks = "Node 0, zone Normal 0 0 0 1 0 0 0 3 2 2 3\n";
    let total = "CmaTotal: 40960 kB\nCmaFree: 14336 kB\n";
    // A row is cut: the size is known, the blocks are not.
    let cut = TYPES.replace("CMA 0", "CMA >");
    for (types, memory) in [(&*cut, ""), ("", total)] {
        let (now, written) = zone(&machine(types, memory, blocks), AS_IS);
        let lists = now.free_lists.unwrap();
        assert_eq!((lists.pageblocks[3], lists.blocks[3][9..].to_vec()), (20, vec![1, 3]));
        assert_eq!(lists.pages(), 5000);
        told(&written, "14.0 MiB free; which blocks these are is unknown: the largest ones here");
    }
    let (now, written) = zone(&machine("", total, ""), AS_IS);
    assert_eq!((now.free, now.free_lists.unwrap().blocks[3][9..].to_vec()), (5000, vec![1, 3]));
    told(&written, "zone Normal of node 0: 40.0 MiB of CmaTotal are taken to be in this zone");
    let (_, written) = zone(&machine("", "", ""), HostImportOptions::default());
    told(&written, "the size of its CMA area is unknown: 14.0 MiB, the pageblocks of 3584 free");
    // More than the zone has, or than its lists leave room for.
    let (now, written) = zone(&machine("", "CmaTotal: 99999999 kB\n", ""), AS_IS);
    assert!(now.free_lists.is_some_and(|lists| lists.pageblocks[3] <= 39));
    told(&written, "are more than it manages: 78.0 MiB here");
    let all = TYPES.replace("5 15 0 20", "0 0 0 40");
    let (now, written) = zone(&machine(&all, "", ""), AS_IS);
    assert!(now.free_lists.is_some_and(|lists| lists.pageblocks[3] < 39));
    told(&written, "no more of its pageblocks are free at the start");
}

#[test]
fn highmem_keeps_its_marks_and_ratio() {
    let of = |node: u32, name: &str, pages: u64, [min, low, high]: [u64; 3]| {
        format!(
            "Node {node}, zone {name}\n pages free 9000\n min {min}\n low {low}\n high {high}\n \
             present {pages}\n nr_active_anon 500\n"
        )
    };
    let text =
        of(0, "Normal", 121_412, [696, 870, 1044]) + &of(0, "HighMem", 129_238, [126, 311, 496]);
    let mut host = HostSnapshot {
        release: Some("3.4.5".to_owned()),
        zones: zoneinfo::parse(&text).0,
        sysctls: vec![sysctl("vm.lowmem_reserve_ratio", "256 24 48")],
        ..HostSnapshot::default()
    };
    let (now, written) = setup(&host, AS_IS);
    let zones: Vec<_> =
        now.machine.nodes[0].zones.iter().map(|zone| (zone.name, zone.managed)).collect();
    assert_eq!(zones, [(ZoneName::Normal, 121_412), (ZoneName::HighMem, 129_238)]);
    assert_eq!(now.tasks[0].resident[1].zone, Some(ZoneName::HighMem));
    assert!(!written.text.contains("will have"), "{}", written.text);
    let ratios = now.sysctls.iter().find(|write| write.name() == "vm.lowmem_reserve_ratio");
    assert_eq!(ratios.unwrap().to_string(), "256 256 24 48");
    // Without low memory, it is the only zone.
    let alone = of(0, "HighMem", 129_238, [126, 311, 496]);
    host.zones = zoneinfo::parse(&alone).0;
    let (zone, written) = zone(&host, AS_IS);
    assert_eq!(zone.name, ZoneName::Normal);
    told(&written, "zone HighMem of node 0 (504.8 MiB) does not exist like this in a scenario");
}
