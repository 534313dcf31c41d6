//! Swap in compressed memory: stored pages, missing memory, and freed slots.

use crate::world::TestWorld;
use pagetide_core::config::Config;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::process::page_table::VmaId;
use pagetide_core::process::{Machine, MmId, ProcessCall};
use pagetide_core::stats::vmstat::{Event, NodeStat};
use pagetide_core::swap::compressor::Compressor;
use pagetide_core::swap::content::ContentMix;
use pagetide_core::swap::zram::{ZramLevels, ZramOptions};
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::{NodeId, PAGE_SIZE};

/// Only compressible pages, of nearly one size.
const PLAIN: ContentMix = ContentMix { zero: 0, same: 0, incompressible: 0, mean_size: 1000 };

/// A machine of 16 MiB with a zram device, and a task with a heap of 6000 pages.
fn world(mem_limit: Option<u64>, mix: ContentMix, config: Config) -> (TestWorld, (MmId, VmaId)) {
    let mut machine = Machine::new(&[NodeSpec::x86_64(16 << 20, 0, 0)], 1, config).unwrap();
    let zram = ZramOptions { compressor: Compressor::LzoRle, mem_limit, backing_pages: None };
    assert!(machine.swapon(SwapOptions::new(8192).zram(zram)));
    machine.set_default_content(1, mix);
    let mut world = TestWorld::new(machine).unaudited();
    world.may_starve = true;
    let task = world.task(Machine::ROOT, 6000);
    (world, task)
}

fn levels(world: &TestWorld) -> ZramLevels {
    world.machine.zram_levels().unwrap()
}

#[test]
fn pages_are_stored_and_freed_without_io() {
    let (mut world, task) = world(None, PLAIN, Config::default());
    world.fill(task, 0..5000);
    world.settle_and_audit();
    assert!(world.inflight.is_empty() && world.count(Event::Pswpout) > 1000);
    let stored = levels(&world);
    let nr_stored = stored.orig_bytes / PAGE_SIZE;
    assert!(nr_stored > 1000, "{stored:?}");
    // No page waits in the swap cache for a write to end.
    assert_eq!(world.stat(NodeStat::NrSwapcached), 0);
    assert_eq!((world.count(Event::Pgpgout), world.count(Event::Pgpgin)), (0, 0));
    // 1000 bytes on average, more memory for zspages that are not full, and no failure.
    assert!(stored.compr_bytes.abs_diff(1000 * nr_stored) < 50 * nr_stored, "{stored:?}");
    assert!((stored.compr_bytes..stored.compr_bytes * 3 / 2).contains(&stored.used_bytes));
    assert_eq!((stored.failed_writes, stored.same_pages), (0, 0));
    let used = world.machine.swap().areas()[0].used();
    assert_eq!(u64::from(used), nr_stored);
    world.exit(task.0);
    world.settle_and_audit();
    let empty = levels(&world);
    assert_eq!((empty.orig_bytes, empty.used_bytes), (0, 0));
    assert!(empty.max_used_bytes >= stored.used_bytes);
}

/// Objects in use of a cache of the kernel's own, and the pages of its slabs.
fn objects(world: &TestWorld, name: &str) -> (u64, u64) {
    let slabs = &world.machine.slabs;
    let cache = slabs.kmem_cache(slabs.find_cache(name).unwrap()).unwrap();
    (cache.nr_in_use(), cache.nr_pages)
}

#[test]
fn handles_and_descriptors_of_zspages_take_slabs() {
    let mix = ContentMix { zero: 100, ..PLAIN };
    let (mut world, task) = world(None, mix, Config::default());
    let slabs_before = world.stat(NodeStat::NrSlabUnreclaimable);
    world.fill(task, 0..5000);
    world.settle_and_audit();
    let stored = levels(&world);
    let nr_objects = stored.orig_bytes / PAGE_SIZE - stored.same_pages;
    assert!(nr_objects > 1000 && stored.same_pages > 100, "{stored:?}");
    // A page of one word has no object. A page of slab has 512 handles of 8 bytes.
    let (handles, handle_pages) = objects(&world, "zs_handle");
    assert_eq!(handles, nr_objects);
    assert!((handles.div_ceil(512)..handles / 256).contains(&handle_pages), "{handle_pages}");
    // A zspage has one to four pages. A page of slab has 73 descriptors of 56 bytes.
    let (zspages, zspage_pages) = objects(&world, "zspage");
    let pool_pages = stored.used_bytes / PAGE_SIZE;
    assert!((pool_pages.div_ceil(4)..=pool_pages).contains(&zspages), "{zspages}, {pool_pages}");
    assert!((zspages.div_ceil(73)..zspages / 30).contains(&zspage_pages), "{zspage_pages}");
    let grown = world.stat(NodeStat::NrSlabUnreclaimable) - slabs_before;
    assert!(grown >= handle_pages + zspage_pages, "{grown}");
    world.exit(task.0);
    world.settle_and_audit();
    assert_eq!((objects(&world, "zs_handle").0, objects(&world, "zspage").0), (0, 0));
}

#[test]
fn slots_with_a_page_or_a_shadow_take_nodes_of_64() {
    let (mut world, task) = world(None, PLAIN, Config::default());
    world.fill(task, 0..5000);
    world.settle_and_audit();
    // Slots are taken one after another, so nearly all nodes are full; two more are above them.
    let used = u64::from(world.machine.swap().areas()[0].used());
    let (nodes, pages) = objects(&world, "radix_tree_node");
    assert!((used.div_ceil(64) + 2..used / 50).contains(&nodes), "{nodes} nodes, {used} slots");
    assert!(pages >= nodes / 7 && world.stat(NodeStat::NrSlabReclaimable) == pages, "{pages}");
    world.exit(task.0);
    world.settle_and_audit();
    assert_eq!(objects(&world, "radix_tree_node").0, 0);
}

#[test]
fn a_fault_reads_one_page_and_frees_its_slot() {
    let config = Config { page_cluster: 3, ..Config::default() };
    let (mut world, task) = world(None, PLAIN, config);
    world.fill(task, 0..5000);
    let (ins, majors) = (world.count(Event::Pswpin), world.count(Event::Pgmajfault));
    let (mm, vma) = task;
    let swapped: Vec<u64> =
        (0..5000).filter(|&page| !world.machine.is_in_core(vma, page)).collect();
    for &page in swapped.iter().take(100) {
        let before = levels(&world).orig_bytes;
        world.access(mm, vma, page, false);
        // Reclaim of the fault may have stored other pages.
        assert!(levels(&world).orig_bytes + PAGE_SIZE >= before);
    }
    assert_eq!(world.count(Event::Pswpin) - ins, 100);
    assert_eq!(world.count(Event::Pgmajfault) - majors, 100);
    assert_eq!((world.count(Event::SwapRa), world.stat(NodeStat::NrSwapcached)), (0, 0));
    world.settle_and_audit();
}

#[test]
fn filled_pages_need_no_memory_and_incompressible_ones_a_page() {
    let zeroes = ContentMix { zero: 900, same: 100, ..PLAIN };
    let (mut all_same, task) = world(None, zeroes, Config::default());
    all_same.fill(task, 0..5500);
    let stored = levels(&all_same);
    assert!(stored.same_pages > 1000 && stored.same_pages * PAGE_SIZE == stored.orig_bytes);
    assert_eq!((stored.used_bytes, stored.compr_bytes), (0, 0));
    all_same.settle_and_audit();

    let noise = ContentMix { incompressible: 1000, ..PLAIN };
    let (mut huge, task) = world(None, noise, Config::default());
    huge.fill(task, 0..3500);
    let stored = levels(&huge);
    assert_eq!(stored.huge_pages * PAGE_SIZE, stored.orig_bytes);
    assert_eq!(stored.used_bytes, stored.orig_bytes);
    huge.settle_and_audit();
}

#[test]
fn at_its_limit_a_device_refuses_pages_and_they_stay() {
    let (mut world, task) = world(Some(100), PLAIN, Config::default());
    world.fill(task, 0..4200);
    world.settle_and_audit();
    let stored = levels(&world);
    assert!(stored.failed_writes > 0, "{stored:?}");
    // A zspage is allocated before the limit is tested.
    assert!(stored.used_bytes <= 100 * PAGE_SIZE && stored.max_used_bytes <= 104 * PAGE_SIZE);
    // The second attempt of each is a request to the device.
    assert!(world.count(Event::Pgpgout) > 0);
    assert!(world.stat(NodeStat::NrSwapcached) > 0, "their slots are kept");
}

#[test]
fn a_full_machine_fails_to_store_and_does_not_hang() {
    let noise = ContentMix { incompressible: 1000, ..PLAIN };
    let (mut world, task) = world(None, noise, Config::default());
    for page in 0..6000 {
        if world.machine.is_exited(task.0) {
            break;
        }
        world.access(task.0, task.1, page, true);
    }
    world.settle_and_audit();
    // A page for each page: nothing is gained, and the task is killed.
    assert!(world.machine.is_exited(task.0) || !world.killed.is_empty() || world.nr_starved > 0);
}

#[test]
fn pages_of_the_pool_move_and_the_pool_shrinks() {
    let (mut world, task) = world(None, PLAIN, Config::default());
    world.fill(task, 0..5000);
    let (mm, vma) = task;
    // Holes in the zspages.
    let swapped: Vec<u64> =
        (0..5000).filter(|&page| !world.machine.is_in_core(vma, page)).collect();
    for page in swapped.iter().copied().filter(|page| page % 3 != 0) {
        world.discard(vma, page, 1).unwrap();
    }
    world.settle_and_audit();
    let holes = levels(&world);
    assert!(holes.used_bytes > 2 * holes.compr_bytes, "{holes:?}");
    let moved = world.count(Event::PgmigrateSuccess);
    world.drive(&mut ProcessCall::compact_memory(mm, NodeId(0)));
    world.settle_and_audit();
    assert!(world.count(Event::PgmigrateSuccess) > moved);
    let moved = levels(&world);
    let cpu = world.cpu();
    let effects = world.machine.drop_slab(cpu).collect();
    world.carry_out(effects);
    let shrunk = levels(&world);
    assert!(shrunk.used_bytes < moved.used_bytes * 3 / 5, "{shrunk:?}");
    assert_eq!(shrunk.pages_compacted * PAGE_SIZE, moved.used_bytes - shrunk.used_bytes);
    assert_eq!(shrunk.compr_bytes, moved.compr_bytes);
    world.machine.audit().unwrap();
    // Every page still has its contents.
    world.access_all(task, (0..5000).filter(|page| page % 3 == 0), false);
    world.settle_and_audit();
}
