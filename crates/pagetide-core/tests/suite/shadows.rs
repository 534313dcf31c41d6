//! Shadow nodes: how many a group keeps, and the order in which they are reclaimed.
//!
//! Linux: mm/workingset.c (6.1). A group of 1024 pages that reads a file 64 times as large leaves
//! about 1024 page-cache nodes with only shadows. It keeps one node for eight of its pages, and up
//! to two batches.

use crate::world::{TestWorld, CPU};
use pagetide_core::config::{Config, LruPolicy};
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::effect::Effect;
use pagetide_core::process::page_table::{Advice, Backing};
use pagetide_core::process::{MmId, ProcessCall};
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::{FileId, MemcgId, NodeId, PAGE_SIZE};

/// Pages of the file.
const PAGES: u64 = 65_536;
/// Pages of the group.
const LIMIT: u64 = 1024;

fn metric(world: &TestWorld, name: &str) -> u64 {
    world.machine.metrics().find(|(known, _)| *known == name).unwrap().1
}

/// A reader in a group, and a sparse file.
fn reader(limit: Option<u64>) -> (TestWorld, MemcgId, MmId, FileId) {
    let mut world = TestWorld::of(512, 1, Config::default(), 0).unaudited();
    let group = world.machine.create_memcg("g".into(), ROOT).unwrap();
    if let Some(pages) = limit {
        let bytes = (pages * PAGE_SIZE).to_string();
        world.machine.write_group_control(group, "memory.max", &bytes).unwrap().1.discard();
    }
    let mm = world.machine.create_mm(group).unwrap();
    let file = world.create_file(PAGES * PAGE_SIZE, true);
    (world, group, mm, file)
}

fn read(world: &mut TestWorld, mm: MmId, file: FileId, pages: std::ops::Range<u64>) {
    let node = NodeId(0);
    let (offset, len) = (pages.start * PAGE_SIZE, (pages.end - pages.start) * PAGE_SIZE);
    world.drive(&mut ProcessCall::read(mm, node, file, offset, len, Default::default()));
    world.machine.audit().unwrap();
}

#[test]
fn a_group_keeps_a_node_for_eight_pages_and_loses_the_oldest() {
    let (mut world, group, mm, file) = reader(Some(LIMIT));
    read(&mut world, mm, file, 0..PAGES);
    let (nodes, lost) =
        (metric(&world, "workingset_nodes"), metric(&world, "workingset_nodereclaim"));
    // Half of the excess is freed at a time, in batches of 128.
    assert!((LIMIT / 8..LIMIT / 8 + 272).contains(&nodes), "{nodes} nodes are kept");
    let behind = (PAGES - LIMIT) / 64;
    assert!((behind..behind + 4).contains(&(nodes + lost)), "{nodes} and {lost} of {behind}");
    let stat = world.machine.memory_stat(group);
    assert!(stat.contains(&format!("\nworkingset_nodereclaim {lost}\n")), "{stat}");
    assert!(metric(&world, "slabs_scanned") >= lost);
    // The first evicted pages have lost their shadows, the last ones have not.
    let refaults = |world: &TestWorld| world.count(Event::WorkingsetRefaultFile);
    read(&mut world, mm, file, 0..64);
    assert_eq!(refaults(&world), 0);
    read(&mut world, mm, file, PAGES - LIMIT - 640..PAGES - LIMIT - 576);
    assert!(refaults(&world) >= 64);
}

#[test]
fn the_parent_gets_shadow_nodes_and_invalidation_forgets_all() {
    let (mut world, group, mm, file) = reader(None);
    read(&mut world, mm, file, 0..PAGES);
    world.write_group(mm, group, "memory.reclaim", "200M");
    let nodes = metric(&world, "workingset_nodes");
    assert!(nodes > 100);
    // The parent gets the shadow nodes and pages of a removed group.
    world.exit(mm);
    world.machine.remove_memcg(group).unwrap().discard();
    world.machine.audit().unwrap();
    assert_eq!(metric(&world, "workingset_nodes"), nodes);
    world.machine.drop_pagecache(CPU).discard();
    assert_eq!(metric(&world, "workingset_nodes"), 0, "invalidation forgets shadows");
    world.machine.audit().unwrap();
}

#[test]
fn nodes_wait_for_a_grace_period_in_a_world_that_has_one() {
    let (mut world, _, mm, file) = reader(None);
    world.machine.free_late();
    read(&mut world, mm, file, 0..640);
    let slabs = |world: &TestWorld| {
        let cache = world.machine.slabs.find_cache("radix_tree_node").unwrap();
        world.machine.slab_usage(cache).active_objs
    };
    let before = slabs(&world);
    let mut effects = Vec::new();
    world.machine.remove_file(file, CPU).unwrap().drain_into(&mut effects);
    let late: Vec<_> = effects.iter().filter(|it| matches!(it, Effect::FreeLate { .. })).collect();
    // One node for 64 pages and those read ahead, and one above them.
    assert!(before > 10);
    assert_eq!((late.len() as u64, slabs(&world)), (before, before));
    for effect in late {
        let Effect::FreeLate { object, cpu } = *effect else { unreachable!() };
        let cache = world.machine.cache_of_object(object);
        world.machine.kmem_cache_free(cache, object, cpu).unwrap();
    }
    assert_eq!(slabs(&world), 0);
    world.machine.audit().unwrap();
}

/// A pseudo-random number, independent of its neighbours (splitmix64).
fn mixed(nth: u64) -> u64 {
    let mut z = nth.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Measured on Debian's 6.1 (three runs with one CPU): a group of 20 MiB reads a file of 384 MiB
/// twice, then touches random pages of a file of 1 GiB, twice as many as the file has. For each
/// part: nodes reclaimed, and refaults.
const LINUX: [(u64, u64); 4] = [(640, 0), (1536, 0), (49_503, 12_712), (50_067, 13_321)];

#[test]
fn a_small_group_forgets_as_much_as_the_kernels() {
    const SCATTERED: u64 = 262_144;
    let (mut world, _, mm, _) = reader(Some(5120));
    let stream = world.create_file(98_304 * PAGE_SIZE, true);
    let scattered = world.create_file(SCATTERED * PAGE_SIZE, true);
    let backing = Backing::File(scattered);
    let map = world.map(mm, backing, SCATTERED, Advice::Random);
    let counts = |world: &TestWorld| {
        let count = |event| world.count(event);
        (count(Event::WorkingsetNodereclaim), count(Event::WorkingsetRefaultFile))
    };
    let mut found = Vec::new();
    for part in 0..LINUX.len() {
        let before = counts(&world);
        match part {
            0 | 1 => {
                // Reads of 64 KiB, as of a program.
                let mut readahead = Default::default();
                for at in 0..98_304 / 16 {
                    let offset = at * 16 * PAGE_SIZE;
                    let mut call =
                        ProcessCall::read(mm, NodeId(0), stream, offset, 16 * PAGE_SIZE, readahead);
                    world.drive(&mut call);
                    readahead = call.readahead().unwrap();
                }
            }
            _ => {
                for nth in 0..SCATTERED {
                    let page = mixed(part as u64 * SCATTERED + nth) % SCATTERED;
                    world.access(mm, map, page, false);
                }
            }
        }
        let after = counts(&world);
        found.push((after.0 - before.0, after.1 - before.1));
    }
    world.machine.audit().unwrap();
    let close = |ours: u64, linux: u64| ours.abs_diff(linux) * 10 <= linux;
    let all = found.iter().zip(LINUX);
    let all = all.into_iter().all(|(ours, linux)| close(ours.0, linux.0) && close(ours.1, linux.1));
    assert!(all, "found {found:?}, Linux has {LINUX:?}");
}

#[test]
fn shadows_of_swap_are_limited_by_the_pages_of_the_root() {
    let refaults = |lru, in_group: bool| {
        let config = Config { lru, ..Config::default() };
        let mut world = TestWorld::of(16, 1, config, 1 << 14).unaudited();
        let memcg = match in_group {
            true => world.group(ROOT, &[]),
            false => ROOT,
        };
        let task = world.task(memcg, 9000);
        for _ in 0..3 {
            world.access_all(task, 0..9000, true);
        }
        world.settle_and_audit();
        (world.count(Event::WorkingsetRefaultAnon), world.count(Event::WorkingsetNodereclaim))
    };
    let (kept, none) = refaults(LruPolicy::Linux61, true);
    assert_eq!(none, 0, "Linux 6.1 keeps them");
    let (of_root, few) = refaults(LruPolicy::Linux612, false);
    let (of_group, many) = refaults(LruPolicy::Linux612, true);
    assert!(
        many > few && of_group < kept && of_group < of_root,
        "{few}, {many}; {of_root}, {of_group}"
    );
}

#[test]
fn the_swap_cache_on_a_disk_takes_nodes_in_6_12() {
    let pages = |lru| {
        let config = Config { lru, ..Config::default() };
        let mut world = TestWorld::of(32, 1, config, 1 << 14).unaudited();
        let task = world.task(ROOT, 9000);
        world.access_all(task, 0..9000, true);
        world.settle_and_audit();
        metric(&world, "nr_slab_reclaimable")
    };
    assert_eq!(pages(LruPolicy::Linux61), 0);
    // At least 1000 slots are used, 64 a node, and seven nodes fit into a page of slab.
    assert!((2..30).contains(&pages(LruPolicy::Linux612)), "{}", pages(LruPolicy::Linux612));
}
