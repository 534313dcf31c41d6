//! MADV_COLLAPSE: which regions become huge pages, and what the call returns.

use crate::world::{TestWorld, CPU};
use pagetide_core::config::{Config, Thp};
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::interface::bad_id::BadId;
use pagetide_core::interface::effect::Step;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::{Machine, MmId, ProcessCall};
use pagetide_core::stats::vmstat::Event;
use pagetide_core::units::errno::Errno;
use pagetide_core::units::{NodeId, HPAGE_PMD_NR as HUGE, PAGE_SIZE};
use std::ops::Range;

const NODE: NodeId = NodeId(0);
const DONE: Outcome = Outcome::Minor;

fn refused(errno: Errno) -> Outcome {
    Outcome::Refused(errno)
}

/// A machine on which only MADV_COLLAPSE makes huge pages.
fn world(config: Config) -> TestWorld {
    TestWorld::of(64, 1, config, 1 << 14)
}

fn collapse(world: &mut TestWorld, mm: MmId, vma: VmaId, pages: Range<u64>) -> Outcome {
    world.drive(&mut ProcessCall::collapse(mm, NODE, vma, pages))
}

#[test]
fn neither_sysfs_nor_khugepageds_limits_matter_to_it() {
    let config = Config { khugepaged_max_ptes_none: 0, ..Config::default() };
    assert_eq!(config.thp, Thp::Never);
    let mut world = world(config);
    let (mm, vma) = world.heap(3 * HUGE, Advice::Normal);
    world.fill((mm, vma), 0..HUGE);
    world.fill((mm, vma), 2 * HUGE..2 * HUGE + 1);
    assert_eq!(collapse(&mut world, mm, vma, 0..HUGE), DONE);
    assert_eq!((world.nr_huge(), world.count(Event::ThpCollapseAlloc)), (1, 1));
    assert_eq!(world.machine.vma(vma).unwrap().nr_present, HUGE + 1);
    // The middle region is empty: the others become huge pages, and the call returns an error.
    assert_eq!(collapse(&mut world, mm, vma, 0..3 * HUGE), refused(Errno::Einval));
    assert_eq!((world.nr_huge(), world.count(Event::ThpCollapseAlloc)), (2, 2));
    assert_eq!(world.count(Event::ThpScanExceedNonePte), 0);
    // Regions that are huge already count as success.
    assert_eq!(collapse(&mut world, mm, vma, 2 * HUGE..3 * HUGE), DONE);
    assert_eq!(world.count(Event::ThpCollapseAlloc), 2);
}

#[test]
fn only_regions_that_lie_whole_in_the_range_count() {
    let mut world = world(Config::default());
    let (mm, vma) = world.heap(3 * HUGE, Advice::Normal);
    world.fill((mm, vma), 0..3 * HUGE);
    assert_eq!(collapse(&mut world, mm, vma, 1..2 * HUGE + 5), DONE);
    assert_eq!(world.nr_huge(), 1);
    assert_eq!(collapse(&mut world, mm, vma, 0..HUGE - 1), DONE, "no region is no failure");
    assert_eq!(collapse(&mut world, mm, vma, 1..HUGE - 1), refused(Errno::Einval));
    assert_eq!(world.nr_huge(), 1);
}

#[test]
fn what_may_have_none_gets_none() {
    let mut world = world(Config { thp: Thp::Always, ..Config::default() });
    let (mm, vma) = world.heap(HUGE, Advice::NoHuge);
    world.fill((mm, vma), 0..HUGE);
    assert_eq!(collapse(&mut world, mm, vma, 0..HUGE), refused(Errno::Einval));
    world.machine.set_advice(vma, Advice::Normal).unwrap().discard();
    assert_eq!(collapse(&mut world, mm, vma, 0..HUGE), DONE);
    // Without a present page, too short, only read, and of a file.
    let (mm, vma) = world.heap(HUGE, Advice::Normal);
    assert_eq!(collapse(&mut world, mm, vma, 0..HUGE), refused(Errno::Einval));
    world.access(mm, vma, 3, false);
    assert_eq!(collapse(&mut world, mm, vma, 0..HUGE), refused(Errno::Einval));
    let (mm, vma) = world.heap(HUGE - 1, Advice::Normal);
    world.access(mm, vma, 3, true);
    assert_eq!(collapse(&mut world, mm, vma, 0..HUGE - 1), refused(Errno::Einval));
    let file = world.create_file(HUGE * PAGE_SIZE, false);
    let vma = world.map(mm, Backing::File(file), HUGE, Advice::Normal);
    world.access(mm, vma, 0, false);
    assert_eq!(collapse(&mut world, mm, vma, 0..HUGE), refused(Errno::Einval));
    // Beyond the mapping, and an unknown mapping.
    assert_eq!(collapse(&mut world, mm, vma, 0..HUGE + 1), Outcome::BadId(BadId::Page(vma)));
    let nobody = VmaId(99);
    assert_eq!(collapse(&mut world, mm, nobody, 0..1), Outcome::BadId(BadId::Vma(nobody)));
    assert_eq!(world.nr_huge(), 1);
}

#[test]
fn pages_in_swap_are_read_back_however_many() {
    let mut world = world(Config { page_cluster: 0, ..Config::default() });
    let (mm, vma) = world.heap(HUGE, Advice::Normal);
    world.fill((mm, vma), 0..HUGE);
    assert_eq!(world.drive(&mut ProcessCall::page_out(mm, NODE, vma, 0..200)), DONE);
    world.settle();
    assert_eq!(world.machine.vma(vma).unwrap().nr_swapped, 200);
    assert_eq!(collapse(&mut world, mm, vma, 0..HUGE), DONE);
    assert_eq!((world.nr_huge(), world.machine.vma(vma).unwrap().nr_swapped), (1, 0));
    assert_eq!(world.count(Event::ThpScanExceedSwapPte), 0);
    assert_eq!(world.count(Event::Pgfault), HUGE, "reads by the collapse are no faults");
}

#[test]
fn a_busy_page_is_reported() {
    let mut world = world(Config::default());
    let (mm, vma) = world.heap(2 * HUGE, Advice::Normal);
    world.fill((mm, vma), 0..2 * HUGE);
    let pfn = world.machine.pin(vma, 7, true).unwrap();
    assert_eq!(collapse(&mut world, mm, vma, 0..2 * HUGE), refused(Errno::Eagain));
    assert_eq!(world.nr_huge(), 1, "the other region");
    world.machine.unpin(pfn, CPU).unwrap();
    assert_eq!(collapse(&mut world, mm, vma, 0..2 * HUGE), DONE);
}

#[test]
fn a_group_at_its_limit_is_reported() {
    let mut world = world(Config::default());
    let memcg = world.machine.create_memcg("group".into(), Machine::ROOT).unwrap();
    let (mm, vma) = world.task(memcg, HUGE);
    world.fill((mm, vma), 0..HUGE);
    for file in ["memory.swap.max", "memory.max"] {
        let max = if file == "memory.max" { HUGE + 100 } else { 0 } * PAGE_SIZE;
        assert_eq!(world.write_group(mm, memcg, file, &max.to_string()), DONE);
    }
    assert_eq!(collapse(&mut world, mm, vma, 0..HUGE), refused(Errno::Ebusy));
    assert_eq!(world.nr_huge(), 0);
    assert_eq!(world.count(Event::ThpCollapseAlloc), 1, "a page was allocated");
}

#[test]
fn where_there_is_no_huge_page_it_says_so() {
    // Without swap, so that the pages stay in memory.
    let mut world = TestWorld::of(64, 1, Config::default(), 0);
    let (mm, vma) = world.heap(HUGE, Advice::Normal);
    world.fill((mm, vma), 0..HUGE);
    let gfp = Gfp::KERNEL.with(Gfp::NORETRY);
    while let Outcome::Block(_) = world.drive(&mut ProcessCall::alloc_pages(mm, NODE, 3, gfp)) {}
    assert_eq!(collapse(&mut world, mm, vma, 0..HUGE), refused(Errno::Enomem));
    assert_eq!(world.count(Event::ThpCollapseAllocFailed), 1);
    assert_eq!(world.nr_huge(), 0);
}

#[test]
fn a_mapping_that_goes_meanwhile_ends_it() {
    for steps in 0..8 {
        let mut world = world(Config::default());
        let (mm, vma) = world.heap(2 * HUGE, Advice::Normal);
        world.fill((mm, vma), 0..2 * HUGE);
        let mut call = ProcessCall::collapse(mm, NODE, vma, 0..2 * HUGE);
        let over = (0..steps).find_map(|_| match world.step(&mut call) {
            Step::Done(outcome) => Some(outcome),
            Step::Continue | Step::Wait(_) => None,
        });
        world.munmap(vma);
        let outcome = over.unwrap_or_else(|| world.drive(&mut call));
        let expected = match steps {
            0 => Outcome::BadId(BadId::Vma(vma)),
            // Both regions were collapsed.
            _ if world.count(Event::ThpCollapseAlloc) == 2 => DONE,
            _ => refused(Errno::Einval),
        };
        assert_eq!(outcome, expected, "after {steps} steps");
    }
}

#[test]
fn advice_on_a_part_splits_the_huge_page_at_its_edge_and_keeps_others_from_coming() {
    let mut world = world(Config { thp: Thp::Madvise, ..Config::default() });
    let (mm, vma) = world.heap(3 * HUGE, Advice::Huge);
    world.fill((mm, vma), 0..2 * HUGE);
    assert_eq!(world.nr_huge(), 2);
    let forbid = |world: &mut TestWorld, pages: Range<u64>| {
        world.machine.advise_huge(vma, pages, false).unwrap().discard();
        world.machine.audit().unwrap();
    };
    forbid(&mut world, 0..1);
    assert_eq!(world.nr_huge(), 1, "the first huge page is split");
    assert_eq!(collapse(&mut world, mm, vma, 0..HUGE), refused(Errno::Einval));
    // A whole region has no edge inside: its huge page stays.
    forbid(&mut world, HUGE..2 * HUGE);
    assert_eq!(world.nr_huge(), 1);
    forbid(&mut world, 2 * HUGE + 5..2 * HUGE + 6);
    world.fill((mm, vma), 2 * HUGE..3 * HUGE);
    assert_eq!(world.nr_huge(), 1, "a partly forbidden region gets no huge page");
    for _ in 0..3 {
        world.khugepaged_round();
    }
    assert_eq!(world.nr_huge(), 1);
    // Allowed again in parts: khugepaged finds the regions.
    world.machine.advise_huge(vma, 0..1, true).unwrap().discard();
    world.khugepaged_round();
    assert_eq!(world.nr_huge(), 2);
    world.machine.set_advice(vma, Advice::Huge).unwrap().discard();
    world.khugepaged_round();
    assert_eq!(world.nr_huge(), 3);
    let beyond = world.machine.advise_huge(vma, 0..3 * HUGE + 1, true).map(|_| ());
    assert_eq!(beyond, Err(BadId::Page(vma)));
}
