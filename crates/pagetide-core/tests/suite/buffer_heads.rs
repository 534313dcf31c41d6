//! Buffer heads: which pages have them, which group pays, and when they are freed.
//!
//! Linux: fs/buffer.c under ext4 without a journal (6.1): 104 bytes for each written file page.

use crate::world::{TestWorld, CPU};
use pagetide_core::config::Config;
use pagetide_core::groups::memcg::ROOT;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing};
use pagetide_core::process::{MmId, ProcessCall};
use pagetide_core::units::{FileId, MemcgId, NodeId, PAGE_SIZE};

const NODE: NodeId = NodeId(0);
/// Bytes charged for one buffer head, with the pointer to its group.
const CHARGED: u64 = 104 + 8;

fn writer(max: &str) -> (TestWorld, MemcgId, MmId, FileId) {
    let mut world = TestWorld::of(64, 1, Config::default(), 0).unaudited();
    let group = world.group(ROOT, &[("memory.max", max)]);
    let mm = world.machine.create_mm(group).unwrap();
    let file = world.create_file(256 * PAGE_SIZE, false);
    (world, group, mm, file)
}

fn heads(world: &TestWorld) -> u64 {
    let cache = world.machine.slabs.find_cache("buffer_head").unwrap();
    assert_eq!(world.machine.slabs.kmem_cache(cache).unwrap().objects_per_slab(), 39);
    world.machine.slab_usage(cache).active_objs
}

fn slab(world: &TestWorld, group: MemcgId) -> u64 {
    let sizes = world.machine.memory_stat_sizes(group);
    sizes.iter().find(|(name, _)| *name == "slab_reclaimable").unwrap().1
}

fn write(world: &mut TestWorld, mm: MmId, file: FileId, pages: u64) {
    let outcome = world.drive(&mut ProcessCall::write(mm, NODE, file, 0, pages * PAGE_SIZE));
    assert!(matches!(outcome, Outcome::Minor | Outcome::Major), "{outcome:?}");
    world.machine.audit().unwrap();
}

fn clean(world: &mut TestWorld) {
    for _ in 0..10 {
        world.now += 60_000_000_000;
        world.flusher_awake = true;
        world.flusher();
        world.settle();
    }
}

#[test]
fn a_written_page_has_one_until_it_leaves_memory() {
    let (mut world, group, mm, file) = writer("max");
    let read = ProcessCall::read(mm, NODE, file, 0, 128 * PAGE_SIZE, Default::default());
    world.drive(&mut read.clone());
    let of_nodes = slab(&world, group);
    assert_eq!(heads(&world), 0, "reading needs none");
    write(&mut world, mm, file, 100);
    write(&mut world, mm, file, 100);
    assert_eq!(heads(&world), 100);
    assert_eq!(slab(&world, group), of_nodes + 100 * CHARGED);
    clean(&mut world);
    assert_eq!(heads(&world), 100, "a clean page keeps its buffer head");
    world.machine.drop_pagecache(CPU).discard();
    assert_eq!((heads(&world), slab(&world, group)), (0, 0));
    world.machine.audit().unwrap();
}

#[test]
fn a_store_through_a_mapping_gives_one_to_the_pages_group() {
    let (mut world, group, mm, file) = writer("max");
    // The root has read the pages and pays for their buffer heads.
    let other = world.machine.create_mm(ROOT).unwrap();
    world.drive(&mut ProcessCall::read(other, NODE, file, 0, 64 * PAGE_SIZE, Default::default()));
    let map = world.map(mm, Backing::File(file), 256, Advice::Random);
    world.access_all((mm, map), 0..10, false);
    assert_eq!(heads(&world), 0);
    for page in 0..10 {
        world.access(mm, map, page, true);
        world.access(mm, map, page, true);
        // Not cached yet: charged to the group.
        world.access(mm, map, 200 + page, true);
    }
    assert_eq!(heads(&world), 20);
    let of_group = slab(&world, group) - 592;
    assert_eq!(of_group, 10 * CHARGED, "in addition to a tree node");
    world.machine.audit().unwrap();
    // Truncation frees them with the pages, dirty or not.
    world.munmap(map);
    world.machine.remove_file(file, CPU).unwrap().discard();
    assert_eq!(heads(&world), 0);
    world.machine.audit().unwrap();
}

#[test]
fn at_a_limit_the_writer_reclaims_for_them_and_reclaim_frees_them() {
    let (mut world, group, mm, file) = writer("400K");
    world.disk_works = true;
    for round in 0..8 {
        let outcome = world.drive(&mut ProcessCall::write(
            mm,
            NODE,
            file,
            round * 64 * PAGE_SIZE,
            64 * PAGE_SIZE,
        ));
        assert!(matches!(outcome, Outcome::Minor | Outcome::Major), "{outcome:?}");
        clean(&mut world);
        world.machine.audit().unwrap();
    }
    let cached = world.machine.file(file).unwrap().nr_pages;
    assert!(cached < 100 && heads(&world) <= cached, "{} of {cached}", heads(&world));
    assert!(slab(&world, group) < 100 * CHARGED + 20 * 592);
    assert!(world.machine.memcgs()[group].memory.usage <= 100);
}
