//! Pages of a zram device on the disk behind it: written, read back, refused and freed.

use crate::world::TestWorld;
use pagetide_core::config::Config;
use pagetide_core::frames::node::NodeSpec;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::VmaId;
use pagetide_core::process::{Machine, MmId, ProcessCall};
use pagetide_core::stats::vmstat::Event;
use pagetide_core::swap::compressor::Compressor;
use pagetide_core::swap::content::ContentMix;
use pagetide_core::swap::zram::{BackingLevels, ZramLevels, ZramOptions};
use pagetide_core::swap::zram::{ZramWrite, ZramWritebackMode};
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::errno::Errno;
use pagetide_core::units::{NodeId, PAGE_SIZE};

/// Half of the pages are not compressed.
const HALF: ContentMix = ContentMix { zero: 0, same: 0, incompressible: 500, mean_size: 1000 };
const ALL_IDLE: ZramWritebackMode = ZramWritebackMode::Idle;

/// A machine of 16 MiB with a zram device, a disk behind it, and a task that has used 4000 pages.
fn world(backing_pages: Option<u64>) -> (TestWorld, (MmId, VmaId)) {
    let node = NodeSpec::x86_64(16 << 20, 0, 0);
    let mut machine = Machine::new(&[node], 1, Config::default()).unwrap();
    let zram = ZramOptions { compressor: Compressor::LzoRle, mem_limit: None, backing_pages };
    assert!(machine.swapon(SwapOptions::new(8192).zram(zram)));
    machine.set_default_content(1, HALF);
    let mut world = TestWorld::new(machine);
    let task = world.task(Machine::ROOT, 4000);
    world.fill(task, 0..4000);
    world.settle_and_audit();
    (world, task)
}

fn levels(world: &TestWorld) -> (ZramLevels, BackingLevels) {
    let levels = world.machine.zram_levels().unwrap();
    (levels, levels.backing.unwrap())
}

fn write_back(world: &mut TestWorld, mm: MmId, mode: ZramWritebackMode) -> Outcome {
    let outcome = world.drive(&mut ProcessCall::zram_writeback(mm, NodeId(0), mode));
    world.settle_and_audit();
    outcome
}

/// The pages that are neither in memory nor in the swap cache.
fn swapped(world: &TestWorld, (_, vma): (MmId, VmaId)) -> Vec<u64> {
    let ptes = &world.machine.vma(vma).unwrap().ptes;
    let slot = |page: &u64| ptes[*page as usize].swap_slot();
    let is_out = |page: &u64| {
        slot(page).is_some_and(|slot| world.machine.swap()[slot].cached(slot).is_none())
    };
    (0..4000).filter(is_out).collect()
}

#[test]
fn idle_pages_go_to_the_disk_and_come_back() {
    let (mut world, task) = world(Some(5000));
    assert_eq!(write_back(&mut world, task.0, ALL_IDLE), Outcome::Minor);
    assert_eq!(levels(&world).1, BackingLevels::default(), "nothing is marked");
    let before = levels(&world).0;
    let pages = swapped(&world, task);
    world.machine.write_zram(ZramWrite::Idle);
    // Pages that are used afterwards are not idle.
    let used = 50;
    world.access_all(task, pages.iter().copied().take(used), false);
    let pgpgout = world.count(Event::Pgpgout);
    assert_eq!(write_back(&mut world, task.0, ALL_IDLE), Outcome::Minor);
    let (after, disk) = levels(&world);
    assert!(disk.writes + 200 > before.orig_bytes / PAGE_SIZE, "{disk:?} of {before:?}");
    assert_eq!((disk.nr_blocks, disk.reads), (disk.writes, 0));
    assert_eq!(world.count(Event::Pgpgout) - pgpgout, disk.writes * PAGE_SIZE / 1024);
    assert!(after.used_bytes * 4 < before.used_bytes, "{after:?}");
    // Pages on the disk count as stored.
    assert!(after.orig_bytes >= disk.writes * PAGE_SIZE);
    let zram = world.machine.swap().zrams().next().unwrap();
    let words: Vec<u64> =
        zram.bd_stat().unwrap().split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert_eq!(words, [disk.nr_blocks, 0, disk.writes]);
    // The test world compares the contents of each page that is read.
    let pages = swapped(&world, task);
    let (ins, checked) = (world.count(Event::Pgpgin), world.contents.nr_checked);
    world.access_all(task, pages.iter().copied().take(500), false);
    world.settle_and_audit();
    let (_, disk) = levels(&world);
    assert!(disk.reads > 400 && disk.nr_blocks < disk.writes, "{disk:?}");
    assert_eq!(world.count(Event::Pgpgin) - ins, disk.reads * PAGE_SIZE / 1024);
    assert!(world.contents.nr_checked > checked);
    world.exit(task.0);
    world.settle_and_audit();
    assert_eq!((levels(&world).0.orig_bytes, levels(&world).1.nr_blocks), (0, 0));
}

#[test]
fn huge_pages_are_written_without_a_mark() {
    let (mut world, task) = world(Some(5000));
    let huge = levels(&world).0.huge_pages;
    assert_eq!(write_back(&mut world, task.0, ZramWritebackMode::HugeIdle), Outcome::Minor);
    assert_eq!(levels(&world).1.writes, 0);
    assert_eq!(write_back(&mut world, task.0, ZramWritebackMode::Huge), Outcome::Minor);
    let (after, disk) = levels(&world);
    // kswapd may store more in that time.
    assert!(huge > 200 && disk.writes >= huge && after.huge_pages == 0, "{huge} {disk:?}");
    assert!(after.compr_bytes > 0, "compressed pages stay");
    world.machine.write_zram(ZramWrite::Idle);
    assert_eq!(write_back(&mut world, task.0, ZramWritebackMode::HugeIdle), Outcome::Minor);
    assert_eq!(levels(&world).0.compr_bytes, after.compr_bytes);
}

#[test]
fn limits_end_a_writeback() {
    let refused = |errno| Outcome::Refused(errno);
    let (mut small, task) = world(Some(101));
    small.machine.write_zram(ZramWrite::Idle);
    assert_eq!(write_back(&mut small, task.0, ALL_IDLE), refused(Errno::Enospc));
    assert_eq!(levels(&small).1.nr_blocks, 100, "block 0 is not used");
    small.access_all(task, 0..4000, false);
    small.settle_and_audit();
    assert!(levels(&small).1.nr_blocks < 100);

    let (mut limited, task) = world(Some(5000));
    limited.machine.write_zram(ZramWrite::Limit(30));
    limited.machine.write_zram(ZramWrite::LimitEnable(true));
    limited.machine.write_zram(ZramWrite::Idle);
    assert_eq!(write_back(&mut limited, task.0, ALL_IDLE), refused(Errno::Eio));
    assert_eq!(levels(&limited).1.writes, 30);
    limited.machine.write_zram(ZramWrite::LimitEnable(false));
    assert_eq!(write_back(&mut limited, task.0, ALL_IDLE), Outcome::Minor);

    let (mut bare, task) = world(None);
    bare.machine.write_zram(ZramWrite::Limit(30));
    assert_eq!(write_back(&mut bare, task.0, ALL_IDLE), refused(Errno::Enodev));
    assert_eq!(bare.machine.zram_levels().unwrap().backing, None);
    assert_eq!(bare.machine.swap().zrams().next().unwrap().bd_stat(), None);
}

#[test]
fn a_page_that_the_disk_refuses_stays_in_memory() {
    let (mut world, task) = world(Some(5000));
    let stored = levels(&world).0.orig_bytes;
    world.fail_every = 3;
    world.machine.write_zram(ZramWrite::Idle);
    let outcome = write_back(&mut world, task.0, ALL_IDLE);
    assert_eq!(outcome, Outcome::Refused(Errno::Eio));
    let (after, disk) = levels(&world);
    assert_eq!(disk.nr_blocks, disk.writes);
    assert!(disk.writes > 100 && disk.writes * PAGE_SIZE < stored * 3 / 4, "{disk:?}");
    assert!(after.compr_bytes > 0);
    world.fail_every = 0;
    world.access_all(task, 0..4000, false);
    world.settle_and_audit();
}

#[test]
fn a_page_freed_during_its_write_is_forgotten() {
    let (mut world, (mm, vma)) = world(Some(5000));
    world.machine.write_zram(ZramWrite::Idle);
    let mut call = ProcessCall::zram_writeback(mm, NodeId(0), ALL_IDLE);
    while world.inflight.is_empty() {
        assert_eq!(world.drive_once(&mut call), None);
    }
    world.machine.audit().unwrap();
    // The task ends, too: its write is cancelled, and the buffer goes when the disk is done.
    let cpu = world.cpu();
    let effects = world.machine.cancel(call, cpu).collect();
    world.carry_out(effects);
    world.munmap(vma);
    world.machine.audit().unwrap();
    world.exit(mm);
    world.settle_and_audit();
    let (_, disk) = levels(&world);
    assert_eq!((disk.nr_blocks, disk.writes), (0, 1));
}
