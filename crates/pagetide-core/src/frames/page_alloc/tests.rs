//! The allocator as a whole: shortcuts, pageblocks, watermarks and reserves.

use super::*;
use crate::config::FallbackPolicy;
use crate::frames::boot::SetupError;
use crate::frames::buddy::clear_tails;
use crate::frames::buddy::Placement;
use crate::frames::node::{NodeSpec, ZoneSpec};
use crate::frames::zone_type::{ZONE_DMA, ZONE_DMA32, ZONE_HIGHMEM, ZONE_NORMAL};
use crate::units::digest::Digest;
use proptest::prelude::*;
use std::vec;

const CPU: Cpu = Cpu(0);
const NODE: NodeId = NodeId(0);
const USER: Gfp = Gfp::HIGHUSER_MOVABLE;

/// One CPU and one node with a zone Normal of this many pages.
pub(in crate::frames) fn normal(pages: u64) -> Memory {
    let mut spec = NodeSpec::default();
    spec.zones[ZONE_NORMAL] = ZoneSpec::all_free(pages);
    Memory::new(&[spec], 1).unwrap()
}

fn zone(memory: &mut Memory) -> &mut Zone {
    &mut memory.nodes[0].zones[ZONE_NORMAL]
}

fn digest(memory: &Memory) -> u64 {
    let mut digest = Digest::new();
    memory.digest(&mut digest);
    digest.finish()
}

/// Takes all pages with such a request, ignoring watermarks.
fn take_all(memory: &mut Memory, gfp: Gfp) -> Vec<Pfn> {
    let flags = AllocFlags::at(Watermark::None);
    core::iter::from_fn(|| memory.get_page_from_freelist(CPU, NODE, 0, gfp, flags)).collect()
}

#[test]
fn the_last_page_freed_is_the_first_to_go() {
    let mut memory = normal(8192);
    let first = memory.alloc_fast(CPU, NODE, 0, USER).unwrap();
    let second = memory.alloc_fast(CPU, NODE, 0, USER).unwrap();
    assert_eq!(second.0, first.0 + 1, "a refill hands out frames in address order");
    memory.free_page(CPU, first, 0);
    memory.free_page(CPU, second, 0);
    assert_eq!(memory.alloc_fast(CPU, NODE, 0, USER), Some(second));
    assert_eq!(memory.alloc_fast(CPU, NODE, 0, USER), Some(first));
}

#[test]
fn the_kernel_takes_the_low_end_of_a_zone() {
    let mut spec = NodeSpec::default();
    spec.zones[ZONE_DMA] = ZoneSpec { free: 3808, ..ZoneSpec::with_reserved(3998, 158) };
    spec.zones[ZONE_DMA32] = ZoneSpec { free: 43_434, ..ZoneSpec::with_reserved(61_399, 9593) };
    let memory = Memory::new(&[spec], 1).unwrap();
    memory.audit().unwrap();
    let [dma, dma32, ..] = &memory.nodes[0].zones;
    assert_eq!((dma.start_pfn, dma.spanned), (Pfn(1), 4095));
    assert_eq!((dma32.start_pfn, dma32.spanned), (Pfn(4096), 61_399));
    assert_eq!((dma.free_pages(), dma32.free_pages()), (3808, 43_434));
    assert_eq!(memory.pages.peek(255).place, Place::Reserved);
    assert_eq!(memory.pages.peek(4096 + 9592).place, Place::Reserved);
    // 8372 pages fill 16.4 pageblocks; the kernel claims only the blocks that it touches.
    let kernel = dma32.block_counts()[MigrateType::Unmovable as usize];
    assert!((17..=19).contains(&kernel), "{kernel}");
    let pages = (0..memory.pages.len()).map(|at| memory.pages.peek(at));
    let held = pages.filter(|page| page.place == Place::Allocated);
    let held: usize = held.map(|page| 1usize << page.order).sum();
    assert_eq!(held, 32 + 8372);
}

/// A refill is two huge pages; orders between 3 and 9 have no list.
#[test]
fn per_cpu_lists_keep_huge_pages() {
    let mut memory = normal(1 << 20);
    let pfn = memory.alloc_fast(CPU, NODE, 9, USER).unwrap();
    let free = zone(&mut memory).free_pages();
    assert_eq!(zone(&mut memory).pcp_pages(), 512);
    memory.free_page(CPU, pfn, 9);
    assert_eq!((zone(&mut memory).pcp_pages(), zone(&mut memory).free_pages()), (1024, free));
    assert_eq!(memory.alloc_fast(CPU, NODE, 9, USER), Some(pfn), "the last one freed comes first");
    let smaller = memory.alloc_fast(CPU, NODE, 8, USER).unwrap();
    memory.free_page(CPU, smaller, 8);
    assert_eq!((zone(&mut memory).pcp_pages(), zone(&mut memory).free_pages()), (512, free));
    memory.drain_all();
    assert_eq!(zone(&mut memory).pcp_pages(), 0);
    memory.audit().unwrap();
}

#[test]
fn a_zone_at_its_mark_gives_way_to_the_next() {
    let mut spec = NodeSpec::default();
    spec.zones[ZONE_DMA] = ZoneSpec::all_free(4096);
    spec.zones[ZONE_DMA32] = ZoneSpec::all_free(8192);
    let mut memory = Memory::new(&[spec], 1).unwrap();
    let low = memory.nodes[0].zones[ZONE_DMA32].wmark(Watermark::Low);
    loop {
        let pfn = memory.alloc_fast(CPU, NODE, 0, USER).unwrap();
        if memory.pages[pfn].zone() == ZONE_DMA {
            break;
        }
    }
    // The last refill may go below the watermark: the check is made before it.
    let batch = u64::from(memory.nodes[0].zones[ZONE_DMA32].pcps[0].batch);
    let free = memory.nodes[0].zones[ZONE_DMA32].free_pages();
    assert!(free <= low + 2 && free + batch > low - 2, "{free} {low}");
    while memory.alloc_fast(CPU, NODE, 0, USER).is_some() {}
    let dma = &memory.nodes[0].zones[ZONE_DMA];
    // The counter moves by three pages at a time in a zone of this size.
    let limit = dma.watermark_low + dma.lowmem_reserve[3];
    assert!((limit - 2..=limit).contains(&dma.free_pages_counted()));
    assert!(dma.free_pages().abs_diff(dma.free_pages_counted()) <= 2);
}

#[test]
fn the_first_mix_of_kinds_boosts_the_marks_and_wakes_kswapd_for_that_zone() {
    let mut memory = normal(16 * 1024);
    let user = take_all(&mut memory, USER);
    // Every second frame: no free block is large enough for the kernel to claim a pageblock.
    user.iter().step_by(2).for_each(|&pfn| memory.free_page(CPU, pfn, 0));
    memory.drain_all();
    let high = zone(&mut memory).watermark_high;
    assert!(memory.alloc_fast(CPU, NODE, 0, Gfp::KERNEL).is_some());
    assert_eq!(memory.vmstat.get(Event::MmPageAllocExtfrag), 1);
    assert_eq!(zone(&mut memory).watermark_boost, 512);
    assert_eq!(zone(&mut memory).wmark(Watermark::High), high + 512);
    let wakeup = Wakeup { node: NODE, order: 0, highest_zoneidx: ZONE_NORMAL };
    assert_eq!(memory.wakeups, [wakeup]);
    // Half of the pageblock was free: the kernel now has it and its free pages.
    assert_eq!(zone(&mut memory).block_counts()[MigrateType::Unmovable as usize], 1);
    memory.audit().unwrap();
    memory.setup_watermarks(&WatermarkInputs::default());
    assert_eq!(zone(&mut memory).watermark_boost, 0);
}

#[test]
fn in_6_12_a_request_claims_a_pageblock_or_takes_pages_of_the_smallest_block() {
    let inputs = WatermarkInputs { fallback: FallbackPolicy::Linux612, ..Default::default() };
    let inputs = WatermarkInputs { watermark_boost_factor: 150_000, ..inputs };
    // A request of the other kernel type tries to claim both sizes of free blocks, once for the
    // whole refill, and each try boosts the marks. Movable ones claim no block below order 4.
    for (other, boost) in [(Gfp::KERNEL.with(Gfp::RECLAIMABLE), 1024), (USER, 0)] {
        let mut memory = normal(16 * 1024);
        memory.setup_watermarks(&inputs);
        let taken = take_all(&mut memory, Gfp::KERNEL);
        memory.setup_watermarks(&inputs);
        let is_free = |pfn: &&Pfn| pfn.0 % 512 == 9 || (8208..8216).contains(&pfn.0);
        taken.iter().filter(is_free).for_each(|&pfn| memory.free_page(CPU, pfn, 0));
        memory.drain_all();
        let before = zone(&mut memory).buddyinfo();
        let flags = AllocFlags { kswapd: true, ..AllocFlags::at(Watermark::None) };
        memory.get_page_from_freelist(CPU, NODE, 0, other, flags).unwrap();
        memory.drain_all();
        assert_eq!(zone(&mut memory).watermark_boost, boost);
        assert_eq!(zone(&mut memory).buddyinfo()[3], 1, "the larger block is whole");
        assert_eq!(zone(&mut memory).buddyinfo()[0], before[0] - 1);
        memory.audit().unwrap();
        // Half a pageblock is enough to claim it.
        taken.iter().filter(|pfn| (1280..1536).contains(&pfn.0) && pfn.0 % 512 != 9).for_each(
            |&pfn| {
                memory.free_page(CPU, pfn, 0);
            },
        );
        memory.drain_all();
        let pfn = memory.get_page_from_freelist(CPU, NODE, 0, other, flags).unwrap();
        assert_eq!(zone(&mut memory).block_type(pfn), other.migrate_type());
        memory.audit().unwrap();
    }
}

#[test]
fn a_cached_page_does_not_prevent_waking_kswapd() {
    let mut memory = normal(64 * 1024);
    memory.alloc_fast(CPU, NODE, 0, USER).unwrap();
    zone(&mut memory).boosted = true;
    memory.alloc_fast(CPU, NODE, 0, USER).unwrap();
    assert_eq!(memory.wakeups.len(), 1);
    assert!(!zone(&mut memory).boosted);
}

#[test]
fn a_block_that_will_likely_merge_goes_to_the_tail() {
    let mut memory = normal(4096);
    let Memory { pages, nodes, .. } = &mut memory;
    let zone = &mut nodes[0].zones[ZONE_NORMAL];
    let mt = MigrateType::Movable;
    while let Some(pfn) = zone.take_smallest(pages, 0, mt) {
        mark_allocated(pages, pfn, 0);
    }
    let mut free = |at, order| {
        clear_tails(pages, Pfn(at), order);
        zone.free_block(pages, Pfn(at), order, mt, Placement::Likely);
        zone.free_area[usize::from(order)].lists[mt].iter(pages).collect::<Vec<_>>()
    };
    free(2, 1);
    assert_eq!(free(16, 0), [Pfn(16)]);
    assert_eq!(free(20, 0), [Pfn(20), Pfn(16)]);
    // Frame 0's buddy is in use, but frames 2 and 3 are free and would join the two.
    assert_eq!(free(0, 0), [Pfn(20), Pfn(16), Pfn(0)]);
    // A block of order 9 cannot merge into a larger one.
    free(3072, 10);
    assert_eq!(free(512, 9), [Pfn(512)]);
    assert_eq!(free(2048, 9), [Pfn(2048), Pfn(512)]);
}

#[test]
fn pages_on_per_cpu_lists_follow_their_pageblock() {
    let mut memory = normal(64 * 1024);
    let user = memory.alloc_fast(CPU, NODE, 0, USER).unwrap();
    memory.free_page(CPU, user, 0);
    // The rest of the batch is on the movable list when its pageblock is reserved.
    let Memory { pages, nodes, .. } = &mut memory;
    nodes[0].zones[ZONE_NORMAL].reserve_highatomic(pages, user);
    memory.drain_all();
    memory.audit().unwrap();
    assert_eq!(zone(&mut memory).pagetypeinfo(MigrateType::HighAtomic)[9], 1);
}

#[test]
fn boosts_end_at_the_cap_and_can_be_switched_off() {
    let mut memory = normal(16 * 1024);
    let inputs = WatermarkInputs { watermark_boost_factor: 0, ..WatermarkInputs::default() };
    for (factor, boost) in [(0, 0), (10_000, 512), (15_000, 576), (150_000, 5760)] {
        memory.setup_watermarks(&WatermarkInputs { watermark_boost_factor: factor, ..inputs });
        assert_eq!(zone(&mut memory).watermark_high, 384);
        let user = take_all(&mut memory, USER);
        // One free page in each pageblock is too little to claim any, so each request mixes types.
        let free: Vec<Pfn> = user.iter().copied().filter(|pfn| pfn.0 % 512 == 9).collect();
        memory.free_batch(CPU, &free);
        memory.drain_all();
        let kernel: Vec<Pfn> = take_all(&mut memory, Gfp::KERNEL);
        assert_eq!(zone(&mut memory).watermark_boost, boost);
        user.iter().filter(|pfn| pfn.0 % 512 != 9).for_each(|&p| memory.free_page(CPU, p, 0));
        memory.free_batch(CPU, &kernel);
        memory.drain_all();
        memory.audit().unwrap();
    }
}

#[test]
fn an_atomic_request_of_larger_order_reserves_its_pageblock() {
    let mut memory = normal(8192);
    let flags = AllocFlags::slow(Gfp::ATOMIC);
    let get = |memory: &mut Memory, order| {
        memory.get_page_from_freelist(CPU, NODE, order, Gfp::ATOMIC, flags).unwrap()
    };
    let pfn = get(&mut memory, 2);
    assert_eq!(zone(&mut memory).nr_reserved_highatomic, 512);
    assert_eq!(zone(&mut memory).block_type(pfn), MigrateType::HighAtomic);
    // The reserve serves the next request, and its pages return to the reserve.
    let next = get(&mut memory, 4);
    assert_eq!(next.0 >> 9, pfn.0 >> 9);
    memory.free_page(CPU, next, 4);
    memory.free_page(CPU, pfn, 2);
    memory.drain_all();
    memory.audit().unwrap();
    let movable = MigrateType::Movable;
    assert!(!memory.unreserve_highatomic(NODE, ZONE_NORMAL, movable, HighAtomicRelease::No));
    assert!(memory.unreserve_highatomic(NODE, ZONE_NORMAL, movable, HighAtomicRelease::Yes));
    assert_eq!(zone(&mut memory).nr_reserved_highatomic, 0);
    memory.audit().unwrap();
    // The pageblock may now merge, and has merged with its neighbour.
    assert_eq!(zone(&mut memory).buddyinfo()[10], 8);
}

#[test]
fn two_reserved_pageblocks_that_merged_are_given_up_one_by_one() {
    let mut memory = normal(8192);
    let flags = AllocFlags::slow(Gfp::ATOMIC);
    let first: Vec<Pfn> = (0..3)
        .map(|_| memory.get_page_from_freelist(CPU, NODE, 8, Gfp::ATOMIC, flags).unwrap())
        .collect();
    assert_eq!(zone(&mut memory).nr_reserved_highatomic, 1024);
    first.iter().for_each(|&pfn| memory.free_page(CPU, pfn, 8));
    assert_eq!(zone(&mut memory).pagetypeinfo(MigrateType::HighAtomic)[10], 1);
    let kind = MigrateType::Unmovable;
    assert!(memory.unreserve_highatomic(NODE, ZONE_NORMAL, kind, HighAtomicRelease::No));
    assert_eq!(zone(&mut memory).nr_reserved_highatomic, 512);
    assert_eq!(zone(&mut memory).pagetypeinfo(MigrateType::HighAtomic)[9], 1);
    memory.audit().unwrap();
    assert!(memory.unreserve_highatomic(NODE, ZONE_NORMAL, kind, HighAtomicRelease::Yes));
    memory.audit().unwrap();
}

#[test]
fn compaction_can_take_a_free_block_out_but_not_the_reserve() {
    let mut memory = normal(4096);
    let head = zone(&mut memory).first_block(10, MigrateType::Movable).unwrap();
    let Memory { pages, nodes, .. } = &mut memory;
    let zone = &mut nodes[0].zones[ZONE_NORMAL];
    assert_eq!(zone.isolate_free_block(pages, Pfn(head.0 + 1)), None);
    assert_eq!(zone.isolate_free_block(pages, head), Some(10));
    assert_eq!(zone.free_pages(), 4096 - 1024);
    zone.watermark_min = 4096;
    zone.watermark_low = 4096;
    zone.watermark_high = 4096;
    let next = zone.first_block(10, MigrateType::Movable).unwrap();
    assert_eq!(zone.isolate_free_block(pages, next), None);
    (head.0..head.0 + 1024).for_each(|pfn| memory.free_page(CPU, Pfn(pfn), 0));
    memory.drain_all();
    memory.audit().unwrap();
    assert_eq!(memory.free_pages(), 4096);
}

#[test]
fn near_memory_is_preferred_to_tidy_pageblocks() {
    // Two nodes; node 0 is full of user pages except every second one.
    let mut spec = NodeSpec::default();
    spec.zones[ZONE_DMA32] = ZoneSpec::all_free(4096);
    let mut near = spec;
    near.zones[ZONE_NORMAL] = ZoneSpec::default();
    let mut far = NodeSpec::default();
    far.zones[ZONE_NORMAL] = ZoneSpec::all_free(4096);
    let mut memory = Memory::new(&[near, far], 2).unwrap();
    assert_eq!((memory.cpu_node(Cpu(0)), memory.cpu_node(Cpu(1))), (NodeId(0), NodeId(1)));
    let list = &memory.zonelists[1][ZONE_NORMAL];
    assert_eq!(list.zones.len(), 2);
    assert_eq!(list.preferred, Some(ZoneRef { node: NodeId(1), zone: ZONE_NORMAL as u8 }));
    // Node 1 has no DMA32 of its own, so it does not avoid mixing.
    assert!(!list.nofragment);
    let mut user = vec![];
    while let Some(pfn) = memory.alloc_fast(Cpu(1), NodeId(1), 0, USER) {
        if memory.pages[pfn].node() == NodeId(0) {
            break;
        }
        user.push(pfn);
    }
    user.iter().step_by(2).for_each(|&pfn| memory.free_page(Cpu(1), pfn, 0));
    memory.drain_all();
    let pfn = memory.alloc_fast(Cpu(1), NodeId(1), 0, Gfp::KERNEL).unwrap();
    assert_eq!(memory.pages[pfn].node(), NodeId(1));
}

#[test]
fn bad_machines_are_refused() {
    use crate::frames::boot::SetupError as E;
    let of = |zone: usize, spec| {
        let mut node = NodeSpec::default();
        node.zones[zone] = spec;
        node
    };
    let ok = of(ZONE_NORMAL, ZoneSpec::all_free(1024));
    let err = |specs: &[NodeSpec], cpus| Memory::new(specs, cpus).map(|_| ()).unwrap_err();
    assert_eq!(err(&[], 1), E::NodeCount(0));
    assert_eq!(err(&[ok; 65], 1), E::NodeCount(65));
    assert_eq!(err(&[ok], 0), E::NoCpu);
    assert_eq!(err(&[NodeSpec::default()], 1), E::NoMemory);
    assert_eq!(err(&[ok, of(ZONE_DMA, ZoneSpec::all_free(8))], 1), E::LowZone(NodeId(1)));
    let large = of(ZONE_DMA, ZoneSpec::all_free(4097));
    assert_eq!(err(&[large], 1), E::ZoneTooLarge(NODE, ZONE_DMA));
    let odd = ZoneSpec { present: 10, free: 5, ..ZoneSpec::all_free(20) };
    assert_eq!(err(&[of(ZONE_NORMAL, odd)], 1), E::ZoneCounts(NODE, ZONE_NORMAL));
    let huge = ZoneSpec::all_free(1 << 29);
    assert_eq!(err(&[of(ZONE_NORMAL, huge), ok], 1), E::TooManyPages((1 << 29) + 1024));
}

#[test]
#[should_panic(expected = "is freed but not in use")]
fn a_double_free_is_caught() {
    let mut memory = normal(4096);
    let pfn = memory.alloc_fast(CPU, NODE, 0, USER).unwrap();
    memory.free_page(CPU, pfn, 0);
    memory.free_page(CPU, pfn, 0);
}

/// Allocates and frees pages in an order given by `choices`; `hot` uses the shortcuts.
fn churn(choices: &[(u8, u16)], hot: bool) -> (u64, Memory) {
    let mut spec = NodeSpec::default();
    spec.zones[ZONE_DMA] = ZoneSpec::all_free(4096);
    spec.zones[ZONE_NORMAL] = ZoneSpec::all_free(12_288);
    let mut memory = Memory::new(&[spec], 2).unwrap();
    let mut live = vec![];
    for &(what, how) in choices {
        let cpu = Cpu(how & 1);
        let gfp = if what & 1 == 0 { USER } else { Gfp::KERNEL };
        for i in 0..usize::from(how) {
            if what & 2 == 0 {
                let pfn = if hot {
                    memory.alloc_fast(cpu, NODE, 0, gfp)
                } else {
                    memory.alloc_walk(cpu, NODE, 0, gfp)
                };
                live.extend(pfn);
            } else if !live.is_empty() {
                let pfn = live.swap_remove((i * usize::from(what)) % live.len());
                if hot {
                    memory.free_page(cpu, pfn, 0);
                } else {
                    memory.free_block(cpu, pfn, 0);
                }
            }
        }
    }
    (digest(&memory), memory)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The hot paths have the same results as the general ones, including all counters.
    #[test]
    fn hot_paths_change_nothing(
        choices in prop::collection::vec((0..8u8, prop_oneof![1..9u16, 1..900u16]), 1..30),
    ) {
        let (hot, memory) = churn(&choices, true);
        let (general, _) = churn(&choices, false);
        prop_assert_eq!(hot, general);
        memory.audit().unwrap();
    }

    /// Fetching a batch as runs has the same result as single requests, lists included.
    #[test]
    fn runs_are_single_requests(
        choices in prop::collection::vec((0..8u8, 1..900u16), 1..20),
        order in 0..=3u8,
        count in 1..70u32,
    ) {
        let (_, mut a) = churn(&choices, true);
        let (_, mut b) = churn(&choices, true);
        let mt = MigrateType::Movable;
        let mut runs = vec![];
        while (runs.len() as u32) < count {
            let Memory { pages, nodes, .. } = &mut a;
            let zone = &mut nodes[0].zones[ZONE_NORMAL];
            let Some((first, nr)) = zone.take_run(pages, order, mt, count - runs.len() as u32)
            else {
                break;
            };
            runs.extend((0..nr).map(|i| Pfn(first.0 + (i << order))));
        }
        for &run in &runs {
            let Memory { pages, nodes, .. } = &mut b;
            let zone = &mut nodes[0].zones[ZONE_NORMAL];
            prop_assert_eq!(zone.take_smallest(pages, order, mt), Some(run));
        }
        let lists = |memory: &Memory| {
            let zone = &memory.nodes[0].zones[ZONE_NORMAL];
            let pages = &memory.pages;
            let lists = zone.free_area.iter().flat_map(|area| &area.lists);
            lists.flat_map(|list| list.iter(pages).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        prop_assert_eq!(lists(&a), lists(&b));
    }

    /// Merging runs beforehand leaves the same lists as freeing page by page.
    #[test]
    fn runs_are_single_frees(
        choices in prop::collection::vec((0..8u8, 1..900u16), 1..20),
        start in 0..3000usize,
        skips in prop::collection::vec(1..40usize, 0..40),
    ) {
        let (_, mut a) = churn(&choices, true);
        a.drain_all();
        let mut all = take_all(&mut a, USER);
        all.sort();
        let mut b = a.clone();
        // Runs of neighbours with gaps between them, some of them reversed.
        let mut at = start;
        let mut freed: Vec<Pfn> = vec![];
        for (nth, skip) in skips.iter().enumerate() {
            let mut run: Vec<Pfn> = all.iter().skip(at).take(*skip).copied().collect();
            if nth % 3 == 2 {
                run.reverse();
            }
            freed.extend(run);
            at += skip + skip % 3;
        }
        let (mut one_by_one, mut as_runs) = (vec![], vec![]);
        for (memory, lists, single) in [(&mut a, &mut one_by_one, true), (&mut b, &mut as_runs, false)] {
            let Memory { pages, nodes, .. } = memory;
            for pfn in &freed {
                clear_page(&mut pages[*pfn], Place::Pcp);
                pages[*pfn].private = MigrateType::Movable as u32;
            }
            for index in [ZONE_DMA, ZONE_NORMAL] {
                let zone = &mut nodes[0].zones[index];
                let of_zone: Vec<Pfn> =
                    freed.iter().copied().filter(|pfn| zone.spans(pfn.0)).collect();
                if single {
                    of_zone.iter().for_each(|pfn| zone.free_oldest(pages, &[*pfn], 0));
                } else {
                    zone.free_oldest(pages, &of_zone, 0);
                }
                let areas = zone.free_area.iter().flat_map(|area| &area.lists);
                lists.extend(areas.flat_map(|list| list.iter(pages).collect::<Vec<_>>()));
            }
            memory.audit().unwrap();
        }
        prop_assert_eq!(one_by_one, as_runs);
    }
}

/// A zone of 16 pageblocks, the last six of them CMA.
fn with_cma(fallback: FallbackPolicy) -> Memory {
    let mut node = NodeSpec::default();
    node.zones[ZONE_NORMAL] = ZoneSpec { cma: 6 * 512, ..ZoneSpec::all_free(16 * 512) };
    let mut memory = Memory::new(&[node], 1).unwrap();
    memory.setup_watermarks(&WatermarkInputs { fallback, ..Default::default() });
    memory
}

/// Takes single pages until none is left above the low watermark. Returns how many were CMA, and
/// how many other pages came before the first of these.
fn take_above_low(memory: &mut Memory, gfp: Gfp) -> (usize, usize) {
    let taken = core::iter::from_fn(|| memory.alloc_fast(Cpu(0), NodeId(0), 0, gfp));
    let taken: Vec<Pfn> = taken.collect();
    memory.audit().unwrap();
    let zone = &memory.nodes[0].zones[ZONE_NORMAL];
    let is_cma = |pfn: &&Pfn| zone.block_type(**pfn) == MigrateType::Cma;
    let nr_cma = taken.iter().filter(is_cma).count();
    (nr_cma, taken.iter().position(|pfn| is_cma(&pfn)).unwrap_or(taken.len()))
}

#[test]
fn only_movable_requests_take_cma() {
    for fallback in FallbackPolicy::ALL {
        let mut memory = with_cma(*fallback);
        let low = memory.nodes[0].zones[ZONE_NORMAL].watermark_low as usize;
        let (nr_cma, others) = take_above_low(&mut memory, Gfp::KERNEL);
        assert_eq!(nr_cma, 0);
        assert!(others.abs_diff(10 * 512 - low) < 64, "{others} of {}", 10 * 512 - low);
        // Now most free pages are CMA, and more than the low watermark.
        assert!(memory.alloc_fast(Cpu(0), NodeId(0), 0, Gfp::KERNEL).is_none());
        assert!(take_above_low(&mut memory, Gfp::HIGHUSER_MOVABLE).0 > 6 * 512 - 64);
        assert_eq!(memory.nodes[0].zones[ZONE_NORMAL].block_counts()[MigrateType::Cma.idx()], 6);
    }
}

#[test]
fn cma_is_taken_first_while_it_is_more_than_half_of_free_memory() {
    let mut memory = with_cma(FallbackPolicy::Linux61);
    let (_, others) = take_above_low(&mut memory, Gfp::HIGHUSER_MOVABLE);
    assert!(others.abs_diff(4 * 512) < 64, "{others}: of 16 pageblocks 12 are then free");
    let mut memory = with_cma(FallbackPolicy::Linux54);
    let (_, others) = take_above_low(&mut memory, Gfp::HIGHUSER_MOVABLE);
    assert_eq!(others, 10 * 512, "up to 5.6 the movable lists come first");
}

#[test]
fn an_unmovable_huge_block_is_not_a_freed_cma_block() {
    let mut memory = with_cma(FallbackPolicy::Linux54);
    let huge = |memory: &mut Memory, gfp| memory.alloc_fast(Cpu(0), NodeId(0), 9, gfp);
    let mut taken = Vec::new();
    while let Some(pfn) = huge(&mut memory, Gfp::TRANSHUGE_LIGHT) {
        taken.push(pfn);
    }
    for pfn in taken {
        memory.free_page(Cpu(0), pfn, 9);
    }
    memory.audit().unwrap();
    while let Some(pfn) = huge(&mut memory, Gfp::KERNEL) {
        assert_ne!(memory.nodes[0].zones[ZONE_NORMAL].block_type(pfn), MigrateType::Cma);
    }
}

#[test]
fn cma_has_whole_pageblocks_above_the_kernels_memory() {
    let machine = |zone: ZoneSpec| {
        let mut node = NodeSpec::default();
        node.zones[ZONE_NORMAL] = zone;
        Memory::new(&[node], 1).map(|memory| {
            memory.audit().unwrap();
            let zone = &memory.nodes[0].zones[ZONE_NORMAL];
            (zone.free_cma_pages(), zone.block_type(Pfn(zone.end_pfn() as u32 - 1)))
        })
    };
    // The kernel has the first 600 frames, and the last pageblock is not whole.
    let zone = ZoneSpec { free: 5 * 512 - 500, ..ZoneSpec::all_free(5 * 512 + 100) };
    assert_eq!(zone.cma_room(0..5 * 512 + 100), 3 * 512);
    let fits = machine(ZoneSpec { cma: 3 * 512, ..zone });
    assert_eq!(fits, Ok((3 * 512, MigrateType::Movable)));
    for cma in [3 * 512 + 1, 4 * 512, u64::MAX / 512 * 512] {
        let error = SetupError::FreeLists(NodeId(0), ZONE_NORMAL);
        assert_eq!(machine(ZoneSpec { cma, ..zone }), Err(error));
    }
}

#[test]
fn only_user_memory_is_in_highmem() {
    let mut node = NodeSpec::default();
    node.zones[ZONE_NORMAL] = ZoneSpec::all_free(2048);
    node.zones[ZONE_HIGHMEM] = ZoneSpec { is_highmem: true, ..ZoneSpec::all_free(4096) };
    let mut memory = Memory::new(&[node], 1).unwrap();
    let user = memory.alloc_fast(CPU, NODE, 0, USER).unwrap();
    assert_eq!(memory.pages[user].zone(), ZONE_HIGHMEM);
    let kernel = take_all(&mut memory, Gfp::KERNEL);
    assert!(
        kernel.len() == 2048 && kernel.iter().all(|pfn| memory.pages[*pfn].zone() == ZONE_NORMAL)
    );
    assert!(memory.alloc_fast(CPU, NODE, 0, Gfp::KERNEL).is_none());
    let user = memory.alloc_fast(CPU, NODE, 0, USER).unwrap();
    assert_eq!(memory.pages[user].zone(), ZONE_HIGHMEM);
}
