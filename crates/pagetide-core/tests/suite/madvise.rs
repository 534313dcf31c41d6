//! Ranges of mappings: populate, lock and advise. Audits after every step.

use crate::world::{TestWorld, CPU};
use pagetide_core::config::{Config, Thp};
use pagetide_core::frames::page::PageFlags;
use pagetide_core::interface::bad_id::BadId;
use pagetide_core::interface::effect::Step;
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::{Machine, MmId, ProcessCall};
use pagetide_core::stats::vmstat::{Event, NodeStat};
use pagetide_core::units::errno::Errno;
use pagetide_core::units::{NodeId, PAGE_SIZE};

const NODE: NodeId = NodeId(0);

fn world(config: Config) -> TestWorld {
    TestWorld::of(64, 1, config, 1 << 14)
}

fn resident(world: &TestWorld, vma: VmaId) -> usize {
    let len = world.machine.vma(vma).unwrap().len();
    (0..len).filter(|&page| world.machine.is_in_core(vma, page)).count()
}

fn populate(world: &mut TestWorld, mm: MmId, vma: VmaId, pages: std::ops::Range<u64>, write: bool) {
    assert_eq!(
        world.drive(&mut ProcessCall::populate(mm, NODE, vma, pages, write)),
        Outcome::Minor
    );
}

fn pageout(world: &mut TestWorld, mm: MmId, vma: VmaId, pages: std::ops::Range<u64>) -> Outcome {
    world.drive(&mut ProcessCall::page_out(mm, NODE, vma, pages))
}

#[test]
fn a_range_is_populated_by_reads_or_by_writes() {
    for (write, anon) in [(false, 0), (true, 700)] {
        let mut world = world(Config::default());
        let (mm, vma) = world.heap(1000, Advice::Normal);
        populate(&mut world, mm, vma, 100..800, write);
        assert_eq!(resident(&world, vma), 700);
        assert_eq!(world.stat(NodeStat::NrAnonPages), anon);
        assert_eq!(world.count(Event::Pgfault), 700);
        // Present pages need no fault.
        populate(&mut world, mm, vma, 0..1000, write);
        assert_eq!(world.count(Event::Pgfault), 1000);
    }
}

#[test]
fn huge_pages_are_populated_whole() {
    let mut world = world(Config { thp: Thp::Always, ..Config::default() });
    let (mm, vma) = world.heap(1024, Advice::Normal);
    populate(&mut world, mm, vma, 0..1024, true);
    assert_eq!(world.count(Event::ThpFaultAlloc), 2);
    assert_eq!(world.count(Event::Pgfault), 2);
}

#[test]
fn unknown_pages_and_mappings_are_not_populated() {
    let mut world = world(Config::default());
    let (mm, vma) = world.heap(10, Advice::Normal);
    let mut call = ProcessCall::populate(mm, NODE, vma, 5..11, true);
    assert_eq!(world.drive(&mut call), Outcome::BadId(BadId::Page(vma)));
    let mut call = ProcessCall::populate(mm, NODE, VmaId(77), 0..1, true);
    assert_eq!(world.drive(&mut call), Outcome::BadId(BadId::Vma(VmaId(77))));
    assert_eq!(resident(&world, vma), 0);
}

#[test]
fn a_file_is_read_ahead_where_it_is_not_in_memory() {
    let mut world = world(Config::default());
    let mm = world.machine.create_mm(Machine::ROOT).unwrap();
    let file = world.create_file(1000 * PAGE_SIZE, false);
    let vma = world.map(mm, Backing::File(file), 1000, Advice::Random);
    let mut call = ProcessCall::will_need(mm, NODE, vma, 10..900);
    assert_eq!(world.drive(&mut call), Outcome::Minor);
    world.settle();
    assert_eq!(resident(&world, vma), 320, "one request of 1280 KiB");
    assert_eq!(world.count(Event::Pgfault), 0);
}

#[test]
fn pages_out_leave_their_entries_and_come_back() {
    let mut world = world(Config::default());
    let (mm, vma) = world.heap(1000, Advice::Normal);
    populate(&mut world, mm, vma, 0..1000, true);
    assert_eq!(pageout(&mut world, mm, vma, 200..300), Outcome::Minor);
    assert_eq!(world.count(Event::Pswpout), 100);
    assert_eq!((world.count(Event::PgscanDirect), world.count(Event::PgstealDirect)), (0, 0));
    let mapping = world.machine.vma(vma).unwrap();
    assert_eq!((mapping.nr_present, mapping.nr_swapped), (900, 100));
    world.settle();
    world.fill((mm, vma), 0..1000);
    assert_eq!(world.machine.vma(vma).unwrap().nr_present, 1000);
}

/// A step takes at most 32 pages, and the counters are as after one large step.
#[test]
fn pages_go_out_in_bounded_batches() {
    let mut world = world(Config::default());
    let (mm, vma) = world.heap(5000, Advice::Normal);
    populate(&mut world, mm, vma, 0..5000, true);
    for (make, event) in [
        (ProcessCall::cold as fn(_, _, _, _) -> ProcessCall, Event::Pgdeactivate),
        (ProcessCall::page_out, Event::Pswpout),
    ] {
        for page in 0..5000 {
            world.touch(vma, page, true);
        }
        let mut call = make(mm, NODE, vma, 0..5000);
        let mut steps = 0;
        loop {
            let before = world.count(event);
            let step = world.step(&mut call);
            assert!(world.count(event) - before <= 32);
            if let Step::Done(outcome) = step {
                assert_eq!(outcome, Outcome::Minor);
                break;
            }
            steps += 1;
        }
        // The last batch of a page table may be smaller.
        assert!((157..=170).contains(&steps), "{steps}");
    }
    assert_eq!(world.count(Event::Pswpout), 5000);
    assert_eq!(world.count(Event::PgscanDirect), 0);
}

/// The mapping goes, or another gets its id, in the middle of the call.
#[test]
fn pages_of_a_mapping_that_has_gone_stay_others() {
    let mut world = world(Config::default());
    let (mm, vma) = world.heap(1000, Advice::Normal);
    populate(&mut world, mm, vma, 0..1000, true);
    let mut call = ProcessCall::page_out(mm, NODE, vma, 0..1000);
    assert_eq!(world.step(&mut call), Step::Continue);
    world.munmap(vma);
    let other = world.map(mm, Backing::Anon, 1000, Advice::Normal);
    assert_eq!(other, vma);
    populate(&mut world, mm, vma, 0..1000, true);
    assert_eq!(world.drive(&mut call), Outcome::Refused(Errno::Enomem));
    assert_eq!(world.count(Event::Pswpout), 32);
}

#[test]
fn locked_mappings_are_not_reclaimed_on_request() {
    let mut world = world(Config::default());
    let (mm, vma) = world.heap(100, Advice::Normal);
    populate(&mut world, mm, vma, 0..100, true);
    world.machine.mlock(vma, 50, 10, CPU).unwrap();
    let refused = Outcome::Refused(Errno::Einval);
    assert_eq!(pageout(&mut world, mm, vma, 55..70), refused);
    assert_eq!(world.drive(&mut ProcessCall::cold(mm, NODE, vma, 50..51)), refused);
    assert_eq!(world.count(Event::Pswpout), 0);
    // Pages before the locked part are reclaimed, pages after it are not.
    assert_eq!(pageout(&mut world, mm, vma, 40..70), refused);
    assert_eq!(world.count(Event::Pswpout), 10);
    assert_eq!(pageout(&mut world, mm, vma, 60..70), Outcome::Minor);
    assert_eq!(world.count(Event::Pswpout), 20);
}

#[test]
fn huge_pages_go_whole_or_are_split_first() {
    let mut world = world(Config { thp: Thp::Always, ..Config::default() });
    let (mm, vma) = world.heap(1024, Advice::Normal);
    populate(&mut world, mm, vma, 0..1024, true);
    assert_eq!(pageout(&mut world, mm, vma, 0..512), Outcome::Minor);
    assert_eq!(world.count(Event::Pswpout), 512);
    assert_eq!(pageout(&mut world, mm, vma, 512..522), Outcome::Minor);
    assert_eq!(world.count(Event::Pswpout), 522);
    assert_eq!(world.machine.vma(vma).unwrap().nr_present, 502);
}

#[test]
fn cold_pages_are_inactive() {
    let mut world = world(Config::default());
    let (mm, vma) = world.heap(64, Advice::Normal);
    // Populated twice, so accessed twice: active.
    for _ in 0..2 {
        populate(&mut world, mm, vma, 0..64, true);
    }
    let active = |world: &TestWorld| {
        let mapping = world.machine.vma(vma).unwrap();
        let is_active =
            |page: usize| world.machine.mem.pages[mapping.ptes[page].pfn()].has(PageFlags::ACTIVE);
        (0..64).filter(|&page| is_active(page)).count()
    };
    let before = active(&world);
    assert!(before > 32, "{before}");
    assert_eq!(world.drive(&mut ProcessCall::cold(mm, NODE, vma, 0..64)), Outcome::Minor);
    assert_eq!(active(&world), 0);
    assert!(world.count(Event::Pgdeactivate) >= before as u64);
}

#[test]
fn advice_changes_from_then_on() {
    let mut world = world(Config { thp: Thp::Madvise, ..Config::default() });
    let (mm, vma) = world.heap(1024, Advice::Normal);
    world.access(mm, vma, 0, true);
    assert_eq!(world.count(Event::ThpFaultAlloc), 0);
    world.machine.set_advice(vma, Advice::Huge).unwrap().discard();
    world.access(mm, vma, 600, true);
    assert_eq!(world.count(Event::ThpFaultAlloc), 1);
    assert!(world.machine.set_advice(VmaId(9), Advice::Huge).is_err());
}

/// Linux: `page_add_anon_rmap` in `do_swap_page` locks the page if its mapping is locked.
#[test]
fn a_page_that_was_locked_in_swap_is_locked_when_it_is_back() {
    let mut world = world(Config::default());
    let (mm, vma) = world.heap(64, Advice::Normal);
    populate(&mut world, mm, vma, 0..64, true);
    assert_eq!(pageout(&mut world, mm, vma, 0..64), Outcome::Minor);
    world.settle();
    assert_eq!(pageout(&mut world, mm, vma, 0..64), Outcome::Minor);
    let in_swap = world.machine.vma(vma).unwrap().nr_swapped;
    assert!(in_swap > 0);
    world.machine.mlock(vma, 0, 64, CPU).unwrap();
    for page in 0..64 {
        world.access(mm, vma, page, page % 2 == 0);
        world.machine.audit().unwrap();
    }
    assert_eq!(world.machine.nr_mlock(), 64);
}
