//! Huge pages: allocation by faults, failures, ageing, splitting, collapse and free.

use crate::world::{TestWorld, CPU};
use pagetide_core::config::{CompactionPolicy, Config, Thp, ThpDefrag};
use pagetide_core::frames::gfp::Gfp;
use pagetide_core::frames::page::{PageFlags, Place};
use pagetide_core::frames::watermark::WatermarkInputs;
use pagetide_core::groups::memcg::{MemoryEvent, ROOT};
use pagetide_core::interface::daemon::DaemonRest;
use pagetide_core::interface::effect::{Effect, Io, Step};
use pagetide_core::interface::outcome::Outcome;
use pagetide_core::process::page_table::{Advice, Backing, VmaId};
use pagetide_core::process::Machine;
use pagetide_core::process::MmId;
use pagetide_core::process::ProcessCall;
use pagetide_core::stats::vmstat::{Event, NodeStat};
use pagetide_core::swap::SwapOptions;
use pagetide_core::units::{MemcgId, NodeId, Pfn, PAGE_SIZE};
use proptest::prelude::*;

const HUGE: u64 = 512;

fn always() -> Config {
    Config { thp: Thp::Always, ..Config::default() }
}

fn world(mib: u64, config: Config) -> TestWorld {
    TestWorld::of(mib, 1, config, 1 << 16)
}

/// First frame of the huge page at a page of a mapping.
fn head(world: &TestWorld, vma: VmaId, page: u64) -> Pfn {
    let pfn = world.machine.vma(vma).unwrap().ptes[page as usize].pfn();
    assert!(world.machine.mem.pages[pfn].has(PageFlags::HEAD), "{pfn:?} is no huge page");
    pfn
}

/// Leaves half of memory free, in blocks too small for a huge page.
fn fragment(world: &mut TestWorld, mm: MmId) {
    let gfp = Gfp::KERNEL.with(Gfp::NORETRY).without(Gfp::RECLAIM);
    let take = |world: &mut TestWorld, order| {
        let mut call = ProcessCall::alloc_pages(mm, NodeId(0), order, gfp);
        match world.drive(&mut call) {
            Outcome::Block(pfn) => Some(pfn),
            _ => None,
        }
    };
    let mut blocks = Vec::new();
    while let Some(pfn) = take(world, 8) {
        blocks.push(pfn);
    }
    for &pfn in blocks.iter().filter(|pfn| pfn.0 & 1 << 8 == 0) {
        if blocks.contains(&Pfn(pfn.0 | 1 << 8)) {
            assert!(world.machine.free_kernel_block(mm, pfn, CPU));
        }
    }
    // Take the blocks that the watermarks have protected.
    while take(world, 9).is_some() {}
}

#[test]
fn the_first_write_to_a_region_gets_a_huge_page() {
    let mut world = world(64, always());
    let (mm, vma) = world.heap(3 * HUGE + 100, Advice::Normal);
    assert_eq!(world.access(mm, vma, HUGE + 7, true), Some(Outcome::Minor));
    for page in HUGE..2 * HUGE {
        assert_eq!(world.access(mm, vma, page, true), None, "page {page}");
    }
    assert_eq!(world.count(Event::ThpFaultAlloc), 1);
    assert_eq!(world.count(Event::Pgfault), 1);
    assert_eq!(world.stat(NodeStat::NrAnonPages), HUGE);
    assert_eq!(world.stat(NodeStat::NrInactiveAnon), HUGE);
    assert_eq!(world.stat(NodeStat::NrPageTablePages), 1);
    assert_eq!(world.machine.memcgs()[0].charged, HUGE + 1);
    assert_eq!(world.machine.vma(vma).unwrap().nr_present, HUGE);
    assert!(world.machine.proc_meminfo().contains("AnonHugePages:      2048 kB\n"));
    let text = world.machine.memory_stat(Machine::ROOT);
    assert!(text.contains("anon_thp 2097152\n") && text.contains("thp_fault_alloc 1\n"), "{text}");
    // The rest of the mapping is too short for a huge page.
    world.access(mm, vma, 3 * HUGE + 50, true);
    assert_eq!((world.count(Event::ThpFaultAlloc), world.nr_huge()), (1, 1));
    assert_eq!(world.count(Event::ThpFaultFallback), 0);
}

#[test]
fn a_fault_that_may_reclaim_asks_twice_and_each_time_compacts_before_and_after() {
    for (advice, stalls) in [(Advice::Huge, 4), (Advice::Normal, 4), (Advice::NoHuge, 0)] {
        let config = Config { thp_defrag: ThpDefrag::Always, ..always() };
        let mut world = world(64, config);
        let (mm, vma) = world.heap(HUGE, advice);
        fragment(&mut world, mm);
        let before = world.count(Event::CompactStall);
        world.access(mm, vma, 0, true);
        assert_eq!(world.nr_huge(), 0);
        assert_eq!(world.count(Event::CompactStall) - before, stalls, "{advice:?}");
    }
}

#[test]
fn a_region_that_was_read_first_gets_small_pages() {
    let mut world = world(64, always());
    let (mm, vma) = world.heap(2 * HUGE, Advice::Normal);
    world.access(mm, vma, 0, false);
    world.access(mm, vma, 1, true);
    assert_eq!((world.nr_huge(), world.stat(NodeStat::NrAnonPages)), (0, 1));
}

#[test]
fn sysfs_and_advice_decide_which_mappings_get_huge_pages() {
    for (thp, advice, expected) in [
        (Thp::Always, Advice::Normal, 1),
        (Thp::Always, Advice::Huge, 1),
        (Thp::Always, Advice::NoHuge, 0),
        (Thp::Madvise, Advice::Normal, 0),
        (Thp::Madvise, Advice::Huge, 1),
        (Thp::Madvise, Advice::NoHuge, 0),
        (Thp::Never, Advice::Huge, 0),
    ] {
        let mut world = world(64, Config { thp, ..Config::default() });
        let (mm, vma) = world.heap(HUGE, advice);
        world.access(mm, vma, 3, true);
        assert_eq!(world.nr_huge(), expected, "{thp:?} {advice:?}");
    }
}

#[test]
fn what_a_fault_does_for_a_huge_page_is_said_by_defrag() {
    use ThpDefrag as D;
    let work = |config: Config, advice| {
        // No boost, so that only the request wakes kswapd.
        let watermarks = WatermarkInputs { watermark_boost_factor: 0, ..Default::default() };
        let mut world = world(64, Config { thp: Thp::Always, watermarks, ..config });
        let (mm, vma) = world.heap(HUGE, advice);
        fragment(&mut world, mm);
        let woken = world.count(Event::MmVmscanWakeupKswapd);
        assert_eq!(world.access(mm, vma, 0, true), Some(Outcome::Minor));
        assert_eq!(world.count(Event::ThpFaultFallback), 1);
        assert_eq!(world.nr_huge(), 0);
        let kswapd = world.count(Event::MmVmscanWakeupKswapd) > woken;
        (world.machine.mem.vmstat.allocstall() > 0, kswapd)
    };
    for (defrag, advice, direct, kswapd) in [
        (D::Always, Advice::Normal, true, false),
        (D::Always, Advice::Huge, true, false),
        (D::Defer, Advice::Normal, false, true),
        (D::Defer, Advice::Huge, false, true),
        (D::DeferMadvise, Advice::Normal, false, true),
        (D::DeferMadvise, Advice::Huge, true, false),
        (D::Madvise, Advice::Normal, false, false),
        (D::Madvise, Advice::Huge, true, false),
        (D::Never, Advice::Huge, false, false),
    ] {
        let config = Config { thp_defrag: defrag, ..Config::default() };
        assert_eq!(work(config, advice), (direct, kswapd), "{defrag:?} {advice:?}");
    }
    for (defrag, advice, works) in [
        (D::Always, Advice::Normal, true),
        (D::Madvise, Advice::Normal, false),
        (D::Madvise, Advice::Huge, true),
        (D::Never, Advice::Huge, false),
    ] {
        let compaction = CompactionPolicy::Linux45;
        let config = Config { thp_defrag: defrag, compaction, ..Config::default() };
        assert_eq!(work(config, advice), (works, false), "4.5 {defrag:?} {advice:?}");
    }
}

#[test]
fn compaction_makes_a_huge_page_of_scattered_free_ones() {
    for (defrag, expected) in [(ThpDefrag::Always, 1), (ThpDefrag::Never, 0)] {
        let mut world = world(64, Config { thp_defrag: defrag, ..always() });
        world.audit = false;
        let pages = world.machine.mem.nr_free_pages() - 1500;
        let (mm, small) = world.heap(pages, Advice::NoHuge);
        world.fill((mm, small), 0..pages);
        for page in (0..pages).step_by(2) {
            world.discard(small, page, 1).unwrap();
        }
        world.machine.audit().unwrap();
        let vma = world.map(mm, Backing::Anon, HUGE, Advice::Huge);
        fragment(&mut world, mm);
        world.access(mm, vma, 0, true);
        world.machine.audit().unwrap();
        assert_eq!(world.nr_huge(), expected, "{defrag:?}");
        assert_eq!(world.count(Event::CompactSuccess), expected, "{defrag:?}");
    }
}

/// A group with a limit of `max` pages, and a task in it with one mapping.
fn group(world: &mut TestWorld, max: u64, pages: u64, advice: Advice) -> (MemcgId, MmId, VmaId) {
    let group = world.group(Machine::ROOT, &[("memory.max", &bytes_of(max))]);
    let mm = world.machine.create_mm(group).unwrap();
    (group, mm, world.map(mm, Backing::Anon, pages, advice))
}

#[test]
fn a_group_without_room_gets_small_pages() {
    for (advice, waits) in [(Advice::Normal, false), (Advice::Huge, true)] {
        let mut world = world(64, always());
        let (group, mm, vma) = group(&mut world, 300, HUGE, advice);
        world.fill((mm, vma), 0..200);
        assert_eq!(world.count(Event::ThpFaultFallback), 1);
        assert_eq!(world.count(Event::ThpFaultFallbackCharge), 1);
        assert_eq!(world.nr_huge(), 0);
        assert_eq!(world.machine.memcgs()[group].charged, 201);
        // Without permission to reclaim, there is no `max` event.
        let met_limit = world.machine.memcgs()[group].memory_events[2] > 0;
        assert_eq!(met_limit, waits, "{advice:?}");
        assert_eq!(world.count(Event::OomKill), 0);
    }
}

#[test]
fn a_group_is_charged_and_uncharged_for_all_512_pages() {
    let mut world = world(64, always());
    let (group, mm, vma) = group(&mut world, 4096, 2 * HUGE, Advice::Normal);
    world.access(mm, vma, 0, true);
    world.access(mm, vma, HUGE, true);
    assert_eq!(world.machine.memcgs()[group].charged, 2 * HUGE + 2);
    // Each huge page is one charge. Its page table is charged too, and is allocated zeroed.
    let work = world.machine.take_work();
    let cleared = (work.pages_zeroed, work.pages_allocated_zeroed);
    assert_eq!((work.pages_charged, cleared), (2 + 2, (2 * HUGE as u32, 2)));
    assert_eq!(world.machine.anon_thp(group), 2 * HUGE * PAGE_SIZE);
    world.discard(vma, 0, HUGE).unwrap();
    world.machine.audit().unwrap();
    assert_eq!(world.machine.memcgs()[group].charged, HUGE + 1);
    // A removed group leaves its pages to its parent.
    world.machine.move_mm(mm, Machine::ROOT).unwrap().discard();
    world.machine.remove_memcg(group).unwrap().discard();
    world.machine.audit().unwrap();
    assert_eq!(world.machine.memcgs()[0].charged, HUGE + 1);
    world.exit(mm);
    world.machine.audit().unwrap();
    assert_eq!(world.machine.memcgs()[0].charged, 0);
}

#[test]
fn an_end_frees_huge_pages_whole() {
    let mut world = world(64, always());
    // The first exit fills the CPU's per-CPU lists like the second one.
    let mut before = String::new();
    for _ in 0..2 {
        before = world.machine.proc_buddyinfo();
        let (mm, vma) = world.heap(8 * HUGE, Advice::Normal);
        for region in 0..8 {
            world.access(mm, vma, region * HUGE, true);
        }
        assert_eq!(world.nr_huge(), 8);
        world.exit(mm);
        world.machine.audit().unwrap();
    }
    assert_eq!(world.machine.proc_buddyinfo(), before);
    assert_eq!(world.stat(NodeStat::NrPageTablePages), 0);
}

#[test]
fn a_discard_frees_whole_huge_pages_and_splits_others() {
    let mut world = world(64, always());
    let (mm, vma) = world.heap(3 * HUGE, Advice::Normal);
    for region in 0..3 {
        world.access(mm, vma, region * HUGE, true);
    }
    // The end of the first huge page, and all of the second.
    world.discard(vma, 500, 12 + HUGE).unwrap();
    world.machine.audit().unwrap();
    assert_eq!(world.count(Event::ThpSplitPage), 1);
    assert_eq!(world.count(Event::ThpSplitPmd), 1);
    assert_eq!(world.nr_huge(), 1);
    assert_eq!(world.stat(NodeStat::NrAnonPages), 500 + HUGE);
    assert_eq!(world.machine.vma(vma).unwrap().nr_present, 500 + HUGE);
    // The page table of a discarded huge page is freed; that of a split one stays.
    assert_eq!(world.stat(NodeStat::NrPageTablePages), 2);
    assert!(!world.machine.is_resident(vma, 500) && world.machine.is_resident(vma, 499));
    // The region can get a huge page again.
    world.access(mm, vma, HUGE + 1, true);
    assert_eq!(world.nr_huge(), 2);
    world.access(mm, vma, 505, true);
    assert_eq!((world.nr_huge(), world.stat(NodeStat::NrAnonPages)), (2, 501 + 2 * HUGE));
    // Beyond the end of the mapping nothing happens.
    world.discard(vma, 3 * HUGE - 1, u64::MAX).unwrap();
    world.discard(vma, 9 * HUGE, 1).unwrap();
    world.machine.audit().unwrap();
}

#[test]
fn a_discard_gives_up_swap_slots_and_unmaps_files() {
    let mut world = world(24, Config::default());
    world.audit = false;
    let (mm, vma) = world.heap(8000, Advice::Normal);
    world.fill((mm, vma), 0..8000);
    world.settle();
    assert!(world.machine.swap().used() > 1000);
    world.discard(vma, 0, 8000).unwrap();
    world.machine.audit().unwrap();
    assert_eq!((world.machine.swap().used(), world.stat(NodeStat::NrAnonPages)), (0, 0));
    assert_eq!(world.machine.vma(vma).unwrap().nr_swapped, 0);

    let file = world.machine.create_file(64 * PAGE_SIZE, true).unwrap();
    let map = world.map(mm, Backing::File(file), 64, Advice::Normal);
    world.access(mm, map, 5, true);
    let mut effects = Vec::new();
    world.machine.discard(map, 0, 64, CPU).unwrap().drain_into(&mut effects);
    world.machine.audit().unwrap();
    assert_eq!(world.stat(NodeStat::NrMapped), 0);
    assert!(world.machine.is_in_core(map, 5) && world.stat(NodeStat::NrDirty) == 1);
}

#[test]
fn a_split_page_is_512_small_ones_in_its_place() {
    let mut world = world(64, always());
    let (mm, vma) = world.heap(2 * HUGE, Advice::Normal);
    world.access(mm, vma, 0, true);
    world.access(mm, vma, HUGE, true);
    let first = head(&world, vma, 0);
    assert!(world.machine.split_huge_page(first));
    world.machine.audit().unwrap();
    assert!(!world.machine.split_huge_page(first), "it is split already");
    assert!(!world.machine.split_huge_page(Pfn(first.0 + 1)));
    assert!(!world.machine.split_huge_page(Pfn(u32::MAX - 1)));
    assert_eq!((world.nr_huge(), world.stat(NodeStat::NrAnonPages)), (1, 2 * HUGE));
    assert_eq!(world.stat(NodeStat::NrInactiveAnon), 2 * HUGE);
    // The older one; its pages leave the tail in order.
    let mut at = first;
    for nr in 1..HUGE as u32 {
        let page = &world.machine.mem.pages[at];
        assert_eq!((page.place, page.index), (Place::Lru, nr - 1));
        at = page.prev;
        assert_eq!(at, Pfn(first.0 + nr));
    }
    for page in 0..HUGE {
        assert_eq!(world.access(mm, vma, page, true), None, "page {page}");
    }
    world.exit(mm);
    world.machine.audit().unwrap();
    assert_eq!(world.machine.memcgs()[0].charged, 0);
}

#[test]
fn huge_pages_go_to_swap_whole_or_split_and_come_back_small() {
    // On a rotating disk there are no runs of slots.
    for swap_rotational in [false, true] {
        let mut world = TestWorld::of(24, 1, always(), 0);
        world.machine.swapon(SwapOptions::new(1 << 16).rotational(swap_rotational));
        world.audit = false;
        let regions = 14;
        let (mm, vma) = world.heap(regions * HUGE, Advice::Normal);
        for page in 0..regions * HUGE {
            world.access(mm, vma, page, true);
            if page % 300 == 0 {
                world.machine.audit().unwrap();
            }
        }
        world.settle_and_audit();
        let [whole, split, pmds] = [Event::ThpSwpout, Event::ThpSplitPage, Event::ThpSplitPmd]
            .map(|event| world.count(event));
        let gone = whole + split;
        assert!(gone > 2, "{gone} were swapped out");
        assert_eq!(if swap_rotational { whole } else { split }, 0);
        assert_eq!(pmds, gone);
        assert_eq!(world.count(Event::ThpSwpoutFallback), split);
        assert_eq!(world.count(Event::ThpFaultAlloc) - gone, world.nr_huge());
        assert!(world.count(Event::Pswpout) >= HUGE * if swap_rotational { 1 } else { gone });
        let mut majors = 0;
        for page in 0..regions * HUGE {
            majors += u64::from(world.access(mm, vma, page, false) == Some(Outcome::Major));
            if page % 300 == 0 {
                world.machine.audit().unwrap();
            }
        }
        assert!(majors > 50, "{majors} were read back");
        assert_eq!(world.count(Event::Pgmajfault), majors);
        world.exit(mm);
        world.settle_and_audit();
        assert_eq!((world.stat(NodeStat::NrAnonPages), world.nr_huge()), (0, 0));
    }
}

/// Pages out the first region of a mapping. Returns the writes, which have not ended.
fn page_out(world: &mut TestWorld, mm: MmId, vma: VmaId) -> Vec<Io> {
    let mut call = ProcessCall::page_out(mm, NodeId(0), vma, 0..HUGE);
    let mut effects = Vec::new();
    loop {
        let (step, new) = world.machine.step(&mut call, CPU, 0);
        new.drain_into(&mut effects);
        if matches!(step, Step::Done(_)) {
            break;
        }
    }
    let write = |effect: &Effect| match effect {
        Effect::Submit(io) => Some(*io),
        _ => None,
    };
    effects.iter().filter_map(write).collect()
}

#[test]
fn a_written_huge_page_goes_to_the_tail_at_once() {
    let mut world = world(64, always());
    let (mm, vma) = world.heap(2 * HUGE, Advice::Normal);
    world.access(mm, vma, 0, true);
    let first = head(&world, vma, 0);
    let writes = page_out(&mut world, mm, vma);
    assert_eq!(writes.len(), 1);
    world.machine.io_done(writes[0], true, CPU, 0).discard();
    assert_eq!(world.count(Event::Pgrotated), HUGE);
    let page = &world.machine.mem.pages[first];
    assert!(page.has(PageFlags::HEAD) && !page.has(PageFlags::BATCHED));
    assert!(!world.machine.split_huge_page(first), "it is in the swap cache");
    world.machine.audit().unwrap();
    // Half of its entries go; a fault frees their parts.
    let mut effects = Vec::new();
    world.machine.discard(vma, 0, HUGE / 2, CPU).unwrap().drain_into(&mut effects);
    assert_eq!(u64::from(world.machine.swap().used()), HUGE, "the page is in one piece");
    assert_eq!(world.access(mm, vma, HUGE - 1, false), Some(Outcome::Minor));
    assert_eq!(u64::from(world.machine.swap().used()), HUGE / 2);
    world.machine.audit().unwrap();
}

#[test]
fn a_huge_page_above_the_swap_limit_is_split_and_counted() {
    let mut world = world(64, always());
    let memcg = world.group(ROOT, &[("memory.swap.max", "1M")]);
    let (mm, vma) = world.task(memcg, 2 * HUGE);
    world.access(mm, vma, 0, true);
    let writes = page_out(&mut world, mm, vma);
    assert_eq!(writes.len(), 256, "a megabyte, page by page");
    let group = &world.machine.memcgs()[memcg];
    let [max, fail] = [MemoryEvent::SwapMax, MemoryEvent::SwapFail];
    let [max, fail] = [max, fail].map(|event| group.memory_events[event as usize]);
    assert_eq!((max, fail), (1 + 256, 1 + 256), "the huge page, and the pages beyond the limit");
    assert_eq!(world.count(Event::ThpSwpoutFallback), 1);
    world.machine.audit().unwrap();
}

#[test]
fn a_fault_splits_a_huge_page_that_is_being_written_to_swap() {
    for ok in [true, false] {
        let mut world = world(64, always());
        let (mm, vma) = world.heap(2 * HUGE, Advice::Normal);
        world.access(mm, vma, 0, true);
        let first = head(&world, vma, 0);
        let writes = page_out(&mut world, mm, vma);
        let [write @ Io::SwapOut { pfn, nr: 512, .. }] = writes[..] else { panic!("{writes:?}") };
        assert_eq!((pfn, world.count(Event::Pswpout)), (first, HUGE));
        world.machine.audit().unwrap();
        assert_eq!(world.stat(NodeStat::NrWriteback), HUGE);
        // The page is still in memory, so the fault reads nothing.
        assert_eq!(world.access(mm, vma, 7, true), Some(Outcome::Minor));
        world.machine.audit().unwrap();
        assert_eq!(world.nr_huge(), 0);
        assert_eq!(world.stat(NodeStat::NrWriteback), HUGE, "each part is being written");
        world.machine.io_done(write, ok, CPU, 0).discard();
        world.machine.audit().unwrap();
        assert_eq!(world.stat(NodeStat::NrWriteback), 0);
        world.exit(mm);
        world.settle_and_audit();
    }
}

#[test]
fn a_huge_page_in_use_stays_whole_while_others_go() {
    let mut world = world(64, always());
    world.audit = false;
    world.disk_works = true;
    world.disk_speed = 1000;
    let (mm, vma) = world.heap(40 * HUGE, Advice::Normal);
    for page in 0..40 * HUGE {
        world.access(mm, vma, page, true);
        // One accessed page keeps it whole. Start late, because some page must be evicted first.
        if page > 12 * HUGE {
            world.access(mm, vma, 12 * HUGE + 100, true);
        }
    }
    world.machine.audit().unwrap();
    assert!(world.count(Event::ThpSwpout) > 2);
    head(&world, vma, 12 * HUGE);
}

#[test]
fn khugepaged_collapses_what_has_few_holes_and_is_used() {
    let config = Config {
        thp: Thp::Madvise,
        khugepaged_max_ptes_none: 12,
        khugepaged_pages_to_scan: 1 << 16,
        ..Config::default()
    };
    let mut world = world(64, config);
    let (mm, vma) = world.heap(4 * HUGE, Advice::Huge);
    // Read first, so that every region has small pages: full, few holes, too many holes.
    for (region, pages) in [(0, 512), (1, 500), (2, 499)] {
        world.access(mm, vma, region * HUGE, false);
        for page in 0..pages {
            world.access(mm, vma, region * HUGE + page, true);
        }
    }
    let (_, unadvised) = world.heap(HUGE, Advice::Normal);
    let _ = unadvised;
    let free = world.machine.mem.nr_free_pages();
    world.khugepaged_round();
    assert_eq!(world.count(Event::ThpCollapseAlloc), 2);
    assert_eq!(world.nr_huge(), 2);
    head(&world, vma, 0);
    head(&world, vma, HUGE);
    assert_eq!(world.stat(NodeStat::NrAnonPages), 2 * HUGE + 499);
    assert_eq!(world.machine.vma(vma).unwrap().nr_present, 2 * HUGE + 499);
    world.machine.mem.drain_all();
    assert!(world.machine.mem.nr_free_pages() <= free + 1024);
    let work = world.machine.take_work();
    assert_eq!(work.bytes_copied, (512 + 500) * PAGE_SIZE as u32);
    // Nothing more can be collapsed.
    world.khugepaged_round();
    assert_eq!(world.count(Event::ThpCollapseAlloc), 2);
    world.exit(mm);
    world.machine.audit().unwrap();
    assert_eq!(world.machine.memcgs()[0].charged, 0);
}

#[test]
fn khugepaged_gives_up_a_round_after_two_failures() {
    let config = Config { thp: Thp::Madvise, khugepaged_defrag: false, ..Config::default() };
    let mut world = world(64, config);
    let (mm, vma) = world.heap(4 * HUGE, Advice::Huge);
    for region in 0..4 {
        world.access(mm, vma, region * HUGE, false);
        world.access(mm, vma, region * HUGE, true);
    }
    fragment(&mut world, mm);
    let mut naps = Vec::new();
    while naps.len() < 3 {
        naps.extend(world.khugepaged());
    }
    let nap = |millisecs: u64| DaemonRest::of(millisecs * 1_000_000);
    assert_eq!(naps, [nap(60_000), nap(10_000), nap(60_000)]);
    assert_eq!(world.count(Event::ThpCollapseAllocFailed), 3);
    assert_eq!(world.nr_huge(), 0);
    world.machine.config.thp = Thp::Never;
    assert_eq!(world.khugepaged(), Some(DaemonRest::UNTIL_WOKEN));
    world.machine.audit().unwrap();
}

#[test]
fn khugepaged_passes_over_what_is_in_swap() {
    let config = Config { thp: Thp::Madvise, ..Config::default() };
    let mut world = world(24, config);
    world.audit = false;
    let (mm, vma) = world.heap(12 * HUGE, Advice::Huge);
    for region in 0..12 {
        world.access(mm, vma, region * HUGE, false);
    }
    world.fill((mm, vma), 0..12 * HUGE);
    world.settle();
    assert!(world.machine.vma(vma).unwrap().nr_swapped > 0);
    world.machine.config.khugepaged_defrag = false;
    for _ in 0..4 {
        world.khugepaged_round();
    }
    world.machine.audit().unwrap();
    for region in 0..12 {
        let ptes = &world.machine.vma(vma).unwrap().ptes[(region * 512) as usize..][..512];
        let swapped = ptes.iter().any(|pte| pte.swap_slot().is_some());
        let huge =
            ptes[0].is_present() && world.machine.mem.pages[ptes[0].pfn()].has(PageFlags::HEAD);
        assert!(!(swapped && huge), "region {region}");
    }
}

/// Four regions of small pages, touched in scattered order, with `nr_swapped` pages in swap.
fn partly_swapped(config: Config, nr_swapped: u64) -> (TestWorld, VmaId) {
    let mut world = world(64, config);
    world.disk_works = true;
    world.disk_speed = 1000;
    let (mm, vma) = world.heap(4 * HUGE, Advice::Huge);
    for region in 0..4 {
        world.access(mm, vma, region * HUGE, false);
    }
    // Two passes: reclaim first finds unused pages, and the referenced bits are cleared by then.
    for pass in 0..2 {
        for at in 0..4 * HUGE {
            let page = at * 1237 % (4 * HUGE);
            if pass == 0 || at >= nr_swapped {
                world.access(mm, vma, page, true);
            }
        }
        world.machine.mem.drain_all();
    }
    world.write_group(mm, Machine::ROOT, "memory.reclaim", &bytes_of(nr_swapped));
    world.settle();
    for page in 0..4 * HUGE {
        world.touch(vma, page, false);
    }
    (world, vma)
}

fn bytes_of(pages: u64) -> String {
    (pages * PAGE_SIZE).to_string()
}

#[test]
fn khugepaged_reads_a_few_pages_back_from_swap() {
    // Each page alone: khugepaged drops the lock of the address space while it waits for a window.
    let config = Config { thp: Thp::Madvise, page_cluster: 0, ..Config::default() };
    let (mut world, vma) = partly_swapped(config.clone(), 128);
    let swapped = world.machine.vma(vma).unwrap().nr_swapped;
    assert!((64..224).contains(&swapped), "{swapped} of four regions");
    for _ in 0..4 {
        world.khugepaged_round();
    }
    world.machine.audit().unwrap();
    assert!(world.count(Event::ThpCollapseAlloc) >= 3);
    assert!(world.count(Event::Pswpin) >= swapped * 3 / 4);
    assert!(world.nr_huge() >= 3);

    // With `max_ptes_swap` = 0 no page may be in swap.
    let config = Config { khugepaged_max_ptes_swap: 0, ..config };
    let (mut world, vma) = partly_swapped(config, 128);
    let swapped = world.machine.vma(vma).unwrap().nr_swapped;
    world.khugepaged_round();
    assert_eq!(world.count(Event::ThpScanExceedSwapPte), 4);
    assert_eq!((world.count(Event::Pswpin), world.nr_huge()), (0, 0));
    assert_eq!(world.machine.vma(vma).unwrap().nr_swapped, swapped);
}

#[test]
fn khugepaged_looks_at_those_that_might_have_huge_pages() {
    let config = Config { thp: Thp::Madvise, ..Config::default() };
    let mut world = world(64, config);
    let (mm, vma) = world.heap(HUGE, Advice::Normal);
    world.access(mm, vma, 0, true);
    assert_eq!(
        world.khugepaged(),
        Some(DaemonRest::UNTIL_WOKEN),
        "no task has faulted in an eligible region"
    );
    let (mm, vma) = world.heap(HUGE, Advice::Huge);
    assert_eq!(world.khugepaged(), Some(DaemonRest::UNTIL_WOKEN), "a mapping alone has no pages");
    world.access(mm, vma, 0, false);
    world.access(mm, vma, 0, true);
    world.khugepaged_round();
    assert_eq!(world.count(Event::ThpCollapseAlloc), 1);
    world.exit(mm);
    assert_eq!(world.khugepaged(), Some(DaemonRest::UNTIL_WOKEN), "the address space has ended");
}

#[derive(Clone, Debug)]
enum HugeOperation {
    Write { vma: usize, page: u64, nr: u64 },
    Read { vma: usize, page: u64 },
    Discard { vma: usize, page: u64, nr: u64 },
    Split { vma: usize, region: u64 },
    Unmap { vma: usize },
    FileRead { page: u64, pages: u64 },
    Khugepaged,
    Kcompactd,
    Copies { held: bool },
    Complete,
    Kswapd,
}

fn operation() -> impl Strategy<Value = HugeOperation> {
    let pages = 5 * HUGE;
    prop_oneof![
        8 => (0..3usize, 0..pages, 1..700u64)
            .prop_map(|(vma, page, nr)| HugeOperation::Write { vma, page, nr }),
        3 => (0..3usize, 0..pages).prop_map(|(vma, page)| HugeOperation::Read { vma, page }),
        3 => (0..3usize, 0..pages, 1..1500u64)
            .prop_map(|(vma, page, nr)| HugeOperation::Discard { vma, page, nr }),
        2 => (0..3usize, 0..5u64).prop_map(|(vma, region)| HugeOperation::Split { vma, region }),
        1 => (0..3usize).prop_map(|vma| HugeOperation::Unmap { vma }),
        2 => (0..2000u64, 1..200u64)
            .prop_map(|(page, pages)| HugeOperation::FileRead { page, pages }),
        4 => Just(HugeOperation::Khugepaged),
        2 => Just(HugeOperation::Kcompactd),
        2 => any::<bool>().prop_map(|held| HugeOperation::Copies { held }),
        4 => Just(HugeOperation::Complete),
        3 => Just(HugeOperation::Kswapd),
    ]
}

fn run_operations(operations: &[HugeOperation], thp_defrag: ThpDefrag, max: u64, swap: u32) {
    let config = Config { thp_defrag, khugepaged_max_ptes_none: 200, ..always() };
    let mut world = TestWorld::of(16, 1, config, swap);
    // Mapping 2 belongs to a group.
    let (_, grouped, in_group) = group(&mut world, max, 5 * HUGE, Advice::Huge);
    let root = world.machine.create_mm(Machine::ROOT).unwrap();
    let owners = [root, root, grouped];
    let map = |world: &mut TestWorld, mm: MmId, vma: usize| {
        let advice = if vma == 0 { Advice::Normal } else { Advice::Huge };
        world.map(mm, Backing::Anon, 5 * HUGE, advice)
    };
    let mut vmas = [map(&mut world, root, 0), map(&mut world, root, 1), in_group];
    let file = world.machine.create_file(2500 * PAGE_SIZE, false).unwrap();
    for operation in operations {
        // A killed task has no mappings; other objects may have their ids.
        for vma in (0..3).filter(|&vma| world.machine.is_exited(owners[vma])) {
            vmas[vma] = VmaId::NONE;
        }
        match *operation {
            HugeOperation::Write { vma, page, nr } => {
                for page in (page..5 * HUGE).take(nr as usize).step_by(3) {
                    if !world.machine.is_exited(owners[vma]) {
                        world.access(owners[vma], vmas[vma], page, true);
                    }
                }
            }
            HugeOperation::Read { vma, page } => {
                if !world.machine.is_exited(owners[vma]) {
                    world.access(owners[vma], vmas[vma], page, false);
                }
            }
            HugeOperation::Discard { vma, page, nr } => {
                // The mapping may be gone.
                let _ = world.discard(vmas[vma], page, nr);
            }
            HugeOperation::Split { vma, region } => {
                let mapping = world.machine.vma(vmas[vma]).ok();
                if let Some(pte) = mapping.and_then(|it| it.ptes.get((region * HUGE) as usize)) {
                    if pte.is_present() && !pte.is_zero_page() {
                        let pfn = pte.pfn();
                        world.machine.split_huge_page(pfn);
                    }
                }
            }
            HugeOperation::Unmap { vma } => {
                if !world.machine.is_exited(owners[vma]) {
                    world.munmap(vmas[vma]);
                    vmas[vma] = map(&mut world, owners[vma], vma);
                }
            }
            HugeOperation::FileRead { page, pages } => {
                let (offset, len) = (page * PAGE_SIZE, pages * PAGE_SIZE);
                if !world.machine.is_exited(root) {
                    let readahead = Default::default();
                    world.drive(&mut ProcessCall::read(
                        root,
                        NodeId(0),
                        file,
                        offset,
                        len,
                        readahead,
                    ));
                }
            }
            HugeOperation::Khugepaged => {
                world.khugepaged();
            }
            HugeOperation::Kcompactd => {
                world.now += 600_000_000;
                world.kcompactd();
            }
            HugeOperation::Copies { held } => {
                world.holds_copies = held;
                world.finish_copies();
            }
            HugeOperation::Complete => world.complete_one(),
            HugeOperation::Kswapd => world.kswapd(),
        }
        world.machine.audit().unwrap();
    }
    world.finish_copies();
    world.settle();
    for mm in [root, grouped] {
        // A killed task has ended already.
        if !world.machine.is_exited(mm) {
            world.exit(mm);
        }
    }
    world.machine.audit().unwrap();
    assert_eq!((world.stat(NodeStat::NrAnonPages), world.nr_huge()), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn random_operations_keep_every_invariant(
        operations in proptest::collection::vec(operation(), 1..150),
        defrag in prop_oneof![
            Just(ThpDefrag::Always),
            Just(ThpDefrag::Defer),
            Just(ThpDefrag::DeferMadvise),
            Just(ThpDefrag::Madvise),
            Just(ThpDefrag::Never),
        ],
        max in 600..3000u64,
        swap in prop_oneof![Just(1u32 << 13), Just(600)],
    ) {
        run_operations(&operations, defrag, max, swap);
    }
}
