//! The figures that the computation must reproduce, and the special cases of the check.

use super::*;
use crate::frames::gfp::MigrateType;
use crate::frames::zone_type::{ZONE_DMA, ZONE_DMA32, ZONE_HIGHMEM};
use crate::units::{NodeId, Pfn};

fn zone(free: u64, reserve: u64) -> Zone {
    let mut zone = Zone::new(ZONE_NORMAL, NodeId(0), Pfn(0), 1 << 16, 1);
    zone.managed = 1 << 16;
    zone.add_free(free);
    zone.lowmem_reserve[MAX_NR_ZONES - 1] = reserve;
    zone
}

fn node(dma: u64, dma32: u64, normal: u64) -> Node {
    let zones = [(0, dma), (1, dma32), (2, normal), (3, 0)].map(|(index, managed)| {
        let mut zone = Zone::new(index, NodeId(0), Pfn(0), 0, 1);
        (zone.present, zone.managed) = (managed, managed);
        zone
    });
    Node { id: NodeId(0), zones, nr_cpus: 1, totalreserve_pages: 0 }
}

fn marks(zone: &Zone) -> (u64, u64, u64) {
    (zone.watermark_min, zone.watermark_low, zone.watermark_high)
}

#[test]
fn the_2_gb_machine_of_2011() {
    let min = default_min_free_kbytes(2_067_844, MIN_FREE_KBYTES_MAX_OLD);
    assert_eq!(min, 5752);
    let marks = WmarkKbytes::derived(min);
    assert_eq!((marks.min, marks.low, marks.high), (5752, 7190, 8628));
    // As one zone of the same size, in pages: 5752 / 4 = 1438.
    let inputs = WatermarkInputs {
        min_free_kbytes: min,
        policy: WatermarkPolicy::Derived,
        ..WatermarkInputs::default()
    };
    assert_eq!(zone_marks(516_961, 516_961, &inputs, PageSize::Kib4), (1438, 1797, 2157));
}

#[test]
fn default_reserve_is_clamped() {
    assert_eq!(default_min_free_kbytes(0, MIN_FREE_KBYTES_MAX), 128);
    assert_eq!(default_min_free_kbytes(64 << 10, MIN_FREE_KBYTES_MAX), 1024);
    assert_eq!(default_min_free_kbytes(16 << 20, MIN_FREE_KBYTES_MAX), 16_384);
    assert_eq!(default_min_free_kbytes(1 << 32, MIN_FREE_KBYTES_MAX_OLD), 65_536);
    assert_eq!(default_min_free_kbytes(1 << 40, MIN_FREE_KBYTES_MAX), 262_144);
    assert_eq!(default_min_free_kbytes(u64::MAX, MIN_FREE_KBYTES_MAX), 262_144);
}

fn booted(dma32: u64, late: u64) -> (Node, WatermarkInputs) {
    let mut nodes = [node(3840, dma32, 0)];
    nodes[0].zones[ZONE_DMA32].late = late;
    let mut inputs = WatermarkInputs::default();
    boot(&mut nodes, &mut inputs, PageSize::Kib4);
    let [node] = nodes;
    (node, inputs)
}

/// Debian's 6.1 kernel in a 256 MiB machine. Its watermarks follow from the memory at the time it
/// set them, without about 2600 pages of initial RAM disk and init code that are freed later.
#[test]
fn the_256_mib_machine_of_truth() {
    let (node, _) = booted(51_806, 2600);
    assert_eq!(marks(&node.zones[ZONE_DMA]), (33, 41, 49));
    assert_eq!(marks(&node.zones[ZONE_DMA32]), (426, 532, 638));
    // 192, not 51806 / 256 = 202: recordings stop using DMA at 225 = 33 + 192 free pages.
    assert_eq!(node.zones[ZONE_DMA].lowmem_reserve, [0, 192, 192, 192]);
}

/// The number of late pages cannot be chosen freely: watermarks and reserves of both recorded
/// machines fit the same hundred values only. (470 = 27 + 443 pages remain in DMA at 512 MiB.)
#[test]
fn both_machines_of_truth_free_the_same_memory_late() {
    let fits = |late: &u64| {
        let (small, _) = booted(51_806, *late);
        let (large, _) = booted(116_222, *late);
        marks(&small.zones[ZONE_DMA]) == (33, 41, 49)
            && marks(&small.zones[ZONE_DMA32]) == (426, 532, 638)
            && small.zones[ZONE_DMA].lowmem_reserve[MAX_NR_ZONES - 1] == 192
            && marks(&large.zones[ZONE_DMA]) == (22, 27, 32)
            && marks(&large.zones[ZONE_DMA32]) == (662, 827, 992)
            && large.zones[ZONE_DMA].lowmem_reserve[MAX_NR_ZONES - 1] == 443
    };
    let late: std::vec::Vec<u64> = (0..10_000).filter(fits).collect();
    assert_eq!((late.first(), late.last(), late.len()), (Some(&2559), Some(&2654), 96));
}

#[test]
fn the_512_mib_machine_of_truth() {
    let (node, mut inputs) = booted(116_222, 2600);
    let mut nodes = [node];
    assert_eq!(marks(&nodes[0].zones[ZONE_DMA]), (22, 27, 32));
    assert_eq!(marks(&nodes[0].zones[ZONE_DMA32]), (662, 827, 992));
    // The sysctl recomputes from the present memory, with the reserve found at boot.
    inputs.watermark_scale_factor = 200;
    setup(&mut nodes, &inputs, PageSize::Kib4);
    assert_eq!(marks(&nodes[0].zones[ZONE_DMA32]), (663, 2987, 5311));
}

/// A figure reported for a 64 GB Kubernetes node at scale factor 10: low 125.54 MiB, high 187.32
/// MiB. It fits zone Normal of a node with transparent huge pages on (reserve 67584 kB, three
/// zones) that manages 15 816 500 of 16 372 200 pages, the rest being DMA and about 2.1 GiB of
/// DMA32.
#[test]
fn the_64_gb_kubernetes_node() {
    let (dma, dma32, normal) = (3840, 551_860, 15_816_500);
    let inputs = WatermarkInputs {
        min_free_kbytes: thp_min_free_kbytes(3, dma + dma32 + normal, PageSize::Kib4),
        ..WatermarkInputs::default()
    };
    assert_eq!(inputs.min_free_kbytes, 67_584);
    assert!(inputs.min_free_kbytes > default_min_free_kbytes(16_372_200 * 4, 262_144));
    let (_, low, high) = zone_marks(normal, dma + dma32 + normal, &inputs, PageSize::Kib4);
    let hundredths = |pages: u64| (pages * 100 + 128) / 256;
    assert_eq!((hundredths(low), hundredths(high)), (12_554, 18_732));
}

#[test]
fn separate_marks_follow_their_own_sysctls() {
    let mut inputs =
        WatermarkInputs { policy: WatermarkPolicy::Apart, ..WatermarkInputs::default() };
    inputs.calculate_min_free_kbytes(2_067_844);
    assert_eq!(inputs.wmark_kbytes(), WmarkKbytes { min: 5752, low: 7190, high: 8628 });
    assert_eq!(zone_marks(1000, 1000, &inputs, PageSize::Kib4), (1438, 1797, 2157));
    assert!(inputs.write_wmark_kbytes(WmarkKbytes { min: 5752, low: 16_384, high: 20_480 }));
    assert_eq!(zone_marks(1000, 1000, &inputs, PageSize::Kib4), (1438, 4096, 5120));
    let before = inputs;
    assert!(!inputs.write_wmark_kbytes(WmarkKbytes { min: 5752, low: 32_768, high: 20_480 }));
    assert!(!inputs.write_wmark_kbytes(WmarkKbytes { min: 50_000, low: 32_768, high: 40_960 }));
    assert_eq!(inputs, before);
    inputs.write_min_free_kbytes(8000);
    assert_eq!(zone_marks(1000, 1000, &inputs, PageSize::Kib4), (2000, 2500, 3000));
}

#[test]
fn extra_free_raises_low_and_high_only() {
    for policy in [WatermarkPolicy::Derived, WatermarkPolicy::ScaleFactor, WatermarkPolicy::Apart] {
        let inputs = WatermarkInputs { min_free_kbytes: 4096, policy, ..Default::default() };
        let raised = WatermarkInputs { extra_free_kbytes: 8192, ..inputs };
        let (min, low, high) = zone_marks(50_000, 100_000, &inputs, PageSize::Kib4);
        assert_eq!(
            zone_marks(50_000, 100_000, &raised, PageSize::Kib4),
            (min, low + 1024, high + 1024)
        );
    }
}

#[test]
fn what_the_user_wrote_is_not_lowered() {
    let mut inputs = WatermarkInputs::default();
    inputs.write_min_free_kbytes(9000);
    inputs.calculate_min_free_kbytes(2_067_844);
    assert_eq!(inputs.min_free_kbytes, 9000);
    inputs.write_min_free_kbytes(100);
    inputs.calculate_min_free_kbytes(2_067_844);
    assert_eq!(inputs.min_free_kbytes, 5752);
}

#[test]
fn computing_the_marks_again_clears_the_boost() {
    let mut nodes = [node(3840, 51_806, 0)];
    nodes[0].zones[ZONE_DMA32].watermark_boost = 957;
    setup(&mut nodes, &WatermarkInputs::default(), PageSize::Kib4);
    assert_eq!(nodes[0].zones[ZONE_DMA32].watermark_boost, 0);
}

#[test]
fn reserves_can_be_switched_off_and_count_in_totalreserve() {
    let mut nodes = [node(3840, 51_806, 100_000)];
    let mut inputs = WatermarkInputs::default();
    boot(&mut nodes, &mut inputs, PageSize::Kib4);
    assert_eq!(nodes[0].zones[ZONE_DMA].lowmem_reserve, [0, 202, 592, 592]);
    assert_eq!(nodes[0].zones[ZONE_DMA32].lowmem_reserve, [0, 0, 390, 390]);
    let with: u64 = nodes[0].totalreserve_pages;
    inputs.lowmem_reserve_ratio = [0; MAX_NR_ZONES];
    setup_lowmem_reserve(&mut nodes, &inputs);
    assert_eq!(nodes[0].zones[ZONE_DMA].lowmem_reserve, [0; MAX_NR_ZONES]);
    assert_eq!(nodes[0].totalreserve_pages, with - 592 - 390);
}

#[test]
fn equality_fails() {
    let flags = AllocFlags::at(Watermark::Low);
    assert!(!zone_watermark_ok(&zone(100, 0), 0, 100, 3, flags));
    assert!(zone_watermark_ok(&zone(101, 0), 0, 100, 3, flags));
    assert!(!zone_watermark_ok(&zone(150, 50), 0, 100, 3, flags));
    assert!(zone_watermark_ok(&zone(150, 50), 0, 100, 2, flags));
    for (free, passes) in [(100, false), (101, true)] {
        assert_eq!(zone_watermark_fast(&zone(free, 0), 0, 100, 3, flags, Gfp::KERNEL), passes);
    }
}

#[test]
fn a_larger_order_needs_a_block_and_pays_for_it() {
    let flags = AllocFlags::at(Watermark::Low);
    let mut zone = zone(10_000, 0);
    assert!(!zone_watermark_ok(&zone, 3, 100, 3, flags));
    zone.free_area[3].nr_free = 1;
    zone.free_area[3].lists[0].len = 1;
    assert!(zone_watermark_ok(&zone, 3, 100, 3, flags));
    assert!(!zone_watermark_ok(&zone, 4, 100, 3, flags));
    zone.remove_free(10_000 - 107);
    assert!(!zone_watermark_ok(&zone, 3, 100, 3, flags));
    zone.add_free(1);
    assert!(zone_watermark_ok(&zone, 3, 100, 3, flags));
    assert!(!zone_watermark_ok(&zone, 11, 0, 3, flags));
}

#[test]
fn reserve_rights_lower_the_mark() {
    let at = |free, flags| zone_watermark_ok(&zone(free, 0), 0, 1000, 3, flags);
    let plain = AllocFlags::at(Watermark::Min);
    let high = AllocFlags { high: true, ..plain };
    let atomic = AllocFlags { harder: true, ..high };
    let oom = AllocFlags { oom: true, ..plain };
    for (flags, needed) in [(plain, 1000), (high, 500), (atomic, 375), (oom, 500)] {
        assert!(!at(needed, flags) && at(needed + 1, flags), "{flags:?}");
    }
}

#[test]
fn atomic_requests_ignore_the_boost_at_the_min_mark() {
    let mut zone = zone(200, 0);
    (zone.watermark_min, zone.watermark_boost) = (100, 512);
    let flags = AllocFlags::slow(Gfp::ATOMIC);
    let mark = zone.wmark(Watermark::Min);
    assert!(zone_watermark_fast(&zone, 0, mark, 3, flags, Gfp::ATOMIC));
    let flags = AllocFlags::slow(Gfp::KERNEL);
    assert!(!zone_watermark_fast(&zone, 0, mark, 3, flags, Gfp::KERNEL));
}

#[test]
fn free_cma_pages_count_for_movable_requests_only() {
    let mut zone = zone(1000, 0);
    zone.cma_pages = 1024;
    zone.free_area[9].lists[MigrateType::Cma].len = 1;
    zone.free_area[9].nr_free = 1;
    // 1000 free pages, 512 of them CMA.
    for (gfp, mark) in [(Gfp::HIGHUSER_MOVABLE, 1000), (Gfp::KERNEL, 488), (Gfp::ATOMIC, 488)] {
        let flags = AllocFlags { high: false, harder: false, ..AllocFlags::slow(gfp) };
        for fast in [false, true] {
            let passes = |mark| match fast {
                true => zone_watermark_fast(&zone, 0, mark, 0, flags, gfp),
                false => zone_watermark_ok(&zone, 0, mark, 0, flags),
            };
            assert!(passes(mark - 1) && !passes(mark), "{gfp:?}");
        }
        assert_eq!(zone_watermark_ok(&zone, 9, 0, 0, flags), gfp.has(Gfp::MOVABLE));
    }
    // kswapd balances for all requests.
    assert!(!zone_watermark_ok(&zone, 0, 488, 0, AllocFlags::at(Watermark::High)));
}

/// A phone of 2012 with Linux 3.4: its /proc/zoneinfo has these sizes, watermarks and reserves.
#[test]
fn the_32_bit_phone() {
    let mut nodes = [node(0, 0, 121_412)];
    let high = &mut nodes[0].zones[ZONE_HIGHMEM];
    (high.present, high.managed, high.is_highmem) = (129_238, 129_238, true);
    let policy = WatermarkPolicy::Derived;
    let mut inputs = WatermarkInputs { policy, ..WatermarkInputs::default() };
    boot(&mut nodes, &mut inputs, PageSize::Kib4);
    let [.., normal, high] = &nodes[0].zones;
    assert_eq!((marks(normal), normal.lowmem_reserve[ZONE_HIGHMEM]), ((696, 870, 1044), 4038));
    assert_eq!((marks(high), high.name()), ((126, 311, 496), "HighMem"));
    // Small and large zones.
    assert_eq!([1 << 10, 1 << 16, 1 << 18].map(highmem_min), [32, 64, 128]);
}
