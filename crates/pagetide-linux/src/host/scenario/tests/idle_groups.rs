//! Tests of the memory that groups have at the start (`--as-is`).

use super::*;

const AS_IS: HostImportOptions<'_> =
    HostImportOptions { as_is: true, all_groups: false, report: None, costs: None };

/// A zone `Normal` of 40000 pages, of which 20000 are on the lists.
fn zone(node: u32) -> String {
    format!(
        "Node {node}, zone Normal\n pages free 10000\n min 100\n low 125\n high 150\n \
         present 40000\n managed 40000\n nr_zone_active_anon 10000\n nr_zone_inactive_anon 10000\n"
    )
}

fn host_of(zones: &str, stat: &str) -> HostSnapshot {
    let mut host = HostSnapshot { zones: zoneinfo::parse(zones).0, ..HostSnapshot::default() };
    host.groups = vec![
        group("/", None, &[]),
        group("/a", Some(0), &[("memory.max", "104857600"), ("memory.stat", stat)]),
    ];
    host
}

fn resident(setup: &Setup, name: &str) -> Vec<(usize, u64, u64)> {
    let task = setup.tasks.iter().find(|task| task.name == name).unwrap();
    task.resident.iter().map(|part| (part.node, part.active_anon, part.inactive_anon)).collect()
}

#[test]
fn a_group_keeps_what_the_zones_have() {
    // A page more than the zone, as two readings can differ.
    let host = host_of(&zone(0), "active_anon 40960000\ninactive_anon 40964096\n");
    let (setup, written) = setup(&host, AS_IS);
    assert_eq!(resident(&setup, "idle-a"), [(0, 10_000, 10_000)]);
    assert_eq!(setup.tasks[0].group, Some(0));
    told(&written, "the lists of 1 group are cut by 1 page: the zones' lists do not have it all");
}

#[test]
fn a_group_larger_than_a_node_is_on_both() {
    let zones = zone(0) + &zone(1);
    let host = host_of(&zones, "active_anon 0\ninactive_anon 65536000\n");
    let (setup, written) = setup(&host, AS_IS);
    assert_eq!(resident(&setup, "idle-a"), [(0, 0, 8000), (1, 0, 8000)]);
    assert_eq!(resident(&setup, "idle"), [(0, 10_000, 2000), (1, 10_000, 2000)]);
    assert!(!written.text.contains(" are cut by "));
}

#[test]
fn a_full_zone_has_room_for_page_tables() {
    let full = zone(0).replace("_anon 10000", "_anon 15000");
    let (setup, _) = setup(&host_of(&full, "active_anon 4096\ninactive_anon 4096\n"), AS_IS);
    let all: u64 = setup.tasks.iter().flat_map(|it| &it.resident).map(|part| part.anon()).sum();
    // 30000 pages that are not free, with 59 + 1 page tables of `idle` and 1 + 1 of the group.
    assert_eq!(all, 30_000 - 62);
}

#[test]
fn a_release_between_two_sets_maps_around_faults() {
    for (release, has) in [("3.15.10", true), ("3.14.79", false), ("3.16.1", false)] {
        let host = HostSnapshot { release: Some(release.to_owned()), ..host() };
        let (_, written) = setup(&host, HostImportOptions::default());
        let line = "\"vm.fault_around_bytes\" = 65536 # since Linux 3.15";
        assert_eq!(written.text.contains(line), has, "{release}: {}", written.text);
    }
}
