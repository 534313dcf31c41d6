//! zswap: pages in its pool, pages that go around it, and pages that it writes to disks.

use crate::world::TestWorld;
use pagetide_core::config::{Config, ZeroPagesPolicy, ZswapPolicy};
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::process::page_table::VmaId;
use pagetide_core::process::{Machine, MmId};
use pagetide_core::stats::vmstat::Event;
use pagetide_core::swap::compressor::Compressor;
use pagetide_core::swap::content::ContentMix;
use pagetide_core::swap::zswap::{ZswapOptions, ZswapStats};
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::MemcgId;

/// Only compressible pages, of nearly one size.
const PLAIN: ContentMix = ContentMix { zero: 0, same: 0, incompressible: 0, mean_size: 1000 };
/// A pool that never fills.
const LARGE: ZswapOptions = ZswapOptions {
    compressor: Compressor::LzoRle,
    max_pool_percent: 80,
    accept_threshold_percent: 90,
    shrinker: false,
};
/// A pool of 40 pages of 4096.
const SMALL: ZswapOptions = ZswapOptions { max_pool_percent: 1, ..LARGE };
const OF_6_1: ZswapPolicy = ZswapPolicy::Linux61;
const OF_6_12: ZswapPolicy = ZswapPolicy::Linux612;

/// A machine of 16 MiB with zswap in front of a disk, a group and a task in it with a heap.
fn world_with(
    options: ZswapOptions,
    mix: ContentMix,
    zswap: ZswapPolicy,
) -> (TestWorld, MemcgId, (MmId, VmaId)) {
    let config = Config { zswap, ..Config::default() };
    let mut machine = Machine::new(&[NodeSpec::x86_64(16 << 20, 0, 0)], 1, config).unwrap();
    assert!(machine.swapon(SwapOptions::new(8192)));
    machine.set_default_content(1, mix);
    machine.enable_zswap(options);
    let mut world = TestWorld::new(machine).unaudited();
    world.may_starve = true;
    let group = world.group(Machine::ROOT, &[]);
    let task = world.task(group, 6000);
    (world, group, task)
}

fn stats(world: &TestWorld) -> ZswapStats {
    world.machine.zswap_stats().unwrap()
}

fn written(world: &TestWorld) -> u64 {
    world.count(Event::Pswpout)
}

fn file(world: &TestWorld, group: MemcgId, name: &str) -> String {
    world.machine.read_group_control(group, name, world.now).unwrap()
}

fn row(world: &TestWorld, group: MemcgId, name: &str) -> u64 {
    let text = file(world, group, "memory.stat");
    let row = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    row.unwrap().parse().unwrap()
}

/// Runs the worker until it rests, with its I/O.
fn finish_worker(world: &mut TestWorld) {
    for _ in 0..100_000 {
        if !world.kworker_awake {
            break;
        }
        world.kworker_step();
        world.complete_one();
    }
    world.settle_and_audit();
}

#[test]
fn pages_are_stored_charged_and_freed_without_io() {
    for policy in [OF_6_1, OF_6_12] {
        let (mut world, group, task) = world_with(LARGE, PLAIN, policy);
        world.fill(task, 0..5000);
        world.settle_and_audit();
        let stored = stats(&world);
        assert!(stored.stored_pages > 1000, "{stored:?}");
        assert_eq!((written(&world), world.count(Event::Pgpgout)), (0, 0));
        assert!(world.count(Event::Zswpout) >= stored.stored_pages);
        let current: u64 = file(&world, group, "memory.zswap.current").trim().parse().unwrap();
        assert_eq!((current, row(&world, group, "zswap")), (stored.compressed_bytes, current));
        assert_eq!(row(&world, group, "zswapped"), stored.stored_pages * 4096);
        assert_eq!(row(&world, group, "zswpout"), world.count(Event::Zswpout));
        let meminfo = world.machine.proc_meminfo();
        let kb = |pages: u64| format!("{:>8} kB", pages * 4);
        assert!(meminfo.contains(&format!("Zswapped:       {}", kb(stored.stored_pages))));
        let pool = world.machine.zswap_pool_pages();
        assert!(meminfo.contains(&format!("Zswap:          {}", kb(pool))));
        assert!(pool * 4096 > stored.compressed_bytes && pool < stored.stored_pages / 2);
        world.exit(task.0);
        world.settle_and_audit();
        assert_eq!((stats(&world).stored_pages, world.machine.zswap_pool_pages()), (0, 0));
        assert_eq!(file(&world, group, "memory.zswap.current"), "0\n");
        world.machine.remove_memcg(group).unwrap().discard();
        world.machine.audit().unwrap();
    }
}

#[test]
fn entries_take_slabs_that_no_group_pays_for() {
    // A page of slab has 64 entries of 64 bytes, or 73 of 56.
    for (policy, per_page) in [(OF_6_1, 64), (OF_6_12, 73)] {
        let (mut world, group, task) = world_with(LARGE, PLAIN, policy);
        world.fill(task, 0..5000);
        world.settle_and_audit();
        let stored = stats(&world).stored_pages;
        let in_use = |world: &TestWorld, name: &str| {
            let slabs = &world.machine.slabs;
            let cache = slabs.kmem_cache(slabs.find_cache(name).unwrap()).unwrap();
            (cache.nr_in_use(), cache.nr_pages)
        };
        let (entries, pages) = in_use(&world, "zswap_entry");
        assert_eq!((entries, in_use(&world, "zs_handle").0), (stored, stored));
        assert!((entries.div_ceil(per_page)..entries / 40).contains(&pages), "{pages}");
        assert_eq!(row(&world, group, "slab_unreclaimable"), 0);
        // One tree of the swap cache; since 6.8 one of the entries, too.
        let slots = u64::from(world.machine.swap().used());
        let trees = 1 + u64::from(policy == OF_6_12);
        let nodes = in_use(&world, "radix_tree_node").0;
        let least = trees * (slots.div_ceil(64) + 2);
        assert!((least..least + 20).contains(&nodes), "{nodes} nodes, {slots} slots");
        world.exit(task.0);
        world.settle_and_audit();
        for name in ["zswap_entry", "zs_handle", "zspage", "radix_tree_node"] {
            assert_eq!(in_use(&world, name).0, 0, "{name}");
        }
    }
}

#[test]
fn pages_of_zeroes_are_only_recorded_since_6_12() {
    let config = Config { zero_pages: ZeroPagesPolicy::Linux612, ..Config::default() };
    let mut machine = Machine::new(&[NodeSpec::x86_64(16 << 20, 0, 0)], 1, config).unwrap();
    assert!(machine.swapon(SwapOptions::new(8192)));
    machine.set_default_content(1, ContentMix { zero: 500, same: 100, ..PLAIN });
    machine.enable_zswap(LARGE);
    let mut world = TestWorld::new(machine).unaudited();
    let task = world.task(Machine::ROOT, 6000);
    world.fill(task, 0..5000);
    world.settle_and_audit();
    let (used, stored) = (u64::from(world.machine.swap().used()), stats(&world));
    assert_eq!(stored.same_filled_pages, 0, "{stored:?}");
    assert!(stored.stored_pages > used / 3 && stored.stored_pages < used * 2 / 3, "{stored:?}");
    assert_eq!((written(&world), world.count(Event::Pswpin)), (0, 0));
    // They come back without I/O.
    let swapped_in = world.count(Event::Zswpin);
    world.fill(task, 0..1000);
    world.settle_and_audit();
    let loaded = world.count(Event::Zswpin) - swapped_in;
    assert!(loaded > 300 && loaded < 700, "{loaded}");
    assert_eq!(world.count(Event::Pswpin), 0);
    world.exit(task.0);
    world.settle_and_audit();
}

#[test]
fn a_load_needs_no_io_and_leaves_the_pool_only_since_6_8() {
    for (policy, stays) in [(OF_6_1, true), (OF_6_12, false)] {
        let (mut world, _, task) = world_with(LARGE, PLAIN, policy);
        world.fill(task, 0..4500);
        let (mm, vma) = task;
        let page = (0..4500).find(|&page| !world.machine.is_in_core(vma, page)).unwrap();
        let (loads, majors) = (world.count(Event::Zswpin), world.count(Event::Pgmajfault));
        world.access(mm, vma, page, false);
        assert!(world.inflight.is_empty(), "nothing is read from the disk");
        assert!(world.machine.is_in_core(vma, page));
        // Its neighbours were read ahead from the pool, too.
        assert!(world.count(Event::Zswpin) - loads > 1);
        assert_eq!(world.count(Event::Pgmajfault), majors + 1);
        assert_eq!(world.count(Event::Pswpin), 0);
        // Pages that were stored and not read, and those that were read and are still stored.
        let gone = world.count(Event::Zswpout) - stats(&world).stored_pages;
        assert_eq!(gone == 0, stays, "{gone}");
        world.access_all(task, 0..4500, false);
        world.settle_and_audit();
    }
}

#[test]
fn incompressible_pages_go_to_the_disk_and_filled_ones_take_no_memory() {
    let noise = ContentMix { incompressible: 1000, ..PLAIN };
    let (mut world, _, task) = world_with(LARGE, noise, OF_6_1);
    world.fill(task, 0..4500);
    let all = stats(&world);
    assert!(written(&world) > 500);
    assert_eq!((all.reject_compress_poor, all.stored_pages), (written(&world), 0));
    world.settle_and_audit();

    let zeroes = ContentMix { zero: 900, same: 100, ..PLAIN };
    let (mut world, group, task) = world_with(SMALL, zeroes, OF_6_1);
    world.fill(task, 0..5000);
    let all = stats(&world);
    assert!(all.stored_pages > 1000 && all.same_filled_pages == all.stored_pages, "{all:?}");
    assert_eq!((world.machine.zswap_pool_pages(), written(&world)), (0, 0));
    assert_eq!(row(&world, group, "zswapped"), all.stored_pages * 4096);
    world.settle_and_audit();
}

#[test]
fn a_full_pool_has_pages_written_one_by_one_or_down_to_its_threshold() {
    for policy in [OF_6_1, OF_6_12] {
        let (mut world, group, task) = world_with(SMALL, PLAIN, policy);
        let limit = world.machine.mem.nodes[0].zones.iter().map(|zone| zone.managed).sum::<u64>();
        let limit = limit / 100;
        // Reclaim for the group's limit comes in small portions, and the disk is fast.
        world.machine.write_group_control(group, "memory.max", "4M").unwrap().1.discard();
        let fill = |world: &mut TestWorld, pages: std::ops::Range<u64>| {
            for page in pages {
                world.access(task.0, task.1, page, true);
                world.settle();
            }
        };
        fill(&mut world, 0..2000);
        let full = stats(&world);
        assert!(full.pool_limit_hit > 0 && world.kworker_awake, "{full:?}");
        assert!(written(&world) > 0, "rejected pages go to the disk");
        // A zspage is allocated after the limit was tested.
        assert!(world.machine.zswap_pool_pages() <= limit + 4);
        assert_eq!(full.written_back_pages, 0);
        finish_worker(&mut world);
        // The first run of 6.12 has only passed over 16 entries.
        let first = if policy == OF_6_1 { 1 } else { 0 };
        assert_eq!(stats(&world).written_back_pages, first);
        for round in 20..60 {
            fill(&mut world, round * 100..(round + 1) * 100);
            finish_worker(&mut world);
        }
        let after = stats(&world);
        let back = after.written_back_pages;
        assert_eq!((world.count(Event::Zswpwb), row(&world, group, "zswpwb")), (back, back));
        let hits = after.pool_limit_hit;
        match policy {
            // Between the threshold and the limit nothing is stored and nothing written.
            OF_6_1 => assert!((1..20).contains(&back) && hits < 4 * full.pool_limit_hit),
            OF_6_12 => assert!(back > 10, "{after:?}"),
        }
        world.access_all(task, 0..2000, false);
        finish_worker(&mut world);
    }
}

#[test]
fn the_shrinker_writes_pages_before_the_pool_is_full() {
    for policy in [OF_6_1, OF_6_12] {
        let options = ZswapOptions { shrinker: true, ..LARGE };
        let (mut world, group, task) = world_with(options, PLAIN, policy);
        for round in 0..3 {
            world.fill(task, round * 500..5500);
            world.settle();
        }
        world.settle_and_audit();
        let all = stats(&world);
        assert_eq!(all.pool_limit_hit, 0);
        assert!(all.written_back_pages > 0, "{all:?}");
        assert_eq!(row(&world, group, "zswpwb"), all.written_back_pages);
        world.access_all(task, 0..5500, false);
        world.settle_and_audit();
    }
}

#[test]
fn a_group_at_its_limit_goes_around_zswap_and_one_without_writeback_keeps_its_pages() {
    for policy in [OF_6_1, OF_6_12] {
        let (mut world, group, task) = world_with(LARGE, PLAIN, policy);
        let write = |world: &mut TestWorld, name: &str, text: &str| {
            world.machine.write_group_control(group, name, text).unwrap().1.discard();
        };
        write(&mut world, "memory.zswap.max", "100K");
        world.fill(task, 0..4600);
        world.settle_and_audit();
        assert!(written(&world) > 100);
        // 6.12 stores a page after it has written another, whatever their sizes are.
        let most = if policy == OF_6_1 { 104 << 10 } else { 160 << 10 };
        assert!((80 << 10..most).contains(&row(&world, group, "zswap")));
        assert_eq!(stats(&world).pool_limit_hit, 0);
        match policy {
            OF_6_1 => assert_eq!(stats(&world).written_back_pages, 0),
            OF_6_12 => assert!(stats(&world).written_back_pages > 0),
        }
        assert_eq!(file(&world, group, "memory.zswap.max"), "102400\n");
        write(&mut world, "memory.zswap.writeback", "0");
        assert_eq!(file(&world, group, "memory.zswap.writeback"), "0\n");
        let before = (written(&world), stats(&world).written_back_pages);
        world.access_all(task, 0..200, true);
        assert_eq!((written(&world), stats(&world).written_back_pages), before);
        world.settle_and_audit();
    }
}

#[test]
fn entries_of_a_removed_group_become_its_parents() {
    let (mut world, parent, _) = world_with(LARGE, PLAIN, OF_6_12);
    let child = world.group(parent, &[]);
    let task = world.task(child, 6000);
    world.fill(task, 0..4500);
    let sum = row(&world, child, "zswapped");
    assert!(sum > 0 && row(&world, parent, "zswapped") == sum);
    // The task goes; its pages stay in the pool of the parent.
    world.machine.move_mm(task.0, parent).unwrap().discard();
    world.machine.remove_memcg(child).unwrap().discard();
    world.settle_and_audit();
    assert_eq!(row(&world, parent, "zswapped"), sum);
    world.access_all(task, 0..500, false);
    world.exit(task.0);
    world.settle_and_audit();
    assert_eq!(row(&world, parent, "zswapped"), 0);
}
