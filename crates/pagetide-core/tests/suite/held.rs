//! Pinned and locked pages in a machine that is short of memory.

use crate::world::{TestWorld, CPU};
use pagetide_core::config::{Config, Thp};
use pagetide_core::frames::pin::PinError;
use pagetide_core::interface::bad_id::BadId;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::{Machine, MapError, MmId, ProcessCall};
use pagetide_core::stats::vmstat::{Event, NodeStat};
use pagetide_core::units::{Cpu, NodeId, Pfn, HPAGE_PMD_NR, PAGE_SIZE};
use proptest::prelude::*;

const MEMORY: u64 = 24 << 20;

fn world_of(memory: u64, config: Config) -> (TestWorld, MmId) {
    let mut world = TestWorld::of(memory >> 20, 2, config, 1 << 16).unaudited();
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    (world, mm)
}

fn map(world: &mut TestWorld, mm: MmId, pages: u64) -> VmaId {
    world.map(mm, Backing::Anon, pages, Advice::Normal)
}

/// Writes enough new pages to evict every evictable page.
fn press(world: &mut TestWorld, mm: MmId) {
    let pages = 2 * MEMORY / PAGE_SIZE;
    let heap = map(world, mm, pages);
    world.fill((mm, heap), 0..pages);
    world.munmap(heap);
    world.settle_and_audit();
}

#[test]
fn a_pinned_page_stays_and_its_neighbours_go() {
    let (mut world, mm) = world_of(MEMORY, Config::default());
    let file = world.create_file(64 * PAGE_SIZE, false);
    let shared = world.map(mm, Backing::File(file), 64, Advice::Normal);
    let heap = map(&mut world, mm, 64);
    let mut pins = Vec::new();
    for page in 0..64 {
        world.access(mm, heap, page, true);
        world.access(mm, shared, page, false);
        if page % 2 == 0 {
            let anon = world.machine.pin(heap, page, true).unwrap();
            let cached = world.machine.pin(shared, page, false).unwrap();
            pins.push((page, anon, cached));
        }
    }
    press(&mut world, mm);
    for &(page, anon, cached) in &pins {
        let frame = |vma| world.machine.vma(vma).unwrap().ptes[page as usize].pfn();
        assert!(world.machine.is_resident(heap, page) && world.machine.is_resident(shared, page));
        assert_eq!((frame(heap), frame(shared)), (anon, cached));
    }
    let gone = (0..64).filter(|&page| !world.machine.is_resident(heap, page)).count();
    assert!(gone > 16, "{gone} of 32 unpinned pages are gone");
    for &(_, anon, cached) in &pins {
        world.machine.unpin(anon, CPU).unwrap();
        world.machine.unpin(cached, CPU).unwrap();
    }
    press(&mut world, mm);
    let stay = pins.iter().filter(|&&(page, ..)| world.machine.is_resident(heap, page)).count();
    assert!(stay < 16, "{stay} of 32 pages stay after their unpin");
}

#[test]
fn pins_are_counted_and_outlive_their_mapping() {
    let (mut world, mm) = world_of(MEMORY, Config::default());
    let heap = map(&mut world, mm, 4);
    assert_eq!(world.machine.pin(heap, 0, false), Err(PinError::NotPresent));
    // A read maps the zero page, which has no frame.
    world.access(mm, heap, 0, false);
    assert_eq!(world.machine.pin(heap, 0, false), Err(PinError::NotPresent));
    world.access(mm, heap, 0, true);
    let pfn = world.machine.pin(heap, 0, true).unwrap();
    assert_eq!(world.machine.pin(heap, 0, false), Ok(pfn));
    assert_eq!(world.machine.pin_count(pfn), 2);
    world.machine.unpin(pfn, CPU).unwrap();
    let used = world.machine.memcgs()[0].charged;
    world.munmap(heap);
    world.machine.audit().unwrap();
    let user = |world: &TestWorld| world.machine.memcgs()[0].charged;
    // The page table is gone, the pinned page is not.
    assert_eq!(user(&world), used - 1);
    world.machine.unpin(pfn, CPU).unwrap();
    assert_eq!(user(&world), used - 2);
    assert_eq!(world.machine.unpin(pfn, CPU), Err(PinError::NotPinned(pfn)));
    assert_eq!(world.machine.pin_frame(pfn), Err(BadId::Frame(pfn).into()), "it is free");
    assert_eq!(world.machine.unpin(Pfn::NONE, CPU), Err(BadId::Frame(Pfn::NONE).into()));
    let acquired = world.count(Event::NrFollPinAcquired);
    assert_eq!(acquired, world.count(Event::NrFollPinReleased));
    assert_eq!(acquired, 2);
    world.machine.audit().unwrap();
}

fn huge_world() -> (TestWorld, MmId, VmaId, Pfn) {
    let (mut world, mm) = world_of(64 << 20, Config { thp: Thp::Always, ..Config::default() });
    let heap = map(&mut world, mm, 2 * HPAGE_PMD_NR);
    world.access(mm, heap, 5, true);
    let head = world.machine.vma(heap).unwrap().ptes[0].pfn();
    assert_eq!(world.stat(NodeStat::NrAnonTransparentHugepages), 1);
    (world, mm, heap, head)
}

#[test]
fn a_pinned_huge_page_is_not_split_and_outlives_its_mapping_whole() {
    let (mut world, _, heap, head) = huge_world();
    let tail = world.machine.pin(heap, 17, true).unwrap();
    assert_eq!(tail, Pfn(head.0 + 17));
    assert_eq!(world.machine.pin_count(head), 1);
    assert!(!world.machine.split_huge_page(head));
    world.munmap(heap);
    world.machine.audit().unwrap();
    assert_eq!(world.machine.memcgs()[0].charged, HPAGE_PMD_NR);
    world.machine.unpin(tail, CPU).unwrap();
    world.machine.audit().unwrap();
    assert_eq!(world.machine.memcgs()[0].charged, 0);
}

#[test]
fn locked_pages_are_unevictable_those_that_come_later_too() {
    let (mut world, mm) = world_of(MEMORY, Config::default());
    let heap = map(&mut world, mm, 128);
    world.fill((mm, heap), 0..32);
    world.machine.mlock(heap, 0, 64, CPU).unwrap();
    world.machine.audit().unwrap();
    assert_eq!(world.machine.nr_mlock(), 32);
    assert_eq!(world.stat(NodeStat::NrUnevictable), 32);
    world.fill((mm, heap), 32..128);
    assert_eq!(world.machine.nr_mlock(), 64);
    press(&mut world, mm);
    assert!((0..64).all(|page| world.machine.is_resident(heap, page)));
    assert!(!(64..128).all(|page| world.machine.is_resident(heap, page)));
    assert_eq!(world.stat(NodeStat::NrUnevictable), 64);
    let meminfo = world.machine.proc_meminfo();
    assert!(meminfo.lines().any(|line| line == "Mlocked:             256 kB"), "{meminfo}");

    world.machine.munlock(heap, 0, 16, CPU).unwrap();
    assert_eq!(world.machine.nr_mlock(), 48);
    assert_eq!(world.count(Event::UnevictablePgsMunlocked), 16);
    assert_eq!(world.count(Event::UnevictablePgsRescued), 16);
    assert!(matches!(world.machine.discard(heap, 60, 10, CPU), Err(MapError::Locked)));
    world.discard(heap, 64, 64).unwrap();
    world.munmap(heap);
    world.machine.audit().unwrap();
    assert_eq!(world.machine.nr_mlock(), 0);
    assert_eq!(world.stat(NodeStat::NrUnevictable), 0);
    assert_eq!(world.count(Event::UnevictablePgsMlocked), 64);
    assert_eq!(world.count(Event::UnevictablePgsCulled), 64);
    assert_eq!(world.count(Event::UnevictablePgsMunlocked), 64);
}

#[test]
fn a_file_page_is_locked_as_long_as_one_locked_mapping_has_it() {
    let (mut world, mm) = world_of(MEMORY, Config::default());
    let file = world.create_file(16 * PAGE_SIZE, false);
    let maps = [0, 1, 2].map(|_| world.map(mm, Backing::File(file), 16, Advice::Normal));
    for (at, &map) in maps.iter().enumerate() {
        if at < 2 {
            world.machine.mlock(map, 0, 16, CPU).unwrap();
        }
        world.access_all((mm, map), 0..16, false);
    }
    world.machine.audit().unwrap();
    assert_eq!(world.machine.nr_mlock(), 16);
    world.machine.munlock(maps[0], 0, 16, CPU).unwrap();
    world.machine.audit().unwrap();
    assert_eq!(world.machine.nr_mlock(), 16);
    world.munmap(maps[1]);
    world.machine.audit().unwrap();
    assert_eq!(world.machine.nr_mlock(), 0);
}

#[test]
fn a_huge_page_is_locked_whole_or_split_where_the_lock_ends() {
    let (mut world, _, heap, _) = huge_world();
    world.machine.mlock(heap, 0, HPAGE_PMD_NR, CPU).unwrap();
    world.machine.audit().unwrap();
    assert_eq!(world.machine.nr_mlock(), HPAGE_PMD_NR);
    world.machine.munlock(heap, 100, 50, CPU).unwrap();
    world.machine.audit().unwrap();
    assert_eq!(world.machine.nr_mlock(), HPAGE_PMD_NR - 50);
    assert_eq!(world.count(Event::ThpSplitPage), 1);
}

#[test]
fn a_part_that_was_locked_of_a_pinned_huge_page_is_unevictable_when_reclaim_splits_it() {
    let (mut world, mm, heap, head) = huge_world();
    world.machine.pin_frame(head).unwrap();
    world.machine.mlock(heap, 0, 10, CPU).unwrap();
    assert_eq!(world.machine.nr_mlock(), 0, "pinned, so neither split nor locked");
    world.machine.unpin(head, CPU).unwrap();
    let pages = 2 * (64 << 20) / PAGE_SIZE;
    let other = world.map(mm, Backing::Anon, pages, Advice::NoHuge);
    world.fill((mm, other), 0..pages);
    world.machine.audit().unwrap();
    assert_eq!(world.machine.nr_mlock(), 10);
    assert!((0..10).all(|page| world.machine.is_resident(heap, page)));
    assert!(!(10..HPAGE_PMD_NR).any(|page| world.machine.is_resident(heap, page)));
}

/// Compacts a machine with a locked heap. Returns how many of the heap's pages have moved.
fn moved_by_compaction(allowed: &str) -> usize {
    let (mut world, mm) = world_of(MEMORY, Config::default());
    world.machine.write_control("vm.compact_unevictable_allowed", allowed).unwrap().discard();
    let pages = 2048;
    let heap = map(&mut world, mm, pages);
    world.fill((mm, heap), 0..pages);
    for page in (1..pages).step_by(2) {
        world.discard(heap, page, 1).unwrap();
    }
    world.machine.mlock(heap, 0, pages, CPU).unwrap();
    let frames = |world: &TestWorld| -> Vec<Pfn> {
        let vma = world.machine.vma(heap).unwrap();
        (0..pages).step_by(2).map(|page| vma.ptes[page as usize].pfn()).collect()
    };
    let before = frames(&world);
    world.drive(&mut ProcessCall::compact_memory(mm, NodeId(0)));
    world.machine.audit().unwrap();
    assert_eq!(world.machine.nr_mlock(), pages / 2);
    frames(&world).iter().zip(&before).filter(|(now, before)| now != before).count()
}

#[test]
fn compaction_moves_locked_pages_if_it_may() {
    assert_eq!(moved_by_compaction("0"), 0);
    assert!(moved_by_compaction("1") > 100);
}

#[test]
fn a_lock_or_its_end_is_seen_by_a_page_that_is_on_its_way() {
    for locks_first in [false, true] {
        let (mut world, mm) = world_of(MEMORY, Config::default());
        let pages = 1024;
        let heap = map(&mut world, mm, pages);
        world.fill((mm, heap), 0..pages);
        for page in (1..pages).step_by(2) {
            world.discard(heap, page, 1).unwrap();
        }
        if locks_first {
            world.machine.mlock(heap, 0, pages, CPU).unwrap();
        }
        world.holds_copies = true;
        let mut call = ProcessCall::compact_memory(mm, NodeId(0));
        while world.copies.is_empty() {
            let effects = world.machine.step(&mut call, CPU, world.now).1.collect();
            world.carry_out(effects);
        }
        match locks_first {
            true => world.machine.munlock(heap, 0, pages, CPU).unwrap(),
            false => world.machine.mlock(heap, 0, pages, CPU).unwrap(),
        }
        world.machine.audit().unwrap();
        world.finish_copies();
        world.machine.audit().unwrap();
        assert_eq!(world.machine.nr_mlock(), if locks_first { 0 } else { pages / 2 });
    }
}

/// An operation on two heaps and two mappings of a file.
#[derive(Clone, Copy, Debug)]
enum HeldOp {
    Touch { vma: usize, page: u64, nr: u64, write: bool },
    Lock { vma: usize, page: u64, nr: u64, locked: bool },
    Discard { vma: usize, page: u64, nr: u64 },
    Pin { vma: usize, page: u64, write: bool },
    Unpin { which: usize },
    Remap { vma: usize },
    Kcompactd,
    Khugepaged,
    Compact,
    DropCaches,
}

fn ops() -> impl Strategy<Value = HeldOp> {
    let vma = 0..4usize;
    let page = 0..1024u64;
    prop_oneof![
        8 => (vma.clone(), page.clone(), 1..600u64, any::<bool>())
            .prop_map(|(vma, page, nr, write)| HeldOp::Touch { vma, page, nr, write }),
        4 => (vma.clone(), page.clone(), 0..700u64, any::<bool>())
            .prop_map(|(vma, page, nr, locked)| HeldOp::Lock { vma, page, nr, locked }),
        2 => (vma.clone(), page.clone(), 1..600u64)
            .prop_map(|(vma, page, nr)| HeldOp::Discard { vma, page, nr }),
        4 => (vma.clone(), page, any::<bool>())
            .prop_map(|(vma, page, write)| HeldOp::Pin { vma, page, write }),
        3 => (0..64usize).prop_map(|which| HeldOp::Unpin { which }),
        1 => vma.prop_map(|vma| HeldOp::Remap { vma }),
        1 => Just(HeldOp::Kcompactd),
        2 => Just(HeldOp::Khugepaged),
        1 => Just(HeldOp::Compact),
        1 => Just(HeldOp::DropCaches),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn held_pages_stay_whatever_happens(
        ops in prop::collection::vec(ops(), 1..60), huge in any::<bool>(), seed in 1u64..1000
    ) {
        let thp = if huge { Thp::Always } else { Thp::Never };
        let (mut world, mm) = world_of(16 << 20, Config { thp, ..Config::default() });
        world.random = seed;
        let file = world.create_file(1024 * PAGE_SIZE, false);
        let backing = |at: usize| if at < 2 { Backing::Anon } else { Backing::File(file) };
        let mut vmas = [0, 1, 2, 3].map(|at| {
            world.map(mm, backing(at), 1024, Advice::Normal)
        });
        // Pinned frame, and its page when it was pinned; `None` once the mapping is gone.
        let mut pins: Vec<(Pfn, Option<(VmaId, u64)>)> = Vec::new();
        for op in ops {
            match op {
                HeldOp::Touch { vma, page, nr, write } => {
                    for page in page..(page + nr).min(1024) {
                        world.access(mm, vmas[vma], page, write);
                    }
                }
                HeldOp::Lock { vma, page, nr, locked: true } => {
                    // Keep the machine from running out of evictable memory.
                    let nr = nr.min(1024 - page);
                    if world.machine.nr_mlock() + nr < 1500 {
                        world.machine.mlock(vmas[vma], page, nr, CPU).unwrap();
                    }
                }
                HeldOp::Lock { vma, page, nr, locked: false } => {
                    let nr = nr.min(1024 - page);
                    world.machine.munlock(vmas[vma], page, nr, CPU).unwrap();
                }
                HeldOp::Discard { vma, page, nr } => {
                    if world.discard(vmas[vma], page, nr).is_ok() {
                        let gone = page..page + nr;
                        for (_, at) in &mut pins {
                            *at = at.filter(|(of, page)| *of != vmas[vma] || !gone.contains(page));
                        }
                    }
                }
                HeldOp::Pin { vma, page, write } => {
                    if let Ok(pfn) = world.machine.pin(vmas[vma], page, write) {
                        pins.push((pfn, Some((vmas[vma], page))));
                    }
                }
                HeldOp::Unpin { which } if pins.is_empty() => {
                    let pfn = Pfn(which as u32);
                    prop_assert!(world.machine.unpin(pfn, Cpu(1)).is_err());
                }
                HeldOp::Unpin { which } => {
                    let (pfn, _) = pins.swap_remove(which % pins.len());
                    world.machine.unpin(pfn, CPU).unwrap();
                }
                HeldOp::Remap { vma } => {
                    world.munmap(vmas[vma]);
                    for (_, at) in &mut pins {
                        *at = at.filter(|(of, _)| *of != vmas[vma]);
                    }
                    let again = world.machine.mmap(mm, backing(vma), 1024, Advice::Normal, false);
                    vmas[vma] = again.unwrap();
                }
                HeldOp::Kcompactd => world.kcompactd(),
                HeldOp::Khugepaged => {
                    world.khugepaged_round();
                }
                HeldOp::Compact => {
                    world.drive(&mut ProcessCall::compact_memory(mm, NodeId(0)));
                }
                HeldOp::DropCaches => world.machine.drop_pagecache(CPU).discard(),
            }
            if let Err(violation) = world.machine.audit() {
                prop_assert!(false, "after {op:?}: {violation}");
            }
            for &(pfn, at) in &pins {
                prop_assert!(world.machine.pin_count(pfn) > 0);
                if let Some((vma, page)) = at {
                    let pte = world.machine.vma(vma).unwrap().ptes[page as usize];
                    prop_assert!(pte.is_present() && pte.pfn() == pfn, "{op:?}: {pfn:?}, {pte:?}");
                }
            }
        }
        for (pfn, _) in pins {
            world.machine.unpin(pfn, CPU).unwrap();
        }
        world.settle();
        world.exit(mm);
        world.machine.audit().unwrap();
        prop_assert_eq!(world.machine.nr_mlock(), 0);
    }
}
