//! Compaction on whole machines: its results, what it does not move, and failures.

use crate::world::{TestWorld, CPU};
use pagetide_core::config::{BackgroundCompaction, CompactionPolicy, Config, KswapdPolicy, Thp};
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::frames::page::{Page, PageFlags, Place};
use pagetide_core::interface::effect::{Effect, Step};
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::Machine;
use pagetide_core::process::MmId;
use pagetide_core::process::ProcessCall;
use pagetide_core::stats::vmstat::{Event, NodeStat};
use pagetide_core::units::{NodeId, Pfn, PAGE_SIZE};

const NODE: NodeId = NodeId(0);

/// A machine with alternating frames of anonymous memory and free ones.
struct Fragmented {
    world: TestWorld,
    mm: MmId,
    heap: VmaId,
    /// Number of pages of the heap.
    pages: u64,
}

fn fragmented(mib: u64, config: Config) -> Fragmented {
    let mut world = TestWorld::of(mib, 1, config, 1024).unaudited();
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    // All free memory above the low watermarks.
    let pages = (world.machine.mem.nr_free_pages() - 2600) / 2;
    let heap = world.map(mm, Backing::Anon, pages, Advice::Normal);
    let file = world.machine.create_file(pages * PAGE_SIZE, true).unwrap();
    for page in 0..pages {
        world.access(mm, heap, page, true);
        world.drive(&mut ProcessCall::write(mm, NODE, file, page * PAGE_SIZE, PAGE_SIZE));
    }
    write_back(&mut world);
    let mut buffer = Vec::new();
    world.machine.drop_pagecache(CPU).drain_into(&mut buffer);
    world.kswapd_to_sleep();
    world.machine.audit().unwrap();
    world.audit = true;
    Fragmented { world, mm, heap, pages }
}

/// Runs the flusher until no page is dirty.
fn write_back(world: &mut TestWorld) {
    world.settle();
    while world.stat(NodeStat::NrDirty) > 0 {
        world.now += 40_000_000_000;
        world.flusher();
        world.settle();
    }
}

impl Fragmented {
    fn count(&self, event: Event) -> u64 {
        self.world.count(event)
    }

    fn block(&mut self, order: u8, gfp: Gfp) -> Option<Pfn> {
        match self.world.drive(&mut ProcessCall::alloc_pages(self.mm, NODE, order, gfp)) {
            Outcome::Block(pfn) => Some(pfn),
            Outcome::NoBlock => None,
            other => panic!("{other:?}"),
        }
    }

    fn free_blocks(&self, order: usize) -> u64 {
        self.world.machine.mem.nodes[0].zones.iter().map(|zone| zone.buddyinfo()[order]).sum()
    }

    fn free_pages(&self) -> u64 {
        self.world.machine.mem.free_pages()
            + self.world.machine.mem.nodes[0].zones.iter().map(|zone| zone.pcp_pages()).sum::<u64>()
    }

    fn large_blocks(&self) -> u64 {
        self.free_blocks(9) + 2 * self.free_blocks(10)
    }
}

#[test]
fn every_other_page_free_is_nothing_large_free() {
    let machine = fragmented(64, Config::default());
    assert!(machine.large_blocks() <= 4, "{} large blocks", machine.large_blocks());
    assert!(machine.free_pages() > machine.pages * 9 / 10);
}

#[test]
fn a_write_to_compact_memory_gathers_what_is_free() {
    let mut machine = fragmented(64, Config::default());
    let (free, resident) =
        (machine.free_pages(), machine.world.machine.is_resident(machine.heap, 7));
    assert!(resident);
    machine.world.drive(&mut ProcessCall::compact_memory(machine.mm, NODE));
    assert_eq!(machine.free_pages(), free, "free pages came or went");
    // Per zone: frames that boot scattered, a rest smaller than a block, kept slabs.
    let possible = free / 512 - 5;
    machine.world.machine.mem.drain_all();
    assert!(machine.large_blocks() >= possible, "{} of {possible} blocks", machine.large_blocks());
    for page in 0..machine.pages {
        assert!(machine.world.machine.is_resident(machine.heap, page), "page {page} is gone");
    }
    // Where the scanners meet, in each zone.
    assert!(machine.count(Event::PgmigrateFail) <= 2);
    assert_eq!(machine.world.stat(NodeStat::NrIsolatedAnon), 0);
}

#[test]
fn no_page_is_moved_into_a_pageblock_that_is_free_as_a_whole() {
    let mut machine = fragmented(64, Config::default());
    machine.world.drive(&mut ProcessCall::compact_memory(machine.mm, NODE));
    machine.world.machine.mem.drain_all();
    let whole = |machine: &Fragmented| -> Vec<usize> {
        let pages = &machine.world.machine.mem.pages;
        let heads = (0..pages.len()).step_by(512);
        let is_free = |page: &Page| page.place == Place::Buddy && page.private >= 9;
        heads.filter(|&at| is_free(&pages.peek(at))).collect()
    };
    let before = whole(&machine);
    assert!(before.len() > 4);
    machine.world.drive(&mut ProcessCall::compact_memory(machine.mm, NODE));
    let after = whole(&machine);
    assert!(before.iter().all(|at| after.contains(at)), "{before:?} {after:?}");
}

#[test]
fn a_task_that_may_compacts_for_itself() {
    let mut machine = fragmented(64, Config::default());
    let got = (0..8).filter(|_| machine.block(9, Gfp::KERNEL.with(Gfp::HIGH)).is_some()).count();
    assert_eq!(got, 8);
    assert!(machine.count(Event::CompactStall) > 0);
    assert_eq!(
        machine.count(Event::CompactStall),
        machine.count(Event::CompactSuccess) + machine.count(Event::CompactFail)
    );
    assert!(machine.count(Event::PgmigrateSuccess) > 8 * 200);
}

#[test]
fn an_order_above_the_largest_is_refused() {
    let mut machine = fragmented(32, Config::default());
    for order in [11, 12, 63, 255] {
        assert_eq!(machine.block(order, Gfp::KERNEL), None);
    }
    assert_eq!(machine.count(Event::CompactStall), 0);
}

#[test]
fn a_failed_copy_leaves_the_page_where_it_was() {
    let mut machine = fragmented(32, Config::default());
    machine.world.fail_copies = 3;
    let free = machine.free_pages();
    machine.world.drive(&mut ProcessCall::compact_memory(machine.mm, NODE));
    assert!(machine.count(Event::PgmigrateFail) > 100);
    assert!(machine.count(Event::PgmigrateSuccess) > 100);
    assert_eq!(machine.free_pages(), free);
    for page in 0..machine.pages {
        assert!(machine.world.machine.is_resident(machine.heap, page), "page {page} is gone");
    }
}

#[test]
fn a_touch_of_a_migrating_page_waits() {
    let mut machine = fragmented(32, Config::default());
    machine.world.holds_copies = true;
    let mut call = ProcessCall::compact_memory(machine.mm, NODE);
    let mut waited = 0;
    for _ in 0..200 {
        let step = machine.world.step(&mut call);
        let moving =
            (0..machine.pages).find(|&page| !machine.world.machine.is_resident(machine.heap, page));
        if let Some(page) = moving {
            machine.world.access(machine.mm, machine.heap, page, true);
            assert!(machine.world.machine.is_resident(machine.heap, page));
            waited += 1;
        }
        machine.world.finish_copies();
        if matches!(step, Step::Done(_)) {
            break;
        }
    }
    assert!(waited > 10, "{waited}");
}

#[test]
fn a_task_that_dies_in_the_middle_leaves_nothing_behind() {
    let mut machine = fragmented(32, Config::default());
    while machine.block(9, Gfp::ATOMIC).is_some() {}
    machine.world.holds_copies = true;
    let free = machine.free_pages();
    let other = machine.world.machine.create_mm(Machine::ROOT).unwrap();
    let mut call = ProcessCall::alloc_pages(other, NODE, 9, Gfp::KERNEL.with(Gfp::HIGH));
    let mut steps = 0;
    while machine.world.copies.is_empty() {
        let step = machine.world.step(&mut call);
        assert!(!matches!(step, Step::Done(_)), "done without a copy");
        steps += 1;
        assert!(steps < 100);
    }
    drop(call);
    let buffer = machine.world.machine.exit_mm(other, CPU).unwrap().collect();
    machine.world.carry_out(buffer);
    machine.world.finish_copies();
    machine.world.machine.audit().unwrap();
    assert_eq!(machine.free_pages(), free);
    assert_eq!(machine.world.stat(NodeStat::NrIsolatedAnon), 0);
}

#[test]
fn the_owner_may_go_while_its_pages_are_on_their_way() {
    let mut machine = fragmented(32, Config::default());
    machine.world.holds_copies = true;
    let other = machine.world.machine.create_mm(Machine::ROOT).unwrap();
    let mut call = ProcessCall::compact_memory(other, NODE);
    while machine.world.copies.is_empty() {
        machine.world.step(&mut call);
    }
    machine.world.munmap(machine.heap);
    machine.world.machine.audit().unwrap();
    machine.world.finish_copies();
    machine.world.machine.audit().unwrap();
    assert_eq!(machine.world.stat(NodeStat::NrAnonPages), 0);
    machine.world.drive(&mut call);
    machine.world.machine.audit().unwrap();
}

fn of_2016(background: BackgroundCompaction) -> Config {
    Config {
        kswapd: KswapdPolicy::Linux45,
        compaction: CompactionPolicy::Linux45,
        background_compaction: background,
        ..Config::default()
    }
}

/// The kswapd of 6.1 with the patch that makes kswapd compact again.
fn patched() -> Config {
    Config { background_compaction: BackgroundCompaction::Kswapd, ..Config::default() }
}

/// The finding of the original mail: no compaction for a request that only wakes kswapd.
#[test]
fn a_kswapd_that_compacts_never_does_for_requests_that_only_wake_it() {
    for config in [of_2016(BackgroundCompaction::Kswapd), patched()] {
        let mut machine = fragmented(64, config);
        for _ in 0..50 {
            machine.block(9, Gfp::NOWAIT.with(Gfp::HIGH));
            machine.world.now += 125_000_000;
            machine.world.kswapd_to_sleep();
        }
        assert_eq!(machine.count(Event::CompactKswapd), 0);
        assert_eq!(machine.count(Event::CompactMigrateScanned), 0);
        assert!(machine.count(Event::MmVmscanKswapdWake) > 10);
        assert_eq!(machine.count(Event::CompactDaemonWake), 0);
    }
}

/// Finding nothing to reclaim is no failure: 16 failures would stop kswapd.
#[test]
fn requests_for_blocks_do_not_make_kswapd_give_up() {
    let mut machine = fragmented(64, patched());
    for _ in 0..50 {
        machine.block(9, Gfp::NOWAIT.with(Gfp::HIGH));
        machine.world.now += 125_000_000;
        machine.world.kswapd_to_sleep();
    }
    let wakes = machine.count(Event::MmVmscanKswapdWake);
    assert!(wakes >= 40, "{wakes} wake-ups");
}

#[test]
fn kcompactd_compacts_for_requests_that_only_wake_kswapd() {
    for config in [of_2016(BackgroundCompaction::Kcompactd), Config::default()] {
        let mut machine = fragmented(64, config);
        let mut got = 0;
        for _ in 0..50 {
            got += u32::from(machine.block(9, Gfp::NOWAIT.with(Gfp::HIGH)).is_some());
            machine.world.now += 250_000_000;
            machine.world.kswapd_to_sleep();
            if machine.world.kcompactd_awake {
                machine.world.kcompactd();
            }
        }
        assert!(machine.count(Event::CompactDaemonWake) > 0);
        assert!(got >= 8, "{got} blocks");
        assert_eq!(machine.count(Event::CompactStall), 0);
    }
}

/// Kernel memory in every second frame: no larger block can be made.
fn spoilt(gfp: Gfp) -> Fragmented {
    let mut world = TestWorld::of(64, 1, Config::default(), 0).unaudited();
    let (mm, heap) = world.heap(1, Advice::Normal);
    let mut machine = Fragmented { world, mm, heap, pages: 0 };
    let mut held = Vec::new();
    while let Some(pfn) = machine.block(0, gfp) {
        held.push(pfn);
    }
    // There is enough free memory to compact with, but no two adjacent free frames.
    for pfn in held.into_iter().filter(|pfn| pfn.0 % 2 == 0) {
        assert!(machine.world.machine.free_kernel_block(machine.mm, pfn, CPU));
    }
    machine.world.machine.mem.drain_all();
    machine
}

#[test]
fn only_failures_of_synchronous_compaction_defer_the_next() {
    let mut machine = spoilt(Gfp::ATOMIC);
    // An optional huge page: always asynchronous.
    let light = Gfp::TRANSHUGE.with(Gfp::NORETRY);
    let before = machine.count(Event::CompactStall);
    for _ in 0..20 {
        assert_eq!(machine.block(9, light), None);
    }
    let asynchronous = machine.count(Event::CompactStall) - before;
    assert!(asynchronous >= 20, "{asynchronous}");
    // Synchronous: tries, fails, and skips 1, 3, 7 ... requests.
    let before = machine.count(Event::CompactMigrateScanned);
    assert_eq!(machine.block(9, Gfp::KERNEL), None);
    let once = machine.count(Event::CompactMigrateScanned) - before;
    assert!(once > 0);
    let before = machine.count(Event::CompactMigrateScanned);
    for _ in 0..40 {
        assert_eq!(machine.block(9, Gfp::KERNEL), None);
    }
    let forty = machine.count(Event::CompactMigrateScanned) - before;
    assert!(forty < 20 * once, "{forty} pages scanned in forty, {once} in one");
}

#[test]
fn a_page_on_its_way_is_not_written_meanwhile() {
    let mut world = TestWorld::of(32, 1, Config::default(), 0).unaudited();
    let pages = 3000;
    let (mm, heap) = world.heap(pages, Advice::Normal);
    let file = world.create_file(pages * PAGE_SIZE, true);
    let map = world.map(mm, Backing::File(file), pages, Advice::Random);
    for page in 0..pages {
        world.access(mm, heap, page, true);
        world.access(mm, map, page, true);
    }
    world.munmap(heap);
    world.settle();
    let mut machine = Fragmented { world, mm, heap, pages };
    machine.world.audit = true;
    machine.world.holds_copies = true;
    let mut call = ProcessCall::compact_memory(machine.mm, NODE);
    let mut seen = 0;
    for _ in 0..2000 {
        let step = machine.world.step(&mut call);
        seen += (0..pages).filter(|&page| !machine.world.machine.is_resident(map, page)).count();
        machine.world.now += 40_000_000_000;
        machine.world.flusher_awake = true;
        machine.world.flusher();
        machine.world.finish_copies();
        machine.world.settle();
        // A writable entry must be dirty; otherwise a store would go unnoticed.
        for page in 0..pages {
            let pte = machine.world.machine.vma(map).unwrap().ptes[page as usize];
            let clean = pte.is_present() && {
                !machine.world.machine.mem.pages[pte.pfn()].has(PageFlags::DIRTY)
            };
            assert!(!(clean && pte.is_dirty()), "page {page} is clean and mapped writable");
        }
        if matches!(step, Step::Done(_)) {
            break;
        }
    }
    assert!(seen > 0, "no page of the file was moved");
}

#[test]
fn khugepaged_that_is_switched_off_in_the_middle_gives_everything_back() {
    let config = Config { thp: Thp::Always, ..Config::default() };
    let mut machine = fragmented(64, Config { thp: Thp::Never, ..config });
    while machine.block(9, Gfp::ATOMIC).is_some() {}
    machine
        .world
        .machine
        .write_control("transparent_hugepage.enabled", "always")
        .unwrap()
        .discard();
    // khugepaged scans address spaces that have faulted in a large enough region since.
    let more = machine.world.map(machine.mm, Backing::Anon, 1024, Advice::Normal);
    machine.world.access(machine.mm, more, 0, true);
    machine.world.fail_copies = 3;
    machine.world.holds_copies = true;
    let free = machine.free_pages();
    let mut steps = 0;
    while machine.world.copies.is_empty() {
        machine.world.khugepaged();
        steps += 1;
        assert!(steps < 10_000, "khugepaged never compacts");
    }
    machine.world.machine.write_control("transparent_hugepage.enabled", "never").unwrap().discard();
    machine.world.khugepaged();
    machine.world.finish_copies();
    machine.world.machine.audit().unwrap();
    assert_eq!(machine.free_pages(), free);
}

#[test]
fn the_scanners_never_cross() {
    let mut machine = fragmented(64, Config::default());
    let mut call = ProcessCall::compact_memory(machine.mm, NODE);
    let mut moved = 0;
    loop {
        let (step, effects) = machine.world.machine.step(&mut call, CPU, 0);
        let mut buffer = Vec::new();
        effects.drain_into(&mut buffer);
        for effect in &buffer {
            if let Effect::CopyPage { from, to } = effect {
                assert!(from < to, "{from:?} moves down to {to:?}");
                moved += 1;
            }
        }
        machine.world.carry_out(buffer);
        if matches!(step, Step::Done(_)) {
            break;
        }
    }
    assert!(moved > 1000, "{moved}");
}

#[test]
fn a_pinned_page_is_never_moved() {
    let mut machine = fragmented(32, Config::default());
    let frame = |machine: &Fragmented, page: u64| {
        machine.world.machine.vma(machine.heap).unwrap().ptes[page as usize].pfn()
    };
    let before: Vec<Pfn> = (0..machine.pages).map(|page| frame(&machine, page)).collect();
    let pinned = |page: u64| page.is_multiple_of(10);
    for page in (0..machine.pages).filter(|&page| pinned(page)) {
        assert_eq!(machine.world.machine.pin(machine.heap, page, true), Ok(before[page as usize]));
    }
    machine.world.drive(&mut ProcessCall::compact_memory(machine.mm, NODE));
    let stays = |page: &u64| frame(&machine, *page) == before[*page as usize];
    assert!((0..machine.pages).filter(|&page| pinned(page)).all(|page| stays(&page)));
    assert!(!(0..machine.pages).all(|page| stays(&page)), "nothing was moved");
}

#[test]
fn dirty_blocks_of_a_file_system_stay_where_they_are() {
    let moved = |metadata: bool, clean: bool| {
        let mut machine = fragmented(64, Config::default());
        let world = &mut machine.world;
        let file = world.machine.create_file(400 * PAGE_SIZE, true).unwrap();
        if metadata {
            world.machine.set_metadata(file).unwrap();
        }
        world.audit = false;
        for page in 0..400 {
            world.drive(&mut ProcessCall::write(
                machine.mm,
                NODE,
                file,
                page * PAGE_SIZE,
                PAGE_SIZE,
            ));
        }
        world.audit = true;
        if clean {
            write_back(world);
        }
        let places = |machine: &Fragmented| -> Vec<Option<Pfn>> {
            let file = machine.world.machine.file(file).unwrap();
            (0..400).map(|page| file.get(page)).collect()
        };
        let before = places(&machine);
        assert!(before.iter().all(Option::is_some));
        let failed = machine.count(Event::PgmigrateFail);
        machine.world.drive(&mut ProcessCall::compact_memory(machine.mm, NODE));
        machine.world.machine.audit().unwrap();
        let after = places(&machine);
        let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
        (moved, machine.count(Event::PgmigrateFail) - failed)
    };
    let (ordinary, _) = moved(false, false);
    assert!(ordinary > 50, "{ordinary}");
    let (held, failed) = moved(true, false);
    assert_eq!(held, 0);
    assert!(failed > 50, "{failed}");
    assert!(moved(true, true).0 > 50, "written pages may move");
}

#[test]
fn there_must_be_a_file_to_be_metadata() {
    let mut machine = fragmented(32, Config::default());
    let none = pagetide_core::units::FileId(99);
    assert!(machine.world.machine.set_metadata(none).is_err());
}
